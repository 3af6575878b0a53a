/** A file is replaced atomically: a reader gets the old content or the new one, never a part. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface ReplaceOptions {
  readonly mode?: number;
  /** Decides what survives a crash of the host: nothing (default), the content if the new name survives, or both. */
  readonly flush?: 'none' | 'content' | 'content and name';
  /**
   * `new` (default) is `<file>.new`, which replaces the draft of an interrupted attempt, for directories to which no other program writes. `unique`
   * is an unpredictable name; the draft of an interrupted attempt stays.
   */
  readonly draft?: 'new' | 'unique';
}

/**
 * @param content a text, bytes, or pieces of a text that exceeds the length of a string
 * @throws an error of the file system; the old content stays
 */
export function replaceFileSync(
  file: string,
  content: string | Uint8Array | Iterable<string>,
  { mode = 0o600, flush = 'none', draft = 'new' }: ReplaceOptions = {},
): void {
  const draftPath = draftOf(file, draft);
  try {
    // Never writes to an existing link or file at the path of the draft.
    if (draft === 'new') rmSync(draftPath, { force: true });
    const descriptor = openSync(draftPath, 'wx', mode);
    try {
      const isSingleChunk = typeof content === 'string' || content instanceof Uint8Array;
      for (const chunk of isSingleChunk ? [content] : content) writeFileSync(descriptor, chunk);
      if (flush !== 'none') fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draftPath, file);
  } catch (error) {
    removeDraft(draftPath);
    throw error;
  }
  if (flush === 'content and name') flushDirectory(dirname(file));
}

export async function replaceFile(
  file: string,
  content: string | Uint8Array,
  { mode = 0o600, flush = 'none', draft = 'new' }: ReplaceOptions = {},
): Promise<void> {
  const draftPath = draftOf(file, draft);
  try {
    if (draft === 'new') await rm(draftPath, { force: true });
    const handle = await open(draftPath, 'wx', mode);
    try {
      await handle.writeFile(content);
      if (flush !== 'none') await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draftPath, file);
  } catch (error) {
    await rm(draftPath, { force: true }).catch(() => {});
    throw error;
  }
  if (flush === 'content and name') flushDirectory(dirname(file));
}

function draftOf(file: string, draft: 'new' | 'unique'): string {
  return draft === 'new' ? `${file}.new` : `${file}.${randomBytes(6).toString('hex')}.tmp`;
}

/** On a full disk an incomplete draft would occupy the remaining space. */
function removeDraft(draftPath: string): void {
  try {
    rmSync(draftPath, { force: true });
  } catch {
    // The error that prevented the replacement is reported instead.
  }
}

function flushDirectory(directory: string): void {
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
