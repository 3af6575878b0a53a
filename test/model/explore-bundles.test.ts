/**
 * Every state of the trust bundles that the mesh configuration lists by address, within the bounds in bundles-world.ts: a failing endpoint does not
 * invalidate fetched bundles, no bundle is replaced by an older one, no endpoint is queried early, and in the end the publishers' bundles are active
 * and reported. Deliberate errors are detected.
 */
import { describe, expect, test } from 'vitest';
import { assign } from 'xstate';
import { trustBundleMachine } from '../../machines/discovery/bundles/trust-bundle.machine.ts';
import { explore, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { type BundlesBounds, type BundlesParts, BundlesWorld } from '../simulation/bundles-world.ts';
import { expectCaught, ReplayedWorld } from './given-worlds.ts';

const bounds = (endpoints: number, changes: number, faults: number, hintMs?: number): BundlesBounds => ({
  ...{ endpoints, changes, faults },
  ...(hintMs !== undefined && { hintMs }),
});
const worldFactory =
  (worldBounds: BundlesBounds, parts: Partial<BundlesParts> = {}) =>
  () =>
    new BundlesWorld(worldBounds, parts);

describe('the roots of bundle endpoints', () => {
  test.each(
    sized<readonly BundlesBounds[]>({
      quick: [bounds(1, 1, 1)],
      short: [bounds(1, 2, 2), bounds(2, 1, 1)],
      // The last two have a refresh hint that is too short or too long.
      full: [bounds(2, 2, 2), bounds(1, 4, 3), bounds(1, 3, 3, 1_000), bounds(1, 3, 3, 86_400_000)],
    }),
  )(
    'break no invariant and eventually equal the published ones within %o',
    (worldBounds) => {
      const result = explore(worldFactory(worldBounds));
      console.info(`${JSON.stringify(worldBounds)}: ${result.states} states, ${result.edges} edges, ${result.ms} ms`);
      expect(result.found).toBeUndefined();
      expect(result.outcome).toBe('complete');
      expect(result.states).toBeGreaterThan(100);
    },
    3_600_000,
  );
});

describe.skipIf(isQuick)('the exploration of bundles', () => {
  test.each<[string, Partial<BundlesParts>, BundlesBounds, string]>([
    [
      'a failed fetch drops the current roots',
      { handleFailure: (held, endpoint) => held.withEndpoints([]).withEndpoints([endpoint]) },
      bounds(1, 0, 1),
      'the active roots stay until other roots are fetched',
    ],
    [
      'the endpoint is requested again without a delay',
      { bundle: trustBundleMachine.provide({ delays: { retryDelay: 0 } }) },
      bounds(1, 0, 1),
      'no endpoint is requested before its time',
    ],
    [
      'delays do not grow',
      { bundle: trustBundleMachine.provide({ actions: { countFailure: assign({ failures: 1 }) } }) },
      bounds(1, 0, 2),
      'no endpoint is requested before its time',
    ],
    [
      'an endpoint with a bundle is requested as often as one without',
      { bundle: trustBundleMachine.provide({ delays: { retryDelay: 5_000 } }) },
      bounds(1, 0, 1),
      'no endpoint is requested before its time',
    ],
    [
      'the refresh interval of a publisher has no minimum',
      { bundle: trustBundleMachine.provide({ delays: { refreshInterval: 1_000 } }) },
      bounds(1, 0, 0, 1_000),
      'no endpoint is requested before its time',
    ],
    [
      'an older bundle is accepted',
      { bundle: trustBundleMachine.provide({ guards: { isOlder: () => false } }) },
      bounds(1, 1, 1),
      'no older version replaces a newer one',
    ],
    [
      'the stored bundle is not read after a restart',
      {
        bundle: trustBundleMachine.provide({
          guards: { isFetched: ({ event }) => !event.type.endsWith('.recalling') },
        }),
      },
      bounds(1, 0, 1),
      'a restart keeps stored roots',
    ],
    [
      'agents are not notified',
      { bundle: trustBundleMachine.provide({ actions: { reportFetched: () => {} } }) },
      bounds(1, 0, 0),
      goalIsReached,
    ],
    [
      'changed roots are treated as unchanged',
      { bundle: trustBundleMachine.provide({ guards: { isChanged: ({ context }) => context.version === '' } }) },
      bounds(1, 1, 0),
      goalIsReached,
    ],
  ])('detects that %s', (_, parts, worldBounds, invariant) => {
    expectCaught(worldFactory(worldBounds, parts), invariant);
  });

  test('restores a simulation in place to the same states as a replay', () => {
    const createWorld = worldFactory(bounds(1, 1, 1));
    const [directResult, replayedResult] = [explore(createWorld), explore(() => new ReplayedWorld(createWorld))];
    expect([replayedResult.states, replayedResult.edges]).toEqual([directResult.states, directResult.edges]);
  });
});
