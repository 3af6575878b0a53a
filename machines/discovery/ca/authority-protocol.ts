/** Events of the certificate authority, of the ledger that it waits for, and of the certificate of the port with TLS. */
import type { CatalogueRow } from '../../catalogue-row.ts';

// ---- discovery ↔ authority

/** Of a signing certificate, in hexadecimal: its key id. Which key that is, only the effects know. */
export type AuthorityId = string;

/**
 * Where a rotation of the root is: one root (`steady`), two of which the old signs (`trusting`), two of which the new signs
 * (`signing`), the new one alone given out (`dropping`).
 */
export type RotationStage = 'steady' | 'trusting' | 'signing' | 'dropping';

/** discovery → authority. Find the authority, or make one. */
export type AuthorityLoad = { type: 'authority.load' };
/** authority → discovery. There is one, and it signs. */
export type AuthorityLoaded = { type: 'authority.loaded'; signer: AuthorityId; roots: AuthorityId[] };
/** authority → discovery. A stage is written down, and takes effect: who signs, and whose roots are given out. */
export type AuthorityChanged = {
  type: 'authority.changed';
  stage: RotationStage;
  signer: AuthorityId;
  roots: AuthorityId[];
  /** Whose certificates nobody is to have any more. */
  tainted: AuthorityId | null;
};
/** authority → discovery. It cannot be had, or something cannot be done with it; what signs goes on. */
export type AuthorityFailed = { type: 'authority.failed'; reason: string };
/** shared-authority → discovery. There is none yet that could be used; it is waited for. */
export type SharedAuthorityAwaited = { type: 'shared-authority.awaited'; reason: string };
/** discovery/http → authority. Somebody wants the root rotated. */
export type RotationOrder = { type: 'rotation.order' };
/** discovery/http → authority. Somebody wants the last step of the rotation taken back. */
export type RotationRevert = { type: 'rotation.revert' };
/** discovery/http → authority. The root before the next one is no longer only ours: everybody is to renew at once. */
export type RotationTaint = { type: 'rotation.taint' };
/** discovery/http → authority. Go on without those who are waited for: they are cut off, and somebody has said so. */
export type RotationForce = { type: 'rotation.force' };
/** What an operator may order. */
export type OperatorOrder = RotationOrder | RotationRevert | RotationTaint | RotationForce;

// ---- authority ↔ authority/ledger

/** authority → authority/ledger. Say when every workload trusts these roots and no others of ours. */
export type BundleAwait = { type: 'bundle.await'; roots: AuthorityId[] };
/** authority/ledger → authority. Every workload that lives has said so. */
export type BundleTrusted = { type: 'bundle.trusted'; roots: AuthorityId[] };
/** authority/ledger → authority → discovery. So many have not; some of them are named. */
export type BundleAwaited = { type: 'bundle.awaited'; missing: number; workloads: string[] };
/** authority → authority/ledger. Say when nothing that this authority has signed is in use any more. */
export type LeavesAwait = { type: 'leaves.await'; authority: AuthorityId };
/** authority/ledger → authority. Nothing is. */
export type LeavesEnded = { type: 'leaves.ended'; authority: AuthorityId };

// ---- discovery ↔ server-certificate

/** discovery → server-certificate. The certificate of the port with TLS was read: keep it in force. */
export type CertificateWatch = { type: 'certificate.watch' };
/** server-certificate → discovery. Handshakes from now on show another one. `endsAt`: Unix time in milliseconds. */
export type CertificateChanged = { type: 'certificate.changed'; serialNumber: string; endsAt: number };
/** server-certificate → discovery. What there is would not do; what is shown is shown on. */
export type CertificateRejected = { type: 'certificate.rejected'; reason: string };
type Diagram = 'authority' | 'server-certificate';

/** Rows of the catalogue of events. */
export const authorityCatalogue: readonly CatalogueRow<Diagram>[] = [
  { type: 'authority.load', from: 'discovery', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'authority.loaded', from: 'authority', to: 'discovery', diagram: 'authority', seeds: [] },
  { type: 'authority.changed', from: 'authority', to: 'discovery', diagram: 'authority', seeds: [] },
  { type: 'authority.failed', from: 'authority', to: 'discovery', diagram: 'authority', seeds: [] },
  { type: 'rotation.order', from: 'discovery/http', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'rotation.revert', from: 'discovery/http', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'rotation.taint', from: 'discovery/http', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'rotation.force', from: 'discovery/http', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'files.changed', from: 'authority/directory', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'bundle.await', from: 'authority', to: 'authority/ledger', diagram: 'authority', seeds: [] },
  { type: 'bundle.trusted', from: 'authority/ledger', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'bundle.awaited', from: 'authority/ledger', to: 'authority', diagram: 'authority', seeds: [] },
  { type: 'bundle.awaited', from: 'authority', to: 'discovery', diagram: 'authority', seeds: [] },
  { type: 'leaves.await', from: 'authority', to: 'authority/ledger', diagram: 'authority', seeds: [] },
  { type: 'leaves.ended', from: 'authority/ledger', to: 'authority', diagram: 'authority', seeds: [] },
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
