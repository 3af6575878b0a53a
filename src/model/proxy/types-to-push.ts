import {
  bootstrapType,
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  nameTableType,
  proxyConfigType,
  routeType,
  secretType,
} from '../../../machines/discovery/xds/ads-types.ts';
import { type ConfigKey, configKeyText } from '../config/config.ts';
import type { NodeType } from '../node/proxy.ts';
import type { PushContext } from '../push-context/push-context.ts';
import { endpointsKey, type Service, serviceKey } from '../services/service.ts';
import type { ProxyShape } from './proxy-shape.ts';

export type PushedType = 'CDS' | 'EDS' | 'LDS' | 'RDS' | 'SDS' | 'NDS' | 'ECDS' | 'PCDS' | 'BDS';

export interface PushChange {
  readonly forced: boolean;
  readonly keys: readonly ConfigKey[];
}

const allTypes: readonly PushedType[] = ['CDS', 'EDS', 'LDS', 'RDS', 'SDS', 'NDS', 'ECDS', 'PCDS', 'BDS'];

export const everyType: ReadonlySet<PushedType> = new Set(allTypes);

/** A Map, because clients choose the URL. */
const typeByUrl: ReadonlyMap<string, PushedType> = new Map<string, PushedType>([
  [clusterType, 'CDS'],
  [endpointType, 'EDS'],
  [listenerType, 'LDS'],
  [routeType, 'RDS'],
  [secretType, 'SDS'],
  [nameTableType, 'NDS'],
  [extensionType, 'ECDS'],
  [proxyConfigType, 'PCDS'],
  [bootstrapType, 'BDS'],
]);

/** Returns `undefined` for types without a rule, which are always affected. */
export function pushedTypeOf(typeUrl: string): PushedType | undefined {
  return typeByUrl.get(typeUrl);
}

/** True for types without a rule. */
export function changesType(kind: string, typeUrl: string, nodeType: NodeType): boolean {
  const type = pushedTypeOf(typeUrl);
  return type === undefined || affectsType(kind, type, nodeType);
}

const kindsWithoutEffect: Readonly<Record<'CDS' | 'EDS' | 'LDS' | 'RDS' | 'NDS', ReadonlySet<string>>> = {
  CDS: new Set([
    ...['WorkloadEntry', 'WorkloadGroup', 'AuthorizationPolicy', 'RequestAuthentication', 'Secret', 'Telemetry'],
    ...['WasmPlugin', 'TrafficExtension', 'ProxyConfig', 'DNSName', 'Endpoints', 'Address'],
    'ReferenceGrant',
  ]),
  EDS: new Set([
    ...['Gateway', 'VirtualService', 'WorkloadGroup', 'AuthorizationPolicy', 'RequestAuthentication', 'Secret'],
    ...['Telemetry', 'WasmPlugin', 'TrafficExtension', 'ProxyConfig', 'DNSName', 'Sidecar', 'Address', 'ConfigMap'],
    'ReferenceGrant',
  ]),
  LDS: new Set([
    ...['WorkloadGroup', 'WorkloadEntry', 'Secret', 'ProxyConfig', 'DNSName', 'Endpoints', 'Address', 'ConfigMap'],
    'ReferenceGrant',
  ]),
  RDS: new Set([
    ...['WorkloadEntry', 'WorkloadGroup', 'AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication'],
    ...['Secret', 'WasmPlugin', 'TrafficExtension', 'Telemetry', 'ProxyConfig', 'DNSName', 'Endpoints', 'ConfigMap'],
    'ReferenceGrant',
  ]),
  NDS: new Set([
    ...['Gateway', 'VirtualService', 'DestinationRule', 'Secret', 'Telemetry', 'EnvoyFilter', 'WorkloadEntry'],
    ...['WorkloadGroup', 'AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication', 'WasmPlugin'],
    ...['TrafficExtension', 'ProxyConfig', 'MeshConfig', 'Endpoints', 'ConfigMap'],
    ...['ReferenceGrant', 'BackendTLSPolicy'],
  ]),
};

