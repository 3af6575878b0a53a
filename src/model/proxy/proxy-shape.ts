/**
 * The properties of a proxy that affect its configuration. Generators and caches read the shape, never the proxy, so that proxies of equal shape
 * share all generated resources. A property is part of the shape if and only if some resource depends on it (src/model/README.md lists which).
 */
import { isIPv4, isIPv6 } from 'node:net';
import { isObject } from '../../runtime/json-object.ts';
import type { Config } from '../config/config.ts';
import { booleanOf } from '../fields/go-boolean.ts';
import type { EnvoyFilter } from '../kinds/envoy-filter/envoy-filter.ts';
import type { WasmPlugin } from '../kinds/extensions/wasm-plugin.ts';
import { proxySettingsFields } from '../mesh/proxy-settings.ts';
import { hasFormatTags, wasmUnsupportedReason } from '../node/envoy-build.ts';
import type { NodeType, Proxy, ProxyInterceptionMode } from '../node/proxy.ts';
import type { PushContext } from '../push-context/push-context.ts';
import type { SidecarScope } from '../push-context/sidecar-scope.ts';
import type { Service, ServiceTarget } from '../services/service.ts';

export type ProxyIpFamily = 'v4' | 'v6' | 'dual';

/** Metadata keys of the shape; other keys do not distinguish proxies. */
const shapeMetadata = [
  // `true` if the agent's DNS proxy returns auto-allocated addresses for services without addresses, else absent.
  'DNS_AUTO_ALLOCATE',
  // `true` if the agent has a DNS proxy, else absent.
  'DNS_CAPTURE',
  'HTTP10',
  'HTTP_PROXY_PORT',
  // Default idle timeout of TCP connections.
  'IDLE_TIMEOUT',
  // Whether Envoy's build has Istio's private extensions (peer metadata, statistics, ALPN), as `true` or `false`; overrides the mesh setting.
  'ISTIO_EXTENSIONS',
  // Mesh name for traces.
  'MESH_ID',
  // The fields `proxySettingsFields` of the proxy's own configuration.
  'PROXY_CONFIG',
  // `true` if the agent checks revocation lists and serves them together with CA files, else absent.
  'REVOCATION_LISTS',
  // `true` if the agent computes standard metrics from access logs; `expressions` if its Envoy also supports format strings as custom tags (1.37);
  // `stats` if Envoy computes the metrics without a chartpilot agent (1.40); else absent.
  'STANDARD_METRICS',
  // `true` if the pod cannot bind ports below 1024.
  'UNPRIVILEGED_POD',
  // `true` if the agent fetches Wasm modules and rewrites extension configurations, else absent.
  'WASM_FETCH',
  // `true` if the bootstrap has the agent's SDS server, so that resources may reference workload certificates, else absent.
  'WORKLOAD_CERTIFICATES',
] as const;

export type ShapeMetadata = Readonly<Partial<Record<(typeof shapeMetadata)[number], unknown>>>;

/** Immutable. ShapeTable interns equal shapes, so shapes are compared by identity. */
export interface ProxyShape {
  readonly type: NodeType;
  readonly configNamespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ipFamily: ProxyIpFamily;
  /** Addresses of the proxy. Empty unless they have an effect, which is rare. */
  readonly ownAddresses: readonly string[];
  /** Kubernetes node of the proxy. Empty unless it has an effect, which is rare. */
  readonly nodeName: string;
  readonly dnsDomain: string;
  /** `region/zone/subzone`. */
  readonly locality: string;
  readonly network: string;
  readonly clusterId: string;
  readonly interceptionMode: ProxyInterceptionMode;
  readonly runsWasm: boolean;
  readonly metadata: ShapeMetadata;
  /** Metadata that active EnvoyFilters match: ISTIO_VERSION if one matches versions, and the keys of metadata matches. */
  readonly matchedMetadata: Readonly<Record<string, unknown>>;
  /** Set if the proxy may receive pull secrets of its namespace, and a WasmPlugin of this namespace references one. */
  readonly pullSecrets?: true;
  readonly proxyless?: true;
  readonly serviceTargets: readonly ServiceTarget[];
}

export type ShapeContext = Pick<PushContext, 'sidecarScopeFor' | 'serviceTargetsOf' | 'workloadOf' | 'policiesFor'>;

export function ipFamilyOf(addresses: readonly string[]): ProxyIpFamily {
  const v6 = addresses.some((address) => isIPv6(address));
  const v4 = addresses.some((address) => isIPv4(address));
  return v6 ? (v4 ? 'dual' : 'v6') : 'v4';
}

