import { and, assign, enqueueActions, sendParent, sendTo, setup, stateIn } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type {
  ConfigChanged,
  ConfigRejected,
  FilesMissing,
  FilesPending,
  WatchedFilesChanged,
  WatchStart,
} from '../protocol.ts';
import type { AgentSettings } from '../settings.ts';
import { certWatcherTimeline } from '../timeline.ts';
import { directoryWatchMachine } from './directory-watch.machine.ts';

type WatchSettings = AgentSettings['watch'];

interface WatchContext extends WatchSettings {
  /** Number of files at the last start of Envoy; `null` before the first start. */
  activeFiles: number | null;
  outdatedReadings: number;
  missing: string[];
  /** How long the files had been awaited at the last report. */
  waitedMs: number;
  readPauseMs: number;
}

interface FilesReading {
  digest: string;
  files: string[];
  /** Why Envoy cannot use the files; empty if it can. */
  problems: string[];
  code?: string;
  /** Why the files could not be validated; absent if they were. */
  notValidated?: string;
}

const maxOutdatedReads = 6;
/** Delay of the first report of missing files; the interval doubles. */
const firstNoticeMs = 1_000;
/** A validation can fail for lack of resources. */
const validationRetryMs = 30_000;
/** Files are read in milliseconds unless the file system hangs. */
const filesLimitMs = 10_000;
/** Envoy runs three times, at most 30 s each. */
const validationLimitMs = 90_000;
const firstReadPauseMs = 500;
const maxReadPauseMs = 60_000;

