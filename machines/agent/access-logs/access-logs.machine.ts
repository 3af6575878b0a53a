import { assign, sendParent, setup } from 'xstate';
import { callbackEffect, reasonOf } from '../../effect.ts';
import type {
  AccessLogSocketClosed,
  AccessLogSocketListening,
  AccessLogStreamClosed,
  AccessLogStreamOpened,
  AccessLogsCongested,
  AccessLogsFailed,
  AccessLogsRelieved,
} from '../access-log-protocol.ts';
import { accessLogsTimeline } from '../timeline.ts';

interface AccessLogsContext {
  socket: string;
  /** Each worker of each Envoy opens a stream for each kind of log. */
  open: number;
  pauseMs: number;
}

const openLimitMs = 5_000;
const minPauseMs = 500;
const maxPauseMs = 30_000;
/** The backoff is reset after the socket was open for this time. */
const trialMs = 60_000;
/** Reading pauses for at most 0.5 s (the reading budget); a longer pause is a bug in the effect. */
const congestionLimitMs = 10_000;

/** Nothing waits for this machine: without the stream, Envoy serves, retries, and counts dropped entries. */
export const accessLogsMachine = setup({
  types: {
    context: {} as AccessLogsContext,
    input: {} as { socket: string },
    events: {} as
      | AccessLogSocketListening
      | AccessLogSocketClosed
      | AccessLogStreamOpened
      | AccessLogStreamClosed
      | AccessLogsCongested
      | AccessLogsRelieved,
    children: {} as { server: 'server' },
  },
  actors: {
    server: callbackEffect<{ type: never }, { socket: string }>('server'),
  },
  delays: {
    openLimit: openLimitMs,
    pause: ({ context }) => context.pauseMs,
    trial: trialMs,
    congestionLimit: congestionLimitMs,
  },
  guards: { hasStreams: (_, { open }: { open: number }) => open > 0 },
  actions: {
    lengthenPause: assign({
      pauseMs: ({ context }) => Math.min(maxPauseMs, Math.max(minPauseMs, context.pauseMs * 2)),
    }),
    resetPause: assign({ pauseMs: 0 }),
    recordStreams: assign({ open: (_, { open }: { open: number }) => open }),
    clearStreams: assign({ open: 0 }),
    reportFailed: sendParent(
      ({ context }, { reason }: { reason: string }): AccessLogsFailed => ({
        ...{ type: 'access-logs.failed', reason, pauseMs: context.pauseMs },
      }),
    ),
  },
}).createMachine({
  id: 'access-logs',
  description: "Receives Envoy's access logs over gRPC and counts Istio's standard metrics.",
  meta: { timeline: accessLogsTimeline },
  context: ({ input }) => ({ socket: input.socket, open: 0, pauseMs: 0 }),
  initial: 'available',
  states: {
    available: {
      description: 'The socket is open or being opened.',
      invoke: {
        id: 'server',
        src: 'server',
        input: ({ context }) => ({ socket: context.socket }),
        onError: {
          target: 'unavailable',
          actions: [
            'lengthenPause',
            { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
          ],
        },
      },
      on: {
        'access-log-socket.closed': {
          target: 'unavailable',
          actions: ['lengthenPause', { type: 'reportFailed', params: ({ event }) => event }],
        },
      },
      initial: 'opening',
      states: {
        opening: {
          description: 'Envoy cannot open a stream yet, and tries again by itself.',
          after: {
            openLimit: {
              target: '#access-logs.unavailable',
              actions: [
                'lengthenPause',
                { type: 'reportFailed', params: { reason: `access log socket not open after ${openLimitMs} ms` } },
              ],
            },
          },
          on: { 'access-log-socket.listening': 'listening' },
        },
        listening: {
          description: 'Envoy can open streams.',
          after: { trial: { actions: 'resetPause' } },
          on: {
            'access-log-stream.closed': [
              {
                guard: { type: 'hasStreams', params: ({ event }) => event },
                actions: { type: 'recordStreams', params: ({ event }) => event },
              },
              { target: '.idle', actions: { type: 'recordStreams', params: ({ event }) => event } },
            ],
          },
          initial: 'idle',
          states: {
            idle: {
              meta: { waitsFor: 'Envoy, which opens a stream with the first request' },
              description: 'No stream is open.',
              on: {
                'access-log-stream.opened': {
                  target: 'receiving',
                  actions: { type: 'recordStreams', params: ({ event }) => event },
                },
                'access-logs.congested': {},
                'access-logs.relieved': {},
              },
            },
            receiving: {
              meta: { waitsFor: 'entries: normal operation' },
              description: 'Entries are read as they arrive.',
              on: {
                'access-log-stream.opened': { actions: { type: 'recordStreams', params: ({ event }) => event } },
                'access-logs.congested': 'congested',
                'access-logs.relieved': {},
              },
            },
            congested: {
              description: 'Reading pauses. Envoy buffers entries, then drops them and counts the loss.',
              after: { congestionLimit: 'receiving' },
              on: {
                'access-log-stream.opened': { actions: { type: 'recordStreams', params: ({ event }) => event } },
                'access-logs.relieved': 'receiving',
                'access-logs.congested': {},
              },
            },
          },
        },
      },
    },
    unavailable: {
      description: 'The socket could not be opened. Requests are served, and not counted.',
      entry: 'clearStreams',
      after: { pause: 'available' },
    },
  },
});
