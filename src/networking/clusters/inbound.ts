import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import { type Cluster, Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { BindConfigSchema } from '../../gen/envoy/config/core/v3/address_pb.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { configKeyOf } from '../../model/config/config.ts';
import type { ProxyIpFamily, ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { serviceKey } from '../../model/services/service.ts';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import { withOrigins } from '../inputs/message-origin.ts';
import { isUnixSocket, socketAddress } from '../messages/address.ts';
import type { Init } from '../messages/init.ts';
import { istioMetadata, serviceMetadata } from '../messages/metadata.ts';
import { duration } from '../messages/protobuf-duration.ts';
import { type EnvoyResource, namedResource } from '../messages/resource.ts';
import { type InboundTarget, inboundOrigins, inboundRuleFor, inboundTargets } from '../traffic/inbound-target.ts';
import { activePeerModes } from '../traffic/peer-mode.ts';
import { inboundClusterName } from '../traffic/resource-names.ts';
import { circuitBreakers, connectionOptions } from './connection-pool.ts';
import { originalDestinationFields } from './discovery-type.ts';
import { clusterStatName } from './stat-name.ts';
import { httpProtocolOptionsKey, upstreamHttpOptions } from './upstream-http.ts';

type ClusterInit = Init<typeof ClusterSchema>;

/** Source addresses that the redirection rules exempt. Connections from them reach the application instead of the proxy. */
export function inboundSource(family: ProxyIpFamily): Init<typeof BindConfigSchema> {
  const sourceOf = (address: string) => ({ address, portSpecifier: { case: 'portValue' as const, value: 0 } });
  return {
    sourceAddress: sourceOf(family === 'v6' ? '::6' : '127.0.0.6'),
    ...(family === 'dual' && { extraSourceAddresses: [{ address: sourceOf('::6') }] }),
  };
}

const lastClusters = new WeakMap<
  ProxyShape,
  { readonly inputs: readonly unknown[]; readonly clusters: readonly EnvoyResource[] }
>();

export function inboundClusters(shape: ProxyShape, push: PushContext): readonly EnvoyResource[] {
  const rules = shape.serviceTargets.map(({ service }) => inboundRuleFor(service, shape, push));
  const inputs = [push.mesh, push.sidecarScopeFor(shape).sidecar, activePeerModes(shape, push), ...rules];
  const cachedClusters = lastClusters.get(shape);
  if (cachedClusters !== undefined && sameItems(cachedClusters.inputs, inputs)) return cachedClusters.clusters;
  const clusters = buildInboundClusters(shape, push);
  lastClusters.set(shape, { inputs, clusters });
  return clusters;
}

function buildInboundClusters(shape: ProxyShape, push: PushContext): readonly EnvoyResource[] {
  const sidecar = push.sidecarScopeFor(shape).sidecar;
  const scopeKeys = sidecar ? [configKeyOf(sidecar)] : [];
  return inboundTargets(shape, push).map((target) =>
    namedResource(
      ClusterSchema,
      withOrigins(inboundCluster(target, shape, push), inboundOrigins(target, shape, push)),
      [...target.services.map((service) => serviceKey(service)), ...scopeKeys],
    ),
  );
}

function inboundCluster(target: InboundTarget, shape: ProxyShape, push: PushContext): Cluster {
  const { mesh } = push;
  const name = inboundClusterName(target.port);
  const port = target.servicePort ?? { name: '', number: target.port, protocol: target.protocol };
  const service = target.services[0] ?? { hostname: name, namespace: shape.configNamespace };
  const { http, tcp } = target.connectionPool ?? {};
  const options = upstreamHttpOptions({
    protocol: target.protocol,
    client: 'sidecar',
    // Proxies use HTTP/2 among themselves, but the application receives the protocol of its port.
    settings: http && { ...http, h2UpgradePolicy: 'DO_NOT_UPGRADE' },
    connections: tcp,
    meshUpgradePolicy: 'DO_NOT_UPGRADE',
  });
  return create(ClusterSchema, {
    name,
    altStatName: clusterStatName(name, mesh.inboundClusterStatName, {
      service,
      port,
      subset: '',
      targetPort: target.port,
    }),
    ...applicationFields(name, target, shape),
    connectTimeout: duration(target.connectionPool?.tcp?.connectTimeoutMs ?? mesh.connectTimeoutMs),
    circuitBreakers: circuitBreakers(target.connectionPool),
    upstreamConnectionOptions: connectionOptions(target.connectionPool, mesh.tcpKeepalive),
    commonLbConfig: {},
    metadata: istioMetadata({ services: target.services.map(serviceMetadata) }),
    ...(options && { typedExtensionProtocolOptions: { [httpProtocolOptionsKey]: options } }),
  });
}

/** Uses the original destination, unless the Sidecar object sets `defaultEndpoint`. */
function applicationFields(name: string, target: InboundTarget, shape: ProxyShape): ClusterInit {
  const upstreamBindConfig = inboundSource(shape.ipFamily);
  const { forwardTo } = target;
  if (forwardTo === undefined) {
    // Disables the cleanup of unused hosts, because the cluster has at most one host for each address of the workload.
    const cleanupInterval = create(DurationSchema, { seconds: 9_223_372_035n });
    return { ...originalDestinationFields, cleanupInterval, upstreamBindConfig };
  }
  const address = socketAddress(forwardTo.address, forwardTo.port);
  const isLocalApplication = isUnixSocket(forwardTo.address) || isLoopback(forwardTo.address);
  return {
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STATIC },
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: 'endpoint', value: { address } } }] }],
    },
    ...(!isLocalApplication && shape.interceptionMode !== 'NONE' && { upstreamBindConfig }),
  };
}
