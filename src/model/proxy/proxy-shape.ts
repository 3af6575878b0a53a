/**
 * What counts of a proxy. Generators and caches read a shape and never the proxy itself, so that proxies that differ in
 * nothing that matters share everything that is made for them: a push to many of them costs one generation.
 *
 * A field belongs here when, and only when, some resource depends on it:
 *
 * | field | what depends on it |
 * |---|---|
 * | `type` | which listeners, routes and clusters there are at all |
 * | `configNamespace` | what is visible, which Sidecar object and which destination rules hold, `sourceNamespace` of matches |
 * | `labels` | which Sidecar, Gateway and destination rules select it, `sourceLabels` of matches, failover priorities |
 * | `ipFamily` | addresses to bind and to connect from, address families of DNS |
 * | `ownAddresses` | inbound listeners that a Sidecar object says; listeners of a headless service's pods |
 * | `nodeName` | endpoints of services that keep to the client's node |
 * | `dnsDomain` | short names of services in virtual hosts |
 * | `locality` | order and weight of endpoints |
 * | `network`, `clusterId` | which endpoints are reached directly, which through a gateway (spec/discovery.md §5.7) |
 * | `interceptionMode` | whether listeners bind their ports, and are transparent |
 * | `runsWasm` | whether Wasm code, of WasmPlugins and EnvoyFilters, is sent, or what stands for it |
 * | `metadata` | see {@link shapeMetadata} |
 * | `askedMetadata` | which patches of EnvoyFilters hold |
 * | `pullSecrets` | whether pull secrets for images of WasmPlugins are sent |
 * | `proxyless` | everything: a gRPC client or server is sent other forms than an Envoy |
 * | `serviceTargets` | inbound listeners and clusters, ports of a gateway |
 *
 * Its id, name, cluster name, service account, the addresses as such and all other metadata count for nothing.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { isObject } from '../../runtime/json-object.ts';
import type { Config } from '../config/config.ts';
import { booleanOf } from '../fields/go-boolean.ts';
import type { EnvoyFilter } from '../kinds/envoy-filter/envoy-filter.ts';
import type { WasmPlugin } from '../kinds/extensions/wasm-plugin.ts';
import { proxySettingsFields } from '../mesh/proxy-settings.ts';
import { hasFormatTags, whyNoWasm } from '../node/envoy-build.ts';
import type { InterceptionMode, NodeType, Proxy } from '../node/proxy.ts';
import type { PushContext } from '../push-context/push-context.ts';
import type { SidecarScope } from '../push-context/sidecar-scope.ts';
import type { Service, ServiceTarget } from '../services/service.ts';

/** Which families a proxy's own addresses belong to; IPv4 when it told none. */
export type IpFamily = 'v4' | 'v6' | 'dual';

/** The metadata of a node that generators read. What is not listed cannot make two proxies different. */
const shapeMetadata = [
  // `true`: the agent answers DNS queries, with stand-in addresses of services that have none; else absent.
  'DNS_AUTO_ALLOCATE',
  // `true`: the agent answers DNS queries; else absent.
  'DNS_CAPTURE',
  // `1`: HTTP/1.0 is taken.
  'HTTP10',
  // Where applications find their HTTP proxy.
  'HTTP_PROXY_PORT',
  // Of TCP connections without a rule of their own.
  'IDLE_TIMEOUT',
  // `true`: Envoy's build has the mesh's private extensions (peer metadata, statistics, ALPN); `false`: it has not, whatever the mesh says.
  'ISTIO_EXTENSIONS',
  // A name of the mesh, for traces.
  'MESH_ID',
  // What the proxy's own configuration says of what is generated: the fields of `proxySettingsFields`.
  'PROXY_CONFIG',
  // `true`: the agent serves files of authorities together with their revocation lists, which it checks; else absent.
  'REVOCATION_LISTS',
  // `true`: the agent counts standard metrics from access logs; `expressions`: and its Envoy takes format strings as custom tags (1.37);
  // `stats`: there is no agent of ours, and Envoy counts them itself (1.40); else absent.
  'STANDARD_METRICS',
  // `true`: the pod may not bind ports below 1024.
  'UNPRIVILEGED_POD',
  // `true`: the agent fetches Wasm modules, and rewrites extension configurations; else absent.
  'WASM_FETCH',
  // `true`: the bootstrap has the agent's secret server, so that resources may refer to workload certificates; else absent.
  'WORKLOAD_CERTIFICATES',
] as const;

