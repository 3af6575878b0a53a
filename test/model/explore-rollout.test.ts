/** Explores make before break with one stream and a model of Envoy that warms clusters, in every possible order of events. */
import { describe, expect, test } from 'vitest';
import { type RolloutRules, rolloutRules } from '../../machines/discovery/xds/rollout-rules.ts';
import { exploreInTurns, findShortest } from '../../src/debugger/explore/explorer.ts';
import { sized } from '../harness/size-of-run.ts';
import { RolloutWorld, type RolloutWorldOptions } from '../simulation/rollout-world.ts';
import { ReplayedWorld } from './given-worlds.ts';

const createWorld = (options: RolloutWorldOptions) => () => new ReplayedWorld(() => new RolloutWorld(options));

const protocols = [
  ['state of the world', false],
  ['delta', true],
] as const;

/** `onlyProtocol` restricts the exploration to one protocol. */
type Bounds = Omit<RolloutWorldOptions, 'isDelta' | 'rules'> & { readonly onlyProtocol?: 'delta' };

/** An update of a cluster in use fetches a secret that never arrives. */
const stuckUpdate = ['change:secret', 'read', 'stuck:c0'];
const restartWhileStuck: Bounds = {
  changes: 0,
  faults: 0,
  kinds: ['add'],
  initialClusters: [...stuckUpdate, 'restart'],
};

/** Bounds that take minutes are only in the full run. */
const bounds = sized<Bounds[]>({
  short: [
    { changes: 1, faults: 0, kinds: ['replace'] },
    { changes: 1, faults: 0, kinds: ['dns'] },
    { changes: 2, faults: 0, kinds: ['update'] },
    { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['stuck'] },
    { changes: 1, faults: 1, kinds: ['secret'], faultKinds: ['stuck'] },
    restartWhileStuck,
  ],
  full: [
    { changes: 1, faults: 1, kinds: ['replace'], faultKinds: ['reject'] },
    { changes: 1, faults: 1, kinds: ['replace'], faultKinds: ['reset'] },
    { changes: 1, faults: 1, kinds: ['dns'] },
    { changes: 1, faults: 1, kinds: ['secret'] },
    { changes: 1, faults: 1, kinds: ['replace'], faultKinds: ['restart'], onlyProtocol: 'delta' },
    { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['restart'] },
    { changes: 1, faults: 1, kinds: ['update'], faultKinds: ['restart'] },
    { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['restart'], initialClusters: stuckUpdate },
    { changes: 0, faults: 1, kinds: ['add'], faultKinds: ['restart'], initialClusters: stuckUpdate },
    { changes: 0, faults: 2, kinds: ['add'], faultKinds: ['restart', 'reset'], initialClusters: stuckUpdate },
    { changes: 2, faults: 1, kinds: ['secret', 'update'], faultKinds: ['stuck'] },
    { changes: 2, faults: 0, kinds: ['flap'] },
    { changes: 2, faults: 0, kinds: ['replace', 'dns'] },
    { changes: 2, faults: 0, kinds: ['replace', 'update'] },
    { changes: 3, faults: 0, kinds: ['update', 'endpoints'] },
  ],
});

const textOf = ({ changes, faults, kinds, faultKinds = [], initialClusters = [] }: Bounds): string =>
  [`${changes} of the changes ${kinds.join(', ')} and ${faults} faults`, ...faultKinds, ...initialClusters].join(' ');

describe.each(protocols)('%s', (_, delta) => {
  const explored = bounds.filter(({ onlyProtocol }) => onlyProtocol === undefined || delta);
  test.each(explored.map((one) => [textOf(one), one] as const))(
    'rollouts with %s lose no request, wait no longer than the limit, and end with the newest state',
    async (_name, one) => {
      const { outcome, states, found } = await exploreInTurns(createWorld({ isDelta: delta, ...one }));
      expect(found).toBeUndefined();
      expect(outcome).toBe('complete');
      expect(states).toBeGreaterThan(10);
    },
    sized({ short: 600_000, full: 3_600_000 }),
  );
});

test('a state-of-the-world client that reconnects to a restarted control plane loses clusters that were removed during the restart', () => {
  const worldOptions: RolloutWorldOptions = {
    isDelta: false,
    changes: 1,
    faults: 1,
    kinds: ['replace'],
    faultKinds: ['restart'],
  };
  const { found } = findShortest(createWorld(worldOptions));
  // The client reports versions, not names: docs/changes-without-loss.md, "Not guaranteed".
  expect(found?.path).toEqual(['change:replace', 'restart', 'deliver', 'read']);
  expect(found?.violations[0]?.invariant).toBe('nothing in use is removed');
});

