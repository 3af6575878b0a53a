/** Names of generated resources. Dashboards, EnvoyFilters and `istioctl` depend on them. */

export const blackHoleCluster = 'BlackHoleCluster';
export const passthroughCluster = 'PassthroughCluster';
export const dynamicDnsCluster = 'AllowAnyDynamicDNSCluster';
export const inboundPassthroughCluster = 'InboundPassthroughCluster';

export const virtualOutboundListener = 'virtualOutbound';
export const virtualInboundListener = 'virtualInbound';
export const passthroughFilterChain = 'PassthroughFilterChain';
export const httpProxyRoute = 'http_proxy';

/** Returns `outbound|80|v1|reviews.shop.svc.cluster.local`. An empty subset means all endpoints. */
export function outboundClusterName(port: number, subset: string, host: string): string {
  return `outbound|${port}|${subset}|${host}`;
}

/**
 * Returns `inbound|8080||`.
 *
 * @param port port of the application
 */
export function inboundClusterName(port: number): string {
  return `inbound|${port}||`;
}

/** Returns a cluster name as a valid SNI, `outbound_.80_.v1_.reviews…`, for mutual TLS and for gateways between networks. */
export function sniName(port: number, subset: string, host: string): string {
  return `outbound_.${port}_.${subset}_.${host}`;
}

export interface OutboundClusterParts {
  readonly port: number;
  readonly subset: string;
  readonly host: string;
  readonly sni: boolean;
}

export function parseOutboundClusterName(name: string): OutboundClusterParts | undefined {
  const sni = name.startsWith('outbound_.');
  const nameParts = name.split(sni ? '_.' : '|');
  if (nameParts.length !== 4 || nameParts[0] !== 'outbound' || !/^\d+$/.test(nameParts[1]!) || nameParts[3] === '')
    return undefined;
  return { port: Number(nameParts[1]), subset: nameParts[2]!, host: nameParts[3]!, sni };
}

/** The cluster of an alias has the endpoints of its target, so the name contains both. */
export function aliasAssignmentName(clusterName: string, target: string): string {
  return `${clusterName}|${target}`;
}

/** Returns `undefined` if the name belongs to no outbound cluster. */
export function parseAssignmentName(name: string): (OutboundClusterParts & { readonly target?: string }) | undefined {
  const nameParts = name.split('|');
  if (nameParts.length !== 5) return parseOutboundClusterName(name);
  const cluster = parseOutboundClusterName(nameParts.slice(0, 4).join('|'));
  return cluster && nameParts[4] !== '' ? { ...cluster, target: nameParts[4]! } : undefined;
}

/** Returns `0.0.0.0_8080`; for a Unix socket, its path and port 0. */
export function listenerName(bind: string, port: number): string {
  return `${bind}_${port}`;
}

export function udpListenerName(bind: string, port: number): string {
  return `udp_${listenerName(bind, port)}`;
}

export function gatewayHttpRouteName(port: number, bind?: string): string {
  return bind === undefined ? `http.${port}` : `http.${port}.${bind}`;
}

export function gatewayHttpsRouteName(
  port: number,
  portName: string,
  gateway: { readonly name: string; readonly namespace: string },
  bind?: string,
): string {
  const name = `https.${port}.${portName}.${gateway.name}.${gateway.namespace}`;
  return bind === undefined ? name : `${name}.${bind}`;
}

/** Route configuration of a single service, for a listener with protocol detection. */
export function sniffedRouteName(host: string, port: number): string {
  return `${host}:${port}`;
}

export function virtualHostName(host: string, port: number): string {
  return `${host}:${port}`;
}

/** Origin of a resource: `/apis/networking.istio.io/v1/namespaces/shop/virtual-service/reviews`. */
export function configPath(config: {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}): string {
  const kind = config.kind.replace(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase();
  return `/apis/networking.istio.io/v1/namespaces/${config.namespace}/${kind}/${config.name}`;
}
