import { expect, test } from 'vitest';
import { recordedTable, shareOf } from './recorded-parts.ts';

test('CHARTPILOT_TEST_PART=i/n selects the i-th of n shares of the parts', () => {
  expect(shareOf('2/3')).toEqual([2, 3]);
  for (const text of ['0/1', '3/2', '1', 'a/b', '']) expect(() => shareOf(text)).toThrow('CHARTPILOT_TEST_PART');
});

test('the table of recorded parts has a row for each part and a row with their sum', () => {
  const recordedPart = { changes: 2, requests: 10, connections: 3, failed: 0, notMeasured: 1, seconds: 5 };
  expect(
    recordedTable([
      { part: '0 ms', ...recordedPart },
      { part: '20 ms', ...recordedPart, failed: 1 },
    ])
      .split('\n')
      .slice(2),
  ).toEqual([
    '| 0 ms | 2 | 10 | 3 | 0 | 1 | 5 |',
    '| 20 ms | 2 | 10 | 3 | 1 | 1 | 5 |',
    '| all | 4 | 20 | 6 | 1 | 2 | 10 |',
  ]);
});
