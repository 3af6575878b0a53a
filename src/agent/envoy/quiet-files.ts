/** Files of the agent that may be gone, unreadable or read-only by now: nobody is helped by an error. */
import { rmSync } from 'node:fs';
import { readRegularFile } from '../../runtime/files/regular-file.ts';

/** More than any such file has. */
const maxTextBytes = 1024 * 1024;

/** Empty where there is no regular file to read: a link is not followed, and a FIFO blocks nothing. */
export function textOf(file: string): string {
  try {
    return readRegularFile(file, { maxBytes: maxTextBytes }).content.toString();
  } catch {
    return '';
  }
}

/** A file, or a folder with all that is in it. */
export function removeQuietly(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // What is left of it harms nobody.
  }
}