/** Changes are read a fixed delay after the first change of a batch. */
export const certWatcherMachine = setup({
  types: {
    context: {} as WatchContext,
    input: {} as WatchSettings,
    events: {} as WatchStart | FilesPending | WatchedFilesChanged,
    children: {} as { [directory: `directory-${number}`]: 'directory'; wait: 'waitForFiles'; digest: 'digestFiles' },
  },
  actors: {
    waitForFiles: callbackEffect<{ type: never }, { files: string[] }>('waitForFiles'),
    directory: directoryWatchMachine,
    /** Skips unreadable files. With `judge`, Envoy also validates the files. */
    digestFiles: promiseEffect<FilesReading, { directories: string[]; judge: boolean }>('digestFiles'),
  },
  delays: {
    requiredFilesLimit: ({ context }) => context.requiredFilesLimitMs,
    /** Reports after 1 s, 3 s, 7 s, …: each interval is twice the previous one. */
    notice: ({ context }) => context.waitedMs + firstNoticeMs,
    watchDelay: ({ context }) => context.delayMs,
    validationRetry: validationRetryMs,
    /** Files are validated only after the first start. */
    readingLimit: ({ context }) => filesLimitMs + (context.activeFiles === null ? 0 : validationLimitMs),
    readRetry: ({ context }) => context.readPauseMs,
  },
  guards: {
    hasNonePending: (_, { missing }: FilesPending) => missing.length === 0,
    areAllPresent: (_, { missing, unreachable }: FilesPending) => missing.length + unreachable.length === 0,
    isOutdated: stateIn({ watching: { reading: 'outdated' } }),
    hasActiveFiles: ({ context }) => context.activeFiles !== null,
    changesContinuously: ({ context }) => context.outdatedReadings >= maxOutdatedReads,
    isNotValidated: ({ context }, { notValidated }: FilesReading) =>
      context.activeFiles !== null && notValidated !== undefined,
    /** These files would leave the running Envoy without a certificate. The first start does not wait for valid files. */
    lacksValidCertificate: ({ context }, { files, problems }: FilesReading) =>
      context.activeFiles !== null && (problems.length > 0 || (files.length === 0 && context.activeFiles > 0)),
  },
  actions: {
    watchDirectories: enqueueActions(({ context, enqueue }) => {
      for (const [index, directory] of [...new Set(context.directories)].entries()) {
        enqueue.spawnChild('directory', { id: `directory-${index}`, input: { directory } });
      }
    }),
    recordMissing: assign({ missing: (_, { missing }: FilesPending) => missing }),
    extendWait: assign({ waitedMs: ({ context }) => context.waitedMs * 2 + firstNoticeMs }),
    reportWaiting: sendParent(
      ({ context: { missing, waitedMs } }): FilesMissing => ({
        type: 'files.missing',
        files: missing,
        waitedMs,
        awaited: true,
      }),
    ),
    reportStartWithoutFiles: sendParent(
      ({ context: { missing, requiredFilesLimitMs } }): FilesMissing => ({
        type: 'files.missing',
        files: missing,
        waitedMs: requiredFilesLimitMs,
        awaited: false,
      }),
    ),
    reportUnreachable: sendParent(
      ({ context: { waitedMs } }, { unreachable }: FilesPending): FilesMissing => ({
        type: 'files.missing',
        files: unreachable,
        waitedMs,
        awaited: false,
      }),
    ),
    sendConfig: sendTo(
      peer('supervisor'),
      (_, params: FilesReading): ConfigChanged => ({
        type: 'config.changed',
        digest: params.digest,
        files: params.files.length,
      }),
    ),
    activateFiles: assign({ activeFiles: (_, params: FilesReading) => params.files.length }),
    activateNoFiles: assign({ activeFiles: 0 }),
    rejectFiles: sendTo(
      peer('supervisor'),
      (_, { problems, code }: FilesReading): ConfigRejected => ({
        type: 'config.rejected',
        reason: problems.length > 0 ? problems.join('; ') : 'all certificate files were removed',
        ...(code !== undefined && { code }),
      }),
    ),
    reportNotValidated: sendTo(
      peer('supervisor'),
      (_, params: { reason: string }): ConfigRejected => ({
        type: 'config.rejected',
        reason: `Envoy could not validate the certificates: ${params.reason}`,
      }),
    ),
    reportContinuousChanges: sendTo(
      peer('supervisor'),
      (): ConfigRejected => ({
        type: 'config.rejected',
        reason: `certificate files changed during each of ${maxOutdatedReads} reads; they are applied when they stop changing`,
      }),
    ),
    reportReadTimeout: sendTo(
      peer('supervisor'),
      ({ context }): ConfigRejected => ({
        type: 'config.rejected',
        reason: `certificate files in ${context.directories.join(', ')} not read in time: the file system does not respond`,
      }),
    ),
    lengthenReadPause: assign({
      readPauseMs: ({ context }) => Math.min(maxReadPauseMs, Math.max(firstReadPauseMs, context.readPauseMs * 2)),
    }),
    resetReadPause: assign({ readPauseMs: 0 }),
    countOutdatedRead: assign({ outdatedReadings: ({ context }) => context.outdatedReadings + 1 }),
    resetOutdatedReads: assign({ outdatedReadings: 0 }),
    /** Envoy starts without files that cannot be read; the next change is read. */
    sendEmptyConfig: sendTo(
      peer('supervisor'),
      (): ConfigChanged => ({ type: 'config.changed', digest: '', files: 0 }),
    ),
  },
}).createMachine({
  id: 'cert-watcher',
  description: 'Watches certificate directories.',
  meta: { timeline: certWatcherTimeline },
  context: ({ input }) => ({
    ...input,
    activeFiles: null,
    outdatedReadings: 0,
    missing: input.requiredFiles,
    waitedMs: 0,
    readPauseMs: 0,
  }),
  on: {
    'watch.start': {},
    // There is no watch before the first reading.
    'files.changed': {},
  },
  initial: 'idle',
  states: {
    idle: {
      meta: { waitsFor: 'watch.start, which the agent sends at once' },
      on: { 'watch.start': 'waiting for files' },
    },
    'waiting for files': {
      description: 'Files that Envoy needs at its start may still appear.',
      after: {
        requiredFilesLimit: {
          target: 'watching',
          actions: 'reportStartWithoutFiles',
          description: 'Envoy is started without them: the next change brings them.',
        },
      },
      invoke: {
        id: 'wait',
        src: 'waitForFiles',
        input: ({ context }) => ({ files: context.requiredFiles }),
        onError: 'watching',
      },
      on: {
        'files.pending': [
          { guard: { type: 'areAllPresent', params: ({ event }) => event }, target: 'watching' },
          {
            guard: { type: 'hasNonePending', params: ({ event }) => event },
            target: 'watching',
            actions: { type: 'reportUnreachable', params: ({ event }) => event },
            description:
              'The missing files cannot be read: their path is below a file, or the agent has no permission.',
          },
          { actions: { type: 'recordMissing', params: ({ event }) => event } },
        ],
      },
      initial: 'unchanged',
      states: {
        unchanged: {
          description: 'Reports the missing files at intervals that double.',
          after: { notice: { target: 'unchanged', reenter: true, actions: ['extendWait', 'reportWaiting'] } },
        },
      },
    },
    watching: {
      description: 'Watches directories, not files, because Kubernetes replaces files by switching a symbolic link.',
      entry: 'watchDirectories',
      initial: 'reading',
      states: {
        reading: {
          description: 'Hashes the contents. If Envoy is running, a second Envoy validates them.',
          after: {
            readingLimit: [
              // Envoy keeps the active files.
              {
                guard: 'hasActiveFiles',
                target: 'read backoff',
                actions: ['lengthenReadPause', 'reportReadTimeout'],
              },
              {
                target: 'read backoff',
                actions: ['sendEmptyConfig', 'activateNoFiles', 'lengthenReadPause', 'reportReadTimeout'],
                description: 'Envoy is started without them, as without files that cannot be read.',
              },
            ],
          },
          invoke: {
            id: 'digest',
            src: 'digestFiles',
            input: ({ context }) => ({ directories: context.directories, judge: context.activeFiles !== null }),
            onDone: [
              {
                guard: and(['isOutdated', 'hasActiveFiles', 'changesContinuously']),
                target: 'debouncing',
                actions: ['reportContinuousChanges', 'resetOutdatedReads'],
              },
              { guard: and(['isOutdated', 'hasActiveFiles']), target: 'debouncing', actions: 'countOutdatedRead' },
              {
                guard: { type: 'isNotValidated', params: ({ event }) => event.output },
                target: 'validation backoff',
                actions: [
                  { type: 'reportNotValidated', params: ({ event }) => ({ reason: event.output.notValidated ?? '' }) },
                  'resetOutdatedReads',
                ],
              },
              {
                guard: { type: 'lacksValidCertificate', params: ({ event }) => event.output },
                target: 'unchanged',
                actions: [{ type: 'rejectFiles', params: ({ event }) => event.output }, 'resetOutdatedReads'],
              },
              {
                guard: 'isOutdated',
                target: 'debouncing',
                actions: [
                  { type: 'activateFiles', params: ({ event }) => event.output },
                  { type: 'sendConfig', params: ({ event }) => event.output },
                ],
              },
              {
                target: 'unchanged',
                actions: [
                  { type: 'activateFiles', params: ({ event }) => event.output },
                  { type: 'sendConfig', params: ({ event }) => event.output },
                  'resetOutdatedReads',
                ],
              },
            ],
            onError: [
              {
                guard: 'hasActiveFiles',
                target: 'validation backoff',
                actions: { type: 'reportNotValidated', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
              },
              { guard: 'isOutdated', target: 'debouncing', actions: ['sendEmptyConfig', 'activateNoFiles'] },
              { target: 'unchanged', actions: ['sendEmptyConfig', 'activateNoFiles'] },
            ],
          },
          initial: 'current',
          states: {
            current: { on: { 'files.changed': 'outdated' } },
            outdated: {
              description: 'Files changed during the reading, so they are read again.',
              on: { 'files.changed': {} },
            },
          },
        },
        unchanged: {
          entry: 'resetReadPause',
          meta: { waitsFor: 'a change of the files: normal operation' },
          description: 'Nothing has changed since the last reading.',
          on: { 'files.changed': 'debouncing' },
        },
        debouncing: {
          entry: 'resetReadPause',
          description: 'Files are changing. The delay is counted from the first change.',
          after: { watchDelay: 'reading' },
          on: { 'files.changed': {} },
        },
        'read backoff': {
          description:
            'The file system did not respond. Retries at intervals that double up to one minute; late results are ignored.',
          after: { readRetry: 'reading' },
          on: { 'files.changed': { description: 'Read after the pause.' } },
        },
        'validation backoff': {
          entry: 'resetReadPause',
          description: 'The files could not be validated: Envoy keeps the active ones.',
          after: { validationRetry: 'reading' },
          on: { 'files.changed': 'debouncing' },
        },
      },
    },
  },
});
