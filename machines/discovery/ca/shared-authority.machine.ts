import { assign, sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { incrementFailures, retryDelayMs } from '../retry-delay.ts';
import { authorityTimeline } from '../timeline.ts';
import { rootsIn } from './authority.setup.ts';
import type {
  AuthorityChanged,
  AuthorityFailed,
  AuthorityLoad,
  AuthorityLoaded,
  SharedAuthorityPending,
} from './authority-protocol.ts';
import type { SharedAuthorityRead, SharedAuthorityReport, SharedStage } from './shared-authority-protocol.ts';
import { maySucceed, minStageMs } from './shared-rotation.ts';

export interface SharedAuthorityInput {
  /** Interval of checks of the age of root and stage (CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL). */
  checkMs: number;
}

/** `there`: the Secret exists, whichever replica created it. */
export type CreationResult = { outcome: 'there' } | { outcome: 'failed'; reason: string };

interface SharedAuthorityContext extends SharedAuthorityInput {
  /** The applied stage; null before the first read. */
  known: SharedStage | null;
  failures: number;
}

/** Maximum time for a created Secret to arrive over the watch. */
const responseMs = 10_000;

type CreationDone = { event: { output: CreationResult } };
const isFailed = { type: 'hasFailed' as const, params: ({ event }: CreationDone) => event.output };

/**
 * A replica's view of the authority that all replicas share in a Secret of their namespace. The first authority stored applies. Only state read from
 * the Secret applies, never written state.
 */
export const sharedAuthorityMachine = setup({
  types: {
    context: {} as SharedAuthorityContext,
    input: {} as SharedAuthorityInput,
    events: {} as AuthorityLoad | SharedAuthorityReport,
    children: {} as { secret: 'followSecret'; creation: 'createSecret' },
  },
  actors: {
    followSecret: callbackEffect<{ type: never }, undefined>('followSecret'),
    /** Succeeds if the Secret already exists. */
    createSecret: promiseEffect<CreationResult, { withNewRoot: boolean }>('createSecret'),
  },
  delays: {
    checkInterval: ({ context }) => context.checkMs,
    minStageTime: minStageMs,
    responseLimit: responseMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    hasFailed: (_, params: CreationResult) => params.outcome === 'failed',
    canAdopt: ({ context }, params: SharedAuthorityRead) => maySucceed(context.known, params),
  },
  actions: {
    recordStage: assign({ known: (_, params: SharedAuthorityRead) => stageOf(params), failures: 0 }),
    countFailure: assign({ failures: ({ context }) => incrementFailures(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    applyAuthority: (_, _params: { reading: number }) => {},
    /** Effect: the leader checks whether to write a stage. */
    checkRotation: () => {},
    reportLoaded: sendParent(({ context }): AuthorityLoaded => {
      const { signer, roots } = authorityChanged(context);
      return { type: 'authority.loaded', signer, roots };
    }),
    reportChanged: sendParent(({ context }) => authorityChanged(context)),
    reportFailed: sendParent(
      (_, params: { reason: string }): AuthorityFailed => ({ type: 'authority.failed', reason: params.reason }),
    ),
    reportPending: sendParent(
      (_, params: { reason: string }): SharedAuthorityPending => ({
        type: 'shared-authority.pending',
        reason: params.reason,
      }),
    ),
  },
}).createMachine({
  id: 'shared-authority',
  description: 'The certificate authority that the replicas share.',
  meta: { timeline: authorityTimeline },
  context: ({ input }) => ({ ...input, known: null, failures: 0 }),
  initial: 'idle',
  states: {
    idle: {
      description: 'Not started.',
      meta: { waitsFor: 'authority.load, sent during the start' },
      on: { 'authority.load': 'active' },
    },
    active: {
      invoke: { id: 'secret', src: 'followSecret' },
      on: { 'authority.load': { description: 'The authority is loaded already, or being loaded.' } },
      initial: 'reading Secret',
      states: {
        'reading Secret': {
          description: 'Waits for a Secret with an authority that can sign.',
          meta: { waitsFor: 'the API server, or a correction of the Secret; /ready reports it' },
          on: {
            'shared-authority.read': onFirstRead(),
            'shared-authority.absent': 'creating Secret',
            'shared-authority.unusable': onRefusal(),
          },
        },
        'creating Secret': {
          description:
            'There is no Secret. Another replica may be creating it at the same time; the first one applies.',
          meta: { waitsFor: 'a key, and the response of the API server, which has a limit' },
          invoke: {
            id: 'creation',
            src: 'createSecret',
            input: { withNewRoot: true },
            onDone: [
              { guard: isFailed, target: 'backing off', ...onRepeatedFailure() },
              { target: 'awaiting Secret', actions: 'resetFailures' },
            ],
            onError: { target: 'backing off', ...onInternalError() },
          },
          on: {
            'shared-authority.read': onFirstRead(),
            'shared-authority.absent': {},
            'shared-authority.unusable': { target: 'reading Secret', ...onRefusal() },
          },
        },
        'awaiting Secret': {
          description: 'A Secret exists. Only what is read from it applies.',
          after: { responseLimit: 'creating Secret' },
          on: {
            'shared-authority.read': onFirstRead(),
            'shared-authority.absent': {},
            'shared-authority.unusable': { target: 'reading Secret', ...onRefusal() },
          },
        },
        'backing off': {
          description: 'The API server rejected the Secret.',
          after: { retryDelay: 'creating Secret' },
          on: {
            'shared-authority.read': onFirstRead(),
            'shared-authority.absent': {},
            'shared-authority.unusable': { target: 'reading Secret', ...onRefusal() },
          },
        },
        signing: {
          description: 'The authority signs until a Secret with an acceptable successor is read.',
          on: {
            'shared-authority.read': [
              {
                guard: { type: 'canAdopt', params: ({ event }) => event },
                target: '.recently read',
                actions: [
                  { type: 'applyAuthority', params: ({ event: { reading } }) => ({ reading }) },
                  { type: 'recordStage', params: ({ event }) => event },
                  'reportChanged',
                  'checkRotation',
                ],
              },
              {
                description: 'The leader starts a rotation to the other root.',
                target: '.recently read',
                actions: [
                  {
                    type: 'reportFailed',
                    params: {
                      reason:
                        'the Secret has another root than those that were given out: nothing is signed by it before all trust it',
                    },
                  },
                  'checkRotation',
                ],
              },
            ],
            'shared-authority.unusable': {
              target: '.recently read',
              actions: { type: 'reportFailed', params: ({ event: { reason } }) => ({ reason }) },
            },
            'shared-authority.absent': {
              target: '.restoring Secret',
              actions: { type: 'reportFailed', params: { reason: 'the Secret is gone: it is put back' } },
            },
          },
          initial: 'recently read',
          states: {
            'recently read': {
              description: 'Other replicas may not have read it yet.',
              after: { minStageTime: { target: 'idle', actions: 'checkRotation' } },
            },
            idle: {
              tags: 'steady',
              description: 'All connected replicas should have read it.',
              after: { checkInterval: { target: 'idle', reenter: true, actions: 'checkRotation' } },
            },
            'restoring Secret': {
              description: 'A replica that starts now would create another root.',
              meta: { waitsFor: 'the response of the API server, which has a limit' },
              invoke: {
                id: 'creation',
                src: 'createSecret',
                input: { withNewRoot: false },
                onDone: [
                  { guard: isFailed, target: 'restore backoff', ...onRepeatedFailure('reportFailed') },
                  { target: 'recently read', actions: 'resetFailures' },
                ],
                onError: { target: 'restore backoff', ...onInternalError('reportFailed') },
              },
              on: { 'shared-authority.absent': {} },
            },
            'restore backoff': {
              description: 'The API server rejected the Secret.',
              after: { retryDelay: 'restoring Secret' },
              on: { 'shared-authority.absent': {} },
            },
          },
        },
      },
    },
  },
});

function stageOf({ stage, signer, other, tainted, previousSigners }: SharedStage): SharedStage {
  return { stage, signer, other, tainted, previousSigners };
}

function authorityChanged({ known }: SharedAuthorityContext): AuthorityChanged {
  const { stage, signer, other, tainted } = known ?? { stage: 'steady', signer: '', other: null, tainted: null };
  return { type: 'authority.changed', stage, signer, roots: rootsIn(stage, { signer, other }), tainted };
}

function onFirstRead() {
  type ReadArgs = { event: SharedAuthorityRead };
  return {
    target: 'signing' as const,
    actions: [
      { type: 'applyAuthority' as const, params: ({ event: { reading } }: ReadArgs) => ({ reading }) },
      { type: 'recordStage' as const, params: ({ event }: ReadArgs) => event },
      'reportChanged' as const,
      'reportLoaded' as const,
      'checkRotation' as const,
    ],
  };
}

function onRefusal() {
  type RefusalEvent = { event: { reason: string } };
  return { actions: { type: 'reportPending' as const, params: ({ event: { reason } }: RefusalEvent) => ({ reason }) } };
}

type FailureReport = 'reportPending' | 'reportFailed';

function onRepeatedFailure(type: FailureReport = 'reportPending') {
  const params = ({ event: { output } }: CreationDone) => ({
    reason: output.outcome === 'failed' ? output.reason : '',
  });
  return { actions: ['countFailure' as const, { type, params }] };
}

function onInternalError(type: FailureReport = 'reportPending') {
  const params = ({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) });
  return { actions: ['countFailure' as const, { type, params }] };
}