export function shapeOf(proxy: Proxy, context: ShapeContext): ProxyShape {
  const resolvedProxy = knownProxy(proxy, context);
  const serviceTargets = context.serviceTargetsOf(resolvedProxy);
  return buildShape(resolvedProxy, serviceTargets, ownProxyFactsOf(resolvedProxy, context, serviceTargets));
}

const knownProxies = new WeakMap<Proxy, Proxy>();

/** Labels and locality of the registry override those of the node. The object stays the same while both are unchanged. */
export function knownProxy(proxy: Proxy, context: Pick<PushContext, 'workloadOf'>): Proxy {
  const workload = context.workloadOf(proxy);
  if (workload === undefined) return proxy;
  const { labels } = workload;
  const locality = workload.locality || proxy.locality;
  const previous = knownProxies.get(proxy);
  if (previous !== undefined && previous.labels === labels && previous.locality === locality) return previous;
  const resolvedProxy = { ...proxy, labels, locality };
  knownProxies.set(proxy, resolvedProxy);
  return resolvedProxy;
}

/** Properties that distinguish proxies only if some active object depends on them. */
export type OwnProxyFacts = Pick<ProxyShape, 'ownAddresses' | 'nodeName' | 'matchedMetadata' | 'pullSecrets'>;

export const emptyProxyFacts: OwnProxyFacts = { ownAddresses: [], nodeName: '', matchedMetadata: {} };

export function ownProxyFactsOf(
  proxy: Proxy,
  context: Pick<PushContext, 'sidecarScopeFor' | 'policiesFor'>,
  serviceTargets: readonly ServiceTarget[],
): OwnProxyFacts {
  const scope = context.sidecarScopeFor(proxy);
  const needsAddresses = dependsOnAddresses(proxy.type, scope, serviceTargets);
  const needsNodeName = hasNodeLocalServices(scope.services);
  // A router's services affect which Gateway objects it implements.
  const subject = proxy.type === 'router' && serviceTargets.length > 0 ? { ...proxy, serviceTargets } : proxy;
  const { envoyFilters, wasmPlugins } = context.policiesFor(subject);
  const matchedKeys = keysMatchedBy(envoyFilters);
  const needsPullSecrets = proxy.isOfNamespace === true && namePullSecret(wasmPlugins, proxy.configNamespace);
  if (!needsAddresses && !needsNodeName && !needsPullSecrets && matchedKeys.length === 0) return emptyProxyFacts;
  return {
    ...(needsPullSecrets && { pullSecrets: true as const }),
    ownAddresses: needsAddresses ? proxy.ipAddresses : [],
    nodeName: needsNodeName ? nodeNameOf(proxy) : '',
    matchedMetadata: pickFields(proxy.metadata, matchedKeys),
  };
}

/** Whether proxies of this shape keep equal shapes in this context, given unchanged service targets. */
export function isCompleteShape(
  shape: ProxyShape,
  context: Pick<PushContext, 'sidecarScopeFor' | 'policiesFor'>,
): boolean {
  const { ownAddresses, nodeName, matchedMetadata, type, serviceTargets } = shape;
  if (shape.pullSecrets || ownAddresses.length > 0 || nodeName !== '' || Object.keys(matchedMetadata).length > 0)
    return false;
  const scope = context.sidecarScopeFor(shape);
  if (dependsOnAddresses(type, scope, serviceTargets) || hasNodeLocalServices(scope.services)) return false;
  const { envoyFilters, wasmPlugins } = context.policiesFor(shape);
  return keysMatchedBy(envoyFilters).length === 0 && !namePullSecret(wasmPlugins, shape.configNamespace);
}

function namePullSecret(plugins: readonly Config<WasmPlugin>[], namespace: string): boolean {
  return plugins.some((plugin) => plugin.namespace === namespace && !!plugin.spec.imagePullSecret);
}

/** Prefers the name that the agent reports to the name from the pod's labels. */
function nodeNameOf({ metadata, labels }: Pick<Proxy, 'metadata' | 'labels'>): string {
  const reportedValue = metadata.NODE_NAME;
  return typeof reportedValue === 'string' && reportedValue !== ''
    ? reportedValue
    : (labels['kubernetes.io/hostname'] ?? '');
}

const listsOfNodes = new WeakMap<readonly Service[], boolean>();

function hasNodeLocalServices(services: readonly Service[]): boolean {
  let hasNodeLists = listsOfNodes.get(services);
  if (hasNodeLists === undefined) {
    hasNodeLists = services.some(({ attributes }) => {
      return attributes?.nodeLocal === true || attributes?.trafficDistribution === 'PreferSameNode';
    });
    listsOfNodes.set(services, hasNodeLists);
  }
  return hasNodeLists;
}

const cachedMatchedKeys = new WeakMap<readonly Config<EnvoyFilter>[], readonly string[]>();

