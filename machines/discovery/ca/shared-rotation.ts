/**
 * How the root of an authority that replicas share is rotated. No replica knows the workloads of the others, so nobody's word is waited for:
 * a stage lasts as long as the longest certificate does, and a day (docs/identity.md). One replica writes the next stage, and all follow
 * what they read.
 */

import { type Journal, rootsIn } from './authority.setup.ts';
import type { AuthorityId } from './authority-protocol.ts';
import type { SharedStage } from './shared-authority-protocol.ts';

/** What is written beside the keys: what the next replica that leads has to know is there, and nowhere else. */
export interface SharedJournal extends Journal {
  /** When the stage was written, Unix time in milliseconds. */
  since: number;
  /** No replica signs anything for a workload that lasts longer: by it is known when all that was signed has ended. */
  longestLeafMs: number;
  /** Those that signed before, the last one first: who was away for a whole rotation knows the authority again by them. */
  before: AuthorityId[];
}

/** What a person may order, as an annotation of the Secret. */
export type SharedOrder = 'rotate' | 'revert' | 'taint' | 'proceed';
export const sharedOrders: readonly SharedOrder[] = ['rotate', 'revert', 'taint', 'proceed'];

export interface RotationFacts {
  /** Unix time in milliseconds. */
  now: number;
  order: SharedOrder | null;
  /** So much of the root's life is over that the next one must be begun. */
  isRootDue: boolean;
  /** When the first certificate of the signer's chain ends. */
  endsAt: number;
  otherEndsAt: number | null;
  /** What the replica that writes may sign at most. */
  longestLeafMs: number;
}

export interface RotationStep {
  journal: SharedJournal;
  /** The other one of the journal is still to be made. */
  makesRoot: boolean;
}

const dayMs = 24 * 3_600_000;
/** Not even an order cuts a stage shorter: replicas that follow have taken it up by then. */
export const leastStageMs = 60_000;
const mostBefore = 8;

/** The next stage, if it is time for it; undefined: all is as it should be. An order that there is nothing to do about has none either. */
export function nextStep(journal: SharedJournal, facts: RotationFacts): RotationStep | undefined {
  const step = stepOf(journal, facts);
  const longestLeafMs = Math.max(journal.longestLeafMs, facts.longestLeafMs);
  if (step !== undefined) return { ...step, journal: { ...step.journal, longestLeafMs } };
  // What was ordered is dealt with first.
  if (longestLeafMs === journal.longestLeafMs || facts.order !== null) return undefined;
  return { journal: { ...journal, longestLeafMs }, makesRoot: false };
}

function stepOf(journal: SharedJournal, facts: RotationFacts): RotationStep | undefined {
  const { stage, other, signer, tainted } = journal;
  const { order, now } = facts;
  const isOver = now >= stageEnd(journal, facts) || (order === 'proceed' && now >= journal.since + leastStageMs);
  const isOtherSound = tainted === null || other !== tainted;
  const at = (fields: Partial<SharedJournal>): RotationStep => ({
    journal: { ...journal, since: now, ...fields },
    makesRoot: false,
  });
  switch (stage) {
    case 'steady': {
      if (order !== 'rotate' && order !== 'taint' && !facts.isRootDue) return undefined;
      const next = at({ stage: 'trusting', tainted: order === 'taint' ? signer : null });
      return { ...next, makesRoot: true };
    }
    case 'trusting':
      if (order === 'revert') return at({ stage: 'steady', other: null, tainted: null });
      // It is told when there is something better; the stage goes on.
      if (order === 'taint' && tainted === null) return at({ tainted: signer, since: journal.since });
      return isOver ? at(changedOver(journal)) : undefined;
    case 'signing':
      if (order === 'revert' && isOtherSound) return at(changedOver(journal));
      if (order === 'taint' && tainted === null) return at({ tainted: other, since: journal.since });
      return isOver ? at({ stage: 'dropping' }) : undefined;
    case 'dropping':
      if (order === 'revert' && isOtherSound) return at({ stage: 'trusting' });
      return isOver ? at({ stage: 'steady', other: null, tainted: null }) : undefined;
  }
}

/** The other one signs, and both are trusted. */
function changedOver(journal: SharedJournal): Partial<SharedJournal> {
  const { signer, other, before } = journal;
  return {
    stage: 'signing',
    signer: other ?? signer,
    other: signer,
    before: [signer, ...before.filter((id) => id !== signer)].slice(0, mostBefore),
  };
}

/** When what a stage waits for has come by itself, Unix time in milliseconds; a stage that is at rest has no end. */
export function stageEnd(
  { stage, since, longestLeafMs }: SharedJournal,
  { endsAt, otherEndsAt }: RotationFacts,
): number {
  const byTime = since + longestLeafMs + dayMs;
  switch (stage) {
    case 'steady':
      return Number.POSITIVE_INFINITY;
    case 'trusting':
      // Of a root that ends sooner, half of what is left is for those who learn of the next one, and half for renewing.
      return Math.min(byTime, since + Math.max(0, endsAt - since) / 2);
    default:
      return Math.min(byTime, otherEndsAt ?? byTime);
  }
}

/**
 * Whether what was read may take the place of what is in force: everybody trusts it by now and goes on trusting what was signed here, or it is what
 * became of this authority while this replica was away. Any other root is a stranger's: who was told of ours alone would refuse what it signs.
 */
export function mayFollow(known: SharedStage | null, read: SharedStage & { fits: boolean }): boolean {
  if (known === null || read.fits) return true;
  return rootsIn(read.stage, read).includes(known.signer) || read.before.includes(known.signer);
}

/**
 * A root that a person put in the place of ours is the next one of a rotation, as one that was ordered. Not while another one goes on
 * of which the old root has signed what still counts: there is room for two, and what is in force is put back as it was.
 */
export function rotationTo(stranger: AuthorityId, known: SharedJournal, now: number): SharedJournal {
  if (known.stage === 'signing') return known;
  const { signer, before, longestLeafMs } = known;
  return { stage: 'trusting', signer, other: stranger, tainted: null, since: now, longestLeafMs, before };
}
