import { isObject } from '../../runtime/json-object.ts';
import { scalarText } from '../../runtime/scalar-text.ts';
import { memoizeByObject } from '../collections/memoize-by-object.ts';
import { type Config, configKeyOf } from '../config/config.ts';
import { booleanOf } from '../fields/go-boolean.ts';
import { isWildcard } from '../fields/hostname.ts';
import { localityOf } from '../fields/locality.ts';
import { isUnixAddress } from '../kinds/field-rules.ts';
import { isSingleAddress } from '../kinds/workloads/service-entry.decode.ts';
import type { ServiceEntry, ServiceEntryPort, ServiceEntryResolution } from '../kinds/workloads/service-entry.ts';
import type { WorkloadEntry } from '../kinds/workloads/workload-entry.ts';
import type { AllocatedAddresses } from './auto-allocate.ts';
import type { Endpoint, Resolution, Service } from './service.ts';
import { type ExportRule, exportSet } from './visibility.ts';
import { type EndpointTemplate, endpointOf, portNamed, type Workload } from './workload.ts';

export interface ServiceEntryOptions extends ExportRule {
  readonly trustDomain: string;
  readonly clusterId: string;
  readonly defaultServiceExportTo: readonly string[];
  readonly selectPods: boolean;
}

const resolutions: Readonly<Record<ServiceEntryResolution, Resolution>> = {
  NONE: 'Passthrough',
  STATIC: 'ClientSideLB',
  DNS: 'DNSLB',
  DNS_ROUND_ROBIN: 'DNSRoundRobinLB',
  DYNAMIC_DNS: 'DynamicDNS',
};

export function servicesOfEntry(
  entry: Config<ServiceEntry>,
  options: ServiceEntryOptions,
  allocatedAddressesOf?: (name: string) => AllocatedAddresses | undefined,
): Service[] {
  const { spec } = entry;
  const addresses = (spec.addresses ?? []).map((address) => {
    return address.includes('/') && isSingleAddress(address) ? address.slice(0, address.indexOf('/')) : address;
  });
  const commonFields = {
    namespace: entry.namespace,
    ports: spec.ports.map(({ name, number, protocol, targetPort }) => ({
      ...{ name, number, protocol },
      // With any other resolution, endpoints have their own target port.
      ...(spec.resolution === 'NONE' && targetPort !== undefined && { forwardedPort: targetPort }),
    })),
    resolution: resolutions[spec.resolution],
    meshExternal: spec.location === 'MESH_EXTERNAL',
    serviceAccounts: spec.subjectAltNames ?? [],
    creationTime: entry.creationTimestamp,
    exportTo: exportSet(entry.namespace, spec.exportTo, options.defaultServiceExportTo, options),
    labels: entry.labels,
    registry: 'External',
    origin: configKeyOf(entry),
  };
  const names = new Set(allocationNames(entry));
  return spec.hosts.flatMap((hostname) => {
    if (addresses.length > 0) {
      return addresses.map((address) => ({ ...commonFields, hostname, defaultAddress: address, addresses: [address] }));
    }
    const name = allocationName(entry, hostname);
    // The host may have an address that was allocated for another entry of the namespace.
    const autoAllocated = names.has(name) ? allocatedAddressesOf?.(name) : undefined;
    return [
      { ...commonFields, hostname, defaultAddress: '0.0.0.0', addresses: [], ...(autoAllocated && { autoAllocated }) },
    ];
  });
}

/** Addresses are allocated for hosts that clients can distinguish by address. Entries of one namespace share the address of a host. */
export const allocationNames = memoizeByObject((entry: Config<ServiceEntry>): readonly string[] => {
  const { spec, labels } = entry;
  if (booleanOf(labels['networking.istio.io/enable-autoallocate-ip'] ?? '') === false) return [];
  if ((spec.addresses?.length ?? 0) > 0 || spec.resolution === 'NONE') return [];
  return spec.hosts.filter((host) => !isWildcard(host)).map((host) => allocationName(entry, host));
});

function allocationName(entry: Config<ServiceEntry>, hostname: string): string {
  return `${entry.namespace}/${hostname}`;
}