const kindsByType: Readonly<Record<'SDS' | 'ECDS' | 'PCDS' | 'BDS', ReadonlySet<string>>> = {
  SDS: new Set(['Secret', 'ConfigMap', 'ReferenceGrant']),
  ECDS: new Set([
    ...['EnvoyFilter', 'TrafficExtension', 'WasmPlugin', 'Secret'],
    // These kinds determine whether the proxy can reach the services that serve Wasm code.
    ...['ServiceEntry', 'Sidecar', 'VirtualService'],
  ]),
  PCDS: new Set(['MeshConfig']),
  BDS: new Set(['EnvoyFilter']),
};

/** Changes of these kinds are reported for the services, endpoints and rules that are derived from them. */
const kindsWithOtherNames: ReadonlySet<string> = new Set([
  ...['EndpointSlice', 'Pod', 'Node', 'Namespace', 'Ingress', 'IngressClass', 'Proxy'],
  ...['GatewayClass', 'KubernetesGateway', 'HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute'],
]);

/** Kinds that apply to their namespace, or to all namespaces if they are in the root namespace. */
const namespacePolicies: ReadonlySet<string> = new Set([
  ...['PeerAuthentication', 'RequestAuthentication', 'AuthorizationPolicy', 'Telemetry', 'EnvoyFilter'],
  ...['WasmPlugin', 'TrafficExtension', 'ProxyConfig'],
]);

/** A router's scope contains all visible objects, so it distinguishes only services. */
const scopedForSidecars: ReadonlySet<string> = new Set([
  ...['ServiceEntry', 'Service', 'Endpoints', 'DNSName', 'VirtualService', 'DestinationRule', 'Sidecar'],
]);
const scopedForRouters: ReadonlySet<string> = new Set(['ServiceEntry', 'Service', 'Endpoints', 'DNSName']);

export interface ProxyInContext {
  readonly shape: ProxyShape;
  readonly context: PushContext;
}

/**
 * Returns the resource types that may differ for a proxy after a change; often none.
 * @param previous the proxy in the context of its last push; absent if everything is new
 */
export function typesToPush(
  change: PushChange,
  current: ProxyInContext,
  previous: ProxyInContext | undefined,
): ReadonlySet<PushedType> {
  if (change.forced || previous === undefined) return everyType;
  const workloadKeys = new Set([...keysOfWorkload(current), ...keysOfWorkload(previous)]);
  const relevantKeys = change.keys.filter(
    (key) => workloadKeys.has(configKeyText(key)) || mayAffectProxy(key, current, previous),
  );
  const { type, configNamespace } = current.shape;
  const isInScope = (key: ConfigKey): boolean => key.namespace === configNamespace || isForMesh(key, current.context);
  const types = new Set(
    allTypes.filter((pushedType) =>
      relevantKeys.some((key) => {
        // A gateway's listeners depend only on PeerAuthentications of its own namespace; its clusters and endpoints depend on those of all
        // namespaces.
        if (pushedType === 'LDS' && key.kind === 'PeerAuthentication' && !isInScope(key)) return false;
        if (
          pushedType === 'CDS' &&
          key.kind === 'ConfigMap' &&
          ![current, previous].some((proxyState) => usesConfigMap(proxyState, key))
        )
          return false;
        if (pushedType === 'SDS' && !affectsSecrets(key, current, previous)) return false;
        return affectsType(key.kind, pushedType, type);
      }),
    ),
  );
  if (current.shape !== previous.shape) for (const pushedType of typesOfShape) types.add(pushedType);
  return types;
}

function usesConfigMap({ context: { backendTls } }: ProxyInContext, { namespace, name }: ConfigKey): boolean {
  return backendTls.usesConfigMap(namespace, name);
}

