/** Shapes with equal keys share outbound clusters and endpoints. */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';
import { labelsText } from '../inputs/input-text.ts';
import type { LocalityOrdering } from './traffic-policy.ts';

export type ClusterShape = Pick<
  ProxyShape,
  'type' | 'ipFamily' | 'interceptionMode' | 'locality' | 'labels' | 'metadata'
>;

/**
 * The agent's SDS server provides workload certificates through the static cluster `sds-grpc`. Without that cluster, Envoy accepts resources that
 * refer to them but waits for the certificates indefinitely, without an open listener or a log (measured with Envoy 1.40).
 */
export function hasWorkloadCertificates({ metadata }: Pick<ProxyShape, 'metadata'>): boolean {
  return metadata.WORKLOAD_CERTIFICATES === 'true';
}

export function checksRevocationLists({ metadata }: Pick<ProxyShape, 'metadata'>): boolean {
  return metadata.REVOCATION_LISTS === 'true';
}

/** Clusters that resolve names contain their endpoints, so their key includes the endpoints' key. */
export function clusterShapeKey(
  shape: ClusterShape,
  service: Pick<Service, 'resolution'>,
  { ordersEndpointsByLabels }: Pick<PushContext, 'ordersEndpointsByLabels'>,
): string {
  const isRedirected = shape.interceptionMode !== 'NONE';
  const key = `${shape.metadata.ISTIO_EXTENSIONS}~${shape.type}~${shape.ipFamily}~${isRedirected}~${hasWorkloadCertificates(shape)}~${checksRevocationLists(shape)}`;
  if (!carriesEndpoints(service)) return key;
  return `${key}~${shape.locality}~${ordersEndpointsByLabels ? labelsText(shape.labels) : ''}`;
}

export function carriesEndpoints({ resolution }: Pick<Service, 'resolution'>): boolean {
  return resolution === 'DNSLB' || resolution === 'DNSRoundRobinLB';
}

/** @param ordering locality setting; `undefined` if locality has no effect on the order */
export function endpointShapeKey(
  shape: Pick<ProxyShape, 'locality' | 'labels' | 'nodeName'>,
  ordering: LocalityOrdering | undefined,
  service: Pick<Service, 'attributes'> | undefined,
): string {
  const prefersNode = service?.attributes?.nodeLocal || ordering?.distribution === 'PreferSameNode';
  const node = prefersNode ? `~${shape.nodeName}` : '';
  if (ordering === undefined) return node;
  const usesLabels = (ordering.failoverPriority?.length ?? 0) > 0;
  return `${shape.locality}${usesLabels ? `~${labelsText(shape.labels)}` : ''}${node}`;
}
