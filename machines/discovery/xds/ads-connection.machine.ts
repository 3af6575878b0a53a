import { assign, enqueueActions, sendTo, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import {
  type AdsConnectionContext,
  type AdsConnectionInput,
  type End,
  missingNode,
  missingType,
  notReading,
  otherType,
  shuttingDown,
  silent,
  unauthenticated,
  unreadable,
} from './ads-connection-context.ts';
import type { AdsRequest, DrainOrder, PushToClient, StreamOrder, StreamReport } from './ads-protocol.ts';
import { adsConnectionTimeline } from './ads-timeline.ts';
import { healthType, isAskedOnce } from './ads-types.ts';
import type { Watch } from './ads-watch.ts';
import { stepsOfLimit } from './cluster-rollout.ts';
import { noNames } from './name-lists.ts';
import { isNonceOf } from './stream-nonce.ts';

type AdsConnectionEvent = StreamReport | PushToClient | DrainOrder;

const flushLimitMs = 5_000;
/** Limit of authentication: as long as a token's issuer may take to be asked. */
const authenticationLimitMs = 10_000;
/** A client says who it is as soon as it is connected. */
const introductionLimitMs = 10_000;

/**
 * One xDS stream, from its first message to its end: in which part of its life it is, and how long it waits in it. What the
 * client watches, has been sent and has acknowledged is a plain record that the stream keeps, changed by the pure rules of
 * ads-exchange.ts; of it the chart hears when changes are held back, and when the client has had its say on everything.
 */
export const adsConnectionMachine = setup({
  types: {
    context: {} as AdsConnectionContext,
    input: {} as AdsConnectionInput,
    events: {} as AdsConnectionEvent,
    /** `leaving`: it was told to end, or has ended; nobody tells it once more. */
    tags: {} as 'leaving',
    children: {} as { stream: 'stream' },
  },
  actors: {
    /** The gRPC stream and the node's resources: reads requests, makes and writes responses. */
    stream: callbackEffect<StreamOrder, { connection: number }>('stream'),
  },
  delays: {
    ackTimeout: ({ context }) => context.ackTimeoutMs,
    removalStep: ({ context }) => context.removalDelayMs,
    limitStep: ({ context }) => context.makeBeforeBreakMs / stepsOfLimit,
    congestionTime: ({ context }) => context.congestionMs,
    drainTime: ({ context }) => context.drainMs,
    authenticationTime: authenticationLimitMs,
    introductionTime: introductionLimitMs,
    closingTime: flushLimitMs,
  },
  guards: {
    isAskedOnce: ({ event }) => event.type === 'request.received' && isAskedOnce(event.request.typeUrl),
    isHealthReport: ({ event }) => event.type === 'request.received' && event.request.typeUrl === healthType,
    namesNoType: ({ event }) => event.type === 'request.received' && event.request.typeUrl === '',
    namesOtherType: ({ context, event }) =>
      event.type === 'request.received' && context.onlyType !== null && event.request.typeUrl !== context.onlyType,
  },
  actions: {
    rememberPeer: assign({ identities: (_, params: { identities: readonly string[] }) => params.identities }),
    rememberNode: assign({ node: (_, params: { node: string }) => params.node }),
    rememberEnd: assign({ end: (_, params: End) => params }),
    rememberDrainTime: assign({ drainMs: (_, params: { withinMs: number }) => params.withinMs }),
    noteWatch: assign({
      watches: ({ context }, { typeUrl, watch }: { typeUrl: string; watch: Watch }) => ({
        ...context.watches,
        [typeUrl]: watch,
      }),
    }),
    askOnce: enqueueActions(({ context, enqueue }, params: { request: AdsRequest }) => {
      const { request } = params;
      const { typeUrl } = request;
      // An acknowledgement requests nothing. A nonce of another stream, or of the client's clock, acknowledges nothing.
      if (request.rejection !== null || isNonceOf(request.nonce, context.connection)) return;
      const names = request.protocol === 'sotw' ? request.names : request.subscribe;
      const orders = [{ typeUrl, names, all: true, asked: noNames, changed: false }];
      enqueue.sendTo('stream', { type: 'responses.send', orders });
    }),
    releaseChanges: sendTo('stream', { type: 'changes.release' } satisfies StreamOrder),
    expireRemovals: sendTo('stream', { type: 'removals.expire' } satisfies StreamOrder),
    expireWaits: sendTo('stream', { type: 'waits.expire' } satisfies StreamOrder),
    drainStream: sendTo('stream', { type: 'stream.drain' } satisfies StreamOrder),
    endStream: sendTo('stream', ({ context }): StreamOrder => ({ type: 'stream.end', ...context.end })),
  },
}).createMachine({
  id: 'ads-connection',
  description: 'One xDS stream of one client.',
  meta: { timeline: adsConnectionTimeline },
  context: ({ input }) => ({
    ...input,
    identities: noNames,
    node: '',
    watches: {},
    end: { code: 'OK', reason: '' },
    drainMs: 0,
  }),
  invoke: { id: 'stream', src: 'stream', input: ({ context }) => ({ connection: context.connection }) },
  on: {
    'stream.closed': { target: '.closed', description: 'Nobody to talk to any more, whatever was under way.' },
    // Of what is asked for once, which a stream may have done before it was told to end.
    'request.refused': {},
    'workload.rejected': { description: 'It is on its way out already.' },
    // A stream that is not yet served or is ended already has a limit of its own.
    'stream.congested': {},
    'stream.relieved': {},
    'changes.held': {},
    'changes.released': {},
    'client.settled': {},
    'clusters.awaited': {},
    'clusters.usable': {},
    'clusters.kept': {},
    'clusters.removed': {},
    'clusters.retained': { description: 'Recorded in the trace: why a cluster is kept. No transition.' },
    'clusters.evicted': { description: 'Recorded in trace, log and metrics; no transition.' },
    'clusters.abandoned': { description: 'Recorded in trace, log and metrics; no transition.' },
    'names.exceeded': {},
    'request.judged': { description: 'Told to people: the stream has taken or ignored it.' },
    // What is told at the trace level full, and decides nothing here.
    'responses.ordered': {},
    'response.sent': {},
    'response.skipped': {},
    'push.order': {},
    'watch.changed': {
      actions: { type: 'noteWatch', params: ({ event }) => ({ typeUrl: event.typeUrl, watch: event.watch }) },
    },
  },
  initial: 'authenticating',
  states: {
    authenticating: {
      description: 'The stream is open, and nothing is read from it; who is at the other end is being found out.',
      after: {
        authenticationTime: { target: 'closing', actions: { type: 'rememberEnd', params: unauthenticated } },
      },
      on: {
        'peer.authenticated': {
          target: 'awaiting node',
          actions: { type: 'rememberPeer', params: ({ event }) => ({ identities: event.identities }) },
        },
        'peer.unauthenticated': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: unauthenticated },
        },
        'drain.order': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: shuttingDown },
        },
        'request.received': {},
        'request.unreadable': {},
        'peer.finished': {},
      },
    },
    'awaiting node': {
      description: 'What the client is, its first message tells. Who says nothing has no place here.',
      after: { introductionTime: { target: 'closing', actions: { type: 'rememberEnd', params: silent } } },
      on: {
        'node.accepted': {
          target: 'streaming',
          actions: { type: 'rememberNode', params: ({ event }) => ({ node: event.node }) },
        },
        'node.refused': {
          target: 'closing',
          actions: {
            type: 'rememberEnd',
            params: ({ event }) => ({ code: 'INVALID_ARGUMENT', reason: event.reason }),
          },
        },
        'node.forbidden': {
          target: 'closing',
          actions: {
            type: 'rememberEnd',
            params: ({ event }) => ({
              code: 'PERMISSION_DENIED',
              reason: `authorization failed: ${event.reason} [NODE_FORBIDDEN]`,
            }),
          },
        },
        'workload.rejected': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: ({ event }) => ({ code: event.code, reason: event.reason }) },
        },
        'node.missing': {
          target: 'closing',
          actions: {
            type: 'rememberEnd',
            params: missingNode,
          },
        },
        'request.received': { description: 'A health report may come first; it is not answered.' },
        'request.unreadable': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: ({ event }) => unreadable(event.reason) },
        },
        'peer.finished': 'closing',
        'drain.order': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: shuttingDown },
        },
      },
    },
    streaming: {
      description: 'Requests are answered and changes pushed.',
      type: 'parallel',
      states: {
        delivery: {
          description: 'Whether the client takes what it is sent.',
          // Not a transition of `streaming`: it would enter the other regions anew, and their waits would be forgotten.
          on: { 'stream.congested': '.congested' },
          initial: 'caught up',
          states: {
            'caught up': {
              description: 'The client has been sent all that concerns it.',
              meta: { waitsFor: 'a change or a request: this is the work' },
              on: { 'changes.held': 'waiting for the client' },
            },
            'waiting for the client': {
              description:
                'There are changes, and the client has not acknowledged or rejected what it was sent before.',
              on: { 'changes.released': 'caught up' },
              after: {
                ackTimeout: {
                  target: 'caught up',
                  actions: 'releaseChanges',
                  description:
                    'A client that keeps silent, or answers for another type, gets the changes nevertheless.',
                },
              },
            },
            congested: {
              description:
                'A response waits until those before it have left, and nothing is read from the client: what it asks for costs no memory that it does not read.',
              on: {
                'stream.relieved': {
                  target: 'caught up',
                  description: 'If changes are held back, that is told anew.',
                },
              },
              after: {
                congestionTime: {
                  target: '#ads-connection.closing',
                  actions: { type: 'rememberEnd', params: notReading },
                  description: 'A client that reads nothing is let go.',
                },
              },
            },
          },
        },
        clusters: {
          description:
            'Make before break: whether the client can use the clusters that it was sent, or that its routes will name.',
          initial: 'usable',
          states: {
            usable: {
              description: 'No listener or route waits for a cluster, and no cluster may warm without end.',
              meta: { waitsFor: 'a change with new clusters: most changes have none' },
              on: { 'clusters.awaited': 'awaited' },
            },
            awaited: {
              description:
                'The client warms clusters, and acknowledges none until all are warm. Listeners and routes that name them, or clusters that were not sent yet, are held back.',
              on: { 'clusters.usable': 'usable' },
              after: {
                limitStep: {
                  target: 'awaited',
                  reenter: true,
                  actions: 'expireWaits',
                  description:
                    'Clusters that have no step left are given up: what waits for them is sent, and they are sent again with a time limit for what they fetch.',
                },
              },
            },
          },
        },
        removals: {
          description:
            'Make before break: whether clusters that are no longer configured stay at the client for a while.',
          initial: 'none',
          states: {
            none: {
              description: 'The client has no such cluster, or a listener or route still names it.',
              meta: { waitsFor: 'the acknowledgement of listeners and routes that do not name such a cluster' },
              on: { 'clusters.kept': 'delayed' },
            },
            delayed: {
              description: 'Nothing names them any more; requests that chose a route before may still use them.',
              on: { 'clusters.removed': 'none' },
              after: {
                removalStep: {
                  target: 'delayed',
                  reenter: true,
                  actions: 'expireRemovals',
                  description:
                    'Clusters that have no step left are removed with the next response; after another step, one is sent for them.',
                },
              },
            },
          },
        },
      },
      on: {
        'request.received': [
          { guard: 'isHealthReport', description: 'A report to us, never answered.' },
          {
            guard: 'namesNoType',
            target: 'closing',
            actions: {
              type: 'rememberEnd',
              params: missingType,
            },
          },
          {
            guard: 'namesOtherType',
            target: 'closing',
            actions: {
              type: 'rememberEnd',
              params: ({ context, event }) => otherType(context.onlyType, event.request.typeUrl),
            },
          },
          { guard: 'isAskedOnce', actions: { type: 'askOnce', params: ({ event }) => ({ request: event.request }) } },
          { description: 'What is watched the rules in the stream have taken: told at the trace level full.' },
        ],
        'names.exceeded': {
          target: 'closing',
          actions: {
            type: 'rememberEnd',
            params: ({ event }) => ({ code: 'RESOURCE_EXHAUSTED', reason: event.reason }),
          },
        },
        'request.refused': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: ({ event }) => ({ code: event.code, reason: event.reason }) },
        },
        'workload.rejected': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: ({ event }) => ({ code: event.code, reason: event.reason }) },
        },
        'request.unreadable': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: ({ event }) => unreadable(event.reason) },
        },
        'peer.finished': 'closing',
        'drain.order': {
          target: 'draining',
          actions: { type: 'rememberDrainTime', params: ({ event }) => ({ withinMs: event.withinMs }) },
        },
      },
    },
    draining: {
      tags: 'leaving',
      description:
        'The server stops: what is under way is brought to its end, and the client then finds itself another server.',
      entry: 'drainStream',
      after: { drainTime: 'closing' },
      on: {
        'request.received': [
          { guard: 'isHealthReport' },
          { guard: 'namesNoType', target: 'closing' },
          { guard: 'namesOtherType', target: 'closing' },
          { guard: 'isAskedOnce', description: 'Who asks once may ask the next server.' },
          { description: 'What is watched the rules in the stream have taken.' },
        ],
        'names.exceeded': 'closing',
        'client.settled': 'closing',
        'request.unreadable': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: ({ event }) => unreadable(event.reason) },
        },
        'peer.finished': 'closing',
        'drain.order': { description: 'That is what is being done.' },
      },
    },
    closing: {
      tags: 'leaving',
      description: 'The last status follows what was sent; the stream is gone once the client has both.',
      entry: 'endStream',
      after: { closingTime: { target: 'closed', description: 'A client that does not read is not waited for.' } },
      on: {
        'request.received': {},
        'request.unreadable': {},
        'peer.finished': {},
        'drain.order': {},
        // Found out while the time for it ran out, or the server began to stop. Anywhere else these come once, where they are awaited.
        'peer.authenticated': {},
        'peer.unauthenticated': {},
        'node.accepted': {},
        'node.refused': {},
        'node.forbidden': {},
        'node.missing': {},
      },
    },
    closed: { type: 'final', tags: 'leaving' },
  },
});
