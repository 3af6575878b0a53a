import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { SdsSecretConfigSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { UpstreamTlsContextSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { clusterWarmingOf } from './cluster-usability.ts';

const prefix = Uint8Array.of(1, 2, 3);

function usability(cluster: MessageInitShape<typeof ClusterSchema>, ...extraSecrets: readonly Uint8Array[]) {
  const bytes = toBinary(ClusterSchema, create(ClusterSchema, { name: 'a', altStatName: 'b', ...cluster }));
  const { usableAfter, assignment, secrets } = clusterWarmingOf(
    Buffer.concat([prefix, bytes, ...extraSecrets]),
    prefix.length,
  );
  return [usableAfter, assignment, ...secrets];
}

const type = (value: Cluster_DiscoveryType) => ({ clusterDiscoveryType: { case: 'type' as const, value } });
const eds = type(Cluster_DiscoveryType.EDS);

describe('usability of a new cluster, read from its bytes', () => {
  it('the usability depends on the discovery type', () => {
    expect(usability(eds)).toEqual(['assignment', 'a']);
    expect(usability(type(Cluster_DiscoveryType.STATIC))).toEqual(['at once', 'a']);
    expect(usability({})).toEqual(['at once', 'a']);
    expect(usability(type(Cluster_DiscoveryType.ORIGINAL_DST))).toEqual(['at once', 'a']);
    expect(usability(type(Cluster_DiscoveryType.STRICT_DNS))).toEqual(['warming', 'a']);
    expect(usability(type(Cluster_DiscoveryType.LOGICAL_DNS))).toEqual(['warming', 'a']);
    expect(usability({ clusterDiscoveryType: { case: 'clusterType', value: { name: 'dynamic' } } })).toEqual([
      'warming',
      'a',
    ]);
  });

  it('a cluster with health checks must warm up, regardless of its type', () => {
    const timeout = { seconds: 300n };
    expect(usability({ ...eds, healthChecks: [{ timeout, interval: timeout }] })).toEqual(['warming', 'a']);
  });

  it('the usability includes the requested assignment and secrets', () => {
    const sds = create(SdsSecretConfigSchema, { name: 'key' });
    const context = create(UpstreamTlsContextSchema, { commonTlsContext: { tlsCertificateSdsSecretConfigs: [sds] } });
    const typedConfig = create(AnySchema, {
      typeUrl: `type.googleapis.com/${UpstreamTlsContextSchema.typeName}`,
      value: toBinary(UpstreamTlsContextSchema, context),
    });
    const transportSocket = { name: 'tls', configType: { case: 'typedConfig' as const, value: typedConfig } };
    const edsClusterConfig = { serviceName: 'other' };
    expect(usability({ ...eds, edsClusterConfig, transportSocket })).toEqual(['assignment', 'other', 'key']);
  });

  it('the last discovery type applies if the bytes contain two', () => {
    const dns = toBinary(ClusterSchema, create(ClusterSchema, type(Cluster_DiscoveryType.STRICT_DNS)));
    expect(usability(eds, dns)).toEqual(['warming', 'a']);
  });
});