export type ShapeMetadata = Readonly<Partial<Record<(typeof shapeMetadata)[number], unknown>>>;

/** Immutable. Of equal shapes there is one object (see ShapeTable), so shapes are compared by identity. */
export interface ProxyShape {
  readonly type: NodeType;
  readonly configNamespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ipFamily: IpFamily;
  /** Empty where they make no difference, which is almost everywhere. */
  readonly ownAddresses: readonly string[];
  /** The Kubernetes node that it runs on. Empty where it makes no difference, which is almost everywhere. */
  readonly nodeName: string;
  readonly dnsDomain: string;
  /** `region/zone/subzone`. */
  readonly locality: string;
  readonly network: string;
  readonly clusterId: string;
  readonly interceptionMode: InterceptionMode;
  /** The Envoy is of a version and build that can run Wasm code. */
  readonly runsWasm: boolean;
  readonly metadata: ShapeMetadata;
  /** What the EnvoyFilters in force ask the node for: ISTIO_VERSION where one matches versions, the keys that they match. */
  readonly askedMetadata: Readonly<Record<string, unknown>>;
  /** It may have the pull secrets of its namespace, and a WasmPlugin of its namespace names one. */
  readonly pullSecrets?: true;
  /** A client or server of gRPC, without an Envoy. Absent: an Envoy. */
  readonly proxyless?: true;
  /** The service ports that the workload itself serves. */
  readonly serviceTargets: readonly ServiceTarget[];
}

/** What of a context a shape depends on. */
export type ShapeContext = Pick<PushContext, 'sidecarScopeFor' | 'serviceTargetsOf' | 'workloadOf' | 'policiesFor'>;

export function ipFamilyOf(addresses: readonly string[]): IpFamily {
  const v6 = addresses.some((address) => isIPv6(address));
  const v4 = addresses.some((address) => isIPv4(address));
  return v6 ? (v4 ? 'dual' : 'v6') : 'v4';
}

/** The shape of a proxy in a context; a ShapeTable makes equal ones the same. */
export function shapeOf(proxy: Proxy, context: ShapeContext): ProxyShape {
  const known = knownProxy(proxy, context);
  const serviceTargets = context.serviceTargetsOf(known);
  return makeShape(known, serviceTargets, ownFacts(known, context, serviceTargets));
}

const knownProxies = new WeakMap<Proxy, Proxy>();

/**
 * The proxy with the labels and the place that its registry knows of its workload: those count, whatever the node said
 * (§7.2 row 10). The same object as long as they are the same.
 */
export function knownProxy(proxy: Proxy, context: Pick<PushContext, 'workloadOf'>): Proxy {
  const workload = context.workloadOf(proxy);
  if (workload === undefined) return proxy;
  const { labels } = workload;
  const locality = workload.locality || proxy.locality;
  const before = knownProxies.get(proxy);
  if (before !== undefined && before.labels === labels && before.locality === locality) return before;
  const known = { ...proxy, labels, locality };
  knownProxies.set(proxy, known);
  return known;
}

/** What tells proxies apart only where something in force looks at it. */
export type OwnFacts = Pick<ProxyShape, 'ownAddresses' | 'nodeName' | 'askedMetadata' | 'pullSecrets'>;

/** The facts of almost every proxy: there are none. */
export const noFacts: OwnFacts = { ownAddresses: [], nodeName: '', askedMetadata: {} };

