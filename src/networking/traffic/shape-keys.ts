/**
 * The few properties of a shape that outbound clusters and endpoints depend on. Two shapes of equal key get equal
 * resources: what is made for one is shared with the other.
 */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';
import { labelsText } from '../inputs/input-text.ts';
import type { LocalityOrdering } from './traffic-policy.ts';

/** What an outbound cluster may read of a shape. */
export type ClusterShape = Pick<
  ProxyShape,
  'type' | 'ipFamily' | 'interceptionMode' | 'locality' | 'labels' | 'metadata'
>;

/**
 * Whether resources may refer to workload certificates: they come from the agent's secret server, the static cluster
 * `sds-grpc` of the bootstrap. An Envoy without that cluster accepts such resources, and waits for the certificates for
 * ever: no listener is opened, and nothing is said (seen with Envoy 1.40). So a bare Envoy gets none: no automatic
 * mutual TLS, and no listener of its own that asks clients for certificates.
 */
export function hasWorkloadCertificates({ metadata }: Pick<ProxyShape, 'metadata'>): boolean {
  return metadata.WORKLOAD_CERTIFICATES === 'true';
}

/** Whether the agent serves files of authorities together with their revocation lists, and checks these. */
export function checksRevocationLists({ metadata }: Pick<ProxyShape, 'metadata'>): boolean {
  return metadata.REVOCATION_LISTS === 'true';
}

/**
 * Equal for proxies whose outbound clusters of a service are equal, given one push context and one destination rule.
 * Clusters that resolve names carry their endpoints, so all that endpoints depend on counts for them as well.
 */
export function clusterShapeKey(
  shape: ClusterShape,
  service: Pick<Service, 'resolution'>,
  { ordersEndpointsByLabels }: Pick<PushContext, 'ordersEndpointsByLabels'>,
): string {
  const redirected = shape.interceptionMode !== 'NONE';
  const key = `${shape.metadata.ISTIO_EXTENSIONS}~${shape.type}~${shape.ipFamily}~${redirected}~${hasWorkloadCertificates(shape)}~${checksRevocationLists(shape)}`;
  if (!carriesEndpoints(service)) return key;
  return `${key}~${shape.locality}~${ordersEndpointsByLabels ? labelsText(shape.labels) : ''}`;
}

/** Whether a service's clusters resolve names, and so have their endpoints in them. */
export function carriesEndpoints({ resolution }: Pick<Service, 'resolution'>): boolean {
  return resolution === 'DNSLB' || resolution === 'DNSRoundRobinLB';
}

/**
 * Equal for proxies whose endpoints of a service are equal.
 *
 * @param ordering the setting in force for the service; undefined when endpoints are not ordered by where they are.
 */
export function endpointShapeKey(
  shape: Pick<ProxyShape, 'locality' | 'labels' | 'nodeName'>,
  ordering: LocalityOrdering | undefined,
  service: Pick<Service, 'attributes'> | undefined,
): string {
  const keepsToNode = service?.attributes?.nodeLocal || ordering?.distribution === 'PreferSameNode';
  const node = keepsToNode ? `~${shape.nodeName}` : '';
  if (ordering === undefined) return node;
  const byLabels = (ordering.failoverPriority?.length ?? 0) > 0;
  return `${shape.locality}${byLabels ? `~${labelsText(shape.labels)}` : ''}${node}`;
}
