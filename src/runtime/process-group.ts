import type { ChildProcess } from 'node:child_process';

/** Ignores a group that has ended. */
export function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {}
}

export function killGroupOnExit(leader: ChildProcess): void {
  const { pid } = leader;
  if (pid === undefined) return;
  const end = (): void => killGroup(pid);
  process.once('exit', end);
  leader.once('exit', () => {
    process.off('exit', end);
    end();
  });
}
