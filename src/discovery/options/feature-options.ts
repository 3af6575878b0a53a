import { defaultFeatures, type Features } from '../../model/mesh/features.ts';
import type { Environment } from '../environment.ts';

export function featuresOf(from: Environment): Features {
  const byDefault = defaultFeatures;
  return {
    sendUnhealthy: from.boolean('PILOT_SEND_UNHEALTHY_ENDPOINTS', byDefault.sendUnhealthy),
    autoSendUnhealthy: from.boolean('PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS', byDefault.autoSendUnhealthy),
    drainingLabel: from.text('PILOT_DRAINING_LABEL', byDefault.drainingLabel),
    persistentSessionLabel: from.text('PILOT_PERSISTENT_SESSION_LABEL', byDefault.persistentSessionLabel),
    dnsJitterMs: from.durationMs('PILOT_DNS_JITTER_DURATION', byDefault.dnsJitterMs),
    http10: from.boolean('PILOT_HTTP10', byDefault.http10),
    mongoFilter: from.boolean('PILOT_ENABLE_MONGO_FILTER', byDefault.mongoFilter),
    redisFilter: from.boolean('PILOT_ENABLE_REDIS_FILTER', byDefault.redisFilter),
    mysqlFilter: from.boolean('PILOT_ENABLE_MYSQL_FILTER', byDefault.mysqlFilter),
    endpointsForHeadless: from.boolean('PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES', byDefault.endpointsForHeadless),
    multiclusterHeadless: from.boolean('ENABLE_MULTICLUSTER_HEADLESS', byDefault.multiclusterHeadless),
    autoAllocate: from.boolean('PILOT_ENABLE_IP_AUTOALLOCATE', byDefault.autoAllocate),
    absoluteNames: from.boolean('PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN', byDefault.absoluteNames),
    gatewaysOfOwnNamespace: from.boolean('PILOT_SCOPE_GATEWAY_TO_NAMESPACE', byDefault.gatewaysOfOwnNamespace),
    onlyReferencedClusters: from.boolean('PILOT_FILTER_GATEWAY_CLUSTER_CONFIG', byDefault.onlyReferencedClusters),
    gatewayHandshakeTimeoutMs: from.durationMs(
      'PILOT_GATEWAY_TRANSPORT_SOCKET_CONNECT_TIMEOUT',
      byDefault.gatewayHandshakeTimeoutMs,
    ),
    quicListeners: from.boolean('PILOT_ENABLE_QUIC_LISTENERS', byDefault.quicListeners),
    traceSampling: from.percent('PILOT_TRACE_SAMPLING', byDefault.traceSampling),
  };
}
