import { expect, test } from 'vitest';
import { foundWithin, type Limit } from './limit.ts';

/** As on a busy machine: this process does not run during that time. */
function stall(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

test('what comes within some turns is found, however long those take', async () => {
  let turns = 0;
  const takeTurn = (): void => {
    stall(30);
    if (++turns < 4) setImmediate(takeTurn);
  };
  setImmediate(takeTurn);
  expect(await foundWithin({ turns: 10 }, () => (turns === 4 ? 'here' : undefined))).toBe('here');
});

test.each<[string, Limit]>([
  ['turns', { turns: 3 }],
  ['time', { ms: 5 }],
])('what does not come is given up: %s', async (_, limit) => {
  let looks = 0;
  const look = (): undefined => void looks++;
  expect(await foundWithin(limit, look)).toBe(undefined);
  expect(looks).toBeGreaterThan(1);
});

test('what came while the time ran out is found', async () => {
  let found: string | undefined;
  setImmediate(() => {
    stall(30);
    found = 'here';
  });
  expect(await foundWithin({ ms: 10 }, () => found)).toBe('here');
});
