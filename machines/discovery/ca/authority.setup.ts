import { assign, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import type { FilesChanged } from '../protocol.ts';
import { failedOnceMore, retryDelayMs } from '../retry-delay.ts';
import type {
  AuthorityChanged,
  AuthorityFailed,
  AuthorityId,
  AuthorityLoad,
  AuthorityLoaded,
  BundleAwait,
  BundleAwaited,
  BundleTrusted,
  LeavesAwait,
  LeavesEnded,
  RotationForce,
  RotationOrder,
  RotationRevert,
  RotationStage,
  RotationTaint,
} from './authority-protocol.ts';

export interface AuthorityInput {
  /** How often the age of the root is looked at (CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL). */
  checkMs: number;
  /** From the first event of a batch to the reading of a directory (spec/discovery.md §11: 100 ms). */
  settleMs: number;
}

/** What is written down before it takes effect, and found again after a restart. */
export interface Journal {
  stage: RotationStage;
  /** Which signs. */
  signer: AuthorityId;
  /** The other one, while there are two. */
  other: AuthorityId | null;
  /** Of the two, whose key is no longer only ours: its certificates are renewed at once, and nobody goes back to it. */
  tainted: AuthorityId | null;
}

export type AuthorityReading =
  /** It was begun earlier, and goes on where it was. */
  | { outcome: 'resumed'; journal: Journal }
  /** There is none, or all that there was has ended: nobody can be cut off by a new one. */
  | { outcome: 'absent' }
  /** What a person put there cannot sign. */
  | { outcome: 'refused'; reason: string };

export type Candidate =
  /** What is in the directory is what signs. */
  | { outcome: 'same' }
  /** Another intermediate below the same root: it travels in the chain, nobody has to trust it. */
  | { outcome: 'renewed'; id: AuthorityId }
  /** Another root: a request for a rotation, never a swap. */
  | { outcome: 'replaced'; id: AuthorityId }
  | { outcome: 'refused'; reason: string };

export interface AuthorityContext extends AuthorityInput {
  signer: AuthorityId;
  other: AuthorityId | null;
  tainted: AuthorityId | null;
  /** Attempts in a row to write the journal, to load or to prepare that failed. */
  failures: number;
}

type Event =
  | AuthorityLoad
  | FilesChanged
  | RotationOrder
  | RotationRevert
  | RotationTaint
  | RotationForce
  | BundleTrusted
  | BundleAwaited
  | LeavesEnded;

/** The words that the authority's chart is written in: its types, actors, delays, guards and actions. */
export const authoritySetup = setup({
  types: {
    context: {} as AuthorityContext,
    input: {} as AuthorityInput,
    events: {} as Event,
    children: {} as {
      ledger: 'workloadLedger';
      directory: 'watchAuthority';
      loading: 'loadAuthority';
      preparing: 'prepareRoot';
      reading: 'readCandidate';
      age: 'isRootDue';
      journal: 'writeJournal';
    },
  },
  actors: {
    /** Knows which workloads hold certificates, and which roots each of them trusts by its own word. */
    workloadLedger: callbackEffect<BundleAwait | LeavesAwait, undefined>('workloadLedger'),
    /** Watches the directory of a plugged-in authority; without one it has nothing to tell. */
    watchAuthority: callbackEffect<{ type: never }, undefined>('watchAuthority'),
    loadAuthority: promiseEffect<AuthorityReading, undefined>('loadAuthority'),
    /** Makes a key and a root of its own name that signs itself, and stores them. */
    prepareRoot: promiseEffect<{ id: AuthorityId }, undefined>('prepareRoot'),
    readCandidate: promiseEffect<Candidate, { signer: AuthorityId }>('readCandidate'),
    /** Whether so much of the root's life is over that the next one must be begun. */
    isRootDue: promiseEffect<boolean, { signer: AuthorityId }>('isRootDue'),
    writeJournal: promiseEffect<void, Journal>('writeJournal'),
  },
  delays: {
    checkInterval: ({ context }) => context.checkMs,
    debounceTime: ({ context }) => context.settleMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    isStage: (_, params: { reading: AuthorityReading; stage: RotationStage }) =>
      params.reading.outcome === 'resumed' && params.reading.journal.stage === params.stage,
    isAbsent: (_, params: AuthorityReading) => params.outcome === 'absent',
    isRenewed: (_, params: Candidate) => params.outcome === 'renewed',
    isReplaced: (_, params: Candidate) => params.outcome === 'replaced',
    isRejected: (_, params: Candidate) => params.outcome === 'refused',
    isDue: (_, params: { isDue: boolean }) => params.isDue,
    isCurrentBundle: ({ context }, params: { roots: AuthorityId[] }) => sameSet(params.roots, rootsOf(context)),
    isSignerBundle: ({ context }, params: { roots: AuthorityId[] }) => sameSet(params.roots, [context.signer]),
    isOtherUntainted: ({ context: { other, tainted } }) => tainted === null || other !== tainted,
    isOtherAuthority: ({ context }, params: { authority: AuthorityId }) => params.authority === context.other,
  },
  actions: {
    restoreJournal: assign((_, params: AuthorityReading) =>
      params.outcome === 'resumed' ? namedIn(params.journal) : {},
    ),
    recordFirst: assign((_, params: { id: AuthorityId }) => ({ signer: params.id, other: null, tainted: null })),
    recordNext: assign({ other: (_, params: { id: AuthorityId }) => params.id }),
    changeSigner: assign({ signer: (_, params: { id: AuthorityId }) => params.id }),
    /** The one that was prepared signs, or the one before does again. */
    switchSigner: assign({
      signer: ({ context }) => context.other ?? context.signer,
      other: ({ context }) => (context.other === null ? null : context.signer),
    }),
    clearOther: assign({ other: null, tainted: null }),
    taintSigner: assign({ tainted: ({ context }) => context.signer }),
    taintOther: assign({ tainted: ({ context }) => context.other }),
    clearTaint: assign({ tainted: null }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    /** Effect: these roots are trusted here and given out, and what is not among them is forgotten. */
    publishRoots: (_, _params: { roots: AuthorityId[]; tainted: AuthorityId | null }) => {},
    /** Effect: everything is signed by this one from now on. */
    signWith: (_, _params: { signer: AuthorityId }) => {},
    awaitBundle: sendTo(
      'ledger',
      (_, params: { roots: AuthorityId[] }): BundleAwait => ({ type: 'bundle.await', roots: params.roots }),
    ),
    awaitLeafCertificates: sendTo(
      'ledger',
      ({ context }): LeavesAwait => ({ type: 'leaf-certificates.await', authority: context.other ?? '' }),
    ),
    reportLoaded: sendParent(
      ({ context }): AuthorityLoaded => ({ type: 'authority.loaded', signer: context.signer, roots: rootsOf(context) }),
    ),
    reportStage: sendParent(
      ({ context }, params: { stage: RotationStage }): AuthorityChanged => ({
        type: 'authority.changed',
        stage: params.stage,
        signer: context.signer,
        roots: rootsIn(params.stage, context),
        tainted: context.tainted,
      }),
    ),
    reportFailed: sendParent(
      (_, params: { reason: string }): AuthorityFailed => ({ type: 'authority.failed', reason: params.reason }),
    ),
    reportPending: sendParent((_, params: BundleAwaited) => params),
  },
});

/** The roots that are given out in a stage. */
export function rootsIn(stage: RotationStage, context: Pick<AuthorityContext, 'signer' | 'other'>): AuthorityId[] {
  return stage === 'dropping' ? [context.signer] : rootsOf(context);
}

export function namedIn({ signer, other, tainted }: Omit<Journal, 'stage'>): Omit<Journal, 'stage'> {
  return { signer, other, tainted };
}

/** The roots that there are, the signer's first. */
export function rootsOf({ signer, other }: Pick<AuthorityContext, 'signer' | 'other'>): AuthorityId[] {
  return other === null ? [signer] : [signer, other];
}

function sameSet(one: readonly AuthorityId[], other: readonly AuthorityId[]): boolean {
  return one.length === other.length && one.every((id) => other.includes(id));
}
