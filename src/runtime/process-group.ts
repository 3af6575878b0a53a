/** A child that leads a group of its own (`detached`), and what it starts. */
import type { ChildProcess } from 'node:child_process';

/** All of them: those that have ended are passed over. */
export function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // None is left.
  }
}

/**
 * What a program that is asked something has started ends with it: a shell that is killed leaves its command behind, which may
 * never end, and holds the pipe that its answer is read from. None outlives this process.
 */
export function endGroupWith(leader: ChildProcess): void {
  const { pid } = leader;
  if (pid === undefined) return;
  const end = (): void => killGroup(pid);
  process.once('exit', end);
  leader.once('exit', () => {
    process.off('exit', end);
    end();
  });
}
