import { and, assign, sendTo, setup, stateIn } from 'xstate';
import { callbackEffect, promiseEffect } from '../effect.ts';
import type { ConfigChanged, ConfigRejected, FilesChanged, WatchStart } from './protocol.ts';
import type { AgentSettings } from './settings.ts';

type WatchSettings = AgentSettings['watch'];

interface WatchContext extends WatchSettings {
  /** How many files Envoy was last started for; null while it was not. */
  filesInForce: number | null;
}

/** What a reading of the directories found. */
interface Reading {
  digest: string;
  files: string[];
  /** Why Envoy could not use them; empty when it could. */
  problems: string[];
}

/**
 * Turns changes of certificate files into configuration for the supervisor: the first one at once, which starts Envoy;
 * a later one a fixed delay after the first change of a batch (spec/agent.md §3.2).
 */
export const certWatcherMachine = setup({
  types: {
    context: {} as WatchContext,
    input: {} as WatchSettings,
    events: {} as WatchStart | FilesChanged,
    children: {} as { wait: 'waitForFiles'; files: 'watchFiles'; digest: 'digestFiles' },
  },
  actors: {
    /** Resolves when every file is there; waits as long as it takes. */
    waitForFiles: promiseEffect<{ missing: string[] }, { files: string[]; limitMs: number }>('waitForFiles'),
    /** Watches directories, also those that do not exist yet. */
    watchFiles: callbackEffect<{ type: never }, { directories: string[] }>('watchFiles'),
    /** SHA-256 over the contents of the directories' certificate files. A file that cannot be read adds nothing. */
    digestFiles: promiseEffect<Reading, { directories: string[] }>('digestFiles'),
  },
  delays: { watchDelay: ({ context }) => context.delayMs },
  guards: {
    isOutdated: stateIn({ watching: { reading: 'outdated' } }),
    someAreInForce: ({ context }) => context.filesInForce !== null,
    /** Envoy runs, and these files would leave it without a certificate. The first start is not held up by them. */
    wouldDoHarm: ({ context }, { files, problems }: Reading) =>
      context.filesInForce !== null && (problems.length > 0 || (files.length === 0 && context.filesInForce > 0)),
  },
  actions: {
    sendConfig: sendTo(
      ({ system }) => system.get('supervisor'),
      (_, params: Reading): ConfigChanged => ({
        type: 'config.changed',
        digest: params.digest,
        files: params.files.length,
      }),
    ),
    putInForce: assign({ filesInForce: (_, params: Reading) => params.files.length }),
    rejectFiles: sendTo(
      ({ system }) => system.get('supervisor'),
      (_, { problems }: Reading): ConfigRejected => ({
        type: 'config.rejected',
        reason: problems.length > 0 ? problems.join('; ') : 'every certificate file is gone',
      }),
    ),
    /** What cannot be read at all counts as empty: Envoy is started anyway, and the next change brings another look. */
    sendEmptyConfig: sendTo(
      ({ system }) => system.get('supervisor'),
      (): ConfigChanged => ({ type: 'config.changed', digest: '', files: 0 }),
    ),
  },
}).createMachine({
  id: 'cert-watcher',
  description: 'Watches certificate directories.',
  context: ({ input }) => ({ ...input, filesInForce: null }),
  // Begins once.
  on: { 'watch.start': {} },
  initial: 'idle',
  states: {
    idle: { on: { 'watch.start': 'waiting for files' } },
    'waiting for files': {
      description: 'Files that Envoy needs at its start may still be on their way.',
      invoke: {
        id: 'wait',
        src: 'waitForFiles',
        input: ({ context }) => ({ files: context.requiredFiles, limitMs: context.requiredFilesLimitMs }),
        onDone: 'watching',
        onError: 'watching',
      },
    },
    watching: {
      description: 'Directories are watched, not files: Kubernetes replaces files by switching a symbolic link.',
      invoke: {
        id: 'files',
        src: 'watchFiles',
        input: ({ context }) => ({ directories: context.directories }),
      },
      initial: 'reading',
      states: {
        reading: {
          description: 'The contents are hashed.',
          invoke: {
            id: 'digest',
            src: 'digestFiles',
            input: ({ context }) => ({ directories: context.directories }),
            onDone: [
              { guard: and(['isOutdated', 'someAreInForce']), target: 'settling' },
              {
                guard: { type: 'wouldDoHarm', params: ({ event }) => event.output },
                target: 'quiet',
                actions: { type: 'rejectFiles', params: ({ event }) => event.output },
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
                ],
              },
            ],
            onError: { target: 'quiet', actions: 'sendEmptyConfig' },
          },
          initial: 'current',
          states: {
            current: { on: { 'files.changed': 'outdated' } },
            outdated: { description: 'Files changed while they were read: they are read again.' },
          },
        },
        quiet: {
          description: 'Nothing has changed since the last reading.',
          on: { 'files.changed': 'settling' },
        },
        settling: {
          description: 'A batch of changes is under way; the delay counts from its first.',
          after: { watchDelay: 'reading' },
        },
      },
    },
  },
});
