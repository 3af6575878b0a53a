/**
 * `gateway.networking.k8s.io` Gateway, decoded. Files call it Gateway; here it is a KubernetesGateway, for Istio's Gateway
 * has the name already.
 */
import type { LabelSelector } from '../label-selector.ts';

export interface KubernetesGateway {
  readonly gatewayClassName: string;
  readonly listeners: readonly Listener[];
  /** None: workloads that have the object's name as a label carry it out. */
  readonly addresses: readonly GatewayAddress[];
  /** Labels, annotations and parameters of the objects that run it (`src/injection/gateway`). */
  readonly infrastructure?: unknown;
  readonly allowedListeners?: unknown;
  /** TLS of the whole object (client certificates, certificates towards backends): not carried out. */
  readonly tls?: unknown;
  readonly defaultScope?: unknown;
}

export interface GatewayAddress {
  /** `IPAddress`, `Hostname`, or an implementation's own. */
  readonly type: string;
  readonly value: string;
}

export interface Listener {
  readonly name: string;
  /** Absent: all. */
  readonly hostname?: string;
  readonly port: number;
  /** `HTTP`, `HTTPS`, `TLS`, `TCP`, `UDP`, or an implementation's own. */
  readonly protocol: string;
  readonly tls?: ListenerTls;
  readonly allowedRoutes: AllowedRoutes;
}

export interface ListenerTls {
  readonly mode: 'Terminate' | 'Passthrough';
  readonly certificateRefs: readonly SecretReference[];
  readonly options: Readonly<Record<string, string>>;
  /** Certificates of clients: kept, and not carried out. */
  readonly frontendValidation?: unknown;
}

export interface SecretReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  /** Absent: that of the object that refers. */
  readonly namespace?: string;
}

export type NamespaceSelector = LabelSelector;

export interface AllowedRoutes {
  readonly namespaces: {
    readonly from: 'All' | 'Selector' | 'Same' | 'None';
    /** The selector, where `from` is `Selector`. */
    readonly selector?: NamespaceSelector;
  };
  /** Absent: those that the protocol is for. */
  readonly kinds?: readonly { readonly group: string; readonly kind: string }[];
}
