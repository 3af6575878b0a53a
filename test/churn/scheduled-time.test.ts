import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { scheduledTime } from './scheduled-time.ts';

test('the time advances, but never faster than the clock and never backwards', async () => {
  const now = scheduledTime(() => process.pid);
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

test("the time of an exited process is the clock's time", async () => {
  const now = scheduledTime(() => 2 ** 30);
  await sleep(60);
  expect(now()).toBeGreaterThan(0);
});
