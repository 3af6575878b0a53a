import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { answeredInVain, brokenOff } from '../in-vain.ts';
import type { AccessReviewed, AccessUnanswered } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface AccessReviewInput {
  /** A service account: `namespace/name`. */
  account: string;
}

interface AccessReviewContext extends AccessReviewInput {
  /** The last answer. */
  allowed: 'unknown' | 'yes' | 'no';
  /** Questions without an answer since the last one. */
  failures: number;
}

/** What the API server answered, or why it did not. */
export type AccessAnswer = { outcome: 'answered'; allowed: boolean } | { outcome: 'failed'; reason: string };

/** As long as an answer is believed (spec/discovery.md §8.7: a minute, as in the reference). */
const refreshMs = 60_000;
const shortestRestMs = 1_000;
const longestRestMs = 60_000;

/**
 * Whether one service account may read the Secrets of its namespace. As long as nobody has said so, it may not. What was answered last holds
 * while the API server is silent: what it allowed lies in Envoy by then.
 */
export const accessReviewMachine = setup({
  types: {
    context: {} as AccessReviewContext,
    input: {} as AccessReviewInput,
    children: {} as { asking: 'reviewAccess' },
  },
  actors: {
    /** Asks the API server (SubjectAccessReview: may it list Secrets in its namespace?), within a limit of time. */
    reviewAccess: promiseEffect<AccessAnswer, AccessReviewInput>('reviewAccess'),
  },
  delays: {
    refreshInterval: refreshMs,
    retryDelay: ({ context }) => Math.min(shortestRestMs * 2 ** (context.failures - 1), longestRestMs),
  },
  guards: {
    isChanged: ({ context }, params: AccessAnswer) =>
      params.outcome === 'answered' && context.allowed !== wordFor(params.allowed),
    isReviewed: (_, params: AccessAnswer) => params.outcome === 'answered',
  },
  actions: {
    recordReview: assign((_, params: AccessAnswer) =>
      params.outcome === 'answered' ? { allowed: wordFor(params.allowed), failures: 0 } : {},
    ),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    reportReviewed: sendParent(
      ({ context }): AccessReviewed => ({
        type: 'access.reviewed',
        account: context.account,
        allowed: context.allowed === 'yes',
      }),
    ),
    reportFailed: sendParent(
      ({ context }, params: { reason: string }): AccessUnanswered => ({
        type: 'access.failed',
        account: context.account,
        reason: params.reason,
      }),
    ),
  },
}).createMachine({
  id: 'access-review',
  description: 'Whether one service account may read Secrets.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, allowed: 'unknown', failures: 0 }),
  initial: 'requesting',
  states: {
    requesting: {
      description: 'Requests a SubjectAccessReview. The last result still applies.',
      meta: { waitsFor: 'the response of the API server, which has a limit' },
      invoke: {
        id: 'asking',
        src: 'reviewAccess',
        input: ({ context: { account } }) => ({ account }),
        onDone: [
          {
            guard: { type: 'isChanged', params: ({ event }) => event.output },
            target: 'up to date',
            actions: [{ type: 'recordReview', params: ({ event }) => event.output }, 'reportReviewed'],
          },
          {
            description: 'The result is unchanged.',
            guard: { type: 'isReviewed', params: ({ event }) => event.output },
            target: 'up to date',
            actions: { type: 'recordReview', params: ({ event }) => event.output },
          },
          answeredInVain,
        ],
        onError: brokenOff,
      },
    },
    'up to date': {
      description: 'The last review succeeded.',
      after: { refreshInterval: 'requesting' },
    },
    'backing off': {
      description: 'The last review failed.',
      after: { retryDelay: 'requesting' },
    },
  },
});

function wordFor(allowed: boolean): 'yes' | 'no' {
  return allowed ? 'yes' : 'no';
}
