import { and, not, stateIn } from 'xstate';
import type { EnvoyAnswered, EnvoyAsk } from '../status-protocol.ts';
import { noLane } from '../timeline.ts';
import { noListenersKnown } from './lacking-listeners.ts';
import { statusSetup, stoppingReason } from './status.setup.ts';

/** Envoy took so long that the call was answered without it. */
const answeredAlready = { guard: not('isOpen') } as const;

/** After Envoy's own word: what is wrong with Envoy is told first. */
const lacksNames = and(['saysLive', stateIn({ open: { names: 'awaited' } })]);

const lacksGrpcBootstrap = and(['saysLive', stateIn({ open: { 'grpc bootstrap': 'awaited' } })]);

const answer = <
  Type extends
    | 'answerLacking'
    | 'answerUnserved'
    | 'answerWithoutNames'
    | 'answerWithoutGrpcBootstrap'
    | 'answerAsEnvoy',
>(
  type: Type,
) => ({ type, params: ({ event }: { event: EnvoyAnswered }) => event }) as const;

/** What is answered by Envoy's word; the first of these that holds. */
const lacking = { guard: 'lacksListeners', actions: answer('answerLacking') } as const;
const forTheRest = [
  { guard: lacksNames, actions: answer('answerWithoutNames') },
  { guard: lacksGrpcBootstrap, actions: answer('answerWithoutGrpcBootstrap') },
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
    'grpc-bootstrap.written': {},
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
                  {
                    guard: stateIn({ open: { 'grpc bootstrap': 'awaited' } }),
                    actions: { type: 'answerWithoutGrpcBootstrap', params: ({ event }) => event },
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
        'grpc bootstrap': {
          description: 'Whether gRPC programs of the workload find their bootstrap file.',
          initial: 'deciding',
          states: {
            deciding: { always: [{ guard: 'awaitsGrpcBootstrap', target: 'awaited' }, { target: 'written' }] },
            awaited: {
              meta: { waitsFor: 'the certificates, which the bootstrap file names, and the file system' },
              on: { 'grpc-bootstrap.written': 'written' },
            },
            written: {
              meta: { waitsFor: 'nothing' },
              description: 'The file is there, or no program needs it.',
              on: { 'grpc-bootstrap.written': {} },
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
