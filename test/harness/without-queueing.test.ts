import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from './eventually.ts';
import { isAlive } from './process-alive.ts';
import { msWithoutQueueing } from './without-queueing.ts';

/** A processor that this process may use: a container may not have the first one. */
function oneProcessor(): string {
  return /^Cpus_allowed_list:\t(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!;
}

const isAsleep = (pid: number): boolean => /^State:\tS/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

/** Two processes on one processor, each with half of it. */
function rivals(): number[] {
  return [0, 1].map(() => {
    const busyProcess = spawn('taskset', ['-c', oneProcessor(), process.execPath, '-e', 'for(;;);'], {
      stdio: 'ignore',
    });
    onTestFinished(async () => {
      busyProcess.kill('SIGKILL');
      if (busyProcess.exitCode === null && busyProcess.signalCode === null) await once(busyProcess, 'exit');
    });
    return busyProcess.pid!;
  });
}

test('msWithoutQueueing excludes the time that a thread waits for a processor', async () => {
  const [one] = rivals();
  await sleep(300);
  const ms = await msWithoutQueueing([one!], () => sleep(1_000));
  expect(ms).toBeLessThan(850);
  expect(await msWithoutQueueing([], () => sleep(100))).toBeGreaterThan(90);
});

test('msWithoutQueueing excludes the wait of a thread that exits after its work', async () => {
  const [one] = rivals();
  await sleep(300);
  const ms = await msWithoutQueueing([one!], async () => {
    await sleep(1_000);
    process.kill(one!, 'SIGKILL');
    await eventually('it has ended', () => !isAlive(one!));
  });
  expect(ms).toBeLessThan(850);
});

test('msWithoutQueueing includes the time that a thread waits for anything else', async () => {
  const idle = spawn('sleep', ['60']);
  onTestFinished(() => void idle.kill('SIGKILL'));
  await once(idle, 'spawn');
  // Until it sleeps, its loader waits for a processor, too.
  await eventually('it sleeps', () => isAsleep(idle.pid!));
  expect(await msWithoutQueueing([idle.pid!], () => sleep(300))).toBeGreaterThan(200);
  expect(await msWithoutQueueing([2 ** 22], () => sleep(100))).toBeGreaterThan(90);
});
