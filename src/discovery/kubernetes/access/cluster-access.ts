/** Where an API server is, and who asks it: from a kubeconfig, or from the pod that we run in. */

/** As `node:tls` takes it. */
export interface TlsMaterial {
  /** PEM; absent: the system's authorities. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name that the server's certificate must be of, where that is not the address's. */
  readonly servername?: string;
  /** False: any certificate is taken. */
  readonly rejectUnauthorized?: boolean;
}

export interface ClusterAccess {
  /** With the path below which the API is. */
  readonly server: URL;
  /** For a new connection: files may have changed since the last one. @throws ApiError `credentials` */
  tls(signal: AbortSignal): Promise<TlsMaterial>;
  /** For each request; its values are secret. @throws ApiError `credentials` */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** The server did not take what was given last (401). */
  refused(): void;
}
