/** Services and endpoints as registries provide them. Immutable. */
import type { ConfigKey } from '../config/config.ts';
import type { ApplicationProtocol } from '../fields/protocol.ts';

export interface Port {
  readonly name: string;
  readonly number: number;
  readonly protocol: ApplicationProtocol;
  /** Destination port at the original destination address (resolution NONE). Default: `number`. */
  readonly forwardedPort?: number;
}

export type Resolution = 'ClientSideLB' | 'DNSLB' | 'DNSRoundRobinLB' | 'Passthrough' | 'Alias' | 'DynamicDNS';

export interface Service {
  readonly hostname: string;
  readonly namespace: string;
  /** First virtual IP, possibly a CIDR range; `0.0.0.0` if none exists. */
  readonly defaultAddress: string;
  /** Absent for services outside clusters, which have the same virtual IP in every cluster. */
  readonly clusterVIPs?: Readonly<Record<string, readonly string[]>>;
  /** Addresses that proxies with a DNS proxy use if a ServiceEntry has no addresses. */
  readonly autoAllocated?: { readonly ipv4: string; readonly ipv6: string };
  readonly addresses: readonly string[];
  readonly ports: readonly Port[];
  readonly resolution: Resolution;
  readonly meshExternal: boolean;
  /** SPIFFE IDs, or subject alternative names for external services. */
  readonly serviceAccounts: readonly string[];
  /** Milliseconds since the Unix epoch. */
  readonly creationTime: number;
  readonly exportTo: ReadonlySet<string>;
  readonly labels: Readonly<Record<string, string>>;
  /** `Kubernetes`, `External` (for ServiceEntries), `Mock` or `Consul`. */
  readonly registry: string;
  /** The object that defines this service. Change notifications use {@link serviceKey} instead. */
  readonly origin: ConfigKey;
  readonly attributes?: ServiceAttributes;
}

export interface ServiceAttributes {
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** Absent if there is no selector, or an empty one. */
  readonly selector?: Readonly<Record<string, string>>;
  readonly externalName?: string;
  /** External addresses by cluster: IP addresses, or unresolved host names. */
  readonly externalAddresses?: Readonly<Record<string, readonly string[]>>;
  /** Maps service ports to node ports, by cluster. If absent, external addresses use the service's ports. */
  readonly externalPorts?: Readonly<Record<string, Readonly<Record<number, number>>>>;
  /** Uses only endpoints on the client's node (`internalTrafficPolicy: Local`). */
  readonly nodeLocal?: boolean;
  readonly publishNotReadyAddresses?: boolean;
  readonly trafficDistribution?: TrafficDistribution;
}

/** Prefers endpoints in the zone or on the node of the client. */
export type TrafficDistribution = 'PreferSameZone' | 'PreferSameNode';

export interface Endpoint {
  /** An IP address, a host name (DNS resolution), or `unix:///path`. */
  readonly address: string;
  /** 0 for a Unix socket. */
  readonly port: number;
  readonly servicePortName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly serviceAccount: string;
  readonly network: string;
  /** `region/zone/subzone`, without unknown parts at the end. */
  readonly locality: string;
  readonly clusterId: string;
  /** 0 means the default of 1. */
  readonly weight: number;
  readonly tlsMode: 'istio' | 'disabled';
  readonly namespace: string;
  readonly workloadName: string;
  /** Kubernetes node of the workload; absent if unknown. */
  readonly nodeName?: string;
  /** Host name and subdomain of a headless service's pod: `<hostname>.<subdomain>.<namespace>.svc.<domain>`. */
  readonly hostname?: string;
  readonly subdomain?: string;
  readonly health: 'healthy' | 'unhealthy' | 'draining' | 'terminating';
}

export interface ServiceTarget {
  readonly service: Service;
  readonly port: Port;
  readonly targetPort: number;
}

/** Change notifications use this key for services of any registry. */
export function serviceKey(service: Pick<Service, 'hostname' | 'namespace'>): ConfigKey {
  return { kind: 'ServiceEntry', namespace: service.namespace, name: service.hostname };
}

/** Key of a push to the proxies at one address. The labels or locality of their workload changed. */
export function proxyKey(clusterId: string, address: string): ConfigKey {
  return { kind: 'Proxy', namespace: clusterId, name: address };
}

/** Key of a push that changes only a service's DNS responses. */
export function dnsNameKey(service: Pick<Service, 'hostname' | 'namespace'>): ConfigKey {
  return { kind: 'DNSName', namespace: service.namespace, name: service.hostname };
}

/** Key of a push that changes only a service's endpoints. */
export function endpointsKey(service: Pick<Service, 'hostname' | 'namespace'>): ConfigKey {
  return { kind: 'Endpoints', namespace: service.namespace, name: service.hostname };
}
