import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { isSystemError } from '../errors.ts';

export function isExecutable(path: string): boolean {
  return notExecutableReason(path) === undefined;
}

/** Returns a reason that follows the path in an error message; `undefined` if this user may run the program. */
export function notExecutableReason(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? undefined : 'is not an executable file';
  } catch (error) {
    return isSystemError(error, 'ENOENT') ? 'does not exist' : 'is not an executable file';
  }
}

/** Relative directories are ignored, because another user may own the working directory. */
export function findExecutable(name: string, { PATH }: NodeJS.ProcessEnv): string | undefined {
  return absoluteFolders(PATH)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** An empty entry of a PATH means the working directory, and is ignored. */
export function absoluteFolders(path: string | undefined): string[] {
  return (path ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
}
