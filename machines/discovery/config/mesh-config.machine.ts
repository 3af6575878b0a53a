import { assign, enqueueActions, raise, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type {
  ConfigProblem,
  FilesChanged,
  MeshChanged,
  PushRequest,
  SettingsChanged,
  SettingsLoad,
  SettingsLoaded,
  SettingsName,
  SettingsRejected,
} from '../protocol.ts';
import { incrementFailures, retryDelayMs } from '../retry-delay.ts';
import { meshConfigTimeline } from '../timeline.ts';

export interface MeshConfigInput {
  name: SettingsName;
  file: string;
  settleMs: number;
}

interface MeshConfigContext extends MeshConfigInput {
  version: string;
  failures: number;
  /** Last reported errors of the file; empty after a valid value. */
  rejected: ConfigProblem[];
}

/** `version`: hash of the decoded value. `defaults`: version of the built-in value. */
export type SettingsReading =
  | { outcome: 'valid'; version: string; origin?: 'config map' }
  | { outcome: 'absent'; defaults: string }
  | { outcome: 'invalid'; defaults: string; problems: ConfigProblem[] };

/**
 * The mesh configuration, or the networks. Without a file, the ConfigMap of the watched cluster applies. An invalid or deleted file changes nothing;
 * before the first valid one, the defaults apply.
 */
export const meshConfigMachine = setup({
  types: {
    context: {} as MeshConfigContext,
    input: {} as MeshConfigInput,
    events: {} as SettingsLoad | FilesChanged,
    children: {} as { files: 'watchFile'; reading: 'readSettings' },
  },
  actors: {
    /** The file need not exist; links on its path are watched, too. */
    watchFile: callbackEffect<{ type: never }, { file: string }>('watchFile'),
    readSettings: promiseEffect<SettingsReading, { name: SettingsName; file: string }>('readSettings'),
  },
  delays: {
    debounceTime: ({ context }) => context.settleMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    isUsable: (_, params: SettingsReading) => params.outcome !== 'invalid',
    isChanged: ({ context }, params: SettingsReading) =>
      params.outcome === 'valid' && params.version !== context.version,
    isInvalid: (_, params: SettingsReading) => params.outcome === 'invalid',
    isReported: ({ context }, params: SettingsReading) =>
      params.outcome === 'invalid' && JSON.stringify(params.problems) === JSON.stringify(context.rejected),
  },
  actions: {
    recordVersion: assign({
      version: (_, params: SettingsReading) => versionOf(params),
      rejected: (_, params: SettingsReading) => problemsOf(params),
    }),
    applySettings: (_, _params: { version: string }) => {},
    reportLoaded: sendParent(
      ({ context }, params: SettingsReading): SettingsLoaded => ({
        type: 'settings.loaded',
        name: context.name,
        origin: params.outcome === 'valid' ? (params.origin ?? 'file') : 'defaults',
        version: context.version,
      }),
    ),
    /** The mesh configuration also names sources and bundle endpoints. */
    reportChanged: enqueueActions(({ context: { name, version }, enqueue }) => {
      enqueue.sendParent({ type: 'settings.changed', name, version } satisfies SettingsChanged);
      if (name !== 'mesh') return;
      enqueue.sendTo(peer('config-controller'), { type: 'mesh.changed' } satisfies MeshChanged);
      enqueue.sendTo(peer('trust-bundles'), { type: 'mesh.changed' } satisfies MeshChanged);
    }),
    reportRejected: sendParent(
      ({ context }, params: { problems: ConfigProblem[] }): SettingsRejected => ({
        type: 'settings.rejected',
        name: context.name,
        problems: params.problems,
      }),
    ),
    recordRejected: assign({ rejected: (_, params: SettingsReading) => problemsOf(params) }),
    /** Any resource may depend on these settings. */
    requestPush: sendTo(
      peer('push'),
      ({ context }): PushRequest => ({
        type: 'push.request',
        configs: [],
        forced: true,
        reasons: context.name === 'mesh' ? { global: 1 } : { networks: 1 },
      }),
    ),
    countFailure: assign({ failures: ({ context }) => incrementFailures(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    readAgain: raise({ type: 'files.changed', path: '' }),
  },
}).createMachine({
  id: 'mesh-config',
  description: 'A file of mesh-wide settings.',
  meta: { timeline: meshConfigTimeline },
  context: ({ input }) => ({ ...input, version: '', failures: 0, rejected: [] }),
  initial: 'idle',
  states: {
    idle: {
      description: 'Not started.',
      meta: { waitsFor: 'settings.load, sent during the start' },
      on: { 'settings.load': 'active' },
    },
    active: {
      description: 'The file is watched before its first read, so that no change is missed.',
      invoke: {
        id: 'files',
        src: 'watchFile',
        input: ({ context }) => ({ file: context.file }),
        onError: {
          description: 'The file cannot be watched: the last settings apply.',
          actions: {
            type: 'reportRejected',
            params: ({ context, event }) => ({ problems: [fileProblem(context.file, event.error)] }),
          },
        },
      },
      on: { 'settings.load': { description: 'The settings are loaded already.' } },
      initial: 'loading',
      states: {
        loading: {
          description: 'Reads the file for the first time.',
          meta: { waitsFor: 'reading a file, or the first list of a cluster; /ready reports it' },
          invoke: {
            id: 'reading',
            src: 'readSettings',
            input: ({ context }) => ({ name: context.name, file: context.file }),
            onDone: [
              {
                guard: { type: 'isUsable', params: ({ event }) => event.output },
                target: 'unchanged',
                actions: [
                  { type: 'recordVersion', params: ({ event }) => event.output },
                  { type: 'applySettings', params: ({ event }) => ({ version: versionOf(event.output) }) },
                  { type: 'reportLoaded', params: ({ event }) => event.output },
                ],
              },
              {
                description: 'The defaults apply, and the errors are reported.',
                target: 'unchanged',
                actions: [
                  { type: 'reportRejected', params: ({ event }) => ({ problems: problemsOf(event.output) }) },
                  { type: 'recordVersion', params: ({ event }) => event.output },
                  { type: 'applySettings', params: ({ event }) => ({ version: versionOf(event.output) }) },
                  { type: 'reportLoaded', params: ({ event }) => event.output },
                ],
              },
            ],
          },
          initial: 'current',
          states: {
            current: { on: { 'files.changed': 'outdated' } },
            outdated: {
              on: { 'files.changed': {} },
              description: 'The file changed during the read. The result applies, and the file is read again.',
              exit: 'readAgain',
            },
          },
        },
        unchanged: {
          description: 'The file has not changed since it was read.',
          meta: { waitsFor: 'a change of the file: normal operation' },
          entry: 'resetFailures',
          on: { 'files.changed': 'debouncing' },
        },
        debouncing: {
          description: 'The file is being written. The delay counts from the first event.',
          after: { debounceTime: 'reading' },
          on: { 'files.changed': { description: 'The pending read includes it.' } },
        },
        reading: {
          description: 'Reads the file again. The last valid settings apply.',
          meta: { waitsFor: 'reading a file; the last valid settings still apply' },
          invoke: {
            id: 'reading',
            src: 'readSettings',
            input: ({ context }) => ({ name: context.name, file: context.file }),
            onDone: [
              {
                guard: { type: 'isChanged', params: ({ event }) => event.output },
                target: 'unchanged',
                actions: [
                  { type: 'recordVersion', params: ({ event }) => event.output },
                  { type: 'applySettings', params: ({ event }) => ({ version: versionOf(event.output) }) },
                  'reportChanged',
                  'requestPush',
                ],
              },
              {
                guard: { type: 'isReported', params: ({ event }) => event.output },
                description: 'The file changed, but not its errors.',
                target: 'unchanged',
              },
              {
                guard: { type: 'isInvalid', params: ({ event }) => event.output },
                target: 'unchanged',
                actions: [
                  { type: 'reportRejected', params: ({ event }) => ({ problems: problemsOf(event.output) }) },
                  { type: 'recordRejected', params: ({ event }) => event.output },
                ],
              },
              {
                description: 'The value is unchanged, or the file does not exist: the settings are kept.',
                target: 'unchanged',
                actions: { type: 'recordRejected', params: ({ event }) => event.output },
              },
            ],
            onError: {
              target: 'backing off',
              actions: [
                'countFailure',
                {
                  type: 'reportRejected',
                  params: ({ context, event }) => ({ problems: [fileProblem(context.file, event.error)] }),
                },
              ],
            },
          },
          initial: 'current',
          states: {
            current: { on: { 'files.changed': 'outdated' } },
            outdated: { exit: 'readAgain', on: { 'files.changed': {} } },
          },
        },
        'backing off': {
          description: 'The last read failed. It is repeated, at increasing intervals and when the file changes.',
          after: { retryDelay: 'reading' },
          on: { 'files.changed': 'debouncing' },
        },
      },
    },
  },
});

function versionOf(settingsReading: SettingsReading): string {
  return settingsReading.outcome === 'valid' ? settingsReading.version : settingsReading.defaults;
}

function problemsOf(settingsReading: SettingsReading): ConfigProblem[] {
  return settingsReading.outcome === 'invalid' ? settingsReading.problems : [];
}

function fileProblem(file: string, error: unknown): ConfigProblem {
  return { severity: 'error', place: { file, line: 0 }, object: '', field: '', message: reasonOf(error) };
}
