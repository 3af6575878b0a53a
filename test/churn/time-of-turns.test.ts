import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { timeOfTurns } from './time-of-turns.ts';

test('goes on, never faster than the clock and never back', async () => {
  const now = timeOfTurns(process.pid);
  const begun = performance.now();
  let last = now();
  for (let i = 0; i < 5; i++) {
    await sleep(25);
    const next = now();
    expect(next).toBeGreaterThanOrEqual(last);
    last = next;
  }
  expect(last).toBeLessThanOrEqual(performance.now() - begun + 1);
  expect(last).toBeGreaterThan(0);
});

test('of a process that is gone it is the clock', async () => {
  const now = timeOfTurns(2 ** 30);
  await sleep(60);
  expect(now()).toBeGreaterThan(0);
});
