/**
 * Finds objects that affect proxies of other namespaces, which Istio's model permits (SECURITY.md, "What Istio's model leaves open"). Objects of
 * namespaces in the mesh's `exportingNamespaces` are trusted.
 */
import { isIP, isIPv4 } from 'node:net';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import type { Config } from '../config/config.ts';
import type { ConfigSet } from '../config/config-set.ts';
import { type HostKeys, isHostWithin, isWildcard } from '../fields/hostname.ts';
import { isHttp, protocolOf } from '../fields/protocol.ts';
import { gatewayServiceAnnotation, ownNamespaceAnnotation } from '../kinds/gateway/gateway.ts';
import type { ServiceEntry } from '../kinds/workloads/service-entry.ts';
import type { MeshConfig } from '../mesh/mesh-config.ts';
import { firstSlot } from '../services/auto-allocate.ts';
import { allocationNames } from '../services/service-entry-services.ts';
import { exportSet, mayExport } from '../services/visibility.ts';

export const reachCodes = [
  ...([
    'routes-foreign-host',
    'rules-foreign-host',
    'claims-foreign-host',
    'captures-addresses',
    'captures-port',
  ] as const),
  ...(['selects-foreign-workloads', 'is-network-gateway', 'takes-every-host'] as const),
  ...(['takes-routes-of-all-namespaces', 'patches-whole-mesh', 'export-not-allowed'] as const),
  ...(['aliases-foreign-host', 'adds-dynamic-dns', 'reaches-proxy-loopback', 'moves-allocated-address'] as const),
];

export type ReachCode = (typeof reachCodes)[number];

export interface ReachFinding {
  readonly code: ReachCode;
  readonly config: Config;
  readonly field: string;
  readonly message: string;
}

export interface ReachSettings {
  readonly mesh: Pick<
    MeshConfig,
    'exportingNamespaces' | 'rootNamespace' | (`default${string}ExportTo` & keyof MeshConfig)
  >;
  readonly scopesGateways: boolean;
  readonly domain: string;
}

export type ReachKind =
  | ('DestinationRule' | 'EnvoyFilter' | 'Gateway' | 'Ingress' | 'KubernetesGateway')
  | ('Service' | 'ServiceEntry' | 'VirtualService' | 'WasmPlugin');
type Sources = Pick<ConfigSet, ReachKind>;
type FindingDetails = Pick<ReachFinding, 'code' | 'field' | 'message'>;

/** Wider ranges are not attributed to one service. */
const widestRangeBits = { ipv4: 16, ipv6: 64 };

/** Yields `undefined` for an object without a finding, so that callers can yield to the event loop at each object. */
export function* crossNamespaceReach(configs: Sources, settings: ReachSettings): Generator<ReachFinding | undefined> {
  const meshNames = new KnownNames(configs, settings);
  for (const [kind, findReach] of Object.entries(reachFinders) as [keyof Sources, FindReach<never>][]) {
    for (const config of configs[kind] as readonly Config<never>[]) {
      yield undefined;
      if (config.standsFor !== undefined || isTrusted(config.namespace, kind, settings)) continue;
      for (const reach of findReach(config, meshNames, settings)) yield { ...reach, config };
    }
  }
}

/** The administrator controls the root namespace and is warned only of kinds with mesh-wide effect. */
function isTrusted(namespace: string, kind: keyof Sources, { mesh }: ReachSettings): boolean {
  if (namespace === mesh.rootNamespace) return !rootKinds.has(kind);
  return mesh.exportingNamespaces.includes(namespace);
}

const rootKinds: ReadonlySet<keyof Sources> = new Set(['EnvoyFilter', 'KubernetesGateway', 'WasmPlugin']);

type FindReach<Spec> = (
  config: Config<Spec>,
  knownNames: KnownNames,
  settings: ReachSettings,
) => Iterable<FindingDetails>;
type SpecOf<K extends keyof Sources> = Sources[K][number]['spec'];

