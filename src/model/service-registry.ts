/**
 * Services and endpoints from ServiceEntry and WorkloadEntry objects (spec/discovery.md §5.5). Pure.
 *
 * What one ServiceEntry gives is kept by identity from one registry to the next as long as the object and what it
 * selects are the same, so that a change of one object costs one object.
 */
import { type Config, compareText, configKeyOf } from './config.ts';
import { isObject } from './decode.ts';
import { isUnixAddress } from './kinds/field-rules.ts';
import { isSingleAddress } from './kinds/service-entry.decode.ts';
import type { ServiceEntry, ServiceEntryPort, ServiceEntryResolution } from './kinds/service-entry.ts';
import type { WorkloadEntry } from './kinds/workload-entry.ts';
import { LabelIndex } from './label-match.ts';
import { localityOf } from './locality.ts';
import type { Endpoint, Resolution, Service } from './service.ts';
import { exportSet } from './visibility.ts';

/** Endpoints by host name, then by namespace. */
export type EndpointIndex = ReadonlyMap<string, ReadonlyMap<string, readonly Endpoint[]>>;

export interface ServiceRegistry {
  /** Oldest first (§4.1). */
  readonly services: readonly Service[];
  readonly endpoints: EndpointIndex;
  /** What each ServiceEntry gave: for the next registry. */
  readonly made: ReadonlyMap<Config<ServiceEntry>, Made>;
}

/** What one ServiceEntry gives, and from what. */
interface Made {
  readonly options: RegistryOptions;
  readonly selected: readonly Workload[];
  readonly services: readonly Service[];
  readonly endpoints: ReadonlyMap<string, readonly Endpoint[]>;
}

export interface RegistryOptions {
  readonly trustDomain: string;
  /** Cluster of this control plane (`--clusterID`). */
  readonly clusterId: string;
  readonly defaultServiceExportTo: readonly string[];
}

/** A WorkloadEntry with the labels by which it is selected. */
interface Workload {
  readonly labels: Readonly<Record<string, string>>;
  readonly config: Config<WorkloadEntry>;
}

const resolutions: Readonly<Record<ServiceEntryResolution, Resolution>> = {
  NONE: 'Passthrough',
  STATIC: 'ClientSideLB',
  DNS: 'DNSLB',
  DNS_ROUND_ROBIN: 'DNSRoundRobinLB',
  DYNAMIC_DNS: 'DynamicDNS',
};

/**
 * @param serviceEntries oldest first
 * @param workloadEntries oldest first
 * @param previous the registry of the moment before, whose parts are used again where nothing changed
 */
export function buildServiceRegistry(
  serviceEntries: readonly Config<ServiceEntry>[],
  workloadEntries: readonly Config<WorkloadEntry>[],
  options: RegistryOptions,
  previous?: ServiceRegistry,
): ServiceRegistry {
  const workloads = workloadsByNamespace(workloadEntries);
  const made = new Map<Config<ServiceEntry>, Made>();
  for (const entry of serviceEntries) {
    const selector = entry.spec.workloadSelector;
    const selected = selector ? (workloads.get(entry.namespace)?.selectedBy(selector.labels) ?? []) : [];
    const before = previous?.made.get(entry);
    const same =
      before !== undefined && sameOptions(before.options, options) && sameWorkloads(before.selected, selected);
    made.set(entry, same ? before : makeServices(entry, selected, options));
  }
  const services = [...made.values()].flatMap((result) => result.services);
  return { services: services.sort(byServiceAge), endpoints: endpointIndex(made, previous), made };
}

/** Oldest first, then host name, then namespace. */
export function byServiceAge(a: Service, b: Service): number {
  return (
    a.creationTime - b.creationTime || compareText(a.hostname, b.hostname) || compareText(a.namespace, b.namespace)
  );
}

function workloadsByNamespace(entries: readonly Config<WorkloadEntry>[]): Map<string, LabelIndex<Workload>> {
  const groups = Map.groupBy(entries, (entry) => entry.namespace);
  const indexes = new Map<string, LabelIndex<Workload>>();
  for (const [namespace, group] of groups) {
    // Labels of the object itself do not select: those of the workload do.
    indexes.set(namespace, new LabelIndex(group.map((config) => ({ labels: config.spec.labels ?? {}, config }))));
  }
  return indexes;
}

function sameOptions(a: RegistryOptions, b: RegistryOptions): boolean {
  return (
    a === b ||
    (a.trustDomain === b.trustDomain &&
      a.clusterId === b.clusterId &&
      a.defaultServiceExportTo.join() === b.defaultServiceExportTo.join())
  );
}

function sameWorkloads(a: readonly Workload[], b: readonly Workload[]): boolean {
  return a.length === b.length && a.every((workload, index) => workload.config === b[index]!.config);
}

function makeServices(entry: Config<ServiceEntry>, selected: readonly Workload[], options: RegistryOptions): Made {
  const { spec } = entry;
  const own = [
    ...endpointsOf(entry, options),
    ...selected.flatMap(({ config }) => workloadEndpoints(entry, config, options)),
  ];
  const byItself = isResolvedByName(spec) && (spec.endpoints?.length ?? 0) === 0 && spec.workloadSelector === undefined;
  const endpoints = new Map<string, readonly Endpoint[]>();
  for (const hostname of spec.hosts) endpoints.set(hostname, byItself ? hostEndpoints(entry, hostname, options) : own);
  return { options, selected, services: servicesOf(entry, options), endpoints };
}

function isResolvedByName(spec: ServiceEntry): boolean {
  return spec.resolution === 'DNS' || spec.resolution === 'DNS_ROUND_ROBIN';
}

