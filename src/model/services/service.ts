/** Services and endpoints as the registries hand them over (spec/discovery.md §5.2). Immutable. */
import type { ConfigKey } from '../config/config.ts';
import type { Protocol } from '../fields/protocol.ts';

export interface Port {
  readonly name: string;
  readonly number: number;
  readonly protocol: Protocol;
  /** Where connections to this port are forwarded at the address that the client chose (resolution NONE); absent: to `number`. */
  readonly forwardedPort?: number;
}

/** How Envoy finds the addresses behind a service. */
export type Resolution = 'ClientSideLB' | 'DNSLB' | 'DNSRoundRobinLB' | 'Passthrough' | 'Alias' | 'DynamicDNS';

export interface Service {
  /** Fully qualified, or a wildcard (`*.example.com`). */
  readonly hostname: string;
  readonly namespace: string;
  /** First virtual IP; `0.0.0.0` when there is none; may be a CIDR. */
  readonly defaultAddress: string;
  /** Virtual IPs by cluster, of a service that clusters know; others have the same in every cluster. */
  readonly clusterVIPs?: Readonly<Record<string, readonly string[]>>;
  /** For a ServiceEntry without addresses: stand-ins that proxies which answer DNS themselves may use (§1.4). */
  readonly autoAllocated?: { readonly ipv4: string; readonly ipv6: string };
  readonly addresses: readonly string[];
  /** In the order of their definition. */
  readonly ports: readonly Port[];
  readonly resolution: Resolution;
  readonly meshExternal: boolean;
  /** SPIFFE ids, or subject alternative names for external services. */
  readonly serviceAccounts: readonly string[];
  /** Milliseconds since the Unix epoch. */
  readonly creationTime: number;
  readonly exportTo: ReadonlySet<string>;
  readonly labels: Readonly<Record<string, string>>;
  /** `Kubernetes`, `External` (ServiceEntry), `Mock`, `Consul`. */
  readonly registry: string;
  /** The object that this service was made from, by the object's name. What a push says has changed is {@link serviceKey}. */
  readonly origin: ConfigKey;
  /** What only Kubernetes' services say. */
  readonly attributes?: ServiceAttributes;
}

/** Of a Kubernetes Service (§5.2, §5.4). */
export interface ServiceAttributes {
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** Absent: the service has no selector, or an empty one. */
  readonly selector?: Readonly<Record<string, string>>;
  /** Another name of the host that an ExternalName stands for. */
  readonly externalName?: string;
  /** Where the service is reached from outside, by cluster: IPs or host names, never resolved here. */
  readonly externalAddresses?: Readonly<Record<string, readonly string[]>>;
  /** Service port → node port, by cluster; absent: the external addresses have the service's own ports. */
  readonly externalPorts?: Readonly<Record<string, Readonly<Record<number, number>>>>;
  /** `internalTrafficPolicy: Local`: only endpoints of the client's own node. */
  readonly nodeLocal?: boolean;
  readonly publishNotReadyAddresses?: boolean;
  readonly trafficDistribution?: TrafficDistribution;
}

/** Which endpoints a service wants to be served by first: those of the client's zone, or of its node. */
export type TrafficDistribution = 'PreferSameZone' | 'PreferSameNode';

export interface Endpoint {
  /** An IP, a host name (DNS resolution), or `unix:///path`. */
  readonly address: string;
  /** 0 for a unix socket. */
  readonly port: number;
  /** The service port that it serves, by name: endpoints are matched to ports by name (§8.3). */
  readonly servicePortName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly serviceAccount: string;
  readonly network: string;
  /** `region/zone/subzone`, empty parts left out from the right. */
  readonly locality: string;
  readonly clusterId: string;
  /** 0 means the default, 1. */
  readonly weight: number;
  /** Whether the workload's proxy takes mutual TLS. */
  readonly tlsMode: 'istio' | 'disabled';
  readonly namespace: string;
  readonly workloadName: string;
  /** The node that it runs on; absent where nobody says. */
  readonly nodeName?: string;
  /** Host name and subdomain of a pod of a headless service: `<hostname>.<subdomain>.<namespace>.svc.<domain>`. */
  readonly hostname?: string;
  readonly subdomain?: string;
  readonly health: 'healthy' | 'unhealthy' | 'draining' | 'terminating';
}

/** A service port that a proxy's own workload serves, and where. */
export interface ServiceTarget {
  readonly service: Service;
  readonly port: Port;
  /** The port that the application listens on. */
  readonly targetPort: number;
}

/** Names a service in a push, whatever registry it is of: kind ServiceEntry, named by its host (§6.1). */
export function serviceKey(service: Pick<Service, 'hostname' | 'namespace'>): ConfigKey {
  return { kind: 'ServiceEntry', namespace: service.namespace, name: service.hostname };
}

/** Names the proxies of one address in a push: those whose workload changed its labels or its place (§5.4). */
export function proxyKey(clusterId: string, address: string): ConfigKey {
  return { kind: 'Proxy', namespace: clusterId, name: address };
}

/** Names what DNS answers for a service in a push that changes nothing else of it (§5.4 "headless"). */
export function dnsNameKey(service: Pick<Service, 'hostname' | 'namespace'>): ConfigKey {
  return { kind: 'DNSName', namespace: service.namespace, name: service.hostname };
}

/** Names the endpoints of a service in a push that changes nothing else of it (§6.5). */
export function endpointsKey(service: Pick<Service, 'hostname' | 'namespace'>): ConfigKey {
  return { kind: 'Endpoints', namespace: service.namespace, name: service.hostname };
}
