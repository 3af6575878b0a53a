export interface Question {
  /** Direction from the perspective of a sidecar's application. Ignored for a gateway. */
  readonly direction: 'outbound' | 'inbound';
  readonly destination: {
    /** IP address. Absent if unknown, such as for an unresolved name. */
    readonly address?: string;
    readonly port: number;
  };
  /** Source of the connection. If absent, matches on the source fail. */
  readonly source?: { readonly address: string; readonly port: number };
  /** Set if the client starts with a TLS handshake. */
  readonly tls?: {
    /** In lower case. Absent without SNI. */
    readonly sni?: string;
    readonly alpn: readonly string[];
    /** URI or DNS name of the client certificate. Absent without certificate. */
    readonly principal?: string;
  };
  /** Time in milliseconds since the epoch at which tokens must be valid. Defaults to the current time. */
  readonly now?: number;
  readonly http?: HttpQuestion;
}

export interface HttpQuestion {
  readonly version: 'HTTP/1.0' | 'HTTP/1.1' | 'HTTP/2';
  /** Host header, including a port. Absent if the request has none. */
  readonly authority?: string;
  /** Path and query. For CONNECT: `HOST:PORT` in HTTP/1, empty in HTTP/2. */
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
}
