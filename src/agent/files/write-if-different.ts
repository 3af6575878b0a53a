/** Writes files of certificates and bootstraps that other programs read at the same time. */
import { replaceFile } from '../../runtime/files/replace-file.ts';
import { readSmallFile } from './certificate-reading.ts';

/**
 * Replaces a file atomically: a reader sees the old content or the new one. A file with the same content is not
 * written. The path may have anything, because other programs may write to the directory.
 *
 * @param mode of a new file
 */
export async function writeIfDifferent(file: string, content: string | Buffer, mode: number): Promise<void> {
  const found = await readSmallFile(file);
  if (!('problem' in found) && found.equals(Buffer.from(content))) return;
  await replaceFile(file, content, { mode, draft: 'unique' });
}