/** A change may affect credentials of the proxy's own namespace, and Secrets that are or were granted to its Gateways. */
function affectsSecrets({ kind, namespace }: ConfigKey, current: ProxyInContext, previous: ProxyInContext): boolean {
  const { type, configNamespace } = current.shape;
  if (kind !== 'ReferenceGrant' && namespace === configNamespace) return true;
  if (type !== 'router' || kind === 'ConfigMap') return false;
  // The name is not compared, because a Secret `web-cacert` affects the resources for `web`.
  return [current, previous].some(({ context }) =>
    context.referenceGrants.grantsToGateways(configNamespace, namespace),
  );
}

/** An empty namespace belongs to a placeholder whose namespace is unreadable. */
function isForMesh({ namespace }: ConfigKey, { mesh }: PushContext): boolean {
  return namespace === '' || namespace === mesh.rootNamespace;
}

const typesOfShape = ['CDS', 'EDS', 'LDS', 'RDS', 'NDS', 'ECDS', 'BDS'] as const;

/** Origins of a proxy's inbound resources, which may be outside its scope. */
function keysOfWorkload({ shape, context }: ProxyInContext): string[] {
  const { serviceTargets, configNamespace } = shape;
  return serviceTargets
    .flatMap(({ service }) => {
      const rule = context.destinationRuleFor(configNamespace, service);
      return [serviceKey(service), endpointsKey(service), service.origin, ...(rule?.origins ?? [])];
    })
    .map(configKeyText);
}

function mayAffectProxy(key: ConfigKey, current: ProxyInContext, previous: ProxyInContext): boolean {
  const { shape } = current;
  const router = shape.type === 'router';
  if (!router && key.kind === 'BackendTLSPolicy') return false;
  if (kindsWithOtherNames.has(key.kind) || key.kind === (router ? 'Sidecar' : 'Gateway')) return false;
  if ((router ? scopedForRouters : scopedForSidecars).has(key.kind)) {
    const [currentScope, previousScope] = [
      current.context.sidecarScopeFor(shape),
      previous.context.sidecarScopeFor(previous.shape),
    ];
    if (current.context.scopeDependsOn(currentScope, key)) return true;
    // Scopes do not contain destination rules.
    return (
      (currentScope !== previousScope || key.kind === 'DestinationRule') &&
      previous.context.scopeDependsOn(previousScope, key)
    );
  }
  if (!router && namespacePolicies.has(key.kind)) {
    if (key.namespace === shape.configNamespace || isForMesh(key, current.context)) return true;
    // Clients depend on the mTLS mode of their destinations: plaintext, mutual TLS or both.
    return (
      key.kind === 'PeerAuthentication' &&
      [current, previous].some((proxyState) => reachesNamespace(proxyState, key.namespace))
    );
  }
  return true;
}

const namespacesOf = new WeakMap<readonly Service[], ReadonlySet<string>>();

function reachesNamespace({ shape, context }: ProxyInContext, namespace: string): boolean {
  const { services } = context.sidecarScopeFor(shape);
  let namespaces = namespacesOf.get(services);
  if (namespaces === undefined) {
    namespaces = new Set(services.map((service) => service.namespace));
    namespacesOf.set(services, namespaces);
  }
  return namespaces.has(namespace);
}

/** Kinds that affect only clusters of routers. */
const routerOnlyKinds: ReadonlySet<string> = new Set(['Gateway', 'BackendTLSPolicy', 'ConfigMap']);

function affectsType(kind: string, type: PushedType, nodeType: NodeType): boolean {
  switch (type) {
    case 'SDS':
    case 'PCDS':
    case 'BDS':
      return kindsByType[type].has(kind);
    case 'ECDS':
      // The router that implements a Gateway receives the policies attached to it.
      return kindsByType.ECDS.has(kind) || (kind === 'Gateway' && nodeType === 'router');
    case 'CDS':
      return !kindsWithoutEffect.CDS.has(kind) && (!routerOnlyKinds.has(kind) || nodeType === 'router');
    case 'EDS':
    case 'LDS':
    case 'RDS':
    case 'NDS':
      return !kindsWithoutEffect[type].has(kind);
  }
}
