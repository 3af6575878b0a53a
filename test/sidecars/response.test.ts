import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { Cluster_DiscoveryType, ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ListenerSchema } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import { HttpConnectionManagerSchema } from '../../src/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { encodeDelta, encodeSotw } from './request.ts';
import { ResourceBatches } from './resource-batches.ts';
import { readResponse } from './response.ts';
import { typeUrlOf } from './xds-types.ts';

const edsCluster = (name: string, serviceName = '') =>
  create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
    edsClusterConfig: { serviceName },
  });
const staticCluster = create(ClusterSchema, {
  name: 'fixed',
  clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STATIC },
});

const sotw = (...clusters: ReturnType<typeof edsCluster>[]): Buffer =>
  Buffer.from(
    toBinary(
      DiscoveryResponseSchema,
      create(DiscoveryResponseSchema, {
        versionInfo: 'v1',
        nonce: 'n1',
        typeUrl: typeUrlOf.CDS,
        controlPlane: { identifier: 'no resource that was removed' },
        resources: clusters.map((cluster) => anyPack(ClusterSchema, cluster)),
      }),
    ),
  );

describe('a response', () => {
  test('is parsed in the state of the world protocol', () => {
    const { version, nonce, typeUrl, removed, resources } = readResponse(sotw(edsCluster('a'), staticCluster), false);
    expect({ version, nonce, typeUrl, removed }).toEqual({
      version: 'v1',
      nonce: 'n1',
      typeUrl: typeUrlOf.CDS,
      removed: [],
    });
    const batch = new ResourceBatches(false).of('CDS', resources);
    expect([...batch.values()].map(({ name, refersTo }) => [name, refersTo])).toEqual([
      ['a', ['a']],
      ['fixed', []],
    ]);
  });

  test('is parsed in the delta protocol with removed names', () => {
    const message = create(DeltaDiscoveryResponseSchema, {
      systemVersionInfo: 's',
      nonce: 'n2',
      typeUrl: typeUrlOf.CDS,
      removedResources: ['x', 'y'],
      resources: [{ name: 'a', version: 'va', resource: anyPack(ClusterSchema, edsCluster('a', 'endpoints of a')) }],
    });
    const response = readResponse(Buffer.from(toBinary(DeltaDiscoveryResponseSchema, message)), true);
    expect([response.version, response.nonce, response.removed]).toEqual(['s', 'n2', ['x', 'y']]);
    const facts = new ResourceBatches(true).of('CDS', response.resources).get('a');
    expect(facts).toMatchObject({ name: 'a', version: 'va', refersTo: ['endpoints of a'] });
  });

  test('is valid without resources', () => {
    expect(new ResourceBatches(false).of('CDS', readResponse(sotw(), false).resources).size).toBe(0);
  });
});

test('a listener refers to the routes of its filter chains, including the default one', () => {
  const chain = (routeConfigName: string) => ({
    filters: [
      {
        name: 'http',
        configType: {
          case: 'typedConfig' as const,
          value: anyPack(
            HttpConnectionManagerSchema,
            create(HttpConnectionManagerSchema, { routeSpecifier: { case: 'rds', value: { routeConfigName } } }),
          ),
        },
      },
    ],
  });
  const listener = create(ListenerSchema, {
    name: 'l',
    filterChains: [chain('8080')],
    defaultFilterChain: chain('80'),
  });
  const message = create(DiscoveryResponseSchema, { resources: [anyPack(ListenerSchema, listener)] });
  const { resources } = readResponse(Buffer.from(toBinary(DiscoveryResponseSchema, message)), false);
  expect(new ResourceBatches(false).of('LDS', resources).get('l')?.refersTo).toEqual(['8080', '80']);
});

describe('batches of resources', () => {
  const resourcesOf = (message: Buffer): Buffer => readResponse(message, false).resources;

  test('are the same object for the same resources in any order', () => {
    const batches = new ResourceBatches(false);
    const batch = batches.of('CDS', resourcesOf(sotw(edsCluster('a'), edsCluster('b'))));
    expect(batches.of('CDS', resourcesOf(sotw(edsCluster('a'), edsCluster('b'))))).toBe(batch);
    expect(batches.of('CDS', resourcesOf(sotw(edsCluster('b'), edsCluster('a'))))).toBe(batch);
  });

  test('are cached for several hundred namespaces, up to limits on number and bytes', () => {
    const namespaceResources = Array.from({ length: 300 }, (_, index) =>
      resourcesOf(sotw(edsCluster('a', `ns-${index}`))),
    );
    const refound = (limits: object): number => {
      const batches = new ResourceBatches(false, limits);
      const first = namespaceResources.map((resources) => batches.of('CDS', resources));
      return namespaceResources.filter((resources, index) => batches.of('CDS', Buffer.from(resources)) === first[index])
        .length;
    };
    expect(refound({})).toBe(300);
    expect([refound({ batches: 299 }), refound({ bytes: 20_000 })]).toEqual([0, 0]);
  });

  test('are different objects for different content', () => {
    const batches = new ResourceBatches(false);
    const [a, b] = [edsCluster('a', 'one'), edsCluster('a', 'two')].map((cluster) =>
      batches.of('CDS', resourcesOf(sotw(cluster))).get('a'),
    );
    expect(a?.digest).not.toBe(b?.digest);
  });
});

describe('requests that are encoded without a library', () => {
  test('are parsed by the generated code in the state of the world protocol', () => {
    const names = { names: new Set(['a', 'b']), sorted: ['a', 'b'] };
    const bytes = encodeSotw({ typeUrl: typeUrlOf.EDS, version: 'v', nonce: 'n', names, error: 'no' });
    expect(fromBinary(DiscoveryRequestSchema, bytes)).toMatchObject({
      typeUrl: typeUrlOf.EDS,
      versionInfo: 'v',
      responseNonce: 'n',
      resourceNames: ['a', 'b'],
      errorDetail: { code: 3, message: 'no' },
    });
  });

  test('are parsed by the generated code in the delta protocol', () => {
    const bytes = encodeDelta({
      typeUrl: typeUrlOf.EDS,
      nonce: 'n',
      subscribe: ['a'],
      unsubscribe: ['b'],
      initialVersions: new Map([['c', { version: 'v' }]]),
      error: 'no',
    });
    expect(fromBinary(DeltaDiscoveryRequestSchema, bytes)).toMatchObject({
      typeUrl: typeUrlOf.EDS,
      responseNonce: 'n',
      resourceNamesSubscribe: ['a'],
      resourceNamesUnsubscribe: ['b'],
      initialResourceVersions: { c: 'v' },
      errorDetail: { code: 3, message: 'no' },
    });
  });
});
