/** Whether a change matters to a proxy, and for which kinds of resources (spec/discovery.md §6.5). */
import { type ConfigKey, configKeyText } from './config.ts';
import type { Proxy } from './proxy.ts';
import type { PushContext } from './push-context.ts';
import { endpointsKey, type ServiceTarget, serviceKey } from './service.ts';

/** Types of resources, by the names of their services. */
export type PushedType = 'CDS' | 'EDS' | 'LDS' | 'RDS' | 'SDS' | 'NDS' | 'ECDS' | 'PCDS';

export interface Change {
  /** Everything may have changed. */
  readonly forced: boolean;
  readonly keys: readonly ConfigKey[];
}

const everyType: readonly PushedType[] = ['CDS', 'EDS', 'LDS', 'RDS', 'SDS', 'NDS', 'ECDS', 'PCDS'];

const byTypeUrl: Readonly<Record<string, PushedType>> = {
  'type.googleapis.com/envoy.config.cluster.v3.Cluster': 'CDS',
  'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment': 'EDS',
  'type.googleapis.com/envoy.config.listener.v3.Listener': 'LDS',
  'type.googleapis.com/envoy.config.route.v3.RouteConfiguration': 'RDS',
  'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret': 'SDS',
  'type.googleapis.com/istio.networking.nds.v1.NameTable': 'NDS',
  'type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig': 'ECDS',
  'type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig': 'PCDS',
};

/** Undefined for types that no rule speaks of: those are always concerned. */
export function pushedTypeOf(typeUrl: string): PushedType | undefined {
  return byTypeUrl[typeUrl];
}

/** Kinds whose change does not change the type. */
const withoutEffect: Readonly<Record<'CDS' | 'EDS' | 'LDS' | 'RDS' | 'NDS', ReadonlySet<string>>> = {
  CDS: new Set([
    ...['WorkloadEntry', 'WorkloadGroup', 'AuthorizationPolicy', 'RequestAuthentication', 'Secret', 'Telemetry'],
    ...['WasmPlugin', 'TrafficExtension', 'ProxyConfig', 'DNSName', 'Endpoints', 'Address'],
  ]),
  EDS: new Set([
    ...['Gateway', 'VirtualService', 'WorkloadGroup', 'AuthorizationPolicy', 'RequestAuthentication', 'Secret'],
    ...['Telemetry', 'WasmPlugin', 'TrafficExtension', 'ProxyConfig', 'DNSName', 'Sidecar', 'Address'],
  ]),
  LDS: new Set(['WorkloadGroup', 'WorkloadEntry', 'Secret', 'ProxyConfig', 'DNSName', 'Endpoints', 'Address']),
  RDS: new Set([
    ...['WorkloadEntry', 'WorkloadGroup', 'AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication'],
    ...['Secret', 'WasmPlugin', 'TrafficExtension', 'Telemetry', 'ProxyConfig', 'DNSName', 'Endpoints'],
  ]),
  NDS: new Set([
    ...['Gateway', 'VirtualService', 'DestinationRule', 'Secret', 'Telemetry', 'EnvoyFilter', 'WorkloadEntry'],
    ...['WorkloadGroup', 'AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication', 'WasmPlugin'],
    ...['TrafficExtension', 'ProxyConfig', 'MeshConfig', 'Endpoints'],
  ]),
};

/** Types that only these kinds change. */
const onlyBy: Readonly<Record<'SDS' | 'ECDS' | 'PCDS', ReadonlySet<string>>> = {
  SDS: new Set(['Secret', 'ConfigMap']),
  ECDS: new Set(['EnvoyFilter', 'TrafficExtension', 'WasmPlugin', 'Secret']),
  PCDS: new Set(['MeshConfig']),
};

/** Kinds that hold for a namespace, or from the root namespace for all. */
const namespacePolicies: ReadonlySet<string> = new Set([
  ...['PeerAuthentication', 'RequestAuthentication', 'AuthorizationPolicy', 'Telemetry', 'EnvoyFilter'],
  ...['WasmPlugin', 'TrafficExtension', 'ProxyConfig'],
]);

/** Kinds that a sidecar's scope answers for; a router's scope (all that it sees) for services only. */
const scopedForSidecars: ReadonlySet<string> = new Set([
  ...['ServiceEntry', 'Endpoints', 'VirtualService', 'DestinationRule', 'Sidecar'],
]);
const scopedForRouters: ReadonlySet<string> = new Set(['ServiceEntry', 'Endpoints']);

/**
 * The types of resources that may differ for a proxy after a change; empty: it need not be pushed to.
 *
 * @param before the context that the proxy was last served from: what went away was in it. Absent: everything is new.
 */
export function concernedTypes(
  change: Change,
  proxy: Proxy,
  now: PushContext,
  before: PushContext | undefined,
): ReadonlySet<PushedType> {
  if (change.forced || before === undefined) return new Set(everyType);
  const targets = [now.serviceTargetsOf(proxy), before.serviceTargetsOf(proxy)] as const;
  const own = new Set(targets.flat().flatMap(targetKeys));
  const kept = change.keys.filter((key) => own.has(configKeyText(key)) || mayConcern(key, proxy, now, before));
  if (kept.length === 0 && sameTargets(...targets)) return new Set();
  const types = new Set(everyType.filter((type) => kept.some(({ kind }) => changes(kind, type, proxy))));
  // Endpoints alone change no listener, unless they make the proxy's own workload serve something else.
  if (!sameTargets(...targets)) for (const type of ['CDS', 'LDS', 'RDS'] as const) types.add(type);
  return types;
}

function targetKeys({ service }: ServiceTarget): string[] {
  return [serviceKey(service), endpointsKey(service), service.origin].map(configKeyText);
}

function sameTargets(a: readonly ServiceTarget[], b: readonly ServiceTarget[]): boolean {
  const ids = (targets: readonly ServiceTarget[]): string =>
    targets
      .map(({ service, port, targetPort }) => `${service.namespace}/${service.hostname}:${port.number}>${targetPort}`)
      .join();
  return a === b || ids(a) === ids(b);
}

function mayConcern(key: ConfigKey, proxy: Proxy, now: PushContext, before: PushContext): boolean {
  const router = proxy.type === 'router';
  if (key.kind === (router ? 'Sidecar' : 'Gateway')) return false;
  if ((router ? scopedForRouters : scopedForSidecars).has(key.kind)) {
    return now.sidecarScopeFor(proxy).dependsOn(key) || before.sidecarScopeFor(proxy).dependsOn(key);
  }
  if (!router && namespacePolicies.has(key.kind)) {
    return key.namespace === proxy.configNamespace || key.namespace === now.mesh.rootNamespace;
  }
  return true;
}

function changes(kind: string, type: PushedType, proxy: Proxy): boolean {
  switch (type) {
    case 'SDS':
    case 'ECDS':
    case 'PCDS':
      return onlyBy[type].has(kind);
    case 'CDS':
      // Of gateways, only routers have clusters.
      return !withoutEffect.CDS.has(kind) && (kind !== 'Gateway' || proxy.type === 'router');
    case 'EDS':
    case 'LDS':
    case 'RDS':
    case 'NDS':
      return !withoutEffect[type].has(kind);
  }
}
