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
  ServerMissed,
  StreamReport,
  StreamsMissing,
} from './kubernetes-protocol.ts';

export interface InformerInput {
  /** Which kind. */
  resource: ResourceName;
}

/** What a watch or a list is asked for with. */
export interface SetOrder {
  resource: ResourceName;
  /** A watch: it begins with all that there is. A list is always that. */
  initial: boolean;
  basis: rules.Basis;
  version: ResourceVersion;
}

/** A request that failed. `draw`: from 0 to 1, for how long to rest. */
export type Failed = { failure: RequestFailure; draw: number };

/** The words that an informer's chart is written in: its types, actors, delays, guards and actions. */
export const informerSetup = setup({
  types: {
    context: {} as rules.InformerRecord,
    input: {} as InformerInput,
    events: {} as InformerOrder | StreamReport | ListReport | CheckReport,
    children: {} as { stream: 'watchKind'; list: 'listKind'; check: 'checkHistory'; 'hand-over': 'handOver' },
  },
  actors: {
    /** Watches until it is stopped: objects of a first list are held apart until it has ended, what comes later is in the store. */
    watchKind: callbackEffect<{ type: never }, SetOrder>('watchKind'),
    /** Takes a list, in pages, and holds it apart. */
    listKind: callbackEffect<{ type: never }, SetOrder>('listKind'),
    /** Asks for the version of what is true now. */
    checkHistory: callbackEffect<{ type: never }, { resource: ResourceName }>('checkHistory'),
    /**
     * Puts what is held apart in the place of what is in the store, or nothing where there is no such kind. Answers when everybody who
     * reads the store has handled the difference.
     */
    handOver: promiseEffect<{ objects: number }, { resource: ResourceName; absent: boolean }>('handOver'),
  },
  delays: {
    /** Until the next part of a first list, or its end, which some servers never send. One that lags behind takes three seconds to say so. */
    initialListLimit: 3_500,
    /** Until a list, or its next page, is answered. */
    responseLimit: ({ context }) => rules.limitMs(context),
    /** A watch that ends sooner, and without an event, is none (kubernetes#104171). */
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
    isUnresponsive: (_, { failure }: Failed) => rules.isMissed(failure),
    isStreamingUnsupported: ({ context }, { failure }: Failed) =>
      !context.isWhole && rules.mayStream(context) && rules.isInvalid(failure),
    isVersionExpired: ({ context }, { failure }: Failed) =>
      context.isWhole && context.failures <= rules.failuresKept && rules.isGone(failure),
    hasNextBasis: ({ context }, { failure }: Failed) =>
      (rules.isTooLarge(failure) || (!context.isWhole && rules.isGone(failure))) &&
      rules.nextBasis(context.basis) !== undefined,
    isFirstGoingAway: ({ context }, { failure }: Failed) => context.failures === 0 && rules.isGoingAway(failure),
    isThrottled: (_, { failure }: Failed) => rules.isThrottled(failure),
    isKindAbsent: ({ context }, { failure }: Failed) => rules.isAbsent(failure) && rules.isAbsenceBelieved(context),
    isResumable: (_, { failure }: Failed) => rules.isAboutUs(failure),
  },
  actions: {
    recordServer: assign((_, { anew, streams }: { anew: boolean; streams: boolean }) => ({
      ...(anew && { isWhole: false, basis: 'newest' as const }),
      streams,
    })),
    reduceFailures: assign({ failures: ({ context }) => rules.fewFailures(context), retryAfterMs: 0 }),
    recordVersion: assign((_, { version }: { version: ResourceVersion }) => ({ version })),
    /** It is in the store from now on, whether or not everybody comes to handle it. */
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
    countFailure: assign(({ context }, { failure, draw }: Failed) => ({
      failures: rules.failedOnceMore(context.failures),
      retryAfterMs: failure.retryAfterMs ?? 0,
      draw,
    })),
    countThrottled: assign({
      throttledStreams: ({ context }) =>
        context.throttledStreams + (!context.isWhole && rules.mayStream(context) ? 1 : 0),
    }),
    countAbsence: assign(({ context }, { failure, draw }: Failed) => ({
      absences: rules.isAbsent(failure) ? rules.failedOnceMore(context.absences) : 0,
      draw,
    })),
    resetFailures: assign({ failures: 0, retryAfterMs: 0 }),
    expectAbsence: assign({ absences: rules.absencesBeforeBelief }),
    resetAbsences: assign({ absences: 0, failures: 0 }),
    reportUnresponsive: sendParent(
      ({ context: { resource } }, { failure }: Failed): ServerMissed => ({
        type: 'server.unresponsive',
        resource,
        reason: failure.message,
      }),
    ),
    reportStreamingUnsupported: sendParent(
      ({ context: { resource } }, { failure }: Failed): StreamsMissing => ({
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
      ({ context: { resource } }, { failure }: Failed): KindFailed => ({
        type: 'kind.failed',
        resource,
        reason: failure.message,
      }),
    ),
  },
});
