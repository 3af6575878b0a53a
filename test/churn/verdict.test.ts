import { describe, expect, test } from 'vitest';
import { differences, growthProblems, hostDifferences, type MemorySample } from './verdict.ts';

test('differences between two proxies are named by kind and resource', () => {
  const has = {
    CDS: new Map([
      ['a', '1'],
      ['b', '1'],
      ['old', '1'],
    ]),
    RDS: new Map<string, string>(),
  };
  const should = {
    CDS: new Map([
      ['a', '1'],
      ['b', '2'],
      ['new', '1'],
    ]),
    RDS: new Map<string, string>(),
  };
  expect(differences(has, should)).toEqual(['CDS new is missing', 'CDS old should be gone', 'CDS b is not the latest']);
  expect(differences(should, should)).toEqual([]);
});

describe('growth of memory', () => {
  const minutes = (heapOf: (minute: number) => number, rssOf = heapOf): MemorySample[] =>
    Array.from({ length: 120 }, (_, i) => ({ atMs: i * 5_000, heapMib: heapOf(i / 12), rssMib: rssOf(i / 12) }));

  test('is none when it settles after the first minute', () => {
    expect(
      growthProblems(
        minutes((minute) => (minute < 1 ? 100 : 200)),
        600_000,
      ),
    ).toEqual([]);
  });

  test('is found when it goes on', () => {
    expect(
      growthProblems(
        minutes((minute) => 100 + minute * 5),
        600_000,
      ),
    ).toEqual(['the heap grew from 107.1 to 143.3 MiB', 'resident memory grew from 107.1 to 143.3 MiB']);
  });

  test('of less than the allowance is none', () => {
    expect(
      growthProblems(
        minutes((minute) => 100 + minute / 2),
        600_000,
      ),
    ).toEqual([]);
  });

  test('is not judged in a short run, and samples must be there in a long one', () => {
    expect(
      growthProblems(
        minutes((minute) => minute * 1_000),
        60_000,
      ),
    ).toEqual([]);
    expect(growthProblems([], 600_000)).toEqual([
      'memory was not sampled in the second minute and in the last quarter',
    ]);
  });
});

test('services that a proxy sees and should not, or should and does not, are named by its clusters', () => {
  const clusters = ['outbound|8080||a.x', 'outbound|8080|v1|b.x', 'BlackHoleCluster', 'inbound|80||'];
  expect(hostDifferences(clusters, ['a.x', 'b.x'])).toEqual([]);
  expect(hostDifferences(clusters, ['a.x', 'c.x'])).toEqual(['it should see c.x', 'it should not see b.x']);
});
