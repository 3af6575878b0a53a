/** The path may name anything: a directory, a pipe without a writer, a disk image. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { CertificateCode } from '../../runtime/error-codes/certificates.ts';
import { isSystemError, messageOf } from '../../runtime/errors.ts';

/** All public roots together take 0.3 MiB. */
const largestFileBytes = 4 * 1024 * 1024;

/** Never rejects, and never waits for the writer of a pipe. */
export async function readSmallFile(
  path: string,
): Promise<Buffer | { readonly problem: string; readonly code: CertificateCode }> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const { size, ...fileFacts } = await file.stat().then((stat) => ({
      size: stat.size,
      isFile: stat.isFile(),
      kind: stat.isDirectory() ? 'a directory' : 'another kind of file',
    }));
    if (!fileFacts.isFile) return unreadableFile(`must be a regular file, got ${fileFacts.kind}`);
    const content = Buffer.alloc(Math.min(size, largestFileBytes) + 1);
    let bytes = 0;
    // One byte more than the size, to detect a growing file.
    for (let bytesRead = 1; bytesRead > 0 && bytes < content.length; bytes += bytesRead) {
      ({ bytesRead: bytesRead } = await file.read(content, bytes, content.length - bytes));
    }
    if (bytes > largestFileBytes) return unreadableFile(`must have at most ${largestFileBytes} bytes`);
    if (bytes > size) return unreadableFile('changed while it was read');
    return content.subarray(0, bytes);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return unreadableFile('does not exist');
    return unreadableFile(`cannot be read: ${messageOf(error).split(', ', 1)[0]}`);
  }
}

function unreadableFile(problem: string): { readonly problem: string; readonly code: CertificateCode } {
  return { problem, code: 'CERTIFICATE_FILE_UNREADABLE' };
}
