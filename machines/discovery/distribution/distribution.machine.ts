import { assign, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import type { DistributionChanged } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface DistributionSummary {
  /** Number of objects that some proxies need but lack, or that Envoy partly rejects. */
  unfinished: number;
  tookMs: number;
}

interface DistributionContext {
  again: boolean;
  unchangedComputations: number;
  tookMs: number;
}

/** Many proxies reject the same invalid resource at about the same time. */
const minDebounceMs = 100;
const minRecheckMs = 500;
const maxRecheckMs = 5_000;
const maxDebounceMs = 1_000;
/** Ratio of an interval to the computation before it: distribution uses at most 5 % of a processor. */
const recheckFactor = 20;
const debounceFactor = 5;

/** Decides when to compute the delivery of a cluster's objects: soon after a change, and at increasing intervals while some proxies lack objects. */
export const distributionMachine = setup({
  types: {
    context: {} as DistributionContext,
    events: {} as DistributionChanged,
    children: {} as { facts: 'watchFacts'; computing: 'computeDelivery' },
  },
  actors: {
    /** Reports at most one change before each computation. */
    watchFacts: callbackEffect<{ type: never }, undefined>('watchFacts'),
    computeDelivery: promiseEffect<DistributionSummary, undefined>('computeDelivery'),
  },
  delays: {
    debounceTime: ({ context }) => Math.min(Math.max(minDebounceMs, debounceFactor * context.tookMs), maxDebounceMs),
    recheckDelay: ({ context: { unchangedComputations, tookMs } }) =>
      Math.min(Math.max(minRecheckMs * 2 ** unchangedComputations, recheckFactor * tookMs), maxRecheckMs),
  },
  guards: {
    isIncomplete: (_, params: DistributionSummary) => params.unfinished > 0,
    hasChanged: ({ context }) => context.again,
  },
  actions: {
    recordChanged: assign({ again: true, unchangedComputations: 0 }),
    clearChanged: assign({ again: false }),
    recordDuration: assign({ tookMs: (_, params: DistributionSummary) => params.tookMs }),
    countUnchanged: assign({ unchangedComputations: ({ context }) => Math.min(context.unchangedComputations + 1, 10) }),
  },
}).createMachine({
  id: 'distribution',
  description: "The delivery of a cluster's objects to the proxies.",
  meta: { timeline: noLane },
  context: { again: false, unchangedComputations: 0, tookMs: 0 },
  invoke: { id: 'facts', src: 'watchFacts' },
  initial: 'idle',
  states: {
    idle: {
      description: 'All proxies are known to have all objects that concern them.',
      meta: { waitsFor: 'a changed object or a rejection' },
      on: { 'distribution.changed': { target: 'debouncing', actions: 'recordChanged' } },
    },
    debouncing: {
      description: 'A change happened; related changes are collected.',
      after: { debounceTime: 'computing' },
      on: { 'distribution.changed': {} },
    },
    computing: {
      description: 'Computes which proxies have which objects, and which are rejected and why.',
      meta: { waitsFor: 'a computation in steps' },
      entry: 'clearChanged',
      invoke: {
        id: 'computing',
        src: 'computeDelivery',
        onDone: [
          {
            guard: 'hasChanged',
            target: 'debouncing',
            actions: { type: 'recordDuration', params: ({ event }) => event.output },
          },
          {
            guard: { type: 'isIncomplete', params: ({ event }) => event.output },
            target: 'waiting',
            actions: { type: 'recordDuration', params: ({ event }) => event.output },
          },
          { target: 'idle', actions: { type: 'recordDuration', params: ({ event }) => event.output } },
        ],
        onError: { target: 'waiting', description: 'An internal error: the next computation may succeed.' },
      },
      on: { 'distribution.changed': { actions: 'recordChanged' } },
    },
    waiting: {
      description: 'Some proxies do not have all objects yet.',
      after: { recheckDelay: { target: 'computing', actions: 'countUnchanged' } },
      on: { 'distribution.changed': { target: 'debouncing', actions: 'recordChanged' } },
    },
  },
});
