import { assign, sendParent, setup } from 'xstate';
import type { StartRequest, StartWithdraw } from '../protocol.ts';
import { noLane } from '../timeline.ts';

/**
 * Paces the starts of Envoy: a bucket of tokens that refills one at a time (spec/agent.md §2.2). One asker, one
 * request at a time. A stop never asks here.
 */
export const startLimiterMachine = setup({
  types: {
    context: {} as { tokens: number; burst: number; refillMs: number },
    input: {} as { burst: number; refillMs: number },
    events: {} as StartRequest | StartWithdraw,
  },
  delays: { refill: ({ context }) => context.refillMs },
  guards: {
    hasToken: ({ context }) => context.tokens > 0,
    oneMissing: ({ context }) => context.tokens + 1 >= context.burst,
  },
  actions: {
    grant: sendParent({ type: 'start.granted' }),
    takeToken: assign({ tokens: ({ context }) => context.tokens - 1 }),
    addToken: assign({ tokens: ({ context }) => context.tokens + 1 }),
  },
}).createMachine({
  id: 'start-limiter',
  description: 'Lets Envoy start ten times at once, then once a second.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ tokens: input.burst, burst: input.burst, refillMs: input.refillMs }),
  initial: 'full',
  states: {
    full: {
      meta: { waitsFor: 'a request: this is the work' },
      description: 'No start was granted lately: every token is there.',
      on: {
        'start.request': { target: 'refilling', actions: ['takeToken', 'grant'] },
        'start.withdraw': {},
      },
    },
    refilling: {
      description: 'A token comes back with each period.',
      initial: 'nobody waits',
      states: {
        'nobody waits': {
          on: {
            'start.request': [{ guard: 'hasToken', actions: ['takeToken', 'grant'] }, { target: 'one waits' }],
            'start.withdraw': {},
          },
          after: {
            refill: [
              { guard: 'oneMissing', target: '#start-limiter.full', actions: 'addToken' },
              { target: '#start-limiter.refilling', reenter: true, actions: 'addToken' },
            ],
          },
        },
        'one waits': {
          description: 'The bucket is empty: the next token goes to the asker.',
          on: { 'start.withdraw': 'nobody waits', 'start.request': {} },
          after: { refill: { target: '#start-limiter.refilling', reenter: true, actions: 'grant' } },
        },
      },
    },
  },
});
