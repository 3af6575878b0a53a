/** Converts the instances of a Consul service, with names as in Istio (docs/consul.md). */
import { compareText } from '../../config/config.ts';
import { joinLocality, localityOf } from '../../fields/locality.ts';
import { isHostname, isIpAddress } from '../../fields/names.ts';
import { type ApplicationProtocol, protocolOf } from '../../fields/protocol.ts';
import type { Endpoint, Port, Service } from '../service.ts';
import { type ExportRule, exportSet } from '../visibility.ts';
import type { ConsulInstance } from './consul-instance.ts';

export interface ConsulOptions extends ExportRule {
  readonly trustDomain: string;
  readonly clusterId: string;
  readonly defaultServiceExportTo: readonly string[];
}

export interface ConvertedService {
  readonly service?: Service;
  readonly endpoints: readonly Endpoint[];
  readonly problems: readonly string[];
}

/** All services of Consul are in this namespace. */
export const consulNamespace = 'default';
const consulSuffix = '.service.consul';
const maxHostLength = 253;
/** Limits weights, because the sum of larger weights would exceed Envoy's maximum. */
const maxWeight = 65_535;
const maxPort = 65_535;
/** Only these values are valid in Envoy's subsets and metrics; Consul's meta may have 512 characters. */
const labelValue = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** Consul's names are case-insensitive and may contain dots. */
export function consulHostname(service: string): string {
  return `${service.toLowerCase()}${consulSuffix}`;
}

export function nameProblem(service: string): string | undefined {
  const hostname = consulHostname(service);
  if (isHostname(hostname) && hostname.length <= maxHostLength) return undefined;
  return `the name ${JSON.stringify(service.slice(0, 100))} must be a DNS name (letters, digits, "-", "_" and "."), rename the service in Consul`;
}

/** @param instances of one host, in any health state; at least one */
export function convertConsulService(instances: readonly ConsulInstance[], options: ConsulOptions): ConvertedService {
  const orderedInstances = instances.toSorted(
    (a, b) => compareText(a.node.name, b.node.name) || compareText(a.id, b.id) || compareText(a.service, b.service),
  );
  const [firstInstance] = orderedInstances as [ConsulInstance, ...ConsulInstance[]];
  const invalidReason = nameProblem(firstInstance.service);
  if (invalidReason !== undefined) return { endpoints: [], problems: [invalidReason] };
  const problems = new Set<string>();
  const servedInstances = orderedInstances.filter((instance) => isReachable(instance, problems));
  const ports = portsOf(servedInstances, problems);
  if (ports.length === 0) return { endpoints: [], problems: [...problems] };
  const nameByNumber = new Map(ports.map((port) => [port.number, port.name]));
  const endpoints = servedInstances.flatMap((instance) =>
    endpointOf(instance, nameByNumber.get(instance.port)!, options),
  );
  const usesHostnames = servedInstances.some((instance) => !isIpAddress(addressOf(instance)));
  const service: Service = {
    ...{ hostname: consulHostname(firstInstance.service), namespace: consulNamespace },
    ...{ defaultAddress: '0.0.0.0', addresses: [], ports, serviceAccounts: [], creationTime: 0, labels: {} },
    resolution: usesHostnames ? 'DNSLB' : 'ClientSideLB',
    meshExternal: servedInstances.some(({ meta }) => (meta.external ?? '') !== ''),
    exportTo: exportSet(consulNamespace, undefined, options.defaultServiceExportTo, options),
    registry: 'Consul',
    origin: { kind: 'Consul', namespace: consulNamespace, name: firstInstance.service },
  };
  return { service, endpoints, problems: [...problems] };
}

function addressOf({ address, node }: ConsulInstance): string {
  return address || node.address;
}

function isReachable(instance: ConsulInstance, problems: Set<string>): boolean {
  const { node, id, port } = instance;
  const address = addressOf(instance);
  const instanceText = `instance ${quoteText(id)} on node ${quoteText(node.name)}`;
  if (port === 0 || port > maxPort) {
    problems.add(`${instanceText} has no port from 1 to ${maxPort}; register it with a port`);
    return false;
  }
  if (isIpAddress(address) || isHostname(address)) return true;
  problems.add(`${instanceText}: the address must be an IP address or a host name, got ${quoteText(address)}`);
  return false;
}

