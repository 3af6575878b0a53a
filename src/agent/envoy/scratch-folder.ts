/**
 * Files of the agent that live for a moment: pipes to an Envoy, a bootstrap that is being written. The folder that they lie
 * in may be read-only, full, or gone since the last time: that is told with its name and the flag that names another one.
 */
import { mkdtempSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { removeQuietly } from './quiet-files.ts';

/** A folder that may be written, and the flag that names another one. */
export interface ScratchParent {
  readonly path: string;
  readonly flag: string;
}

/**
 * Does something in a folder of its own, which is gone afterwards. Each parent is tried in turn and made where it is
 * missing: one that cannot hold such a folder, or in which the deed fails, is passed over.
 *
 * @throws ChartpilotError FILE_UNWRITABLE that tells of the first parent
 */
export function inScratchFolder<A>(parents: readonly ScratchParent[], deed: (folder: string) => A): A {
  let problem: ChartpilotError | undefined;
  for (const { path, flag } of parents) {
    try {
      const parent = resolve(path);
      makeFolder(parent);
      const folder = mkdtempSync(join(parent, '.scratch-'));
      try {
        return deed(folder);
      } finally {
        removeQuietly(folder);
      }
    } catch (error) {
      problem ??= unwritable(path, error, flag);
    }
  }
  throw problem ?? new Error('no directory configured');
}

/** Node says `ENOSPC: no space left on device, open '/x/.scratch-a1b2c3'`: what was made in the folder tells nobody anything. */
export function unwritable(path: string, error: unknown, flag: string): ChartpilotError {
  const why = messageOf(error).replace(/, (?:open|mkdir|mkdtemp|write|rename|close|stat)\b.*$/s, '');
  return new ChartpilotError('FILE_UNWRITABLE', `${path}: ${why}`, {
    hint: `Set ${flag} to a writable directory.`,
    fields: { path: flag, got: path },
    cause: error,
  });
}
