import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import type { EpochsChanged, StopNow } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface ShutdownInput {
  /** Whether to kill without a drain. */
  now: boolean;
  /** Whether no epoch has active requests. */
  nothingToDrain: boolean;
  /** Admin port of the Envoy whose active requests are counted. */
  adminPort: number;
  /** Whether to drain until no request is active, instead of for a fixed time. */
  waitsForRequests: boolean;
  terminationDrainMs: number;
  minimumDrainMs: number;
  stopLimitMs: number;
}

interface ShutdownContext extends ShutdownInput {
  /** Consecutive failures to count active requests. */
  miscounts: number;
}

export type ShutdownTag = 'draining' | 'ending' | 'killing';

const idlePollMs = 1_000;
const maxCountFailures = 4;
/** The kernel reaps a killed process within this time. */
const reapLimitMs = 10_000;

export const shutdownMachine = setup({
  types: {
    context: {} as ShutdownContext,
    input: {} as ShutdownInput,
    tags: {} as ShutdownTag,
    events: {} as EpochsChanged | StopNow,
  },
  actors: {
    /** Returns -1 if the Envoy does not report its active requests. */
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
    isImmediate: ({ context }) => context.now,
    waitsForRequests: ({ context }) => context.waitsForRequests,
    hasNothingToDrain: ({ context }) => context.nothingToDrain,
    hasNoActiveRequests: (_, params: { requests: number }) => params.requests <= 0,
    isCountFailureLimitReached: ({ context }) => context.miscounts >= maxCountFailures,
  },
  actions: {
    recordEpochs: assign(({ event }) =>
      event.type === 'epochs.changed' ? { nothingToDrain: event.nothingToDrain, adminPort: event.adminPort } : {},
    ),
    requestDrain: sendParent({ type: 'epochs.drain' }),
    requestTermination: sendParent({ type: 'epochs.terminate' }),
    requestKill: sendParent({ type: 'epochs.kill' }),
    recordCountFailure: assign({ miscounts: ({ context }) => context.miscounts + 1 }),
    resetCountFailures: assign({ miscounts: 0 }),
  },
}).createMachine({
  id: 'shutdown',
  description: 'Stops every Envoy.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, miscounts: 0 }),
  initial: 'choosing',
  on: {
    'epochs.changed': { actions: 'recordEpochs' },
    'stop.now': '.killing',
  },
  states: {
    choosing: { always: [{ guard: 'isImmediate', target: 'killing' }, { target: 'draining' }] },
    draining: {
      tags: 'draining',
      description: 'Requests finish. No Envoy is started.',
      entry: 'requestDrain',
      always: { guard: 'hasNothingToDrain', target: 'ending' },
      initial: 'choosing',
      states: {
        choosing: {
          always: [{ guard: 'waitsForRequests', target: 'minimum drain' }, { target: 'fixed drain' }],
        },
        'fixed drain': { after: { terminationDrain: '#shutdown.ending' } },
        'minimum drain': {
          description: 'Clients that have not yet removed this proxy may still send requests.',
          after: { minimumDrain: 'counting requests' },
        },
        'counting requests': {
          meta: { waitsFor: 'the response of the admin interface: at most 5 s' },
          description: 'Counts active requests, not connections, because idle connections may stay open for hours.',
          invoke: {
            id: 'count',
            src: 'countRequests',
            input: ({ context }) => ({ adminPort: context.adminPort }),
            onDone: [
              {
                guard: { type: 'hasNoActiveRequests', params: ({ event }) => ({ requests: event.output }) },
                target: '#shutdown.ending',
              },
              { target: 'requests active', actions: 'resetCountFailures' },
            ],
            onError: [
              { guard: 'isCountFailureLimitReached', target: '#shutdown.ending' },
              { target: 'requests active', actions: 'recordCountFailure' },
            ],
          },
        },
        'requests active': { after: { idlePoll: 'counting requests' } },
      },
    },
    ending: {
      tags: 'ending',
      description: 'Sends SIGTERM to the newest epoch of each base ID, which also ends its parent.',
      entry: 'requestTermination',
      after: { stopLimit: 'killing' },
    },
    killing: {
      tags: 'killing',
      description: 'Sends SIGKILL to the remaining epochs.',
      entry: 'requestKill',
      after: { reapLimit: 'finished' },
    },
    finished: { type: 'final', description: 'The limit for exits after SIGKILL has passed.' },
  },
});
