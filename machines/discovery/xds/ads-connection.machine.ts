import { assign, enqueueActions, sendTo, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import {
  type AdsConnectionContext,
  type AdsConnectionInput,
  type EndStatus,
  internalErrorEnd,
  missingNodeEnd,
  missingTypeEnd,
  nodeTimeoutEnd,
  notReadingEnd,
  otherTypeEnd,
  shuttingDownEnd,
  unauthenticatedEnd,
  unfinishedEnd,
  unreadableRequestEnd,
} from './ads-connection-context.ts';
import type {
  AdsRequest,
  AdsStreamReport,
  ConnectionDrain,
  ConnectionPush,
  RequestDenied,
  RequestInvalid,
  RequestReceived,
  StreamOrder,
  SubscriptionLimitExceeded,
  WorkloadRejected,
} from './ads-protocol.ts';
import { adsConnectionTimeline } from './ads-timeline.ts';
import { healthType, isOneTimeType } from './ads-types.ts';
import type { Watch } from './ads-watch.ts';
import { stepsOfLimit } from './cluster-rollout.ts';
import { noNames } from './name-lists.ts';
import { isNonceOfConnection } from './stream-nonce.ts';

type AdsConnectionEvent = AdsStreamReport | ConnectionPush | ConnectionDrain;

const closeLimitMs = 5_000;
/** Includes the time for fetching the keys of a token's issuer. */
const authenticationLimitMs = 10_000;
/** Clients send their node right after connecting. */
const nodeLimitMs = 10_000;

const onRequest = [
  { guard: 'isHealthReport', description: 'Health reports get no response.' },
  { guard: 'hasNoType', target: 'closing', actions: { type: 'recordEnd', params: missingTypeEnd } },
  {
    guard: 'hasOtherType',
    target: 'closing',
    actions: {
      type: 'recordEnd',
      params: ({ context, event }: { context: AdsConnectionContext; event: RequestReceived }) =>
        otherTypeEnd(context.onlyType, event.request.typeUrl),
    },
  },
  {
    guard: 'isOneTimeRequest',
    actions: {
      type: 'respondOnce',
      params: ({ event }: { event: RequestReceived }) => ({ request: event.request }),
    },
  },
  { description: 'Watched types are handled by the rules in the stream; recorded at trace level `full`.' },
] as const;

const onRejection = {
  target: 'closing',
  actions: {
    type: 'recordEnd',
    params: ({ event }: { event: RequestDenied | WorkloadRejected }): EndStatus => ({
      code: event.code,
      reason: event.reason,
    }),
  },
} as const;

const onViolation = {
  'subscription-limit.exceeded': {
    target: 'closing',
    actions: {
      type: 'recordEnd',
      params: ({ event }: { event: SubscriptionLimitExceeded }): EndStatus => ({
        code: 'RESOURCE_EXHAUSTED',
        reason: event.reason,
      }),
    },
  },
  'request.denied': onRejection,
  'workload.rejected': onRejection,
  'request.invalid': {
    target: 'closing',
    actions: {
      type: 'recordEnd',
      params: ({ event }: { event: RequestInvalid }) => unreadableRequestEnd(event.reason),
    },
  },
} as const;

/**
 * The phase of one xDS stream, and the limit of each wait. The stream keeps a plain record of subscriptions, responses and acknowledgements, changed
 * by the rules of ads-exchange.ts.
 */
export const adsConnectionMachine = setup({
  types: {
    context: {} as AdsConnectionContext,
    input: {} as AdsConnectionInput,
    events: {} as AdsConnectionEvent,
    tags: {} as 'leaving',
    children: {} as { stream: 'stream' },
  },
  actors: {
    stream: callbackEffect<StreamOrder, { connection: number }>('stream'),
  },
  delays: {
    ackTimeout: ({ context }) => context.ackTimeoutMs,
    removalStep: ({ context }) => context.removalDelayMs,
    limitStep: ({ context }) => context.makeBeforeBreakMs / stepsOfLimit,
    congestionLimit: ({ context }) => context.congestionMs,
    drainTime: ({ context }) => context.drainMs,
    authenticationLimit: authenticationLimitMs,
    nodeLimit: nodeLimitMs,
    responseLimit: closeLimitMs,
    closeLimit: closeLimitMs,
  },
  guards: {
    isOneTimeRequest: ({ event }) => event.type === 'request.received' && isOneTimeType(event.request.typeUrl),
    isHealthReport: ({ event }) => event.type === 'request.received' && event.request.typeUrl === healthType,
    hasNoType: ({ event }) => event.type === 'request.received' && event.request.typeUrl === '',
    hasOtherType: ({ context, event }) =>
      event.type === 'request.received' && context.onlyType !== null && event.request.typeUrl !== context.onlyType,
  },
  actions: {
    recordPeer: assign({ identities: (_, params: { identities: readonly string[] }) => params.identities }),
    recordNode: assign({ node: (_, params: { node: string }) => params.node }),
    recordEnd: assign({ end: (_, params: EndStatus) => params }),
    recordDrainTime: assign({ drainMs: (_, params: { withinMs: number }) => params.withinMs }),
    recordWatch: assign({
      watches: ({ context }, { typeUrl, watch }: { typeUrl: string; watch: Watch }) => ({
        ...context.watches,
        [typeUrl]: watch,
      }),
    }),
    respondOnce: enqueueActions(({ context, enqueue }, params: { request: AdsRequest }) => {
      const { request } = params;
      const { typeUrl } = request;
      // An acknowledgement requests nothing. A nonce of another stream, or one that the client generated, acknowledges nothing.
      if (request.rejection !== null || isNonceOfConnection(request.nonce, context.connection)) return;
      const names = request.protocol === 'sotw' ? request.names : request.subscribe;
      const orders = [{ typeUrl, names, all: true, requested: noNames, changed: false }];
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
    'stream.closed': { target: '.closed', description: 'The stream has closed.' },
    'stream.failed': { target: '.closing', actions: { type: 'recordEnd', params: internalErrorEnd } },
    // Reports about one-time requests that arrived before the end was ordered.
    'request.denied': {},
    'workload.rejected': { description: 'The stream is ending already.' },
    // Handled only in `streaming`, because other limits apply before and after it.
    'stream.congested': {},
    'stream.resumed': {},
    'changes.held': {},
    'changes.released': {},
    'client.idle': {},
    'clusters.pending': {},
    'clusters.usable': {},
    'clusters.lingering': {},
    'clusters.removed': {},
    'clusters.retained': { description: 'Recorded in the trace: why a cluster is kept. No transition.' },
    'clusters.evicted': { description: 'Recorded in trace, log and metrics; no transition.' },
    'clusters.abandoned': { description: 'Recorded in trace, log and metrics; no transition.' },
    'subscription-limit.exceeded': {},
    'request.classified': { description: 'Recorded only: the stream has handled it.' },
    // Recorded only at trace level `full`.
    'responses.scheduled': {},
    'response.sent': {},
    'response.skipped': {},
    'connection.push': {},
    'watch.changed': {
      actions: { type: 'recordWatch', params: ({ event }) => ({ typeUrl: event.typeUrl, watch: event.watch }) },
    },
  },
  initial: 'authenticating',
  states: {
    authenticating: {
      description: 'Authenticates the client. No request is processed before.',
      after: {
        authenticationLimit: { target: 'closing', actions: { type: 'recordEnd', params: unauthenticatedEnd } },
      },
      on: {
        'peer.authenticated': {
          target: 'awaiting node',
          actions: { type: 'recordPeer', params: ({ event }) => ({ identities: event.identities }) },
        },
        'peer.unauthenticated': {
          target: 'closing',
          actions: { type: 'recordEnd', params: unauthenticatedEnd },
        },
        'connection.drain': {
          target: 'closing',
          actions: { type: 'recordEnd', params: shuttingDownEnd },
        },
        'request.received': {},
        'request.invalid': {},
        'peer.half-closed': {},
      },
    },
    'awaiting node': {
      description: 'Waits for the first request, which must name the node.',
      after: { nodeLimit: { target: 'closing', actions: { type: 'recordEnd', params: nodeTimeoutEnd } } },
      on: {
        'node.accepted': {
          target: 'streaming',
          actions: { type: 'recordNode', params: ({ event }) => ({ node: event.node }) },
        },
        'node.invalid': {
          target: 'closing',
          actions: {
            type: 'recordEnd',
            params: ({ event }) => ({ code: 'INVALID_ARGUMENT', reason: event.reason }),
          },
        },
        'node.forbidden': {
          target: 'closing',
          actions: {
            type: 'recordEnd',
            params: ({ event }) => ({
              code: 'PERMISSION_DENIED',
              reason: `authorization failed: ${event.reason} [NODE_FORBIDDEN]`,
            }),
          },
        },
        'workload.rejected': {
          target: 'closing',
          actions: { type: 'recordEnd', params: ({ event }) => ({ code: event.code, reason: event.reason }) },
        },
        'node.missing': {
          target: 'closing',
          actions: {
            type: 'recordEnd',
            params: missingNodeEnd,
          },
        },
        'request.received': { description: 'A health report may come first; it gets no response.' },
        'request.invalid': {
          target: 'closing',
          actions: { type: 'recordEnd', params: ({ event }) => unreadableRequestEnd(event.reason) },
        },
        'peer.half-closed': 'closing',
        'connection.drain': {
          target: 'closing',
          actions: { type: 'recordEnd', params: shuttingDownEnd },
        },
      },
    },
    streaming: {
      description: 'Handles requests and pushes changes.',
      type: 'parallel',
      states: {
        delivery: {
          description: 'Whether the client receives and acknowledges responses.',
          // Not a transition of `streaming`, because that would re-enter the other regions and reset their limits.
          on: { 'stream.congested': '.congested' },
          initial: 'up to date',
          states: {
            'up to date': {
              description:
                'No change waits for an acknowledgement. After `ackTimeout` or `stream.resumed`, changes may be due; the stream reports them again.',
              meta: { waitsFor: 'a change or a request: normal operation' },
              on: { 'changes.held': 'awaiting acknowledgement' },
            },
            'awaiting acknowledgement': {
              description: 'There are changes, but the client has not acknowledged or rejected the previous response.',
              on: { 'changes.released': 'up to date' },
              after: {
                ackTimeout: {
                  target: 'up to date',
                  actions: 'releaseChanges',
                  description: 'Changes are sent even if the client does not respond, or responds for another type.',
                },
              },
            },
            congested: {
              description:
                'A response waits until earlier ones are written. No requests are read from the client, so that they use no memory.',
              on: {
                'stream.resumed': {
                  target: 'up to date',
                  description: 'If changes are still held, the stream reports them again.',
                },
              },
              after: {
                congestionLimit: {
                  target: '#ads-connection.closing',
                  actions: { type: 'recordEnd', params: notReadingEnd },
                  description: 'The stream of a client that reads nothing is closed.',
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
              description: 'No listener or route waits for a cluster, and no cluster can warm without limit.',
              meta: { waitsFor: 'a change with new clusters: rare' },
              on: { 'clusters.pending': 'pending' },
            },
            pending: {
              description:
                'The client warms clusters, and acknowledges none until all are warm. Listeners and routes that name these, or clusters not sent yet, are held.',
              on: { 'clusters.usable': 'usable' },
              after: {
                limitStep: {
                  target: 'pending',
                  reenter: true,
                  actions: 'expireWaits',
                  description:
                    'Clusters without a step left are abandoned: resources that wait for them are sent, and the clusters are sent again with a limit for what they fetch.',
                },
              },
            },
          },
        },
        removals: {
          description:
            'Make before break: whether clusters that are no longer configured are kept at the client for a while.',
          initial: 'none',
          states: {
            none: {
              description: 'The client has no such cluster, or a listener or route still names it.',
              meta: { waitsFor: 'the acknowledgement of listeners and routes that do not name such a cluster' },
              on: { 'clusters.lingering': 'delayed' },
            },
            delayed: {
              description: 'No listener or route names them, but running requests may still use them.',
              on: { 'clusters.removed': 'none' },
              after: {
                removalStep: {
                  target: 'delayed',
                  reenter: true,
                  actions: 'expireRemovals',
                  description:
                    'Clusters without a step left are removed with the next response; after another step, one is sent for them.',
                },
              },
            },
          },
        },
      },
      on: {
        'request.received': onRequest,
        ...onViolation,
        'peer.half-closed': 'half-closed',
        'connection.drain': {
          target: 'draining',
          actions: { type: 'recordDrainTime', params: ({ event }) => ({ withinMs: event.withinMs }) },
        },
      },
    },
    'half-closed': {
      tags: 'leaving',
      description:
        'The client sends no more requests. Pending responses are sent without waiting for acknowledgements.',
      after: { responseLimit: { target: 'closing', actions: { type: 'recordEnd', params: unfinishedEnd } } },
      on: {
        'client.idle': 'closing',
        ...onViolation,
        'request.received': {},
        'peer.half-closed': {},
        'connection.drain': { description: 'The stream ends after pending responses.' },
      },
    },
    draining: {
      tags: 'leaving',
      description:
        'The server stops or disconnects this client: waits for pending responses and their acknowledgements, then ends the stream with OK and no reason. Invalid requests end it at once. Clients that are not served yet get UNAVAILABLE [SERVER_SHUTTING_DOWN] instead.',
      entry: 'drainStream',
      after: { drainTime: 'closing' },
      on: {
        'request.received': onRequest,
        ...onViolation,
        'client.idle': 'closing',
        'peer.half-closed': {
          description: 'The client acknowledges nothing: the stream is idle after pending responses.',
        },
        'connection.drain': { description: 'Draining is in progress.' },
      },
    },
    closing: {
      tags: 'leaving',
      description:
        'Responses that are not written yet are dropped. The status is sent after written ones; the stream closes when both were passed to the connection.',
      entry: 'endStream',
      after: { closeLimit: { target: 'closed', description: 'Limits the delay by a client that does not read.' } },
      on: {
        'request.received': {},
        'request.invalid': {},
        'peer.half-closed': {},
        'connection.drain': {},
        'stream.failed': { description: 'The stream is ending already.' },
        // These events may arrive after the limit or after the shutdown began. Elsewhere, each occurs once, in the state that expects it.
        'peer.authenticated': {},
        'peer.unauthenticated': {},
        'node.accepted': {},
        'node.invalid': {},
        'node.forbidden': {},
        'node.missing': {},
      },
    },
    closed: { type: 'final', tags: 'leaving' },
  },
});
