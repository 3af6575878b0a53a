import { assign, sendTo, setup, spawnChild, stateIn } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type { BinaryChanged, BinaryLook, BinaryRejected, FilesChanged } from '../protocol.ts';
import type { BinarySettings } from '../settings.ts';
import { binaryWatcherTimeline } from '../timeline.ts';
import { directoryWatchMachine } from './directory-watch.machine.ts';

interface BinaryContext extends BinarySettings {
  /** Directory of the file. */
  directory: string;
  /** The one that was offered last; at first, the one that the agent began with. */
  offered: string;
  /** Somebody ordered the look that is under way, or is to come: what is there is offered whatever became of it before. */
  isOrdered: boolean;
  /** The last pause after a check that came to nothing; 0 while none was lately. */
  pauseMs: number;
}

/** What a check of the file came to. `binary`: it fits, or is one that is known already; `unknown`: why nobody can say. */
export type BinaryCheck = { binary: string; description: string } | { refused: string } | { unknown: string };

/** What is to be checked. */
export interface BinaryCheckOrder {
  path: string;
  /** What needs no check. */
  known: string;
}

/** Three runs of an Envoy that is asked, each of which has 30 s; and 100 MB are read. */
const checkLimitMs = 120_000;
/** A file that never rests is looked at all the same: it may be whole, and another one beside it is written. */
const longestSettleMs = 60_000;
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;

/**
 * Sees to it that another Envoy at the path of the binary is taken up: checked first, then offered to the supervisor. A hot restart does
 * the rest. What Envoy was started with stays at hand in the meantime, whatever lies at the path.
 */
export const binaryWatcherMachine = setup({
  types: {
    context: {} as BinaryContext,
    input: {} as BinarySettings & { directory: string },
    events: {} as BinaryLook | FilesChanged,
    children: {} as { 'binary-files': 'directory'; check: 'checkBinary' },
  },
  actors: {
    directory: directoryWatchMachine,
    /** Asks the file who it is, and whether it would take over from the Envoy that runs, with the bootstrap that it runs with. */
    checkBinary: promiseEffect<BinaryCheck, BinaryCheckOrder>('checkBinary'),
  },
  delays: {
    settle: ({ context }) => context.settleMs,
    longestSettle: longestSettleMs,
    checkLimit: checkLimitMs,
    pause: ({ context }) => context.pauseMs,
  },
  guards: {
    isWatched: ({ context }) => context.watched,
    isOutdated: stateIn({ checking: 'outdated' }),
    isUnknown: (_, check: BinaryCheck) => 'unknown' in check,
    isRefused: (_, check: BinaryCheck) => 'refused' in check,
    isKnown: ({ context }, check: BinaryCheck) =>
      !context.isOrdered && 'binary' in check && check.binary === context.offered,
  },
  actions: {
    watchDirectory: spawnChild('directory', {
      id: 'binary-files',
      input: ({ context }) => ({ directory: context.directory }),
    }),
    rememberOrder: assign({ isOrdered: true }),
    offer: sendTo(
      peer('supervisor'),
      (_, params: { binary: string; description: string }): BinaryChanged => ({ type: 'binary.changed', ...params }),
    ),
    rememberOffer: assign({
      offered: (_, params: { binary: string }) => params.binary,
      isOrdered: false,
      pauseMs: 0,
    }),
    reject: sendTo(
      peer('supervisor'),
      (_, params: { reason: string }): BinaryRejected => ({ type: 'binary.rejected', ...params }),
    ),
    forgetOrder: assign({ isOrdered: false, pauseMs: 0 }),
    lengthenPause: assign({
      pauseMs: ({ context }) => Math.min(longestPauseMs, Math.max(firstPauseMs, context.pauseMs * 2)),
    }),
  },
}).createMachine({
  id: 'binary-watcher',
  description: "Looks after the file that Envoy's binary is.",
  meta: { timeline: binaryWatcherTimeline },
  context: ({ input }) => ({ ...input, offered: input.first, isOrdered: false, pauseMs: 0 }),
  initial: 'beginning',
  states: {
    beginning: {
      description:
        'Between its look at the start of the agent and the watch the file may have changed: it is looked at.',
      always: [{ guard: 'isWatched', target: 'checking', actions: 'watchDirectory' }, { target: 'quiet' }],
    },
    checking: {
      description: 'What is there is asked who it is; where it is another one, whether it fits.',
      invoke: {
        id: 'check',
        src: 'checkBinary',
        input: ({ context: { path, offered } }) => ({ path, known: offered }),
        onDone: [
          { guard: 'isOutdated', target: 'settling' },
          {
            guard: { type: 'isUnknown', params: ({ event }) => event.output },
            target: 'waiting to check again',
            actions: [
              'lengthenPause',
              { type: 'reject', params: ({ event }) => ({ reason: refusalIn(event.output) }) },
            ],
          },
          {
            guard: { type: 'isRefused', params: ({ event }) => event.output },
            target: 'quiet',
            actions: [{ type: 'reject', params: ({ event }) => ({ reason: refusalIn(event.output) }) }, 'forgetOrder'],
          },
          { guard: { type: 'isKnown', params: ({ event }) => event.output }, target: 'quiet', actions: 'forgetOrder' },
          {
            target: 'quiet',
            actions: [
              { type: 'offer', params: ({ event }) => foundIn(event.output) },
              { type: 'rememberOffer', params: ({ event }) => foundIn(event.output) },
            ],
          },
        ],
        onError: {
          target: 'waiting to check again',
          actions: ['lengthenPause', { type: 'reject', params: ({ event }) => ({ reason: reasonOf(event.error) }) }],
        },
      },
      after: {
        checkLimit: {
          target: 'waiting to check again',
          actions: [
            'lengthenPause',
            {
              type: 'reject',
              params: {
                reason: `check did not finish within ${checkLimitMs} ms: the file system or the binary does not respond`,
              },
            },
          ],
        },
      },
      on: { 'binary.look': { target: '.outdated', actions: 'rememberOrder' } },
      initial: 'current',
      states: {
        current: { on: { 'files.changed': 'outdated' } },
        outdated: {
          description: 'The file changed while it was looked at: it is looked at again.',
          on: { 'files.changed': {} },
        },
      },
    },
    quiet: {
      meta: { waitsFor: 'a change of the file, or an order: this is the work' },
      description: 'What is there is known, and was offered or refused.',
      on: { 'files.changed': 'settling', 'binary.look': { target: 'checking', actions: 'rememberOrder' } },
    },
    settling: {
      description: 'The file is being written, perhaps: it has to rest for a moment.',
      after: { longestSettle: 'checking' },
      on: { 'binary.look': { target: 'checking', actions: 'rememberOrder' } },
      initial: 'resting',
      states: {
        resting: {
          after: { settle: '#binary-watcher.checking' },
          on: { 'files.changed': { target: 'resting', reenter: true } },
        },
      },
    },
    'waiting to check again': {
      description: 'Nobody could say whether it fits. It is asked again after pauses that double to a minute.',
      after: { pause: 'checking' },
      on: {
        'files.changed': { description: 'Looked at when the pause is over.' },
        'binary.look': { target: 'checking', actions: 'rememberOrder' },
      },
    },
  },
});

function refusalIn(check: BinaryCheck): string {
  if ('unknown' in check) return `it could not be checked: ${check.unknown}`;
  return 'refused' in check ? check.refused : '';
}

const foundIn = (check: BinaryCheck): { binary: string; description: string } =>
  'binary' in check ? check : { binary: '', description: '' };
