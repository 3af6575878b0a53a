/** Make before break, with several changes and any faults: random runs of what `explore-rollout` explores within smaller bounds. */
import { describe, expect, test } from 'vitest';
import { sized } from '../harness/size-of-run.ts';
import { walkAtRandom } from '../simulation/random-walk.ts';
import { RolloutWorld, type RolloutWorldOptions } from '../simulation/rollout-world.ts';

const kinds = ['replace', 'dns', 'secret', 'update', 'endpoints', 'flap'] as const;
const faultKinds = ['reject', 'reset', 'stuck'] as const;

const bounds: readonly Pick<RolloutWorldOptions, 'changes' | 'faults'>[] = [
  { changes: 2, faults: 1 },
  { changes: 2, faults: 2 },
  ...sized({ short: [], full: [{ changes: 4, faults: 3 }] }),
];

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  test.each(bounds)(
    'random runs of $changes changes with $faults faults lose no request, and end with the newest state',
    ({ changes, faults }) => {
      const options = { seed: 7, walks: sized({ short: 60, full: 20_000 }) };
      const { failingWalk, states } = walkAtRandom(
        () => new RolloutWorld({ isDelta: delta, changes, faults, kinds, faultKinds }),
        options,
      );
      expect(failingWalk).toBeUndefined();
      expect(states).toBeGreaterThan(100);
    },
    sized({ short: 60_000, full: 3_600_000 }),
  );
});

/** Runs that ended with a request to an unusable or removed cluster, or with clusters that were never acknowledged or removed. */
const knownRuns: readonly (readonly [name: string, isDelta: boolean, path: string])[] = [
  [
    'a new cluster that fetches a secret before its first form is usable',
    true,
    'change:replace reject deliver change:secret read deliver read read',
  ],
  [
    'routes that wait for all clusters, and name one that the next response adds',
    true,
    'change:replace read change:replace deliver reset deliver read deliver deliver read read',
  ],
  [
    'a cluster that is removed before a client that reconnected requests its endpoints',
    true,
    'reset change:flap deliver read change:replace deliver read deliver deliver deliver',
  ],
  [
    'a cluster that was sent on the last stream and not received',
    false,
    'change:replace reset change:replace deliver read deliver read deliver deliver read deliver deliver',
  ],
  [
    'a rejection by a client that reconnected',
    false,
    'change:endpoints read deliver change:replace reset deliver reject deliver read deliver deliver read',
  ],
  [
    'a client that reconnects twice while a cluster warms',
    false,
    'change:replace read change:secret reset deliver reset deliver read deliver deliver read',
  ],
  [
    'a route that waits for a cluster which is removed before it is sent',
    false,
    'reset deliver change:flap read deliver deliver change:replace read deliver read read',
  ],
  [
    'a cluster that was given up on the last stream, and whose endpoints are sent on this one alone,',
    false,
    'change:replace read tick tick read reset deliver change:flap read deliver deliver read',
  ],
  [
    'a client that acknowledges routes before it requests clusters',
    true,
    'change:replace read deliver read read deliver change:secret read reset deliver read deliver read deliver deliver resolve:c1 deliver read deliver',
  ],
  [
    'a route that waits for all clusters, and names one that is removed before a client that reconnected requests its endpoints,',
    false,
    'change:replace reset deliver deliver deliver change:replace read read deliver read deliver deliver read',
  ],
  [
    'a cluster that is sent without a request and removed before the client requests its endpoints',
    true,
    'change:replace read reset deliver change:replace tick tick tick change:flap read read read read deliver read deliver read deliver deliver deliver read deliver deliver',
  ],
];

test.each(knownRuns)('%s loses no request', (_, delta, path) => {
  const world = new RolloutWorld({ isDelta: delta, changes: 4, faults: 3, kinds, faultKinds });
  for (const name of path.split(' ')) if (world.choices().some((choice) => choice.name === name)) world.apply(name);
  for (let next = freeChoice(world); next !== undefined; next = freeChoice(world)) world.apply(next);
  expect(world.violations).toEqual([]);
});

test.each([
  ['state of the world', false],
  ['delta', true],
] as const)('a reconnecting client receives a cluster that was given up at most twice again (%s)', (_, delta) => {
  const world = new RolloutWorld({ isDelta: delta, changes: 1, faults: 3, kinds, faultKinds });
  const settleWorld = (): number => {
    for (let next = freeChoice(world); next !== undefined; next = freeChoice(world)) world.apply(next);
    expect(world.violations).toEqual([]);
    return world.sentTimes('c0');
  };
  // The secret of c0 never arrives.
  for (const name of ['change:secret', 'read', 'stuck:c0']) world.apply(name);
  const lossesBefore = settleWorld();
  world.apply('reset');
  const first = settleWorld();
  world.apply('reset');
  const second = settleWorld();
  expect(first - lossesBefore).toBeLessThanOrEqual(2);
  expect(second - first).toBeLessThanOrEqual(2);
});

const freeChoice = (world: RolloutWorld): string | undefined => world.choices().find(({ free }) => free)?.name;

test('random runs detect a rule with a deliberate fault', () => {
  const createWorld = (): RolloutWorld =>
    new RolloutWorld({
      ...{ isDelta: true, changes: 2, faults: 1, kinds, faultKinds },
      rules: { withClustersRemoved: (rollout) => rollout },
    });
  const { failingWalk } = walkAtRandom(createWorld, { seed: 7, walks: 20_000 });
  expect(failingWalk?.violations[0]?.invariant).toBe('no active route leads to a cluster without endpoints');
});
