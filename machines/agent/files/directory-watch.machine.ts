import { assign, sendParent, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import type { DirectoryFound, DirectoryMissing, WatchBegan, WatchedFilesChanged, WatchFailed } from '../protocol.ts';
import { noLane } from '../timeline.ts';

interface DirectoryInput {
  directory: string;
}

interface DirectoryContext extends DirectoryInput {
  /** Hash of the content when the last watch failed; `null` if unknown. */
  knownHash: string | null;
  pauseMs: number;
}

const firstPauseMs = 500;
const maxPauseMs = 60_000;
/** The kernel responds immediately unless the file system hangs. */
const setUpLimitMs = 10_000;
/** The backoff is reset after a watch of this time. */
const trialMs = 60_000;

/** Also watches another directory that replaces the certificate directory. */
export const directoryWatchMachine = setup({
  types: {
    context: {} as DirectoryContext,
    input: {} as DirectoryInput,
    events: {} as WatchedFilesChanged | WatchBegan | WatchFailed | DirectoryMissing | DirectoryFound,
    children: {} as { watch: 'watchDirectory' },
  },
  actors: {
    /** Content that differs from `knownHash` is reported as a change. */
    watchDirectory: callbackEffect<{ type: never }, { directory: string; knownHash: string | null }>('watchDirectory'),
  },
  delays: {
    pause: ({ context }) => context.pauseMs,
    setUpLimit: setUpLimitMs,
    trial: trialMs,
  },
  guards: {
    hasRecentFailure: ({ context }) => context.pauseMs > 0,
    hasNoSnapshot: ({ context }) => context.knownHash === null,
  },
  actions: {
    forwardChange: sendParent((_, params: WatchedFilesChanged) => params),
    reportChanged: sendParent(
      ({ context }): WatchedFilesChanged => ({ type: 'files.changed', path: context.directory }),
    ),
    lengthenPause: assign({
      pauseMs: ({ context }) => Math.min(maxPauseMs, Math.max(firstPauseMs, context.pauseMs * 2)),
    }),
    resetPause: assign({ pauseMs: 0 }),
    recordSnapshot: assign({ knownHash: (_, { knownHash }: WatchFailed) => knownHash }),
    clearSnapshot: assign({ knownHash: null }),
  },
}).createMachine({
  id: 'directory-watch',
  description: 'Keeps one certificate directory watched.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, knownHash: null, pauseMs: 0 }),
  initial: 'watching',
  states: {
    watching: {
      description: 'The directory is watched, whether it exists or not.',
      invoke: {
        id: 'watch',
        src: 'watchDirectory',
        input: ({ context: { directory, knownHash } }) => ({ directory, knownHash }),
        onError: { target: 'backing off', actions: ['clearSnapshot', 'lengthenPause'] },
      },
      on: {
        'files.changed': { actions: { type: 'forwardChange', params: ({ event }) => event } },
        'watch.failed': {
          target: 'backing off',
          actions: [{ type: 'recordSnapshot', params: ({ event }) => event }, 'lengthenPause'],
        },
        'directory.missing': '.missing',
        'directory.found': { target: '.setting up', description: 'A different directory, which is not watched yet.' },
      },
      initial: 'setting up',
      states: {
        'setting up': {
          description: 'Registers the watch.',
          after: {
            setUpLimit: { target: '#directory-watch.backing off', actions: ['clearSnapshot', 'lengthenPause'] },
          },
          on: {
            'watch.began': [{ guard: 'hasRecentFailure', target: 'verifying' }, { target: 'established' }],
            // The directory was replaced again during the setup: the limit is not extended.
            'directory.found': {},
          },
        },
        verifying: {
          description:
            'The kernel reports changes. A previous watch failed, so this one must last before the pause is reset.',
          after: { trial: { target: 'established', actions: 'resetPause' } },
        },
        established: {
          meta: { waitsFor: 'a change in the directory: normal operation' },
          description: 'The kernel reports changes.',
        },
        missing: {
          meta: { waitsFor: 'a directory at the path, which is checked every second' },
          description: 'There is no directory at the path.',
        },
      },
    },
    'backing off': {
      description: 'The watch failed. Changes during the pause are detected after it; pauses double up to one minute.',
      after: {
        pause: [
          {
            guard: 'hasNoSnapshot',
            target: 'watching',
            actions: 'reportChanged',
            description: 'It is unknown what changed during the pause, so the files are read again.',
          },
          { target: 'watching' },
        ],
      },
    },
  },
});
