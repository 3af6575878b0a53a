import { expect, it } from 'vitest';
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import { rolloutRules } from '../../../../machines/discovery/xds/rollout-rules.ts';
import type { EncodedResource } from '../resource-source.ts';
import { SentResources } from '../responses/ads-sent.ts';
import { encodeValue } from '../responses/encoding.ts';
import { RolloutGate } from './rollout-gate.ts';

const clusters = 1_000;
/** Reading a cluster takes about ten microseconds. */
const maxReadInOneStep = 64;

it('RolloutGate reads the new clusters of a response in small steps, once for all clients', () => {
  const resources = new Map<string, EncodedResource>();
  for (let index = 0; index < clusters; index++) {
    const name = `outbound|80||s${index}.test`;
    resources.set(name, encodeValue(clusterType, Buffer.from(name), name));
  }
  let read = 0;
  const sent = new SentResources(true);
  const newGate = (): RolloutGate =>
    new RolloutGate({
      takesUnrequested: true,
      isCongested: false,
      isHalfClosed: false,
      isDelta: true,
      limitMs: 5_000,
      references: {
        names: () => false,
        referencedNamesAmong: () => [],
        fetchesEndpoints: () => true,
        isEmptyAssignment: () => false,
        secretsOf: () => new Set(),
        routeConfigurationsOf: () => new Set(),
        hasHosts: () => true,
        withFetchLimit: (cluster) => cluster,
        usabilityOf: ({ name }) => {
          read++;
          return { usableAfter: 'assignment', assignment: name, secrets: new Set() };
        },
      },
      removal: { delayMs: 1_000, drainMs: 1_000 },
      rules: rolloutRules,
      sentResourcesOf: () => sent,
      watchOf: () => undefined,
      departedResources: () => undefined,
      now: () => 0,
      generatedSet: () => undefined,
      *generateInSteps() {},
      onReport: () => {},
      observer: {},
      sharedNames: (names: readonly string[]) => names,
      onRolloutEvent: () => {},
    });
  const order: ResponseOrder = {
    typeUrl: clusterType,
    names: '*',
    requested: [],
    all: true,
    changed: false,
    has: { names: [], versions: [] },
  };
  const steps: number[] = [];
  for (const _ of newGate().precomputeInSteps(order, { version: '1', resources }))
    steps.push(read - steps.reduce((a, b) => a + b, 0));
  expect(read).toBe(clusters);
  expect(Math.max(...steps)).toBeLessThanOrEqual(maxReadInOneStep);
  // In steps, the response would wait for other work, and the stream would be congested until then.
  expect([...newGate().precomputeInSteps(order, { version: '1', resources })]).toEqual([]);
  expect(read).toBe(clusters);
});
