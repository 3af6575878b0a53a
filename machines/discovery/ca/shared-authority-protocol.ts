/** The replicas share an authority: a Secret of the cluster has its keys and the stage of a rotation. */
import type { CatalogueRow } from '../../catalogue-row.ts';
import type { AuthorityId, RotationStage } from './authority-protocol.ts';

/** `other` exists only during a rotation. */
export interface SharedStage {
  stage: RotationStage;
  signer: AuthorityId;
  other: AuthorityId | null;
  tainted: AuthorityId | null;
  previousSigners: AuthorityId[];
}

/**
 * shared-authority/secret → shared-authority. The Secret has an authority that can sign. `reading`: number of the read. `isCompatible`: this replica
 * distributes the root of the signer in the Secret, and the Secret has the root of this replica's signer.
 */
export type SharedAuthorityRead = {
  type: 'shared-authority.read';
  reading: number;
  isCompatible: boolean;
} & SharedStage;
/** shared-authority/secret → shared-authority. All Secrets are known, and no Secret has an authority. */
export type SharedAuthorityAbsent = { type: 'shared-authority.absent' };
/** shared-authority/secret → shared-authority. The authority in the Secret cannot sign. */
export type SharedAuthorityUnusable = { type: 'shared-authority.unusable'; reason: string };

export type SharedAuthorityReport = SharedAuthorityRead | SharedAuthorityAbsent | SharedAuthorityUnusable;

const diagram = 'shared-authority';
type Diagram = typeof diagram;

const catalogueRows = (from: string, to: string, types: readonly string[]): CatalogueRow<Diagram>[] =>
  types.map((type) => ({ type, from, to, diagram, seeds: [] }));

const reports: readonly SharedAuthorityReport['type'][] = [
  ...(['shared-authority.read', 'shared-authority.absent', 'shared-authority.unusable'] as const),
];
const authorityReports = ['authority.loaded', 'authority.changed', 'authority.failed', 'shared-authority.pending'];

export const sharedAuthorityCatalogue: readonly CatalogueRow<Diagram>[] = [
  ...catalogueRows('discovery', 'shared-authority', ['spawn', 'authority.load']),
  ...catalogueRows('shared-authority', 'shared-authority/secret', ['spawn']),
  ...catalogueRows('shared-authority/secret', 'shared-authority', reports),
  ...catalogueRows('shared-authority', 'shared-authority/creation', ['spawn']),
  ...catalogueRows('shared-authority', 'discovery', authorityReports),
];
