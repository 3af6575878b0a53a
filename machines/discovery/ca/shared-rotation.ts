/**
 * Rotation of a shared root. No replica knows the workloads of the others, so there is no acknowledgement to wait for: a stage lasts as long as the
 * longest certificate plus one day (docs/identity.md).
 */

import { type Journal, rootsIn } from './authority.setup.ts';
import type { AuthorityId } from './authority-protocol.ts';
import type { SharedStage } from './shared-authority-protocol.ts';

export interface SharedJournal extends Journal {
  /** Unix time in milliseconds. */
  since: number;
  maxLeafMs: number;
  /** Previous signers, the most recent first: a replica that was down during a complete rotation recognizes the authority by them. */
  previousSigners: AuthorityId[];
}

/** Orders of an operator, in an annotation of the Secret. */
export type SharedOrder = 'rotate' | 'revert' | 'taint' | 'proceed';
export const sharedOrders: readonly SharedOrder[] = ['rotate', 'revert', 'taint', 'proceed'];

export interface RotationFacts {
  /** Unix time in milliseconds. */
  now: number;
  order: SharedOrder | null;
  isRootDue: boolean;
  /** Expiry of the first certificate in the signer's chain. */
  endsAt: number;
  otherEndsAt: number | null;
  /** Maximum certificate lifetime of the replica that writes. */
  maxLeafMs: number;
}

export interface RotationStep {
  journal: SharedJournal;
  createsRoot: boolean;
}

const dayMs = 24 * 3_600_000;
/** Minimum length of a stage, even after an order: all replicas have applied it by then. */
export const minStageMs = 60_000;
const maxPrevious = 8;

/** `undefined` if no stage is due, or if the order has no effect. */
export function nextStep(journal: SharedJournal, facts: RotationFacts): RotationStep | undefined {
  const step = stepOf(journal, facts);
  const maxLeafMs = Math.max(journal.maxLeafMs, facts.maxLeafMs);
  if (step !== undefined) return { ...step, journal: { ...step.journal, maxLeafMs } };
  // Orders have precedence.
  if (maxLeafMs === journal.maxLeafMs || facts.order !== null) return undefined;
  return { journal: { ...journal, maxLeafMs }, createsRoot: false };
}

function stepOf(journal: SharedJournal, facts: RotationFacts): RotationStep | undefined {
  const { stage, other, signer, tainted } = journal;
  const { order, now } = facts;
  const hasStageEnded = now >= stageEnd(journal, facts) || (order === 'proceed' && now >= journal.since + minStageMs);
  const isOtherRootTrusted = tainted === null || other !== tainted;
  const at = (fields: Partial<SharedJournal>): RotationStep => ({
    journal: { ...journal, since: now, ...fields },
    createsRoot: false,
  });
  switch (stage) {
    case 'steady': {
      if (order !== 'rotate' && order !== 'taint' && !facts.isRootDue && tainted === null) return undefined;
      const nextStage = at({ stage: 'trusting', tainted: order === 'taint' ? signer : tainted });
      return { ...nextStage, createsRoot: true };
    }
    case 'trusting':
      if (order === 'revert') return at({ stage: 'steady', other: null, tainted: null });
      // The taint applies in the next stage; this one continues.
      if (order === 'taint' && tainted === null) return at({ tainted: signer, since: journal.since });
      return hasStageEnded ? at(withSignersSwapped(journal)) : undefined;
    case 'signing':
      if (order === 'revert' && isOtherRootTrusted) return at(withSignersSwapped(journal));
      if (order === 'taint' && tainted === null) return at({ tainted: other, since: journal.since });
      return hasStageEnded ? at({ stage: 'dropping' }) : undefined;
    case 'dropping':
      if (order === 'revert' && isOtherRootTrusted) return at({ stage: 'trusting' });
      // The next rotation starts when this one has ended.
      if (order === 'taint' && tainted === null) return at({ tainted: signer, since: journal.since });
      return hasStageEnded
        ? at({ stage: 'steady', other: null, tainted: tainted === signer ? tainted : null })
        : undefined;
  }
}

/** `undefined` if the order has an effect, at once or after the minimum length of the stage. */
export function orderRejection(order: SharedOrder, { stage, signer, other, tainted }: SharedStage): string | undefined {
  const isSteady = stage === 'steady';
  switch (order) {
    case 'rotate':
      return isSteady ? undefined : 'a rotation is in progress: wait for its end, or revert it';
    case 'revert':
      if (isSteady) return 'there is no step to revert';
      return stage !== 'trusting' && tainted !== null && tainted === other
        ? 'the previous root is tainted and must not sign again'
        : undefined;
    case 'taint':
      if (isSteady || tainted === null) return undefined;
      return stage === 'dropping' && tainted !== signer
        ? 'the previous root is tainted already: to taint the signing root, repeat the order in stage steady'
        : `the root ${tainted} is tainted already`;
    case 'proceed':
      return isSteady ? 'no stage is in progress' : undefined;
  }
}

function withSignersSwapped(journal: SharedJournal): Partial<SharedJournal> {
  const { signer, other, previousSigners } = journal;
  return {
    stage: 'signing',
    signer: other ?? signer,
    other: signer,
    previousSigners: [signer, ...previousSigners.filter((id) => id !== signer)].slice(0, maxPrevious),
  };
}

/** When a stage ends without an order, Unix time in milliseconds; `steady` has no end. */
export function stageEnd({ stage, since, maxLeafMs }: SharedJournal, { endsAt, otherEndsAt }: RotationFacts): number {
  const renewalDeadline = since + maxLeafMs + dayMs;
  switch (stage) {
    case 'steady':
      return Number.POSITIVE_INFINITY;
    case 'trusting':
      // If the root expires sooner, half of the remaining time is for distributing the next one, and half for renewal.
      return Math.min(renewalDeadline, since + Math.max(0, endsAt - since) / 2);
    default:
      return Math.min(renewalDeadline, otherEndsAt ?? renewalDeadline);
  }
}

/**
 * Whether the read stage may replace the applied one. It may if all workloads trust its signer and it trusts the earlier certificates, or if it
 * results from rotations of the applied authority while this replica was down.
 */
export function maySucceed(
  knownStage: SharedStage | null,
  readStage: SharedStage & { isCompatible: boolean },
): boolean {
  if (knownStage === null || readStage.isCompatible) return true;
  return (
    rootsIn(readStage.stage, readStage).includes(knownStage.signer) ||
    readStage.previousSigners.includes(knownStage.signer)
  );
}

/**
 * A root that an operator puts into the Secret starts a rotation to this root. If another rotation is signing, the applied stage is restored instead,
 * because there can be only two roots.
 */
export function startRotation(newRoot: AuthorityId, knownJournal: SharedJournal, nowMs: number): SharedJournal {
  if (knownJournal.stage === 'signing') return knownJournal;
  const { signer, previousSigners, maxLeafMs } = knownJournal;
  return {
    stage: 'trusting',
    signer,
    other: newRoot,
    tainted: knownJournal.tainted === signer ? signer : null,
    since: nowMs,
    maxLeafMs,
    previousSigners,
  };
}
