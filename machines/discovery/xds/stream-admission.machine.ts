import { and, assign, not, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import type { ClientsAdmitted, ClientsQueued, LoadMeasured } from './stream-admission-protocol.ts';

interface StreamAdmissionContext {
  /** Maximum number of concurrent TLS handshakes and streams without a first response. */
  slots: number;
}

export const measureIntervalMs = 50;
/**
 * Bounds of the slots. A client needs several round trips: with 4 slots on a machine with other busy programs, the server was idle most of the time,
 * and 1,000 clients with TLS took 95 s.
 */
export const minSlots = 16;
export const maxSlots = 64;
/** Slots while no client waits: that many clients take some 50 ms of processor time. */
export const initialSlots = minSlots;

/** Limits in processor time and counts instead of elapsed time, because another program on the same processors must not slow down admission. */
const maxTurnMs = 12;
const maxRequests = 48;
const maxProxies = 32;
/** More clients are admitted while each load is below this share of its limit. */
const slack = 0.6;

/** How many clients may connect concurrently, by load (PILOT_MAX_REQUESTS_PER_SECOND is an additional constant limit). */
export const streamAdmissionMachine = setup({
  types: {
    context: {} as StreamAdmissionContext,
    events: {} as ClientsQueued | ClientsAdmitted | LoadMeasured,
    children: {} as { load: 'load' },
  },
  actors: {
    load: callbackEffect<{ type: never }, undefined>('load'),
  },
  guards: {
    isOverloaded: ({ event }) => event.type === 'load.measured' && exceedsLoadShare(event, 1),
    hasSlack: ({ event }) => event.type === 'load.measured' && !exceedsLoadShare(event, slack),
    isFull: ({ event }) => event.type === 'load.measured' && event.isFull,
  },
  actions: {
    resetSlots: assign({ slots: initialSlots }),
    addSlots: assign({ slots: ({ context }) => Math.min(maxSlots, context.slots + Math.ceil(context.slots / 8)) }),
    removeSlots: assign({ slots: ({ context }) => Math.max(minSlots, Math.floor(context.slots * 0.75)) }),
    applySlots: (_, _params: { slots: number }) => {},
  },
}).createMachine({
  id: 'stream-admission',
  description: 'How many clients may connect at a time.',
  meta: { timeline: noLane },
  context: { slots: initialSlots },
  initial: 'idle',
  states: {
    idle: {
      description: 'There is a slot for each client that connects.',
      meta: { waitsFor: 'a client that finds all slots taken' },
      on: {
        'clients.queued': 'admitting',
        'clients.admitted': {},
        'load.measured': { description: 'Measured before the last client was admitted.' },
      },
    },
    admitting: {
      description: 'Clients wait for a slot.',
      invoke: { id: 'load', src: 'load' },
      initial: 'at capacity',
      on: {
        'clients.queued': {},
        'clients.admitted': { target: 'idle', actions: ['resetSlots', applySlots()] },
        'load.measured': [
          { guard: 'isOverloaded', target: '.overloaded', actions: ['removeSlots', applySlots()] },
          { guard: and(['hasSlack', 'isFull']), target: '.below capacity', actions: ['addSlots', applySlots()] },
          { guard: not('isFull'), target: '.below capacity' },
          { target: '.at capacity' },
        ],
      },
      states: {
        'below capacity': {
          description: 'The load permits more: there are more slots with each measurement that finds all taken.',
          meta: { waitsFor: 'a measurement, one at each interval' },
        },
        'at capacity': {
          description: 'The load is near a limit, and the number of slots does not change.',
          meta: { waitsFor: 'a measurement, one at each interval' },
        },
        overloaded: {
          description:
            'Turns of the event loop are long, or requests or pushes wait: there are fewer slots with each measurement.',
          meta: { waitsFor: 'a measurement, one at each interval' },
        },
      },
    },
  },
});

function exceedsLoadShare({ turnMs, requests, proxies }: LoadMeasured, share: number): boolean {
  return turnMs > maxTurnMs * share || requests > maxRequests * share || proxies > maxProxies * share;
}

function applySlots() {
  type Args = { context: StreamAdmissionContext };
  return { type: 'applySlots' as const, params: ({ context }: Args) => ({ slots: context.slots }) };
}
