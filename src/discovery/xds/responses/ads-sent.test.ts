import { expect, test } from 'vitest';
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType, endpointType } from '../../../../machines/discovery/xds/ads-types.ts';
import { cpuMs } from '../../../../test/harness/cpu-time.ts';
import type { EncodedResource } from '../resource-source.ts';
import { SharedBodies } from './ads-response.ts';
import { SentResources } from './ads-sent.ts';
import { encodeValue } from './encoding.ts';

const names = Array.from({ length: 1_000 }, (_, i) => `service-${i}`);
const resource = (name: string, content = ''): EncodedResource => encodeValue('t', Buffer.from(name + content), name);
const first = new Map(names.map((name) => [name, resource(name)]));
const secondSet = new Map(first).set('service-7', resource('service-7', '!'));
const set = (resources: ReadonlyMap<string, EncodedResource>) => ({ version: 'v', resources });

const order = (fields: Partial<ResponseOrder>): ResponseOrder => ({
  typeUrl: endpointType,
  names,
  all: false,
  requested: [],
  changed: false,
  ...fields,
});

/** Streams to which all resources were sent. */
function servedStreams(count: number, delta: boolean): SentResources[] {
  return Array.from({ length: count }, () => {
    const sentResources = new SentResources(delta);
    sentResources.selectResources(order({ all: true }), set(first));
    return sentResources;
  });
}

test.each([
  ['delta', true],
  ['SotW', false],
] as const)('SentResources compute a selection and a body once for all %s streams in the same state', (_, delta) => {
  const streams = servedStreams(500, delta);
  const selections = new Set<ReturnType<SentResources['selectResources']>>();
  const tookMs = cpuMs(() => {
    for (const sentResources of streams)
      selections.add(sentResources.selectResources(order({ changed: true }), set(secondSet)));
  });
  expect(selections.size).toBe(1);
  const [selection] = selections;
  expect([...selection!.resources.values()].map(({ name }) => name)).toEqual(['service-7']);
  // Comparing a thousand resources separately for each stream takes far longer.
  expect(tookMs).toBeLessThan(30);
  const all = new Set(
    servedStreams(3, delta).map(
      (sentResources) => sentResources.selectResources(order({ all: true }), set(secondSet))!.resources,
    ),
  );
  expect([...all]).toEqual([secondSet]);
  const bodies = new SharedBodies();
  expect(bodies.framesOf(secondSet, delta)[0]).toBe(bodies.framesOf(secondSet, delta)[0]);
});

test('SentResources select different resources for streams in different states or with different orders', () => {
  const [one, other] = servedStreams(2, true);
  one!.forgetNames(['service-9']);
  const takeNames = (sentResources: SentResources, fields: Partial<ResponseOrder>): string[] =>
    [
      ...(sentResources.selectResources(order({ changed: true, ...fields }), set(secondSet))?.resources.values() ?? []),
    ].map(({ name }) => name);
  expect(takeNames(one!, {})).toEqual(['service-7', 'service-9']);
  expect(takeNames(other!, {})).toEqual(['service-7']);
  expect(takeNames(other!, {})).toEqual([]);
  expect(takeNames(servedStreams(1, true)[0]!, { requested: ['service-1'] })).toEqual(['service-1', 'service-7']);
});

test('SentResources send the complete set with a shared body if all resources must be sent again', () => {
  const [sentResources] = servedStreams(1, true);
  sentResources!.forgetNames('all');
  expect(sentResources!.selectResources(order({ changed: true }), set(first))?.resources).toBe(first);
  expect(sentResources!.count).toBe(1_000);
});

test('SentResources send nothing if only resources without a subscription differ', () => {
  const sentResources = new SentResources(false);
  const clusterOrder = order({ typeUrl: clusterType, names: ['service-1'] });
  const [a, b] = [new Map([['service-1', first.get('service-1')!]]), new Map([['service-1', first.get('service-1')!]])];
  sentResources.selectResources({ ...clusterOrder, all: true }, set(a));
  expect(sentResources.selectResources({ ...clusterOrder, changed: true }, set(b))).toBeUndefined();
});