const reachFinders: { readonly [K in keyof Sources]: FindReach<SpecOf<K>> } = {
  VirtualService: function* ({ namespace, spec }, meshNames, { mesh }) {
    if (!(yield* exports(namespace, spec.exportTo, mesh.defaultVirtualServiceExportTo, mesh))) return;
    for (const [index, host] of spec.hosts.entries()) {
      const owner = meshNames.ownerOf(host, namespace) ?? (host === '*' ? 'every namespace' : undefined);
      if (owner === undefined) continue;
      const message = `"${host}" is a host of ${owner}, and these routes apply to clients of other namespaces: ${exportAdvice}`;
      yield { code: 'routes-foreign-host', field: `spec.hosts[${index}]`, message };
    }
  },
  DestinationRule: function* ({ namespace, spec }, meshNames, { mesh }) {
    // Only an explicit `exportTo` is an intentional export.
    if (spec.exportTo === undefined) return;
    if (!(yield* exports(namespace, spec.exportTo, [], mesh))) return;
    const owner = meshNames.ownerOf(spec.host, namespace);
    if (owner === undefined) return;
    const message = `"${spec.host}" is a host of ${owner}: the rule applies to clients of ${namespace} only, regardless of exportTo`;
    yield { code: 'rules-foreign-host', field: 'spec.exportTo', message };
  },
  ServiceEntry: function* (entry, meshNames, { mesh }) {
    const { namespace, spec } = entry;
    const movedService = mayExport(namespace, mesh) ? meshNames.serviceWithMovedAddress(entry) : undefined;
    if (movedService !== undefined) {
      const message = `takes the automatically allocated address of ${movedService}, which gets a new one: set addresses of this object, or ${exportAdviceText}`;
      yield { code: 'moves-allocated-address', field: 'spec.hosts', message };
    }
    if (!(yield* exports(namespace, spec.exportTo, mesh.defaultServiceExportTo, mesh))) return;
    for (const [index, host] of spec.hosts.entries()) {
      const owner = meshNames.ownerOf(host, namespace);
      if (owner === undefined) continue;
      const message = `"${host}" is a host of ${owner}, and may replace it for clients of other namespaces: ${exportAdvice}`;
      yield { code: 'claims-foreign-host', field: `spec.hosts[${index}]`, message };
    }
    for (const [index, address] of (spec.addresses ?? []).entries()) {
      const target = meshNames.capturingService(address, namespace);
      if (target === undefined) continue;
      const message = `${address} takes connections to ${target} in every namespace: ${exportAdvice}`;
      yield { code: 'captures-addresses', field: `spec.addresses[${index}]`, message };
    }
    for (const [index, { address }] of (spec.endpoints ?? []).entries()) {
      if (!isLoopback(address)) continue;
      const message = `${address} is the loopback of each proxy that uses the service, also of shared gateways: ${exportAdvice}`;
      yield { code: 'reaches-proxy-loopback', field: `spec.endpoints[${index}].address`, message };
    }
    if (spec.resolution === 'DYNAMIC_DNS') {
      const message = `HTTP listeners of other namespaces get the dynamic forward proxy filter, which resolves host names of requests: ${exportAdvice}`;
      yield { code: 'adds-dynamic-dns', field: 'spec.resolution', message };
    }
    if ((spec.addresses ?? []).length > 0) return;
    for (const [index, { number, protocol }] of spec.ports.entries()) {
      if (isHttp(protocol) || protocol === 'TLS' || protocol === 'HTTPS') continue;
      yield { code: 'captures-port', field: `spec.ports[${index}]`, message: portMessage(number, protocol) };
    }
  },
  Service: function* ({ namespace, spec: { spec }, labels, annotations }, meshNames, { mesh }) {
    const network = labels['topology.istio.io/network'];
    if (network && mayExport(namespace, mesh)) {
      const message = `the service becomes a gateway of network "${network}": all proxies send that network's requests to its external addresses; ${exportAdviceText}`;
      yield { code: 'is-network-gateway', field: 'metadata.labels', message };
    }
    const annotation = annotations['networking.istio.io/exportTo'];
    if (
      !(yield* exports(
        namespace,
        annotation?.split(',').map((exportTarget) => exportTarget.trim()),
        mesh.defaultServiceExportTo,
        mesh,
      ))
    )
      return;
    if (spec.type === 'ExternalName') {
      const owner = spec.externalName && meshNames.ownerOf(spec.externalName, namespace);
      if (!owner) return;
      const message = `"${spec.externalName}" is a host of ${owner}, and gets the name of this service as well: ${exportAdvice}`;
      yield { code: 'aliases-foreign-host', field: 'spec.externalName', message };
      return;
    }
    const hasSelector = Object.keys(spec.selector ?? {}).length > 0;
    const address = spec.clusterIP === 'None' ? undefined : spec.clusterIP;
    const target = address && meshNames.capturingService(address, namespace);
    if (target) {
      const message = `${address} takes connections to ${target} in every namespace: ${exportAdvice}`;
      yield { code: 'captures-addresses', field: 'spec.clusterIP', message };
    }
    if (spec.clusterIP !== 'None' || hasSelector) return;
    for (const [index, { name, port, appProtocol, protocol: transport }] of spec.ports.entries()) {
      const protocol = protocolOf({ name, number: port, transport, ...(appProtocol !== undefined && { appProtocol }) });
      if (isHttp(protocol)) continue;
      const message = `a headless service without a selector takes connections to any address that its EndpointSlices name, in every namespace: ${exportAdvice}`;
      yield { code: 'captures-addresses', field: `spec.ports[${index}]`, message };
    }
  },
  Gateway: function* ({ namespace, spec, annotations }, _, { mesh, scopesGateways }) {
    if (scopesGateways || !mayExport(namespace, mesh)) return;
    if (annotations[ownNamespaceAnnotation] === 'true' || annotations[gatewayServiceAnnotation] !== undefined) return;
    const selectedText = Object.keys(spec.selector).length === 0 ? 'every gateway' : 'every gateway with these labels';
    const message = `selects ${selectedText}, in all namespaces: set PILOT_SCOPE_GATEWAY_TO_NAMESPACE=true, or ${exportAdviceText}`;
    yield { code: 'selects-foreign-workloads', field: 'spec.selector', message };
  },
  Ingress: function* ({ namespace, spec: { spec } }, _, { mesh }) {
    if (!mayExport(namespace, mesh)) return;
    const message = `takes requests for every host at the shared gateway: name a host, set the mesh's ingressControllerMode to OFF, or ${exportAdviceText}`;
    for (const [index, { host }] of spec.rules.entries())
      if (host === undefined || host === '')
        yield { code: 'takes-every-host', field: `spec.rules[${index}].host`, message };
  },
  KubernetesGateway: function* ({ spec }) {
    for (const [index, { allowedRoutes }] of spec.listeners.entries()) {
      if (allowedRoutes.namespaces.from !== 'All') continue;
      const message = 'routes of every namespace can attach to this listener: use from: Same, or from: Selector';
      yield { code: 'takes-routes-of-all-namespaces', field: `spec.listeners[${index}].allowedRoutes`, message };
    }
  },
  EnvoyFilter: function* ({ namespace, spec }, _, { mesh }) {
    if (namespace === mesh.rootNamespace && spec.workloadSelector === undefined && spec.targetRefs === undefined)
      yield { code: 'patches-whole-mesh', field: 'spec', message: wholeMesh };
  },
  WasmPlugin: function* ({ namespace, spec }, _, { mesh }) {
    if (namespace === mesh.rootNamespace && spec.selector === undefined && spec.targetRefs === undefined)
      yield { code: 'patches-whole-mesh', field: 'spec', message: wholeMesh };
  },
};

