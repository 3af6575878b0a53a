/** A connection, with an optional HTTP request, to explain for a proxy. */

export interface Question {
  /** For a sidecar: traffic from or to its application. Ignored for a gateway. */
  readonly direction: 'outbound' | 'inbound';
  readonly destination: {
    /** An IP, absent if unknown, such as for a name that was not resolved. */
    readonly address?: string;
    readonly port: number;
  };
  /** Source of the connection. If absent, matches on it fail. */
  readonly source?: { readonly address: string; readonly port: number };
  /** The client begins with a TLS handshake. */
  readonly tls?: {
    /** Lower-case, absent without SNI. */
    readonly sni?: string;
    /** ALPN, preferred first. */
    readonly alpn: readonly string[];
    /** The URI or DNS name in the client's certificate, absent without certificate. */
    readonly principal?: string;
  };
  /** Milliseconds since the epoch, for the validity of tokens. Default: the current time. */
  readonly now?: number;
  /** Absent for other protocols. */
  readonly http?: HttpQuestion;
}

export interface HttpQuestion {
  readonly version: 'HTTP/1.0' | 'HTTP/1.1' | 'HTTP/2';
  /** `Host`, with its port if the client sends one. Absent without a Host header. */
  readonly authority?: string;
  /** The path with its query. For CONNECT `HOST:PORT` in HTTP/1, empty in HTTP/2. */
  readonly path: string;
  readonly method: string;
  /** Headers by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}
