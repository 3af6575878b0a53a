/**
 * What counts of a proxy. Generators and caches read a shape and never the proxy itself, so that proxies that differ in
 * nothing that matters share everything that is made for them: a push to many of them costs one generation.
 *
 * A field belongs here when, and only when, some resource depends on it:
 *
 * | field | what depends on it |
 * |---|---|
 * | `type` | which listeners, routes and clusters there are at all |
 * | `configNamespace` | what is visible, which Sidecar object and which destination rules hold, `sourceNamespace` of matches |
 * | `labels` | which Sidecar, Gateway and destination rules select it, `sourceLabels` of matches, failover priorities |
 * | `ipFamily` | addresses to bind and to connect from, address families of DNS |
 * | `ownAddresses` | a Sidecar object that forwards to the workload's own address; listeners of a headless service's pods |
 * | `dnsDomain` | short names of services in virtual hosts |
 * | `locality` | order and weight of endpoints |
 * | `network`, `clusterId` | which endpoints are reached directly, which through a gateway (spec/discovery.md §5.7) |
 * | `interceptionMode` | whether listeners bind their ports, and are transparent |
 * | `metadata` | see {@link shapeMetadata} |
 * | `serviceTargets` | inbound listeners and clusters, ports of a gateway |
 *
 * Its id, name, cluster name, service account, the addresses as such and all other metadata count for nothing.
 */
import { isIPv4, isIPv6 } from 'node:net';
import type { InterceptionMode, NodeType, Proxy } from './proxy.ts';
import type { PushContext } from './push-context.ts';
import type { Service, ServiceTarget } from './service.ts';
import type { SidecarScope } from './sidecar-scope.ts';

/** Which families a proxy's own addresses belong to; IPv4 when it told none. */
export type IpFamily = 'v4' | 'v6' | 'dual';

/** The metadata of a node that generators read. What is not listed cannot make two proxies different. */
export const shapeMetadata = [
  // `1`: HTTP/1.0 is taken.
  'HTTP10',
  // Where applications find their HTTP proxy.
  'HTTP_PROXY_PORT',
  // Of TCP connections without a rule of their own.
  'IDLE_TIMEOUT',
  // `true`: the pod may not bind ports below 1024.
  'UNPRIVILEGED_POD',
  // `true`: the bootstrap has the agent's secret server, so that clusters may refer to workload certificates.
  'WORKLOAD_CERTIFICATES',
] as const;

export type ShapeMetadata = Readonly<Partial<Record<(typeof shapeMetadata)[number], unknown>>>;

/** Immutable. Of equal shapes there is one object (see ShapeTable), so shapes are compared by identity. */
export interface ProxyShape {
  readonly type: NodeType;
  readonly configNamespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ipFamily: IpFamily;
  /** Empty where they make no difference, which is almost everywhere. */
  readonly ownAddresses: readonly string[];
  readonly dnsDomain: string;
  /** `region/zone/subzone`. */
  readonly locality: string;
  readonly network: string;
  readonly clusterId: string;
  readonly interceptionMode: InterceptionMode;
  readonly metadata: ShapeMetadata;
  /** The service ports that the workload itself serves. */
  readonly serviceTargets: readonly ServiceTarget[];
}

/** What of a context a shape depends on. */
export type ShapeContext = Pick<PushContext, 'sidecarScopeFor' | 'serviceTargetsOf' | 'workloadOf'>;

export function ipFamilyOf(addresses: readonly string[]): IpFamily {
  const v6 = addresses.some((address) => isIPv6(address));
  const v4 = addresses.some((address) => isIPv4(address));
  return v6 ? (v4 ? 'dual' : 'v6') : 'v4';
}

/** The shape of a proxy in a context; a ShapeTable makes equal ones the same. */
export function shapeOf(proxy: Proxy, context: ShapeContext): ProxyShape {
  const known = knownProxy(proxy, context);
  const serviceTargets = context.serviceTargetsOf(known);
  const needsAddresses = dependsOnAddresses(proxy.type, context.sidecarScopeFor(known), serviceTargets);
  return makeShape(known, serviceTargets, needsAddresses);
}

const knownProxies = new WeakMap<Proxy, Proxy>();

/**
 * The proxy with the labels and the place that its registry knows of its workload: those count, whatever the node said
 * (§7.2 row 10). The same object as long as they are the same.
 */
export function knownProxy(proxy: Proxy, context: Pick<PushContext, 'workloadOf'>): Proxy {
  const workload = context.workloadOf(proxy);
  if (workload === undefined) return proxy;
  const { labels } = workload;
  const locality = workload.locality || proxy.locality;
  const before = knownProxies.get(proxy);
  if (before !== undefined && before.labels === labels && before.locality === locality) return before;
  const known = { ...proxy, labels, locality };
  knownProxies.set(proxy, known);
  return known;
}

export function makeShape(proxy: Proxy, serviceTargets: readonly ServiceTarget[], needsAddresses: boolean): ProxyShape {
  const { type, configNamespace, labels, dnsDomain, locality, network, clusterId, interceptionMode } = proxy;
  return {
    type,
    configNamespace,
    labels,
    ipFamily: ipFamilyOf(proxy.ipAddresses),
    ownAddresses: needsAddresses ? proxy.ipAddresses : [],
    dnsDomain,
    locality,
    network,
    clusterId,
    interceptionMode,
    metadata: readMetadata(proxy),
    serviceTargets,
  };
}

/** Of sidecars: of one whose Sidecar object forwards to the workload's own address, and of a headless service's pod. */
export function dependsOnAddresses(
  type: NodeType,
  scope: Pick<SidecarScope, 'ingressListeners'>,
  serviceTargets: readonly ServiceTarget[],
): boolean {
  if (type === 'router') return false;
  if (serviceTargets.some(({ service }) => isHeadless(service))) return true;
  return (scope.ingressListeners ?? []).some(({ defaultEndpoint = '' }) =>
    /^(?:0\.0\.0\.0|\[::\]):/.test(defaultEndpoint),
  );
}

/** A Kubernetes Service without a virtual IP: its pods are addressed one by one. */
export function isHeadless(service: Pick<Service, 'resolution' | 'registry'>): boolean {
  return service.resolution === 'Passthrough' && service.registry === 'Kubernetes';
}

function readMetadata({ metadata }: Proxy): ShapeMetadata {
  const read = shapeMetadata.filter((key) => metadata[key] !== undefined);
  return Object.fromEntries(read.map((key) => [key, metadata[key]]));
}
