import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { answeredInVain, brokenOff } from '../in-vain.ts';
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
  /** Which key set: its address, without what would be secret in it. */
  source: string;
  /** Longest time for an answer. */
  timeoutMs: number;
  /** From an answer to the next question (PILOT_JWT_PUB_KEY_REFRESH_INTERVAL). */
  refreshMs: number;
  /** Longest time that objects wait for the first answer. */
  firstKeysTimeoutMs: number;
}

interface KeySetContext extends KeySetInput {
  /** Of the key set in force; empty while there is none. */
  version: string;
  /** The issuer has answered, or the last of several questions failed. */
  hasSettled: boolean;
  /** Questions without an answer since the last rest. */
  attempts: number;
  /** Rests since the last answer. */
  failures: number;
}

/** What an issuer answered: a key set, with a hash of it as its version, or nothing of use. */
export type IssuerAnswer = { outcome: 'fetched'; version: string } | { outcome: 'failed'; reason: string };

const retryMs = 1_000;
/** Questions one after the other before a rest. */
const attemptsInARow = 3;
const shortestRestMs = 60_000;
const longestRestMs = 3_600_000;

/**
 * Keeps the keys of one issuer of tokens up to date (spec/discovery.md §8.10: refreshed each 20 minutes, asked again after
 * a second, after failures with rests of one minute to an hour). What was fetched last stays in force however long the
 * issuer keeps silent.
 */
export const keySetMachine = setup({
  types: {
    context: {} as KeySetContext,
    input: {} as KeySetInput,
    events: {} as KeyFetchGranted,
    children: {} as { fetching: 'fetchKeySet' },
  },
  actors: {
    /** Asks the issuer, and puts the key set of a good answer in force under its source. */
    fetchKeySet: promiseEffect<IssuerAnswer, { source: string; timeoutMs: number }>('fetchKeySet'),
  },
  delays: {
    firstKeysTimeout: ({ context }) => context.firstKeysTimeoutMs,
    retryDelay: retryMs,
    refreshInterval: ({ context }) => context.refreshMs,
    rest: ({ context }) => Math.min(shortestRestMs * 2 ** (context.failures - 1), longestRestMs),
  },
  guards: {
    isUnsettled: ({ context }) => !context.hasSettled,
    isNew: ({ context }, params: IssuerAnswer) => params.outcome === 'fetched' && params.version !== context.version,
    isFetched: (_, params: IssuerAnswer) => params.outcome === 'fetched',
    mayAskAgain: ({ context }) => context.attempts + 1 < attemptsInARow,
  },
  actions: {
    remember: assign({
      version: ({ context }, params: IssuerAnswer) => (params.outcome === 'fetched' ? params.version : context.version),
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
  after: { firstKeysTimeout: { guard: 'isUnsettled', actions: 'reportLate' } },
  states: {
    queued: {
      description:
        'The issuer is due to be asked, and waits for the turn of a namespace that uses it. The parent queues a new one.',
      meta: { waitsFor: 'key-fetch.granted: every fetch that runs has a limit' },
      on: { 'key-fetch.granted': 'fetching' },
    },
    fetching: {
      description: 'The issuer is asked. What was fetched before is in force.',
      exit: 'reportFinished',
      meta: { waitsFor: 'the answer of the issuer, which has a limit' },
      invoke: {
        id: 'fetching',
        src: 'fetchKeySet',
        input: ({ context }) => ({ source: context.source, timeoutMs: context.timeoutMs }),
        onDone: [
          {
            guard: { type: 'isNew', params: ({ event }) => event.output },
            target: 'up to date',
            actions: [{ type: 'remember', params: ({ event }) => event.output }, 'reportFetched'],
          },
          {
            description: 'The same keys: nobody need know.',
            guard: { type: 'isFetched', params: ({ event }) => event.output },
            target: 'up to date',
            actions: { type: 'remember', params: ({ event }) => event.output },
          },
          { guard: 'mayAskAgain', target: 'asking again', actions: 'countAttempt' },
          answeredInVain,
        ],
        onError: [{ guard: 'mayAskAgain', target: 'asking again', actions: 'countAttempt' }, brokenOff],
      },
    },
    'up to date': {
      description: 'The issuer answered a short while ago.',
      after: { refreshInterval: { target: 'queued', actions: 'requestFetch' } },
    },
    'asking again': {
      description: 'Perhaps the failure was of a moment.',
      after: { retryDelay: { target: 'queued', actions: 'requestFetch' } },
    },
    resting: {
      description: 'The issuer keeps failing: it is asked more and more rarely.',
      after: { rest: { target: 'queued', actions: 'requestFetch' } },
    },
  },
});
