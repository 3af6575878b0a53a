import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { msWithoutQueueing } from './without-queueing.ts';

/** Two on one processor, of which each has half. */
function rivals(): number[] {
  return [0, 1].map(() => {
    const busy = spawn('taskset', ['-c', '0', process.execPath, '-e', 'for(;;);'], { stdio: 'ignore' });
    onTestFinished(async () => {
      busy.kill('SIGKILL');
      await once(busy, 'exit');
    });
    return busy.pid!;
  });
}

test('what a thread waits for a processor is left out', async () => {
  const [one] = rivals();
  await sleep(300);
  const ms = await msWithoutQueueing([one!], () => sleep(1_000));
  expect(ms).toBeLessThan(850);
  expect(await msWithoutQueueing([], () => sleep(100))).toBeGreaterThan(90);
});

test('what it waits for anything else is not', async () => {
  const idle = spawn('sleep', ['60']);
  onTestFinished(() => void idle.kill('SIGKILL'));
  await once(idle, 'spawn');
  expect(await msWithoutQueueing([idle.pid!], () => sleep(300))).toBeGreaterThan(200);
  expect(await msWithoutQueueing([2 ** 22], () => sleep(100))).toBeGreaterThan(90);
});
