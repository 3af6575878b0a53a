import { assign, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import type { FilesChanged } from '../protocol.ts';
import { incrementFailures, maxCountedFailures, retryDelayMs } from '../retry-delay.ts';
import type {
  AuthorityChanged,
  AuthorityFailed,
  AuthorityId,
  AuthorityLoad,
  AuthorityLoaded,
  LeafCertificatesAwait,
  LeafCertificatesUnused,
  RootsAwait,
  RootsPending,
  RootsTrusted,
  RotationProceed,
  RotationRevert,
  RotationStage,
  RotationStart,
  RotationTaint,
} from './authority-protocol.ts';

export interface AuthorityInput {
  /** Interval of checks of the root's age (CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL). */
  checkMs: number;
  settleMs: number;
}

/** This state is recorded before it applies, and read after a restart. */
export interface Journal {
  stage: RotationStage;
  signer: AuthorityId;
  /** The other authority during a rotation: the next one in stage `trusting`, the previous one afterwards. */
  other: AuthorityId | null;
  /** The authority whose key may be compromised. Its certificates are renewed as soon as another authority signs. */
  tainted: AuthorityId | null;
}

export type AuthorityReading =
  | { outcome: 'resumed'; journal: Journal }
  /** There is no root, or all have expired: a new one affects no workload. */
  | { outcome: 'absent' }
  | { outcome: 'refused'; reason: string };

export type Candidate =
  | { outcome: 'same' }
  /** Another intermediate of the same root: it is sent in the chain, so trust does not change. */
  | { outcome: 'renewed'; id: AuthorityId }
  /** Another root: requires a rotation. */
  | { outcome: 'replaced'; id: AuthorityId }
  | { outcome: 'refused'; reason: string };

export interface AuthorityContext extends AuthorityInput {
  signer: AuthorityId;
  other: AuthorityId | null;
  tainted: AuthorityId | null;
  failures: number;
}

type Event =
  | AuthorityLoad
  | FilesChanged
  | RotationStart
  | RotationRevert
  | RotationTaint
  | RotationProceed
  | RootsTrusted
  | RootsPending
  | LeafCertificatesUnused;

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
    /** Records workloads' certificates, and the roots that each has acknowledged. */
    workloadLedger: callbackEffect<RootsAwait | LeafCertificatesAwait, undefined>('workloadLedger'),
    watchAuthority: callbackEffect<{ type: never }, undefined>('watchAuthority'),
    loadAuthority: promiseEffect<AuthorityReading, undefined>('loadAuthority'),
    prepareRoot: promiseEffect<{ id: AuthorityId }, undefined>('prepareRoot'),
    readCandidate: promiseEffect<Candidate, { signer: AuthorityId }>('readCandidate'),
    isRootDue: promiseEffect<boolean, { signer: AuthorityId }>('isRootDue'),
    writeJournal: promiseEffect<void, Journal>('writeJournal'),
  },
  delays: {
    checkInterval: ({ context }) => context.checkMs,
    debounceTime: ({ context }) => context.settleMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
    /** With a plugged-in authority, each attempt fails until an operator replaces the files. */
    nextRootDelay: ({ context: { failures, checkMs } }) =>
      failures < maxCountedFailures ? retryDelayMs(failures) : checkMs,
  },
  guards: {
    isStage: (_, params: { reading: AuthorityReading; stage: RotationStage }) =>
      params.reading.outcome === 'resumed' && params.reading.journal.stage === params.stage,
    isAbsent: (_, params: AuthorityReading) => params.outcome === 'absent',
    isRenewed: (_, params: Candidate) => params.outcome === 'renewed',
    isReplaced: (_, params: Candidate) => params.outcome === 'replaced',
    isRejected: (_, params: Candidate) => params.outcome === 'refused',
    isDue: (_, params: { isDue: boolean }) => params.isDue,
    isCurrentBundle: ({ context }, params: { roots: AuthorityId[] }) => haveSameMembers(params.roots, rootsOf(context)),
    isSignerBundle: ({ context }, params: { roots: AuthorityId[] }) => haveSameMembers(params.roots, [context.signer]),
    isOtherUntainted: ({ context: { other, tainted } }) => tainted === null || other !== tainted,
    isOtherTainted: ({ context: { other, tainted } }) => tainted !== null && other === tainted,
    isSignerTainted: ({ context: { signer, tainted } }) => tainted !== null && signer === tainted,
    isOtherAuthority: ({ context }, params: { authority: AuthorityId }) => params.authority === context.other,
  },
  actions: {
    restoreJournal: assign((_, params: AuthorityReading) =>
      params.outcome === 'resumed' ? namedAuthoritiesOf(params.journal) : {},
    ),
    recordFirst: assign((_, params: { id: AuthorityId }) => ({ signer: params.id, other: null, tainted: null })),
    recordNext: assign({ other: (_, params: { id: AuthorityId }) => params.id }),
    /** The new signer has the same root, so a taint applies to it too. */
    changeSigner: assign(({ context: { signer, tainted } }, params: { id: AuthorityId }) => ({
      signer: params.id,
      tainted: tainted === signer ? params.id : tainted,
    })),
    switchSigner: assign({
      signer: ({ context }) => context.other ?? context.signer,
      other: ({ context }) => (context.other === null ? null : context.signer),
    }),
    clearOther: assign({
      other: null,
      tainted: ({ context: { signer, tainted } }) => (tainted === signer ? tainted : null),
    }),
    taintSigner: assign({ tainted: ({ context }) => context.signer }),
    taintOther: assign({ tainted: ({ context }) => context.other }),
    clearTaint: assign({ tainted: null }),
    countFailure: assign({ failures: ({ context }) => incrementFailures(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    /** Trusts and distributes only these roots. */
    publishRoots: (_, _params: { roots: AuthorityId[]; tainted: AuthorityId | null }) => {},
    signWith: (_, _params: { signer: AuthorityId }) => {},
    awaitBundle: sendTo(
      'ledger',
      (_, params: { roots: AuthorityId[] }): RootsAwait => ({ type: 'roots.await', roots: params.roots }),
    ),
    awaitLeafCertificates: sendTo(
      'ledger',
      ({ context }): LeafCertificatesAwait => ({ type: 'leaf-certificates.await', authority: context.other ?? '' }),
    ),
    reportLoaded: sendParent(
      ({ context }, { stage }: { stage: RotationStage }): AuthorityLoaded => ({
        type: 'authority.loaded',
        signer: context.signer,
        roots: rootsIn(stage, context),
      }),
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
    reportPending: sendParent((_, params: RootsPending) => params),
  },
});

export function rootsIn(stage: RotationStage, context: Pick<AuthorityContext, 'signer' | 'other'>): AuthorityId[] {
  return stage === 'dropping' ? [context.signer] : rootsOf(context);
}

export function namedAuthoritiesOf({ signer, other, tainted }: Omit<Journal, 'stage'>): Omit<Journal, 'stage'> {
  return { signer, other, tainted };
}

/** The signer's root comes first. */
export function rootsOf({ signer, other }: Pick<AuthorityContext, 'signer' | 'other'>): AuthorityId[] {
  return other === null ? [signer] : [signer, other];
}

function haveSameMembers(first: readonly AuthorityId[], second: readonly AuthorityId[]): boolean {
  return first.length === second.length && first.every((id) => second.includes(id));
}
