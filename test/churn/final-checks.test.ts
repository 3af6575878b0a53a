import { describe, expect, test } from 'vitest';
import { differences, growthOverLives, growthProblems, hostDifferences, type ResourceSample } from './final-checks.ts';

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
  const minutes = (
    heapOf: (minute: number) => number,
    { count = 10, descriptorsOf = () => 80 }: { count?: number; descriptorsOf?: (minute: number) => number } = {},
  ): ResourceSample[] =>
    Array.from({ length: count * 12 }, (_, i) => {
      const minute = i / 12;
      const mib = heapOf(minute);
      return { atMs: i * 5_000, heapMib: mib, rssMib: mib, descriptors: descriptorsOf(minute) };
    });

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
    const leaking = minutes(() => 100, { descriptorsOf: (minute) => 80 + Math.round(minute * 2) });
    expect(growthProblems(leaking, 600_000)).toEqual(['the number of descriptors grew from 83.0 to 97.0 descriptors']);
  });

  test('consecutive processes are compared at the same age, so growth within the life of each process is ignored', () => {
    const lives = (startOf: (life: number) => number): ResourceSample[][] =>
      Array.from({ length: 12 }, (_, life) => minutes((minute) => startOf(life) + minute * 10, { count: 5 }));
    expect(
      growthOverLives(
        lives(() => 100),
        300_000,
      ),
    ).toEqual([]);
    expect(
      growthOverLives(
        lives((life) => 100 + life * 5),
        300_000,
      ),
    ).toEqual([
      'the heap grew over the restarts from 141.7 to 186.7 MiB',
      'resident memory grew over the restarts from 141.7 to 186.7 MiB',
    ]);
    expect(growthOverLives([], 59_000)).toEqual([]);
    const tooShort = lives(() => 100).map((samples) => samples.slice(0, 20));
    expect(growthOverLives(tooShort, 300_000)).toEqual([
      'too few restarted processes were sampled in the second half of their time',
    ]);
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

test('a service that a proxy wrongly sees or does not see is reported with its host', () => {
  const clusters = ['outbound|8080||a.x', 'outbound|8080|v1|b.x', 'BlackHoleCluster', 'inbound|80||'];
  expect(hostDifferences(clusters, ['a.x', 'b.x'])).toEqual([]);
  expect(hostDifferences(clusters, ['a.x', 'c.x'])).toEqual(['it should see c.x', 'it should not see b.x']);
});