/** Returns one port per number; the first instance determines the protocol. Further ports of a protocol are named `protocol-PORT`. */
function portsOf(instances: readonly ConsulInstance[], problems: Set<string>): readonly Port[] {
  const protocols = new Map<number, { readonly name: string; readonly protocol: ApplicationProtocol }>();
  for (const { port, meta } of instances) {
    const declaredProtocol = protocolIn(meta, port, problems);
    const agreedProtocol = protocols.get(port);
    if (agreedProtocol === undefined) protocols.set(port, declaredProtocol);
    else if (agreedProtocol.name !== declaredProtocol.name)
      problems.add(
        `instances disagree on the protocol of port ${port}: ${agreedProtocol.name} is used, not ${declaredProtocol.name}`,
      );
  }
  const takenNames = new Set<string>();
  return [...protocols]
    .toSorted(([a], [b]) => a - b)
    .map(([number, { name: baseName, protocol }]) => {
      const name = takenNames.has(baseName) ? `${baseName}-${number}` : baseName;
      takenNames.add(baseName);
      return { name, number, protocol };
    });
}

function protocolIn(
  meta: ConsulInstance['meta'],
  port: number,
  problems: Set<string>,
): { readonly name: string; readonly protocol: ApplicationProtocol } {
  const name = (Object.hasOwn(meta, 'protocol') ? meta.protocol! : '').toLowerCase();
  if (name === '') return { name: 'tcp', protocol: 'TCP' };
  // The prefix of the port name determines the protocol, so `http-x` is HTTP as well.
  const protocol = /^[-a-z0-9_]{1,40}$/.test(name) ? protocolOf({ name, number: 0 }) : 'unsupported';
  if (protocol !== 'unsupported' && protocol !== 'UDP') return { name, protocol };
  problems.add(
    `meta "protocol" of port ${port} must be http, http2, grpc, tcp, tls …, got ${quoteText(name)}: TCP is used`,
  );
  return { name: 'tcp', protocol: 'TCP' };
}

function endpointOf(instance: ConsulInstance, servicePortName: string, options: ConsulOptions): Endpoint[] {
  const { node, port, service, health, weights } = instance;
  const weight = health === 'warning' ? weights.warning : weights.passing;
  // Weight 0 removes the instance from load balancing.
  if (weight === 0) return [];
  const labels = labelsOf(instance);
  const usesMutualTls = labels['security.istio.io/tlsMode'] === 'istio';
  return [
    {
      ...{ address: addressOf(instance), port, servicePortName, labels },
      serviceAccount: usesMutualTls ? `spiffe://${options.trustDomain}/ns/${consulNamespace}/sa/default` : '',
      network: labels['topology.istio.io/network'] ?? '',
      locality: consulLocality(instance, labels),
      clusterId: options.clusterId,
      weight: Math.min(weight, maxWeight),
      tlsMode: usesMutualTls ? 'istio' : 'disabled',
      ...{ namespace: consulNamespace, workloadName: service, nodeName: node.name },
      health: health === 'critical' ? 'unhealthy' : 'healthy',
    },
  ];
}

export function labelsOf({ tags, meta }: ConsulInstance): Readonly<Record<string, string>> {
  const labels = new Map<string, string>();
  for (const [key, value] of Object.entries(meta)) if (labelValue.test(value)) labels.set(key, value);
  for (const tag of tags) {
    const [key = '', value] = tag.split('|');
    if (key !== '' && value !== undefined) labels.set(key, value);
  }
  return Object.fromEntries(labels);
}

/** Prefers labels, then the service, then the node. The region defaults to the datacenter. */
export function consulLocality(instance: ConsulInstance, labels: Readonly<Record<string, string>>): string {
  const { node } = instance;
  const locality = instance.locality ?? node.locality;
  return localityOf(labels, locality ? joinLocality(locality.region, locality.zone) : node.datacenter);
}

function quoteText(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
