import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { ensureRunDir } from '../../runtime/files/run-dir.ts';
import { runForOutput } from '../../runtime/run-for-output.ts';
import { type EnvoyFlags, envoyArguments } from '../envoy/envoy-args.ts';
import { removeQuietly } from '../envoy/quiet-files.ts';
import { unwritableError, withScratchFolder } from '../envoy/scratch-folder.ts';

export interface Requirements {
  readonly runDir: string;
  readonly configPath: string | undefined;
  readonly hotRestart: boolean;
  readonly sharedMemoryDir?: string;
}

/** @throws ChartpilotError FILE_UNREADABLE, FILE_UNWRITABLE, SHARED_MEMORY_UNUSABLE */
export function requireFolders({ runDir, configPath, hotRestart, sharedMemoryDir = '/dev/shm' }: Requirements): void {
  requireProc();
  ensureRunDir(runDir);
  withScratchFolder([{ path: runDir, flag: '--runDir' }], () => {});
  if (configPath !== undefined) requireConfigPath(resolve(configPath));
  if (hotRestart) requireSharedMemory(sharedMemoryDir);
}

function requireConfigPath(path: string): void {
  try {
    // Private, because a bootstrap may contain confidential data.
    ensureDirectory(path, 0o700);
  } catch (error) {
    throw unwritableError(path, error, '--configPath');
  }
  withScratchFolder([{ path, flag: '--configPath' }], () => {});
}

/** One page for each of two base IDs; without its page, Envoy crashes. */
const sharedMemoryBytes = 2 * 4096;

function requireSharedMemory(directory: string): void {
  let folder: string | undefined;
  try {
    // The directory is world-writable, so a private subfolder prevents symlink attacks.
    folder = mkdtempSync(join(directory, '.chartpilot-'));
    writeFileSync(join(folder, 'probe'), Buffer.alloc(sharedMemoryBytes));
  } catch (error) {
    throw new ChartpilotError(
      'SHARED_MEMORY_UNUSABLE',
      `${directory}: ${messageOf(error).replace(/, \w+( '.*)?$/, '')}`,
      {
        hint:
          `Hot restart requires ${sharedMemoryBytes} bytes of shared memory. Mount it (Kubernetes: emptyDir with medium Memory; ` +
          'Docker: --shm-size), or set --hotRestart off.',
        cause: error,
      },
    );
  } finally {
    if (folder !== undefined) removeQuietly(folder);
  }
}

/** Running processes and base IDs are found in /proc. Named pipes to Envoy and the signal forwarding of bin/pilot-agent need it too. */
function requireProc(): void {
  try {
    readFileSync('/proc/net/unix');
    readFileSync('/proc/self/stat');
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', messageOf(error), {
      hint: 'Mount /proc: the agent and Envoy require it.',
      cause: error,
    });
  }
}

/** Envoy parses its flags in 0.1 s. */
const maxFlagCheckMs = 10_000;

/**
 * With --hot-restart-version, Envoy checks its complete command line, prints the version and exits without opening files.
 *
 * @throws ChartpilotError FLAG_INVALID with Envoy's message. A timeout, or output of another program, is not an error.
 */
export async function requireFlags(binary: string, flags: EnvoyFlags, limitMs = maxFlagCheckMs): Promise<void> {
  const envoyArgs = envoyArguments(flags, { configFile: '/none', epoch: 0, baseId: 0 });
  const { exitCode, stderr } = await runForOutput(binary, [...envoyArgs, '--hot-restart-version'], {
    stdin: 'ignore',
    stdout: 'ignore',
    timeout: limitMs,
  });
  const refusal = exitCode === 1 ? refusalIn(stderr) : undefined;
  if (refusal !== undefined) throw new ChartpilotError('FLAG_INVALID', `Envoy rejects its command line: ${refusal}`);
}

/** Matches `error: invalid component specified 'foo'`, and the usage followed by `(--concurrency) -- Couldn't read argument …`. */
function refusalIn(output: string): string | undefined {
  const lines = output.split('\n');
  const error = lines.find((line) => line.startsWith('error: '));
  return error?.slice('error: '.length) ?? lines.findLast((line) => /^\(--?\S+\) -- /.test(line));
}
