/** Events of the authority that the replicas of a control plane share: a Secret of the cluster has its keys, and the stage of a rotation. */
import type { CatalogueRow } from '../../catalogue-row.ts';
import type { AuthorityId, RotationStage } from './authority-protocol.ts';

/** What stands beside the keys. Without a rotation under way there is no other one. */
export interface SharedStage {
  stage: RotationStage;
  signer: AuthorityId;
  other: AuthorityId | null;
  tainted: AuthorityId | null;
  /** Those that signed before, the last one first. */
  before: AuthorityId[];
}

/**
 * shared-authority/secret → shared-authority. The Secret has an authority that can sign. `reading`: which reading it is, for the effects have the
 * keys. `fits`: its root is one of those that are given out here, and the root of what signs here is one of those that it gives out.
 */
export type SharedAuthorityRead = { type: 'shared-authority.read'; reading: number; fits: boolean } & SharedStage;
/** shared-authority/secret → shared-authority. All Secrets are known, and there is none with an authority. */
export type SharedAuthorityAbsent = { type: 'shared-authority.absent' };
/** shared-authority/secret → shared-authority. There is one, and what it has cannot sign. */
export type SharedAuthorityRefused = { type: 'shared-authority.refused'; reason: string };

export type SharedAuthorityReport = SharedAuthorityRead | SharedAuthorityAbsent | SharedAuthorityRefused;

const diagram = 'shared-authority';
type Diagram = typeof diagram;

const rows = (from: string, to: string, types: readonly string[]): CatalogueRow<Diagram>[] =>
  types.map((type) => ({ type, from, to, diagram, seeds: [] }));

const reports: readonly SharedAuthorityReport['type'][] = [
  ...(['shared-authority.read', 'shared-authority.absent', 'shared-authority.refused'] as const),
];
const told = ['authority.loaded', 'authority.changed', 'authority.failed', 'shared-authority.awaited'];

export const sharedAuthorityCatalogue: readonly CatalogueRow<Diagram>[] = [
  ...rows('discovery', 'shared-authority', ['spawn', 'authority.load']),
  ...rows('shared-authority', 'shared-authority/secret', ['spawn']),
  ...rows('shared-authority/secret', 'shared-authority', reports),
  ...rows('shared-authority', 'shared-authority/creation', ['spawn']),
  ...rows('shared-authority', 'discovery', told),
];
