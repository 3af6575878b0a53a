/** Tests that sources without a time limit are found in every field of a cluster that can contain one. */
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { type Cluster, Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { UpstreamTlsContextSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { adsConfigSource, adsSecret, agentFileSecret, agentSecret } from '../messages/config-source-message.ts';
import { extensionTypes } from '../messages/extension-types.ts';
import { withFetchLimit } from './fetch-limit.ts';

const tls = (secret: typeof agentSecret, name: string) =>
  anyPack(
    UpstreamTlsContextSchema,
    create(UpstreamTlsContextSchema, {
      commonTlsContext: {
        tlsCertificateSdsSecretConfigs: [secret(name)],
        validationContextType: {
          case: 'combinedValidationContext',
          value: { defaultValidationContext: {}, validationContextSdsSecretConfig: secret('ROOTCA') },
        },
      },
    }),
  );

const edsCluster = create(ClusterSchema, {
  name: 'outbound|80||a.test',
  clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
  edsClusterConfig: { edsConfig: adsConfigSource, serviceName: 'a' },
  perConnectionBufferLimitBytes: 1_024,
  transportSocketMatches: [
    {
      name: 'tls',
      match: { a: 'b' },
      transportSocket: { name: 'tls', configType: { case: 'typedConfig', value: tls(agentSecret, 'default') } },
    },
  ],
  metadata: { filterMetadata: { istio: { services: [{ host: 'a.test' }] } } },
});

const dnsCluster = create(ClusterSchema, {
  name: 'outbound|80||b.test',
  clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STRICT_DNS },
});

const limitFetch = (cluster: Cluster, fetchMs = 1_000, awaitsNames = false): Cluster | undefined => {
  const bytes = withFetchLimit(toBinary(ClusterSchema, cluster), { fetchMs, awaitsNames });
  return bytes && fromBinary(ClusterSchema, bytes);
};

const timeoutsIn = (cluster: Cluster): string[] =>
  [
    ...JSON.stringify(toJson(ClusterSchema, cluster, { registry: extensionTypes })).matchAll(
      /initialFetchTimeout":"([^"]+)/g,
    ),
  ].map(([, text]) => text!);

describe('fetch limit of a cluster', () => {
  it('the endpoints and each secret of the cluster get a fetch timeout', () => {
    expect(timeoutsIn(edsCluster)).toEqual(['0s', '0s', '0s']);
    expect(timeoutsIn(limitFetch(edsCluster)!)).toEqual(['1s', '1s', '1s']);
  });

  it('all other fields are unchanged', () => {
    const withoutTimeout = (cluster: Cluster): string =>
      JSON.stringify(toJson(ClusterSchema, cluster, { registry: extensionTypes })).replaceAll(
        /"initialFetchTimeout":"[^"]+"/g,
        '',
      );
    expect(withoutTimeout(limitFetch(edsCluster)!)).toBe(withoutTimeout(edsCluster));
  });

  it.each([
    ['the limit instead of the 15 s of Envoy', adsSecret, 1_000, ['1s', '1s']],
    ['no limit if the limit is not below the 15 s of Envoy', agentFileSecret, 15_000, []],
  ] as const)('a source without a timeout gets %s', (_name, secret, fetchMs, timeouts) => {
    const cluster = create(ClusterSchema, {
      name: 'c',
      transportSocket: { name: 'tls', configType: { case: 'typedConfig', value: tls(secret, 'kubernetes://web') } },
    });
    const limitedCluster = limitFetch(cluster, fetchMs);
    expect(limitedCluster === undefined ? [] : timeoutsIn(limitedCluster)).toEqual(timeouts);
  });

  it('the cluster does not wait for DNS results unless a previous version of it is active', () => {
    expect(limitFetch(dnsCluster)?.waitForWarmOnInit).toBe(false);
    expect(limitFetch(dnsCluster, 1_000, true)).toBeUndefined();
  });

  it('a cluster that already has the limit is unchanged', () => {
    expect(limitFetch(limitFetch(edsCluster)!)).toBeUndefined();
    expect(limitFetch(create(ClusterSchema, { name: 'static' }))).toBeUndefined();
  });
});
