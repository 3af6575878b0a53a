import { assign, enqueueActions, not, sendParent, sendTo, setup } from 'xstate';
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
  ReadinessSettled,
  ServingBegan,
  ServingReport,
  StatusDrain,
  StatusStart,
} from './protocol.ts';
import { noLane } from './timeline.ts';

export interface StatusInput {
  /** 0: no server. */
  port: number;
}

type HttpOrder = AdminUse | EnvoyAsk | ReadinessAnswer;
type HttpReport = HttpListening | HttpFailed | ReadinessAsked | EnvoyAnswered | QuitRequested;

interface StatusContext extends StatusInput {
  /** Why this proxy is not ready, while no Envoy is asked. */
  reason: string;
  /** The readiness call that was not answered yet; null when there is none. */
  question: number | null;
}

/** The answer to a readiness call is "not ready" when Envoy says nothing for so long. */
const answerLimitMs = 5_000;

const statusSetup = setup({
  types: {
    context: {} as StatusContext,
    input: {} as StatusInput,
    events: {} as StatusStart | StatusDrain | ServingReport | HttpReport | ReadinessSettled,
    children: {} as { http: 'http' },
  },
  actors: {
    /** Serves the status port, and asks Envoy's admin interface when told to. */
    http: callbackEffect<HttpOrder, StatusInput>('http'),
  },
  delays: { answerLimit: answerLimitMs },
  guards: {
    isOff: ({ context }) => context.port === 0,
    /** Live is not yet serving all that it was sent. */
    lacksListeners: ({ event }) => event.type === 'envoy.answered' && event.live && event.refused !== '',
    saidByAdmin: ({ event }) => event.type === 'envoy.answered' && event.by === 'admin',
    /** Nobody has answered that call yet. */
    isOpen: ({ context, event }) => event.type === 'envoy.answered' && event.request === context.question,
    isAsked: ({ context }) => context.question !== null,
  },
  actions: {
    reportOff: sendParent({ type: 'status.listening', port: 0 }),
    reportListening: sendParent((_, params: { port: number }) => ({ type: 'status.listening', port: params.port })),
    reportFailed: sendParent((_, params: { reason: string }) => ({ type: 'status.failed', reason: params.reason })),
    passOnQuit: sendParent({ type: 'quit.requested' }),
    rememberReason: assign({ reason: (_, params: { reason: string }) => params.reason }),
    rememberQuestion: assign({ question: (_, params: { request: number }) => params.request }),
    forgetQuestion: assign({ question: null }),
    answerNotReady: enqueueActions(({ context, enqueue }, { request }: { request: number }) => {
      enqueue.sendTo('http', { type: 'readiness.answer', request, ready: false, reason: context.reason });
      enqueue.raise({ type: 'readiness.settled' });
    }),
    answerAsEnvoy: enqueueActions(({ enqueue }, { request, by, live, detail }: EnvoyAnswered) => {
      const reason = live ? '' : `Envoy's ${by === 'admin' ? 'admin interface' : 'port'} says: ${detail}`;
      enqueue.sendTo('http', { type: 'readiness.answer', request, ready: live, reason });
      enqueue.raise({ type: 'readiness.settled' });
    }),
    answerForSilence: sendTo(
      'http',
      ({ context }): HttpOrder => ({
        type: 'readiness.answer',
        request: context.question ?? 0,
        ready: false,
        reason: `no answer in ${answerLimitMs} ms`,
      }),
    ),
    answerLacking: enqueueActions(({ enqueue }, { request, refused }: EnvoyAnswered) => {
      const reason = `Envoy lacks listeners that it refused: ${refused}`;
      enqueue.sendTo('http', { type: 'readiness.answer', request, ready: false, reason });
      enqueue.raise({ type: 'readiness.settled' });
    }),
    useAdmin: sendTo('http', (_, { epoch, baseId }: ServingBegan): HttpOrder => ({ type: 'admin.use', epoch, baseId })),
    askEnvoy: sendTo(
      'http',
      (_, { request, at }: Omit<EnvoyAsk, 'type'>): HttpOrder => ({ type: 'envoy.ask', request, at }),
    ),
    askAnew: sendTo(
      'http',
      ({ context }): HttpOrder => ({ type: 'envoy.ask', request: context.question ?? 0, at: 'admin' }),
    ),
  },
});

