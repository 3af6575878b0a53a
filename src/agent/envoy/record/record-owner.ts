/**
 * Whether anybody of a container lives whose record lies in a run directory that several containers share. Their processes cannot be seen from
 * here; but a named pipe in the record's directory has a reader as long as an agent of that container lives, or an Envoy's shell, and the kernel
 * says so to whoever tries to write to it. On another host's file that word means nothing: so the directory says which start of a kernel it is of.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../../runtime/errors.ts';
import { textOf } from '../quiet-files.ts';

/** `unknown`: nobody here can tell. */
export type OwnerLife = 'lives' | 'gone' | 'unknown';

const pipeIn = (directory: string): string => join(directory, 'living');
const bootIn = (directory: string): string => join(directory, 'boot');

/** Id of this start of this kernel; empty where the kernel does not tell. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

/** Whether a record's directory was made by this kernel since it was started. */
export const isOfThisBoot = (directory: string): boolean => bootId() !== '' && textOf(bootIn(directory)) === bootId();

/**
 * Somebody lives from now on until this file is closed, also by those who were started with it.
 *
 * @returns undefined where the file system has no named pipes, or the host no `mkfifo`: then nobody can tell
 */
export function openLiving(directory: string): number | undefined {
  const path = pipeIn(directory);
  try {
    if (!existsSync(path)) {
      writeFileSync(bootIn(directory), bootId(), { mode: 0o600 });
      spawnSync('mkfifo', ['-m', '600', path]);
    }
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}

export function ownerOf(directory: string): OwnerLife {
  if (!isOfThisBoot(directory)) return 'unknown';
  try {
    closeSync(openSync(pipeIn(directory), constants.O_WRONLY | constants.O_NONBLOCK));
    return 'lives';
  } catch (error) {
    return isSystemError(error, 'ENXIO') ? 'gone' : 'unknown';
  }
}
