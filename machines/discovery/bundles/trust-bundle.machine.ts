import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { onEffectError, onFailedResponse } from '../failed-requests.ts';
import type { TrustBundleFailed, TrustBundleFetched } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface TrustBundleInput {
  /** Address without secrets. */
  endpoint: string;
  trustDomains: string[];
}

interface TrustBundleContext extends TrustBundleInput {
  /** Empty without a bundle. */
  version: string;
  sequence: number | null;
  /** Refresh interval that the publisher suggests. */
  refreshMs: number | null;
  failures: number;
}

/** `version`: hash of the roots. */
export type BundleResponse =
  | { outcome: 'fetched'; version: string; sequence: number | null; refreshMs: number | null }
  | { outcome: 'failed'; reason: string };

/** Default refresh interval (spiffe/spiffe standards/SPIFFE_Federation.md §4.1). */
const defaultRefreshMs = 300_000;
/** Bounds of the interval: a revoked root is removed within an hour, and the endpoint is not polled continuously. */
const minRefreshMs = 30_000;
const maxRefreshMs = 3_600_000;
const minRetryMs = 5_000;

/**
 * The last valid bundle applies however long the endpoint fails, because its roots have an expiry. With a bundle, the endpoint is not requested
 * before the refresh interval (SPIFFE_Federation.md §6.2); without one, retries are sooner.
 */
export const trustBundleMachine = setup({
  types: {
    context: {} as TrustBundleContext,
    input: {} as TrustBundleInput,
    children: {} as { recalling: 'recallBundle'; fetching: 'fetchBundle' },
  },
  actors: {
    /** Reads the bundle stored by an earlier run. */
    recallBundle: promiseEffect<BundleResponse, TrustBundleInput>('recallBundle'),
    fetchBundle: promiseEffect<BundleResponse, TrustBundleInput>('fetchBundle'),
  },
  delays: {
    refreshInterval: ({ context }) => refreshOf(context),
    retryDelay: ({ context }) => retryOf(context),
  },
  guards: {
    isFetched: (_, params: BundleResponse) => params.outcome === 'fetched',
    isOlder: ({ context: { sequence } }, params: BundleResponse) =>
      params.outcome === 'fetched' && sequence !== null && params.sequence !== null && params.sequence < sequence,
    isChanged: ({ context }, params: BundleResponse) =>
      params.outcome === 'fetched' && params.version !== context.version,
  },
  actions: {
    recordBundle: assign((_, params: BundleResponse) => {
      if (params.outcome === 'failed') return {};
      const { version, sequence, refreshMs } = params;
      return { version, sequence, refreshMs, failures: 0 };
    }),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    applyBundle: (_, _params: { version: string }) => {},
    reportFetched: sendParent(
      ({ context }): TrustBundleFetched => ({
        type: 'trust-bundle.fetched',
        endpoint: context.endpoint,
        version: context.version,
      }),
    ),
    reportFailed: sendParent(
      ({ context }, params: { reason: string }): TrustBundleFailed => ({
        type: 'trust-bundle.failed',
        endpoint: context.endpoint,
        version: context.version,
        reason: params.reason,
      }),
    ),
  },
}).createMachine({
  id: 'trust-bundle',
  description: 'The roots that one bundle endpoint serves.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, version: '', sequence: null, refreshMs: null, failures: 0 }),
  initial: 'restoring',
  states: {
    restoring: {
      description: 'Restores the last bundle from disk, which applies until the endpoint responds.',
      meta: { waitsFor: 'the reading of one file' },
      invoke: {
        id: 'recalling',
        src: 'recallBundle',
        input: ({ context: { endpoint, trustDomains } }) => ({ endpoint, trustDomains }),
        onDone: [
          {
            guard: { type: 'isFetched', params: ({ event }) => event.output },
            target: 'fetching',
            actions: [
              { type: 'recordBundle', params: ({ event }) => event.output },
              { type: 'applyBundle', params: ({ event }) => ({ version: versionOf(event.output) }) },
              'reportFetched',
            ],
          },
          { target: 'fetching', description: 'There is no usable bundle on disk.' },
        ],
        onError: 'fetching',
      },
    },
    fetching: {
      description: 'Requests the bundle. The last valid one applies.',
      meta: { waitsFor: 'the response of the endpoint, which has a limit' },
      invoke: {
        id: 'fetching',
        src: 'fetchBundle',
        input: ({ context: { endpoint, trustDomains } }) => ({ endpoint, trustDomains }),
        onDone: [
          {
            description: 'The bundle is older than the current one: a stale replica or a replay.',
            guard: { type: 'isOlder', params: ({ event }) => event.output },
            target: 'backing off',
            actions: [
              'countFailure',
              {
                type: 'reportFailed',
                params: ({ context, event }) => ({ reason: rollbackReasonOf(context, event.output) }),
              },
            ],
          },
          {
            guard: { type: 'isChanged', params: ({ event }) => event.output },
            target: 'up to date',
            actions: [
              { type: 'recordBundle', params: ({ event }) => event.output },
              { type: 'applyBundle', params: ({ event }) => ({ version: versionOf(event.output) }) },
              'reportFetched',
            ],
          },
          {
            description: 'The roots are unchanged.',
            guard: { type: 'isFetched', params: ({ event }) => event.output },
            target: 'up to date',
            actions: { type: 'recordBundle', params: ({ event }) => event.output },
          },
          onFailedResponse,
        ],
        onError: onEffectError,
      },
    },
    'up to date': {
      description: 'The last request succeeded.',
      after: { refreshInterval: 'fetching' },
    },
    'backing off': {
      description:
        'The last request failed. It is repeated at the refresh interval, or sooner while there is no bundle.',
      after: { retryDelay: 'fetching' },
    },
  },
});

function refreshOf({ refreshMs }: TrustBundleContext): number {
  return Math.min(Math.max(refreshMs ?? defaultRefreshMs, minRefreshMs), maxRefreshMs);
}

function retryOf(context: TrustBundleContext): number {
  const usualRefreshMs = refreshOf(context);
  return context.version === '' ? Math.min(minRetryMs * 2 ** (context.failures - 1), usualRefreshMs) : usualRefreshMs;
}

function versionOf(response: BundleResponse): string {
  return response.outcome === 'fetched' ? response.version : '';
}

function rollbackReasonOf({ sequence }: TrustBundleContext, response: BundleResponse): string {
  return `the bundle is older than the one in force: spiffe_sequence ${response.outcome === 'fetched' ? response.sequence : ''} after ${sequence}`;
}
