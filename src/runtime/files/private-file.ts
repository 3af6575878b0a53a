/** Files that nobody else may read, whole on the disk before they count. */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';

/** Writes a new file with mode 0600, in place of one of an attempt that was cut off; it is on the disk when this returns. */
export function writePrivateFile(file: string, content: string): void {
  rmSync(file, { force: true });
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
