import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fromPromise } from 'xstate';
import { ChartpilotError } from '../../../runtime/errors.ts';
import { readRegularFile } from '../../../runtime/files/regular-file.ts';
import { runForOutput } from '../../../runtime/run-for-output.ts';

export interface RepairEnvironment {
  readonly binary: string;
  readonly sharedMemoryDir?: string;
}

// The layout was measured only with this version and CPU (docs/hot-restart-reference.md, fact 2).
const supportedVersion = '11.104';
const supportedArch = 'x64';
const supportedBytes = 104;
const maxSharedMemoryBytes = 64 * 1024;
const flagsOffset = 96;
const initializingBit = 0x01;
/** The shared memory starts with its size and the first part of the version. */
const headerLayout = { sizeOffset: 0, versionOffset: 8, version: 11n };
const sharedMemoryDirDefault = '/dev/shm';

/** Whether the flag of an initializing epoch is set; `undefined` if there is no shared memory of the known layout. */
export function isMarkedInitializing(baseId: number, sharedMemoryDir = sharedMemoryDirDefault): boolean | undefined {
  try {
    // Any user can write to /dev/shm.
    const { content: bytes } = readRegularFile(sharedMemoryFile(baseId, sharedMemoryDir), {
      maxBytes: maxSharedMemoryBytes,
    });
    if (process.arch !== supportedArch || bytes.length !== supportedBytes) return undefined;
    if (bytes.readBigUInt64LE(headerLayout.sizeOffset) !== BigInt(supportedBytes)) return undefined;
    if (bytes.readBigUInt64LE(headerLayout.versionOffset) !== headerLayout.version) return undefined;
    return (bytes[flagsOffset]! & initializingBit) !== 0;
  } catch {
    return undefined;
  }
}

const sharedMemoryFile = (baseId: number, directory: string): string =>
  join(directory, `envoy_shared_memory_${baseId * 10}`);

/** The caller ensures that every child has exited. Rejects if the layout is unknown or the flag is not set. */
export function repairSharedMemory(environment: RepairEnvironment) {
  return fromPromise<void, { baseId: number }>(async ({ input }) => {
    await requireKnownLayout(environment.binary);
    clearInitializingFlag(sharedMemoryFile(input.baseId, environment.sharedMemoryDir ?? sharedMemoryDirDefault));
  });
}

/** Envoy takes less than 100 ms, but took more than 5 s on an overloaded host (measured). */
const versionLimitMs = 20_000;

async function requireKnownLayout(binary: string): Promise<void> {
  // Envoy prints the version to stderr.
  const { all, timedOut } = await runForOutput(binary, ['--hot-restart-version'], {
    all: true,
    timeout: versionLimitMs,
  });
  const version = timedOut ? `no response within ${versionLimitMs} ms` : (all ?? '').trim();
  if (version !== supportedVersion || process.arch !== supportedArch) {
    throw unknownLayout(`hot restart version ${supportedVersion} on ${supportedArch}`, `${version} on ${process.arch}`);
  }
}

function clearInitializingFlag(file: string): void {
  const fd = openSync(file, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size } = fstatSync(fd);
    if (size !== supportedBytes) throw unknownLayout(`${supportedBytes} bytes in ${file}`, `${size}`);
    const flags = Buffer.alloc(1);
    readSync(fd, flags, 0, 1, flagsOffset);
    if ((flags[0]! & initializingBit) === 0) throw unknownLayout(`an initializing epoch in ${file}`, 'none');
    writeSync(fd, Buffer.from([flags[0]! & ~initializingBit]), 0, 1, flagsOffset);
  } finally {
    closeSync(fd);
  }
}

function unknownLayout(expected: string, actual: string): ChartpilotError {
  return new ChartpilotError('SHARED_MEMORY_UNKNOWN', `expected ${expected}, got ${actual}`, {
    fields: { expected, got: actual },
  });
}