const exportAdviceText = 'list the namespaces that may affect others in exportingNamespaces of the mesh configuration';
const exportAdvice = `set exportTo to ["."], or ${exportAdviceText}`;
const wholeMesh =
  'applies to every proxy of the mesh, because the object is in the root namespace and selects no workload: add a selector, and let only administrators write to that namespace';

function portMessage(port: number, protocol: string): string {
  return `port ${port} (${protocol}) without addresses takes connections to every address that has no listener of its own, in every namespace: set addresses, ${exportAdvice}`;
}

/** Whether other namespaces can see the object; yields a finding for an export that is not permitted. */
function* exports(
  namespace: string,
  exportTo: readonly string[] | undefined,
  defaultExportTo: readonly string[],
  mesh: ReachSettings['mesh'],
): Generator<FindingDetails, boolean> {
  const isForOtherNamespaces = (target: string): boolean => target !== '.' && target !== '~' && target !== namespace;
  const isExported = [...exportSet(namespace, exportTo, defaultExportTo, mesh)].some(isForOtherNamespaces);
  if (!isExported && !mayExport(namespace, mesh) && exportTo?.some(isForOtherNamespaces)) {
    const message = `applies to namespace ${namespace} only: the mesh configuration's exportingNamespaces does not list it`;
    yield { code: 'export-not-allowed', field: 'spec.exportTo', message };
  }
  return isExported;
}

