import type { CatalogueRow } from '../../catalogue-row.ts';

/** Key ID of a signing certificate, in hexadecimal. */
export type AuthorityId = string;

/**
 * Stage of a root rotation. `steady`: one root. `trusting`: two roots are distributed; `signer` signs, `other` does not yet. `signing`: two roots;
 * `signer` signs, `other` signed before. `dropping`: only the root of `signer` is distributed.
 */
export type RotationStage = 'steady' | 'trusting' | 'signing' | 'dropping';

/** discovery → authority. Load the authority, or create one. */
export type AuthorityLoad = { type: 'authority.load' };
/**
 * authority → discovery. The authority signs. Sent whenever a stage applies: a start does not wait for the end of a rotation.
 */
export type AuthorityLoaded = { type: 'authority.loaded'; signer: AuthorityId; roots: AuthorityId[] };
/** authority → discovery. A stage is recorded, and applies next: the signer and the distributed roots. */
export type AuthorityChanged = {
  type: 'authority.changed';
  stage: RotationStage;
  signer: AuthorityId;
  roots: AuthorityId[];
  /** The tainted authority. From stage `signing`, its certificates are replaced. */
  tainted: AuthorityId | null;
};
/** authority → discovery. The authority is unavailable, which ends the program at its start, or an operation failed and the signer continues. */
export type AuthorityFailed = { type: 'authority.failed'; reason: string };
/** shared-authority → discovery. There is no usable authority yet. */
export type SharedAuthorityPending = { type: 'shared-authority.pending'; reason: string };
/** discovery/http → authority. An operator requests a rotation of the root. */
export type RotationStart = { type: 'rotation.start' };
/** discovery/http → authority. An operator reverts the last step of the rotation. Before another root signs, this also removes a taint. */
export type RotationRevert = { type: 'rotation.revert' };
/**
 * discovery/http → authority. The key of a root may be compromised, so its certificates must be renewed: in stage `signing`, this is the previous
 * root, otherwise the current one.
 */
export type RotationTaint = { type: 'rotation.taint' };
/** discovery/http → authority. Proceed without the missing workloads, which may lose connections. */
export type RotationProceed = { type: 'rotation.proceed' };
export type OperatorOrder = RotationStart | RotationRevert | RotationTaint | RotationProceed;

/** authority → authority/ledger. Report when every workload trusts exactly these roots of this authority. */
export type RootsAwait = { type: 'roots.await'; roots: AuthorityId[] };
/** authority/ledger → authority. All live workloads have acknowledged the roots. */
export type RootsTrusted = { type: 'roots.trusted'; roots: AuthorityId[] };
/** authority/ledger → authority → discovery. Workloads that the stage waits for: number, and some names. */
export type RootsPending = { type: 'roots.pending'; missing: number; workloads: string[] };
/** authority → authority/ledger. Report when no certificate of this authority is in use. */
export type LeafCertificatesAwait = { type: 'leaf-certificates.await'; authority: AuthorityId };
/** authority/ledger → authority. No certificate of the authority is in use. */
export type LeafCertificatesUnused = { type: 'leaf-certificates.unused'; authority: AuthorityId };

/** discovery → server-certificate. The certificate of the secure port was read: keep it up to date. */
export type CertificateWatch = { type: 'certificate.watch' };
/** server-certificate → discovery. New handshakes use another certificate. `endsAt`: Unix time in milliseconds. */
export type CertificateChanged = { type: 'certificate.changed'; serialNumber: string; endsAt: number };
/** server-certificate → discovery. The new certificate is invalid: the current one is kept. */
export type CertificateRejected = { type: 'certificate.rejected'; reason: string };
type Diagram = 'authority' | 'server-certificate';

export const authorityCatalogue: readonly CatalogueRow<Diagram>[] = [
  { type: 'authority.load', from: 'discovery', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'authority.loaded', from: 'authority', to: 'discovery', diagram: 'authority', seeds: [] },
  { type: 'authority.changed', from: 'authority', to: 'discovery', diagram: 'authority', seeds: [] },
  { type: 'authority.failed', from: 'authority', to: 'discovery', diagram: 'authority', seeds: [] },
  { type: 'rotation.start', from: 'discovery/http', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'rotation.revert', from: 'discovery/http', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'rotation.taint', from: 'discovery/http', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'rotation.proceed', from: 'discovery/http', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'files.changed', from: 'authority/directory', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'roots.await', from: 'authority', to: 'authority/ledger', diagram: 'authority', seeds: [] },
  { type: 'roots.trusted', from: 'authority/ledger', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'roots.pending', from: 'authority/ledger', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'roots.pending', from: 'authority', to: 'discovery', diagram: 'authority', seeds: [] },
  { type: 'leaf-certificates.await', from: 'authority', to: 'authority/ledger', diagram: 'authority', seeds: [] },
  { type: 'leaf-certificates.unused', from: 'authority/ledger', to: 'authority', diagram: 'authority', seeds: [] },
  {
    type: 'certificate.watch',
    from: 'discovery',
    to: 'server-certificate',
    diagram: 'server-certificate',
    seeds: [],
  },
  {
    type: 'files.changed',
    from: 'server-certificate/files',
    to: 'server-certificate',
    diagram: 'server-certificate',
    seeds: [],
  },
  {
    type: 'certificate.changed',
    from: 'server-certificate',
    to: 'discovery',
    diagram: 'server-certificate',
    seeds: [],
  },
  {
    type: 'certificate.rejected',
    from: 'server-certificate',
    to: 'discovery',
    diagram: 'server-certificate',
    seeds: [],
  },
];
