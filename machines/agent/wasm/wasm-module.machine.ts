import { assign, sendParent, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { wasmModuleTimeline } from '../timeline.ts';
import type { ModuleFailed, ModuleFetched, WasmModule } from '../wasm-protocol.ts';

export type FetchOutcome = { file: string } | { reason: string };

export interface FetchLimits {
  /** Limit of one attempt, including redirects and the write to disk. */
  attemptMs: number;
  /** The control plane is notified after this number of failed attempts, so that a restart of the module's server is not reported. */
  quickAttempts: number;
}

export interface WasmModuleInput extends WasmModule {
  limits?: FetchLimits;
}

interface WasmModuleContext extends WasmModule {
  limits: FetchLimits;
  failures: number;
  lastFailure: string;
}

export const defaultFetchLimits: FetchLimits = { attemptMs: 30_000, quickAttempts: 3 };
const minPauseMs = 500;
const maxPauseMs = 60_000;

export function pauseAfterFailures(failures: number): number {
  return Math.min(maxPauseMs, minPauseMs * 2 ** Math.min(failures - 1, 10));
}

/** Fetches one Wasm module for one response of the control plane, which the stream delays until the quick attempts have succeeded or failed. */
export const wasmModuleMachine = setup({
  types: {
    context: {} as WasmModuleContext,
    input: {} as WasmModuleInput,
    events: {} as { type: 'none' },
    children: {} as { fetch: 'fetchModule' },
  },
  actors: {
    fetchModule: promiseEffect<FetchOutcome, WasmModule>('fetchModule'),
  },
  delays: {
    fetchLimit: ({ context }) => context.limits.attemptMs,
    pause: ({ context }) => pauseAfterFailures(context.failures),
  },
  guards: {
    isFetched: (_, fetchOutcome: FetchOutcome) => 'file' in fetchOutcome,
    isLastQuickAttempt: ({ context }) => context.failures === context.limits.quickAttempts,
  },
  actions: {
    recordFailure: assign({
      failures: ({ context }) => context.failures + 1,
      lastFailure: (_, { reason }: { reason: string }) => reason,
    }),
    reportFetched: sendParent(
      ({ context }, fetchOutcome: FetchOutcome): ModuleFetched => ({
        ...{ type: 'module.fetched', id: context.id, stream: context.stream },
        file: 'file' in fetchOutcome ? fetchOutcome.file : '',
      }),
    ),
    reportFailed: sendParent(
      ({ context }): ModuleFailed => ({
        ...{ type: 'module.failed', id: context.id, stream: context.stream },
        reason: context.lastFailure,
      }),
    ),
  },
}).createMachine({
  id: 'wasm-module',
  description: 'One Wasm module that the agent fetches for Envoy.',
  meta: { timeline: wasmModuleTimeline },
  context: ({ input }) => ({ limits: defaultFetchLimits, ...input, failures: 0, lastFailure: '' }),
  initial: 'fetching',
  states: {
    fetching: {
      description: 'The module comes from the cache or from its server.',
      invoke: {
        id: 'fetch',
        src: 'fetchModule',
        input: ({ context: { id, stream, extension, url, sha256, version } }) => {
          return { id, stream, extension, url, sha256, version };
        },
        onDone: [
          {
            guard: { type: 'isFetched', params: ({ event }) => event.output },
            target: 'cached',
            actions: { type: 'reportFetched', params: ({ event }) => event.output },
          },
          {
            target: 'failed',
            actions: {
              type: 'recordFailure',
              params: ({ event: { output } }) => ({ reason: 'reason' in output ? output.reason : '' }),
            },
          },
        ],
        onError: {
          target: 'failed',
          actions: { type: 'recordFailure', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
        },
      },
      after: {
        fetchLimit: {
          target: 'failed',
          actions: {
            type: 'recordFailure',
            params: ({ context }) => ({ reason: `no module within ${context.limits.attemptMs} ms` }),
          },
        },
      },
    },
    failed: {
      description: 'The last attempt failed. The next one follows after a pause.',
      always: { guard: 'isLastQuickAttempt', target: 'reported' },
      after: { pause: 'fetching' },
    },
    reported: {
      description: 'The quick attempts failed, and the control plane receives the reason.',
      entry: 'reportFailed',
      after: { pause: 'fetching' },
    },
    cached: { type: 'final' },
  },
});
