/**
 * Every state of two candidates for one duty without faults, in any timing (leader-exploration.ts): two never lead at a time.
 * In the full run only: it takes a minute. Faults are drawn at random (leader-random.test.ts). Errors that are built in on purpose are found.
 */
import { describe, expect, test } from 'vitest';
import { findShortest } from '../../src/debugger/explore/explorer.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { type LeaderCharts, LeaderExploration } from '../simulation/leader-exploration.ts';
import { expectCaught } from './given-worlds.ts';

const beginning =
  (charts: Partial<LeaderCharts> = {}) =>
  () =>
    new LeaderExploration(0, charts);

test.skipIf(sized({ short: true, full: false }))(
  'two replicas never lead at the same time',
  () => {
    const { found, outcome, states, edges, ms } = findShortest(beginning(), { states: 200_000 });
    console.info(`two replicas: ${states} states, ${edges} edges, ${ms} ms`);
    expect(found).toBeUndefined();
    expect(outcome).toBe('complete');
    expect(states).toBeGreaterThan(1_000);
  },
  3_600_000,
);

describe.skipIf(isQuick)('the exploration of leader election', () => {
  test('detects that the API server accepts a claim for an outdated version', () => {
    expectCaught(beginning({ takesAll: true }), 'never two leaders');
  });
});