export function ownFacts(
  proxy: Proxy,
  context: Pick<PushContext, 'sidecarScopeFor' | 'policiesFor'>,
  serviceTargets: readonly ServiceTarget[],
): OwnFacts {
  const scope = context.sidecarScopeFor(proxy);
  const addresses = dependsOnAddresses(proxy.type, scope, serviceTargets);
  const node = keepsToNodes(scope.services);
  // Which Gateway objects a router carries out depends on its services.
  const subject = proxy.type === 'router' && serviceTargets.length > 0 ? { ...proxy, serviceTargets } : proxy;
  const { envoyFilters, wasmPlugins } = context.policiesFor(subject);
  const asked = askedBy(envoyFilters);
  const pulls = proxy.isOfNamespace === true && namePullSecret(wasmPlugins, proxy.configNamespace);
  if (!addresses && !node && !pulls && asked.length === 0) return noFacts;
  return {
    ...(pulls && { pullSecrets: true as const }),
    ownAddresses: addresses ? proxy.ipAddresses : [],
    nodeName: node ? nodeNameOf(proxy) : '',
    askedMetadata: chosen(proxy.metadata, asked),
  };
}

/**
 * Whether nothing in force looks at what tells the proxies of a shape apart, and nothing of it is in the shape: then it says all
 * of each of them that counts in the context, as long as they serve what they served.
 */
export function saysAll(shape: ProxyShape, context: Pick<PushContext, 'sidecarScopeFor' | 'policiesFor'>): boolean {
  const { ownAddresses, nodeName, askedMetadata, type, serviceTargets } = shape;
  if (shape.pullSecrets || ownAddresses.length > 0 || nodeName !== '' || Object.keys(askedMetadata).length > 0)
    return false;
  const scope = context.sidecarScopeFor(shape);
  if (dependsOnAddresses(type, scope, serviceTargets) || keepsToNodes(scope.services)) return false;
  const { envoyFilters, wasmPlugins } = context.policiesFor(shape);
  return askedBy(envoyFilters).length === 0 && !namePullSecret(wasmPlugins, shape.configNamespace);
}

/** Secrets are sent to proxies of their own namespace only. */
function namePullSecret(plugins: readonly Config<WasmPlugin>[], namespace: string): boolean {
  return plugins.some((plugin) => plugin.namespace === namespace && !!plugin.spec.imagePullSecret);
}

/** Name of the proxy's machine, as the agent says, else as the registry knows of the workload's pod. */
function nodeNameOf({ metadata, labels }: Pick<Proxy, 'metadata' | 'labels'>): string {
  const said = metadata.NODE_NAME;
  return typeof said === 'string' && said !== '' ? said : (labels['kubernetes.io/hostname'] ?? '');
}

const listsOfNodes = new WeakMap<readonly Service[], boolean>();

/** Whether endpoints of any of the services are chosen by the client's node. */
function keepsToNodes(services: readonly Service[]): boolean {
  let known = listsOfNodes.get(services);
  if (known === undefined) {
    known = services.some(({ attributes }) => {
      return attributes?.nodeLocal === true || attributes?.trafficDistribution === 'PreferSameNode';
    });
    listsOfNodes.set(services, known);
  }
  return known;
}

const keysAsked = new WeakMap<readonly Config<EnvoyFilter>[], readonly string[]>();

/** Keys of metadata that patches match, in order. */
function askedBy(filters: readonly Config<EnvoyFilter>[]): readonly string[] {
  if (filters.length === 0) return [];
  let known = keysAsked.get(filters);
  if (known === undefined) {
    const proxies = filters.flatMap(({ spec }) => spec.configPatches.map(({ match }) => match.proxy ?? {}));
    const keys = proxies.flatMap(({ proxyVersion, metadata = {} }) => [
      ...(proxyVersion === undefined ? [] : ['ISTIO_VERSION']),
      ...Object.keys(metadata),
    ]);
    known = [...new Set(keys)].sort();
    keysAsked.set(filters, known);
  }
  return known;
}