interface BrokenRules {
  readonly rules: Partial<RolloutRules>;
  readonly violatedInvariant: string;
  readonly bounds: Bounds;
}

const replaceBounds: Bounds = { changes: 1, faults: 0, kinds: ['replace'] };
const dns: Bounds = { changes: 1, faults: 0, kinds: ['dns'] };
const { withClustersSent, withClustersAcknowledged, withRetained, withHeld, afterLimitStep, withSuspects } =
  rolloutRules;

const brokenMachines: Record<string, BrokenRules> = {
  'routes that wait for no cluster': {
    rules: {
      withHeld: (rollout, isGenerated) => withHeld(rollout, isGenerated, [], []),
      withClustersSent: (rollout) => rollout,
    },
    violatedInvariant: 'no active route leads to an unusable cluster',
    bounds: replaceBounds,
  },
  'a cluster that counts as usable when it was sent': {
    rules: {
      withClustersSent: (rollout, sentClusters) =>
        withClustersSent(rollout, {
          ...sentClusters,
          added: sentClusters.added.map((one) => ({ ...one, needs: 'nothing' })),
        }),
    },
    violatedInvariant: 'no active route leads to an unusable cluster',
    bounds: replaceBounds,
  },
  'an acknowledgement that ends no wait': {
    rules: { withClustersAcknowledged: (rollout) => rollout },
    violatedInvariant: 'no resource waits for a usable cluster',
    bounds: dns,
  },
  'a rejection that counts as an acknowledgement': {
    rules: {
      withClustersAcknowledged: (rollout, request, watch) =>
        withClustersAcknowledged(rollout, { ...request, rejection: null }, watch),
    },
    violatedInvariant: 'no active route leads to an unusable cluster',
    bounds: { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['reject'] },
  },
  'a wait without a limit': {
    rules: { afterLimitStep: (rollout) => rollout },
    violatedInvariant: 'no client waits beyond the limit',
    bounds: { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['stuck'] },
  },
  'a cluster that is never given up': {
    rules: { afterLimitStep: (rollout, sentClusters) => ({ ...afterLimitStep(rollout, sentClusters), givenUp: [] }) },
    violatedInvariant: 'clusters are acknowledged in the end',
    bounds: { changes: 1, faults: 1, kinds: ['secret'], faultKinds: ['stuck'] },
  },
  'a new cluster that is never given up': {
    rules: { afterLimitStep: (rollout, sentClusters) => ({ ...afterLimitStep(rollout, sentClusters), givenUp: [] }) },
    violatedInvariant: 'clusters are acknowledged in the end',
    bounds: { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['stuck'] },
  },
  'a client that requests no clusters and is sent none': {
    rules: {
      afterLimitStep: (rollout, versionOf) => withSuspects(afterLimitStep(rollout, versionOf), [], versionOf),
    },
    violatedInvariant: 'clusters are acknowledged in the end',
    bounds: restartWhileStuck,
  },
  'suspects that are never given up': {
    rules: { withSuspects: (rollout, _suspects, versionOf) => withSuspects(rollout, [], versionOf) },
    violatedInvariant: 'clusters are acknowledged in the end',
    bounds: restartWhileStuck,
  },
  'a cluster that is removed with the change': {
    rules: { withRetained: (rollout) => rollout },
    violatedInvariant: 'nothing in use is removed',
    bounds: replaceBounds,
  },
  'a cluster that is removed as soon as no route names it': {
    rules: {
      withRetained: (rollout, removed, isConfigured, use) =>
        withRetained(rollout, removed, isConfigured, () => ({ ...use(), isNamed: () => false, unacknowledged: [] })),
      withUseAcknowledged: (rollout) => ({
        ...rollout,
        retained: rollout.retained.map((one) => ({ ...one, state: 'removable' as const })),
      }),
    },
    violatedInvariant: 'nothing in use is removed',
    bounds: replaceBounds,
  },
  'a cluster that is never removed': {
    rules: { afterRemovalStep: (rollout) => ({ ...rollout, retained: [] }) },
    violatedInvariant: 'the end state is the newest',
    bounds: replaceBounds,
  },
};

describe('the exploration of rollouts', () => {
  test.each(Object.entries(brokenMachines))(
    'detects, by a shortest run, %s',
    (_, { rules, violatedInvariant, bounds }) => {
      for (const delta of [false, true]) {
        const { found } = findShortest(createWorld({ isDelta: delta, ...bounds, rules }));
        expect(found?.violations[0]?.invariant).toBe(violatedInvariant);
      }
    },
  );
});
