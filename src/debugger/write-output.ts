import { writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ChartpilotError, messageOf } from '../runtime/errors.ts';
import { makeFolder } from '../runtime/make-folder.ts';

/**
 * Writes what `--output` asks for, and the folders above it.
 *
 * @throws ChartpilotError FLAG_INVALID when it cannot be written
 */
export function writeOutput(path: string, text: string): void {
  try {
    makeFolder(dirname(resolve(path)));
    writeFileSync(path, text);
  } catch (error) {
    throw new ChartpilotError('FLAG_INVALID', `--output ${path} cannot be written: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
