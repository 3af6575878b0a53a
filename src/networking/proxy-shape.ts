/**
 * The few properties of a proxy that its outbound clusters and endpoints depend on. Two proxies of equal key get equal
 * resources: what is made for one may be shared with the other.
 */
import type { LocalityLoadBalancerSetting } from '../model/kinds/traffic-policy.ts';
import type { NodeType, ProxyView } from '../model/proxy.ts';
import type { PushContext } from '../model/push-context.ts';
import type { Service } from '../model/service.ts';
import { type IpFamily, ipFamilyOf } from './address.ts';

export interface ProxyShape {
  readonly type: NodeType;
  readonly ipFamily: IpFamily;
  /** `region/zone/subzone`. */
  readonly locality: string;
  readonly labels: Readonly<Record<string, string>>;
  /**
   * Whether the proxy's bootstrap has the agent's secret server (`sds-grpc`). Without it a cluster that refers to
   * workload certificates is rejected by Envoy, so automatic mutual TLS is off for such a proxy.
   */
  readonly workloadCertificates: boolean;
}

export function proxyShape(view: ProxyView): ProxyShape {
  return {
    type: view.type,
    ipFamily: ipFamilyOf(view.ipAddresses),
    locality: view.locality,
    labels: view.labels,
    workloadCertificates: view.metadata.WORKLOAD_CERTIFICATES === 'true',
  };
}

/**
 * Equal for proxies whose outbound clusters of a service are equal, given one push context and one destination rule.
 * Clusters that resolve names carry their endpoints, so all that endpoints depend on counts for them as well.
 */
export function clusterShapeKey(shape: ProxyShape, service: Pick<Service, 'resolution'>): string {
  const key = [shape.type, shape.ipFamily, shape.workloadCertificates];
  const carriesEndpoints = service.resolution === 'DNSLB' || service.resolution === 'DNSRoundRobinLB';
  return [...key, ...(carriesEndpoints ? [shape.locality, labelText(shape)] : [])].join('~');
}

/**
 * Equal for proxies whose endpoints of a service are equal.
 *
 * @param locality the setting in force for the service; undefined when endpoints are not ordered by locality.
 */
export function endpointShapeKey(shape: ProxyShape, locality: LocalityLoadBalancerSetting | undefined): string {
  if (locality === undefined) return '';
  return locality.failoverPriority?.length ? `${shape.locality}~${labelText(shape)}` : shape.locality;
}

/**
 * What of a proxy's own addresses its clusters and listeners depend on: as a rule their families alone. The addresses
 * themselves count for a Sidecar object that forwards to the workload's own address, and for a pod of a headless
 * service, which gets no listener for itself.
 */
export function addressKey(view: ProxyView, push: PushContext): string {
  const family = ipFamilyOf(view.ipAddresses);
  if (view.type === 'router') return family;
  const ingress = push.sidecarScopeFor(view).ingressListeners ?? [];
  const forwardsToOwn = ingress.some(({ defaultEndpoint = '' }) => /^(?:0\.0\.0\.0|\[::\]):/.test(defaultEndpoint));
  const headless = view.serviceTargets.some(({ service }) => isHeadless(service));
  return forwardsToOwn || headless ? `${family}~${view.ipAddresses.join()}` : family;
}

/** A Kubernetes Service without a virtual IP: its pods are addressed one by one. */
export function isHeadless(service: Pick<Service, 'resolution' | 'registry'>): boolean {
  return service.resolution === 'Passthrough' && service.registry === 'Kubernetes';
}

function labelText(shape: ProxyShape): string {
  return JSON.stringify(Object.entries(shape.labels).sort());
}
