import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { onEffectError, onFailedResponse } from '../failed-requests.ts';
import type {
  KeyFetchFinished,
  KeyFetchGranted,
  KeyFetchRequested,
  KeySetFailed,
  KeySetFetched,
  KeySetLate,
} from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface KeySetInput {
  /** Address without secrets. */
  source: string;
  timeoutMs: number;
  refreshMs: number;
  firstKeysTimeoutMs: number;
}

interface KeySetContext extends KeySetInput {
  version: string;
  /** Whether the issuer has responded, or all attempts of the first fetch failed. */
  hasSettled: boolean;
  /** Consecutive failed attempts since the last long delay. */
  attempts: number;
  /** Long delays since the last success. */
  failures: number;
}

/** `version`: hash of the key set. */
export type IssuerResponse = { outcome: 'fetched'; version: string } | { outcome: 'failed'; reason: string };

const retryMs = 1_000;
const attemptsInARow = 3;
const minBackoffMs = 60_000;
const maxBackoffMs = 3_600_000;

/** Keeps the keys of one issuer up to date. */
export const keySetMachine = setup({
  types: {
    context: {} as KeySetContext,
    input: {} as KeySetInput,
    events: {} as KeyFetchGranted,
    children: {} as { fetching: 'fetchKeySet' },
  },
  actors: {
    fetchKeySet: promiseEffect<IssuerResponse, { source: string; timeoutMs: number }>('fetchKeySet'),
  },
  delays: {
    firstKeysTimeout: ({ context }) => context.firstKeysTimeoutMs,
    retryDelay: retryMs,
    refreshInterval: ({ context }) => context.refreshMs,
    backoffDelay: ({ context }) => Math.min(minBackoffMs * 2 ** (context.failures - 1), maxBackoffMs),
  },
  guards: {
    isPending: ({ context }) => !context.hasSettled,
    isChanged: ({ context }, params: IssuerResponse) =>
      params.outcome === 'fetched' && params.version !== context.version,
    isFetched: (_, params: IssuerResponse) => params.outcome === 'fetched',
    canRetry: ({ context }) => context.attempts + 1 < attemptsInARow,
  },
  actions: {
    recordFetched: assign({
      version: ({ context }, params: IssuerResponse) =>
        params.outcome === 'fetched' ? params.version : context.version,
      attempts: 0,
      failures: 0,
      hasSettled: true,
    }),
    countAttempt: assign({ attempts: ({ context }) => context.attempts + 1 }),
    countFailure: assign({ attempts: 0, failures: ({ context }) => context.failures + 1, hasSettled: true }),
    requestFetch: sendParent(
      ({ context }): KeyFetchRequested => ({ type: 'key-fetch.requested', source: context.source }),
    ),
    reportFinished: sendParent(
      ({ context }): KeyFetchFinished => ({ type: 'key-fetch.finished', source: context.source }),
    ),
    reportFetched: sendParent(
      ({ context }): KeySetFetched => ({ type: 'key-set.fetched', source: context.source, version: context.version }),
    ),
    reportLate: sendParent(({ context }): KeySetLate => ({ type: 'key-set.late', source: context.source })),
    reportFailed: sendParent(
      ({ context }, params: { reason: string }): KeySetFailed => ({
        type: 'key-set.failed',
        source: context.source,
        version: context.version,
        reason: params.reason,
      }),
    ),
  },
}).createMachine({
  id: 'key-set',
  description: 'The keys of one issuer of tokens.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, version: '', attempts: 0, failures: 0, hasSettled: false }),
  initial: 'queued',
  on: { 'key-fetch.granted': { description: 'Only a queued fetch is granted.' } },
  after: { firstKeysTimeout: { guard: 'isPending', actions: 'reportLate' } },
  states: {
    queued: {
      description:
        'A fetch is due and waits for a slot of a namespace that uses the issuer. The parent queues a new key set.',
      meta: { waitsFor: 'key-fetch.granted: every running fetch has a limit' },
      on: { 'key-fetch.granted': 'fetching' },
    },
    fetching: {
      description: 'Fetches the keys. The last keys apply.',
      exit: 'reportFinished',
      meta: { waitsFor: 'the response of the issuer, which has a limit' },
      invoke: {
        id: 'fetching',
        src: 'fetchKeySet',
        input: ({ context }) => ({ source: context.source, timeoutMs: context.timeoutMs }),
        onDone: [
          {
            guard: { type: 'isChanged', params: ({ event }) => event.output },
            target: 'up to date',
            actions: [{ type: 'recordFetched', params: ({ event }) => event.output }, 'reportFetched'],
          },
          {
            description: 'The keys are unchanged.',
            guard: { type: 'isFetched', params: ({ event }) => event.output },
            target: 'up to date',
            actions: { type: 'recordFetched', params: ({ event }) => event.output },
          },
          { guard: 'canRetry', target: 'retrying', actions: 'countAttempt' },
          onFailedResponse,
        ],
        onError: [{ guard: 'canRetry', target: 'retrying', actions: 'countAttempt' }, onEffectError],
      },
    },
    'up to date': {
      description: 'The last fetch succeeded.',
      after: { refreshInterval: { target: 'queued', actions: 'requestFetch' } },
    },
    retrying: {
      description: 'The failure may be temporary.',
      after: { retryDelay: { target: 'queued', actions: 'requestFetch' } },
    },
    'backing off': {
      description: 'The issuer keeps failing. It is requested at increasing intervals.',
      after: { backoffDelay: { target: 'queued', actions: 'requestFetch' } },
    },
  },
});
