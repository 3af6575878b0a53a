import { assign, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type {
  ConfigChange,
  ConfigProblem,
  ConfigRecovered,
  ConfigsChanged,
  ConfigsFailed,
  ConfigsLoad,
  ConfigsPending,
  ConfigsRejected,
  ConfigsSynced,
  MeshChanged,
  PushRequest,
  SourceFailed,
  SourceMissing,
  SourceRead,
  SourcesInvalid,
  SourcesList,
  SourcesListed,
  SourcesPending,
} from '../protocol.ts';
import { incrementFailures, retryDelayMs } from '../retry-delay.ts';
import { configControllerTimeline } from '../timeline.ts';
import { configSourceMachine } from './config-source.machine.ts';

export interface ConfigControllerInput {
  quietMs: number;
  /** Maximum delay from the first event of a batch to the read. */
  coalesceMs: number;
}

interface KnownSource {
  source: string;
  name: string;
  read: boolean;
  /** False for a removed source. */
  isConfigured: boolean;
}

interface ConfigControllerContext extends ConfigControllerInput {
  /** In order of precedence. */
  sources: KnownSource[];
  started: number;
  /** Empty before the first merge. */
  version: string;
  /** Whether a source was read, or the list changed, since the last merge. */
  outdated: boolean;
  failures: number;
}

/** Result of a merge, whose objects are in the store of the effect. */
export type ConfigReading =
  | {
      outcome: 'read';
      version: string;
      /** Includes the last valid versions of rejected objects. */
      objects: number;
      changes: ConfigChange[];
      problems: ConfigProblem[];
      problemCount: number;
      recovered: string[];
    }
  | { outcome: 'missing'; problems: ConfigProblem[] };

/** Kinds that define services and endpoints: the service registry handles their changes. */
const serviceKinds = [
  ...['ServiceEntry', 'WorkloadEntry'],
  ...['Service', 'Endpoints', 'EndpointSlice', 'Pod', 'Node', 'Namespace'],
];

/** Kinds that name JWKS URLs: they are pushed when the keys are available. */
const keyKinds = ['RequestAuthentication'];

/**
 * The first source that has an object takes precedence. The last valid version of an invalid object still applies, and so do the objects of a source
 * that becomes unavailable, until it is removed from the list.
 *
 * A new source applies when it has been read; removed ones apply until all new ones have been read.
 */
export const configControllerMachine = setup({
  types: {
    context: {} as ConfigControllerContext,
    input: {} as ConfigControllerInput,
    events: {} as
      | ConfigsLoad
      | MeshChanged
      | SourcesListed
      | SourcesInvalid
      | SourceRead
      | SourceMissing
      | SourceFailed,
    children: {} as { sources: 'listSources'; joining: 'mergeSources' } & Record<
      `config-source-${number}`,
      'configSource'
    >,
  },
  actors: {
    configSource: configSourceMachine,
    listSources: callbackEffect<SourcesList, undefined>('listSources'),
    mergeSources: promiseEffect<ConfigReading, { sources: string[]; known: string[] }>('mergeSources'),
  },
  delays: { retryDelay: ({ context }) => retryDelayMs(context.failures) },
  guards: {
    removesAllSources: ({ context }, { sources }: { sources: string[] }) =>
      sources.length === 0 && context.sources.length > 0,
    areAllRead: ({ context }) => unreadSourcesOf(context).length === 0,
    isOutdated: ({ context }) => context.outdated,
  },
  actions: {
    requestSources: sendTo('sources', { type: 'sources.list' } satisfies SourcesList),
    reconcileSources: enqueueActions(({ context, enqueue }, params: { sources: string[] }) => {
      let { started } = context;
      const configuredSources = params.sources.map((source): KnownSource => {
        const knownSource = context.sources.find((one) => one.source === source);
        if (knownSource !== undefined) return { ...knownSource, isConfigured: true };
        const name = `config-source-${++started}` as const;
        const { quietMs, coalesceMs } = context;
        enqueue.spawnChild('configSource', { id: name, input: { source, quietMs, coalesceMs } });
        return { source, name, read: false, isConfigured: true };
      });
      const removedSources = context.sources.filter(({ source, read }) => read && !params.sources.includes(source));
      const sources = neededSources([
        ...configuredSources,
        ...removedSources.map((one) => ({ ...one, isConfigured: false })),
      ]);
      for (const { name } of excludeSources(context.sources, sources)) enqueue.stopChild(name);
      enqueue.assign({ sources, started, outdated: true });
    }),
    recordRead: enqueueActions(({ context, enqueue }, { source }: { source: string }) => {
      const sources = neededSources(
        context.sources.map((one) => (one.source === source ? { ...one, read: true } : one)),
      );
      for (const { name } of excludeSources(context.sources, sources)) enqueue.stopChild(name);
      enqueue.assign({ sources, outdated: true });
    }),
    /** The next merge reports the missing source as a problem. */
    markOutdated: assign({ outdated: true }),
    markCurrent: assign({ outdated: false }),
    reportUnread: enqueueActions(({ context, enqueue }) => {
      const sources = unreadSourcesOf(context);
      if (sources.length > 0) {
        enqueue.sendParent({ type: 'configs.pending', sources } satisfies ConfigsPending);
      }
    }),
    /** Operators must know why a new source does not apply. */
    reportPending: enqueueActions(({ context, enqueue }) => {
      const sources = unreadSourcesOf(context);
      if (sources.length > 0) {
        enqueue.sendParent({ type: 'sources.pending', sources } satisfies SourcesPending);
      }
    }),
    recordVersion: assign({
      version: ({ context }, params: { reading: ConfigReading }) =>
        params.reading.outcome === 'read' ? params.reading.version : context.version,
    }),
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
        enqueue.sendParent({ type: 'configs.rejected', problems: reading.problems } satisfies ConfigsRejected);
      }
      if (reading.outcome === 'read' && reading.recovered.length > 0) {
        enqueue.sendParent({ type: 'config.recovered', places: reading.recovered } satisfies ConfigRecovered);
      }
    }),
    reportSourceFailed: sendParent(
      (_, { source, reason }: { source: string; reason: string }): ConfigsRejected => ({
        type: 'configs.rejected',
        problems: [{ severity: 'error', place: { source }, object: '', field: '', message: reason }],
      }),
    ),
    reportNoSource: sendParent(
      (): ConfigsRejected => ({
        type: 'configs.rejected',
        problems: [
          listProblem('no source is named any more; those that were named stay in force until the next start'),
        ],
      }),
    ),
    reportRejected: sendParent(
      (_, { reason }: { reason: string }): ConfigsRejected => ({
        type: 'configs.rejected',
        problems: [listProblem(reason)],
      }),
    ),
    /** If services change as well, the service registry requests the push after it has computed them. */
    publishChanges: enqueueActions(({ context, enqueue }, params: { reading: ConfigReading }) => {
      const changes = params.reading.outcome === 'read' ? params.reading.changes : [];
      const serviceChanges = changes.filter(({ key }) => serviceKinds.includes(kindOf(key)));
      const keyChanges = changes.filter(({ key }) => keyKinds.includes(kindOf(key)));
      const proxyChanges = changes.filter(({ key }) => ![...serviceKinds, ...keyKinds].includes(kindOf(key)));
      if (serviceChanges.length > 0) {
        enqueue.sendTo(peer('service-registry'), {
          type: 'configs.changed',
          version: context.version,
          changes: serviceChanges,
          ...(proxyChanges.length > 0 && { alongside: proxyChanges.map(({ key }) => key) }),
        } satisfies ConfigsChanged);
      }
      if (keyChanges.length > 0) {
        enqueue.sendTo(peer('jwks'), {
          type: 'configs.changed',
          version: context.version,
          changes: keyChanges,
        } satisfies ConfigsChanged);
      }
      if (proxyChanges.length > 0 && serviceChanges.length === 0) {
        enqueue.sendTo(peer('push'), {
          type: 'push.request',
          configs: proxyChanges.map(({ key }) => key),
          forced: false,
          reasons: { config: proxyChanges.length },
        } satisfies PushRequest);
      }
    }),
    countFailure: assign({ failures: ({ context }) => incrementFailures(context.failures) }),
    resetFailures: assign({ failures: 0 }),
  },
}).createMachine({
  id: 'config-controller',
  description: 'The sources of configuration.',
  meta: { timeline: configControllerTimeline },
  context: ({ input }) => ({ ...input, sources: [], started: 0, version: '', outdated: false, failures: 0 }),
  initial: 'idle',
  invoke: {
    id: 'sources',
    src: 'listSources',
    onError: {
      description: 'An internal error; the sources are kept.',
      actions: { type: 'reportRejected', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
    },
  },
  on: {
    'configs.load': { description: 'The sources are loaded already.' },
    'mesh.changed': { description: 'The mesh configuration may name other sources.', actions: 'requestSources' },
    'sources.listed': [
      {
        description: 'A file emptied by accident does not delete all configuration.',
        guard: { type: 'removesAllSources', params: ({ event }) => event },
        actions: 'reportNoSource',
      },
      { actions: [{ type: 'reconcileSources', params: ({ event }) => event }, 'reportPending'] },
    ],
    'sources.invalid': {
      description: 'An address is invalid: the sources are kept.',
      actions: { type: 'reportRejected', params: ({ event }) => event },
    },
    'source.read': { actions: { type: 'recordRead', params: ({ event }) => event } },
    'source.missing': {
      description:
        'The last objects of the source apply, and the error is reported. A source that was never read is pending.',
      actions: 'markOutdated',
    },
    'source.failed': {
      description: 'The last objects of the source apply. It is read again.',
      actions: { type: 'reportSourceFailed', params: ({ event }) => event },
    },
  },
  states: {
    idle: {
      description: 'Not started.',
      meta: { waitsFor: 'configs.load, sent during the start' },
      on: {
        'configs.load': 'listing sources',
        'mesh.changed': { description: 'The sources are not listed yet.' },
      },
    },
    'listing sources': {
      description: 'The sources are not known yet.',
      meta: { waitsFor: 'the list of sources, which comes at once' },
      entry: 'requestSources',
      on: {
        'sources.listed': {
          target: 'awaiting first lists',
          actions: { type: 'reconcileSources', params: ({ event }) => event },
        },
        'sources.invalid': {
          target: 'no configuration',
          actions: { type: 'reportFailed', params: ({ event }) => event },
        },
      },
    },
    'awaiting first lists': {
      description:
        'A source has not been read. Proxies would treat its objects as deleted, so nothing is published yet.',
      meta: { waitsFor: 'the first read of each source; /ready lists the missing ones' },
      entry: 'reportUnread',
      always: { guard: 'areAllRead', target: 'merging first lists' },
      on: {
        'sources.listed': { actions: [{ type: 'reconcileSources', params: ({ event }) => event }, 'reportUnread'] },
        'source.read': { actions: [{ type: 'recordRead', params: ({ event }) => event }, 'reportUnread'] },
        'source.missing': {
          target: 'no configuration',
          actions: { type: 'reportFailed', params: ({ event }) => event },
        },
      },
    },
    'no configuration': {
      description: 'The configuration is unknown. An empty one would remove everything from all proxies.',
      meta: { waitsFor: 'the end of the program' },
    },
    'merging first lists': {
      description: 'Merges the objects of all sources for the first time.',
      meta: { waitsFor: 'a computation; /ready reports it' },
      entry: 'markCurrent',
      invoke: {
        id: 'joining',
        src: 'mergeSources',
        input: ({ context }) => mergeInputOf(context),
        onDone: {
          target: 'current',
          actions: [
            { type: 'recordVersion', params: ({ event }) => ({ reading: event.output }) },
            { type: 'reportProblems', params: ({ event }) => ({ reading: event.output }) },
            { type: 'reportSynced', params: ({ event }) => ({ reading: event.output }) },
          ],
        },
        onError: {
          description: 'An internal error, and there is no earlier configuration.',
          target: 'no configuration',
          actions: { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
        },
      },
    },
    current: {
      description: 'The merged objects are up to date.',
      meta: { waitsFor: 'a change of a source or of the list of sources: normal operation' },
      always: { guard: 'isOutdated', target: 'merging' },
    },
    merging: {
      description: 'Merges the objects of all sources. The previous result still applies.',
      meta: { waitsFor: 'a computation; the last objects still apply' },
      entry: 'markCurrent',
      invoke: {
        id: 'joining',
        src: 'mergeSources',
        input: ({ context }) => mergeInputOf(context),
        onDone: {
          target: 'current',
          actions: [
            'resetFailures',
            { type: 'recordVersion', params: ({ event }) => ({ reading: event.output }) },
            { type: 'reportProblems', params: ({ event }) => ({ reading: event.output }) },
            { type: 'publishChanges', params: ({ event }) => ({ reading: event.output }) },
          ],
        },
        onError: {
          target: 'backing off',
          actions: [
            {
              type: 'reportSourceFailed',
              params: ({ context, event }) => ({ source: namesOf(context), reason: reasonOf(event.error) }),
            },
            'countFailure',
          ],
        },
      },
    },
    'backing off': {
      description:
        'The objects could not be merged. The merge is repeated, at increasing intervals and at the next change.',
      after: { retryDelay: 'merging' },
      on: {
        'sources.listed': [
          { guard: { type: 'removesAllSources', params: ({ event }) => event }, actions: 'reportNoSource' },
          { target: 'merging', actions: [{ type: 'reconcileSources', params: ({ event }) => event }, 'reportPending'] },
        ],
        'source.read': { target: 'merging', actions: { type: 'recordRead', params: ({ event }) => event } },
        'source.missing': { target: 'merging', actions: 'markOutdated' },
      },
    },
  },
});

function neededSources(sources: KnownSource[]): KnownSource[] {
  return sources.some(({ isConfigured, read }) => isConfigured && !read)
    ? sources
    : sources.filter(({ isConfigured }) => isConfigured);
}

function excludeSources(sources: readonly KnownSource[], excludedSources: readonly KnownSource[]): KnownSource[] {
  return sources.filter(({ name }) => !excludedSources.some((excludedSource) => excludedSource.name === name));
}

function mergeInputOf({ sources }: ConfigControllerContext): { sources: string[]; known: string[] } {
  return {
    sources: sources.filter(({ read }) => read).map(({ source }) => source),
    known: sources.map(({ source }) => source),
  };
}

function listProblem(message: string): ConfigProblem {
  return { severity: 'error', place: { source: 'mesh configuration' }, object: '', field: 'configSources', message };
}

function unreadSourcesOf({ sources }: ConfigControllerContext): string[] {
  return sources.filter(({ isConfigured, read }) => isConfigured && !read).map(({ source }) => source);
}

function namesOf({ sources }: ConfigControllerContext): string {
  return sources.map(({ source }) => source).join(', ');
}

function kindOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
