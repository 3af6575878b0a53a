import { assign, sendTo, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import type { PatchesAnswered, PatchesAsked, PatchesWithdraw } from '../protocol.ts';
import { noLane } from '../timeline.ts';
import { noFailures, type Shown } from '../xds/xds-pause.ts';
import { type PatchesWait, waitAfter } from './bootstrap-patches.ts';

/** A connection has five seconds, of which the effect tells by itself; credentials are read before. */
const askingLimitMs = 20_000;
/** A control plane that knows of no bootstraps takes the question and keeps silent. */
const answerLimitMs = 10_000;

interface PatchesContext extends PatchesWait {
  /** Why no try can make use of what the control plane says; empty: it can. */
  unusable: string;
}

/** What an Envoy's bootstrap is to have beside what the agent puts there, as the control plane says (spec/discovery.md §8.9 BOOTSTRAP). */
export const bootstrapPatchesMachine = setup({
  types: {
    context: {} as PatchesContext,
    output: {} as Pick<PatchesContext, 'unusable'>,
    events: {} as PatchesAsked | PatchesAnswered,
    children: {} as { ask: 'ask' },
  },
  actors: {
    /** Asks the control plane what it patches in the bootstrap, and keeps that for whoever makes one. */
    ask: callbackEffect<PatchesWithdraw, { shows: Shown }>('ask'),
  },
  delays: {
    askingLimit: askingLimitMs,
    answerLimit: answerLimitMs,
    patchesPause: ({ context }) => context.pauseMs,
  },
  guards: {
    isKnown: (_, { answer: { is } }: PatchesAnswered) => is === 'patched' || is === 'unpatched',
    isUnusable: (_, { answer: { is } }: PatchesAnswered) => is === 'unusable',
  },
  actions: {
    rememberWhy: assign({
      unusable: (_, { answer }: PatchesAnswered) => (answer.is === 'unusable' ? answer.reason : ''),
    }),
    countFailure: assign(({ context }, { answer }: Partial<PatchesAnswered>) => waitAfter(context, answer)),
    withdraw: sendTo('ask', (): PatchesWithdraw => ({ type: 'patches.withdraw', waitedMs: answerLimitMs })),
  },
}).createMachine({
  id: 'bootstrap-patches',
  description:
    'The control plane patches the bootstrap, so it is asked until it answers: without it Envoy would have no configuration anyway.',
  meta: { timeline: noLane },
  context: { failures: noFailures, pauseMs: 0, unusable: '' },
  initial: 'asking',
  states: {
    asking: {
      invoke: {
        id: 'ask',
        src: 'ask',
        input: ({ context }) => ({ shows: context.failures.shows }),
        onError: { target: 'pausing', actions: { type: 'countFailure', params: {} } },
      },
      on: {
        'patches.answered': [
          { guard: { type: 'isKnown', params: ({ event }) => event }, target: 'settled' },
          {
            guard: { type: 'isUnusable', params: ({ event }) => event },
            target: 'settled',
            actions: { type: 'rememberWhy', params: ({ event }) => event },
          },
          { target: 'pausing', actions: { type: 'countFailure', params: ({ event }) => event } },
        ],
      },
      onDone: 'settled',
      initial: 'on the way',
      states: {
        'on the way': {
          description: 'The control plane has not taken the question yet.',
          on: { 'patches.asked': 'taken' },
          after: {
            askingLimit: { target: '#bootstrap-patches.pausing', actions: { type: 'countFailure', params: {} } },
          },
        },
        taken: {
          description: 'The control plane has the question.',
          after: { answerLimit: 'unanswered' },
        },
        unanswered: {
          type: 'final',
          description: 'It does not patch bootstraps, and has no word for that: silence is an answer.',
          entry: 'withdraw',
        },
      },
    },
    pausing: {
      description: 'It could not be asked; the log says why.',
      after: { patchesPause: 'asking' },
    },
    settled: { type: 'final', description: 'It has said what it patches, or what cannot be made use of.' },
  },
  output: ({ context: { unusable } }) => ({ unusable }),
});
