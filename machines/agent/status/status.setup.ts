import { assign, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import type { NamesAvailable } from '../dns-protocol.ts';
import type { GrpcBootstrapWritten } from '../grpc-bootstrap-protocol.ts';
import type { ServingBegan, ServingReport, StatusDrain, StatusStart } from '../protocol.ts';
import type {
  EnvoyProbe,
  EnvoyResponded,
  ListenersChecked,
  ReadinessResponded,
  StatusHttpOrder,
  StatusHttpReport,
} from '../status-protocol.ts';
import {
  formatLackingListeners,
  type KnownListeners,
  listenersOfSuccessor,
  recordEnvoyResponse,
  recordFirstCheck,
  recordLaterCheck,
} from './lacking-listeners.ts';

export interface StatusInput {
  port: number;
  /** If false, applications are xDS clients, and readiness does not depend on Envoy. */
  hasEnvoy: boolean;
  awaitsApplication: boolean;
  /** Whether the proxy is not ready before the control plane's first name table. */
  awaitsNames: boolean;
  /** Whether the proxy is not ready before the gRPC bootstrap file is written. */
  awaitsGrpcBootstrap: boolean;
}

interface StatusContext extends StatusInput {
  /** Why the proxy is not ready while Envoy is not probed. */
  reason: string;
  pendingRequest: number | null;
  listeners: KnownListeners;
}

/** After this time, the response is "not ready". */
const responseLimitMs = 5_000;
export const stoppingReason = 'agent is stopping';
/** A hanging Envoy is reported as ready for at most this time. */
const heldMs = 5_000;
/** Longer than `heldMs`, because Envoy writes its complete configuration for the check of rejected listeners. */
const listenersHeldMs = 10_000;
const notReused = { heldMs: 0, listenersHeldMs: 0 } as const;

export const statusSetup = setup({
  types: {
    context: {} as StatusContext,
    input: {} as StatusInput,
    events: {} as
      | StatusStart
      | StatusDrain
      | ServingReport
      | NamesAvailable
      | GrpcBootstrapWritten
      | StatusHttpReport
      | ReadinessResponded,
    children: {} as { http: 'http' },
  },
  actors: {
    http: callbackEffect<StatusHttpOrder, Pick<StatusInput, 'port'>>('http'),
  },
  delays: { responseLimit: responseLimitMs },
  guards: {
    isDisabled: ({ context }) => context.port === 0,
    awaitsNames: ({ context }) => context.awaitsNames,
    awaitsGrpcBootstrap: ({ context }) => context.awaitsGrpcBootstrap,
    hasNoEnvoy: ({ context }) => !context.hasEnvoy,
    lacksListeners: ({ context, event }) =>
      event.type === 'envoy.responded' && event.live && context.listeners.lacking.length > 0,
    lacksListenersFromStart: ({ context, event }) =>
      event.type === 'listeners.checked' && recordFirstCheck(context.listeners, event.listeners).lacking.length > 0,
    stillLacksListeners: ({ context, event }) =>
      event.type === 'listeners.checked' && recordLaterCheck(context.listeners, event.listeners).lacking.length > 0,
    isLive: ({ event }) => event.type === 'envoy.responded' && event.live,
    isFromAdmin: ({ event }) => event.type === 'envoy.responded' && event.by === 'admin',
    awaitsApplication: ({ context }) => context.awaitsApplication,
    lacksApplication: ({ context, event }) =>
      context.awaitsApplication &&
      event.type === 'envoy.responded' &&
      event.live &&
      event.unserved !== '' &&
      !context.listeners.servedApplication,
    isPendingRequest: ({ context, event }) =>
      event.type === 'envoy.responded' && event.request === context.pendingRequest,
    isRequestPending: ({ context }) => context.pendingRequest !== null,
  },
  actions: {
    reportDisabled: sendParent({ type: 'status.listening', port: 0 }),
    reportListening: sendParent((_, params: { port: number }) => ({ type: 'status.listening', port: params.port })),
    reportFailed: sendParent((_, params: { reason: string }) => ({ type: 'status.failed', reason: params.reason })),
    forwardQuit: sendParent({ type: 'quit.requested' }),
    forwardUpgrade: sendParent({ type: 'upgrade.requested' }),
    recordReason: assign({ reason: (_, params: { reason: string }) => params.reason }),
    recordRequest: assign({ pendingRequest: (_, params: { request: number }) => params.request }),
    clearRequest: assign({ pendingRequest: null }),
    respondNotReady: enqueueActions(({ context, enqueue }, { request }: { request: number }) => {
      enqueue.sendTo('http', {
        type: 'readiness.respond',
        request,
        ready: false,
        reason: context.reason,
        ...notReused,
      });
      enqueue.raise({ type: 'readiness.responded' });
    }),
    respondReady: enqueueActions(({ enqueue }, { request }: { request: number }) => {
      enqueue.sendTo('http', { type: 'readiness.respond', request, ready: true, reason: '', ...notReused });
      enqueue.raise({ type: 'readiness.responded' });
    }),
    respondAsEnvoy: enqueueActions(({ enqueue }, { request, by, live, detail }: EnvoyResponded) => {
      const source = by === 'admin' ? 'admin interface' : 'port';
      const reason = live ? '' : by === 'agent' ? detail : `Envoy ${source}: ${detail}`;
      // A response of a port may soon be outdated, because a child is taking over.
      const heldTimes = live && by === 'admin' ? { heldMs, listenersHeldMs } : notReused;
      enqueue.sendTo('http', { type: 'readiness.respond', request, ready: live, reason, ...heldTimes });
      enqueue.raise({ type: 'readiness.responded' });
    }),
    respondTimeout: sendTo(
      'http',
      ({ context }): StatusHttpOrder => ({
        type: 'readiness.respond',
        request: context.pendingRequest ?? 0,
        ready: false,
        reason: `no response within ${responseLimitMs} ms`,
        ...notReused,
      }),
    ),
    respondListenersRejected: enqueueActions(({ context, enqueue }, { request }: EnvoyResponded) => {
      const reason = `Envoy rejected listeners: ${formatLackingListeners(context.listeners.lacking)}`;
      enqueue.sendTo('http', { type: 'readiness.respond', request, ready: false, reason, ...notReused });
      enqueue.raise({ type: 'readiness.responded' });
    }),
    respondPortsUnserved: enqueueActions(({ enqueue }, { request, unserved: reason }: EnvoyResponded) => {
      enqueue.sendTo('http', { type: 'readiness.respond', request, ready: false, reason, ...notReused });
      enqueue.raise({ type: 'readiness.responded' });
    }),
    respondWithoutNames: enqueueActions(({ enqueue }, { request }: { request: number }) => {
      const reason = 'control plane has not sent the DNS name table yet';
      enqueue.sendTo('http', { type: 'readiness.respond', request, ready: false, reason, ...notReused });
      enqueue.raise({ type: 'readiness.responded' });
    }),
    respondWithoutGrpcBootstrap: enqueueActions(({ enqueue }, { request }: { request: number }) => {
      const reason = 'gRPC bootstrap file not written yet';
      enqueue.sendTo('http', { type: 'readiness.respond', request, ready: false, reason, ...notReused });
      enqueue.raise({ type: 'readiness.responded' });
    }),
    resetListeners: assign({ listeners: ({ context }) => listenersOfSuccessor(context.listeners) }),
    recordListeners: assign({
      listeners: ({ context }, params: ListenersChecked) => recordFirstCheck(context.listeners, params.listeners),
    }),
    updateListeners: assign({
      listeners: ({ context }, params: ListenersChecked) => recordLaterCheck(context.listeners, params.listeners),
    }),
    recordApplication: assign({
      listeners: ({ context }, params: EnvoyResponded) => recordEnvoyResponse(context.listeners, params),
    }),
    drainEnvoy: sendTo('http', { type: 'envoy.drain' }),
    invalidateResponse: sendTo('http', { type: 'readiness.invalidate' }),
    useAdmin: sendTo(
      'http',
      (_, { epoch, baseId, adminPort, pid }: ServingBegan): StatusHttpOrder => ({
        ...{ type: 'admin.use', epoch, baseId, adminPort, pid },
      }),
    ),
    probeEnvoy: sendTo(
      'http',
      (_, { request, at }: Omit<EnvoyProbe, 'type'>): StatusHttpOrder => ({ type: 'envoy.probe', request, at }),
    ),
    repeatProbe: sendTo(
      'http',
      ({ context }): StatusHttpOrder => ({ type: 'envoy.probe', request: context.pendingRequest ?? 0, at: 'admin' }),
    ),
  },
});
