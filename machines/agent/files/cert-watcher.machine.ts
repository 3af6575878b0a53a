import { and, assign, enqueueActions, sendParent, sendTo, setup, stateIn } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type {
  ConfigChanged,
  ConfigRejected,
  FilesAwaited,
  FilesChanged,
  FilesMissing,
  WatchStart,
} from '../protocol.ts';
import type { AgentSettings } from '../settings.ts';
import { certWatcherTimeline } from '../timeline.ts';
import { directoryWatchMachine } from './directory-watch.machine.ts';

type WatchSettings = AgentSettings['watch'];

interface WatchContext extends WatchSettings {
  /** How many files Envoy was last started for; null while it was not. */
  filesInForce: number | null;
  /** Readings in a row during which files changed. */
  outdatedReadings: number;
  /** Files that the first start needs and that may still come. */
  missing: string[];
  /** How long they were waited for when people were told last. */
  waitedMs: number;
  /** The last pause after a reading that was given up; 0 while none was lately. */
  readPauseMs: number;
}

/** What a reading of the directories found. */
interface Reading {
  digest: string;
  files: string[];
  /** Why Envoy could not use them; empty when it could. */
  problems: string[];
  /** Codes of the problems, for the log. */
  code?: string;
  /** Why Envoy could not be asked whether it takes them; absent when it was. */
  notJudged?: string;
}

/** How many outdated readings in a row people are told of. */
const outdatedReadingsTold = 6;
/** The pause before people are told which files are waited for; it doubles each time. */
const firstNoticeMs = 1_000;
/** Envoy could not be asked: the host is short of something. */
const askAgainMs = 30_000;
/** Small files are read in milliseconds; a file system that hangs does not answer at all. */
const filesLimitMs = 10_000;
/** Three runs of an Envoy that is asked, each of which has 30 s. */
const verdictLimitMs = 90_000;
/** After a reading that was given up, as after a watch that failed. */
const firstReadPauseMs = 500;
const longestReadPauseMs = 60_000;

/**
 * Turns changes of certificate files into configuration for the supervisor: the first one at once, which starts Envoy;
 * a later one a fixed delay after the first change of a batch (spec/agent.md §3.2).
 */
