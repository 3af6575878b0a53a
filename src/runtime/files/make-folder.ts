import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isSystemError } from '../errors.ts';

/**
 * Makes a folder and those above it that are missing. Node's own `recursive` tries for ever where the system goes on
 * saying ENOENT: below a working directory that was removed, in /proc.
 */
export function makeFolder(path: string, mode = 0o777): void {
  const missing: string[] = [];
  for (let folder = path; !madeOrThere(folder, mode); folder = dirname(folder)) {
    missing.push(folder);
    // Where nothing is above, ENOENT has another reason: the next try throws it.
    if (dirname(folder) === folder || folder === '.') break;
  }
  for (const folder of missing.toReversed()) mkdirUnlessThere(folder, mode);
}

/** @returns false when what is above it is missing */
function madeOrThere(folder: string, mode: number): boolean {
  try {
    mkdirUnlessThere(folder, mode);
    return true;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
}

function mkdirUnlessThere(folder: string, mode: number): void {
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
    if (!statSync(folder).isDirectory()) throw new Error(`ENOTDIR: ${folder} is not a directory`, { cause: error });
  }
}
