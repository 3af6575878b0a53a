import { expect, it } from 'vitest';
import { RejectedObjectLog } from './refused-object-log.ts';

it('rejected objects of a kind and namespace cause one warning per minute with their number, separately for each namespace', () => {
  const lines: object[] = [];
  const clock = { now: 0 };
  const log = new RejectedObjectLog(
    (fields) => lines.push(fields),
    () => clock.now,
  );
  for (let at = 0; at < 1_000; at++) log.report('Service', `mallory/s${at}`, 'is too large');
  log.report('Service', 'bank/web', 'is too large');
  clock.now = 60_000;
  log.report('Service', 'mallory/late', 'is too large');
  expect(lines).toEqual([
    { kind: 'Service', object: 'mallory/s0', reason: 'is too large' },
    { kind: 'Service', object: 'bank/web', reason: 'is too large' },
    { kind: 'Service', object: 'mallory/late', reason: 'is too large', similar: 999 },
  ]);
});
