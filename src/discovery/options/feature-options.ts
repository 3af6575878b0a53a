import { defaultFeatures, type Features } from '../../model/mesh/features.ts';
import type { Environment } from '../environment.ts';

export function featuresOf(environment: Environment): Features {
  const byDefault = defaultFeatures;
  return {
    sendUnhealthy: environment.boolean('PILOT_SEND_UNHEALTHY_ENDPOINTS', byDefault.sendUnhealthy),
    autoSendUnhealthy: environment.boolean('PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS', byDefault.autoSendUnhealthy),
    drainingLabel: environment.text('PILOT_DRAINING_LABEL', byDefault.drainingLabel),
    persistentSessionLabel: environment.text('PILOT_PERSISTENT_SESSION_LABEL', byDefault.persistentSessionLabel),
    dnsJitterMs: environment.durationMs('PILOT_DNS_JITTER_DURATION', byDefault.dnsJitterMs),
    http10: environment.boolean('PILOT_HTTP10', byDefault.http10),
    mongoFilter: environment.boolean('PILOT_ENABLE_MONGO_FILTER', byDefault.mongoFilter),
    redisFilter: environment.boolean('PILOT_ENABLE_REDIS_FILTER', byDefault.redisFilter),
    mysqlFilter: environment.boolean('PILOT_ENABLE_MYSQL_FILTER', byDefault.mysqlFilter),
    endpointsForHeadless: environment.boolean('PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES', byDefault.endpointsForHeadless),
    multiclusterHeadless: environment.boolean('ENABLE_MULTICLUSTER_HEADLESS', byDefault.multiclusterHeadless),
    autoAllocate: environment.boolean('PILOT_ENABLE_IP_AUTOALLOCATE', byDefault.autoAllocate),
    absoluteNames: environment.boolean('PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN', byDefault.absoluteNames),
    gatewaysOfOwnNamespace: environment.boolean('PILOT_SCOPE_GATEWAY_TO_NAMESPACE', byDefault.gatewaysOfOwnNamespace),
    onlyReferencedClusters: environment.boolean(
      'PILOT_FILTER_GATEWAY_CLUSTER_CONFIG',
      byDefault.onlyReferencedClusters,
    ),
    gatewayHandshakeTimeoutMs: environment.durationMs(
      'PILOT_GATEWAY_TRANSPORT_SOCKET_CONNECT_TIMEOUT',
      byDefault.gatewayHandshakeTimeoutMs,
    ),
    quicListeners: environment.boolean('PILOT_ENABLE_QUIC_LISTENERS', byDefault.quicListeners),
    traceSampling: environment.percent('PILOT_TRACE_SAMPLING', byDefault.traceSampling),
  };
}
