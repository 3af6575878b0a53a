import { assign, sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import * as rules from './informer-rules.ts';
import type {
  CheckReport,
  InformerOrder,
  KindFailed,
  KindSynced,
  ListReport,
  RequestFailure,
  ResourceName,
  ResourceVersion,
  ServerUnresponsive,
  StreamingListsUnsupported,
  WatchStreamReport,
} from './kubernetes-protocol.ts';

export interface InformerInput {
  resource: ResourceName;
}

export interface SetOrder {
  resource: ResourceName;
  /** Whether a watch begins with all objects, as a list always does. */
  initial: boolean;
  basis: rules.ListBasis;
  version: ResourceVersion;
}

/** `draw`: random, from 0 to 1, for the retry delay. */
export type FailureParams = { failure: RequestFailure; draw: number };

export const informerSetup = setup({
  types: {
    context: {} as rules.InformerRecord,
    input: {} as InformerInput,
    events: {} as InformerOrder | WatchStreamReport | ListReport | CheckReport,
    children: {} as { stream: 'watchKind'; list: 'listKind'; check: 'checkHistory'; 'hand-over': 'handOver' },
  },
  actors: {
    /**
     * Watches until it is stopped. Objects of a streaming list are stored separately until it is complete; later changes go to the store.
     */
    watchKind: callbackEffect<{ type: never }, SetOrder>('watchKind'),
    listKind: callbackEffect<{ type: never }, SetOrder>('listKind'),
    checkHistory: callbackEffect<{ type: never }, { resource: ResourceName }>('checkHistory'),
    /**
     * Replaces the content of the store with the list, or removes it if the kind is absent. Resolves when all readers have
     * processed the difference.
     */
    handOver: promiseEffect<{ objects: number }, { resource: ResourceName; absent: boolean }>('handOver'),
  },
  delays: {
    /**
     * Timeout for the next part or the end of a streaming list, which some servers never send. A server that lags behind takes three seconds to
     * report it.
     */
    initialListLimit: 3_500,
    responseLimit: ({ context }) => rules.limitMs(context),
    /** A watch that ends sooner, without an event, has failed (kubernetes#104171). */
    shortWatch: 1_000,
    retryDelay: ({ context }) => rules.retryDelayMs(context),
    absentDelay: ({ context }) => rules.absentDelayMs(context),
  },
  guards: {
    isComplete: ({ context }) => context.isWhole,
    mayStream: ({ context }) => rules.mayStream(context),
    hasFailedTwice: ({ context }) => context.failures > 1,
    isAbsencePublished: ({ context }) => context.handed === 'absence',
    isEarlier: ({ context }, params: { version: ResourceVersion }) => rules.isEarlier(params.version, context.version),
    isUnresponsive: (_, { failure }: FailureParams) => rules.isUnresponsive(failure),
    isStreamingUnsupported: ({ context }, { failure }: FailureParams) =>
      !context.isWhole && rules.mayStream(context) && rules.isInvalidRequest(failure),
    isVersionExpired: ({ context }, { failure }: FailureParams) =>
      context.isWhole && context.failures <= rules.maxKeptFailures && rules.isVersionExpired(failure),
    hasNextBasis: ({ context }, { failure }: FailureParams) =>
      (rules.isVersionTooLarge(failure) || (!context.isWhole && rules.isVersionExpired(failure))) &&
      rules.nextBasis(context.basis) !== undefined,
    isFirstGoingAway: ({ context }, { failure }: FailureParams) => context.failures === 0 && rules.isGoAway(failure),
    isThrottled: (_, { failure }: FailureParams) => rules.isThrottled(failure),
    isKindAbsent: ({ context }, { failure }: FailureParams) =>
      rules.isAbsent(failure) && rules.isAbsenceConfirmed(context),
    isResumable: (_, { failure }: FailureParams) => rules.isConnectionFailure(failure),
  },
  actions: {
    recordServer: assign((_, { afterLongOutage, streams }: { afterLongOutage: boolean; streams: boolean }) => ({
      ...(afterLongOutage && { isWhole: false, basis: 'newest' as const }),
      streams,
    })),
    reduceFailures: assign({ failures: ({ context }) => rules.cappedFailureCount(context), retryAfterMs: 0 }),
    recordVersion: assign((_, { version }: { version: ResourceVersion }) => ({ version })),
    /** The list is in the store, even if readers have not processed it yet. */
    recordSet: assign((_, { version }: { version: ResourceVersion }) => ({ version, handed: 'objects' as const })),
    recordObjects: assign((_, { objects }: { objects: number }) => ({ objects })),
    recordComplete: assign((_, { objects }: { objects: number }) => ({
      ...{ objects, isWhole: true, basis: 'not older' as const },
      ...{ throttledStreams: 0, absences: 0, retryAfterMs: 0 },
    })),
    recordAbsence: assign({ objects: 0, handed: 'absence', version: '', basis: 'newest' }),
    requireFullList: assign({ isWhole: false }),
    useNextBasis: assign({ basis: ({ context }) => rules.nextBasis(context.basis) ?? context.basis }),
    useNewestBasis: assign({ basis: 'newest' }),
    disableStreamingLists: assign({ streams: false }),
    countFailure: assign(({ context }, { failure, draw }: FailureParams) => ({
      failures: rules.incrementFailures(context.failures),
      retryAfterMs: failure.retryAfterMs ?? 0,
      draw,
    })),
    countThrottled: assign({
      throttledStreams: ({ context }) =>
        context.throttledStreams + (!context.isWhole && rules.mayStream(context) ? 1 : 0),
    }),
    countAbsence: assign(({ context }, { failure, draw }: FailureParams) => ({
      absences: rules.isAbsent(failure) ? rules.incrementFailures(context.absences) : 0,
      draw,
    })),
    resetFailures: assign({ failures: 0, retryAfterMs: 0 }),
    expectAbsence: assign({ absences: rules.maxUnconfirmedAbsences }),
    resetAbsences: assign({ absences: 0, failures: 0 }),
    reportUnresponsive: sendParent(
      ({ context: { resource } }, { failure }: FailureParams): ServerUnresponsive => ({
        type: 'server.unresponsive',
        resource,
        reason: failure.message,
      }),
    ),
    reportStreamingUnsupported: sendParent(
      ({ context: { resource } }, { failure }: FailureParams): StreamingListsUnsupported => ({
        type: 'streaming-lists.unsupported',
        resource,
        reason: failure.message,
      }),
    ),
    reportSynced: sendParent(
      ({ context: { resource, objects, handed } }): KindSynced => ({
        type: 'kind.synced',
        resource,
        objects,
        absent: handed === 'absence',
      }),
    ),
    reportFailed: sendParent(
      ({ context: { resource } }, { failure }: FailureParams): KindFailed => ({
        type: 'kind.failed',
        resource,
        reason: failure.message,
      }),
    ),
  },
});
