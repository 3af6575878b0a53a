/** Replaces a file atomically: a reader sees the old content or the new one, never a part. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface ReplaceOptions {
  /** Mode of the new file; default 0600. */
  readonly mode?: number;
  /**
   * What survives a crash of the host when the function returns: nothing for certain (default), the content under the new name if the name
   * survives, or both.
   */
  readonly flush?: 'none' | 'content' | 'content and name';
  /**
   * Name of the draft. `new` (default): `<file>.new`; a later attempt replaces what an attempt that was cut off has left. It needs a directory
   * to which no other program writes. `unique`: a name that no other program can guess; what an attempt that was cut off left stays.
   */
  readonly draft?: 'new' | 'unique';
}

/**
 * @param content a text, bytes, or pieces of a text that is longer than one string can be
 * @throws an error of the file system; the old content stays, and no draft is left
 */
export function replaceFileSync(
  file: string,
  content: string | Uint8Array | Iterable<string>,
  { mode = 0o600, flush = 'none', draft = 'new' }: ReplaceOptions = {},
): void {
  const beside = draftOf(file, draft);
  try {
    // A link or a file of another mode in the place of the draft is not written to.
    if (draft === 'new') rmSync(beside, { force: true });
    const descriptor = openSync(beside, 'wx', mode);
    try {
      const isWhole = typeof content === 'string' || content instanceof Uint8Array;
      for (const piece of isWhole ? [content] : content) writeFileSync(descriptor, piece);
      if (flush !== 'none') fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(beside, file);
  } catch (error) {
    removeDraft(beside);
    throw error;
  }
  if (flush === 'content and name') flushDirectory(dirname(file));
}

/** The same without blocking the event loop. */
export async function replaceFile(
  file: string,
  content: string | Uint8Array,
  { mode = 0o600, flush = 'none', draft = 'new' }: ReplaceOptions = {},
): Promise<void> {
  const beside = draftOf(file, draft);
  try {
    if (draft === 'new') await rm(beside, { force: true });
    const handle = await open(beside, 'wx', mode);
    try {
      await handle.writeFile(content);
      if (flush !== 'none') await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true }).catch(() => {});
    throw error;
  }
  if (flush === 'content and name') flushDirectory(dirname(file));
}

function draftOf(file: string, draft: 'new' | 'unique'): string {
  return draft === 'new' ? `${file}.new` : `${file}.${randomBytes(6).toString('hex')}.tmp`;
}

/** On a full disk half a file takes what little space there is. */
function removeDraft(beside: string): void {
  try {
    rmSync(beside, { force: true });
  } catch {
    // The error that prevented the replacement says why.
  }
}

/** A name is in its directory. */
function flushDirectory(directory: string): void {
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
