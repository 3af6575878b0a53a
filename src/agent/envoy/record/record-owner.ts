/**
 * Detects whether the container of a record in a shared run directory is alive, although its processes are not visible here. A named pipe in the
 * record's directory has a reader while an agent of that container or an Envoy's shell runs, so that opening it for writing succeeds.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../../runtime/errors.ts';
import { readTextOrEmpty } from '../quiet-files.ts';

export type OwnerState = 'alive' | 'exited' | 'unknown';

const pipePathOf = (directory: string): string => join(directory, 'living');
const bootPathOf = (directory: string): string => join(directory, 'boot');

/** Returns an empty text if the kernel's boot ID is unavailable. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

export const isFromCurrentBoot = (directory: string): boolean =>
  bootId() !== '' && readTextOrEmpty(bootPathOf(directory)) === bootId();

/**
 * The container counts as alive until this file is closed, also by processes that inherit it. `undefined` if the file system has no named pipes or
 * the host no `mkfifo`.
 */
export function markAlive(directory: string): number | undefined {
  const path = pipePathOf(directory);
  try {
    if (!existsSync(path)) {
      writeFileSync(bootPathOf(directory), bootId(), { mode: 0o600 });
      spawnSync('mkfifo', ['-m', '600', path]);
    }
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}

export function ownerStateOf(directory: string): OwnerState {
  if (!isFromCurrentBoot(directory)) return 'unknown';
  try {
    closeSync(openSync(pipePathOf(directory), constants.O_WRONLY | constants.O_NONBLOCK));
    return 'alive';
  } catch (error) {
    return isSystemError(error, 'ENXIO') ? 'exited' : 'unknown';
  }
}
