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

/** `only` restricts the exploration to one protocol. */
type Bounds = Omit<RolloutWorldOptions, 'delta' | 'rules'> & { readonly only?: 'delta' };

/** An update of a cluster in use fetches a secret that never arrives. */
const stuckUpdate = ['change:secret', 'read', 'stuck:c0'];

/** Bounds that take minutes are only in the full run. */
const bounds = sized<Bounds[]>({
  short: [
    { changes: 1, faults: 0, kinds: ['replace'] },
    { changes: 1, faults: 0, kinds: ['dns'] },
    { changes: 2, faults: 0, kinds: ['update'] },
    { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['stuck'] },
    { changes: 1, faults: 1, kinds: ['secret'], faultKinds: ['stuck'] },
    { changes: 0, faults: 0, kinds: ['add'], start: [...stuckUpdate, 'restart'] },
  ],
  full: [
    { changes: 1, faults: 1, kinds: ['replace'], faultKinds: ['reject'] },
    { changes: 1, faults: 1, kinds: ['replace'], faultKinds: ['reset'] },
    { changes: 1, faults: 1, kinds: ['dns'] },
    { changes: 1, faults: 1, kinds: ['secret'] },
    { changes: 1, faults: 1, kinds: ['replace'], faultKinds: ['restart'], only: 'delta' },
    { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['restart'] },
    { changes: 1, faults: 1, kinds: ['update'], faultKinds: ['restart'] },
    { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['restart'], start: stuckUpdate },
    { changes: 0, faults: 1, kinds: ['add'], faultKinds: ['restart'], start: stuckUpdate },
    { changes: 0, faults: 2, kinds: ['add'], faultKinds: ['restart', 'reset'], start: stuckUpdate },
    { changes: 2, faults: 1, kinds: ['secret', 'update'], faultKinds: ['stuck'] },
    { changes: 2, faults: 0, kinds: ['flap'] },
    { changes: 2, faults: 0, kinds: ['replace', 'dns'] },
    { changes: 2, faults: 0, kinds: ['replace', 'update'] },
    { changes: 3, faults: 0, kinds: ['update', 'endpoints'] },
  ],
});

const textOf = ({ changes, faults, kinds, faultKinds = [], start = [] }: Bounds): string =>
  [`${changes} of the changes ${kinds.join(', ')} and ${faults} faults`, ...faultKinds, ...start].join(' ');

describe.each(protocols)('%s', (_, delta) => {
  const explored = bounds.filter(({ only }) => only === undefined || delta);
  test.each(explored.map((one) => [textOf(one), one] as const))(
    'rollouts with %s lose no request, wait no longer than the limit, and end with the newest state',
    async (_name, one) => {
      const { outcome, states, found } = await exploreInTurns(createWorld({ delta, ...one }));
      expect(found).toBeUndefined();
      expect(outcome).toBe('complete');
      expect(states).toBeGreaterThan(10);
    },
    sized({ short: 600_000, full: 3_600_000 }),
  );
});

test('a state-of-the-world client that reconnects to a restarted control plane loses clusters that were removed during the restart', () => {
  const worldOptions: RolloutWorldOptions = {
    delta: false,
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

interface Broken {
  readonly rules: Partial<RolloutRules>;
  readonly finds: string;
  readonly within: Bounds;
}

const replace: Bounds = { changes: 1, faults: 0, kinds: ['replace'] };
const dns: Bounds = { changes: 1, faults: 0, kinds: ['dns'] };
const { withClustersSent, withClustersAcknowledged, withRetained, withHeld, afterLimitStep, withSuspects } =
  rolloutRules;

const brokenMachines: Record<string, Broken> = {
  'routes that wait for no cluster': {
    rules: {
      withHeld: (rollout, isGenerated) => withHeld(rollout, isGenerated, [], []),
      withClustersSent: (rollout) => rollout,
    },
    finds: 'no active route leads to an unusable cluster',
    within: replace,
  },
  'a cluster that counts as usable when it was sent': {
    rules: {
      withClustersSent: (rollout, sentClusters) =>
        withClustersSent(rollout, {
          ...sentClusters,
          added: sentClusters.added.map((one) => ({ ...one, needs: 'nothing' })),
        }),
    },
    finds: 'no active route leads to an unusable cluster',
    within: replace,
  },
  'an acknowledgement that ends no wait': {
    rules: { withClustersAcknowledged: (rollout) => rollout },
    finds: 'no resource waits for a usable cluster',
    within: dns,
  },
  'a rejection that counts as an acknowledgement': {
    rules: {
      withClustersAcknowledged: (rollout, request, watch) =>
        withClustersAcknowledged(rollout, { ...request, rejection: null }, watch),
    },
    finds: 'no active route leads to an unusable cluster',
    within: { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['reject'] },
  },
  'a wait without a limit': {
    rules: { afterLimitStep: (rollout) => rollout },
    finds: 'no client waits beyond the limit',
    within: { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['stuck'] },
  },
  'a cluster that is never given up': {
    rules: { afterLimitStep: (rollout, sentClusters) => ({ ...afterLimitStep(rollout, sentClusters), givenUp: [] }) },
    finds: 'clusters are acknowledged in the end',
    within: { changes: 1, faults: 1, kinds: ['secret'], faultKinds: ['stuck'] },
  },
  'a new cluster that is never given up': {
    rules: { afterLimitStep: (rollout, sentClusters) => ({ ...afterLimitStep(rollout, sentClusters), givenUp: [] }) },
    finds: 'clusters are acknowledged in the end',
    within: { changes: 1, faults: 1, kinds: ['dns'], faultKinds: ['stuck'] },
  },
  'a client that requests no clusters and is sent none': {
    rules: {
      afterLimitStep: (rollout, versionOf) => withSuspects(afterLimitStep(rollout, versionOf), [], versionOf),
    },
    finds: 'clusters are acknowledged in the end',
    within: { changes: 0, faults: 1, kinds: ['add'], faultKinds: ['restart'], start: stuckUpdate },
  },
  'suspects that are never given up': {
    rules: { withSuspects: (rollout, _suspects, versionOf) => withSuspects(rollout, [], versionOf) },
    finds: 'clusters are acknowledged in the end',
    within: { changes: 0, faults: 1, kinds: ['add'], faultKinds: ['restart'], start: stuckUpdate },
  },
  'a cluster that is removed with the change': {
    rules: { withRetained: (rollout) => rollout },
    finds: 'nothing in use is removed',
    within: replace,
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
    finds: 'nothing in use is removed',
    within: replace,
  },
  'a cluster that is never removed': {
    rules: { afterRemovalStep: (rollout) => ({ ...rollout, retained: [] }) },
    finds: 'the end state is the newest',
    within: replace,
  },
};

describe('the exploration of rollouts', () => {
  test.each(Object.entries(brokenMachines))('detects, by a shortest run, %s', (_, { rules, finds, within }) => {
    for (const delta of [false, true]) {
      const { found } = findShortest(createWorld({ delta, ...within, rules }), { ms: 60_000 });
      expect(found?.violations[0]?.invariant).toBe(finds);
    }
  });
});
