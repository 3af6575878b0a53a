import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isSystemError } from '../errors.ts';

/** Node's `recursive` loops forever where the system always returns ENOENT (below a removed working directory, in /proc). */
export function ensureDirectory(path: string, mode = 0o777): void {
  const missingFolders: string[] = [];
  for (let folder = path; !createIfMissing(folder, mode); folder = dirname(folder)) {
    missingFolders.push(folder);
    // Without an ancestor, ENOENT has another cause, which the next attempt throws.
    if (dirname(folder) === folder || folder === '.') break;
  }
  for (const folder of missingFolders.toReversed()) mkdirIfMissing(folder, mode);
}

function createIfMissing(folder: string, mode: number): boolean {
  try {
    mkdirIfMissing(folder, mode);
    return true;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
}

function mkdirIfMissing(folder: string, mode: number): void {
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
    if (!statSync(folder).isDirectory()) throw new Error(`ENOTDIR: ${folder} is not a directory`, { cause: error });
  }
}
