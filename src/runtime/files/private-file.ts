/** Files that nobody else may read, whole on the disk before they count. */
import { closeSync, fsyncSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { ChartpilotError } from '../errors.ts';

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

/**
 * @param whoReads what it makes of a person to have read it
 * @throws ChartpilotError for a file that others than its owner may read or write, or that is not there
 */
export function requirePrivate(file: string, whoReads: string): void {
  const mode = statSync(file).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  throw new ChartpilotError('CONFIG_INVALID', `${file}: mode must be 0600, got 0${mode.toString(8)}`, {
    hint: `${whoReads}: run chmod 600 ${file}, and replace the key if another user may have read it.`,
    fields: { path: file, expected: '0600', got: `0${mode.toString(8)}` },
  });
}
