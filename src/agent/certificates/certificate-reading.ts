/** Reads one file that may be anything: a directory, a pipe nobody writes to, a disk image. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { isSystemError, messageOf } from '../../runtime/errors.ts';

/** The whole web's roots are 0.3 MiB. */
const largestFileBytes = 4 * 1024 * 1024;

/** @returns its content, or why it has none: never rejects, never waits for a writer */
export async function readSmallFile(path: string): Promise<Buffer | { readonly problem: string }> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const { size, ...found } = await file.stat().then((stat) => ({
      size: stat.size,
      isFile: stat.isFile(),
      kind: stat.isDirectory() ? 'a directory' : 'no regular file',
    }));
    if (!found.isFile) return { problem: `is ${found.kind}` };
    const content = Buffer.alloc(Math.min(size, largestFileBytes) + 1);
    let bytes = 0;
    // The file may have grown since its size was asked: one byte too many tells that.
    for (let read = 1; read > 0 && bytes < content.length; bytes += read) {
      ({ bytesRead: read } = await file.read(content, bytes, content.length - bytes));
    }
    if (bytes > largestFileBytes) return { problem: `has more than ${largestFileBytes} bytes: no certificate` };
    if (bytes > size) return { problem: 'changed while it was read' };
    return content.subarray(0, bytes);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return { problem: 'leads nowhere' };
    return { problem: `cannot be read: ${messageOf(error).split(', ', 1)[0]}` };
  }
}
