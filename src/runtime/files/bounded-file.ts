/** Texts of files that may be anything: what has no end, or is no file, is not read. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statfsSync } from 'node:fs';

/** How many bytes are too many is the reader's to say. */
export class FileTooLarge extends Error {
  constructor(bytes: number, most: number) {
    super(
      `has ${bytes} bytes, the limit for a configuration file is ${most}: it is ignored, and its last valid content applies; split it, or raise PILOT_CONFIG_MAX_FILE_BYTES`,
    );
  }
}

/** File systems of the kernel, by the magic numbers of statfs(2): proc, cgroup, cgroup2, debugfs, tracefs, securityfs, sysfs, bpf. */
const filesystemsOfTheKernel: ReadonlySet<number> = new Set([
  ...[0x9fa0, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0x62656572, 0xcafe4a11],
]);

/** What is there is no configuration, has no end, and takes long to look at. */
export function isOfTheKernel(path: string): boolean {
  return filesystemsOfTheKernel.has(statfsSync(path).type);
}

/**
 * For whoever reads it, and closes the descriptor.
 *
 * @param called how an error calls it, where nobody else says which file it is
 * @throws an error of the file system, and for what is no file
 */
export function openRegularFile(path: string, called = ''): number {
  // A pipe that nobody writes to would keep whoever opens it waiting.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const other = whatElse(fstatSync(file));
  if (other === undefined) return file;
  closeSync(file);
  throw new Error(`${called} must be a regular file, is ${other}`.trimStart());
}

/** @throws an error of the file system, {@link FileTooLarge}, and for what is no file */
export function readBoundedText(path: string, maxBytes: number): string {
  const file = openRegularFile(path);
  try {
    const stats = fstatSync(file);
    if (stats.size > maxBytes) throw new FileTooLarge(stats.size, maxBytes);
    if (stats.size === 0) {
      // The kernel's files say that they are empty, and some of them have no end.
      if (isOfTheKernel(path)) throw new Error('must be a regular file, is one of a kernel file system such as /proc');
      return '';
    }
    return readText(file, stats.size, maxBytes);
  } finally {
    closeSync(file);
  }
}

function readText(file: number, expected: number, maxBytes: number): string {
  let buffer = Buffer.allocUnsafe(expected + 1);
  let length = 0;
  for (;;) {
    const read = readSync(file, buffer, length, buffer.length - length, null);
    length += read;
    // The file is as long as it is said to be, and there was room for more: asking once more would cost as much again.
    if (read === 0 || length === expected) return buffer.toString('utf8', 0, length);
    if (length > maxBytes) throw new FileTooLarge(length, maxBytes);
    // The file grew since its size was asked.
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(length * 2, maxBytes + 1));
  }
}

/** `a named pipe`; undefined for files. */
export function whatElse(stats: Pick<Stats, 'isFile' | 'isDirectory' | 'isFIFO' | 'isSocket'>): string | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isDirectory()) return 'a directory';
  if (stats.isFIFO()) return 'a named pipe';
  return stats.isSocket() ? 'a socket' : 'a device';
}