/** One service for each host and address. */
function servicesOf(entry: Config<ServiceEntry>, options: RegistryOptions): Service[] {
  const { spec } = entry;
  const addresses = (spec.addresses ?? []).map((address) => {
    return address.includes('/') && isSingleAddress(address) ? address.slice(0, address.indexOf('/')) : address;
  });
  const common = {
    namespace: entry.namespace,
    ports: spec.ports.map(({ name, number, protocol }) => ({ name, number, protocol })),
    resolution: resolutions[spec.resolution],
    meshExternal: spec.location === 'MESH_EXTERNAL',
    serviceAccounts: spec.subjectAltNames ?? [],
    creationTime: entry.creationTimestamp,
    exportTo: exportSet(spec.exportTo, options.defaultServiceExportTo),
    labels: entry.labels,
    registry: 'External',
    origin: configKeyOf(entry),
  };
  return spec.hosts.flatMap((hostname) =>
    addresses.length === 0
      ? [{ ...common, hostname, defaultAddress: '0.0.0.0', addresses: [] }]
      : addresses.map((address) => ({ ...common, hostname, defaultAddress: address, addresses: [address] })),
  );
}

function endpointsOf(entry: Config<ServiceEntry>, options: RegistryOptions): Endpoint[] {
  return (entry.spec.endpoints ?? []).flatMap((endpoint) =>
    portEndpoints(entry, endpoint, options, { workloadName: '', healthy: true }),
  );
}

function workloadEndpoints(
  entry: Config<ServiceEntry>,
  workload: Config<WorkloadEntry>,
  options: RegistryOptions,
): Endpoint[] {
  const about = { workloadName: workload.name, healthy: isHealthy(workload.status) };
  return portEndpoints(entry, workload.spec, options, about);
}

/** A condition `Healthy` that is false makes a workload unhealthy (§5.5). */
function isHealthy(status: unknown): boolean {
  const conditions = isObject(status) && Array.isArray(status.conditions) ? status.conditions : [];
  return !conditions.some((condition) => {
    return isObject(condition) && condition.type === 'Healthy' && String(condition.status).toLowerCase() === 'false';
  });
}

function portEndpoints(
  entry: Config<ServiceEntry>,
  workload: WorkloadEntry,
  options: RegistryOptions,
  about: { readonly workloadName: string; readonly healthy: boolean },
): Endpoint[] {
  // A workload that says its network alone is behind that network's gateways, which are not known here.
  if (workload.address === '' || entry.spec.resolution === 'NONE') return [];
  const labels = workload.labels ?? {};
  const common = {
    address: workload.address,
    labels,
    serviceAccount: workload.serviceAccount
      ? `spiffe://${options.trustDomain}/ns/${entry.namespace}/sa/${workload.serviceAccount}`
      : '',
    network: workload.network || labels['topology.istio.io/network'] || '',
    locality: workload.locality || localityOf(labels),
    clusterId: options.clusterId,
    weight: workload.weight ?? 0,
    tlsMode: tlsModeOf(workload),
    namespace: entry.namespace,
    workloadName: about.workloadName,
    health: about.healthy ? ('healthy' as const) : ('unhealthy' as const),
  };
  return entry.spec.ports.map((port) => ({
    ...common,
    port: endpointPort(port, workload),
    servicePortName: port.name,
  }));
}

function endpointPort(port: ServiceEntryPort, workload: WorkloadEntry): number {
  return isUnixAddress(workload.address) ? 0 : (workload.ports?.[port.name] ?? port.targetPort ?? port.number);
}

function tlsModeOf(workload: WorkloadEntry): Endpoint['tlsMode'] {
  const label = workload.labels?.['security.istio.io/tlsMode'];
  if (label !== undefined) return label === 'istio' ? 'istio' : 'disabled';
  return workload.serviceAccount ? 'istio' : 'disabled';
}

/** A host that DNS knows is its own endpoint. */
function hostEndpoints(entry: Config<ServiceEntry>, hostname: string, options: RegistryOptions): Endpoint[] {
  return entry.spec.ports.map((port) => ({
    address: hostname,
    port: port.targetPort ?? port.number,
    servicePortName: port.name,
    labels: {},
    serviceAccount: '',
    network: '',
    locality: '',
    clusterId: options.clusterId,
    weight: 0,
    tlsMode: 'disabled',
    namespace: entry.namespace,
    workloadName: '',
    health: 'healthy',
  }));
}

/** Endpoints of ServiceEntries of the same host and namespace together; lists that did not change keep their identity. */
function endpointIndex(
  made: ReadonlyMap<Config<ServiceEntry>, Made>,
  previous: ServiceRegistry | undefined,
): EndpointIndex {
  const parts = new Map<string, Map<string, (readonly Endpoint[])[]>>();
  for (const [entry, result] of made) {
    for (const [hostname, endpoints] of result.endpoints) {
      const byNamespace = parts.get(hostname) ?? new Map<string, (readonly Endpoint[])[]>();
      parts.set(hostname, byNamespace);
      byNamespace.set(entry.namespace, [...(byNamespace.get(entry.namespace) ?? []), endpoints]);
    }
  }
  const index = new Map<string, Map<string, readonly Endpoint[]>>();
  for (const [hostname, byNamespace] of parts) {
    const joined = new Map<string, readonly Endpoint[]>();
    for (const [namespace, lists] of byNamespace) {
      joined.set(
        namespace,
        lists.length === 1 ? lists[0]! : keptList(lists.flat(), previous?.endpoints.get(hostname)?.get(namespace)),
      );
    }
    index.set(hostname, joined);
  }
  return index;
}

function keptList(list: readonly Endpoint[], before: readonly Endpoint[] | undefined): readonly Endpoint[] {
  const same = before?.length === list.length && before.every((endpoint, index) => endpoint === list[index]);
  return same ? before : list;
}
