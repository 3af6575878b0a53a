import { and, assign, enqueueActions, not, sendParent, sendTo, setup, stateIn } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import type { NamesKnown } from '../dns-protocol.ts';
import type {
  EnvoyAnswered,
  EnvoyAsk,
  HttpOrder,
  HttpReport,
  ListenersChecked,
  ReadinessSettled,
  ServingBegan,
  ServingReport,
  StatusDrain,
  StatusStart,
} from '../protocol.ts';
import { noLane } from '../timeline.ts';
import {
  atAnswer,
  atFirstLook,
  atLaterLook,
  type KnownListeners,
  noListenersKnown,
  ofSuccessor,
  sayLacking,
} from './lacking-listeners.ts';

export interface StatusInput {
  /** 0: no server. */
  port: number;
  /** False: applications speak xDS themselves, and no Envoy is to be ready. */
  hasEnvoy: boolean;
  /** Whether an Envoy is ready only when it was seen to serve one of the application's ports. */
  awaitsApplication: boolean;
  /** Whether the control plane's names are for the workload to ask: it is not ready without them. */
  awaitsNames: boolean;
}

interface StatusContext extends StatusInput {
  /** Why this proxy is not ready, while no Envoy is asked. */
  reason: string;
  /** The readiness call that was not answered yet; null when there is none. */
  question: number | null;
  listeners: KnownListeners;
}

/** The answer to a readiness call is "not ready" when Envoy says nothing for so long. */
const answerLimitMs = 5_000;
/** Why an agent that stops is not ready. */
export const stoppingReason = 'the agent is stopping';
/** An Envoy that hangs is ready for so long at most; a probe each second asks Envoy one time in five. */
const heldMs = 5_000;
/** For listeners of an Envoy that lacked none, so rarely is enough: to say it, Envoy writes its whole configuration. */
const listenersHeldMs = 10_000;
const notHeld = { heldMs: 0, listenersHeldMs: 0 } as const;

