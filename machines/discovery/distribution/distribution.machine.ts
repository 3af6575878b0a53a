import { assign, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import type { DistributionStirred } from '../protocol.ts';
import { noLane } from '../timeline.ts';

/** What a look found. */
export interface DistributionLook {
  /** Objects that are not in all proxies that they concern, or that Envoy rejects something of. */
  unfinished: number;
  tookMs: number;
}

interface DistributionContext {
  /** Something happened while it was looked. */
  again: boolean;
  /** Looks one after the other before which nothing had happened. */
  quietLooks: number;
  tookMs: number;
}

/** Rejections of one mistake come from many proxies within moments. */
const gatherMs = 100;
const shortestRestMs = 500;
const longestRestMs = 5_000;
/** Within which a rejection must be seen, however long a look takes. */
const longestGatherMs = 1_000;
/** A rest is so many times as long as the look before it, so that looking costs a twentieth of a processor. */
const restsForLook = 20;
const gathersForLook = 5;

/**
 * When it is looked how far proxies are with the objects of a cluster: soon when something has happened, and again and again, more and
 * more rarely, while objects are not in all of them. What is to be written then the effect has.
 */
export const distributionMachine = setup({
  types: {
    context: {} as DistributionContext,
    events: {} as DistributionStirred,
    children: {} as { facts: 'watchFacts'; looking: 'look' },
  },
  actors: {
    /** Tells that something has happened, once before each look. */
    watchFacts: callbackEffect<{ type: never }, undefined>('watchFacts'),
    /** Looks how far everything is, and says of which objects the status should be another. */
    look: promiseEffect<DistributionLook, undefined>('look'),
  },
  delays: {
    debounceTime: ({ context }) => Math.min(Math.max(gatherMs, gathersForLook * context.tookMs), longestGatherMs),
    recheckDelay: ({ context: { quietLooks, tookMs } }) =>
      Math.min(Math.max(shortestRestMs * 2 ** quietLooks, restsForLook * tookMs), longestRestMs),
  },
  guards: {
    isIncomplete: (_, params: DistributionLook) => params.unfinished > 0,
    hasChanged: ({ context }) => context.again,
  },
  actions: {
    recordChanged: assign({ again: true, quietLooks: 0 }),
    clearChanged: assign({ again: false }),
    recordDuration: assign({ tookMs: (_, params: DistributionLook) => params.tookMs }),
    countUnchanged: assign({ quietLooks: ({ context }) => Math.min(context.quietLooks + 1, 10) }),
  },
}).createMachine({
  id: 'distribution',
  description: "The delivery of a cluster's objects to the proxies.",
  meta: { timeline: noLane },
  context: { again: false, quietLooks: 0, tookMs: 0 },
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
        id: 'looking',
        src: 'look',
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