function keysMatchedBy(filters: readonly Config<EnvoyFilter>[]): readonly string[] {
  if (filters.length === 0) return [];
  let matchedKeys = cachedMatchedKeys.get(filters);
  if (matchedKeys === undefined) {
    const proxies = filters.flatMap(({ spec }) => spec.configPatches.map(({ match }) => match.proxy ?? {}));
    const keys = proxies.flatMap(({ proxyVersion, metadata = {} }) => [
      ...(proxyVersion === undefined ? [] : ['ISTIO_VERSION']),
      ...Object.keys(metadata),
    ]);
    matchedKeys = [...new Set(keys)].sort();
    cachedMatchedKeys.set(filters, matchedKeys);
  }
  return matchedKeys;
}

function pickFields(metadata: Proxy['metadata'], keys: readonly string[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(keys.filter((key) => metadata[key] !== undefined).map((key) => [key, metadata[key]]));
}

export function buildShape(proxy: Proxy, serviceTargets: readonly ServiceTarget[], facts: OwnProxyFacts): ProxyShape {
  const { type, configNamespace, labels, dnsDomain, locality, network, clusterId, interceptionMode } = proxy;
  return {
    type,
    configNamespace,
    labels,
    ipFamily: ipFamilyOf(proxy.ipAddresses),
    ...facts,
    dnsDomain,
    locality,
    network,
    clusterId,
    interceptionMode,
    runsWasm: wasmUnsupportedReason(proxy.envoy) === undefined,
    ...(proxy.proxyless && { proxyless: true as const }),
    metadata: readMetadata(proxy),
    serviceTargets,
  };
}

/** Filter chains of ingress listeners have the address in their name. Pods of a headless service have their own listeners. */
function dependsOnAddresses(
  type: NodeType,
  scope: Pick<SidecarScope, 'ingressListeners'>,
  serviceTargets: readonly ServiceTarget[],
): boolean {
  if (type === 'router') return false;
  if (serviceTargets.some(({ service }) => isHeadless(service))) return true;
  return (scope.ingressListeners ?? []).length > 0;
}

/** Clients address the pods of a Kubernetes Service without a virtual IP directly. */
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
    ...sentMetadata
  } = metadata;
  return {
    ...pickFields(sentMetadata, shapeMetadata),
    // Equivalent metadata results in the same value.
    ...(hasSecretServer(metadata) && { WORKLOAD_CERTIFICATES: 'true' }),
    ...(isTrue(metadata.REVOCATION_LISTS) && hasSecretServer(metadata) && { REVOCATION_LISTS: 'true' }),
    ...(isTrue(metadata.WASM_FETCH) && { WASM_FETCH: 'true' }),
    ...standardMetricsOf(metadata, envoy),
    ...(isTrue(metadata.DNS_CAPTURE) && { DNS_CAPTURE: 'true' }),
    ...(isTrue(metadata.DNS_AUTO_ALLOCATE) && { DNS_AUTO_ALLOCATE: 'true' }),
    ...(metadata.ISTIO_EXTENSIONS !== undefined && { ISTIO_EXTENSIONS: String(isTrue(metadata.ISTIO_EXTENSIONS)) }),
    ...proxyConfigMetadata(metadata.PROXY_CONFIG),
  };
}

/** WASM_FETCH identifies a chartpilot agent, because every such agent reports it, even without metrics. */
function standardMetricsOf(
  { STANDARD_METRICS: counts, WASM_FETCH: hasAgent }: Proxy['metadata'],
  envoy: Proxy['envoy'],
): Pick<ShapeMetadata, 'STANDARD_METRICS'> {
  if (isTrue(counts)) return { STANDARD_METRICS: hasFormatTags(envoy) ? 'expressions' : 'true' };
  const isWithoutAgent = counts === undefined && hasAgent === undefined;
  return isWithoutAgent && envoy?.hasStatsLogger ? { STANDARD_METRICS: 'stats' } : {};
}

function proxyConfigMetadata(reportedValue: unknown): Pick<ShapeMetadata, 'PROXY_CONFIG'> {
  const config = typeof reportedValue === 'string' ? parsedJson(reportedValue) : reportedValue;
  if (!isObject(config)) return {};
  const settings = pickFields(config, proxySettingsFields);
  return Object.keys(settings).length === 0 ? {} : { PROXY_CONFIG: settings };
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Metadata that every agent version writes identifies older agents, which do not report the key. */
function hasSecretServer({ WORKLOAD_CERTIFICATES: reportedValue, ISTIO_VERSION: version }: Proxy['metadata']): boolean {
  return reportedValue === undefined ? version !== undefined && version !== '' : isTrue(reportedValue);
}

function isTrue(value: unknown): boolean {
  return value === true || (typeof value === 'string' && booleanOf(value) === true);
}
