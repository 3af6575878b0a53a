import { replaceFile } from '../../runtime/files/replace-file.ts';
import { readSmallFile } from './certificate-reading.ts';

/**
 * Other programs may write to the directory, so the path may name anything.
 *
 * @param mode of a new file
 */
export async function writeIfDifferent(file: string, content: string | Buffer, mode: number): Promise<void> {
  const currentContent = await readSmallFile(file);
  if (!('problem' in currentContent) && currentContent.equals(Buffer.from(content))) return;
  await replaceFile(file, content, { mode, draft: 'unique' });
}
