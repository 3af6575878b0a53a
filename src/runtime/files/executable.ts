import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { isSystemError } from '../errors.ts';

export function isExecutable(path: string): boolean {
  return whyNotExecutable(path) === undefined;
}

/** Why a program cannot be run, as the text after its path; `undefined` if this user may run it. */
export function whyNotExecutable(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? undefined : 'is not an executable file';
  } catch (error) {
    return isSystemError(error, 'ENOENT') ? 'does not exist' : 'is not an executable file';
  }
}

/**
 * The first program of this name in PATH. Relative directories are ignored, because another user may own the working
 * directory.
 *
 * @returns an absolute path; `undefined` if no directory contains it
 */
export function findInPath(name: string, { PATH }: NodeJS.ProcessEnv): string | undefined {
  return absoluteFolders(PATH)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** The absolute directories of a PATH. An empty entry means the working directory, and is ignored. */
export function absoluteFolders(path: string | undefined): string[] {
  return (path ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
}
