import type { ApplicationProtocol } from '../../fields/protocol.ts';
import type { ConnectionPoolSettings } from '../destinations/traffic-policy.ts';
import type { ServerTlsSettings } from '../gateway/gateway.ts';
import type { Destination } from '../virtual-service/virtual-service.ts';
import type { WorkloadSelector } from './workload-selector.ts';

export interface Sidecar {
  readonly workloadSelector?: WorkloadSelector;
  readonly ingress?: readonly IngressListener[];
  readonly inboundConnectionPool?: ConnectionPoolSettings;
  readonly egress?: readonly EgressListener[];
  readonly outboundTrafficPolicy?: OutboundTrafficPolicy;
}

export interface IngressListener {
  readonly port: SidecarPort;
  readonly bind?: string;
  readonly captureMode: CaptureMode;
  /** `127.0.0.1:port`, `0.0.0.0:port`, `[::1]:port`, `[::]:port`, `:port`, or `unix:///path`. */
  readonly defaultEndpoint?: string;
  readonly tls?: ServerTlsSettings;
  readonly connectionPool?: ConnectionPoolSettings;
}

export interface EgressListener {
  /** Absent for all ports without another listener. */
  readonly port?: SidecarPort;
  readonly bind?: string;
  readonly captureMode: CaptureMode;
  /** `namespace/host`; the namespaces `*`, `.` and `~` are not resolved. */
  readonly hosts: readonly string[];
}

export interface SidecarPort {
  /** 0 is valid only with a Unix socket in `bind`. */
  readonly number: number;
  readonly name: string;
  readonly protocol: ApplicationProtocol;
}

export type CaptureMode = 'DEFAULT' | 'IPTABLES' | 'NONE';

/** ALLOW_ANY_DYNAMIC_DNS forwards plaintext HTTP requests to unregistered hosts to the address that DNS returns. */
export type OutboundTrafficMode = 'REGISTRY_ONLY' | 'ALLOW_ANY' | 'ALLOW_ANY_DYNAMIC_DNS';

export interface OutboundTrafficPolicy {
  readonly mode: OutboundTrafficMode;
  readonly egressProxy?: Destination;
}
