import { assign, enqueueActions, not, sendTo, setup } from 'xstate';
import { callbackEffect } from '../effect.ts';
import {
  type AdsConnectionContext,
  type AdsConnectionInput,
  afterOutcome,
  type End,
  exceedsNames,
  missingNode,
  missingType,
  notReading,
  otherType,
  shuttingDown,
  silent,
  tooManyNames,
  unauthenticated,
  unreadable,
} from './ads-connection-context.ts';
import type {
  AdsRequest,
  DrainOrder,
  PushToClient,
  ResponseSent,
  ResponseSkipped,
  StreamOrder,
  StreamReport,
} from './ads-protocol.ts';
import { healthType, isAskedOnce, isWatchable } from './ads-types.ts';
import { isBehind, isSettled, judge, nextOrders, withChange, withoutAckTimeout } from './ads-watch.ts';
import { noNames } from './name-lists.ts';

type AdsConnectionEvent = StreamReport | PushToClient | DrainOrder;

const flushLimitMs = 5_000;
/** As long as a token's issuer may take to be asked. */
const authenticationLimitMs = 10_000;
/** A client says who it is as soon as it is connected. */
const introductionLimitMs = 10_000;

/**
 * One xDS stream, from its first message to its end. What the client watches is one plain record a type, changed by the
 * pure functions of ads-watch.ts; this chart says in which part of its life the stream is.
 */
