/**
 * Every state of a source of configuration over xDS within bounds (test/simulation/xds-source-exploration.ts): server and control plane are killed
 * and started, streams end, the owner changes, spoils and deletes objects. Nothing is deleted that its owner did not delete, and every run can end in
 * the newest valid state. Deliberately broken rules are detected.
 */
import { describe, expect, test } from 'vitest';
import { assign } from 'xstate';
import { xdsSourceMachine } from '../../machines/discovery/config/xds-source.machine.ts';
import { explore, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { type SourceBounds, type SourceParts, XdsSourceExploration } from '../simulation/xds-source-exploration.ts';
import { expectCaught, ReplayedWorld } from './given-worlds.ts';

const worldFactory =
  (bounds: SourceBounds, parts: Partial<SourceParts> = {}) =>
  () =>
    new XdsSourceExploration(bounds, parts);

test.each(
  sized<readonly SourceBounds[]>({
    quick: [{ changes: 1, faults: 1 }],
    short: [{ changes: 1, faults: 1 }],
    full: [
      { changes: 2, faults: 2 },
      { changes: 1, faults: 3 },
      { changes: 3, faults: 1 },
    ],
  }),
)(
  'an xDS source breaks no invariant and can always reach the newest valid state, within %o',
  (bounds) => {
    const result = explore(worldFactory(bounds));
    console.info(`${JSON.stringify(bounds)}: ${result.states} states, ${result.edges} edges, ${result.ms} ms`);
    expect(result.found).toBeUndefined();
    expect(result.outcome).toBe('complete');
    expect(result.states).toBeGreaterThan(50);
  },
  3_600_000,
);

describe.skipIf(isQuick)('the exploration of an xDS source', () => {
  test.each<[string, Partial<SourceParts>, SourceBounds, string]>([
    [
      'an empty state of a server that has just started applies',
      {
        chart: xdsSourceMachine.provide({
          actions: { startYoung: assign({ isYoung: false, receivedOnStream: ['ServiceEntry'] }) },
        }),
      },
      { changes: 0, faults: 1 },
      'nothing is deleted that its owner did not delete',
    ],
    [
      'paused deletions apply before caches are filled',
      { chart: xdsSourceMachine.provide({ delays: { pauseLimit: 1_000 } }) },
      { changes: 0, faults: 1 },
      'nothing is deleted that its owner did not delete',
    ],
    [
      'an invalid version applies',
      { appliesInvalid: true },
      { changes: 1, faults: 0 },
      'an invalid version never applies',
    ],
    [
      'paused deletions never apply',
      { chart: xdsSourceMachine.provide({ actions: { applyPaused: () => {} } }) },
      { changes: 1, faults: 1 },
      goalIsReached,
    ],
    [
      'the source can be read before the server has sent anything',
      { chart: xdsSourceMachine.provide({ guards: { isComplete: () => true } }) },
      { changes: 0, faults: 1 },
      'nothing is deleted that its owner did not delete',
    ],
  ])('detects that %s', (_, parts, bounds, invariant) => {
    expectCaught(worldFactory(bounds, parts), invariant);
  });

  test('restores a simulation in place to the same states as a replay', () => {
    const createWorld = worldFactory({ changes: 0, faults: 1 });
    const [directResult, replayedResult] = [explore(createWorld), explore(() => new ReplayedWorld(createWorld))];
    expect([replayedResult.states, replayedResult.edges]).toEqual([directResult.states, directResult.edges]);
  });
});
