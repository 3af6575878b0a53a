import { assign, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import type {
  GarbageCollected,
  MemoryReleased,
  ProxiesConnected,
  ProxiesDisconnected,
} from './memory-release-protocol.ts';

interface MemoryReleaseContext {
  maxServed: number;
}

/** The garbage of fewer proxies is small compared with the memory of an idle control plane. */
export const minReleasedProxies = 200;
/** Proxies that lost their connection return within this time: Envoy's first back-off is 0.5 s. */
export const settleMs = 5_000;
/** V8 marks 200 MiB in less than a second. */
export const maxCollectionMs = 30_000;

/**
 * When memory of disconnected proxies is returned to the system. V8 collects garbage only when objects are allocated, which an idle control plane
 * hardly does, and keeps the pages that a collection frees.
 *
 * Memory is released only while no proxy is served, so that no push is delayed: the release blocks the event loop for twice the time to mark the live
 * heap.
 */
export const memoryReleaseMachine = setup({
  types: {
    context: {} as MemoryReleaseContext,
    events: {} as ProxiesConnected | ProxiesDisconnected | GarbageCollected | MemoryReleased,
    children: {} as { collection: 'collection'; release: 'release' },
  },
  actors: {
    collection: callbackEffect<{ type: never }, undefined>('collection'),
    release: callbackEffect<{ type: never }, { proxies: number }>('release'),
  },
  delays: { settle: settleMs, maxCollection: maxCollectionMs },
  guards: {
    servedMany: ({ context, event }) =>
      event.type === 'proxies.disconnected' && Math.max(context.maxServed, event.maxServed) >= minReleasedProxies,
  },
  actions: {
    recordServed: assign({
      maxServed: ({ context, event }) =>
        event.type === 'proxies.disconnected' ? Math.max(context.maxServed, event.maxServed) : context.maxServed,
    }),
    clearServed: assign({ maxServed: 0 }),
  },
}).createMachine({
  id: 'memory-release',
  description: 'When memory of disconnected proxies is returned to the system.',
  meta: { timeline: noLane },
  context: { maxServed: 0 },
  initial: 'idle',
  on: {
    'proxies.connected': '.idle',
  },
  states: {
    idle: {
      description: 'Proxies are served, or only few were since the last release.',
      meta: { waitsFor: 'the last of many served proxies to disconnect' },
      on: {
        'proxies.connected': {},
        'proxies.disconnected': [
          { guard: 'servedMany', target: 'settling', actions: 'recordServed' },
          { actions: 'recordServed' },
        ],
      },
    },
    settling: {
      description: 'No proxy is served. Proxies may return.',
      after: { settle: 'collecting' },
    },
    collecting: {
      description: 'Garbage is marked in steps of a few milliseconds.',
      invoke: { id: 'collection', src: 'collection' },
      on: { 'garbage.collected': 'releasing' },
      after: {
        maxCollection: { description: 'The release also collects garbage, in a longer pause.', target: 'releasing' },
      },
    },
    releasing: {
      description: 'Unused pages of the heap are returned to the system.',
      meta: { waitsFor: 'an iteration of the event loop' },
      invoke: { id: 'release', src: 'release', input: ({ context }) => ({ proxies: context.maxServed }) },
      on: { 'memory.released': { target: 'idle', actions: 'clearServed' } },
    },
  },
});
