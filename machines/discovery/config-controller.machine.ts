import { assign, enqueueActions, raise, sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../effect.ts';
import { peer } from './peers.ts';
import type {
  ConfigChange,
  ConfigProblem,
  ConfigRecovered,
  ConfigRejected,
  ConfigsChanged,
  ConfigsFailed,
  ConfigsLoad,
  ConfigsSynced,
  FilesChanged,
  PushRequest,
} from './protocol.ts';
import { failedOnceMore, retryDelayMs } from './retry-delay.ts';

export interface ConfigControllerInput {
  /** From the first event of a batch to the reading (spec/discovery.md §4.3: 20 ms). */
  coalesceMs: number;
}

interface ConfigControllerContext extends ConfigControllerInput {
  /** The first that has an object counts. None: nothing is configured. */
  directories: string[];
  /** Version of the objects in force. */
  version: string;
  /** Where something happened since the last reading began, each place once; too many to be told apart: the directories. */
  changedPaths: string[];
  /** Readings that broke off since the last one that did not. */
  failures: number;
}

/** So many places are looked at one by one; of more, all are. */
const mostPaths = 256;

/** What reading the directories brought. The objects themselves are in the store of the effect's side. */
export type DirectoryReading =
  | {
      outcome: 'read';
      version: string;
      /** Objects in force, the last good ones of rejected ones included. */
      objects: number;
      /** Since the last reading, by key. */
      changes: ConfigChange[];
      /** Those that were not there at the last reading. */
      problems: ConfigProblem[];
      /** How many there are in all. */
      problemCount: number;
      /** Files whose problems are gone. */
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

const remembered = {
  type: 'rememberPath',
  params: ({ event }: { event: FilesChanged }) => ({ path: event.path }),
} as const;

/**
 * Keeps the objects of a configuration directory in force and tells who is concerned by a change. A bad object or file
 * leaves the last good one in force; a directory that is gone leaves everything in force.
 */
export const configControllerMachine = setup({
  types: {
    context: {} as ConfigControllerContext,
    input: {} as ConfigControllerInput,
    events: {} as ConfigsLoad | FilesChanged,
    children: {} as { files: 'watchDirectory'; reading: 'readDirectory' },
  },
  actors: {
    /** Watches directories and all below them, also those that do not exist yet. */
    watchDirectory: callbackEffect<{ type: never }, { directories: string[] }>('watchDirectory'),
    /** Brings the store up to what the directories say. Looks only at the paths, or everywhere when there are none. */
    readDirectory: promiseEffect<DirectoryReading, { directories: string[]; paths: string[] }>('readDirectory'),
  },
  delays: {
    coalescing: ({ context }) => context.coalesceMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    hasNoDirectory: ({ event }) => event.type === 'configs.load' && event.directories.length === 0,
    isMissing: (_, params: { reading: DirectoryReading }) => params.reading.outcome === 'missing',
  },
  actions: {
    rememberVersion: assign({
      version: ({ context }, params: { reading: DirectoryReading }) =>
        params.reading.outcome === 'read' ? params.reading.version : context.version,
    }),
    reportSynced: sendParent(
      ({ context }, params: { reading: DirectoryReading }): ConfigsSynced => ({
        type: 'configs.synced',
        version: context.version,
        objects: params.reading.outcome === 'read' ? params.reading.objects : 0,
        problems: params.reading.outcome === 'read' ? params.reading.problemCount : 0,
      }),
    ),
    reportFailed: sendParent(
      (_, params: { reading: DirectoryReading }): ConfigsFailed => ({
        type: 'configs.failed',
        reason: params.reading.problems.map(({ file, message }) => `${file}: ${message}`).join('; '),
      }),
    ),
    reportProblems: enqueueActions(({ enqueue }, params: { reading: DirectoryReading }) => {
      const { reading } = params;
      if (reading.problems.length > 0) {
        enqueue.sendParent({ type: 'config.rejected', problems: reading.problems } satisfies ConfigRejected);
      }
      if (reading.outcome === 'read' && reading.recovered.length > 0) {
        enqueue.sendParent({ type: 'config.recovered', files: reading.recovered } satisfies ConfigRecovered);
      }
    }),
    reportBroken: sendParent(
      ({ context }, params: { error: unknown }): ConfigRejected => ({
        type: 'config.rejected',
        problems: [
          {
            severity: 'error',
            file: context.directories.join(', '),
            line: 0,
            object: '',
            field: '',
            message: reasonOf(params.error),
          },
        ],
      }),
    ),
    /** Services first: the registry's request for a push then joins the one that is asked for here. */
    announceChanges: enqueueActions(({ context, enqueue }, params: { reading: DirectoryReading }) => {
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
    rememberPath: assign({
      changedPaths: ({ context: { changedPaths, directories } }, params: { path: string }) => {
        if (changedPaths.includes(params.path)) return changedPaths;
        return changedPaths.length < mostPaths ? [...changedPaths, params.path] : directories;
      },
    }),
    forgetPaths: assign({ changedPaths: [] }),
    /** What broke a reading off may have kept it from more than these. */
    suspectEverything: assign({ changedPaths: ({ context }) => context.directories }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    forgetFailures: assign({ failures: 0 }),
    /** What happened during a reading is read next. */
    lookAgain: raise(({ context }) => ({ type: 'files.changed', path: context.changedPaths.at(-1) ?? '' })),
  },
}).createMachine({
  id: 'config-controller',
  description: 'The directories of configuration.',
  context: ({ input }) => ({ ...input, directories: [], version: '', changedPaths: [], failures: 0 }),
  initial: 'idle',
  states: {
    idle: {
      description: 'Not asked for yet.',
      meta: { waitsFor: 'configs.load, which the start sends' },
      on: {
        'configs.load': [
          { guard: 'hasNoDirectory', target: 'without configuration' },
          { target: 'watching', actions: assign({ directories: ({ event }) => event.directories }) },
        ],
      },
    },
    'without configuration': {
      description: 'No directory was named: there is nothing to read and nothing to watch.',
      meta: { waitsFor: 'nothing' },
      entry: { type: 'reportSynced', params: { reading: { outcome: 'missing', problems: [] } } },
      on: { 'configs.load': {} },
    },
    watching: {
      description: 'The directory is watched from before its first reading, so that no change is missed.',
      invoke: {
        id: 'files',
        src: 'watchDirectory',
        input: ({ context }) => ({ directories: context.directories }),
        onError: {
          description: 'The directory cannot be watched; what is in force stays in force.',
          actions: { type: 'reportBroken', params: ({ event }) => ({ error: event.error }) },
        },
      },
      on: { 'configs.load': { description: 'It is being watched already.' } },
      initial: 'loading',
      states: {
        loading: {
          description: 'The directory is read for the first time.',
          meta: { waitsFor: 'the reading of the directory; /ready says so' },
          invoke: {
            id: 'reading',
            src: 'readDirectory',
            input: ({ context }) => ({ directories: context.directories, paths: [] }),
            onDone: [
              {
                guard: { type: 'isMissing', params: ({ event }) => ({ reading: event.output }) },
                target: 'missing',
                actions: { type: 'reportFailed', params: ({ event }) => ({ reading: event.output }) },
              },
              {
                target: 'current',
                actions: [
                  { type: 'rememberVersion', params: ({ event }) => ({ reading: event.output }) },
                  { type: 'reportProblems', params: ({ event }) => ({ reading: event.output }) },
                  { type: 'reportSynced', params: ({ event }) => ({ reading: event.output }) },
                ],
              },
            ],
          },
          initial: 'undisturbed',
          states: {
            undisturbed: { on: { 'files.changed': { target: 'outdated', actions: remembered } } },
            outdated: {
              on: { 'files.changed': { actions: remembered } },
              description: 'Files changed while they were read: what was read counts, and is read again.',
              exit: 'lookAgain',
            },
          },
        },
        missing: {
          description: 'Nobody knows what to serve: an empty configuration would take everything from everyone.',
          meta: { waitsFor: 'the end of the program' },
          on: { 'files.changed': { description: 'The program is about to end.' } },
        },
        current: {
          description: 'What is in force is what the directory says.',
          meta: { waitsFor: 'a change of the files: this is the work' },
          on: { 'files.changed': { target: 'coalescing', actions: remembered } },
        },
        coalescing: {
          description: 'Files are changing; the delay counts from the first.',
          after: { coalescing: 'reading' },
          on: { 'files.changed': { description: 'The reading to come sees it.', actions: remembered } },
        },
        reading: {
          description: 'Changed files are read again. The last good objects are in force.',
          meta: { waitsFor: 'the reading of files; the last good objects are in force' },
          invoke: {
            id: 'reading',
            src: 'readDirectory',
            input: ({ context }) => ({ directories: context.directories, paths: context.changedPaths }),
            onDone: {
              target: 'current',
              actions: [
                'forgetFailures',
                { type: 'rememberVersion', params: ({ event }) => ({ reading: event.output }) },
                { type: 'reportProblems', params: ({ event }) => ({ reading: event.output }) },
                { type: 'announceChanges', params: ({ event }) => ({ reading: event.output }) },
              ],
            },
            onError: {
              target: 'backing off',
              actions: [
                { type: 'reportBroken', params: ({ event }) => ({ error: event.error }) },
                'suspectEverything',
                'countFailure',
              ],
            },
          },
          initial: 'undisturbed',
          states: {
            undisturbed: { entry: 'forgetPaths', on: { 'files.changed': { target: 'outdated', actions: remembered } } },
            outdated: { exit: 'lookAgain', on: { 'files.changed': { actions: remembered } } },
          },
        },
        'backing off': {
          description: 'The last reading broke off: all is read again, later each time, and when something changes.',
          after: { retryDelay: 'reading' },
          on: { 'files.changed': { target: 'coalescing', actions: remembered } },
        },
      },
    },
  },
});

function kindOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
