import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { ProcessTable } from './process-table.ts';

/** A child process that exits when it is killed. */
function child(pid: number): ChildProcess {
  const process = new EventEmitter();
  return Object.assign(process, { pid, kill: () => process.emit('exit', null, 'SIGKILL') }) as unknown as ChildProcess;
}

test('distinguishes processes of the same epoch number by base ID', () => {
  const table = new ProcessTable();
  const first = child(1);
  table.add(first, { epoch: 0, baseId: 7 });
  table.add(child(2), { epoch: 0, baseId: 8 });
  first.kill();
  expect(table.list()).toEqual([{ pid: 2, epoch: 0, baseId: 8 }]);
});

test('lists a process until it exits, and ends and returns the remaining processes', async () => {
  const table = new ProcessTable();
  const [exitedChild, runningChild] = [child(1), child(2)];
  table.add(exitedChild, { epoch: 0, baseId: 7 });
  table.add(runningChild, { epoch: 1, baseId: 7 });
  exitedChild.kill();
  expect(await table.endAll()).toMatchObject([{ pid: 2, epoch: 1, baseId: 7 }]);
  expect(table.list()).toEqual([]);
});
