import { statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ChartpilotError, messageOf } from '../runtime/errors.ts';
import { ensureDirectory } from '../runtime/files/make-folder.ts';
import { visibleText } from '../runtime/visible-text.ts';

/** Output that contains data of a trace is readable by its owner only, like the trace. */
export const ownerOnlyMode = 0o600;

/**
 * @param flag as in `--output`
 * @param traces input files, which must not be overwritten
 * @throws ChartpilotError FLAG_INVALID if the file cannot be written or is one of those files
 */
export function writeOutput(flag: string, path: string, text: string, traces?: readonly string[]): void {
  if (traces !== undefined) requireDifferentFile(flag, path, traces);
  try {
    ensureDirectory(dirname(resolve(path)));
    writeFileSync(path, visibleText(text), traces === undefined ? {} : { mode: ownerOnlyMode });
  } catch (error) {
    throw new ChartpilotError('FLAG_INVALID', `${flag}: cannot write ${path}: ${messageOf(error)}`, {
      cause: error,
      fields: { path: flag, got: path },
    });
  }
}

/** @throws ChartpilotError FLAG_INVALID if the output is one of the inputs, under any name */
export function requireDifferentFile(flag: string, path: string, inputs: readonly string[]): void {
  const output = fileAt(path);
  if (output === undefined || !inputs.some((input) => fileAt(input) === output)) return;
  throw new ChartpilotError('FLAG_INVALID', `${flag}: would overwrite the input ${path}`, {
    hint: `choose another file with ${flag}`,
    fields: { path: flag, got: path },
  });
}

/** Device and inode identify a regular file; pipes and devices lose no data when written. */
function fileAt(path: string): string | undefined {
  try {
    const fileStat = statSync(path, { bigint: true });
    return fileStat.isFile() ? `${fileStat.dev} ${fileStat.ino}` : undefined;
  } catch {
    return undefined;
  }
}
