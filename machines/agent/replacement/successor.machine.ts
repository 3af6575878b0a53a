import { sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { ClaimedIds } from '../envoy/adoption.ts';
import type { PredecessorReport, SuccessionComplete, TakeoverConfirm } from '../succession-protocol.ts';
import { noLane } from '../timeline.ts';

/** The older agent writes a file and closes some sockets; each has a limit there. */
const turnLimitMs = 4_000;
/** How long base ids are waited for: those of a killed agent are free as soon as the kernel is done with it. */
const claimLimitMs = 1_000;

/** `isGranted`: the older agent has given way; otherwise it has ended before it did. */
export interface SuccessorClaim {
  isGranted: boolean;
}

/** The newer agent's side of its predecessor's replacement: it decides nothing before that one has given up, or has ended. */
export const successorMachine = setup({
  types: {
    events: {} as PredecessorReport | SuccessionComplete,
    children: {} as { link: 'link'; claim: 'claim' },
  },
  actors: {
    /** Says to the older agent that this one is ready, and hears what that one says. */
    link: callbackEffect<TakeoverConfirm, undefined>('link'),
    /** Takes the base ids that the older agent had, with what runs under them. Fails where somebody else has them: then nothing is touched. */
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
    // It ends now, and is not waited for; or it takes back what it has given up, and ends this agent.
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
        // As after a crash. Where it lives all the same, it has the base ids, and this agent does not get them.
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
      description: 'This agent is the only one, or it is ending.',
      on: { 'predecessor.granted': {}, 'succession.complete': {} },
    },
  },
});
