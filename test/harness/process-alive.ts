import { isSystemError } from '../../src/runtime/errors.ts';

/** Whether there is a process of this id, ours or another's. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return isSystemError(error, 'EPERM');
  }
}