export const certWatcherMachine = setup({
  types: {
    context: {} as WatchContext,
    input: {} as WatchSettings,
    events: {} as WatchStart | FilesAwaited | FilesChanged,
    children: {} as { [directory: `directory-${number}`]: 'directory'; wait: 'waitForFiles'; digest: 'digestFiles' },
  },
  actors: {
    /** Says which files are missing: at once, and whenever that changes. */
    waitForFiles: callbackEffect<{ type: never }, { files: string[] }>('waitForFiles'),
    directory: directoryWatchMachine,
    /**
     * SHA-256 over the contents of the directories' certificate files. A file that cannot be read adds nothing. `judge`: Envoy
     * itself says whether it takes them.
     */
    digestFiles: promiseEffect<Reading, { directories: string[]; judge: boolean }>('digestFiles'),
  },
  delays: {
    requiredFilesLimit: ({ context }) => context.requiredFilesLimitMs,
    /** After 1 s, 3 s, 7 s, …: as long again as was waited, and a second. */
    notice: ({ context }) => context.waitedMs + firstNoticeMs,
    watchDelay: ({ context }) => context.delayMs,
    askAgain: askAgainMs,
    /** Before the first start Envoy is not asked. */
    readingLimit: ({ context }) => filesLimitMs + (context.filesInForce === null ? 0 : verdictLimitMs),
    readAgain: ({ context }) => context.readPauseMs,
  },
  guards: {
    noneMayCome: (_, { missing }: FilesAwaited) => missing.length === 0,
    allAreThere: (_, { missing, unreachable }: FilesAwaited) => missing.length + unreachable.length === 0,
    isOutdated: stateIn({ watching: { reading: 'outdated' } }),
    someAreInForce: ({ context }) => context.filesInForce !== null,
    changesWithoutEnd: ({ context }) => context.outdatedReadings >= outdatedReadingsTold,
    couldNotBeJudged: ({ context }, { notJudged }: Reading) => context.filesInForce !== null && notJudged !== undefined,
    /** Envoy runs, and these files would leave it without a certificate. The first start is not held up by them. */
    wouldDoHarm: ({ context }, { files, problems }: Reading) =>
      context.filesInForce !== null && (problems.length > 0 || (files.length === 0 && context.filesInForce > 0)),
  },
  actions: {
    watchDirectories: enqueueActions(({ context, enqueue }) => {
      for (const [index, directory] of [...new Set(context.directories)].entries()) {
        enqueue.spawnChild('directory', { id: `directory-${index}`, input: { directory } });
      }
    }),
    rememberMissing: assign({ missing: (_, { missing }: FilesAwaited) => missing }),
    countWait: assign({ waitedMs: ({ context }) => context.waitedMs * 2 + firstNoticeMs }),
    tellWaiting: sendParent(
      ({ context: { missing, waitedMs } }): FilesMissing => ({
        type: 'files.missing',
        files: missing,
        waitedMs,
        awaited: true,
      }),
    ),
    tellNotAwaited: sendParent(
      ({ context: { missing, requiredFilesLimitMs } }): FilesMissing => ({
        type: 'files.missing',
        files: missing,
        waitedMs: requiredFilesLimitMs,
        awaited: false,
      }),
    ),
    tellUnreachable: sendParent(
      ({ context: { waitedMs } }, { unreachable }: FilesAwaited): FilesMissing => ({
        type: 'files.missing',
        files: unreachable,
        waitedMs,
        awaited: false,
      }),
    ),
    sendConfig: sendTo(
      peer('supervisor'),
      (_, params: Reading): ConfigChanged => ({
        type: 'config.changed',
        digest: params.digest,
        files: params.files.length,
      }),
    ),
    putInForce: assign({ filesInForce: (_, params: Reading) => params.files.length }),
    putNothingInForce: assign({ filesInForce: 0 }),
    rejectFiles: sendTo(
      peer('supervisor'),
      (_, { problems, code }: Reading): ConfigRejected => ({
        type: 'config.rejected',
        reason: problems.length > 0 ? problems.join('; ') : 'all certificate files were removed',
        ...(code !== undefined && { code }),
      }),
    ),
    tellNotJudged: sendTo(
      peer('supervisor'),
      (_, params: { reason: string }): ConfigRejected => ({
        type: 'config.rejected',
        reason: `Envoy could not validate the certificates: ${params.reason}`,
      }),
    ),
    tellOutdated: sendTo(
      peer('supervisor'),
      (): ConfigRejected => ({
        type: 'config.rejected',
        reason: `certificate files changed during each of ${outdatedReadingsTold} reads; they are applied when they stop changing`,
      }),
    ),
    tellUnread: sendTo(
      peer('supervisor'),
      ({ context }): ConfigRejected => ({
        type: 'config.rejected',
        reason: `certificate files in ${context.directories.join(', ')} not read in time: the file system does not respond`,
      }),
    ),
    lengthenReadPause: assign({
      readPauseMs: ({ context }) => Math.min(longestReadPauseMs, Math.max(firstReadPauseMs, context.readPauseMs * 2)),
    }),
    forgetReadPauses: assign({ readPauseMs: 0 }),
    countOutdated: assign({ outdatedReadings: ({ context }) => context.outdatedReadings + 1 }),
    forgetOutdated: assign({ outdatedReadings: 0 }),
    /** What cannot be read at all counts as empty: Envoy is started anyway, and the next change brings another look. */
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
    filesInForce: null,
    outdatedReadings: 0,
    missing: input.requiredFiles,
    waitedMs: 0,
    readPauseMs: 0,
  }),
  on: {
    // Begins once.
    'watch.start': {},
    // Nobody watches before the first reading, which finds what is there then.
    'files.changed': {},
  },
  initial: 'idle',
  states: {
    idle: {
      meta: { waitsFor: 'watch.start, which the agent sends at once' },
      on: { 'watch.start': 'waiting for files' },
    },
    'waiting for files': {
      description: 'Files that Envoy needs at its start may still be on their way.',
      after: {
        requiredFilesLimit: {
          target: 'watching',
          actions: 'tellNotAwaited',
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
        'files.awaited': [
          { guard: { type: 'allAreThere', params: ({ event }) => event }, target: 'watching' },
          {
            guard: { type: 'noneMayCome', params: ({ event }) => event },
            target: 'watching',
            actions: { type: 'tellUnreachable', params: ({ event }) => event },
            description: 'What is missing can never be seen: below a file, or not ours to see.',
          },
          { actions: { type: 'rememberMissing', params: ({ event }) => event } },
        ],
      },
      initial: 'quiet',
      states: {
        quiet: {
          description: 'People are told which ones are missing, at pauses that double.',
          after: { notice: { target: 'quiet', reenter: true, actions: ['countWait', 'tellWaiting'] } },
        },
      },
    },
    watching: {
      description: 'Directories are watched, not files: Kubernetes replaces files by switching a symbolic link.',
      entry: 'watchDirectories',
      initial: 'reading',
      states: {
        reading: {
          description:
            'The contents are hashed; where Envoy runs already, another one is asked whether it would take them.',
          after: {
            readingLimit: [
              // What Envoy runs with is better than nothing.
              {
                guard: 'someAreInForce',
                target: 'waiting to read again',
                actions: ['lengthenReadPause', 'tellUnread'],
              },
              {
                target: 'waiting to read again',
                actions: ['sendEmptyConfig', 'putNothingInForce', 'lengthenReadPause', 'tellUnread'],
                description: 'Envoy is started without them, as without files that cannot be read.',
              },
            ],
          },
          invoke: {
            id: 'digest',
            src: 'digestFiles',
            input: ({ context }) => ({ directories: context.directories, judge: context.filesInForce !== null }),
            onDone: [
              {
                guard: and(['isOutdated', 'someAreInForce', 'changesWithoutEnd']),
                target: 'settling',
                actions: ['tellOutdated', 'forgetOutdated'],
              },
              { guard: and(['isOutdated', 'someAreInForce']), target: 'settling', actions: 'countOutdated' },
              {
                guard: { type: 'couldNotBeJudged', params: ({ event }) => event.output },
                target: 'waiting to ask again',
                actions: [
                  { type: 'tellNotJudged', params: ({ event }) => ({ reason: event.output.notJudged ?? '' }) },
                  'forgetOutdated',
                ],
              },
              {
                guard: { type: 'wouldDoHarm', params: ({ event }) => event.output },
                target: 'quiet',
                actions: [{ type: 'rejectFiles', params: ({ event }) => event.output }, 'forgetOutdated'],
              },
              {
                guard: 'isOutdated',
                target: 'settling',
                actions: [
                  { type: 'putInForce', params: ({ event }) => event.output },
                  { type: 'sendConfig', params: ({ event }) => event.output },
                ],
              },
              {
                target: 'quiet',
                actions: [
                  { type: 'putInForce', params: ({ event }) => event.output },
                  { type: 'sendConfig', params: ({ event }) => event.output },
                  'forgetOutdated',
                ],
              },
            ],
            onError: [
              // What Envoy runs with is better than nothing.
              {
                guard: 'someAreInForce',
                target: 'waiting to ask again',
                actions: { type: 'tellNotJudged', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
              },
              { guard: 'isOutdated', target: 'settling', actions: ['sendEmptyConfig', 'putNothingInForce'] },
              { target: 'quiet', actions: ['sendEmptyConfig', 'putNothingInForce'] },
            ],
          },
          initial: 'current',
          states: {
            current: { on: { 'files.changed': 'outdated' } },
            outdated: {
              description: 'Files changed while they were read: they are read again.',
              on: { 'files.changed': {} },
            },
          },
        },
        quiet: {
          entry: 'forgetReadPauses',
          meta: { waitsFor: 'a change of the files: this is the work' },
          description: 'Nothing has changed since the last reading.',
          on: { 'files.changed': 'settling' },
        },
        settling: {
          entry: 'forgetReadPauses',
          description: 'A batch of changes is under way; the delay counts from its first.',
          after: { watchDelay: 'reading' },
          on: { 'files.changed': {} },
        },
        'waiting to read again': {
          description:
            'The file system has not answered. It is asked again after pauses that double to a minute; what it answers late is of no account.',
          after: { readAgain: 'reading' },
          on: { 'files.changed': { description: 'Read when the pause is over.' } },
        },
        'waiting to ask again': {
          entry: 'forgetReadPauses',
          description: 'Nobody said whether Envoy takes the files that are there: it goes on with those that it has.',
          after: { askAgain: 'reading' },
          on: { 'files.changed': 'settling' },
        },
      },
    },
  },
});
