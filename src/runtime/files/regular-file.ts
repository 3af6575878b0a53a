/**
 * Reads files in directories where other users may write. There, a path may be a link to a file that only this user can read, a FIFO that blocks its
 * reader, or an endless file.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

export interface RegularFile {
  readonly content: Buffer;
  readonly uid: number;
  readonly mtimeMs: number;
}

export interface RegularFileOptions {
  readonly maxBytes: number;
  /** User that must own the file; any if absent. */
  readonly owner?: number;
}

/**
 * Does not follow a link at the end of the path and never blocks.
 *
 * @throws an error of the file system (`ELOOP` for a link), or an Error with the reason
 */
export function readRegularFile(path: string, { maxBytes, owner }: RegularFileOptions): RegularFile {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new Error(`${path} is not a regular file`);
    if (owner !== undefined && stats.uid !== owner)
      throw new Error(`${path}: owner must be uid ${owner}, got uid ${stats.uid}`);
    if (stats.size > maxBytes) throw new Error(`${path}: must have at most ${maxBytes} bytes, got ${stats.size}`);
    return { content: contentOf(fd, path, stats.size), uid: stats.uid, mtimeMs: stats.mtimeMs };
  } finally {
    closeSync(fd);
  }
}

/** One extra byte detects a file that grows while it is read. */
function contentOf(fd: number, path: string, size: number): Buffer {
  const buffer = Buffer.alloc(size + 1);
  let bytes = 0;
  for (let read = 1; read > 0 && bytes < buffer.length; bytes += read) {
    read = readSync(fd, buffer, bytes, buffer.length - bytes, null);
  }
  if (bytes > size) throw new Error(`${path} changed while it was read`);
  return buffer.subarray(0, bytes);
}
