import { assign, enqueueActions, sendParent, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../effect.ts';
import { configSourceMachine } from './config-source.machine.ts';
import { peer } from './peers.ts';
import type {
  ConfigChange,
  ConfigProblem,
  ConfigRecovered,
  ConfigRejected,
  ConfigsAwaited,
  ConfigsChanged,
  ConfigsFailed,
  ConfigsLoad,
  ConfigsSynced,
  PushRequest,
  SourceFailed,
  SourceMissing,
  SourceRead,
} from './protocol.ts';
import { failedOnceMore, retryDelayMs } from './retry-delay.ts';

export interface ConfigControllerInput {
  /** From the first event of a batch in a source to its reading (spec/discovery.md §4.3: 20 ms). */
  coalesceMs: number;
}

/** One that there is. */
interface KnownSource {
  /** Its address. */
  source: string;
  /** Of its actor. */
  name: string;
  /** All that it has was read once. */
  read: boolean;
}

interface ConfigControllerContext extends ConfigControllerInput {
  /** The first that has an object counts. None: nothing is configured. */
  sources: KnownSource[];
  /** How many actors there were, for the name of the next. */
  started: number;
  /** Version of the objects in force; empty until there are any. */
  version: string;
  /** A source was read since the objects of all were last put together. */
  outdated: boolean;
  /** Attempts to put them together that failed since the last one that did not. */
  failures: number;
}

/** What all sources together have come to. The objects themselves are in the store of the effect's side. */
export type ConfigReading =
  | {
      outcome: 'read';
      version: string;
      /** Objects in force, the last good ones of rejected ones included. */
      objects: number;
      /** Since the last time, by key. */
      changes: ConfigChange[];
      /** Those that were not there the last time. */
      problems: ConfigProblem[];
      /** How many there are in all. */
      problemCount: number;
      /** Places whose problems are gone. */
      recovered: string[];
    }
  | { outcome: 'missing'; problems: ConfigProblem[] };

/** Kinds that services and endpoints are made from: the registry says what a change of theirs means (§4.2, §5.4). */
const serviceKinds = [
  ...['ServiceEntry', 'WorkloadEntry'],
  ...['Service', 'Endpoints', 'EndpointSlice', 'Pod', 'Node', 'Namespace'],
];

/** Kinds that name keys by their address: they go to the proxies when the keys are there. */
const keyKinds = ['RequestAuthentication'];

/**
 * Keeps the objects of all sources of configuration in force and tells who is concerned by a change. Each source is an actor
 * of its own; here what they have is put together, the first source that has an object before the others. A bad object
 * leaves the last good one in force; a source that is gone leaves everything in force until it is listed no more.
 */
export const configControllerMachine = setup({
  types: {
    context: {} as ConfigControllerContext,
    input: {} as ConfigControllerInput,
    events: {} as ConfigsLoad | SourceRead | SourceMissing | SourceFailed,
    children: {} as { joining: 'joinSources' } & Record<`config-source-${number}`, 'configSource'>,
  },
  actors: {
    configSource: configSourceMachine,
    /** Brings the store up to what these sources have read, and no others. */
    joinSources: promiseEffect<ConfigReading, { sources: string[] }>('joinSources'),
  },
  delays: { retryDelay: ({ context }) => retryDelayMs(context.failures) },
  guards: {
    namesNoSource: ({ event }) => event.type === 'configs.load' && event.sources.length === 0,
    allAreRead: ({ context }) => unreadOf(context).length === 0,
    nothingIsInForce: ({ context }) => context.version === '',
    somethingWasRead: ({ context }) => context.outdated,
  },
  actions: {
    /** Sources that came get an actor each; the actors of those that went are stopped. */
    follow: enqueueActions(({ context, enqueue }, params: { sources: string[] }) => {
      let { started } = context;
      const sources = params.sources.map((source): KnownSource => {
        const known = context.sources.find((one) => one.source === source);
        if (known !== undefined) return known;
        const name = `config-source-${++started}` as const;
        enqueue.spawnChild('configSource', { id: name, input: { source, coalesceMs: context.coalesceMs } });
        return { source, name, read: false };
      });
      const names = new Set(sources.map(({ name }) => name));
      for (const { name } of context.sources) if (!names.has(name)) enqueue.stopChild(name);
      enqueue.assign({ sources, started, outdated: true });
    }),
    noteRead: assign({
      sources: ({ context }, { source }: { source: string }) =>
        context.sources.map((one) => (one.source === source ? { ...one, read: true } : one)),
      outdated: true,
    }),
    takeReadings: assign({ outdated: false }),
    /** `/ready` says what is missing. */
    reportAwaited: enqueueActions(({ context, enqueue }) => {
      const sources = unreadOf(context);
      if (sources.length > 0) {
        enqueue.sendParent({ type: 'configs.awaited', sources } satisfies ConfigsAwaited);
      }
    }),
    rememberVersion: assign({
      version: ({ context }, params: { reading: ConfigReading }) =>
        params.reading.outcome === 'read' ? params.reading.version : context.version,
    }),
    reportNone: sendParent((): ConfigsSynced => ({ type: 'configs.synced', version: '', objects: 0, problems: 0 })),
    reportSynced: sendParent(
      (_, { reading }: { reading: ConfigReading }): ConfigsSynced =>
        reading.outcome === 'read'
          ? {
              type: 'configs.synced',
              version: reading.version,
              objects: reading.objects,
              problems: reading.problemCount,
            }
          : { type: 'configs.synced', version: '', objects: 0, problems: reading.problems.length },
    ),
    reportFailed: sendParent(
      (_, { reason }: { reason: string }): ConfigsFailed => ({ type: 'configs.failed', reason }),
    ),
    reportProblems: enqueueActions(({ enqueue }, { reading }: { reading: ConfigReading }) => {
      if (reading.problems.length > 0) {
        enqueue.sendParent({ type: 'config.rejected', problems: reading.problems } satisfies ConfigRejected);
      }
      if (reading.outcome === 'read' && reading.recovered.length > 0) {
        enqueue.sendParent({ type: 'config.recovered', places: reading.recovered } satisfies ConfigRecovered);
      }
    }),
    reportBroken: sendParent(
      (_, { source, reason }: { source: string; reason: string }): ConfigRejected => ({
        type: 'config.rejected',
        problems: [{ severity: 'error', place: { source }, object: '', field: '', message: reason }],
      }),
    ),
    /** Services first: the registry's request for a push then joins the one that is asked for here. */
    announceChanges: enqueueActions(({ context, enqueue }, params: { reading: ConfigReading }) => {
      const changes = params.reading.outcome === 'read' ? params.reading.changes : [];
      const forServices = changes.filter(({ key }) => serviceKinds.includes(kindOf(key)));
      const forKeys = changes.filter(({ key }) => keyKinds.includes(kindOf(key)));
      const forProxies = changes.filter(({ key }) => ![...serviceKinds, ...keyKinds].includes(kindOf(key)));
      if (forServices.length > 0) {
        enqueue.sendTo(peer('service-registry'), {
          type: 'configs.changed',
          version: context.version,
          changes: forServices,
        } satisfies ConfigsChanged);
      }
      if (forKeys.length > 0) {
        enqueue.sendTo(peer('jwks'), {
          type: 'configs.changed',
          version: context.version,
          changes: forKeys,
        } satisfies ConfigsChanged);
      }
      if (forProxies.length > 0) {
        enqueue.sendTo(peer('push'), {
          type: 'push.request',
          configs: forProxies.map(({ key }) => key),
          forced: false,
          reasons: { config: forProxies.length },
        } satisfies PushRequest);
      }
    }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    forgetFailures: assign({ failures: 0 }),
  },
}).createMachine({
  id: 'config-controller',
  description: 'The sources of configuration.',
  context: ({ input }) => ({ ...input, sources: [], started: 0, version: '', outdated: false, failures: 0 }),
  initial: 'idle',
  on: {
    'configs.load': {
      description: 'Others than before: what those have that went goes when those that came have been read.',
      target: '.awaiting first lists',
      actions: { type: 'follow', params: ({ event }) => event },
    },
    'source.read': { actions: { type: 'noteRead', params: ({ event }) => event } },
    'source.missing': {
      description: 'What it had stays in force; it is told what is wrong.',
      actions: { type: 'noteRead', params: ({ event }) => event },
    },
    'source.failed': {
      description: 'What it had stays in force; it is tried again.',
      actions: { type: 'reportBroken', params: ({ event }) => event },
    },
  },
  states: {
    idle: {
      description: 'Not asked for yet.',
      meta: { waitsFor: 'configs.load, which the start sends' },
      on: {
        'configs.load': [
          { guard: 'namesNoSource', target: 'without configuration' },
          { target: 'awaiting first lists', actions: { type: 'follow', params: ({ event }) => event } },
        ],
      },
    },
    'without configuration': {
      description: 'No source was named: there is nothing to read and nothing to watch.',
      meta: { waitsFor: 'nothing' },
      entry: 'reportNone',
    },
    'awaiting first lists': {
      description:
        'A source has not been read. Proxies would take what is missing for gone: nothing is told of any before that.',
      meta: { waitsFor: 'the first reading of each source; /ready names those that are missing' },
      entry: 'reportAwaited',
      always: { guard: 'allAreRead', target: 'joining' },
      on: {
        'source.read': { actions: [{ type: 'noteRead', params: ({ event }) => event }, 'reportAwaited'] },
        'source.missing': [
          {
            guard: 'nothingIsInForce',
            target: 'nothing in force',
            actions: { type: 'reportFailed', params: ({ event }) => event },
          },
          { actions: [{ type: 'noteRead', params: ({ event }) => event }, 'reportAwaited'] },
        ],
      },
    },
    'nothing in force': {
      description: 'Nobody knows what to serve: an empty configuration would take everything from everyone.',
      meta: { waitsFor: 'the end of the program' },
      on: { 'configs.load': { description: 'The program is about to end.' } },
    },
    joining: {
      description: 'What the sources have is put together. What was put together before is in force.',
      meta: { waitsFor: 'a computation of ours; the last objects are in force' },
      entry: 'takeReadings',
      invoke: {
        id: 'joining',
        src: 'joinSources',
        input: ({ context }) => ({ sources: context.sources.map(({ source }) => source) }),
        onDone: [
          {
            guard: 'nothingIsInForce',
            target: 'current',
            actions: [
              'forgetFailures',
              { type: 'rememberVersion', params: ({ event }) => ({ reading: event.output }) },
              { type: 'reportProblems', params: ({ event }) => ({ reading: event.output }) },
              { type: 'reportSynced', params: ({ event }) => ({ reading: event.output }) },
            ],
          },
          {
            target: 'current',
            actions: [
              'forgetFailures',
              { type: 'rememberVersion', params: ({ event }) => ({ reading: event.output }) },
              { type: 'reportProblems', params: ({ event }) => ({ reading: event.output }) },
              { type: 'announceChanges', params: ({ event }) => ({ reading: event.output }) },
            ],
          },
        ],
        onError: [
          {
            description: 'A fault of ours, before there is anything to go on with.',
            guard: 'nothingIsInForce',
            target: 'nothing in force',
            actions: { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
          },
          {
            target: 'backing off',
            actions: [
              {
                type: 'reportBroken',
                params: ({ context, event }) => ({ source: namesOf(context), reason: reasonOf(event.error) }),
              },
              'countFailure',
            ],
          },
        ],
      },
    },
    current: {
      description: 'What is in force is what the sources say.',
      meta: { waitsFor: 'a change of a source: this is the work' },
      always: { guard: 'somethingWasRead', target: 'joining' },
    },
    'backing off': {
      description:
        'What the sources have could not be put together. It is tried again, later each time, and with the next change.',
      after: { retryDelay: 'joining' },
      on: {
        'source.read': { target: 'joining', actions: { type: 'noteRead', params: ({ event }) => event } },
        'source.missing': { target: 'joining', actions: { type: 'noteRead', params: ({ event }) => event } },
      },
    },
  },
});

function unreadOf({ sources }: ConfigControllerContext): string[] {
  return sources.filter(({ read }) => !read).map(({ source }) => source);
}

function namesOf({ sources }: ConfigControllerContext): string {
  return sources.map(({ source }) => source).join(', ');
}

function kindOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