const statusSetup = setup({
  types: {
    context: {} as StatusContext,
    input: {} as StatusInput,
    events: {} as StatusStart | StatusDrain | ServingReport | NamesKnown | HttpReport | ReadinessSettled,
    children: {} as { http: 'http' },
  },
  actors: {
    /** Serves the status port, and asks Envoy's admin interface when told to. */
    http: callbackEffect<HttpOrder, Pick<StatusInput, 'port'>>('http'),
  },
  delays: { answerLimit: answerLimitMs },
  guards: {
    isOff: ({ context }) => context.port === 0,
    awaitsNames: ({ context }) => context.awaitsNames,
    hasNoEnvoy: ({ context }) => !context.hasEnvoy,
    /** Live is not yet serving all that it was sent. */
    lacksListeners: ({ context, event }) =>
      event.type === 'envoy.answered' && event.live && context.listeners.lacking.length > 0,
    lacksFromStart: ({ context, event }) =>
      event.type === 'listeners.checked' && atFirstLook(context.listeners, event.listeners).lacking.length > 0,
    lacksStill: ({ context, event }) =>
      event.type === 'listeners.checked' && atLaterLook(context.listeners, event.listeners).lacking.length > 0,
    saysLive: ({ event }) => event.type === 'envoy.answered' && event.live,
    saidByAdmin: ({ event }) => event.type === 'envoy.answered' && event.by === 'admin',
    awaitsApplication: ({ context }) => context.awaitsApplication,
    lacksApplication: ({ context, event }) =>
      context.awaitsApplication &&
      event.type === 'envoy.answered' &&
      event.live &&
      event.unserved !== '' &&
      !context.listeners.servedApplication,
    /** Nobody has answered that call yet. */
    isOpen: ({ context, event }) => event.type === 'envoy.answered' && event.request === context.question,
    isAsked: ({ context }) => context.question !== null,
  },
  actions: {
    reportOff: sendParent({ type: 'status.listening', port: 0 }),
    reportListening: sendParent((_, params: { port: number }) => ({ type: 'status.listening', port: params.port })),
    reportFailed: sendParent((_, params: { reason: string }) => ({ type: 'status.failed', reason: params.reason })),
    passOnQuit: sendParent({ type: 'quit.requested' }),
    passOnUpgrade: sendParent({ type: 'upgrade.requested' }),
    rememberReason: assign({ reason: (_, params: { reason: string }) => params.reason }),
    rememberQuestion: assign({ question: (_, params: { request: number }) => params.request }),
    forgetQuestion: assign({ question: null }),
    answerNotReady: enqueueActions(({ context, enqueue }, { request }: { request: number }) => {
      enqueue.sendTo('http', { type: 'readiness.answer', request, ready: false, reason: context.reason, ...notHeld });
      enqueue.raise({ type: 'readiness.settled' });
    }),
    answerReady: enqueueActions(({ enqueue }, { request }: { request: number }) => {
      enqueue.sendTo('http', { type: 'readiness.answer', request, ready: true, reason: '', ...notHeld });
      enqueue.raise({ type: 'readiness.settled' });
    }),
    answerAsEnvoy: enqueueActions(({ enqueue }, { request, by, live, detail }: EnvoyAnswered) => {
      const source = by === 'admin' ? 'admin interface' : 'port';
      const reason = live ? '' : by === 'agent' ? detail : `Envoy's ${source} says: ${detail}`;
      // A port says nothing of what comes next: there, somebody is about to take over.
      const held = live && by === 'admin' ? { heldMs, listenersHeldMs } : notHeld;
      enqueue.sendTo('http', { type: 'readiness.answer', request, ready: live, reason, ...held });
      enqueue.raise({ type: 'readiness.settled' });
    }),
    answerForSilence: sendTo(
      'http',
      ({ context }): HttpOrder => ({
        type: 'readiness.answer',
        request: context.question ?? 0,
        ready: false,
        reason: `no answer in ${answerLimitMs} ms`,
        ...notHeld,
      }),
    ),
    answerLacking: enqueueActions(({ context, enqueue }, { request }: EnvoyAnswered) => {
      const reason = `Envoy lacks listeners that it refused: ${sayLacking(context.listeners.lacking)}`;
      enqueue.sendTo('http', { type: 'readiness.answer', request, ready: false, reason, ...notHeld });
      enqueue.raise({ type: 'readiness.settled' });
    }),
    answerUnserved: enqueueActions(({ enqueue }, { request, unserved: reason }: EnvoyAnswered) => {
      enqueue.sendTo('http', { type: 'readiness.answer', request, ready: false, reason, ...notHeld });
      enqueue.raise({ type: 'readiness.settled' });
    }),
    answerWithoutNames: enqueueActions(({ enqueue }, { request }: { request: number }) => {
      const reason = 'the control plane has not sent its names yet';
      enqueue.sendTo('http', { type: 'readiness.answer', request, ready: false, reason, ...notHeld });
      enqueue.raise({ type: 'readiness.settled' });
    }),
    beginListeners: assign({ listeners: ({ context }) => ofSuccessor(context.listeners) }),
    noteListeners: assign({
      listeners: ({ context }, params: ListenersChecked) => atFirstLook(context.listeners, params.listeners),
    }),
    noteListenersAgain: assign({
      listeners: ({ context }, params: ListenersChecked) => atLaterLook(context.listeners, params.listeners),
    }),
    noteApplication: assign({ listeners: ({ context }, params: EnvoyAnswered) => atAnswer(context.listeners, params) }),
    drainEnvoy: sendTo('http', { type: 'envoy.drain' }),
    outdateAnswer: sendTo('http', { type: 'readiness.outdated' }),
    useAdmin: sendTo(
      'http',
      (_, { epoch, baseId, adminPort, pid }: ServingBegan): HttpOrder => ({
        ...{ type: 'admin.use', epoch, baseId, adminPort, pid },
      }),
    ),
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

/** After Envoy's own word: what is wrong with Envoy is told first. */
const lacksNames = and(['saysLive', stateIn({ open: { names: 'awaited' } })]);

const answer = <Type extends 'answerLacking' | 'answerUnserved' | 'answerWithoutNames' | 'answerAsEnvoy'>(type: Type) =>
  ({ type, params: ({ event }: { event: EnvoyAnswered }) => event }) as const;

/** What is answered by Envoy's word; the first of these that holds. */
const lacking = { guard: 'lacksListeners', actions: answer('answerLacking') } as const;
const forTheRest = [
  { guard: lacksNames, actions: answer('answerWithoutNames') },
  { actions: answer('answerAsEnvoy') },
] as const;

const asks = (at: EnvoyAsk['at']) =>
  ({
    type: 'askEnvoy',
    params: ({ event }: { event: { request: number } }) => ({ request: event.request, at }),
  }) as const;

/** Whatever an Envoy says that was asked before. */
const notReady = {
  actions: {
    type: 'answerNotReady',
    params: ({ event }: { event: { request: number } }) => ({ request: event.request }),
  },
} as const;
const refuses = { 'readiness.asked': notReady, 'envoy.answered': [answeredAlready, notReady] } as const;

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
  context: ({ input }) => ({
    ...input,
    reason: 'no Envoy has served yet',
    question: null,
    listeners: noListenersKnown,
  }),
  initial: 'idle',
  on: {
    // Nobody asks while the port is not open, so nothing needs remembering then.
    'status.start': {},
    'status.drain': {},
    'serving.began': {},
    'serving.ended': {},
    'handover.began': {},
    'handover.ended': {},
    'names.known': {},
  },
  states: {
    idle: {
      meta: { waitsFor: 'status.start, which the agent sends at once' },
      on: {
        'status.start': [
          { guard: 'isOff', target: 'off', actions: 'reportOff' },
          {
            guard: and(['hasNoEnvoy', 'awaitsNames']),
            target: ['open.envoy.none wanted', 'open.names.awaited'],
          },
          { guard: 'hasNoEnvoy', target: 'open.envoy.none wanted' },
          { guard: 'awaitsNames', target: 'open.names.awaited' },
          { target: 'open' },
        ],
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
        // Nobody serves, or whoever does is about to drain anyway.
        'drain.requested': {},
        // Told for people.
        'drain.ordered': {},
        'upgrade.requested': { actions: 'passOnUpgrade' },
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
              actions: { type: 'rememberReason', params: { reason: stoppingReason } },
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
              lacking,
              { guard: 'lacksApplication', actions: answer('answerUnserved') },
              ...forTheRest,
            ],
          },
          initial: 'not serving',
          states: {
            'not serving': {
              description: 'No epoch serves.',
              on: {
                ...refuses,
              },
            },
            'none wanted': {
              description: 'There is no Envoy: what is asked for here is there, but for names that are still awaited.',
              on: {
                'readiness.asked': [
                  {
                    guard: stateIn({ open: { names: 'awaited' } }),
                    actions: { type: 'answerWithoutNames', params: ({ event }) => event },
                  },
                  { actions: { type: 'answerReady', params: ({ event }) => event } },
                ],
              },
            },
            serving: {
              description: 'An epoch serves, and the admin port is its own.',
              exit: 'outdateAnswer',
              on: {
                'drain.requested': { actions: 'drainEnvoy' },
                'readiness.asked': { actions: asks('admin') },
                'handover.began': 'handing over',
              },
            },
            'handing over': {
              description: 'An epoch serves; the admin port belongs to its child or to nobody.',
              on: {
                'readiness.asked': { actions: asks('port') },
                'envoy.answered': [
                  answeredAlready,
                  {
                    guard: 'saidByAdmin',
                    actions: asks('port'),
                  },
                  lacking,
                  ...forTheRest,
                ],
                'handover.ended': 'serving on',
              },
            },
            'serving on': {
              description:
                'The child is gone, and the same epoch serves: with its admin port, or without one if the child took it.',
              exit: 'outdateAnswer',
              on: {
                'drain.requested': { actions: 'drainEnvoy' },
                'readiness.asked': { actions: asks('admin or port') },
                'handover.began': 'handing over',
              },
            },
            stopping: {
              description: 'Not ready, whatever Envoy says.',
              on: {
                ...refuses,
                'serving.began': undefined,
                'serving.ended': undefined,
              },
            },
          },
        },
        listeners: {
          description: 'Whether the Envoy that serves has all that it was sent, but for what it refused later.',
          initial: 'unseen',
          on: {
            'serving.began': { target: '.unseen', actions: 'beginListeners' },
            'envoy.answered': {
              guard: 'awaitsApplication',
              actions: { type: 'noteApplication', params: ({ event }) => event },
            },
          },
          states: {
            unseen: {
              meta: {
                waitsFor: 'an Envoy that serves, and says what it refused: until then nothing is held against it',
              },
              on: {
                'listeners.checked': [
                  {
                    guard: 'lacksFromStart',
                    target: 'lacking',
                    actions: { type: 'noteListeners', params: ({ event }) => event },
                  },
                  { target: 'complete', actions: { type: 'noteListeners', params: ({ event }) => event } },
                ],
              },
            },
            lacking: {
              meta: { waitsFor: 'configuration that Envoy takes' },
              description: 'Some were refused at its start.',
              on: {
                'listeners.checked': [
                  { guard: 'lacksStill', actions: { type: 'noteListenersAgain', params: ({ event }) => event } },
                  { target: 'complete', actions: { type: 'noteListenersAgain', params: ({ event }) => event } },
                ],
              },
            },
            complete: {
              meta: { waitsFor: 'nothing' },
              description: 'What is refused from now on takes nothing away that serves.',
              on: { 'listeners.checked': { actions: { type: 'noteListenersAgain', params: ({ event }) => event } } },
            },
          },
        },
        names: {
          description: "Whether the workload can ask for the control plane's names.",
          initial: 'known',
          states: {
            awaited: {
              meta: { waitsFor: 'the control plane, whose names this proxy is not ready without' },
              on: { 'names.known': 'known' },
            },
            known: {
              meta: { waitsFor: 'nothing' },
              description: 'They are there, or nobody asks here for names.',
              on: { 'names.known': {} },
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
