/**
 * Every state of two candidates for one duty without faults, in any timing (leader-exploration.ts): two never lead at the same time. Only in the full
 * run, because it takes a minute. leader-random.test.ts has random faults. Deliberate errors are detected.
 */
import { describe, expect, test } from 'vitest';
import { findShortest } from '../../src/debugger/explore/explorer.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { type LeaderCharts, LeaderExploration } from '../simulation/leader-exploration.ts';
import { expectCaught } from './given-worlds.ts';

const worldFactory =
  (charts: Partial<LeaderCharts> = {}) =>
  () =>
    new LeaderExploration(0, charts);

test.skipIf(sized({ short: true, full: false }))(
  'two replicas never lead at the same time',
  () => {
    const { found, outcome, states, edges, ms } = findShortest(worldFactory(), { states: 200_000 });
    console.info(`two replicas: ${states} states, ${edges} edges, ${ms} ms`);
    expect(found).toBeUndefined();
    expect(outcome).toBe('complete');
    expect(states).toBeGreaterThan(1_000);
  },
  3_600_000,
);

describe.skipIf(isQuick)('the exploration of leader election', () => {
  test('detects that the API server accepts a claim for an outdated version', () => {
    expectCaught(worldFactory({ takesAll: true }), 'never two leaders');
  });
});
