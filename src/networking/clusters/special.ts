import { create } from '@bufbuild/protobuf';
import { type Cluster, Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { HttpProtocolOptionsSchema } from '../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { ProxyIpFamily, ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { pack } from '../messages/any.ts';
import { dynamicDnsFields } from '../messages/dynamic-dns.ts';
import { duration } from '../messages/protobuf-duration.ts';
import {
  blackHoleCluster,
  dynamicDnsCluster,
  inboundPassthroughCluster,
  passthroughCluster,
} from '../traffic/resource-names.ts';
import { circuitBreakers, connectionOptions } from './connection-pool.ts';
import { originalDestinationFields } from './discovery-type.ts';
import { inboundSource } from './inbound.ts';
import { httpProtocolOptionsKey } from './upstream-http.ts';

const passthroughIdleTimeoutMs = 300_000;

/** Idle connections to unknown destinations are closed. */
const passthroughProtocol = {
  [httpProtocolOptionsKey]: pack(HttpProtocolOptionsSchema, {
    commonHttpProtocolOptions: { idleTimeout: duration(passthroughIdleTimeoutMs) },
    upstreamProtocolOptions: {
      case: 'useDownstreamProtocolConfig',
      value: { httpProtocolOptions: {}, http2ProtocolOptions: {} },
    },
  }),
};

/** A cluster without endpoints, whose requests and connections Envoy rejects and counts. */
export function blackHole(mesh: MeshConfig): Cluster {
  return create(ClusterSchema, {
    name: blackHoleCluster,
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STATIC },
    connectTimeout: duration(mesh.connectTimeoutMs),
  });
}

export function passthrough(mesh: MeshConfig): Cluster {
  return create(ClusterSchema, {
    name: passthroughCluster,
    ...originalDestinationFields,
    connectTimeout: duration(mesh.connectTimeoutMs),
    circuitBreakers: circuitBreakers(undefined),
    upstreamConnectionOptions: connectionOptions(undefined, mesh.tcpKeepalive),
    typedExtensionProtocolOptions: passthroughProtocol,
  });
}

export function dynamicDns(shape: Pick<ProxyShape, 'ipFamily'>, mesh: MeshConfig): Cluster {
  return create(ClusterSchema, {
    name: dynamicDnsCluster,
    ...dynamicDnsFields(shape, mesh),
    connectTimeout: duration(mesh.connectTimeoutMs),
    circuitBreakers: circuitBreakers(undefined),
    upstreamConnectionOptions: connectionOptions(undefined, mesh.tcpKeepalive),
    typedExtensionProtocolOptions: passthroughProtocol,
  });
}

export function inboundPassthrough(mesh: MeshConfig, family: ProxyIpFamily): Cluster {
  return create(ClusterSchema, {
    name: inboundPassthroughCluster,
    ...originalDestinationFields,
    connectTimeout: duration(mesh.connectTimeoutMs),
    circuitBreakers: circuitBreakers(undefined),
    typedExtensionProtocolOptions: passthroughProtocol,
    upstreamBindConfig: inboundSource(family),
  });
}
