import { assign, enqueueActions, sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import { type CatalogReading, holdReason, needsWholeRead, type ReadCause } from './catalog-change.ts';
import type {
  CatalogAccept,
  CatalogChanged,
  CatalogFailed,
  CatalogHeld,
  CatalogRecovered,
  CatalogReleased,
  CatalogSynced,
  ConsulCredentialsChanged,
  ConsulFailure,
  IndexRegressed,
  QueryFailed,
  ReleaseCause,
  StrategyChosen,
} from './consul-protocol.ts';
import {
  type CatalogSurvey,
  type ChosenStrategy,
  chooseStrategy,
  connectionsAfterThrottling,
  isOutgrown,
  maxConsulConnections,
  type WatchStrategy,
} from './watch-strategy.ts';

export interface ConsulCatalogInput {
  /** Name of the datacenter; empty for that of the agent. */
  datacenter: string;
}

export type ConsulRequestFailure = { outcome: 'failed'; failure: ConsulFailure; draw: number };
export type SurveyOutcome = { outcome: 'read'; survey: CatalogSurvey } | ConsulRequestFailure;
export type ReadOutcome = { outcome: 'read'; reading: CatalogReading } | ConsulRequestFailure;

export interface ConsulWatchOrder {
  datacenter: string;
  strategy: WatchStrategy;
  maxConnections: number;
}

export interface ReadOrder extends ConsulWatchOrder {
  /** The leader confirms its leadership before it responds. */
  consistent: boolean;
}

export interface ConsulCatalogContext extends ConsulCatalogInput {
  chosen: ChosenStrategy;
  reportedChoice: string;
  maxConnections: number;
  applied: CatalogReading | null;
  cause: ReadCause;
  /** Consecutive failures since the watch was stable, at most {@link maxFailures}. */
  failures: number;
  /** Random, from 0 to 1: spreads the requests of control planes. */
  draw: number;
  /** Whether `catalog.failed` was reported, but `catalog.recovered` was not. */
  isReportedFailing: boolean;
  /** Consecutive consistent reads that repeat the response that is held back. */
  repetitions: number;
}

const maxFailures = 7;
const firstRetryDelayMs = 500;
const maxRetryDelayMs = 30_000;
const verifyIntervalMs = 10_000;
const confirmationMs = 300_000;
/** A response that would remove all services applies after five minutes of repetitions. */
export const minRepetitions = confirmationMs / verifyIntervalMs;

export const consulCatalogSetup = setup({
  types: {
    context: {} as ConsulCatalogContext,
    input: {} as ConsulCatalogInput,
    events: {} as CatalogAccept | ConsulCredentialsChanged | CatalogChanged | IndexRegressed | QueryFailed,
    children: {} as {
      credentials: 'watchCredentials';
      surveying: 'surveyCatalog';
      reading: 'readCatalog';
      watching: 'watchCatalog';
      verifying: 'readCatalog';
    },
  },
  actors: {
    watchCredentials: callbackEffect<{ type: never }, ConsulCatalogInput>('watchCredentials'),
    surveyCatalog: promiseEffect<SurveyOutcome, ConsulCatalogInput>('surveyCatalog'),
    readCatalog: promiseEffect<ReadOutcome, ReadOrder>('readCatalog'),
    /** Runs blocking queries from the indexes of the last read. Ends after its first failure. */
    watchCatalog: callbackEffect<{ type: never }, ConsulWatchOrder>('watchCatalog'),
  },
  delays: {
    /** A server without a leader does not respond. A catalog of 2,000 services takes half a second. */
    readLimit: 30_000,
    verifyInterval: verifyIntervalMs,
    stableDelay: 10_000,
    retryDelay: ({ context: { failures, draw } }) =>
      Math.min(firstRetryDelayMs * 2 ** Math.max(0, failures - 1), maxRetryDelayMs) * (0.75 + draw / 2),
  },
  guards: {
    hasFailed: (_, { outcome }: { outcome: string }) => outcome === 'failed',
    removesTooMuch: ({ context }, outcome: ReadOutcome) => holdReasonOf(context, outcome) !== undefined,
    /** The response was not repeated often enough, or the token may not see all objects. */
    isUnconfirmed: ({ context }, outcome: ReadOutcome) =>
      holdReasonOf(context, outcome) !== undefined &&
      (isRestricted(outcome) || context.repetitions + 1 < minRepetitions),
    needsFullRead: ({ context }, { reading }: CatalogChanged) =>
      context.applied === null || needsWholeRead(context.applied, reading),
    isOutgrown: ({ context: { chosen, maxConnections } }, { reading }: CatalogChanged) =>
      isOutgrown(chosen, reading, maxConnections),
  },
  actions: {
    recordCause: assign((_, { cause }: { cause: ReadCause }) => ({ cause })),
    recordSurvey: assign(({ context }, params: SurveyOutcome) =>
      params.outcome === 'read' ? { chosen: chooseStrategy(params.survey, context.maxConnections) } : {},
    ),
    /** The next read begins from index 0. A 429 lowers the number of connections immediately. */
    recordFailure: assign(
      ({ context }, { failure: { status }, draw }: Pick<ConsulRequestFailure, 'failure' | 'draw'>) => ({
        ...{ failures: Math.min(context.failures + 1, maxFailures), draw },
        ...(context.applied !== null && { cause: 'reconnect' as const }),
        ...(status === 429 && {
          maxConnections: connectionsAfterThrottling(context.chosen.connections, context.maxConnections),
        }),
      }),
    ),
    resetFailures: assign({ failures: 0 }),
    countRepetition: assign({
      repetitions: ({ context }, outcome: ReadOutcome) => (isRestricted(outcome) ? 0 : context.repetitions + 1),
    }),
    resetRepetitions: assign({ repetitions: 0 }),
    recordApplied: enqueueActions(({ context, enqueue }, { reading }: { reading: CatalogReading }) => {
      const { datacenter, applied, chosen, reportedChoice, isReportedFailing } = context;
      const choice = JSON.stringify(chosen);
      enqueue.assign({
        ...{ applied: { ...reading, emptied: 0 }, cause: 'growth', repetitions: 0 },
        ...{ reportedChoice: choice, isReportedFailing: false },
      });
      if (choice !== reportedChoice)
        enqueue.sendParent({ type: 'strategy.chosen', datacenter, ...chosen } satisfies StrategyChosen);
      if (applied === null) {
        const { services, instances } = reading;
        enqueue.sendParent({ type: 'catalog.synced', datacenter, services, instances } satisfies CatalogSynced);
      } else if (isReportedFailing) {
        enqueue.sendParent({ type: 'catalog.recovered', datacenter } satisfies CatalogRecovered);
      }
    }),
    applyCatalog: (_, _params: { datacenter: string }) => {},
    /** Closes connections, so that new ones use the new credentials. */
    reconnect: (_, _params: { datacenter: string }) => {},
    publishHeld: (_, _params: { datacenter: string; reason: string }) => {},
    publishFailing: (_, _params: { datacenter: string; reason: string }) => {},
    recordHeld: enqueueActions(({ context, enqueue }, outcome: ReadOutcome) => {
      const { datacenter } = context;
      const reason = holdReasonOf(context, outcome) ?? '';
      enqueue.assign({ repetitions: 0, isReportedFailing: false });
      enqueue.sendParent({ type: 'catalog.held', datacenter, reason } satisfies CatalogHeld);
    }),
    reportReleased: sendParent(
      ({ context: { datacenter } }, { cause }: { cause: ReleaseCause }): CatalogReleased => ({
        ...{ type: 'catalog.released', datacenter, cause },
      }),
    ),
    recordFailing: enqueueActions(({ context: { datacenter }, enqueue }, { failure }: { failure: ConsulFailure }) => {
      const { reason } = failure;
      enqueue.assign({ isReportedFailing: true });
      enqueue.sendParent({ type: 'catalog.failed', datacenter, reason } satisfies CatalogFailed);
    }),
  },
});

export const initialContext = (input: ConsulCatalogInput): ConsulCatalogContext => ({
  ...input,
  chosen: { strategy: 'coarse', transport: 'HTTP/1.1', connections: 0 },
  reportedChoice: '',
  maxConnections: maxConsulConnections,
  applied: null,
  cause: 'start',
  failures: 0,
  draw: 0,
  isReportedFailing: false,
  repetitions: 0,
});

export function holdReasonOf({ applied, cause }: ConsulCatalogContext, outcome: ReadOutcome): string | undefined {
  return outcome.outcome === 'read' ? holdReason(applied, outcome.reading, cause) : undefined;
}

/** Whether the token may lack permissions, so that a missing service may still exist. */
function isRestricted(outcome: ReadOutcome): boolean {
  return outcome.outcome === 'read' && outcome.reading.restricted;
}
