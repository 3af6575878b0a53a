/**
 * Every event about the secrets of a workload (spec/agent.md §7): sender and receiver. Events never contain
 * certificates, keys or roots: a version identifies what an effect keeps in memory.
 */

// ---- agent ↔ secrets

/** agent → secrets. Open the secret server, and obtain the secrets that Envoy will request. */
export type SecretsStart = { type: 'secrets.start' };
/** secrets → agent. Envoy may be started: this agent serves the socket, or `another` server does. */
export type SecretsReady = { type: 'secrets.ready'; by: 'us' | 'another'; reason: string };
/** secrets → agent. The socket cannot be opened. */
export type SecretsFailed = { type: 'secrets.failed'; reason: string };

// ---- secrets ↔ secrets/server

/** secrets → secrets/server. Open the socket. */
export type SdsOpen = { type: 'sds.open' };
/** secrets/server → secrets. The socket is open. */
export type SdsListening = { type: 'sds.listening' };
/** secrets/server → secrets. The socket cannot be opened, or its server failed. */
export type SdsFailed = { type: 'sds.failed'; reason: string };
/** secrets/server → secrets. The first client subscribed to this secret. */
export type SdsSubscribed = { type: 'sds.subscribed'; name: string };
/** secrets/server → secrets. No client is subscribed to this secret any more. */
export type SdsUnsubscribed = { type: 'sds.unsubscribed'; name: string };
/** secrets/server → secrets. Every subscribed client has acknowledged this version. */
export type SdsAcknowledged = { type: 'sds.acknowledged'; name: string; version: string };
/** secrets/server → secrets. A client rejected this version, with Envoy's reason, and keeps the previous one. */
export type SdsRejected = { type: 'sds.rejected'; name: string; version: string; reason: string };
/** secrets → secrets/server. Send this version to every subscribed client, now and later. */
export type SdsServe = { type: 'sds.serve'; name: string; version: string };
/** secrets → secrets/server. The certificate has expired: do not send it to new clients. */
export type SdsWithdraw = { type: 'sds.withdraw'; name: string };
/** secrets → secrets/server. The name is not a secret: reject clients that request nothing else. */
export type SdsReject = { type: 'sds.reject'; name: string; reason: string };

// ---- secrets ↔ secret-N

/** Sources of the roots in ROOTCA, each the hash of a set of certificates; empty: none yet. */
export interface RootParts {
  /** Those that came with the workload's certificate. */
  authorities: string;
  /** Those that the control plane sent. */
  bundle: string;
}

/** secrets → secret-N. Its source changed: obtain it again. */
export type SecretRefresh = { type: 'secret.refresh'; parts: RootParts };
/** secrets → secret-N. These roots are compromised: renew a certificate of one of them now. */
export type SecretTaint = { type: 'secret.taint'; roots: readonly string[] };
/**
 * secret-N → secrets. A complete and valid version was obtained. `authorities`: hash of the roots that came with it; `root`: of
 * its own root; both empty if none came. `serialNumber`: of a certificate signed by an authority; otherwise empty. `endsAtMs`:
 * expiry since 1970; null without expiry.
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
/** secret-N → secrets. The attempt failed. `pauseMs`: until the next attempt. The previous version is still served. */
export type SecretUnavailable = {
  type: 'secret.unavailable';
  name: string;
  reason: string;
  /** Of an error that has one. */
  code?: string;
  attempts: number;
  pauseMs: number;
};
/** secret-N → secrets. The current certificate has expired, and there is no other. */
export type SecretExpired = { type: 'secret.expired'; name: string };

// ---- secrets ↔ xds-proxy

/**
 * xds-proxy → secrets; xds-proxy/server → xds-proxy, of an agent before this one. The control plane sent roots of peers in PEM.
 * `hash` is the hash of the set, `members` are those of each root. `tainted`: hashes of roots whose certificates must be renewed
 * now.
 */
export type TrustBundleReceived = {
  type: 'trust-bundle.received';
  roots: readonly string[];
  hash: string;
  members: readonly string[];
  tainted: readonly string[];
};
/** secrets → xds-proxy. Every Envoy of this workload that is subscribed to roots trusts this set, or none is subscribed. */
export type TrustBundleServed = { type: 'trust-bundle.served'; hash: string };

/**
 * secrets → xds-proxy. Every Envoy of this workload has acknowledged this certificate, or none has subscribed yet and new ones
 * receive it. A rotation of the root waits for this, not for the signature.
 */
export type CertificateServed = { type: 'certificate.served'; serialNumber: string };

// ---- secrets ↔ secrets/output

/** secrets → secrets/output. Write the certificate, its key and its roots to the directory of OUTPUT_CERTS. */
export type OutputWrite = { type: 'output.write'; certificate: string; roots: string };
/** secrets/output → secrets. The files could not be written; the next attempt is after a pause, or with the next certificate. */
export type OutputFailed = { type: 'output.failed'; reason: string };

export type SecretReport = SecretObtained | SecretUnavailable | SecretExpired;
/** Events of the secret server. */
export type SdsReport = SdsListening | SdsFailed | SdsSubscribed | SdsUnsubscribed | SdsAcknowledged | SdsRejected;
/** Orders to the secret server. */
export type SdsOrder = SdsOpen | SdsServe | SdsWithdraw | SdsReject;
