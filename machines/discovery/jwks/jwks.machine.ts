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
    somethingChanged: ({ context }) => context.changed.length > 0,
    somethingIsReady: ({ context }) => readyOf(context).length > 0,
    noneIsAwaited: ({ context }) => !context.sources.some(isAwaited),
    allAreStarted: ({ context }) => context.sources.every(({ isStarted }) => isStarted),
  },
  actions: {
    rememberChanges: assign({
      changed: ({ context, event }) =>
        event.type === 'configs.changed'
          ? union(
              context.changed,
              event.changes.map(({ key }) => key),
            )
          : context.changed,
    }),
    takeChanges: assign({ due: ({ context }) => union(context.due, context.changed), changed: [] }),
    /** Replaces the known sources with those found. Stops the actors of sources that are gone. */
    follow: enqueueActions(({ context, enqueue }, { found }: { found: KeySource[] }) => {
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
    startSome: enqueueActions(({ context, enqueue }) => {
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
    freeSlot: assign(({ context, event }) => {
      const of = event.type === 'key-fetch.finished' && context.sources.find(({ source }) => source === event.source);
      return of ? { queue: removeFetches(context.queue, new Set([of.name])) } : {};
    }),
    grantFetches: enqueueActions(({ context, enqueue }) => {
      const { queue, granted } = grantFetches(context.queue);
      enqueue.assign({ queue });
      for (const name of granted) enqueue.sendTo(name as KeySetName, { type: 'key-fetch.granted' });
    }),
    /** Who has asked for it is brought up to date, if its keys are others than before. */
    noteAnswer: assign(({ context, event }) => {
      if (event.type !== 'key-set.fetched' && event.type !== 'key-set.failed') return {};
      const of = context.sources.find(({ source }) => source === event.source);
      if (of === undefined) return {};
      return {
        sources: context.sources.map((one): KnownSource => (one === of ? { ...one, firstAnswer: 'settled' } : one)),
        due: event.type === 'key-set.fetched' ? union(context.due, of.users) : context.due,
      };
    }),
    /** Objects that change later do not wait for it either. */
    waitNoLonger: assign(({ context, event }) => {
      if (event.type !== 'key-set.late') return {};
      const isLate = (one: KnownSource): boolean => one.source === event.source && isAwaited(one);
      return {
        sources: context.sources.map((one): KnownSource => (isLate(one) ? { ...one, firstAnswer: 'late' } : one)),
      };
    }),
    forgetReady: assign({ due: ({ context }) => difference(context.due, readyOf(context)) }),
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
  description: 'The keys with which tokens of requests are verified.',
  meta: { timeline: jwksTimeline },
  context: ({ input }) => ({ ...input, sources: [], changed: [], due: [], queue: emptyQueue, started: 0 }),
  initial: 'idle',
  on: {
    'configs.changed': { actions: 'rememberChanges' },
    'key-fetch.requested': { actions: ['queueFetch', 'grantFetches'] },
    'key-fetch.finished': { actions: ['freeSlot', 'grantFetches'] },
    'key-set.fetched': { actions: 'noteAnswer' },
    'key-set.failed': { description: 'What was fetched before stays in force.', actions: 'noteAnswer' },
    'key-set.late': { description: 'Tokens of that issuer are refused until it answers.', actions: 'waitNoLonger' },
    'jwks.load': { description: 'They are being fetched already.' },
  },
  states: {
    idle: {
      description: 'Not asked for yet. What changes meanwhile is seen at the first look.',
      meta: { waitsFor: 'jwks.load, which the start sends' },
      on: { 'jwks.load': 'loading' },
    },
    loading: {
      description: 'Nobody is served yet: the first proxies find the keys there.',
      initial: 'looking',
      onDone: { target: 'following', actions: ['reportSynced', 'forgetReady'] },
      states: {
        looking: {
          meta: { waitsFor: 'a look at the objects in force' },
          entry: 'takeChanges',
          invoke: {
            id: 'sources',
            src: 'findKeySources',
            onDone: {
              target: 'starting',
              actions: [{ type: 'follow', params: ({ event }) => ({ found: event.output }) }],
            },
          },
        },
        starting: startingTo('waiting for issuers'),
        'waiting for issuers': {
          meta: { waitsFor: 'the first answer of each issuer, or that it is late' },
          always: { guard: 'noneIsAwaited', target: 'loaded' },
        },
        loaded: { type: 'final' },
      },
    },
    following: {
      description: 'Proxies are told of objects that change, and of keys that do.',
      initial: 'current',
      states: {
        current: {
          description: 'Proxies have been told of everything but objects whose issuers are asked for the first time.',
          meta: { waitsFor: 'a change of objects or of keys: this is the work' },
          always: [
            { guard: 'somethingIsReady', actions: ['requestPush', 'forgetReady'] },
            { guard: 'somethingChanged', target: 'looking' },
          ],
        },
        looking: {
          description: 'Objects changed: perhaps they ask for other keys.',
          meta: { waitsFor: 'a look at the objects in force' },
          entry: 'takeChanges',
          invoke: {
            id: 'sources',
            src: 'findKeySources',
            onDone: {
              target: 'starting',
              actions: [{ type: 'follow', params: ({ event }) => ({ found: event.output }) }],
            },
            onError: { target: 'current', description: 'A fault of ours. The next change brings another look.' },
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
    description: 'Actors of new key sets start a few at a time, with other work of the program between them.',
    meta: { waitsFor: 'the actors of all key sets: a pause is between them' },
    entry: ['startSome', 'grantFetches'],
    always: { guard: 'allAreStarted', target },
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
