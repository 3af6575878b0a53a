/** Address and credentials of an API server, from a kubeconfig or from the pod of this process. */

export interface TlsMaterial {
  /** PEM. If absent, the system's authorities are used. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Expected name in the server certificate, if it differs from the address. */
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface ClusterAccess {
  /** Includes the base path of the API. */
  readonly server: URL;
  /** Credentials of a new connection; files may have changed since the last one. @throws ApiError `credentials` */
  tls(signal: AbortSignal): Promise<TlsMaterial>;
  /** Headers of a request; their values are secret. @throws ApiError `credentials` */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** The server rejected the last credentials (401), so they are read again. */
  invalidateCredentials(): void;
}
