import { describe, expect, test } from 'vitest';
import type { AgentUsage } from './agent-usage.ts';
import { formatRestartRun, growthProblems, problemsOf, type RestartRun } from './restart-figures.ts';
import { medianOf, quantileOf } from './statistics.ts';

const mib = 1024 ** 2;
const steady: AgentUsage = { rssBytes: 100 * mib, fds: 30, sharedMemoryFiles: 1 };
const samples = (count: number, change: (index: number) => Partial<AgentUsage> = () => ({})): AgentUsage[] =>
  Array.from({ length: count + 1 }, (_, index) => ({ ...steady, ...change(index) }));

const goodRun: RestartRun = {
  requested: 20,
  requests: 5_000,
  failed: 0,
  timesToLiveMs: Array.from({ length: 20 }, (_, index) => 200 + index),
  servedAfterMs: Array.from({ length: 20 }, (_, index) => 500 + index),
  coldStarts: 1,
  failedEpochs: 0,
  usage: samples(20),
};

describe('quantiles', () => {
  test('quantiles are values of the sample by nearest rank, in any input order', () => {
    expect(medianOf([9, 1, 5])).toBe(5);
    expect(medianOf([4, 3, 2, 1])).toBe(2);
    expect(quantileOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.99)).toBe(10);
    expect(quantileOf([7], 0)).toBe(7);
  });

  test('quantiles of an empty sample are zero', () => {
    expect(medianOf([])).toBe(0);
  });
});

describe('growth of the agent', () => {
  test('constant samples are no growth', () => {
    expect(growthProblems(samples(200))).toEqual([]);
  });

  test('growth ignores the effect of the first restart and a single outlier', () => {
    expect(growthProblems(samples(200, (index) => (index === 0 ? { fds: 20, rssBytes: 50 * mib } : {})))).toEqual([]);
    expect(growthProblems(samples(200, (index) => (index === 200 ? { fds: 99 } : {})))).toEqual([]);
  });

  test('one additional file descriptor is growth', () => {
    expect(growthProblems(samples(200, (index) => ({ fds: index > 150 ? 31 : 30 })))).toEqual([
      "the number of the agent's file descriptors grew from 30 to 31",
    ]);
  });

  test('one additional shared memory file per restart is growth', () => {
    expect(growthProblems(samples(10, (index) => ({ sharedMemoryFiles: index })))).toEqual([
      "the number of its Envoys' shared memory files grew from 1 to 10",
    ]);
  });

  test('additional memory is growth only beyond the allowance', () => {
    const growingTo = (lastMib: number): AgentUsage[] =>
      samples(200, (index) => ({ rssBytes: (index > 150 ? lastMib : 100) * mib }));
    expect(growthProblems(growingTo(116))).toEqual([]);
    expect(growthProblems(growingTo(117))).toEqual(["the agent's resident memory grew from 100.0 MiB to 117.0 MiB"]);
  });
});

describe('a run of restarts', () => {
  test('a run without failures, cold starts or growth has no problems', () => {
    expect(problemsOf(goodRun)).toEqual([]);
  });

  test.each<[string, Partial<RestartRun>]>([
    ['1 of 5000 requests failed', { failed: 1 }],
    ['no request was made', { requests: 0 }],
    ['only 19 of 20 restarts came to their end', { servedAfterMs: goodRun.servedAfterMs.slice(1) }],
    ['1 restarts were not hot', { coldStarts: 2 }],
    ['2 epochs failed', { failedEpochs: 2 }],
  ])('a run of restarts has the problem: %s', (problem, change) => {
    expect(problemsOf({ ...goodRun, ...change })).toEqual([problem]);
  });

  test('a run is formatted as one line', () => {
    expect(formatRestartRun(goodRun)).toBe(
      '20 restarts, 5000 requests, 0 failed, live in 209/219/219 ms (median/p99/max), ' +
        'served after 509/519/519 ms (median/p99/max), rss 100.0 MiB → 100.0 MiB → 100.0 MiB, ' +
        'fds 30 → 30 → 30, shm files 1 → 1 → 1',
    );
  });

  test('a run that ended before its first restart is also formatted', () => {
    const line = formatRestartRun({ ...goodRun, timesToLiveMs: [], servedAfterMs: [], usage: [] });
    expect(line).toMatch(/^0 restarts, .* rss \? → \? → \?, /);
  });
});
