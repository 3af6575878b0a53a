import { isSystemError } from '../../src/runtime/errors.ts';

/** Whether there is a process with this ID, of any user. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return isSystemError(error, 'EPERM');
  }
}
