/** What the ADS protocol's rules depend on, for each type of resource. */

const prefix = 'type.googleapis.com/';

export const clusterType = `${prefix}envoy.config.cluster.v3.Cluster`;
export const endpointType = `${prefix}envoy.config.endpoint.v3.ClusterLoadAssignment`;
export const listenerType = `${prefix}envoy.config.listener.v3.Listener`;
export const routeType = `${prefix}envoy.config.route.v3.RouteConfiguration`;
export const secretType = `${prefix}envoy.extensions.transport_sockets.tls.v3.Secret`;
export const extensionType = `${prefix}envoy.config.core.v3.TypedExtensionConfig`;
export const nameTableType = `${prefix}istio.networking.nds.v1.NameTable`;
export const proxyConfigType = `${prefix}istio.mesh.v1alpha1.ProxyConfig`;
/** What is patched in the bootstrap of the proxy's own start: its agent asks, once. */
export const bootstrapType = `${prefix}envoy.config.bootstrap.v3.Bootstrap`;
/** The one resource of that type. */
export const bootstrapPatchesName = 'patches';
/** A client reports with it how it is; it is never answered (spec/discovery.md §7.1). */
export const healthType = `${prefix}istio.v1.HealthInformation`;

/** Questions about the control plane, asked of it as if they were resources: answered once, not watched (§7.1). */
const debugType = 'istio.io/debug';

export function isAskedOnce(typeUrl: string): boolean {
  return typeUrl === debugType || typeUrl.startsWith(`${debugType}/`);
}

/** Make before break: what others refer to goes first (§6.6). Types that are not in it come after, in any order. */
const pushOrder: readonly string[] = [clusterType, endpointType, listenerType, routeType, secretType];

/**
 * Types of configuration, for clients that are control planes (docs/config-over-xds.md): `networking.istio.io/v1/VirtualService`. Those that
 * Istio's client requests are listed, and their older versions.
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

const watched: ReadonlySet<string> = new Set([
  ...configTypes,
  ...pushOrder,
  extensionType,
  nameTableType,
  proxyConfigType,
  bootstrapType,
]);

/**
 * Whether a client can watch the type at all. What it says of any other is not kept: a client's text never becomes the key
 * of a record, and there are no more watches than types here.
 */
export function isWatchable(typeUrl: string): boolean {
  return watched.has(typeUrl);
}

const subscribedByName: ReadonlySet<string> = new Set([
  endpointType,
  routeType,
  secretType,
  extensionType,
  bootstrapType,
]);

/**
 * Whether a client must name what it wants of this type, and a response may carry some of it. The other types can be
 * asked for as a whole, and a state-of-the-world response carries all that was asked for (§7.1).
 */
export function isByName(typeUrl: string): boolean {
  return subscribedByName.has(typeUrl);
}

const independent: ReadonlySet<string> = new Set([secretType, nameTableType, proxyConfigType, ...configTypes]);

/**
 * Whether resources of the type refer to none that a push serves before them. Such a change never waits for another type: a client may
 * acknowledge clusters only when it has a secret that they fetch.
 */
export function isIndependent(typeUrl: string): boolean {
  return independent.has(typeUrl);
}

const ranks: ReadonlyMap<string, number> = new Map(pushOrder.map((typeUrl, rank) => [typeUrl, rank]));

/** Type URLs in the order in which a push serves them. */
export function inPushOrder(typeUrls: readonly string[]): readonly string[] {
  if (typeUrls.length < 2) return typeUrls;
  const rank = (typeUrl: string): number => ranks.get(typeUrl) ?? pushOrder.length;
  return [...typeUrls].sort((a, b) => rank(a) - rank(b));
}
