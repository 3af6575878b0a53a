const prefix = 'type.googleapis.com/';

export const clusterType = `${prefix}envoy.config.cluster.v3.Cluster`;
export const endpointType = `${prefix}envoy.config.endpoint.v3.ClusterLoadAssignment`;
export const listenerType = `${prefix}envoy.config.listener.v3.Listener`;
export const routeType = `${prefix}envoy.config.route.v3.RouteConfiguration`;
export const secretType = `${prefix}envoy.extensions.transport_sockets.tls.v3.Secret`;
export const extensionType = `${prefix}envoy.config.core.v3.TypedExtensionConfig`;
export const nameTableType = `${prefix}istio.networking.nds.v1.NameTable`;
export const proxyConfigType = `${prefix}istio.mesh.v1alpha1.ProxyConfig`;
/** Patches of the bootstrap: requested once by the agent. */
export const bootstrapType = `${prefix}envoy.config.bootstrap.v3.Bootstrap`;
export const bootstrapPatchesName = 'patches';
/** Health reports of clients; no response. */
export const healthType = `${prefix}istio.v1.HealthInformation`;

/** Debug requests in the form of resources: one response, no subscription. */
const debugType = 'istio.io/debug';

export function isOneTimeType(typeUrl: string): boolean {
  return typeUrl === debugType || typeUrl.startsWith(`${debugType}/`);
}

/** Make before break: clusters and endpoints before the listeners and routes that name them, then all other types in any order. */
const pushOrder: readonly string[] = [clusterType, endpointType, listenerType, routeType, secretType];

/**
 * Configuration types for clients that are control planes (docs/config-over-xds.md), such as `networking.istio.io/v1/VirtualService`: those that
 * Istio's client requests, with their older versions.
 */
const configTypes: readonly string[] = [
  'core/v1alpha1/MeshConfig',
  ...typesOf(
    'networking.istio.io',
    ['v1', 'v1beta1', 'v1alpha3'],
    ['DestinationRule', 'Gateway', 'ServiceEntry', 'Sidecar', 'VirtualService', 'WorkloadEntry', 'WorkloadGroup'],
  ),
  ...typesOf('networking.istio.io', ['v1alpha3'], ['EnvoyFilter']),
  ...typesOf('networking.istio.io', ['v1beta1'], ['ProxyConfig']),
  ...typesOf(
    'security.istio.io',
    ['v1', 'v1beta1'],
    ['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication'],
  ),
  ...typesOf('telemetry.istio.io', ['v1', 'v1alpha1'], ['Telemetry']),
  ...typesOf('extensions.istio.io', ['v1alpha1'], ['WasmPlugin', 'TrafficExtension']),
];

function typesOf(group: string, versions: readonly string[], kinds: readonly string[]): string[] {
  return kinds.flatMap((kind) => versions.map((version) => `${group}/${version}/${kind}`));
}

const watchedTypes: ReadonlySet<string> = new Set([
  ...configTypes,
  ...pushOrder,
  extensionType,
  nameTableType,
  proxyConfigType,
  bootstrapType,
]);

/** Nothing is stored for other types, so a client can neither choose keys of a record nor exceed the number of these types. */
export function isWatchable(typeUrl: string): boolean {
  return watchedTypes.has(typeUrl);
}

const subscribedByName: ReadonlySet<string> = new Set([
  endpointType,
  routeType,
  secretType,
  extensionType,
  bootstrapType,
]);

/** Whether subscriptions list names, and a response may contain only some of these resources. */
export function isByName(typeUrl: string): boolean {
  return subscribedByName.has(typeUrl);
}

const independent: ReadonlySet<string> = new Set([secretType, nameTableType, proxyConfigType, ...configTypes]);

/**
 * Whether resources of the type refer to no type that a push sends earlier. Their changes wait for no other type, because a client may acknowledge
 * clusters only after it has a secret that the clusters fetch.
 */
export function isIndependent(typeUrl: string): boolean {
  return independent.has(typeUrl);
}

const ranks: ReadonlyMap<string, number> = new Map(pushOrder.map((typeUrl, rank) => [typeUrl, rank]));

export function sortInPushOrder(typeUrls: readonly string[]): readonly string[] {
  if (typeUrls.length < 2) return typeUrls;
  const rank = (typeUrl: string): number => ranks.get(typeUrl) ?? pushOrder.length;
  return [...typeUrls].sort((a, b) => rank(a) - rank(b));
}
