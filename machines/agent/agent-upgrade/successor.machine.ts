import { sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { ClaimedIds } from '../envoy/adoption.ts';
import type { PredecessorReport, SuccessionComplete, TakeoverConfirm } from '../succession-protocol.ts';
import { noLane } from '../timeline.ts';

/** The older agent writes its record and closes its sockets within this time. */
const turnLimitMs = 4_000;
/** The kernel releases the base IDs of a killed agent within this time. */
const claimLimitMs = 1_000;

/** `isGranted` is false if the older agent exited. */
export interface SuccessorClaim {
  isGranted: boolean;
}

/** The newer agent takes control after the older agent released it or exited. */
export const successorMachine = setup({
  types: {
    events: {} as PredecessorReport | SuccessionComplete,
    children: {} as { link: 'link'; claim: 'claim' },
  },
  actors: {
    link: callbackEffect<TakeoverConfirm, undefined>('link'),
    /** Rejects without a change if another process has the base IDs. */
    claim: promiseEffect<ClaimedIds, SuccessorClaim>('claim'),
  },
  delays: { grantLimit: turnLimitMs, claimLimit: claimLimitMs },
  actions: {
    reportTaken: sendParent((_, { claimed }: { claimed: ClaimedIds }) => ({ type: 'succession.taken', claimed })),
    reportRefused: sendParent((_, { reason }: { reason: string }) => ({ type: 'succession.refused', reason })),
    confirmTakeover: sendTo('link', { type: 'takeover.confirm' }),
  },
}).createMachine({
  id: 'successor',
  description: 'Takes over from an older agent of this container.',
  meta: { timeline: noLane },
  invoke: { id: 'link', src: 'link' },
  initial: 'waiting for grant',
  on: {
    // The older agent is exiting, or it resumes control and terminates this one.
    'predecessor.lost': {},
    'predecessor.refused': {},
  },
  states: {
    'waiting for grant': {
      description: 'The older agent knows that this one is ready.',
      after: {
        grantLimit: {
          target: 'finished',
          actions: {
            type: 'reportRefused',
            params: { reason: `previous agent did not hand over within ${turnLimitMs} ms` },
          },
        },
      },
      on: {
        'predecessor.granted': 'claiming',
        // If the older agent is still running, it has the base IDs, and the claim fails.
        'predecessor.lost': 'claiming',
        'predecessor.refused': {
          target: 'finished',
          actions: { type: 'reportRefused', params: ({ event }) => ({ reason: event.reason }) },
        },
      },
    },
    claiming: {
      description: 'No agent is in control, or an unknown one is.',
      invoke: {
        id: 'claim',
        src: 'claim',
        input: ({ event }) => ({ isGranted: event.type === 'predecessor.granted' }),
        onDone: {
          target: 'adopting epochs',
          actions: { type: 'reportTaken', params: ({ event }) => ({ claimed: event.output }) },
        },
        onError: {
          target: 'finished',
          actions: { type: 'reportRefused', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
        },
      },
      after: {
        claimLimit: {
          target: 'finished',
          actions: {
            type: 'reportRefused',
            params: { reason: `base IDs not available within ${claimLimitMs} ms` },
          },
        },
      },
    },
    'adopting epochs': {
      meta: {
        waitsFor: 'the supervisor, which adopts within 10 s or fails; the older agent resumes control before',
      },
      description: 'This agent is in control. The older one waits for the confirmation.',
      on: { 'succession.complete': { target: 'finished', actions: 'confirmTakeover' } },
    },
    finished: {
      meta: { waitsFor: 'the end of this agent' },
      description: 'This agent is the only one, or it is exiting.',
      on: { 'predecessor.granted': {}, 'succession.complete': {} },
    },
  },
});
