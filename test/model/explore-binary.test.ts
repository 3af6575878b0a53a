/** Every state of the agent within bounds while other Envoys replace the binary at its path (docs/exploring-reference.md). */
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { binaryWatcherMachine } from '../../machines/agent/files/binary-watcher.machine.ts';
import { explore, findShortest } from '../../src/debugger/explore/explorer.ts';
import type { Bounds } from '../../src/simulation/agent/exploration-bounds.ts';
import { exploreAgent } from '../../src/simulation/agent/explore-agent.ts';
import type { Invariant } from '../../src/simulation/agent/invariants/invariant.ts';
import {
  failedIsNotRepeated,
  newestBinaryServes,
  onlyCheckedBinaries,
} from '../../src/simulation/agent/invariants/replacing.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';

/** XState's development build warns about every event for a stopped actor, here thousands. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const bounds = (triggers: number, faults: number, stops: Bounds['stops']): Bounds => ({ triggers, faults, stops });
const binaryReplaced = { binaryReplaced: true } as const;
const binaryOnly = { ...binaryReplaced, orders: ['binary'] } as const;

describe('a changed Envoy binary', () => {
  test('is started or withdrawn, whatever other faults occur', () => {
    const faultyOptions = { ...binaryReplaced, faults: ['crash', 'misfit', 'refuse'] };
    const runs = sized<(readonly [Bounds, object])[]>({
      quick: [[bounds(1, 0, 0), binaryOnly]],
      // Other orders triple the states, so a fault with a new configuration or certificate is explored without another Envoy.
      short: [[bounds(1, 1, 0), { ...binaryOnly, faults: ['crash', 'misfit'] }]],
      full: [
        [bounds(1, 1, 0), faultyOptions],
        [bounds(1, 1, 1), binaryReplaced],
        [bounds(2, 1, 0), faultyOptions],
        [bounds(1, 2, 0), faultyOptions],
      ],
    });
    for (const [worldBounds, options] of runs) {
      const result = explore(() => exploreAgent(worldBounds, options).beginChecked());
      expect(result.found).toBeUndefined();
      expect(result.outcome).toBe('complete');
      expect(result.states).toBeGreaterThan(200);
    }
  });

  test.skipIf(isQuick).each<[string, Invariant, object, Bounds, string[]]>([
    [
      'a supervisor that starts a failed binary again',
      failedIsNotRepeated,
      { supervisor: supervisorMachine.provide({ actions: { withdrawBinary: () => {} } }) },
      bounds(1, 1, 0),
      ['binary', 'crash'],
    ],
    [
      'a supervisor that ignores changes of the desired state',
      newestBinaryServes,
      {
        supervisor: supervisorMachine.provide({
          guards: { changesDesired: ({ event }) => event.type === 'config.changed' },
        }),
      },
      bounds(1, 0, 0),
      ['binary'],
    ],
    [
      'a watcher that offers an incompatible binary',
      onlyCheckedBinaries,
      { binaryWatcher: binaryWatcherMachine.provide({ guards: { isRejected: () => false } }) },
      bounds(0, 1, 0),
      ['misfit'],
    ],
  ])('the exploration detects %s', (_, invariant, machines, worldBounds, path) => {
    const faults = ['crash', 'misfit'];
    const agent = exploreAgent(worldBounds, { ...binaryOnly, machines, faults, invariants: [invariant] });
    const { found } = findShortest(() => agent.beginWorld());
    expect(found?.violations).toMatchObject([{ invariant: invariant.name }]);
    for (const choice of path) expect(found?.path.join(' ')).toContain(choice);
  });
});
