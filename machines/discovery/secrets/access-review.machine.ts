import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { onEffectError, onFailedResponse } from '../failed-requests.ts';
import type { AccessReviewed, AccessUnavailable } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface AccessReviewInput {
  account: string;
}

interface AccessReviewContext extends AccessReviewInput {
  allowed: 'unknown' | 'yes' | 'no';
  failures: number;
}

export type AccessResult = { outcome: 'answered'; allowed: boolean } | { outcome: 'failed'; reason: string };

/** How long a result applies (one minute, as in Istio). */
const refreshMs = 60_000;
const minRetryMs = 1_000;
const maxRetryMs = 60_000;

/** Decides whether one service account may read the Secrets of its namespace; denied before the first review. */
export const accessReviewMachine = setup({
  types: {
    context: {} as AccessReviewContext,
    input: {} as AccessReviewInput,
    children: {} as { reviewing: 'reviewAccess' },
  },
  actors: {
    reviewAccess: promiseEffect<AccessResult, AccessReviewInput>('reviewAccess'),
  },
  delays: {
    refreshInterval: refreshMs,
    retryDelay: ({ context }) => Math.min(minRetryMs * 2 ** (context.failures - 1), maxRetryMs),
  },
  guards: {
    isChanged: ({ context }, params: AccessResult) =>
      params.outcome === 'answered' && context.allowed !== wordFor(params.allowed),
    isReviewed: (_, params: AccessResult) => params.outcome === 'answered',
  },
  actions: {
    recordReview: assign((_, params: AccessResult) =>
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
      ({ context }, params: { reason: string }): AccessUnavailable => ({
        type: 'access.unavailable',
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
      description: 'Requests a SubjectAccessReview. The last result applies.',
      meta: { waitsFor: 'the response of the API server, which has a limit' },
      invoke: {
        id: 'reviewing',
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
          onFailedResponse,
        ],
        onError: onEffectError,
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

function wordFor(isAllowed: boolean): 'yes' | 'no' {
  return isAllowed ? 'yes' : 'no';
}
