import { and } from 'xstate';
import type { AttemptFailure, ClassifiedExit } from './supervisor-context.ts';

const recordOutcome = (params: { lastFailure: AttemptFailure }) => ({ type: 'recordOutcome', params }) as const;
export const attemptFailed = recordOutcome({ lastFailure: 'failed' });

export const recordExitOutcome = {
  type: 'recordOutcome',
  params: ({ event }: { event: ClassifiedExit }) => ({ lastFailure: event.lastFailure }),
} as const;

export const reportEnvoyEnded = { type: 'reportNotServing', params: { reason: 'Envoy ended' } } as const;

export const onServingFailure = [
  'markOrphaned',
  'withdrawBinary',
  'clearFailedAttempts',
  'countFailure',
  'recordExitReason',
  reportEnvoyEnded,
] as const;

const onCandidateFailure = ['reportRestartEnded', 'withdrawBinary', 'countFailure'] as const;

/** Classifies an exited epoch, raises the matching event, and removes its record. */
export const onEpochExit = <const Actions extends readonly unknown[]>(
  exitType: ClassifiedExit['type'],
  ...actions: Actions
) => ({ actions: [{ type: 'classifyExit', params: { fact: exitType } }, ...actions, 'removeEpoch'] }) as const;

/** Transitions for exits in any state in which Envoy must run. */
export const epochExits = {
  'epoch.failed': [
    { guard: 'isServingEpoch', ...onEpochExit('serving.failed', ...onServingFailure) },
    // If a parent exits before its child requests the exit, the child aborts soon (fact 4).
    { guard: 'isParentOfServingEpoch', ...onEpochExit('serving.orphaned', 'markServingOrphaned') },
    {
      guard: and(['isCandidate', 'hasServingEpoch']),
      ...onEpochExit('candidate.failed', ...onCandidateFailure, 'reportHandoverEnded'),
    },
    { guard: 'isCandidate', ...onEpochExit('candidate.failed', ...onCandidateFailure) },
    { guard: 'isAbortedCandidate', ...onEpochExit('candidate.aborted') },
    { guard: 'isRequiredParent', ...onEpochExit('candidate.orphaned', 'countFailure', 'markOrphaned') },
    onEpochExit('epoch.ended'),
  ],
  'epoch.exited': [
    { guard: 'isAbortedCandidate', ...onEpochExit('candidate.aborted') },
    { guard: 'isRequiredParent', ...onEpochExit('candidate.orphaned', 'countFailure') },
    onEpochExit('epoch.ended'),
  ],
  // The record stays, because no other Envoy can use the base ID.
  'epoch.unkillable': [
    {
      guard: 'isAbortedCandidate',
      actions: [{ type: 'classifyExit', params: { fact: 'candidate.aborted' } }, 'markUnkillable'],
    },
    { actions: [{ type: 'classifyExit', params: { fact: 'base-id.blocked' } }, 'markUnkillable'] },
  ],
} as const;

/** All epochs are stopping, so every exit is handled the same way. */
export const onExitWhileStopping = {
  'epoch.exited': { actions: 'removeEpoch' },
  'epoch.failed': { actions: 'removeEpoch' },
  'epoch.unkillable': { actions: 'markUnkillable' },
} as const;
export const onExitAndNotify = {
  'epoch.exited': { actions: ['removeEpoch', 'notifyShutdown'] },
  'epoch.failed': { actions: ['removeEpoch', 'notifyShutdown'] },
  'epoch.unkillable': { actions: ['markUnkillable', 'notifyShutdown'] },
} as const;
