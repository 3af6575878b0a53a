/** Address and credentials of an API server, from a kubeconfig or the pod of this process. */

export interface TlsMaterial {
  /** PEM roots. If absent, the system's CAs are trusted. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Expected name in the server certificate, if it differs from the host of the address. */
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface ClusterAccess {
  readonly server: URL;
  /**
   * Credentials of a new connection. Files may have changed since the previous one.
   *
   * @throws ApiError `credentials`
   */
  tls(signal: AbortSignal): Promise<TlsMaterial>;
  /**
   * The values are secret.
   *
   * @throws ApiError `credentials`
   */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Called when the server rejects the credentials (401). They are then read again. */
  invalidateCredentials(): void;
}
