import { assign, sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { failedOnceMore, retryDelayMs } from '../retry-delay.ts';
import { authorityTimeline } from '../timeline.ts';
import { rootsIn } from './authority.setup.ts';
import type {
  AuthorityChanged,
  AuthorityFailed,
  AuthorityLoad,
  AuthorityLoaded,
  SharedAuthorityAwaited,
} from './authority-protocol.ts';
import type { SharedAuthorityRead, SharedAuthorityReport, SharedStage } from './shared-authority-protocol.ts';
import { leastStageMs, mayFollow } from './shared-rotation.ts';

export interface SharedAuthorityInput {
  /** How often the age of the root, and of a stage, is looked at (CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL). */
  checkMs: number;
}

/** There is a Secret by now, whoever has made it; or why there is none. */
export type Creation = { outcome: 'there' } | { outcome: 'failed'; reason: string };

interface SharedAuthorityContext extends SharedAuthorityInput {
  /** What is in force; null: nothing is yet. */
  known: SharedStage | null;
  /** Attempts in a row to make the Secret that failed. */
  failures: number;
}

/** So long a Secret that was made is waited for before it is looked for again: it comes over the watch. */
const answerMs = 10_000;

type Created = { event: { output: Creation } };
const isFailed = { type: 'isFailed' as const, params: ({ event }: Created) => event.output };

/**
 * The authority that all replicas of a control plane share, as one of them has it: a Secret of their namespace. Whoever finds none makes it, and
 * the one that was there first counts; what is in force is what was read, never what was written. When a rotation goes on is decided by
 * `shared-rotation.ts`, and written by the replica that leads.
 */
export const sharedAuthorityMachine = setup({
  types: {
    context: {} as SharedAuthorityContext,
    input: {} as SharedAuthorityInput,
    events: {} as AuthorityLoad | SharedAuthorityReport,
    children: {} as { secret: 'followSecret'; creation: 'createSecret' },
  },
  actors: {
    /** Tells what the Secret has, each time that it is another. It has the keys. */
    followSecret: callbackEffect<{ type: never }, undefined>('followSecret'),
    /** Makes the Secret, of a new root or of what is in force here; that there is one by now is no failure. */
    createSecret: promiseEffect<Creation, { anew: boolean }>('createSecret'),
  },
  delays: {
    checkInterval: ({ context }) => context.checkMs,
    stageSettled: leastStageMs,
    answerLimit: answerMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    isFailed: (_, params: Creation) => params.outcome === 'failed',
    mayFollow: ({ context }, params: SharedAuthorityRead) => mayFollow(context.known, params),
  },
  actions: {
    remember: assign({ known: (_, params: SharedAuthorityRead) => stageOf(params), failures: 0 }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    forgetFailures: assign({ failures: 0 }),
    /** Effect: what was read counts from now on: who signs, and which roots are given out. */
    adopt: (_, _params: { reading: number }) => {},
    /** Effect: the replica that leads looks whether something is to be written. */
    lookForDue: () => {},
    reportLoaded: sendParent(({ context }): AuthorityLoaded => {
      const { signer, roots } = changed(context);
      return { type: 'authority.loaded', signer, roots };
    }),
    reportChanged: sendParent(({ context }) => changed(context)),
    reportFailed: sendParent(
      (_, params: { reason: string }): AuthorityFailed => ({ type: 'authority.failed', reason: params.reason }),
    ),
    reportAwaited: sendParent(
      (_, params: { reason: string }): SharedAuthorityAwaited => ({
        type: 'shared-authority.awaited',
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
      description: 'Not asked for yet.',
      meta: { waitsFor: 'authority.load, which the start sends' },
      on: { 'authority.load': 'at work' },
    },
    'at work': {
      invoke: { id: 'secret', src: 'followSecret' },
      on: { 'authority.load': { description: 'It is looked for, or there.' } },
      initial: 'looking for it',
      states: {
        'looking for it': {
          description: 'Whether there is an authority, and one that can sign.',
          meta: { waitsFor: 'the API server, or somebody who mends the Secret; /ready says so' },
          on: {
            'shared-authority.read': found(),
            'shared-authority.absent': 'making it',
            'shared-authority.refused': awaited(),
          },
        },
        'making it': {
          description: 'There is none. Others may be making one at this moment: the first one counts.',
          meta: { waitsFor: 'a key, and the answer of the API server, which has a limit' },
          invoke: {
            id: 'creation',
            src: 'createSecret',
            input: { anew: true },
            onDone: [
              { guard: isFailed, target: 'resting', ...failedAgain() },
              { target: 'expecting it', actions: 'forgetFailures' },
            ],
            onError: { target: 'resting', ...brokenAgain() },
          },
          on: {
            'shared-authority.read': found(),
            'shared-authority.absent': {},
            'shared-authority.refused': { target: 'looking for it', ...awaited() },
          },
        },
        'expecting it': {
          description: 'There is one by now. What counts is what is read.',
          after: { answerLimit: 'making it' },
          on: {
            'shared-authority.read': found(),
            'shared-authority.absent': {},
            'shared-authority.refused': { target: 'looking for it', ...awaited() },
          },
        },
        resting: {
          description: 'The API server did not take it.',
          after: { retryDelay: 'making it' },
          on: {
            'shared-authority.read': found(),
            'shared-authority.absent': {},
            'shared-authority.refused': { target: 'looking for it', ...awaited() },
          },
        },
        'in force': {
          description:
            'It signs, and whatever happens to the Secret, it goes on until there is another that may follow.',
          on: {
            'shared-authority.read': [
              {
                guard: { type: 'mayFollow', params: ({ event }) => event },
                target: '.just read',
                actions: [
                  { type: 'adopt', params: ({ event: { reading } }) => ({ reading }) },
                  { type: 'remember', params: ({ event }) => event },
                  'reportChanged',
                  'lookForDue',
                ],
              },
              {
                description: 'The replica that leads makes a rotation to it of it.',
                target: '.just read',
                actions: [
                  {
                    type: 'reportFailed',
                    params: {
                      reason:
                        'the Secret has another root than those that were given out: nothing is signed by it before all trust it',
                    },
                  },
                  'lookForDue',
                ],
              },
            ],
            'shared-authority.refused': {
              target: '.just read',
              actions: { type: 'reportFailed', params: ({ event: { reason } }) => ({ reason }) },
            },
            'shared-authority.absent': {
              target: '.putting it back',
              actions: { type: 'reportFailed', params: { reason: 'the Secret is gone: it is put back' } },
            },
          },
          initial: 'just read',
          states: {
            'just read': {
              description: 'Other replicas may not have read it yet.',
              after: { stageSettled: { target: 'at rest', actions: 'lookForDue' } },
            },
            'at rest': {
              tags: 'steady',
              description: 'All that follow have read it.',
              after: { checkInterval: { target: 'at rest', reenter: true, actions: 'lookForDue' } },
            },
            'putting it back': {
              description: 'A replica that starts now would make another root.',
              meta: { waitsFor: 'the answer of the API server, which has a limit' },
              invoke: {
                id: 'creation',
                src: 'createSecret',
                input: { anew: false },
                onDone: [
                  { guard: isFailed, target: 'not put back', ...failedAgain('reportFailed') },
                  { target: 'just read', actions: 'forgetFailures' },
                ],
                onError: { target: 'not put back', ...brokenAgain('reportFailed') },
              },
              on: { 'shared-authority.absent': {} },
            },
            'not put back': {
              description: 'The API server did not take it.',
              after: { retryDelay: 'putting it back' },
              on: { 'shared-authority.absent': {} },
            },
          },
        },
      },
    },
  },
});

function stageOf({ stage, signer, other, tainted, before }: SharedStage): SharedStage {
  return { stage, signer, other, tainted, before };
}

function changed({ known }: SharedAuthorityContext): AuthorityChanged {
  const { stage, signer, other, tainted } = known ?? { stage: 'steady', signer: '', other: null, tainted: null };
  return { type: 'authority.changed', stage, signer, roots: rootsIn(stage, { signer, other }), tainted };
}

/** The first one that is read. */
function found() {
  type Found = { event: SharedAuthorityRead };
  return {
    target: 'in force' as const,
    actions: [
      { type: 'adopt' as const, params: ({ event: { reading } }: Found) => ({ reading }) },
      { type: 'remember' as const, params: ({ event }: Found) => event },
      'reportChanged' as const,
      'reportLoaded' as const,
      'lookForDue' as const,
    ],
  };
}

function awaited() {
  type Refused = { event: { reason: string } };
  return { actions: { type: 'reportAwaited' as const, params: ({ event: { reason } }: Refused) => ({ reason }) } };
}

type Told = 'reportAwaited' | 'reportFailed';

function failedAgain(type: Told = 'reportAwaited') {
  const params = ({ event: { output } }: Created) => ({ reason: output.outcome === 'failed' ? output.reason : '' });
  return { actions: ['countFailure' as const, { type, params }] };
}

/** The effect has a bug: as if the API server had refused it. */
function brokenAgain(type: Told = 'reportAwaited') {
  const params = ({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) });
  return { actions: ['countFailure' as const, { type, params }] };
}
