import { assign, sendParent, setup } from 'xstate';
import type { StartRequest, StartWithdraw } from '../protocol.ts';
import { noLane } from '../timeline.ts';

/** A token bucket limits the rate of starts of Envoy. A stop needs no token. */
export const startLimiterMachine = setup({
  types: {
    context: {} as { tokens: number; burst: number; refillMs: number },
    input: {} as { burst: number; refillMs: number },
    events: {} as StartRequest | StartWithdraw,
  },
  delays: { refill: ({ context }) => context.refillMs },
  guards: {
    hasToken: ({ context }) => context.tokens > 0,
    isOneTokenMissing: ({ context }) => context.tokens + 1 >= context.burst,
  },
  actions: {
    grant: sendParent({ type: 'start.granted' }),
    takeToken: assign({ tokens: ({ context }) => context.tokens - 1 }),
    addToken: assign({ tokens: ({ context }) => context.tokens + 1 }),
  },
}).createMachine({
  id: 'start-limiter',
  description: 'Allows `burst` starts of Envoy at once, then one per `refillMs`.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ tokens: input.burst, burst: input.burst, refillMs: input.refillMs }),
  initial: 'full',
  states: {
    full: {
      meta: { waitsFor: 'a request: normal operation' },
      description: 'All tokens are available.',
      on: {
        'start.request': { target: 'refilling', actions: ['takeToken', 'grant'] },
        'start.withdraw': {},
      },
    },
    refilling: {
      description: 'Adds one token per period.',
      initial: 'no request',
      states: {
        'no request': {
          on: {
            'start.request': [{ guard: 'hasToken', actions: ['takeToken', 'grant'] }, { target: 'request queued' }],
            'start.withdraw': {},
          },
          after: {
            refill: [
              { guard: 'isOneTokenMissing', target: '#start-limiter.full', actions: 'addToken' },
              { target: '#start-limiter.refilling', reenter: true, actions: 'addToken' },
            ],
          },
        },
        'request queued': {
          description: 'No token is left: the queued request gets the next one.',
          on: { 'start.withdraw': 'no request', 'start.request': {} },
          after: { refill: { target: '#start-limiter.refilling', reenter: true, actions: 'grant' } },
        },
      },
    },
  },
});
