import { sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { ClaimedIds } from '../envoy/adoption.ts';
import type { HoldTell, PredecessorReport, SuccessionComplete } from '../succession-protocol.ts';
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
    link: callbackEffect<HoldTell, undefined>('link'),
    /** Takes the base ids that the older agent had, with what runs under them. Fails where somebody else has them: then nothing is touched. */
    claim: promiseEffect<ClaimedIds, SuccessorClaim>('claim'),
  },
  delays: { turnLimit: turnLimitMs, claimLimit: claimLimitMs },
  actions: {
    reportTaken: sendParent((_, { claimed }: { claimed: ClaimedIds }) => ({ type: 'succession.taken', claimed })),
    reportRefused: sendParent((_, { reason }: { reason: string }) => ({ type: 'succession.refused', reason })),
    tellHold: sendTo('link', { type: 'hold.tell' }),
  },
}).createMachine({
  id: 'successor',
  description: 'Takes the place of an older agent of this container.',
  meta: { timeline: noLane },
  invoke: { id: 'link', src: 'link' },
  initial: 'waiting for its turn',
  on: {
    // It ends now, and is not waited for; or it takes back what it has given up, and ends this agent.
    'predecessor.gone': {},
    'predecessor.refused': {},
  },
  states: {
    'waiting for its turn': {
      description: 'The older agent has been told that this one is ready.',
      after: {
        turnLimit: {
          target: 'over',
          actions: {
            type: 'reportRefused',
            params: { reason: `previous agent did not hand over within ${turnLimitMs} ms` },
          },
        },
      },
      on: {
        'predecessor.granted': 'claiming',
        // As after a crash. Where it lives all the same, it has the base ids, and this agent does not get them.
        'predecessor.gone': 'claiming',
        'predecessor.refused': {
          target: 'over',
          actions: { type: 'reportRefused', params: ({ event }) => ({ reason: event.reason }) },
        },
      },
    },
    claiming: {
      description: 'Nobody has the right to decide, or somebody has it whom this agent does not know of.',
      invoke: {
        id: 'claim',
        src: 'claim',
        input: ({ event }) => ({ isGranted: event.type === 'predecessor.granted' }),
        onDone: {
          target: 'taking over',
          actions: { type: 'reportTaken', params: ({ event }) => ({ claimed: event.output }) },
        },
        onError: {
          target: 'over',
          actions: { type: 'reportRefused', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
        },
      },
      after: {
        claimLimit: {
          target: 'over',
          actions: {
            type: 'reportRefused',
            params: { reason: `base IDs not available within ${claimLimitMs} ms` },
          },
        },
      },
    },
    'taking over': {
      meta: {
        waitsFor: 'the supervisor, which has adopted in 10 s or fails; the older agent takes it all back before',
      },
      description: 'This agent decides; the older one waits to be told so.',
      on: { 'succession.complete': { target: 'over', actions: 'tellHold' } },
    },
    over: {
      meta: { waitsFor: 'the end of this agent' },
      description: 'This agent is the only one, or it ends.',
      on: { 'predecessor.granted': {}, 'succession.complete': {} },
    },
  },
});
