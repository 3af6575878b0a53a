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
 * Answers "is this proxy ready?" (spec/agent.md §6): as long as some epoch serves. The admin interface is asked, not
 * the statistics; while a child takes over the admin port, that port speaks for the child and not for the epoch that
 * serves, so then its answer does not count.
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
  guards: { isOff: ({ context }) => context.port === 0 },
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
    answerReady: sendTo(
      'http',
      (_, params: { request: number }): HttpOrder => ({
        type: 'readiness.answer',
        request: params.request,
        ready: true,
        reason: '',
      }),
    ),
    answerAsEnvoy: sendTo(
      'http',
      (_, params: { request: number; live: boolean; detail: string }): HttpOrder => ({
        type: 'readiness.answer',
        request: params.request,
        ready: params.live,
        reason: params.live ? '' : `Envoy's admin interface says: ${params.detail}`,
      }),
    ),
    useAdmin: sendTo('http', (_, params: { baseId: number }): HttpOrder => ({ type: 'admin.use', ...params })),
    askEnvoy: sendTo(
      'http',
      (_, params: { request: number }): HttpOrder => ({ type: 'envoy.ask', request: params.request }),
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
      on: {
        'status.start': [{ guard: 'isOff', target: 'off', actions: 'reportOff' }, { target: 'open' }],
      },
    },
    off: { description: 'No status server is wanted.' },
    open: {
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
          actions: { type: 'useAdmin', params: ({ event }) => ({ baseId: event.baseId }) },
        },
        'serving.ended': {
          target: '.not serving',
          actions: { type: 'rememberReason', params: ({ event }) => ({ reason: event.reason }) },
        },
        'envoy.answered': { actions: { type: 'answerAsEnvoy', params: ({ event }) => event } },
      },
      initial: 'not serving',
      states: {
        'not serving': {
          description: 'No epoch serves.',
          on: {
            'readiness.asked': {
              actions: { type: 'answerNotReady', params: ({ event }) => ({ request: event.request }) },
            },
          },
        },
        serving: {
          description: 'An epoch serves, and the admin port is its own.',
          on: {
            'readiness.asked': { actions: { type: 'askEnvoy', params: ({ event }) => ({ request: event.request }) } },
            'handover.began': 'handing over',
          },
        },
        'handing over': {
          description: 'An epoch serves; the admin port belongs to its child or to nobody.',
          on: {
            'readiness.asked': {
              actions: { type: 'answerReady', params: ({ event }) => ({ request: event.request }) },
            },
            'envoy.answered': {
              actions: { type: 'answerReady', params: ({ event }) => ({ request: event.request }) },
            },
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
