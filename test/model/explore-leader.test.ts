/**
 * Every state of two replicas that stand for one duty while nothing fails, whatever the timing (leader-exploration.ts): never do two lead.
 * At length only: it takes a minute. What faults lead to is drawn at random (leader-random.test.ts). And what is broken on purpose is caught.
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
  'two replicas never lead at once',
  () => {
    const { found, outcome, states, edges, ms } = findShortest(beginning(), { states: 200_000 });
    console.info(`two replicas: ${states} states, ${edges} edges, ${ms} ms`);
    expect(found).toBeUndefined();
    expect(outcome).toBe('complete');
    expect(states).toBeGreaterThan(1_000);
  },
  3_600_000,
);

describe.skipIf(isQuick)('it is caught that', () => {
  test('a claim is taken over any version', () => {
    expectCaught(beginning({ takesAll: true }), 'never two lead');
  });
});