export const adsConnectionMachine = setup({
  types: {
    context: {} as AdsConnectionContext,
    input: {} as AdsConnectionInput,
    events: {} as AdsConnectionEvent,
    children: {} as { stream: 'stream' },
  },
  actors: {
    /** The gRPC stream and the node's resources: reads requests, makes and writes responses. */
    stream: callbackEffect<StreamOrder, { connection: number }>('stream'),
  },
  delays: {
    ackTimeout: ({ context }) => context.ackTimeoutMs,
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
    isOfNoType: ({ event }) => event.type === 'request.received' && !isWatchable(event.request.typeUrl),
    namesTooMuch: ({ context, event }) => event.type === 'request.received' && exceedsNames(context, event.request),
    somethingWaits: ({ context }) => Object.values(context.watches).some(isBehind),
    isQuiet: ({ context }) => Object.values(context.watches).every(isSettled),
  },
  actions: {
    rememberPeer: assign({ identities: (_, params: { identities: readonly string[] }) => params.identities }),
    rememberNode: assign({ node: (_, params: { node: string }) => params.node }),
    rememberEnd: assign({ end: (_, params: End) => params }),
    rememberDrainTime: assign({ drainMs: (_, params: { withinMs: number }) => params.withinMs }),
    takeRequest: enqueueActions(({ context, enqueue }, params: { request: AdsRequest }) => {
      const { request } = params;
      const { watch, verdict } = judge(context.watches[request.typeUrl], request, context);
      const judged = watch === undefined ? context.watches : { ...context.watches, [request.typeUrl]: watch };
      const { watches, orders } = nextOrders(judged);
      enqueue.assign({ watches });
      if (verdict === 'rejection' || verdict === 'stale' || verdict === 'misuse') {
        const { typeUrl, rejection } = request;
        enqueue.sendTo('stream', { type: 'request.judged', typeUrl, verdict, reason: rejection ?? '' });
      }
      if (orders.length > 0) enqueue.sendTo('stream', { type: 'responses.send', orders });
    }),
    tellOfUnservedType: sendTo('stream', (_, { request: { typeUrl } }: { request: AdsRequest }): StreamOrder => {
      return { type: 'request.judged', typeUrl, verdict: 'unserved', reason: '' };
    }),
    askOnce: enqueueActions(({ enqueue }, params: { request: AdsRequest }) => {
      const { request } = params;
      const { typeUrl } = request;
      // An acknowledgement asks for nothing.
      if (request.nonce !== '' || request.rejection !== null) return;
      const names = request.protocol === 'sotw' ? request.names : request.subscribe;
      const orders = [{ typeUrl, names, all: true, asked: noNames, changed: false }];
      enqueue.sendTo('stream', { type: 'responses.send', orders });
    }),
    takePush: enqueueActions(({ context, enqueue }, params: { types: string[] }) => {
      const concerned = params.types.flatMap((type) => {
        const watch = isWatchable(type) ? context.watches[type] : undefined;
        return watch === undefined ? [] : [[type, withChange(watch)] as const];
      });
      const { watches, orders } = nextOrders({ ...context.watches, ...Object.fromEntries(concerned) });
      enqueue.assign({ watches });
      if (orders.length > 0) enqueue.sendTo('stream', { type: 'responses.send', orders });
    }),
    noteOutcome: enqueueActions(({ context, enqueue }, params: { outcome: ResponseSent | ResponseSkipped }) => {
      const { watches, orders } = nextOrders(afterOutcome(context, params.outcome));
      enqueue.assign({ watches });
      if (orders.length > 0) enqueue.sendTo('stream', { type: 'responses.send', orders });
    }),
    waitNoLonger: enqueueActions(({ context, enqueue }) => {
      const waiting = Object.entries(context.watches);
      const { watches, orders } = nextOrders(
        Object.fromEntries(waiting.map(([type, watch]) => [type, withoutAckTimeout(watch)])),
      );
      enqueue.assign({ watches });
      if (orders.length > 0) enqueue.sendTo('stream', { type: 'responses.send', orders });
    }),
    endStream: sendTo('stream', ({ context }): StreamOrder => ({ type: 'stream.end', ...context.end })),
  },
}).createMachine({
  id: 'ads-connection',
  description: 'One xDS stream of one client.',
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
    // Told once, in the first state.
    'peer.authenticated': {},
    'peer.unauthenticated': {},
    'node.accepted': {},
    'node.refused': {},
    'node.forbidden': {},
    'node.missing': {},
    // Of what is asked for once, which a stream may have done before it was told to end.
    'request.refused': {},
    // A stream that is not yet served or is ended already has a limit of its own.
    'stream.congested': {},
    'stream.relieved': {},
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
        'push.order': { description: 'Nothing is watched yet.' },
        'request.received': {},
        'request.unreadable': {},
        'peer.finished': {},
        'response.sent': {},
        'response.skipped': {},
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
            params: ({ event }) => ({ code: 'PERMISSION_DENIED', reason: `authorization failed: ${event.reason}` }),
          },
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
        'push.order': { description: 'Nothing is watched yet.' },
        'response.sent': {},
        'response.skipped': {},
      },
    },
    streaming: {
      description: 'Requests are answered and changes pushed.',
      initial: 'caught up',
      states: {
        'caught up': {
          description: 'The client has been sent all that concerns it.',
          meta: { waitsFor: 'a change or a request: this is the work' },
          always: { guard: 'somethingWaits', target: 'waiting for the client' },
        },
        'waiting for the client': {
          description: 'There are changes, and the client has not acknowledged or rejected what it was sent before.',
          always: { guard: not('somethingWaits'), target: 'caught up' },
          after: {
            ackTimeout: {
              target: 'caught up',
              actions: 'waitNoLonger',
              description: 'A client that keeps silent, or answers for another type, gets the changes nevertheless.',
            },
          },
        },
        congested: {
          description:
            'A response waits until those before it have left, and nothing is read from the client: what it asks for costs no memory that it does not read.',
          on: { 'stream.relieved': 'caught up' },
          after: {
            congestionTime: {
              target: '#ads-connection.closing',
              actions: { type: 'rememberEnd', params: notReading },
              description: 'A client that reads nothing is let go.',
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
          {
            guard: 'isOfNoType',
            actions: { type: 'tellOfUnservedType', params: ({ event }) => ({ request: event.request }) },
            description: 'Nobody makes such resources: not answered (§7.6 row 12), and nothing of it is kept.',
          },
          {
            guard: 'namesTooMuch',
            target: 'closing',
            actions: { type: 'rememberEnd', params: ({ context }) => tooManyNames(context) },
          },
          { actions: { type: 'takeRequest', params: ({ event }) => ({ request: event.request }) } },
        ],
        'request.refused': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: ({ event }) => ({ code: event.code, reason: event.reason }) },
        },
        'stream.congested': '.congested',
        'push.order': { actions: { type: 'takePush', params: ({ event }) => ({ types: event.types }) } },
        'response.sent': { actions: { type: 'noteOutcome', params: ({ event }) => ({ outcome: event }) } },
        'response.skipped': { actions: { type: 'noteOutcome', params: ({ event }) => ({ outcome: event }) } },
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
      description:
        'The server stops: what is under way is brought to its end, and the client then finds itself another server.',
      always: { guard: 'isQuiet', target: 'closing' },
      after: { drainTime: 'closing' },
      on: {
        'request.received': [
          { guard: 'isHealthReport' },
          { guard: 'namesNoType', target: 'closing' },
          { guard: 'namesOtherType', target: 'closing' },
          { guard: 'isAskedOnce', description: 'Who asks once may ask the next server.' },
          { guard: 'isOfNoType', description: 'Nobody makes such resources.' },
          { guard: 'namesTooMuch', target: 'closing' },
          { actions: { type: 'takeRequest', params: ({ event }) => ({ request: event.request }) } },
        ],
        'response.sent': { actions: { type: 'noteOutcome', params: ({ event }) => ({ outcome: event }) } },
        'response.skipped': { actions: { type: 'noteOutcome', params: ({ event }) => ({ outcome: event }) } },
        'push.order': { description: 'The next server has it.' },
        'request.unreadable': {
          target: 'closing',
          actions: { type: 'rememberEnd', params: ({ event }) => unreadable(event.reason) },
        },
        'peer.finished': 'closing',
        'drain.order': { description: 'That is what is being done.' },
      },
    },
    closing: {
      description: 'The last status follows what was sent; the stream is gone once the client has both.',
      entry: 'endStream',
      after: { closingTime: { target: 'closed', description: 'A client that does not read is not waited for.' } },
      on: {
        'request.received': {},
        'request.unreadable': {},
        'peer.finished': {},
        'response.sent': {},
        'response.skipped': {},
        'push.order': {},
        'drain.order': {},
      },
    },
    closed: { type: 'final' },
  },
});
