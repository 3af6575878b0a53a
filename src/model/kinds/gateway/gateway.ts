import type { ApplicationProtocol } from '../../fields/protocol.ts';

export interface Gateway {
  readonly servers: readonly Server[];
  readonly selector: Readonly<Record<string, string>>;
}

export interface Server {
  readonly name?: string;
  readonly port: ServerPort;
  readonly bind?: string;
  /** `[namespace/]host`; the namespaces `.` and `*` are not resolved. */
  readonly hosts: readonly string[];
  readonly tls?: ServerTlsSettings;
  readonly defaultEndpoint?: string;
  /** Why connections to the server are closed. Set only for listeners of the Gateway API; users cannot set it. */
  readonly closedReason?: string;
}

export interface ServerPort {
  /** 0 is valid only with a Unix socket in `bind`. */
  readonly number: number;
  readonly name: string;
  readonly protocol: ApplicationProtocol;
  readonly targetPort?: number;
}

export type ServerTlsMode =
  | 'PASSTHROUGH'
  | 'SIMPLE'
  | 'MUTUAL'
  | 'AUTO_PASSTHROUGH'
  | 'ISTIO_MUTUAL'
  | 'OPTIONAL_MUTUAL';

export type TlsProtocol = 'TLS_AUTO' | 'TLSV1_0' | 'TLSV1_1' | 'TLSV1_2' | 'TLSV1_3';

export interface ServerTlsSettings {
  /** Default `PASSTHROUGH`, as in the API. */
  readonly mode: ServerTlsMode;
  readonly httpsRedirect?: boolean;
  readonly serverCertificate?: string;
  readonly privateKey?: string;
  readonly caCertificates?: string;
  readonly caCrl?: string;
  readonly credentialName?: string;
  readonly credentialNames?: readonly string[];
  readonly caCertCredentialName?: string;
  readonly tlsCertificates?: readonly TlsCertificate[];
  readonly subjectAltNames?: readonly string[];
  readonly verifyCertificateSpki?: readonly string[];
  readonly verifyCertificateHash?: readonly string[];
  readonly minProtocolVersion?: TlsProtocol;
  readonly maxProtocolVersion?: TlsProtocol;
  readonly cipherSuites?: readonly string[];
}

export interface TlsCertificate {
  readonly serverCertificate: string;
  readonly privateKey: string;
  readonly caCertificates?: string;
}

/** Comma-separated host names of Services; their workloads implement the Gateway. */
export const gatewayServiceAnnotation = 'internal.istio.io/gateway-service';

/** Restricts a Gateway to workloads of its own namespace, regardless of PILOT_SCOPE_GATEWAY_TO_NAMESPACE. */
export const ownNamespaceAnnotation = 'internal.istio.io/own-namespace';
