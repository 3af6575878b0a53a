import { assign, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { peer } from '../peers.ts';
import type {
  ConfigKeyText,
  ConfigsChanged,
  JwksLoad,
  JwksSynced,
  KeyFetchFinished,
  KeyFetchRequested,
  KeySetFailed,
  KeySetFetched,
  KeySetLate,
  PushRequest,
} from '../protocol.ts';
import { jwksTimeline } from '../timeline.ts';
import {
  emptyQueue,
  enqueueFetches,
  type FetchQueue,
  grantFetches,
  removeFetches,
  type WaitingFetch,
} from './fetch-queue.ts';
import { keySetMachine } from './key-set.machine.ts';
import { selectStarts, startPauseMs } from './key-set-starts.ts';

export interface JwksInput {
  /** Delay from a success to the next fetch (PILOT_JWT_PUB_KEY_REFRESH_INTERVAL). */
  refreshMs: number;
  /** How long objects wait for the first response of their issuers. */
  firstKeysTimeoutMs: number;
}

export interface KeySource {
  source: string;
  timeoutMs: number;
  users: ConfigKeyText[];
}

type KeySetName = `key-set-${number}`;

interface KnownSource extends KeySource {
  name: KeySetName;
  /**
   * State of the first fetch. `awaited`: objects that use the key set are delayed. `late`: they are no longer delayed, although the issuer has
   * neither responded nor failed.
   */
  firstFetch: 'awaited' | 'late' | 'settled';
  isStarted: boolean;
}

interface JwksContext extends JwksInput {
  sources: KnownSource[];
  /** Objects that changed since the key sets were last listed. */
  changed: ConfigKeyText[];
  /** Objects to push when no first response is pending for them. */
  due: ConfigKeyText[];
  queue: FetchQueue;
  started: number;
}

/**
 * Keys of the issuers that RequestAuthentications name by address. A new or changed object is pushed when its issuers have responded or exceeded the
 * limit, so that tokens are not rejected for lack of keys.
 */
export const jwksMachine = setup({
  types: {
    context: {} as JwksContext,
    input: {} as JwksInput,
    events: {} as
      | JwksLoad
      | ConfigsChanged
      | KeyFetchRequested
      | KeyFetchFinished
      | KeySetFetched
      | KeySetFailed
      | KeySetLate,
    children: {} as { sources: 'findKeySources' } & Record<KeySetName, 'keySet'>,
  },
  actors: {
    /** Also drops unused key sets. */
    findKeySources: promiseEffect<KeySource[], undefined>('findKeySources'),
    keySet: keySetMachine,
  },
  delays: { startPause: startPauseMs },
  guards: {
    hasChanges: ({ context }) => context.changed.length > 0,
    hasReady: ({ context }) => readyObjectsOf(context).length > 0,
    hasNonePending: ({ context }) => !context.sources.some(isAwaited),
    areAllStarted: ({ context }) => context.sources.every(({ isStarted }) => isStarted),
  },
  actions: {
    recordChanges: assign({
      changed: ({ context, event }) =>
        event.type === 'configs.changed'
          ? union(
              context.changed,
              event.changes.map(({ key }) => key),
            )
          : context.changed,
    }),
    claimChanges: assign({ due: ({ context }) => union(context.due, context.changed), changed: [] }),
    reconcileKeySets: enqueueActions(({ context, enqueue }, { found }: { found: KeySource[] }) => {
      let { started } = context;
      const sourceById = new Map(context.sources.map((one) => [idOf(one), one]));
      const sources = found.map((one): KnownSource => {
        const existingSource = sourceById.get(idOf(one));
        if (existingSource !== undefined) return { ...existingSource, ...one };
        return { ...one, name: `key-set-${++started}`, firstFetch: 'awaited', isStarted: false };
      });
      const names = new Set<string>(sources.map(({ name }) => name));
      const removedSources = context.sources.filter(({ name }) => !names.has(name));
      for (const { name, isStarted } of removedSources) if (isStarted) enqueue.stopChild(name);
      const queue = removeFetches(context.queue, new Set(removedSources.map(({ name }) => name)));
      enqueue.assign({ sources, started, queue });
    }),
    startBatch: enqueueActions(({ context, enqueue }) => {
      const starting = new Set(selectStarts(context.sources));
      const { refreshMs, firstKeysTimeoutMs } = context;
      for (const { name, source, timeoutMs } of starting)
        enqueue.spawnChild('keySet', { id: name, input: { source, timeoutMs, refreshMs, firstKeysTimeoutMs } });
      enqueue.assign({
        sources: context.sources.map((one) => (starting.has(one) ? { ...one, isStarted: true } : one)),
        // Queued together with the start, because an event per fetch would be a separate step.
        queue: enqueueFetches(context.queue, [...starting].map(fetchOf)),
      });
    }),
    queueFetch: assign(({ context, event }) => {
      const knownSource =
        event.type === 'key-fetch.requested' && context.sources.find(({ source }) => source === event.source);
      if (!knownSource) return {};
      return { queue: enqueueFetches(context.queue, [fetchOf(knownSource)]) };
    }),
    releaseSlot: assign(({ context, event }) => {
      const of = event.type === 'key-fetch.finished' && context.sources.find(({ source }) => source === event.source);
      return of ? { queue: removeFetches(context.queue, new Set([of.name])) } : {};
    }),
    grantFetches: enqueueActions(({ context, enqueue }) => {
      const { queue, granted } = grantFetches(context.queue);
      enqueue.assign({ queue });
      for (const name of granted) enqueue.sendTo(name as KeySetName, { type: 'key-fetch.granted' });
    }),
    recordResponse: assign(({ context, event }) => {
      if (event.type !== 'key-set.fetched' && event.type !== 'key-set.failed') return {};
      const of = context.sources.find(({ source }) => source === event.source);
      if (of === undefined) return {};
      return {
        sources: context.sources.map((one): KnownSource => (one === of ? { ...one, firstFetch: 'settled' } : one)),
        due: event.type === 'key-set.fetched' ? union(context.due, of.users) : context.due,
      };
    }),
    /** Later objects do not wait for the issuer, either. */
    recordLate: assign(({ context, event }) => {
      if (event.type !== 'key-set.late') return {};
      const isLate = (one: KnownSource): boolean => one.source === event.source && isAwaited(one);
      return {
        sources: context.sources.map((one): KnownSource => (isLate(one) ? { ...one, firstFetch: 'late' } : one)),
      };
    }),
    clearReady: assign({ due: ({ context }) => difference(context.due, readyObjectsOf(context)) }),
    reportSynced: sendParent(
      ({ context }): JwksSynced => ({
        type: 'jwks.synced',
        sources: context.sources.length,
        unresponsive: context.sources.filter(({ firstFetch }) => firstFetch === 'late').length,
      }),
    ),
    requestPush: sendTo(peer('push'), ({ context }): PushRequest => {
      const configs = readyObjectsOf(context);
      return { type: 'push.request', configs, forced: false, reasons: { config: configs.length } };
    }),
  },
}).createMachine({
  id: 'jwks',
  description: 'The keys that verify tokens of requests.',
  meta: { timeline: jwksTimeline },
  context: ({ input }) => ({ ...input, sources: [], changed: [], due: [], queue: emptyQueue, started: 0 }),
  initial: 'idle',
  on: {
    'configs.changed': { actions: 'recordChanges' },
    'key-fetch.requested': { actions: ['queueFetch', 'grantFetches'] },
    'key-fetch.finished': { actions: ['releaseSlot', 'grantFetches'] },
    'key-set.fetched': { actions: 'recordResponse' },
    'key-set.failed': { description: 'The last keys apply.', actions: 'recordResponse' },
    'key-set.late': { description: 'Tokens of this issuer are rejected until it responds.', actions: 'recordLate' },
    'jwks.load': { description: 'The bundles are loaded already.' },
  },
  states: {
    idle: {
      description: 'Not started. The first listing includes all changes until then.',
      meta: { waitsFor: 'jwks.load, sent during the start' },
      on: { 'jwks.load': 'loading' },
    },
    loading: {
      description: 'Proxies are not served yet, so that the first ones get the keys.',
      initial: 'listing issuers',
      onDone: { target: 'watching', actions: ['reportSynced', 'clearReady'] },
      states: {
        'listing issuers': {
          meta: { waitsFor: 'the key sets that the objects name' },
          entry: 'claimChanges',
          invoke: {
            id: 'sources',
            src: 'findKeySources',
            onDone: {
              target: 'starting',
              actions: [{ type: 'reconcileKeySets', params: ({ event }) => ({ found: event.output }) }],
            },
          },
        },
        starting: startingState('waiting for issuers'),
        'waiting for issuers': {
          meta: { waitsFor: 'the first response of each issuer, or its limit' },
          always: { guard: 'hasNonePending', target: 'loaded' },
        },
        loaded: { type: 'final' },
      },
    },
    watching: {
      description: 'Pushes objects and keys that change.',
      initial: 'current',
      states: {
        current: {
          description: 'All changes are pushed, except objects whose issuers have not responded yet.',
          meta: { waitsFor: 'a change of objects or of keys: normal operation' },
          always: [
            { guard: 'hasReady', actions: ['requestPush', 'clearReady'] },
            { guard: 'hasChanges', target: 'listing issuers' },
          ],
        },
        'listing issuers': {
          description: 'Objects changed and may name other key sets.',
          meta: { waitsFor: 'the key sets that the objects name' },
          entry: 'claimChanges',
          invoke: {
            id: 'sources',
            src: 'findKeySources',
            onDone: {
              target: 'starting',
              actions: [{ type: 'reconcileKeySets', params: ({ event }) => ({ found: event.output }) }],
            },
            onError: {
              target: 'current',
              description: 'An internal error. The endpoints are listed again at the next change.',
            },
          },
        },
        starting: startingState('current'),
      },
    },
  },
});

function startingState<Target extends string>(target: Target) {
  return {
    description: 'Actors of new key sets start in batches, so that they do not block the program.',
    meta: { waitsFor: 'the actors of all key sets, with a pause between batches' },
    entry: ['startBatch', 'grantFetches'],
    always: { guard: 'areAllStarted', target },
    after: { startPause: { target: 'starting', reenter: true } },
  } as const;
}

/** A changed limit requires another actor. */
function idOf({ source, timeoutMs }: KeySource): string {
  return `${source} ${timeoutMs}`;
}

function fetchOf({ name, users }: KnownSource): WaitingFetch {
  return { name, namespaces: [...new Set(users.map((user) => user.split('/')[1] ?? ''))] };
}

function isAwaited({ firstFetch }: KnownSource): boolean {
  return firstFetch === 'awaited';
}

function readyObjectsOf({ due, sources }: JwksContext): ConfigKeyText[] {
  // Evaluated for each event, of which a thousand sources cause many.
  if (due.length === 0) return [];
  return difference(
    due,
    sources.filter(isAwaited).flatMap(({ users }) => users),
  );
}

function difference(configKeys: readonly ConfigKeyText[], excludedKeys: readonly ConfigKeyText[]): ConfigKeyText[] {
  const excludedSet = new Set(excludedKeys);
  return configKeys.filter((key) => !excludedSet.has(key));
}

function union(a: readonly ConfigKeyText[], b: readonly ConfigKeyText[]): ConfigKeyText[] {
  return [...new Set([...a, ...b])];
}
