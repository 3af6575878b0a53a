import { mkdtempSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { removeQuietly } from './quiet-files.ts';

export interface ScratchParent {
  readonly path: string;
  readonly flag: string;
}

/**
 * Runs the task in a temporary folder, which is then removed. Uses the first parent in which folder and task succeed.
 *
 * @throws ChartpilotError FILE_UNWRITABLE with the problem of the first parent
 */
export function withScratchFolder<A>(parents: readonly ScratchParent[], task: (folder: string) => A): A {
  let problem: ChartpilotError | undefined;
  for (const { path, flag } of parents) {
    try {
      const parent = resolve(path);
      ensureDirectory(parent);
      const folder = mkdtempSync(join(parent, '.scratch-'));
      try {
        return task(folder);
      } finally {
        removeQuietly(folder);
      }
    } catch (error) {
      problem ??= unwritableError(path, error, flag);
    }
  }
  throw problem ?? new Error('no directory configured');
}

/** Removes the operation and the temporary path from Node's message (`ENOSPC: no space left on device, open '/x/.scratch-a1b2c3'`). */
export function unwritableError(path: string, error: unknown, flag: string): ChartpilotError {
  const reason = messageOf(error).replace(/, (?:open|mkdir|mkdtemp|write|rename|close|stat)\b.*$/s, '');
  return new ChartpilotError('FILE_UNWRITABLE', `${path}: ${reason}`, {
    hint: `Set ${flag} to a writable directory.`,
    fields: { path: flag, got: path },
    cause: error,
  });
}
