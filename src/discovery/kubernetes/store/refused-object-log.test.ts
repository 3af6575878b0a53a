import { expect, it } from 'vitest';
import { RefusedObjectLog } from './refused-object-log.ts';

it('a kind of one namespace is warned of once in a minute, with how many more there were; another namespace is not kept back', () => {
  const lines: object[] = [];
  const clock = { now: 0 };
  const log = new RefusedObjectLog(
    (fields) => lines.push(fields),
    () => clock.now,
  );
  for (let at = 0; at < 1_000; at++) log.refused('Service', `mallory/s${at}`, 'is too large');
  log.refused('Service', 'bank/web', 'is too large');
  clock.now = 60_000;
  log.refused('Service', 'mallory/late', 'is too large');
  expect(lines).toEqual([
    { kind: 'Service', object: 'mallory/s0', reason: 'is too large' },
    { kind: 'Service', object: 'bank/web', reason: 'is too large' },
    { kind: 'Service', object: 'mallory/late', reason: 'is too large', similar: 999 },
  ]);
});
