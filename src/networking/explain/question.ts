/** A connection, and perhaps a request on it, of which a person wants to know what a proxy does with it. */

export interface Question {
  /** Where a sidecar is asked: what its application sends, or what comes to its application. A gateway has one side. */
  readonly direction: 'outbound' | 'inbound';
  readonly destination: {
    /** An IP; absent: not known, as when a name was not resolved. */
    readonly address?: string;
    readonly port: number;
  };
  /** Where the connection comes from; absent: nothing that matches on it holds. */
  readonly source?: { readonly address: string; readonly port: number };
  /** The client begins with a TLS handshake. */
  readonly tls?: {
    /** Lower-case; absent: it names no server. */
    readonly sni?: string;
    /** What it offers, the preferred first. */
    readonly alpn: readonly string[];
    /** The URI or DNS name in the client's certificate; absent: the client presents none. */
    readonly principal?: string;
  };
  /** Milliseconds since the epoch; decides whether tokens are valid. Absent: the time of the machine. */
  readonly now?: number;
  /** Absent: bytes of another protocol. */
  readonly http?: HttpQuestion;
}

export interface HttpQuestion {
  readonly version: 'HTTP/1.0' | 'HTTP/1.1' | 'HTTP/2';
  /** `Host`, with its port if the client sends one. Absent: the request has no Host header. */
  readonly authority?: string;
  /** The path with its query; the target of CONNECT in HTTP/1: `HOST:PORT`; empty for CONNECT in HTTP/2. */
  readonly path: string;
  readonly method: string;
  /** Headers by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}
