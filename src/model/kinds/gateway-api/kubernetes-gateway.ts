/** Named KubernetesGateway because Gateway is Istio's kind. */
import type { LabelSelector } from '../label-selector.ts';

export interface KubernetesGateway {
  readonly gatewayClassName: string;
  readonly listeners: readonly Listener[];
  /** If empty, workloads implement the Gateway if their label contains its name. */
  readonly addresses: readonly GatewayAddress[];
  /** Used for the Gateway's deployment (`src/injection/gateway`). */
  readonly infrastructure?: unknown;
  readonly allowedListeners?: unknown;
  /** Not implemented. */
  readonly tls?: unknown;
  readonly defaultScope?: unknown;
}

export interface GatewayAddress {
  /** `IPAddress`, `Hostname`, or implementation-specific. */
  readonly type: string;
  readonly value: string;
}

export interface Listener {
  readonly name: string;
  readonly hostname?: string;
  readonly port: number;
  /** `HTTP`, `HTTPS`, `TLS`, `TCP`, `UDP`, or implementation-specific. */
  readonly protocol: string;
  readonly tls?: ListenerTls;
  readonly allowedRoutes: AllowedRoutes;
}

export interface ListenerTls {
  readonly mode: 'Terminate' | 'Passthrough';
  readonly certificateRefs: readonly SecretReference[];
  readonly options: Readonly<Record<string, string>>;
  /** Not implemented. */
  readonly frontendValidation?: unknown;
}

export interface SecretReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  /** Default: the namespace of the referring object. */
  readonly namespace?: string;
}

export type NamespaceSelector = LabelSelector;

export interface AllowedRoutes {
  readonly namespaces: {
    readonly from: 'All' | 'Selector' | 'Same' | 'None';
    readonly selector?: NamespaceSelector;
  };
  /** Default: the kinds that the protocol supports. */
  readonly kinds?: readonly { readonly group: string; readonly kind: string }[];
}
