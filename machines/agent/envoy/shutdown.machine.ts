import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import type { EpochsChanged, StopHurry } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface ShutdownInput {
  /** Nobody waits for the end of any request: everything is to go. */
  now: boolean;
  /** No epoch has requests that would be cut off. */
  nothingToDrain: boolean;
  /** Admin port of the Envoy whose requests count. */
  adminPort: number;
  /** Requests in flight decide how long it takes, instead of a fixed time. */
  waitsForRequests: boolean;
  terminationDrainMs: number;
  minimumDrainMs: number;
  stopLimitMs: number;
}

interface ShutdownContext extends ShutdownInput {
  /** Tries to count requests in flight that failed one after the other. */
  miscounts: number;
}

export type ShutdownTag = 'draining' | 'ending' | 'killing';

/** spec/agent.md §2.5. */
const idlePollMs = 1_000;
const miscountsAllowed = 4;
/** How long the operating system may take to reap a killed process. */
const reapLimitMs = 10_000;

/** How every Envoy is ended in good order: requests have their time, then SIGTERM, then SIGKILL. */
export const shutdownMachine = setup({
  types: {
    context: {} as ShutdownContext,
    input: {} as ShutdownInput,
    tags: {} as ShutdownTag,
    events: {} as EpochsChanged | StopHurry,
  },
  actors: {
    /** Counts the requests in flight of the Envoy whose admin interface is there; -1 where it does not say. Rejects without an answer. */
    countRequests: promiseEffect<number, { adminPort: number }>('countRequests'),
  },
  delays: {
    terminationDrain: ({ context }) => context.terminationDrainMs,
    minimumDrain: ({ context }) => context.minimumDrainMs,
    idlePoll: idlePollMs,
    stopLimit: ({ context }) => context.stopLimitMs,
    reapLimit: reapLimitMs,
  },
  guards: {
    isHurried: ({ context }) => context.now,
    waitsForRequests: ({ context }) => context.waitsForRequests,
    nothingToDrain: ({ context }) => context.nothingToDrain,
    nothingInFlight: (_, params: { requests: number }) => params.requests <= 0,
    miscountedTooOften: ({ context }) => context.miscounts >= miscountsAllowed,
  },
  actions: {
    note: assign(({ event }) =>
      event.type === 'epochs.changed' ? { nothingToDrain: event.nothingToDrain, adminPort: event.adminPort } : {},
    ),
    orderDrain: sendParent({ type: 'epochs.drain' }),
    orderEnd: sendParent({ type: 'epochs.end' }),
    orderKill: sendParent({ type: 'epochs.kill' }),
    countMiscount: assign({ miscounts: ({ context }) => context.miscounts + 1 }),
    forgetMiscounts: assign({ miscounts: 0 }),
  },
}).createMachine({
  id: 'shutdown',
  description: 'Every Envoy is to end.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, miscounts: 0 }),
  initial: 'choosing',
  on: {
    'epochs.changed': { actions: 'note' },
    'stop.now': '.killing',
  },
  states: {
    choosing: { always: [{ guard: 'isHurried', target: 'killing' }, { target: 'draining' }] },
    draining: {
      tags: 'draining',
      description: 'Requests finish; no new Envoy is started.',
      entry: 'orderDrain',
      always: { guard: 'nothingToDrain', target: 'ending' },
      initial: 'choosing',
      states: {
        choosing: {
          always: [{ guard: 'waitsForRequests', target: 'for a while at least' }, { target: 'for a fixed time' }],
        },
        'for a fixed time': { after: { terminationDrain: '#shutdown.ending' } },
        'for a while at least': {
          description: 'Who was not told yet that this proxy leaves may still send something.',
          after: { minimumDrain: 'counting' },
        },
        counting: {
          meta: { waitsFor: 'the answer of the admin interface: 5 s at most' },
          description: 'Requests in flight decide, not connections: idle ones may stay open for hours.',
          invoke: {
            id: 'count',
            src: 'countRequests',
            input: ({ context }) => ({ adminPort: context.adminPort }),
            onDone: [
              {
                guard: { type: 'nothingInFlight', params: ({ event }) => ({ requests: event.output }) },
                target: '#shutdown.ending',
              },
              { target: 'until requests are over', actions: 'forgetMiscounts' },
            ],
            onError: [
              { guard: 'miscountedTooOften', target: '#shutdown.ending' },
              { target: 'until requests are over', actions: 'countMiscount' },
            ],
          },
        },
        'until requests are over': { after: { idlePoll: 'counting' } },
      },
    },
    ending: {
      tags: 'ending',
      description: 'SIGTERM to the newest epoch of each base id; it takes its parent along.',
      entry: 'orderEnd',
      after: { stopLimit: 'killing' },
    },
    killing: {
      tags: 'killing',
      description: 'SIGKILL to whatever is left.',
      entry: 'orderKill',
      after: { reapLimit: 'over' },
    },
    over: { type: 'final', description: 'Nobody waits for the kernel any longer.' },
  },
});
