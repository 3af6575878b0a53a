import { expect, it } from 'vitest';
import { RefusedObjectLog } from './refused-object-log.ts';

it('a kind of one namespace is warned of once in a minute, with how many more there were; another namespace is not kept back', () => {
  const lines: string[] = [];
  const clock = { now: 0 };
  const log = new RefusedObjectLog(
    (line) => lines.push(line),
    () => clock.now,
  );
  for (let at = 0; at < 1_000; at++) log.refused('Service', `mallory/s${at}`, 'is too large');
  log.refused('Service', 'bank/web', 'is too large');
  clock.now = 60_000;
  log.refused('Service', 'mallory/late', 'is too large');
  expect(lines).toEqual([
    'Service mallory/s0 is too large',
    'Service bank/web is too large',
    'Service mallory/late is too large (and 999 more of this kind and namespace since the last warning)',
  ]);
});
