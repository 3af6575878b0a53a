import { expect, test } from 'vitest';
import { type Limit, pollWithin } from './limit.ts';

/** Blocks this process, as a busy machine does. */
function stall(ms: number): void {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs; );
}

test('pollWithin finds an event within a number of event loop iterations, regardless of their duration', async () => {
  let turnCount = 0;
  const takeTurn = (): void => {
    stall(30);
    if (++turnCount < 4) setImmediate(takeTurn);
  };
  setImmediate(takeTurn);
  expect(await pollWithin({ turns: 10 }, () => (turnCount === 4 ? 'here' : undefined))).toBe('here');
});

test.each<[string, Limit]>([
  ['turns', { turns: 3 }],
  ['time', { ms: 5 }],
])('pollWithin returns undefined after a limit of %s', async (_, limit) => {
  let polls = 0;
  const poll = (): undefined => void polls++;
  expect(await pollWithin(limit, poll)).toBe(undefined);
  expect(polls).toBeGreaterThan(1);
});

test('pollWithin finds an event that occurs while the time limit expires', async () => {
  let foundValue: string | undefined;
  setImmediate(() => {
    stall(30);
    foundValue = 'here';
  });
  expect(await pollWithin({ ms: 10 }, () => foundValue)).toBe('here');
});
