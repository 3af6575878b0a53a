/** Events never contain certificates, keys or roots: a version identifies what an effect stores in memory. */

/** agent → secrets. Open the secret server, and obtain the secrets that Envoy will request. */
export type SecretsStart = { type: 'secrets.start' };
/** secrets → agent. Envoy may be started: this agent (`us`) serves the socket, or `another` server. */
export type SecretsReady = { type: 'secrets.ready'; by: 'us' | 'another'; reason: string };
/** secrets → agent. The socket cannot be opened. */
export type SecretsFailed = { type: 'secrets.failed'; reason: string };

/** secrets → secrets/server. Open the socket. */
export type SdsOpen = { type: 'sds.open' };
/** secrets/server → secrets. The socket is open. */
export type SdsListening = { type: 'sds.listening' };
/** secrets/server → secrets. The socket cannot be opened, or its server failed. */
export type SdsFailed = { type: 'sds.failed'; reason: string };
/** secrets/server → secrets. The first client subscribed to this secret. */
export type SdsSubscribed = { type: 'sds.subscribed'; name: string };
/** secrets/server → secrets. The last client unsubscribed from this secret. */
export type SdsUnsubscribed = { type: 'sds.unsubscribed'; name: string };
/** secrets/server → secrets. Every subscribed client has acknowledged this version. */
export type SdsAcknowledged = { type: 'sds.acknowledged'; name: string; version: string };
/** secrets/server → secrets. A client rejected this version, with Envoy's reason, and keeps the previous one. */
export type SdsRejected = { type: 'sds.rejected'; name: string; version: string; reason: string };
/** secrets → secrets/server. Send this version to every subscribed client, now and later. */
export type SdsServe = { type: 'sds.serve'; name: string; version: string };
/** secrets → secrets/server. The certificate expired: do not send it to new clients. */
export type SdsWithdraw = { type: 'sds.withdraw'; name: string };
/** secrets → secrets/server. There is no such secret: reject clients that request nothing else. */
export type SdsReject = { type: 'sds.reject'; name: string; reason: string };

/** Sources of the roots in ROOTCA; each is a hash of a set of certificates, or empty. */
export interface RootParts {
  /** Roots that were issued with the workload's certificate. */
  authorities: string;
  /** Roots that the control plane sent. */
  bundle: string;
}

/** secrets → secret-N. The source of the secret changed: obtain the secret again. */
export type SecretRefresh = { type: 'secret.refresh'; parts: RootParts };
/** secrets → secret-N. These roots are compromised: renew certificates that they signed. */
export type SecretTaint = { type: 'secret.taint'; roots: readonly string[] };
/**
 * secret-N → secrets. A valid version was obtained. `authorities`: hash of the roots issued with the certificate. `root`: hash of the root that the
 * certificate leads to. Both are empty if no root was issued. `serialNumber`: of a certificate signed by an authority; otherwise empty. `endsAtMs`:
 * expiry, Unix time; `null` without expiry.
 */
export type SecretObtained = {
  type: 'secret.obtained';
  name: string;
  version: string;
  authorities: string;
  root: string;
  serialNumber: string;
  parts: RootParts;
  endsAtMs: number | null;
};
/** secret-N → secrets. The attempt failed. `pauseMs`: time until the next attempt. The previous version is still served. */
export type SecretUnavailable = {
  type: 'secret.unavailable';
  name: string;
  reason: string;
  code?: string;
  attempts: number;
  pauseMs: number;
};
/** secret-N → secrets. The current certificate expired without a replacement. */
export type SecretExpired = { type: 'secret.expired'; name: string };

/**
 * xds-proxy → secrets; xds-proxy/server → xds-proxy, from an older agent. The control plane sent roots of peers. `hash`: of the set.
 * `members`: hash of each root. `tainted`: hashes of roots whose certificates must be renewed now.
 */
export type TrustBundleReceived = {
  type: 'trust-bundle.received';
  roots: readonly string[];
  hash: string;
  members: readonly string[];
  tainted: readonly string[];
};
/** secrets → xds-proxy. Every Envoy of this workload that subscribes to roots trusts this set. */
export type TrustBundleServed = { type: 'trust-bundle.served'; hash: string };

/** secrets → xds-proxy. Every Envoy of this workload has acknowledged this certificate, or none has subscribed yet. */
export type CertificateServed = { type: 'certificate.served'; serialNumber: string };

/** secrets → secrets/output. Write the certificate, its key and its roots to the directory of OUTPUT_CERTS. */
export type OutputWrite = { type: 'output.write'; certificate: string; roots: string };
/** secrets/output → secrets. The files could not be written. The next attempt is after a pause, or with the next certificate. */
export type OutputFailed = { type: 'output.failed'; reason: string };

export type SecretReport = SecretObtained | SecretUnavailable | SecretExpired;
export type SdsReport = SdsListening | SdsFailed | SdsSubscribed | SdsUnsubscribed | SdsAcknowledged | SdsRejected;
export type SdsOrder = SdsOpen | SdsServe | SdsWithdraw | SdsReject;
