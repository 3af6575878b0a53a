import { defaultFeatures, type Features } from '../../model/mesh/features.ts';
import type { Environment } from '../environment.ts';

export function featuresOf(environment: Environment): Features {
  const defaults = defaultFeatures;
  return {
    sendUnhealthy: environment.boolean('PILOT_SEND_UNHEALTHY_ENDPOINTS', defaults.sendUnhealthy),
    autoSendUnhealthy: environment.boolean('PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS', defaults.autoSendUnhealthy),
    drainingLabel: environment.text('PILOT_DRAINING_LABEL', defaults.drainingLabel),
    persistentSessionLabel: environment.text('PILOT_PERSISTENT_SESSION_LABEL', defaults.persistentSessionLabel),
    dnsJitterMs: environment.durationMs('PILOT_DNS_JITTER_DURATION', defaults.dnsJitterMs),
    http10: environment.boolean('PILOT_HTTP10', defaults.http10),
    mongoFilter: environment.boolean('PILOT_ENABLE_MONGO_FILTER', defaults.mongoFilter),
    redisFilter: environment.boolean('PILOT_ENABLE_REDIS_FILTER', defaults.redisFilter),
    mysqlFilter: environment.boolean('PILOT_ENABLE_MYSQL_FILTER', defaults.mysqlFilter),
    endpointsForHeadless: environment.boolean('PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES', defaults.endpointsForHeadless),
    multiclusterHeadless: environment.boolean('ENABLE_MULTICLUSTER_HEADLESS', defaults.multiclusterHeadless),
    autoAllocate: environment.boolean('PILOT_ENABLE_IP_AUTOALLOCATE', defaults.autoAllocate),
    absoluteNames: environment.boolean('PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN', defaults.absoluteNames),
    gatewaysOfOwnNamespace: environment.boolean('PILOT_SCOPE_GATEWAY_TO_NAMESPACE', defaults.gatewaysOfOwnNamespace),
    onlyReferencedClusters: environment.boolean('PILOT_FILTER_GATEWAY_CLUSTER_CONFIG', defaults.onlyReferencedClusters),
    gatewayHandshakeTimeoutMs: environment.durationMs(
      'PILOT_GATEWAY_TRANSPORT_SOCKET_CONNECT_TIMEOUT',
      defaults.gatewayHandshakeTimeoutMs,
    ),
    quicListeners: environment.boolean('PILOT_ENABLE_QUIC_LISTENERS', defaults.quicListeners),
    traceSampling: environment.percent('PILOT_TRACE_SAMPLING', defaults.traceSampling),
  };
}
