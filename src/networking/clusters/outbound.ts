import { create } from '@bufbuild/protobuf';
import { type Cluster, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { BackendTls } from '../../model/push-context/backend-tls.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { MergedDestinationRule } from '../../model/push-context/resolved-rules.ts';
import { limitedSubsets } from '../../model/services/limited-subsets.ts';
import { type Endpoint, type Port, type Service, serviceKey } from '../../model/services/service.ts';
import { loadAssignment } from '../endpoints/assignment.ts';
import { healthSelection } from '../endpoints/health.ts';
import { selectEndpoints } from '../endpoints/selection.ts';
import { type Origin, serviceOrigin, subsetOrigins, withOrigins } from '../inputs/message-origin.ts';
import { dynamicDnsFields } from '../messages/dynamic-dns.ts';
import type { Init } from '../messages/init.ts';
import { metadataExchange } from '../messages/istio-extensions.ts';
import { istioMetadata, serviceMetadata } from '../messages/metadata.ts';
import { duration } from '../messages/protobuf-duration.ts';
import { type EnvoyResource, namedResource } from '../messages/resource.ts';
import { aliasAssignmentName, configPath, outboundClusterName, sniName } from '../traffic/resource-names.ts';
import { type ClusterShape, checksRevocationLists, hasWorkloadCertificates } from '../traffic/shape-keys.ts';
import { type EffectivePolicy, effectivePolicy, localityOrdering, subsetOf } from '../traffic/traffic-policy.ts';
import { automaticMutualTls, endpointsAsSecured } from '../traffic/upstream-mutual-tls.ts';
import { circuitBreakers, connectionOptions } from './connection-pool.ts';
import { type ClusterDiscovery, discoveryOf, dnsFields, edsFields, originalDestination } from './discovery-type.ts';
import { dnsResolver, withDnsJitter } from './dns-lookup.ts';
import { commonLbConfig, loadBalancing } from './load-balancing.ts';
import { outlierDetection } from './outlier-detection.ts';
import { withProxyProtocol } from './proxy-protocol.ts';
import { identitiesOf } from './service-identities.ts';
import { clusterStatName } from './stat-name.ts';
import { httpProtocolOptionsKey, speaksHttp2, type UpstreamHttp, upstreamHttpOptions } from './upstream-http.ts';
import { backendTlsSocket, type UpstreamTlsTarget, upstreamTls } from './upstream-tls.ts';

type ClusterInit = Init<typeof ClusterSchema>;

export interface OutboundTarget {
  readonly service: Service;
  readonly port: Port;
  /** Empty for the cluster with all endpoints. */
  readonly subset: string;
  readonly rule: MergedDestinationRule | undefined;
  /** Set if an alias of the service has its own clusters. The cluster then has the name of the alias. */
  readonly alias?: Service | undefined;
}

/** Only gateways use BackendTLSPolicies. Sidecars use mesh settings and DestinationRules. */
export function backendTlsFor(
  service: Service,
  port: Port,
  { type }: ClusterShape,
  { backendTls }: PushContext,
  alias?: Service,
): BackendTls | undefined {
  if (type !== 'router') return undefined;
  const aliasPortName = alias?.ports.find(({ number }) => number === port.number)?.name ?? port.name;
  return (alias && backendTls.settingsFor(alias, aliasPortName)) ?? backendTls.settingsFor(service, port.name);
}

export function outboundClusters(
  service: Service,
  rule: MergedDestinationRule | undefined,
  shape: ClusterShape,
  push: PushContext,
  alias?: Service,
): EnvoyResource[] {
  const dependsOn = [serviceKey(service), ...(alias ? [serviceKey(alias)] : []), ...(rule?.origins ?? [])];
  const subsets = ['', ...limitedSubsets(service, rule?.config.spec).map((subset) => subset.name)];
  return service.ports
    .filter((port) => port.protocol !== 'UDP')
    .flatMap((port) => subsets.map((subset) => outboundCluster({ service, port, subset, rule, alias }, shape, push)))
    .filter((cluster) => cluster !== undefined)
    .map((cluster) => namedResource(ClusterSchema, cluster, dependsOn));
}

/** Returns `undefined` if the service is an alias, or has no endpoint that DNS can resolve. */
export function outboundCluster(target: OutboundTarget, shape: ClusterShape, push: PushContext): Cluster | undefined {
  const { service, port, subset, rule, alias } = target;
  const policy = effectivePolicy(rule?.config.spec, subset, port.number);
  const discovery = discoveryOf(service, policy, shape, push);
  if (discovery === undefined) return undefined;
  const name = outboundClusterName(port.number, subset, (alias ?? service).hostname);
  const endpoints = discoveryFields(name, discovery, target, policy, shape, push);
  if (endpoints === undefined) return undefined;
  const cluster = create(ClusterSchema, {
    name,
    altStatName: clusterStatName(name, push.mesh.outboundClusterStatName, target),
    ...(discovery === 'ORIGINAL_DST' || discovery === 'DYNAMIC_DNS' ? {} : chosenEndpoint(port, policy, push)),
    ...endpoints,
    ...connectionFields(policy, push),
    commonLbConfig: balancingFields(target, policy, discovery, push),
    outlierDetection: policy.outlierDetection && outlierDetection(policy.outlierDetection),
    metadata: clusterMetadata(target),
    filters: metadataExchange(shape, push.mesh),
    ...protocolFields(target, discovery, policy, shape, push),
  });
  const resolvesNames = discovery === 'STRICT_DNS' || discovery === 'LOGICAL_DNS';
  const backendTlsOrigins = backendTlsFor(service, port, shape, push, alias)?.origins ?? [];
  const origins = [...originsOfTarget(target), ...backendTlsOrigins.map((key) => ({ key }))];
  return withOrigins(resolvesNames ? withDnsJitter(cluster, push.features.dnsJitterMs) : cluster, origins);
}

/** Returns the cluster of an AUTO_PASSTHROUGH gateway, which forwards TLS unchanged to endpoints that accept mutual TLS. */
export function sniCluster(target: OutboundTarget, shape: ClusterShape, push: PushContext): Cluster | undefined {
  if (!hasSniCluster(target, shape, push)) return undefined;
  const { service, port, subset, rule } = target;
  const policy = effectivePolicy(rule?.config.spec, subset, port.number);
  const name = sniName(port.number, subset, service.hostname);
  const cluster = create(ClusterSchema, {
    name,
    altStatName: clusterStatName(name, '', target),
    ...chosenEndpoint(port, policy, push),
    ...edsFields(name),
    ...connectionFields(policy, push),
    commonLbConfig: balancingFields(target, policy, 'EDS', push),
    outlierDetection: policy.outlierDetection && outlierDetection(policy.outlierDetection),
    metadata: clusterMetadata(target),
  });
  return withOrigins(cluster, originsOfTarget(target));
}

/** Only EDS clusters have an SNI form, for TLS that is passed through. */
export function hasSniCluster(
  { service, port, subset, rule }: OutboundTarget,
  shape: ClusterShape,
  push: PushContext,
): boolean {
  return discoveryOf(service, effectivePolicy(rule?.config.spec, subset, port.number), shape, push) === 'EDS';
}

/** A hash routes each Redis command to the server of its key. */
function chosenEndpoint({ protocol }: Port, { loadBalancer }: EffectivePolicy, { features }: PushContext) {
  return loadBalancing(
    protocol === 'Redis' && features.redisFilter ? { consistentHash: { maglev: {} } } : loadBalancer,
  );
}

function balancingFields(
  { service }: OutboundTarget,
  policy: EffectivePolicy,
  discovery: ClusterDiscovery,
  push: PushContext,
) {
  const ordering = localityOrdering(policy, push.mesh.localityLbSetting, service);
  const { sendsUnhealthyEndpoints } = healthSelection(service, policy.outlierDetection, push.features);
  return commonLbConfig(policy, ordering, sendsUnhealthyEndpoints && discovery !== 'ORIGINAL_DST');
}

function originsOfTarget({ service, subset, rule, alias }: OutboundTarget): readonly Origin[] {
  return [...serviceOrigin(service), ...(alias ? serviceOrigin(alias) : []), ...subsetOrigins(rule, subset)];
}

function discoveryFields(
  name: string,
  discovery: ClusterDiscovery,
  target: OutboundTarget,
  policy: EffectivePolicy,
  shape: ClusterShape,
  push: PushContext,
): ClusterInit | undefined {
  if (discovery === 'EDS') {
    return edsFields(target.alias ? aliasAssignmentName(name, target.service.hostname) : name);
  }
  if (discovery === 'ORIGINAL_DST') return originalDestination(target.port.forwardedPort);
  if (discovery === 'DYNAMIC_DNS') return dynamicDnsFields(shape, push.mesh);
  const endpoints = dnsEndpoints(target, policy, push);
  if (endpoints.length === 0) return undefined;
  const assignment = loadAssignment(name, discovery === 'LOGICAL_DNS' ? [singleEndpoint(endpoints)] : endpoints, {
    proxyLocality: shape.locality,
    proxyLabels: shape.labels,
    // The endpoints of DNS clusters do not depend on networks and nodes.
    proxyNetwork: '',
    proxyNode: '',
    setting: localityOrdering(policy, push.mesh.localityLbSetting, target.service),
    outlierDetection: policy.outlierDetection !== undefined,
  });
  return { ...dnsFields(discovery, assignment, shape, push), typedDnsResolverConfig: dnsResolver };
}

function singleEndpoint(endpoints: readonly Endpoint[]): Endpoint {
  return endpoints.find(({ health }) => health === 'healthy') ?? endpoints[0]!;
}

function dnsEndpoints(
  { service, port, subset, rule }: OutboundTarget,
  policy: EffectivePolicy,
  push: PushContext,
): readonly Endpoint[] {
  const labels = subsetOf(rule?.config.spec, subset)?.labels;
  const allEndpoints = endpointsAsSecured(push.endpointsOf(service.hostname, service.namespace), push);
  const health = healthSelection(service, policy.outlierDetection, push.features);
  return selectEndpoints(allEndpoints, { port, health, ...(labels && { labels }), allowNames: true });
}

function connectionFields(policy: EffectivePolicy, push: PushContext): ClusterInit {
  const pool = policy.connectionPool;
  return {
    connectTimeout: duration(pool?.tcp?.connectTimeoutMs ?? push.mesh.connectTimeoutMs),
    circuitBreakers: circuitBreakers(pool, policy.retryBudget),
    upstreamConnectionOptions: connectionOptions(pool, push.mesh.tcpKeepalive),
  };
}

/** Builds TLS and HTTP version together, because ALPN depends on the version, and the HTTP options determine the SNI. */
function protocolFields(
  { service, port, subset, rule, alias }: OutboundTarget,
  discovery: ClusterDiscovery,
  policy: EffectivePolicy,
  shape: ClusterShape,
  push: PushContext,
): ClusterInit {
  const http: UpstreamHttp = {
    protocol: port.protocol,
    client: shape.type,
    settings: policy.connectionPool?.http,
    connections: policy.connectionPool?.tcp,
    meshUpgradePolicy: push.mesh.h2UpgradePolicy,
  };
  const hasCertificate = hasWorkloadCertificates(shape);
  const automaticMode = hasCertificate ? automaticMutualTls(service, discovery === 'ORIGINAL_DST', push) : 'never';
  const mutualTls = policy.tls?.mode === 'ISTIO_MUTUAL' || (policy.tls === undefined && automaticMode !== 'never');
  const target: UpstreamTlsTarget = {
    service,
    // Gateways between networks have no clusters for aliases.
    sniName: sniName(port.number, alias ? '' : subset, service.hostname),
    identities: mutualTls ? identitiesOf(service, push) : [],
    http2: speaksHttp2(http),
    automatic: automaticMode,
    hasCertificate,
    checksRevocationLists: checksRevocationLists(shape),
    mayRequestSecrets: shape.type === 'router' || rule?.config.spec.workloadSelector !== undefined,
    mesh: push.mesh,
  };
  const backendTls = backendTlsFor(service, port, shape, push, alias);
  const { autoSni, autoSanValidation, ...transport } =
    backendTls === undefined ? upstreamTls(policy.tls, target) : backendTlsSocket(backendTls, target);
  const options = upstreamHttpOptions({ ...http, autoSni, autoSanValidation });
  return {
    ...withProxyProtocolSockets(transport, policy.proxyProtocol),
    ...(options && { typedExtensionProtocolOptions: { [httpProtocolOptionsKey]: options } }),
  };
}

function withProxyProtocolSockets(
  transport: Pick<ClusterInit, 'transportSocket' | 'transportSocketMatches'>,
  proxyProtocol: EffectivePolicy['proxyProtocol'],
): Pick<ClusterInit, 'transportSocket' | 'transportSocketMatches'> {
  if (proxyProtocol === undefined) return transport;
  const { version } = proxyProtocol;
  const matches = transport.transportSocketMatches;
  if (matches === undefined) return { transportSocket: withProxyProtocol(version, transport.transportSocket) };
  return {
    transportSocketMatches: matches.map((match) => ({
      ...match,
      transportSocket: withProxyProtocol(version, match.transportSocket),
    })),
  };
}

function clusterMetadata({ service, port, subset, rule }: OutboundTarget): ReturnType<typeof istioMetadata> {
  return istioMetadata({
    services: [serviceMetadata(service)],
    default_original_port: port.number,
    ...(rule && { config: configPath(rule.config) }),
    ...(subset !== '' && { subset }),
    ...(service.meshExternal && { external: true }),
  });
}
