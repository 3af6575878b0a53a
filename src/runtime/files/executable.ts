import { accessSync, constants, statSync } from 'node:fs';
import { isSystemError } from '../errors.ts';

/** Whether there is a file that this user may run. */
export function isExecutable(path: string): boolean {
  return whyNotExecutable(path) === undefined;
}

/** What is wrong with a program, to be said behind its path; undefined when this user may run it. */
export function whyNotExecutable(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? undefined : 'is not an executable file';
  } catch (error) {
    return isSystemError(error, 'ENOENT') ? 'does not exist' : 'is not an executable file';
  }
}
