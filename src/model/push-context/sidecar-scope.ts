/** The part of the mesh that is visible to a sidecar. Immutable; all proxies with this scope share it. */
import type { Config, ConfigKey } from '../config/config.ts';
import type { ConnectionPoolSettings } from '../kinds/destinations/traffic-policy.ts';
import type {
  CaptureMode,
  IngressListener,
  OutboundTrafficPolicy,
  Sidecar,
  SidecarPort,
} from '../kinds/workloads/sidecar.ts';
import type { Service } from '../services/service.ts';
import type { ResolvedVirtualService } from './resolved-rules.ts';

export interface SidecarScope {
  readonly namespace: string;
  /** If absent, the scope contains everything exported to the namespace. */
  readonly sidecar?: Config<Sidecar>;
  /** In the object's order. Only the last listener may have no port. */
  readonly egressListeners: readonly EgressListenerScope[];
  /** If absent, inbound listeners are derived from the workload's services. */
  readonly ingressListeners?: readonly IngressListener[];
  readonly inboundConnectionPool?: ConnectionPoolSettings;
  readonly outboundTrafficPolicy: OutboundTrafficPolicy;
  /**
   * Services for which clusters are built: those of all egress listeners, and destinations of their virtual services. Oldest first. A host and
   * namespace may occur several times (one per address).
   */
  readonly services: readonly Service[];
  serviceByHostname(hostname: string): Service | undefined;
  /** Does not cover DestinationRules. */
  dependsOn(key: ConfigKey): boolean;
}

export interface EgressListenerScope {
  /** Absent for the catch-all listener. */
  readonly port?: SidecarPort;
  readonly bind?: string;
  readonly captureMode: CaptureMode;
  /** Oldest first. A listener with a port (except HTTP_PROXY) has only services with this port, reduced to it. */
  readonly services: readonly Service[];
  readonly virtualServices: readonly ResolvedVirtualService[];
}
