/**
 * Every state of a watched kind on an API server, within the bounds in cluster-exploration.ts: no incomplete set is published, nothing is emptied or
 * replaced by an older version, no request loops, and in the end the objects are those of the server. Deliberate errors are detected.
 */
import { describe, expect, test } from 'vitest';
import { apiServerMachine } from '../../machines/discovery/kubernetes/api-server.machine.ts';
import { informerMachine } from '../../machines/discovery/kubernetes/informer.machine.ts';
import { explore, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { type ClusterBounds, type ClusterCharts, ClusterExploration } from '../simulation/cluster-exploration.ts';
import { expectCaught, ReplayedWorld } from './given-worlds.ts';

const bounds = (changes: number, faults: number, overrides: Partial<ClusterBounds> = {}): ClusterBounds => ({
  ...{ changes, faults, streams: 'known' },
  ...overrides,
});
const worldFactory =
  (worldBounds: ClusterBounds, charts: Partial<ClusterCharts> = {}) =>
  () =>
    new ClusterExploration(worldBounds, charts);

describe('a kind on an API server', () => {
  test.each(
    sized<readonly ClusterBounds[]>({
      quick: [bounds(0, 0)],
      short: [bounds(0, 1), bounds(0, 0, { streams: 'endless' }), bounds(0, 0, { endsWatchesEarly: true })],
      full: [
        ...[bounds(1, 1), bounds(1, 1, { streams: 'endless' }), bounds(0, 1, { streams: 'unknown' })],
        bounds(0, 0, { endsWatchesEarly: true }),
      ],
    }),
  )(
    'is watched without an internal error within %o',
    (worldBounds) => {
      const result = explore(worldFactory(worldBounds));
      console.info(`${JSON.stringify(worldBounds)}: ${result.states} states, ${result.edges} edges, ${result.ms} ms`);
      expect(result.found).toBeUndefined();
      expect(result.outcome).toBe('complete');
      expect(result.states).toBeGreaterThan(100);
      // Distinguishing states with and without an earlier failure would add a third.
      if (worldBounds.changes === 0) expect(result.states).toBeLessThan(11_000);
    },
    3_600_000,
  );
});

type BrokenChart = readonly [string, Partial<ClusterCharts>, ClusterBounds, string];

const fromTheFuture: BrokenChart = [
  'a watch continues from a version that a restored server has not reached',
  { informer: informerMachine.provide({ guards: { isEarlier: () => false } }) },
  bounds(1, 2),
  goalIsReached,
];

describe.skipIf(isQuick)('the exploration of API servers', () => {
  test.each<BrokenChart>([
    [
      'the wait for the end of a streaming list has no limit',
      { informer: informerMachine.provide({ delays: { initialListLimit: 1e12 } }) },
      bounds(0, 0, { streams: 'endless' }),
      goalIsReached,
    ],
    [
      'an expired version is treated as a removed kind',
      {
        informer: informerMachine.provide({
          guards: { isVersionExpired: () => false, isKindAbsent: (_, { failure }) => failure.code === 410 },
        }),
      },
      bounds(0, 1),
      'the published list is not emptied',
    ],
    [
      'one response that the kind does not exist removes its objects',
      { informer: informerMachine.provide({ guards: { isKindAbsent: (_, { failure }) => failure.code === 404 } }) },
      bounds(0, 1),
      'the published list is not emptied',
    ],
    [
      'a kind whose request got no response is never resumed',
      { server: apiServerMachine.provide({ guards: { hasWaiting: () => false } }) },
      bounds(0, 1),
      goalIsReached,
    ],
    ...sized<readonly BrokenChart[]>({ short: [], full: [fromTheFuture] }),
  ])(
    'detects that %s',
    (_, charts, worldBounds, invariant) => {
      expectCaught(worldFactory(worldBounds, charts), invariant);
    },
    300_000,
  );

  test('restores a simulation in place to the same states as a replay', () => {
    const createWorld = worldFactory(bounds(0, 0));
    const [directResult, replayedResult] = [explore(createWorld), explore(() => new ReplayedWorld(createWorld))];
    expect([replayedResult.states, replayedResult.edges]).toEqual([directResult.states, directResult.edges]);
  });
});
