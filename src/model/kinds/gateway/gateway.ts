/** `networking.istio.io` Gateway, decoded. */
import type { Protocol } from '../../fields/protocol.ts';

export interface Gateway {
  readonly servers: readonly Server[];
  /** Labels of the workloads that this object configures; empty: all. */
  readonly selector: Readonly<Record<string, string>>;
}

export interface Server {
  readonly name?: string;
  readonly port: ServerPort;
  /** An address, or `unix:///path`. */
  readonly bind?: string;
  /** `[namespace/]host`; namespace `.` or `*` as written. */
  readonly hosts: readonly string[];
  readonly tls?: ServerTlsSettings;
  /** Reserved by the API. */
  readonly defaultEndpoint?: string;
  /** Why its connections are closed: what a listener of the Gateway API may come to, and nobody can write. */
  readonly closed?: string;
}

export interface ServerPort {
  /** 0 only with a unix socket bind. */
  readonly number: number;
  readonly name: string;
  readonly protocol: Protocol;
  /** Deprecated by the API. */
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
  /** `PASSTHROUGH` when not said, as the API has it. */
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

/** Names the services, by host names with commas between them, whose workloads carry out a Gateway object. */
export const gatewayServiceAnnotation = 'internal.istio.io/gateway-service';

/** Annotation of an object that only workloads of its own namespace carry out, whatever is said of others. */
export const ownNamespaceAnnotation = 'internal.istio.io/own-namespace';
