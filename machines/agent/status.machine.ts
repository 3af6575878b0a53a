import { assign, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect } from '../effect.ts';
import type {
  AdminUse,
  EnvoyAnswered,
  EnvoyAsk,
  HttpFailed,
  HttpListening,
  QuitRequested,
  ReadinessAnswer,
  ReadinessAsked,
  ServingBegan,
  ServingReport,
  StatusDrain,
  StatusStart,
} from './protocol.ts';

export interface StatusInput {
  /** 0: no server. */
  port: number;
}

type HttpOrder = AdminUse | EnvoyAsk | ReadinessAnswer;
type HttpReport = HttpListening | HttpFailed | ReadinessAsked | EnvoyAnswered | QuitRequested;

/**
 * Answers "is this proxy ready?" (spec/agent.md §6): as long as some epoch serves all that it was started for, and says so when
 * it is asked. Asked is its admin interface, not the statistics. While a child takes over the admin port, that port speaks for the child; and a child
 * that fails may leave nobody there (spec/envoy-hot-restart.md §9 step 7). Then the Envoy that serves is asked at a port that
 * it serves.
 */
export const statusMachine = setup({
  types: {
    context: {} as StatusInput & { reason: string },
    input: {} as StatusInput,
    events: {} as StatusStart | StatusDrain | ServingReport | HttpReport,
    children: {} as { http: 'http' },
  },
  actors: {
    /** Serves the status port, and asks Envoy's admin interface when told to. */
    http: callbackEffect<HttpOrder, StatusInput>('http'),
  },
  guards: {
    isOff: ({ context }) => context.port === 0,
    /** Live is not yet serving all that it was sent. */
    lacksListeners: ({ event }) => event.type === 'envoy.answered' && event.live && event.refused !== '',
    saidByAdmin: ({ event }) => event.type === 'envoy.answered' && event.by === 'admin',
  },
  actions: {
    reportOff: sendParent({ type: 'status.listening', port: 0 }),
    reportListening: sendParent((_, params: { port: number }) => ({ type: 'status.listening', port: params.port })),
    reportFailed: sendParent((_, params: { reason: string }) => ({ type: 'status.failed', reason: params.reason })),
    passOnQuit: sendParent({ type: 'quit.requested' }),
    rememberReason: assign({ reason: (_, params: { reason: string }) => params.reason }),
    answerNotReady: sendTo(
      'http',
      ({ context }, params: { request: number }): HttpOrder => ({
        type: 'readiness.answer',
        request: params.request,
        ready: false,
        reason: context.reason,
      }),
    ),
    answerAsEnvoy: sendTo(
      'http',
      (_, { request, by, live, detail }: EnvoyAnswered): HttpOrder => ({
        type: 'readiness.answer',
        request,
        ready: live,
        reason: live ? '' : `Envoy's ${by === 'admin' ? 'admin interface' : 'port'} says: ${detail}`,
      }),
    ),
    answerLacking: sendTo(
      'http',
      (_, { request, refused }: EnvoyAnswered): HttpOrder => ({
        type: 'readiness.answer',
        request,
        ready: false,
        reason: `Envoy lacks listeners that it refused: ${refused}`,
      }),
    ),
    useAdmin: sendTo('http', (_, { epoch, baseId }: ServingBegan): HttpOrder => ({ type: 'admin.use', epoch, baseId })),
    askEnvoy: sendTo(
      'http',
      (_, { request, at }: Omit<EnvoyAsk, 'type'>): HttpOrder => ({ type: 'envoy.ask', request, at }),
    ),
  },
}).createMachine({
  id: 'status',
  description: 'Readiness of this proxy.',
  context: ({ input }) => ({ ...input, reason: 'Envoy has not been started' }),
  initial: 'idle',
  on: {
    // Nobody asks while the port is not open, so nothing needs remembering then.
    'status.start': {},
    'status.drain': {},
    'serving.began': {},
    'serving.ended': {},
    'handover.began': {},
    'handover.ended': {},
  },
  states: {
    idle: {
      meta: { waitsFor: 'status.start, which the agent sends at once' },
      on: {
        'status.start': [{ guard: 'isOff', target: 'off', actions: 'reportOff' }, { target: 'open' }],
      },
    },
    off: { meta: { waitsFor: 'nothing' }, description: 'No status server is wanted.' },
    open: {
      meta: { waitsFor: 'somebody who asks: this is the work' },
      description: 'The status port answers, or is about to.',
      invoke: { id: 'http', src: 'http', input: ({ context }) => ({ port: context.port }) },
      on: {
        'http.listening': {
          actions: { type: 'reportListening', params: ({ event }) => ({ port: event.port }) },
        },
        'http.failed': { actions: { type: 'reportFailed', params: ({ event }) => ({ reason: event.reason }) } },
        'quit.requested': { actions: 'passOnQuit' },
        'status.drain': {
          target: '.stopping',
          actions: { type: 'rememberReason', params: { reason: 'the agent is stopping' } },
        },
        'serving.began': {
          target: '.serving',
          actions: { type: 'useAdmin', params: ({ event }) => event },
        },
        'serving.ended': {
          target: '.not serving',
          actions: { type: 'rememberReason', params: ({ event }) => ({ reason: event.reason }) },
        },
        'envoy.answered': [
          { guard: 'lacksListeners', actions: { type: 'answerLacking', params: ({ event }) => event } },
          { actions: { type: 'answerAsEnvoy', params: ({ event }) => event } },
        ],
      },
      initial: 'not serving',
      states: {
        'not serving': {
          description: 'No epoch serves.',
          on: {
            'readiness.asked': {
              actions: { type: 'answerNotReady', params: ({ event }) => ({ request: event.request }) },
            },
            // Of an Envoy that has ended since.
            'envoy.answered': {
              actions: { type: 'answerNotReady', params: ({ event }) => ({ request: event.request }) },
            },
          },
        },
        serving: {
          description: 'An epoch serves, and the admin port is its own.',
          on: {
            'readiness.asked': {
              actions: { type: 'askEnvoy', params: ({ event }) => ({ request: event.request, at: 'admin' as const }) },
            },
            'handover.began': 'handing over',
          },
        },
        'handing over': {
          description: 'An epoch serves; the admin port belongs to its child or to nobody.',
          on: {
            'readiness.asked': {
              actions: { type: 'askEnvoy', params: ({ event }) => ({ request: event.request, at: 'port' as const }) },
            },
            'envoy.answered': [
              {
                guard: 'saidByAdmin',
                actions: { type: 'askEnvoy', params: ({ event }) => ({ request: event.request, at: 'port' as const }) },
              },
              { guard: 'lacksListeners', actions: { type: 'answerLacking', params: ({ event }) => event } },
              { actions: { type: 'answerAsEnvoy', params: ({ event }) => event } },
            ],
            'handover.ended': 'serving on',
          },
        },
        'serving on': {
          description:
            'The child is gone, and the same epoch serves: with its admin port, or without one if the child took it.',
          on: {
            'readiness.asked': {
              actions: {
                type: 'askEnvoy',
                params: ({ event }) => ({ request: event.request, at: 'admin or port' as const }),
              },
            },
            'handover.began': 'handing over',
          },
        },
        stopping: {
          description: 'Not ready, whatever Envoy says.',
          on: {
            'readiness.asked': {
              actions: { type: 'answerNotReady', params: ({ event }) => ({ request: event.request }) },
            },
            'envoy.answered': {
              actions: { type: 'answerNotReady', params: ({ event }) => ({ request: event.request }) },
            },
            'serving.began': undefined,
            'serving.ended': undefined,
          },
        },
      },
    },
  },
});