class KnownNames {
  readonly #suffix: string;
  readonly #entryHosts = new Map<string, Set<string>>();
  readonly #addresses = new Map<string, Set<string>>();
  readonly #servicesBySlot = new Map<number, string[]>();

  constructor({ ServiceEntry, Service }: Pick<ConfigSet, 'ServiceEntry' | 'Service'>, { domain }: ReachSettings) {
    this.#suffix = `.svc.${domain}`;
    for (const entry of ServiceEntry) {
      const { namespace, spec } = entry;
      for (const name of allocationNames(entry)) {
        const slot = firstSlot(name);
        const slotNames = this.#servicesBySlot.get(slot);
        if (slotNames === undefined) this.#servicesBySlot.set(slot, [name]);
        else slotNames.push(name);
      }
      for (const host of spec.hosts) addToSet(this.#entryHosts, host, namespace);
      for (const address of spec.addresses ?? []) addToSet(this.#addresses, address, `${namespace}/${spec.hosts[0]}`);
    }
    for (const { namespace, name, spec } of Service) {
      const { clusterIP, clusterIPs } = spec.spec;
      for (const address of [clusterIP, ...clusterIPs])
        if (isIP(address) !== 0) addToSet(this.#addresses, address, `${namespace}/${name}`);
    }
  }

  ownerOf(host: string, namespace: string): string | undefined {
    const kubernetesOwner = this.#kubernetesOwner(host);
    if (kubernetesOwner !== undefined) return kubernetesOwner === namespace ? undefined : ownerText(kubernetesOwner);
    const owners = this.#entryHosts.get(host);
    if (owners === undefined && isWildcard(host)) return this.#wildcardOwner(host, namespace);
    const otherOwner = [...(owners ?? [])].find((owner) => owner !== namespace);
    return otherOwner && ownerText(otherOwner);
  }

  /** Returns a host (`namespace/host`) whose allocated address changes because this entry is older. */
  serviceWithMovedAddress(entry: Config<ServiceEntry>): string | undefined {
    for (const name of allocationNames(entry)) {
      const [firstName, ...laterNames] = this.#servicesBySlot.get(firstSlot(name)) ?? [];
      if (firstName !== name) continue;
      const movedName = laterNames.find((laterName) => !laterName.startsWith(`${entry.namespace}/`));
      if (movedName !== undefined) return movedName;
    }
    return undefined;
  }

  capturingService(address: string, namespace: string): string | undefined {
    const [ip = '', bits] = address.split('/');
    const family = isIPv4(ip) ? 'ipv4' : 'ipv6';
    const width = family === 'ipv4' ? 32 : 128;
    if (bits !== undefined && Number(bits) < width && Number(bits) <= widestRangeBits[family])
      return 'every address in this range';
    const otherServices = [...(this.#addresses.get(address) ?? [])].filter(
      (serviceKey) => !serviceKey.startsWith(`${namespace}/`),
    );
    return otherServices[0] && `${otherServices[0]}, which has this address`;
  }

  /** Returns the namespace of `ledger.bank.svc.cluster.local` or `ledger.bank.svc`; `*` for a wildcard over several. */
  #kubernetesOwner(host: string): string | undefined {
    const matchedSuffix = [this.#suffix, '.svc'].find((suffix) => host.endsWith(suffix));
    if (matchedSuffix === undefined) return isHostWithin(`a.b${this.#suffix}`, host) && host !== '*' ? '*' : undefined;
    const labels = host.slice(0, -matchedSuffix.length).split('.');
    return labels.at(-1) === '*' ? '*' : labels.at(-1);
  }

  #wildcardOwner(host: string, namespace: string): string | undefined {
    const hosts: HostKeys & Map<string, Set<string>> = this.#entryHosts;
    for (const [ownedHost, owners] of hosts) {
      const otherOwner = [...owners].find((owner) => owner !== namespace);
      if (otherOwner !== undefined && isHostWithin(ownedHost, host)) return ownerText(otherOwner);
    }
    return undefined;
  }
}

function ownerText(namespace: string): string {
  return namespace === '*' ? 'every namespace' : `namespace ${namespace}`;
}

function addToSet(map: Map<string, Set<string>>, key: string, value: string): void {
  const existingValues = map.get(key);
  if (existingValues === undefined) map.set(key, new Set([value]));
  else existingValues.add(value);
}
