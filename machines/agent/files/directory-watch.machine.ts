import { assign, sendParent, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import type { DirectoryFound, DirectoryMissing, FilesChanged, WatchBegan, WatchFailed } from '../protocol.ts';
import { noLane } from '../timeline.ts';

interface DirectoryInput {
  directory: string;
}

interface DirectoryContext extends DirectoryInput {
  /** What was there when the last watch failed, as a hash; null when that is not known. */
  seen: string | null;
  /** The last pause; 0 while no watch has failed lately. */
  pauseMs: number;
}

const firstPauseMs = 500;
const longestPauseMs = 60_000;
/** The kernel answers at once; a file system that hangs does not answer at all. */
const setUpLimitMs = 10_000;
/** How long a watch must hold for the next pause to be the first one again. */
const trialMs = 60_000;

/** Keeps one certificate directory watched, whatever directory is at its path, and says what changed in it. */
export const directoryWatchMachine = setup({
  types: {
    context: {} as DirectoryContext,
    input: {} as DirectoryInput,
    events: {} as FilesChanged | WatchBegan | WatchFailed | DirectoryMissing | DirectoryFound,
    children: {} as { watch: 'watchDirectory' },
  },
  actors: {
    /** `seen`: what was there before; where it is something else now, that is a change. */
    watchDirectory: callbackEffect<{ type: never }, { directory: string; seen: string | null }>('watchDirectory'),
  },
  delays: {
    pause: ({ context }) => context.pauseMs,
    setUpLimit: setUpLimitMs,
    trial: trialMs,
  },
  guards: {
    hasFailedLately: ({ context }) => context.pauseMs > 0,
    nothingIsKnown: ({ context }) => context.seen === null,
  },
  actions: {
    passOn: sendParent((_, params: FilesChanged) => params),
    tellChanged: sendParent(({ context }): FilesChanged => ({ type: 'files.changed', path: context.directory })),
    lengthenPause: assign({
      pauseMs: ({ context }) => Math.min(longestPauseMs, Math.max(firstPauseMs, context.pauseMs * 2)),
    }),
    forgetPauses: assign({ pauseMs: 0 }),
    rememberSeen: assign({ seen: (_, { seen }: WatchFailed) => seen }),
    forgetSeen: assign({ seen: null }),
  },
}).createMachine({
  id: 'directory-watch',
  description: 'Keeps one certificate directory watched.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, seen: null, pauseMs: 0 }),
  initial: 'watching',
  states: {
    watching: {
      description: 'Somebody looks after the directory, be it there or not.',
      invoke: {
        id: 'watch',
        src: 'watchDirectory',
        input: ({ context: { directory, seen } }) => ({ directory, seen }),
        onError: { target: 'pausing', actions: ['forgetSeen', 'lengthenPause'] },
      },
      on: {
        'files.changed': { actions: { type: 'passOn', params: ({ event }) => event } },
        'watch.failed': {
          target: 'pausing',
          actions: [{ type: 'rememberSeen', params: ({ event }) => event }, 'lengthenPause'],
        },
        'directory.missing': '.missing',
        'directory.found': { target: '.setting up', description: 'Another one than before, which nobody watches yet.' },
      },
      initial: 'setting up',
      states: {
        'setting up': {
          description: 'The kernel is asked to tell of changes.',
          after: { setUpLimit: { target: '#directory-watch.pausing', actions: ['forgetSeen', 'lengthenPause'] } },
          on: {
            'watch.began': [{ guard: 'hasFailedLately', target: 'on trial' }, { target: 'holding' }],
            // Directories that follow each other have one limit together.
            'directory.found': {},
          },
        },
        'on trial': {
          description: 'The kernel tells of changes; a watch before this one failed, and this one has yet to last.',
          after: { trial: { target: 'holding', actions: 'forgetPauses' } },
        },
        holding: {
          meta: { waitsFor: 'a change in the directory: this is the work' },
          description: 'The kernel tells of changes.',
        },
        missing: {
          meta: { waitsFor: 'a directory at the path, which may come at any time: it is looked for every second' },
          description: 'There is no directory at the path.',
        },
      },
    },
    pausing: {
      description:
        'The watch has failed. What changes meanwhile is found when the pause is over; pauses double to a minute.',
      after: {
        pause: [
          {
            guard: 'nothingIsKnown',
            target: 'watching',
            actions: 'tellChanged',
            description: 'Nobody could say what changed meanwhile: the files are read again.',
          },
          { target: 'watching' },
        ],
      },
    },
  },
});
