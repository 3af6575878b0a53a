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
    gatherTime: ({ context }) => Math.min(Math.max(gatherMs, gathersForLook * context.tookMs), longestGatherMs),
    restTime: ({ context: { quietLooks, tookMs } }) =>
      Math.min(Math.max(shortestRestMs * 2 ** quietLooks, restsForLook * tookMs), longestRestMs),
  },
  guards: {
    isUnfinished: (_, params: DistributionLook) => params.unfinished > 0,
    isStirred: ({ context }) => context.again,
  },
  actions: {
    noteStirred: assign({ again: true, quietLooks: 0 }),
    forgetStirred: assign({ again: false }),
    noteLook: assign({ tookMs: (_, params: DistributionLook) => params.tookMs }),
    countQuiet: assign({ quietLooks: ({ context }) => Math.min(context.quietLooks + 1, 10) }),
  },
}).createMachine({
  id: 'distribution',
  description: 'What has become of the objects of a cluster in the proxies.',
  meta: { timeline: noLane },
  context: { again: false, quietLooks: 0, tookMs: 0 },
  invoke: { id: 'facts', src: 'watchFacts' },
  initial: 'at rest',
  states: {
    'at rest': {
      description: 'All proxies have all objects that concern them, as far as is known.',
      meta: { waitsFor: 'an object that is another, or a rejection' },
      on: { 'distribution.stirred': { target: 'gathering', actions: 'noteStirred' } },
    },
    gathering: {
      description: 'Something has happened; what comes with it is waited for.',
      after: { gatherTime: 'looking' },
      on: { 'distribution.stirred': {} },
    },
    looking: {
      description: 'It is found out how many proxies have what, and what is rejected by whose doing.',
      meta: { waitsFor: 'a look, which is work of our own that rests and ends' },
      entry: 'forgetStirred',
      invoke: {
        id: 'looking',
        src: 'look',
        onDone: [
          {
            guard: 'isStirred',
            target: 'gathering',
            actions: { type: 'noteLook', params: ({ event }) => event.output },
          },
          {
            guard: { type: 'isUnfinished', params: ({ event }) => event.output },
            target: 'resting',
            actions: { type: 'noteLook', params: ({ event }) => event.output },
          },
          { target: 'at rest', actions: { type: 'noteLook', params: ({ event }) => event.output } },
        ],
        onError: { target: 'resting', description: 'A mistake of ours: the next look may do better.' },
      },
      on: { 'distribution.stirred': { actions: 'noteStirred' } },
    },
    resting: {
      description: 'Objects are not in all proxies yet.',
      after: { restTime: { target: 'looking', actions: 'countQuiet' } },
      on: { 'distribution.stirred': { target: 'gathering', actions: 'noteStirred' } },
    },
  },
});
