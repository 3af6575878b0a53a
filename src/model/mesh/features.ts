/**
 * What the environment says of what is generated (spec/discovery.md §1.4, groups A and C). The same for as long as the
 * program runs, so that no cache needs to know of it.
 */

export interface Features {
  /** PILOT_SEND_UNHEALTHY_ENDPOINTS: endpoints that are not ready are sent, and said to be so, of every service. */
  readonly sendUnhealthy: boolean;
  /** PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS: the same, but of no service whose rule has a `minHealthPercent` above 0. */
  readonly autoSendUnhealthy: boolean;
  /** PILOT_DRAINING_LABEL: endpoints with this label take no new sessions. Empty: none do for a label. */
  readonly drainingLabel: string;
  /** PILOT_PERSISTENT_SESSION_LABEL: services with this label keep the sessions of endpoints that drain. */
  readonly persistentSessionLabel: string;
  /** PILOT_DNS_JITTER_DURATION: proxies ask DNS again up to this much later than they could. */
  readonly dnsJitterMs: number;
  /** PILOT_HTTP10: requests of HTTP/1.0 are taken wherever a proxy speaks HTTP for clients outside of the mesh or beside it. */
  readonly http10: boolean;
  /** PILOT_ENABLE_MONGO_FILTER, PILOT_ENABLE_REDIS_FILTER: connections of these protocols are read on their way. */
  readonly mongoFilter: boolean;
  readonly redisFilter: boolean;
  /** PILOT_ENABLE_MYSQL_FILTER: the same; the filter is in no stock Envoy, so the proxies must have another build. */
  readonly mysqlFilter: boolean;
  /** PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: proxies balance over the pods of a headless service themselves. */
  readonly endpointsForHeadless: boolean;
  /** ENABLE_MULTICLUSTER_HEADLESS: pods of a headless service in other clusters have listeners as well. */
  readonly multiclusterHeadless: boolean;
  /** PILOT_ENABLE_IP_AUTOALLOCATE: every proxy that answers DNS has stand-in addresses; else those that ask for them. */
  readonly autoAllocate: boolean;
  /** PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN: names with a dot at their end are served. */
  readonly absoluteNames: boolean;
  /** PILOT_SCOPE_GATEWAY_TO_NAMESPACE: Gateway objects select workloads of their own namespace only. */
  readonly gatewaysOfOwnNamespace: boolean;
  /** PILOT_FILTER_GATEWAY_CLUSTER_CONFIG: a gateway has the clusters that its virtual services name, and no others. */
  readonly onlyReferencedClusters: boolean;
  /** PILOT_GATEWAY_TRANSPORT_SOCKET_CONNECT_TIMEOUT: a client of a gateway must end its TLS handshake in this time. 0: in any. */
  readonly gatewayHandshakeTimeoutMs: number;
  /** PILOT_ENABLE_QUIC_LISTENERS: HTTPS servers of gateways speak HTTP/3 as well, where their Service has a UDP port. */
  readonly quicListeners: boolean;
  /** PILOT_TRACE_SAMPLING: percent of requests that are traced where nobody says. */
  readonly traceSampling: number;
}

/** The features as they are without any variable. */
export const defaultFeatures: Features = {
  sendUnhealthy: false,
  autoSendUnhealthy: true,
  drainingLabel: 'istio.io/draining',
  persistentSessionLabel: 'istio.io/persistent-session',
  // Istio's is 100 ms; Envoy 1.40 warns of the field in its log, cluster by cluster.
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
