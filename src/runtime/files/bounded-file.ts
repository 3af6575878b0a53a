import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statfsSync } from 'node:fs';

export class FileTooLarge extends Error {
  constructor(bytes: number, maxBytes: number) {
    super(
      `has ${bytes} bytes, the limit for a configuration file is ${maxBytes}: it is ignored, and its last valid content applies; split it, or raise PILOT_CONFIG_MAX_FILE_BYTES`,
    );
  }
}

/** Magic numbers of statfs(2): proc, cgroup, cgroup2, debugfs, tracefs, securityfs, sysfs, bpf. */
const filesystemsOfTheKernel: ReadonlySet<number> = new Set([
  ...[0x9fa0, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0x62656572, 0xcafe4a11],
]);

/** Files of a kernel file system are no configuration, may be endless, and are slow to list. */
export function isOnKernelFileSystem(path: string): boolean {
  return filesystemsOfTheKernel.has(statfsSync(path).type);
}

/**
 * The caller closes the descriptor.
 * @throws an error of the file system, or an Error if it is not a regular file
 */
export function openRegularFile(path: string, displayName = ''): number {
  // Without O_NONBLOCK, opening a pipe waits for a writer.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const actualKind = nonRegularKind(fstatSync(file));
  if (actualKind === undefined) return file;
  closeSync(file);
  throw new Error(`${displayName} must be a regular file, is ${actualKind}`.trimStart());
}

/** @throws an error of the file system, {@link FileTooLarge}, or an Error if it is not a regular file */
export function readBoundedText(path: string, maxBytes: number): string {
  const file = openRegularFile(path);
  try {
    const stats = fstatSync(file);
    if (stats.size > maxBytes) throw new FileTooLarge(stats.size, maxBytes);
    if (stats.size === 0) {
      // Kernel files report size 0, and some are endless.
      if (isOnKernelFileSystem(path))
        throw new Error('must be a regular file, is one of a kernel file system such as /proc');
      return '';
    }
    return readText(file, stats.size, maxBytes);
  } finally {
    closeSync(file);
  }
}

function readText(file: number, reportedSize: number, maxBytes: number): string {
  let buffer = Buffer.allocUnsafe(reportedSize + 1);
  let length = 0;
  for (;;) {
    const readBytes = readSync(file, buffer, length, buffer.length - length, null);
    length += readBytes;
    // The file has its reported size and the buffer had space left, so another read would only double the cost.
    if (readBytes === 0 || length === reportedSize) return buffer.toString('utf8', 0, length);
    if (length > maxBytes) throw new FileTooLarge(length, maxBytes);
    // The file grew since fstat.
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(length * 2, maxBytes + 1));
  }
}

/** Returns a kind such as `a named pipe`; `undefined` for a regular file. */
export function nonRegularKind(
  stats: Pick<Stats, 'isFile' | 'isDirectory' | 'isFIFO' | 'isSocket'>,
): string | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isDirectory()) return 'a directory';
  if (stats.isFIFO()) return 'a named pipe';
  return stats.isSocket() ? 'a socket' : 'a device';
}
