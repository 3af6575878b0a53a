/** What of the mesh a sidecar sees (spec/discovery.md §8.8). Immutable, shared by all proxies that it fits. */
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
  /** Namespace of the proxies that it is for. */
  readonly namespace: string;
  /** The Sidecar object that it follows; absent: the default, everything that is exported to the namespace. */
  readonly sidecar?: Config<Sidecar>;
  /** Egress listeners in the order of the object. The one without a port is last; there is at most one. */
  readonly egressListeners: readonly EgressListenerScope[];
  /** Absent: inbound listeners follow the services of the workload. */
  readonly ingressListeners?: readonly IngressListener[];
  readonly inboundConnectionPool?: ConnectionPoolSettings;
  /** The object's, else the mesh's. */
  readonly outboundTrafficPolicy: OutboundTrafficPolicy;
  /**
   * All services of all egress listeners and those that their virtual services lead to: what clusters are made for.
   * Oldest first. Services of the same host and namespace (one per address, §5.5) are all there.
   */
  readonly services: readonly Service[];
  /** The service that a host name means here (§8.8: own namespace, else Kubernetes, else the oldest). */
  serviceByHostname(hostname: string): Service | undefined;
  /** Whether what a proxy of this scope gets may depend on the object, one that is no rule (§6.5 rule 4). */
  dependsOn(key: ConfigKey): boolean;
}

export interface EgressListenerScope {
  /** Absent: the catch-all listener. */
  readonly port?: SidecarPort;
  readonly bind?: string;
  readonly captureMode: CaptureMode;
  /**
   * Visible through this listener, oldest first. A listener with a port (but HTTP_PROXY) sees only services that have
   * the port, with this port alone.
   */
  readonly services: readonly Service[];
  /** Visible through this listener and bound to `mesh`, in the order in which they hold for the namespace. */
  readonly virtualServices: readonly ResolvedVirtualService[];
}
