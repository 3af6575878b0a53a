import { describe, expect, test } from 'vitest';
import { differences, growthProblems, hostDifferences, type MemorySample } from './final-checks.ts';

test('differences between two proxies name the type and the resource', () => {
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
  expect(differences(has, should)).toEqual([
    'CDS new is missing',
    'CDS old should be removed',
    'CDS b is not the latest',
  ]);
  expect(differences(should, should)).toEqual([]);
});

test('a proxy can keep an unconfigured cluster and its endpoints while a route names it, but no other resource', () => {
  const has = {
    CDS: new Map([
      ['outbound|80||named', '1'],
      ['outbound|80||unnamed', '1'],
    ]),
    EDS: new Map([['outbound|80||named', '1']]),
    RDS: new Map([['outbound|80||named', '1']]),
  };
  const none = new Map<string, string>();
  const mayKeep = (cluster: string): boolean => cluster === 'outbound|80||named';
  expect(differences(has, { CDS: none, EDS: none, RDS: none }, mayKeep)).toEqual([
    'CDS outbound|80||unnamed should be removed',
    'RDS outbound|80||named should be removed',
  ]);
  // The configured version must be the latest one, whether a route names it or not.
  const newer = new Map([['outbound|80||named', '2']]);
  expect(differences({ CDS: new Map(has.EDS) }, { CDS: newer }, mayKeep)).toEqual([
    'CDS outbound|80||named is not the latest',
  ]);
  expect(differences({ CDS: none }, { CDS: newer }, mayKeep)).toEqual(['CDS outbound|80||named is missing']);
  expect(hostDifferences(has.CDS.keys(), [], mayKeep)).toEqual(['it should not see unnamed']);
  expect(hostDifferences(has.CDS.keys(), ['named', 'unnamed', 'lost'], mayKeep)).toEqual(['it should see lost']);
});

describe('growth of memory', () => {
  const minutes = (heapOf: (minute: number) => number, rssOf = heapOf): MemorySample[] =>
    Array.from({ length: 120 }, (_, i) => ({ atMs: i * 5_000, heapMib: heapOf(i / 12), rssMib: rssOf(i / 12) }));

  test('memory that is constant after the first minute has not grown', () => {
    expect(
      growthProblems(
        minutes((minute) => (minute < 1 ? 100 : 200)),
        600_000,
      ),
    ).toEqual([]);
  });

  test('memory that keeps increasing has grown', () => {
    expect(
      growthProblems(
        minutes((minute) => 100 + minute * 5),
        600_000,
      ),
    ).toEqual(['the heap grew from 107.1 to 143.3 MiB', 'resident memory grew from 107.1 to 143.3 MiB']);
  });

  test('an increase below the allowance is no growth', () => {
    expect(
      growthProblems(
        minutes((minute) => 100 + minute / 2),
        600_000,
      ),
    ).toEqual([]);
  });

  test('a short run is not checked for growth, and a long run must have samples', () => {
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

test('services that a proxy sees or lacks contrary to its scope are named by their clusters', () => {
  const clusters = ['outbound|8080||a.x', 'outbound|8080|v1|b.x', 'BlackHoleCluster', 'inbound|80||'];
  expect(hostDifferences(clusters, ['a.x', 'b.x'])).toEqual([]);
  expect(hostDifferences(clusters, ['a.x', 'c.x'])).toEqual(['it should see c.x', 'it should not see b.x']);
});