function chosen(metadata: Proxy['metadata'], keys: readonly string[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(keys.filter((key) => metadata[key] !== undefined).map((key) => [key, metadata[key]]));
}

export function makeShape(proxy: Proxy, serviceTargets: readonly ServiceTarget[], own: OwnFacts): ProxyShape {
  const { type, configNamespace, labels, dnsDomain, locality, network, clusterId, interceptionMode } = proxy;
  return {
    type,
    configNamespace,
    labels,
    ipFamily: ipFamilyOf(proxy.ipAddresses),
    ...own,
    dnsDomain,
    locality,
    network,
    clusterId,
    interceptionMode,
    runsWasm: whyNoWasm(proxy.envoy) === undefined,
    ...(proxy.proxyless && { proxyless: true as const }),
    metadata: readMetadata(proxy),
    serviceTargets,
  };
}

/** Of sidecars: of one whose Sidecar object says what it takes in (names of its chains), and of a headless service's pod. */
function dependsOnAddresses(
  type: NodeType,
  scope: Pick<SidecarScope, 'ingressListeners'>,
  serviceTargets: readonly ServiceTarget[],
): boolean {
  if (type === 'router') return false;
  if (serviceTargets.some(({ service }) => isHeadless(service))) return true;
  return (scope.ingressListeners ?? []).length > 0;
}

/** A Kubernetes Service without a virtual IP: its pods are addressed one by one. */
export function isHeadless(service: Pick<Service, 'resolution' | 'registry'>): boolean {
  return service.resolution === 'Passthrough' && service.registry === 'Kubernetes';
}

function readMetadata({ metadata, envoy }: Proxy): ShapeMetadata {
  const {
    WORKLOAD_CERTIFICATES: _1,
    DNS_CAPTURE: _2,
    DNS_AUTO_ALLOCATE: _3,
    REVOCATION_LISTS: _6,
    ISTIO_EXTENSIONS: _4,
    PROXY_CONFIG: _5,
    WASM_FETCH: _7,
    STANDARD_METRICS: _8,
    ...asSent
  } = metadata;
  return {
    ...chosen(asSent, shapeMetadata),
    // What was said in one of several ways is written in one form.
    ...(hasSecretServer(metadata) && { WORKLOAD_CERTIFICATES: 'true' }),
    ...(isTrue(metadata.REVOCATION_LISTS) && hasSecretServer(metadata) && { REVOCATION_LISTS: 'true' }),
    ...(isTrue(metadata.WASM_FETCH) && { WASM_FETCH: 'true' }),
    ...standardMetricsOf(metadata, envoy),
    ...(isTrue(metadata.DNS_CAPTURE) && { DNS_CAPTURE: 'true' }),
    ...(isTrue(metadata.DNS_AUTO_ALLOCATE) && { DNS_AUTO_ALLOCATE: 'true' }),
    ...(metadata.ISTIO_EXTENSIONS !== undefined && { ISTIO_EXTENSIONS: String(isTrue(metadata.ISTIO_EXTENSIONS)) }),
    ...ownSettings(metadata.PROXY_CONFIG),
  };
}

/** Each agent of ours says that it fetches Wasm modules, also if it counts nothing. */
function standardMetricsOf(
  { STANDARD_METRICS: counts, WASM_FETCH: hasAgent }: Proxy['metadata'],
  envoy: Proxy['envoy'],
): Pick<ShapeMetadata, 'STANDARD_METRICS'> {
  if (isTrue(counts)) return { STANDARD_METRICS: hasFormatTags(envoy) ? 'expressions' : 'true' };
  const isWithoutAgent = counts === undefined && hasAgent === undefined;
  return isWithoutAgent && envoy?.hasStatsLogger ? { STANDARD_METRICS: 'stats' } : {};
}

/** Of a proxy's own configuration what counts, if it says any of it; an agent may send it as JSON in a text. */
function ownSettings(said: unknown): Pick<ShapeMetadata, 'PROXY_CONFIG'> {
  const config = typeof said === 'string' ? parsedJson(said) : said;
  if (!isObject(config)) return {};
  const settings = chosen(config, proxySettingsFields);
  return Object.keys(settings).length === 0 ? {} : { PROXY_CONFIG: settings };
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Whether there is an agent beside the Envoy that serves it certificates: as the node says, and if it says nothing, when
 * an agent wrote the node (which agent it was, its version, makes no difference).
 */
function hasSecretServer({ WORKLOAD_CERTIFICATES: said, ISTIO_VERSION: version }: Proxy['metadata']): boolean {
  return said === undefined ? version !== undefined && version !== '' : isTrue(said);
}

function isTrue(value: unknown): boolean {
  return value === true || (typeof value === 'string' && booleanOf(value) === true);
}