/** Envoy took so long that the call was answered without it. */
const answeredAlready = { guard: not('isOpen') } as const;

/**
 * Answers "is this proxy ready?" (spec/agent.md §6): as long as some epoch serves all that it was started for, and says so when
 * it is asked. Asked is its admin interface, not the statistics. While a child takes over the admin port, that port speaks for
 * the child; and a child that fails may leave nobody there (spec/envoy-hot-restart.md §9 step 7). Then the Envoy that serves is
 * asked at a port that it serves.
 */
export const statusMachine = statusSetup.createMachine({
  id: 'status',
  description: 'Readiness of this proxy.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, reason: 'no Envoy has served yet', question: null }),
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
        // Of one question at a time; said from one region to the other.
        'readiness.settled': {},
      },
      type: 'parallel',
      states: {
        envoy: {
          description: 'Who serves, and where it can be asked.',
          on: {
            'status.drain': {
              target: '.stopping',
              actions: { type: 'rememberReason', params: { reason: 'the agent is stopping' } },
            },
            'serving.began': [
              {
                // The one that was asked leaves, and may cut the question off: its word is not this one's.
                guard: 'isAsked',
                target: '.serving',
                actions: [{ type: 'useAdmin', params: ({ event }) => event }, 'askAnew'],
              },
              { target: '.serving', actions: { type: 'useAdmin', params: ({ event }) => event } },
            ],
            'serving.ended': {
              target: '.not serving',
              actions: { type: 'rememberReason', params: ({ event }) => ({ reason: event.reason }) },
            },
            'envoy.answered': [
              answeredAlready,
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
                'envoy.answered': [
                  answeredAlready,
                  { actions: { type: 'answerNotReady', params: ({ event }) => ({ request: event.request }) } },
                ],
              },
            },
            serving: {
              description: 'An epoch serves, and the admin port is its own.',
              on: {
                'readiness.asked': {
                  actions: {
                    type: 'askEnvoy',
                    params: ({ event }) => ({ request: event.request, at: 'admin' as const }),
                  },
                },
                'handover.began': 'handing over',
              },
            },
            'handing over': {
              description: 'An epoch serves; the admin port belongs to its child or to nobody.',
              on: {
                'readiness.asked': {
                  actions: {
                    type: 'askEnvoy',
                    params: ({ event }) => ({ request: event.request, at: 'port' as const }),
                  },
                },
                'envoy.answered': [
                  answeredAlready,
                  {
                    guard: 'saidByAdmin',
                    actions: {
                      type: 'askEnvoy',
                      params: ({ event }) => ({ request: event.request, at: 'port' as const }),
                    },
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
                'envoy.answered': [
                  answeredAlready,
                  { actions: { type: 'answerNotReady', params: ({ event }) => ({ request: event.request }) } },
                ],
                'serving.began': undefined,
                'serving.ended': undefined,
              },
            },
          },
        },
        question: {
          description: 'Whether somebody waits for an answer: one question at a time, however many ask.',
          initial: 'nobody asks',
          states: {
            'nobody asks': {
              meta: { waitsFor: 'somebody who asks: this is the work' },
              on: {
                'readiness.asked': {
                  target: 'asked',
                  actions: { type: 'rememberQuestion', params: ({ event }) => ({ request: event.request }) },
                },
              },
            },
            asked: {
              description: 'An answer is due.',
              exit: 'forgetQuestion',
              after: {
                answerLimit: {
                  target: 'nobody asks',
                  actions: 'answerForSilence',
                  description: 'Envoy says nothing: whoever asks is not kept waiting.',
                },
              },
              on: {
                'readiness.settled': 'nobody asks',
                // Not of this server: it asks again when it was answered.
                'readiness.asked': {
                  target: 'asked',
                  reenter: true,
                  actions: { type: 'rememberQuestion', params: ({ event }) => ({ request: event.request }) },
                },
              },
            },
          },
        },
      },
    },
  },
});
