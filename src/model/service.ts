/** Services and endpoints as the registries hand them over (spec/discovery.md §5.2). Immutable. */
import type { ConfigKey } from './config.ts';
import type { Protocol } from './protocol.ts';

export interface Port {
  readonly name: string;
  readonly number: number;
  readonly protocol: Protocol;
}

/** How Envoy finds the addresses behind a service. */
export type Resolution = 'ClientSideLB' | 'DNSLB' | 'DNSRoundRobinLB' | 'Passthrough' | 'Alias' | 'DynamicDNS';

export interface Service {
  /** Fully qualified, or a wildcard (`*.example.com`). */
  readonly hostname: string;
  readonly namespace: string;
  /** First virtual IP; `0.0.0.0` when there is none; may be a CIDR. */
  readonly defaultAddress: string;
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
}

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

/** Names the endpoints of a service in a push that changes nothing else of it (§6.5). */
export function endpointsKey(service: Pick<Service, 'hostname' | 'namespace'>): ConfigKey {
  return { kind: 'Endpoints', namespace: service.namespace, name: service.hostname };
}
