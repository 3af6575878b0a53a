import type { PortSelector } from '../virtual-service/virtual-service.ts';

export interface TrafficPolicy extends PortPolicy {
  readonly portLevelSettings?: readonly PortTrafficPolicy[];
  readonly tunnel?: TunnelSettings;
  readonly proxyProtocol?: { readonly version: 'V1' | 'V2' };
  readonly retryBudget?: RetryBudget;
}

export interface PortPolicy {
  readonly loadBalancer?: LoadBalancerSettings;
  readonly connectionPool?: ConnectionPoolSettings;
  readonly outlierDetection?: OutlierDetection;
  readonly tls?: ClientTlsSettings;
}

export interface PortTrafficPolicy extends PortPolicy {
  readonly port: PortSelector;
}

/** At most one of `simple` and `consistentHash`. */
export interface LoadBalancerSettings {
  readonly simple?: SimpleLoadBalancer;
  readonly consistentHash?: ConsistentHashLoadBalancer;
  readonly localityLbSetting?: LocalityLoadBalancerSetting;
  readonly zoneAwareLbSetting?: ZoneAwareLoadBalancerSetting;
  /** The deprecated `warmupDurationSecs` sets this field, too. */
  readonly warmup?: WarmupConfiguration;
}

/** `LEAST_CONN` is decoded as `LEAST_REQUEST`, and `UNSPECIFIED` as absent. */
export type SimpleLoadBalancer = 'LEAST_REQUEST' | 'RANDOM' | 'PASSTHROUGH' | 'ROUND_ROBIN';

/** At most one hash key; at most one of `ringHash`, `maglev` and the older `minimumRingSize`. */
export interface ConsistentHashLoadBalancer {
  readonly httpHeaderName?: string;
  readonly httpCookie?: HttpCookie;
  readonly useSourceIp?: boolean;
  readonly httpQueryParameterName?: string;
  readonly ringHash?: { readonly minimumRingSize?: number };
  readonly maglev?: { readonly tableSize?: number };
  readonly minimumRingSize?: number;
}

export interface HttpCookie {
  readonly name: string;
  readonly path?: string;
  readonly ttlMs?: number;
  readonly attributes?: readonly { readonly name: string; readonly value: string }[];
}

export interface LocalityLoadBalancerSetting {
  /** `to` maps localities to weights, whose sum is 100. */
  readonly distribute?: readonly { readonly from: string; readonly to: Readonly<Record<string, number>> }[];
  readonly failover?: readonly { readonly from: string; readonly to: string }[];
  readonly failoverPriority?: readonly string[];
  readonly enabled?: boolean;
}

/** Envoy prefers its own zone of the region up to that zone's share of the load; other regions are used only on failover. */
export interface ZoneAwareLoadBalancerSetting {
  readonly enabled?: boolean;
  readonly failover?: readonly { readonly from: string; readonly to: string }[];
  readonly failoverPriority?: readonly string[];
  /** Zone awareness requires at least this many endpoints in the region. Default 6. */
  readonly minClusterSize?: number;
}

export interface WarmupConfiguration {
  readonly durationMs: number;
  readonly minimumPercent?: number;
  readonly aggression?: number;
}

export interface ConnectionPoolSettings {
  readonly tcp?: TcpSettings;
  readonly http?: HttpSettings;
}

export interface TcpSettings {
  readonly maxConnections?: number;
  readonly connectTimeoutMs?: number;
  readonly tcpKeepalive?: TcpKeepalive;
  readonly maxConnectionDurationMs?: number;
  readonly idleTimeoutMs?: number;
}

export interface TcpKeepalive {
  readonly probes?: number;
  readonly timeMs?: number;
  readonly intervalMs?: number;
}

export interface HttpSettings {
  readonly http1MaxPendingRequests?: number;
  readonly http2MaxRequests?: number;
  readonly maxRequestsPerConnection?: number;
  readonly maxRetries?: number;
  readonly idleTimeoutMs?: number;
  readonly h2UpgradePolicy?: H2UpgradePolicy;
  readonly useClientProtocol?: boolean;
  readonly maxConcurrentStreams?: number;
  readonly http2KeepAlive?: Http2KeepAlive;
}

export interface Http2KeepAlive {
  readonly intervalMs: number;
  readonly timeoutMs?: number;
}

export type H2UpgradePolicy = 'DEFAULT' | 'DO_NOT_UPGRADE' | 'UPGRADE';

export interface OutlierDetection {
  readonly consecutive5xxErrors?: number;
  /** The deprecated `consecutiveErrors`, which counted gateway errors, sets this field, too. */
  readonly consecutiveGatewayErrors?: number;
  readonly splitExternalLocalOriginErrors?: boolean;
  readonly consecutiveLocalOriginFailures?: number;
  readonly intervalMs?: number;
  readonly baseEjectionTimeMs?: number;
  readonly maxEjectionPercent?: number;
  readonly minHealthPercent?: number;
}

export interface ClientTlsSettings {
  readonly mode: 'DISABLE' | 'SIMPLE' | 'MUTUAL' | 'ISTIO_MUTUAL';
  readonly clientCertificate?: string;
  readonly privateKey?: string;
  readonly caCertificates?: string;
  readonly credentialName?: string;
  readonly subjectAltNames?: readonly string[];
  readonly sni?: string;
  readonly insecureSkipVerify?: boolean;
  readonly caCrl?: string;
}

export interface TunnelSettings {
  readonly protocol?: 'CONNECT' | 'POST';
  readonly targetHost: string;
  readonly targetPort: number;
}

export interface RetryBudget {
  readonly percent?: number;
  readonly minRetryConcurrency?: number;
}
