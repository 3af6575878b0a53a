import { assign, setup } from 'xstate';
import { promiseEffect } from '../effect.ts';
import { type PatchesAnswer, type PatchesWait, waitAfter } from './bootstrap-patches.ts';
import { noLane } from './timeline.ts';
import { noFailures, type Shown } from './xds-pause.ts';

/** A connection has five seconds and an answer ten; each is told by itself. */
const patchesLimitMs = 20_000;

interface PatchesContext extends PatchesWait {
  /** Why no try can make use of what the control plane says; empty: it can. */
  unusable: string;
}

/** What an Envoy's bootstrap is to have beside what the agent puts there, as the control plane says (spec/discovery.md §8.9 BOOTSTRAP). */
export const bootstrapPatchesMachine = setup({
  types: {
    context: {} as PatchesContext,
    output: {} as Pick<PatchesContext, 'unusable'>,
    events: {} as { type: never },
    children: {} as { ask: 'ask' },
  },
  actors: {
    /** Asks the control plane what it patches in the bootstrap, and keeps that for whoever makes one. */
    ask: promiseEffect<PatchesAnswer, { shows: Shown }>('ask'),
  },
  delays: { patchesLimit: patchesLimitMs, patchesPause: ({ context }) => context.pauseMs },
  guards: {
    isKnown: (_, { is }: PatchesAnswer) => is === 'patched' || is === 'unpatched',
    isUnusable: (_, { is }: PatchesAnswer) => is === 'unusable',
  },
  actions: {
    rememberWhy: assign({ unusable: (_, answer: PatchesAnswer) => (answer.is === 'unusable' ? answer.reason : '') }),
    countFailure: assign(({ context }, { answer }: { answer?: PatchesAnswer }) => waitAfter(context, answer)),
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
      description: 'It has been asked.',
      invoke: {
        id: 'ask',
        src: 'ask',
        input: ({ context }) => ({ shows: context.failures.shows }),
        onDone: [
          { guard: { type: 'isKnown', params: ({ event }) => event.output }, target: 'settled' },
          {
            guard: { type: 'isUnusable', params: ({ event }) => event.output },
            target: 'settled',
            actions: { type: 'rememberWhy', params: ({ event }) => event.output },
          },
          { target: 'pausing', actions: { type: 'countFailure', params: ({ event }) => ({ answer: event.output }) } },
        ],
        onError: { target: 'pausing', actions: { type: 'countFailure', params: {} } },
      },
      after: { patchesLimit: { target: 'pausing', actions: { type: 'countFailure', params: {} } } },
    },
    pausing: {
      description: 'It could not be asked; the log says why.',
      after: { patchesPause: 'asking' },
    },
    settled: { type: 'final', description: 'It has said what it patches, or what cannot be made use of.' },
  },
  output: ({ context: { unusable } }) => ({ unusable }),
});