export function endpointsOfEntry(
  entry: Config<ServiceEntry>,
  selectedWorkloads: readonly Workload[],
  options: ServiceEntryOptions,
): ReadonlyMap<string, readonly Endpoint[]> {
  const { spec } = entry;
  if (entry.isWithoutEndpoints) return new Map();
  const isOwnEndpoint =
    isResolvedByName(spec) && (spec.endpoints?.length ?? 0) === 0 && spec.workloadSelector === undefined;
  if (isOwnEndpoint) return new Map(spec.hosts.map((host) => [host, hostEndpoints(entry, host, options)]));
  const inline = (spec.endpoints ?? []).map((endpoint) => workloadOf(entry, endpoint, { name: '' }, options));
  const allEndpoints = [...inline, ...selectedWorkloads].flatMap((workload) => portEndpoints(entry, workload));
  return new Map(spec.hosts.map((host) => [host, allEndpoints]));
}

function isResolvedByName(spec: ServiceEntry): boolean {
  return spec.resolution === 'DNS' || spec.resolution === 'DNS_ROUND_ROBIN';
}

/** Merges labels of `metadata` and `spec`; `metadata` has priority, as in Istio. */
export function workloadOfEntry(config: Config<WorkloadEntry>, options: ServiceEntryOptions): Workload {
  const entry = { ...config.spec, labels: { ...config.spec.labels, ...config.labels } };
  return workloadOf(config, entry, { name: config.name, healthy: isHealthy(config) }, options);
}

function workloadOf(
  { namespace, creationTimestamp }: Pick<Config, 'namespace' | 'creationTimestamp'>,
  entry: WorkloadEntry,
  { name, healthy = true }: { readonly name: string; readonly healthy?: boolean },
  options: ServiceEntryOptions,
): Workload {
  const labels = entry.labels ?? {};
  const template: EndpointTemplate = {
    address: entry.address,
    labels,
    serviceAccount: entry.serviceAccount
      ? `spiffe://${options.trustDomain}/ns/${namespace}/sa/${entry.serviceAccount}`
      : '',
    network: entry.network || labels['topology.istio.io/network'] || '',
    locality: entry.locality || localityOf(labels),
    clusterId: options.clusterId,
    weight: entry.weight ?? 0,
    tlsMode: tlsModeOf(entry),
    namespace,
    workloadName: name,
    health: healthy ? 'healthy' : 'unhealthy',
  };
  const ports = entry.ports ?? {};
  return {
    ...{ kind: 'WorkloadEntry', namespace, name, labels, addresses: [entry.address], template, ports },
    creationTime: creationTimestamp,
  };
}

/** A workload that must report health but has not yet is unhealthy. */
function isHealthy({ status, annotations }: Pick<Config, 'status' | 'annotations'>): boolean {
  const conditions = isObject(status) && Array.isArray(status.conditions) ? status.conditions : [];
  const reportedConditions = conditions
    .filter((statusCondition) => isObject(statusCondition) && statusCondition.type === 'Healthy')
    .map(({ status: statusText }) => scalarText(statusText).toLowerCase());
  if (booleanOf(annotations['proxy.istio.io/health-checks-enabled'] ?? '') === true)
    return reportedConditions[0] === 'true';
  return !reportedConditions.includes('false');
}

function portEndpoints({ spec }: Config<ServiceEntry>, workload: Workload): Endpoint[] {
  if (spec.resolution === 'NONE') return [];
  return spec.ports.map((port) => endpointOf(workload, port.name, endpointPort(port, workload)));
}

function endpointPort(port: ServiceEntryPort, workload: Workload): number {
  const isUnix = isUnixAddress(workload.template.address);
  return isUnix ? 0 : (portNamed(workload, port.name) ?? port.targetPort ?? port.number);
}

function tlsModeOf(workload: WorkloadEntry): Endpoint['tlsMode'] {
  const label = workload.labels?.['security.istio.io/tlsMode'];
  if (label !== undefined) return label === 'istio' ? 'istio' : 'disabled';
  return workload.serviceAccount ? 'istio' : 'disabled';
}

/** Without endpoints, a host is its own endpoint, which DNS resolves. */
function hostEndpoints(entry: Config<ServiceEntry>, hostname: string, options: ServiceEntryOptions): Endpoint[] {
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
