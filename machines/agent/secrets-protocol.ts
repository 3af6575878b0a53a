/**
 * Every event about the secrets of a workload (spec/agent.md §7): who sends it, who receives it. Certificates, keys and roots
 * themselves never pass here: a version names what an effect keeps in memory.
 */

// ---- agent ↔ secrets

/** agent → secrets. Open the secret server, and obtain what Envoy will ask for. */
export type SecretsStart = { type: 'secrets.start' };
/** secrets → agent. Envoy may be started: we answer at the socket, or `another` server does. */
export type SecretsReady = { type: 'secrets.ready'; by: 'us' | 'another'; reason: string };
/** secrets → agent. The socket cannot be had. */
export type SecretsFailed = { type: 'secrets.failed'; reason: string };

// ---- secrets ↔ secrets/server

/** secrets → secrets/server. Open the socket. */
export type SdsOpen = { type: 'sds.open' };
/** secrets/server → secrets. The socket answers from now on. */
export type SdsListening = { type: 'sds.listening' };
/** secrets/server → secrets. The socket cannot be opened, or its server broke. */
export type SdsFailed = { type: 'sds.failed'; reason: string };
/** secrets/server → secrets. Somebody wants a secret that nobody else wants. */
export type SdsAsked = { type: 'sds.asked'; name: string };
/** secrets/server → secrets. Nobody wants it any more. */
export type SdsLeft = { type: 'sds.left'; name: string };
/** secrets/server → secrets. Everybody who wants it has taken this version. */
export type SdsAcknowledged = { type: 'sds.acknowledged'; name: string; version: string };
/** secrets/server → secrets. Somebody refused this version, in Envoy's words: it goes on with what it had. */
export type SdsRejected = { type: 'sds.rejected'; name: string; version: string; reason: string };
/** secrets → secrets/server. This version is what everybody who wants the secret gets, now and later. */
export type SdsServe = { type: 'sds.serve'; name: string; version: string };
/** secrets → secrets/server. Its certificate has ended: nobody who comes gets it. */
export type SdsWithdraw = { type: 'sds.withdraw'; name: string };
/** secrets → secrets/server. There is no secret of this name, and there will be none: whoever wants nothing else is told. */
export type SdsRefuse = { type: 'sds.refuse'; name: string; reason: string };

// ---- secrets ↔ secret-N

/** What roots ROOTCA is made of, each a hash of a set of certificates; empty: none yet. */
export interface RootParts {
  /** Those that came with the workload's certificate. */
  authorities: string;
  /** Those that the control plane sent. */
  bundle: string;
}

/** secrets → secret-N. What it is made of is another: obtain it anew. */
export type SecretRefresh = { type: 'secret.refresh'; parts: RootParts };
/** secrets → secret-N. These roots are no longer only their owner's: a certificate of one of them is renewed now. */
export type SecretTaint = { type: 'secret.taint'; roots: readonly string[] };
/**
 * secret-N → secrets. It is there, whole and checked. `authorities`: hash of the
 * roots that came with it; `root`: of the one that it leads to; both empty where none came. `serialNumber`: of a certificate that an
 * authority has signed; else empty. `endsAtMs`: since 1970; null: it does not end.
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
/** secret-N → secrets. It could not be obtained. `pauseMs`: until the next try. What was obtained before stays in force. */
export type SecretLacking = {
  type: 'secret.lacking';
  name: string;
  reason: string;
  /** Of an error that has one. */
  code?: string;
  attempts: number;
  pauseMs: number;
};
/** secret-N → secrets. The certificate in force has ended, and there is no other. */
export type SecretEnded = { type: 'secret.ended'; name: string };

// ---- secrets ↔ xds-proxy

/**
 * xds-proxy → secrets; xds-proxy/server → xds-proxy, of an agent before this one. The control plane sent roots that peers' certificates may lead to, in PEM; `hash` is the set's, `members` are
 * those of each. `tainted`: hashes of those whose certificates are to be renewed now.
 */
export type TrustBundleReceived = {
  type: 'trust-bundle.received';
  roots: readonly string[];
  hash: string;
  members: readonly string[];
  tainted: readonly string[];
};
/** secrets → xds-proxy. Every Envoy of this workload that asks for roots trusts this set; or none asks. */
export type TrustBundleServed = { type: 'trust-bundle.served'; hash: string };

/**
 * secrets → xds-proxy. Every Envoy of this workload has this certificate, by its own word, and none from before it; or none has ever asked
 * for one, and whoever does gets this. A rotation of the root waits for that word, and not for the signature.
 */
export type CertificateServed = { type: 'certificate.served'; serialNumber: string };

// ---- secrets ↔ secrets/output

/** secrets → secrets/output. Write the certificate, its key and its roots to the directory of OUTPUT_CERTS. */
export type OutputWrite = { type: 'output.write'; certificate: string; roots: string };
/** secrets/output → secrets. They could not be written; the next attempt is after a pause, or with the next certificate. */
export type OutputFailed = { type: 'output.failed'; reason: string };

/** What a secret tells. */
export type SecretReport = SecretObtained | SecretLacking | SecretEnded;
/** What the secret server tells. */
export type SdsReport = SdsListening | SdsFailed | SdsAsked | SdsLeft | SdsAcknowledged | SdsRejected;
/** What it is told. */
export type SdsOrder = SdsOpen | SdsServe | SdsWithdraw | SdsRefuse;
