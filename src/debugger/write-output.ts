import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ChartpilotError, messageOf } from '../runtime/errors.ts';

/**
 * Writes what `--output` asks for, and the folders above it.
 *
 * @throws ChartpilotError FLAG_INVALID when it cannot be written
 */
export function writeOutput(path: string, text: string): void {
  try {
    mkdirSync(dirname(resolve(path)), { recursive: true });
    writeFileSync(path, text);
  } catch (error) {
    throw new ChartpilotError('FLAG_INVALID', `--output ${path} cannot be written: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
