import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { Cluster_DiscoveryType, ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import {
  CommonTlsContextSchema,
  UpstreamTlsContextSchema,
} from '../../src/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import type { ResourceFacts } from '../sidecars/resource-batches.ts';
import type { ResourceMap } from '../sidecars/resource-maps.ts';
import { clusterContent, clustersGivenUp, limitedClusters } from './fetch-limits.ts';

interface ClusterCase {
  readonly maxRequests?: number;
  /** Timeouts for endpoints and for the certificate; without timeouts if absent. */
  readonly seconds?: readonly [endpoints: number, certificate: number];
}

function cluster({ maxRequests = 1, seconds }: ClusterCase): Buffer {
  const source = (at: 0 | 1) => ({
    configSourceSpecifier: { case: 'ads' as const, value: {} },
    ...(seconds && { initialFetchTimeout: { seconds: BigInt(seconds[at]) } }),
  });
  const commonTlsContext = create(CommonTlsContextSchema, {
    tlsCertificateSdsSecretConfigs: [{ name: 'default', sdsConfig: source(1) }],
  });
  const tls = anyPack(UpstreamTlsContextSchema, create(UpstreamTlsContextSchema, { commonTlsContext }));
  const built = create(ClusterSchema, {
    name: 'a',
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
    edsClusterConfig: { edsConfig: source(0) },
    circuitBreakers: { thresholds: [{ maxRequests }] },
    transportSocketMatches: [
      { name: 'tls', transportSocket: { name: 'tls', configType: { case: 'typedConfig', value: tls } } },
    ],
  });
  return Buffer.from(toBinary(ClusterSchema, built));
}

const mapOf = (givenLimits: ClusterCase): ResourceMap => {
  const facts: ResourceFacts = {
    ...{ name: 'a', version: '', digest: '', bytes: 0, refersTo: [] },
    content: clusterContent(cluster(givenLimits)),
  };
  return new Map([['a', facts]]);
};

test("a cluster's content is equal with and without fetch timeouts for its endpoints and certificate", () => {
  const plain = clusterContent(cluster({}));
  expect(plain.isLimited).toBe(false);
  expect(clusterContent(cluster({ seconds: [0, 0] }))).toEqual(plain);
  for (const seconds of [
    [1, 0],
    [0, 15],
    [1, 15],
  ] as const) {
    expect(clusterContent(cluster({ seconds }))).toEqual({ ...plain, isLimited: true });
    expect(clusterContent(cluster({ seconds, maxRequests: 2 })).digest).not.toBe(plain.digest);
  }
});

test('a cluster counts as given up if only an additional timeout distinguishes it from the previous cluster of the proxy', () => {
  const unlimited = mapOf({ seconds: [0, 0] });
  const givenUpAfter = (previous: ResourceMap, givenLimits: ClusterCase) =>
    clustersGivenUp(previous, mapOf(givenLimits), ['a']);
  expect(givenUpAfter(unlimited, { seconds: [1, 1] })).toEqual(['a']);
  expect(givenUpAfter(unlimited, { seconds: [1, 1], maxRequests: 2 })).toEqual([]);
  expect(givenUpAfter(unlimited, { maxRequests: 2 })).toEqual([]);
  expect(givenUpAfter(mapOf({ seconds: [1, 1] }), {})).toEqual([]);
  expect(givenUpAfter(new Map(), { seconds: [1, 1] })).toEqual([]);
  expect(clustersGivenUp(unlimited, new Map(), ['a'])).toEqual([]);
  expect([limitedClusters(unlimited), limitedClusters(mapOf({ seconds: [0, 1] }))]).toEqual([[], ['a']]);
});
