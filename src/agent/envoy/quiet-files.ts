import { rmSync } from 'node:fs';
import { readRegularFile } from '../../runtime/files/regular-file.ts';

/** Far above the size of the agent's files. */
const maxTextBytes = 1024 * 1024;

/** Returns an empty text unless the path is a readable regular file. Follows no symbolic link and does not block on a FIFO. */
export function readTextOrEmpty(file: string): string {
  try {
    return readRegularFile(file, { maxBytes: maxTextBytes }).content.toString();
  } catch {
    return '';
  }
}

export function removeQuietly(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Remaining files do no harm.
  }
}
