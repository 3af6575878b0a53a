import { expect, it } from 'vitest';
import { unexpectedErrorsIn } from './unexpected-errors.ts';

const retried = (second: number, task = 'Lease', reason = 'no response within 5000 ms [API_TIMEOUT]'): string =>
  `2026-11-28T08:00:0${second}Z\twarn\telections\t${task} not available, will retry  reason="${reason}"`;
const buildErrorLine =
  '2026-11-28T08:00:00Z\terror\tads\tresources not built, client keeps its last ones  reason="no such field"';

it('unexpectedErrorsIn ignores log lines that a busy machine can cause, and returns all other warnings', () => {
  expect(unexpectedErrorsIn([retried(1), buildErrorLine, retried(2), retried(3)])).toEqual([buildErrorLine]);
  expect(unexpectedErrorsIn([retried(1, 'a', 'connection closed [API_CONNECTION_CLOSED]')])).toEqual([]);
  expect(unexpectedErrorsIn([retried(1, 'a', 'forbidden [API_STATUS]')])).toHaveLength(1);
});

it('unexpectedErrorsIn ignores an API server that is still unresponsive and a Lease that was not renewed in time', () => {
  const unresponsiveLine =
    '2026-11-28T08:00:00Z\twarn\tcluster\tAPI server still not responding, keeping last known objects, will retry';
  const lostLeaseLine =
    '2026-11-28T08:00:00Z\twarn\tleader\tno longer leader  lease=a  reason="no renewal was taken in time"';
  expect(unexpectedErrorsIn([unresponsiveLine, lostLeaseLine])).toEqual([]);
  expect(unexpectedErrorsIn([lostLeaseLine.replace('in time', 'at all')])).toHaveLength(1);
});

it('unexpectedErrorsIn returns a task that never completes, even if each attempt announces a retry', () => {
  const tries = [1, 2, 3, 4].map((second) => retried(second));
  expect(unexpectedErrorsIn([...tries, retried(5, 'a status')])).toEqual(tries);
});
