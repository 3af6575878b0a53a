import { assign, enqueueActions, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { apiServerTimeline } from '../timeline.ts';
import { informerMachine } from './informer.machine.ts';
import type { DefinitionChanged, InformerReport, ResourceName } from './kubernetes-protocol.ts';

export interface ApiServerInput {
  server: string;
  resources: ResourceName[];
  /** Number of the first informer: the informers of different servers have different names. */
  firstInformer: number;
}

type InformerName = `informer-${number}`;

interface ApiServerContext extends ApiServerInput {
  waiting: ResourceName[];
  /** Kinds that were never synced. */
  unsynced: ResourceName[];
  /** Whether the server is assumed to support streaming lists. */
  streams: boolean;
  /** Whether the outage was so long that the server may have been restored from a backup, and may use earlier versions again. */
  wasLongAway: boolean;
  failures: number;
  /** Random, from 0 to 1: spreads the probes of replicas. */
  draw: number;
}

export type PingResult = { outcome: 'answered' } | { outcome: 'failed'; reason: string; draw: number };

const maxFailures = 8;
const maxProbePauseMs = 1_000;

const serverAction = <Type extends string>(type: Type) =>
  ({ type, params: ({ context: { server } }: { context: ApiServerContext }) => ({ server }) }) as const;

/**
 * Availability of one API server, for all its kinds. A single kind could detect neither an outage (a dead connection stays open for minutes) nor its
 * end (each has a separate retry delay).
 */
export const apiServerMachine = setup({
  types: {
    context: {} as ApiServerContext,
    input: {} as ApiServerInput,
    events: {} as InformerReport | DefinitionChanged,
    children: {} as { ping: 'ping'; definitions: 'watchDefinitions' } & Record<InformerName, 'informer'>,
  },
  actors: {
    informer: informerMachine,
    /** Pings over the connection of watches, and opens one if necessary. */
    ping: promiseEffect<PingResult, { server: string }>('ping'),
    watchDefinitions: callbackEffect<{ type: never }, { resources: ResourceName[] }>('watchDefinitions'),
  },
  delays: {
    resumeInterval: 10,
    pingInterval: 2_000,
    /** Longer than a pause of this process, such as garbage collection. */
    pingLimit: 1_500,
    /** All replicas reconnect within seconds. */
    probePause: ({ context: { failures, draw } }) =>
      Math.min(250 * 2 ** Math.max(0, failures - 1), maxProbePauseMs) * (0.75 + draw / 2),
    /** Restoring a cluster takes longer: its servers are stopped, its data is replaced, and they are started. */
    longOutage: 5_000,
  },
  guards: {
    isAlive: (_, { result }: { result: PingResult }) => result.outcome === 'answered',
    hasWaiting: ({ context }) => context.waiting.length > 0,
    isLastUnsynced: ({ context }, { resource }: { resource: ResourceName }) =>
      context.unsynced.length === 1 && context.unsynced[0] === resource,
  },
  actions: {
    startInformers: enqueueActions(({ context, enqueue }) => {
      for (const [index, resource] of context.resources.entries())
        enqueue.spawnChild('informer', { id: nameAt(context, index), input: { resource } });
    }),
    pauseAllInformers: assign({ waiting: ({ context }) => context.resources }),
    pauseInformer: assign({
      waiting: ({ context: { waiting } }, { resource }: { resource: ResourceName }) =>
        waiting.includes(resource) ? waiting : [...waiting, resource],
    }),
    notifyLost: enqueueActions(({ context, enqueue }, { reason }: { reason: string }) => {
      for (const index of context.resources.keys())
        enqueue.sendTo(nameAt(context, index), { type: 'server.lost', reason });
    }),
    resumeNextInformer: enqueueActions(({ context, enqueue }) => {
      const { resources, waiting, wasLongAway, streams } = context;
      const [nextResource, ...otherResources] = waiting;
      if (nextResource === undefined) return;
      enqueue.assign({ waiting: otherResources });
      enqueue.sendTo(nameAt(context, resources.indexOf(nextResource)), {
        type: 'server.reachable',
        afterLongOutage: wasLongAway,
        streams,
      });
    }),
    /** The first kind that detects missing support disables streaming lists for all kinds. */
    disableStreamingLists: enqueueActions(({ context, enqueue }) => {
      enqueue.assign({ streams: false });
      for (const index of context.resources.keys())
        enqueue.sendTo(nameAt(context, index), { type: 'streaming-lists.disabled' });
    }),
    notifyDefinition: enqueueActions(({ context, enqueue }, { resource, defined }: DefinitionChanged) => {
      enqueue.sendTo(nameAt(context, context.resources.indexOf(resource)), {
        type: defined ? 'kind.defined' : 'kind.removed',
      });
    }),
    countFailure: assign(({ context }, { draw }: { draw: number }) => ({
      failures: Math.min(context.failures + 1, maxFailures),
      draw,
    })),
    resetFailures: assign({ failures: 0 }),
    recordLongOutage: assign({ wasLongAway: true }),
    clearOutage: assign({ wasLongAway: false }),
    /** After the outage, the server may run a newer release. */
    enableStreamingLists: assign({ streams: true }),
    recordSynced: assign({
      unsynced: ({ context }, { resource }: { resource: ResourceName }) =>
        context.unsynced.filter((other) => other !== resource),
    }),
    publishSynced: (_, _params: { server: string }) => {},
    publishUnreachable: (_, _params: { server: string; reason: string }) => {},
    publishReachable: (_, _params: { server: string }) => {},
    reconnect: (_, _params: { server: string }) => {},
  },
}).createMachine({
  id: 'api-server',
  description: 'The availability of an API server, for all kinds that are watched on it.',
  meta: { timeline: apiServerTimeline },
  context: ({ input }) => ({
    ...{ ...input, waiting: input.resources, unsynced: input.resources },
    ...{ streams: true, wasLongAway: false, failures: 0, draw: 0 },
  }),
  entry: 'startInformers',
  invoke: {
    id: 'definitions',
    src: 'watchDefinitions',
    input: ({ context: { resources } }) => ({ resources }),
    onError: { description: 'An internal error. Missing kinds are also requested periodically.' },
  },
  initial: 'checking',
  on: {
    'kind.synced': [
      {
        guard: { type: 'isLastUnsynced', params: ({ event }) => event },
        actions: [{ type: 'recordSynced', params: ({ event }) => event }, serverAction('publishSynced')],
      },
      { actions: { type: 'recordSynced', params: ({ event }) => event } },
    ],
    'kind.failed': { description: 'Recorded only: the kind is requested again.' },
    'streaming-lists.unsupported': { actions: 'disableStreamingLists' },
    'definition.changed': { actions: { type: 'notifyDefinition', params: ({ event }) => event } },
    'server.unresponsive': { actions: { type: 'pauseInformer', params: ({ event }) => event } },
  },
  states: {
    checking: {
      description: 'The server may be unreachable: at the start, and after a missed response. All kinds wait.',
      entry: 'pauseAllInformers',
      invoke: {
        id: 'ping',
        src: 'ping',
        input: ({ context: { server } }) => ({ server }),
        onDone: [
          {
            guard: { type: 'isAlive', params: ({ event }) => ({ result: event.output }) },
            target: 'reachable',
          },
          {
            target: 'unreachable',
            actions: [
              { type: 'countFailure', params: ({ event }) => ({ draw: drawOf(event.output) }) },
              {
                type: 'publishUnreachable',
                params: ({ context: { server }, event }) => ({ server, reason: failureReasonOf(event.output) }),
              },
            ],
          },
        ],
        onError: {
          description: 'An internal error.',
          target: 'unreachable',
          actions: [
            { type: 'countFailure', params: { draw: 0.5 } },
            {
              type: 'publishUnreachable',
              params: ({ context: { server }, event }) => ({ server, reason: reasonOf(event.error) }),
            },
          ],
        },
      },
      after: {
        pingLimit: {
          target: 'unreachable',
          actions: [
            { type: 'countFailure', params: { draw: 0.5 } },
            {
              type: 'publishUnreachable',
              params: ({ context: { server } }) => ({ server, reason: 'no answer in time' }),
            },
          ],
        },
      },
    },
    reachable: {
      description: 'The server responds. Kinds are watched, or will be soon.',
      entry: 'resetFailures',
      initial: 'resuming',
      states: {
        resuming: {
          description: 'Waiting kinds are resumed one after the other.',
          entry: 'resumeNextInformer',
          after: {
            resumeInterval: [
              { guard: 'hasWaiting', target: 'resuming', reenter: true },
              { target: 'idle', actions: 'clearOutage' },
            ],
          },
        },
        idle: {
          description: 'The server responded less than two seconds ago.',
          after: { pingInterval: 'pinging' },
          on: {
            'server.unresponsive': {
              description: 'Checks the server at once.',
              target: 'pinging',
              actions: { type: 'pauseInformer', params: ({ event }) => event },
            },
          },
        },
        pinging: {
          description: 'Pings the server.',
          invoke: {
            id: 'ping',
            src: 'ping',
            input: ({ context: { server } }) => ({ server }),
            onDone: [
              { guard: { type: 'isAlive', params: ({ event }) => ({ result: event.output }) }, target: 'responded' },
              {
                target: '#api-server.checking',
                actions: [
                  { type: 'notifyLost', params: ({ event }) => ({ reason: failureReasonOf(event.output) }) },
                  serverAction('reconnect'),
                ],
              },
            ],
            onError: {
              description: 'An internal error.',
              target: '#api-server.checking',
              actions: [
                { type: 'notifyLost', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
                serverAction('reconnect'),
              ],
            },
          },
          after: {
            pingLimit: {
              target: '#api-server.checking',
              actions: [
                { type: 'notifyLost', params: { reason: 'the server missed a ping' } },
                serverAction('reconnect'),
              ],
            },
          },
        },
        responded: { always: [{ guard: 'hasWaiting', target: 'resuming' }, { target: 'idle' }] },
      },
    },
    unreachable: {
      description: 'The server does not respond. The last objects apply. The server is pinged repeatedly.',
      entry: 'enableStreamingLists',
      after: {
        longOutage: {
          description: 'After such an outage the server may have been restored from a backup.',
          actions: 'recordLongOutage',
        },
      },
      initial: 'waiting',
      states: {
        waiting: { after: { probePause: { target: 'probing', actions: serverAction('reconnect') } } },
        probing: {
          description: 'Opens another connection.',
          invoke: {
            id: 'ping',
            src: 'ping',
            input: ({ context: { server } }) => ({ server }),
            onDone: [
              {
                guard: { type: 'isAlive', params: ({ event }) => ({ result: event.output }) },
                target: '#api-server.reachable',
                actions: serverAction('publishReachable'),
              },
              {
                target: 'waiting',
                actions: { type: 'countFailure', params: ({ event }) => ({ draw: drawOf(event.output) }) },
              },
            ],
            onError: { target: 'waiting', actions: { type: 'countFailure', params: { draw: 0.5 } } },
          },
          after: { pingLimit: { target: 'waiting', actions: { type: 'countFailure', params: { draw: 0.5 } } } },
        },
      },
    },
  },
});

const nameAt = ({ firstInformer }: ApiServerInput, index: number): InformerName => `informer-${firstInformer + index}`;

function drawOf(result: PingResult): number {
  return result.outcome === 'failed' ? result.draw : 0.5;
}

function failureReasonOf(result: PingResult): string {
  return result.outcome === 'failed' ? result.reason : '';
}
