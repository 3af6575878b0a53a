/**
 * Feature flags from the environment that affect generated configuration. Constant, so cache keys need not
 * include them.
 */

export interface Features {
  /** PILOT_SEND_UNHEALTHY_ENDPOINTS: sends unready endpoints of every service, marked as unhealthy. */
  readonly sendUnhealthy: boolean;
  /** PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS: like `sendUnhealthy`, except for services whose DestinationRule has a `minHealthPercent` above 0. */
  readonly autoSendUnhealthy: boolean;
  /** PILOT_DRAINING_LABEL: endpoints with this label accept no new sessions. Empty disables it. */
  readonly drainingLabel: string;
  /** PILOT_PERSISTENT_SESSION_LABEL: services with this label keep existing sessions on draining endpoints. */
  readonly persistentSessionLabel: string;
  /** Maximum random delay of a proxy's DNS refresh. */
  readonly dnsJitterMs: number;
  /** PILOT_HTTP10: outbound listeners, and listeners for clients outside the mesh, accept HTTP/1.0. */
  readonly http10: boolean;
  readonly mongoFilter: boolean;
  readonly redisFilter: boolean;
  /** Stock Envoy does not contain the MySQL filter, so proxies need another build. */
  readonly mysqlFilter: boolean;
  /** PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: proxies balance the load over the pods of a headless service. */
  readonly endpointsForHeadless: boolean;
  /** ENABLE_MULTICLUSTER_HEADLESS: also builds listeners for a headless service's pods in other clusters. */
  readonly multiclusterHeadless: boolean;
  /** PILOT_ENABLE_IP_AUTOALLOCATE: every proxy with a DNS proxy gets allocated addresses; otherwise only proxies that request them. */
  readonly autoAllocate: boolean;
  /** PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN: virtual hosts also match names with a trailing dot. */
  readonly absoluteNames: boolean;
  /** PILOT_SCOPE_GATEWAY_TO_NAMESPACE: Gateway objects select only workloads of their own namespace. */
  readonly gatewaysOfOwnNamespace: boolean;
  /** PILOT_FILTER_GATEWAY_CLUSTER_CONFIG: a gateway receives only clusters that its VirtualServices reference. */
  readonly onlyReferencedClusters: boolean;
  /** PILOT_GATEWAY_TRANSPORT_SOCKET_CONNECT_TIMEOUT: timeout of TLS handshakes with gateways. 0 disables it. */
  readonly gatewayHandshakeTimeoutMs: number;
  /** PILOT_ENABLE_QUIC_LISTENERS: HTTPS servers of gateways also serve HTTP/3, if their Service has a UDP port. */
  readonly quicListeners: boolean;
  readonly traceSampling: number;
}

export const defaultFeatures: Features = {
  sendUnhealthy: false,
  autoSendUnhealthy: true,
  drainingLabel: 'istio.io/draining',
  persistentSessionLabel: 'istio.io/persistent-session',
  // Istio's default is 100 ms, but Envoy 1.40 logs a warning about the field for each cluster.
  dnsJitterMs: 0,
  http10: false,
  mongoFilter: true,
  redisFilter: false,
  mysqlFilter: false,
  endpointsForHeadless: false,
  multiclusterHeadless: true,
  autoAllocate: true,
  absoluteNames: true,
  gatewaysOfOwnNamespace: false,
  onlyReferencedClusters: false,
  gatewayHandshakeTimeoutMs: 15_000,
  quicListeners: false,
  traceSampling: 1,
};
