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
  /** From an issuer's answer to the next question (PILOT_JWT_PUB_KEY_REFRESH_INTERVAL). */
  refreshMs: number;
  /** Longest time that objects wait for the first answer of their issuers. */
  firstKeysTimeoutMs: number;
}

/** A key set that RequestAuthentications ask for. */
export interface KeySource {
  source: string;
  /** Longest time for an answer. */
  timeoutMs: number;
  /** The objects that ask for it. */
  users: ConfigKeyText[];
}

type KeySetName = `key-set-${number}`;

/** One that is being kept up to date. */
interface KnownSource extends KeySource {
  /** Of its actor. */
  name: KeySetName;
  /**
   * What became of the first question. While it is `awaited` the objects that ask for it are held back; `late`: no longer,
   * although the issuer has neither answered nor failed.
   */
  firstAnswer: 'awaited' | 'late' | 'settled';
  isStarted: boolean;
}

interface JwksContext extends JwksInput {
  sources: KnownSource[];
  /** Objects that changed, and that nobody has looked at. */
  changed: ConfigKeyText[];
  /** Objects that proxies are to be brought up to date with, once no first answer is awaited for them. */
  due: ConfigKeyText[];
  /** Fetches that wait for a slot, and those that have one. */
  queue: FetchQueue;
  /** How many actors there were, for the name of the next. */
  started: number;
}

/**
 * Has the keys of issuers that RequestAuthentications name by an address (spec/discovery.md §8.10). An object that is new
 * or changed goes to the proxies when its own issuers have answered, so that tokens are not refused for want of keys that
 * are on their way. It does not wait for ever, nor for the issuers of other objects.
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
    /** Says which key sets the objects in force ask for; those that nobody asks for are forgotten. */
    findKeySources: promiseEffect<KeySource[], undefined>('findKeySources'),
    keySet: keySetMachine,
  },
  delays: { startPause: startPauseMs },
  guards: {
    hasChanges: ({ context }) => context.changed.length > 0,
    hasReady: ({ context }) => readyOf(context).length > 0,
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
    /** Replaces the known sources with those found. Stops the actors of sources that are gone. */
    reconcileKeySets: enqueueActions(({ context, enqueue }, { found }: { found: KeySource[] }) => {
      let { started } = context;
      const known = new Map(context.sources.map((one) => [idOf(one), one]));
      const sources = found.map((one): KnownSource => {
        const before = known.get(idOf(one));
        if (before !== undefined) return { ...before, ...one };
        return { ...one, name: `key-set-${++started}`, firstAnswer: 'awaited', isStarted: false };
      });
      const names = new Set<string>(sources.map(({ name }) => name));
      const gone = context.sources.filter(({ name }) => !names.has(name));
      for (const { name, isStarted } of gone) if (isStarted) enqueue.stopChild(name);
      const queue = removeFetches(context.queue, new Set(gone.map(({ name }) => name)));
      enqueue.assign({ sources, started, queue });
    }),
    /** Starts actors of the next sources, and queues their fetches. */
    startBatch: enqueueActions(({ context, enqueue }) => {
      const starting = new Set(selectStarts(context.sources));
      const { refreshMs, firstKeysTimeoutMs } = context;
      for (const { name, source, timeoutMs } of starting)
        enqueue.spawnChild('keySet', { id: name, input: { source, timeoutMs, refreshMs, firstKeysTimeoutMs } });
      enqueue.assign({
        sources: context.sources.map((one) => (starting.has(one) ? { ...one, isStarted: true } : one)),
        // A new actor is queued with its start: an event of each would be a step of its own.
        queue: enqueueFetches(context.queue, [...starting].map(fetchOf)),
      });
    }),
    queueFetch: assign(({ context, event }) => {
      const of = event.type === 'key-fetch.requested' && context.sources.find(({ source }) => source === event.source);
      if (!of) return {};
      return { queue: enqueueFetches(context.queue, [fetchOf(of)]) };
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
    /** Who has asked for it is brought up to date, if its keys are others than before. */
    recordResponse: assign(({ context, event }) => {
      if (event.type !== 'key-set.fetched' && event.type !== 'key-set.failed') return {};
      const of = context.sources.find(({ source }) => source === event.source);
      if (of === undefined) return {};
      return {
        sources: context.sources.map((one): KnownSource => (one === of ? { ...one, firstAnswer: 'settled' } : one)),
        due: event.type === 'key-set.fetched' ? union(context.due, of.users) : context.due,
      };
    }),
    /** Objects that change later do not wait for it either. */
    recordLate: assign(({ context, event }) => {
      if (event.type !== 'key-set.late') return {};
      const isLate = (one: KnownSource): boolean => one.source === event.source && isAwaited(one);
      return {
        sources: context.sources.map((one): KnownSource => (isLate(one) ? { ...one, firstAnswer: 'late' } : one)),
      };
    }),
    clearReady: assign({ due: ({ context }) => difference(context.due, readyOf(context)) }),
    reportSynced: sendParent(
      ({ context }): JwksSynced => ({
        type: 'jwks.synced',
        sources: context.sources.length,
        unanswered: context.sources.filter(({ firstAnswer }) => firstAnswer === 'late').length,
      }),
    ),
    requestPush: sendTo(peer('push'), ({ context }): PushRequest => {
      const configs = readyOf(context);
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
    'key-set.failed': { description: 'The last keys still apply.', actions: 'recordResponse' },
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
        starting: startingTo('waiting for issuers'),
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
        starting: startingTo('current'),
      },
    },
  },
});

/** The state in which the actors of new sources start, a few at a time. */
function startingTo<Target extends string>(target: Target) {
  return {
    description: 'Actors of new key sets start in batches, so that they do not block the program.',
    meta: { waitsFor: 'the actors of all key sets, with a pause between batches' },
    entry: ['startBatch', 'grantFetches'],
    always: { guard: 'areAllStarted', target },
    after: { startPause: { target: 'starting', reenter: true } },
  } as const;
}

/** Of those that are found each source is there once; with another time limit it is asked by another actor. */
function idOf({ source, timeoutMs }: KeySource): string {
  return `${source} ${timeoutMs}`;
}

/** Keys of objects are `Kind/namespace/name`. */
function fetchOf({ name, users }: KnownSource): WaitingFetch {
  return { name, namespaces: [...new Set(users.map((user) => user.split('/')[1] ?? ''))] };
}

function isAwaited({ firstAnswer }: KnownSource): boolean {
  return firstAnswer === 'awaited';
}

/** The objects that are due and whose issuers have answered, or are late. */
function readyOf({ due, sources }: JwksContext): ConfigKeyText[] {
  // Asked with each event, of which a thousand sources have many.
  if (due.length === 0) return [];
  return difference(
    due,
    sources.filter(isAwaited).flatMap(({ users }) => users),
  );
}

function difference(of: readonly ConfigKeyText[], without: readonly ConfigKeyText[]): ConfigKeyText[] {
  const gone = new Set(without);
  return of.filter((key) => !gone.has(key));
}

function union(a: readonly ConfigKeyText[], b: readonly ConfigKeyText[]): ConfigKeyText[] {
  return [...new Set([...a, ...b])];
}
