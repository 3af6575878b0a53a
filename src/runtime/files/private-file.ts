import { closeSync, fsyncSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { ChartpilotError } from '../errors.ts';

/** Mode 0600, flushed to disk. Replaces the file of an interrupted attempt. */
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
 * @param privilege the power that a reader of the file gains, for the error
 * @throws ChartpilotError if the file is missing, or readable or writable for other users
 */
export function requirePrivate(file: string, privilege: string): void {
  const mode = statSync(file).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  throw new ChartpilotError('CONFIG_INVALID', `${file}: mode must be 0600, got 0${mode.toString(8)}`, {
    hint: `${privilege}: run chmod 600 ${file}, and replace the key if another user may have read it.`,
    fields: { path: file, expected: '0600', got: `0${mode.toString(8)}` },
  });
}
