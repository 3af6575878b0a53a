import { assign, sendTo, setup, spawnChild, stateIn } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type { BinaryChanged, BinaryCheck, BinaryRejected, WatchedFilesChanged } from '../protocol.ts';
import type { BinarySettings } from '../settings.ts';
import { binaryWatcherTimeline } from '../timeline.ts';
import { directoryWatchMachine } from './directory-watch.machine.ts';

interface BinaryContext extends BinarySettings {
  directory: string;
  /** The binary that was last offered; initially the one with which the agent started. */
  offered: string;
  /** Whether an operator ordered the check: its result is offered even if that binary was rejected before. */
  isOrdered: boolean;
  pauseMs: number;
}

/** `binary`: the file is compatible, or already known. `unknown`: why it could not be checked. */
export type BinaryCheckResult = { binary: string; description: string } | { refused: string } | { unknown: string };

export interface BinaryCheckOrder {
  path: string;
  known: string;
}

/** Envoy runs three times, at most 30 s each, and 100 MB are read. */
const checkLimitMs = 120_000;
/** A file that continues to change is checked after this time: it may be complete while another file in the directory is written. */
const maxDebounceMs = 60_000;
const firstPauseMs = 1_000;
const maxPauseMs = 60_000;

/** Offers a new Envoy binary to the supervisor, for a hot restart. */
export const binaryWatcherMachine = setup({
  types: {
    context: {} as BinaryContext,
    input: {} as BinarySettings & { directory: string },
    events: {} as BinaryCheck | WatchedFilesChanged,
    children: {} as { 'binary-files': 'directory'; check: 'checkBinary' },
  },
  actors: {
    directory: directoryWatchMachine,
    /** Checks the version of the file, and whether it can take over from the running Envoy with that Envoy's bootstrap. */
    checkBinary: promiseEffect<BinaryCheckResult, BinaryCheckOrder>('checkBinary'),
  },
  delays: {
    debounce: ({ context }) => context.settleMs,
    maxDebounce: maxDebounceMs,
    checkLimit: checkLimitMs,
    pause: ({ context }) => context.pauseMs,
  },
  guards: {
    isWatched: ({ context }) => context.watched,
    isOutdated: stateIn({ checking: 'outdated' }),
    isUnknown: (_, check: BinaryCheckResult) => 'unknown' in check,
    isRejected: (_, check: BinaryCheckResult) => 'refused' in check,
    isKnown: ({ context }, check: BinaryCheckResult) =>
      !context.isOrdered && 'binary' in check && check.binary === context.offered,
  },
  actions: {
    watchDirectory: spawnChild('directory', {
      id: 'binary-files',
      input: ({ context }) => ({ directory: context.directory }),
    }),
    recordOrder: assign({ isOrdered: true }),
    offer: sendTo(
      peer('supervisor'),
      (_, params: { binary: string; description: string }): BinaryChanged => ({ type: 'binary.changed', ...params }),
    ),
    recordOffer: assign({
      offered: (_, params: { binary: string }) => params.binary,
      isOrdered: false,
      pauseMs: 0,
    }),
    reject: sendTo(
      peer('supervisor'),
      (_, params: { reason: string }): BinaryRejected => ({ type: 'binary.rejected', ...params }),
    ),
    clearOrder: assign({ isOrdered: false, pauseMs: 0 }),
    lengthenPause: assign({
      pauseMs: ({ context }) => Math.min(maxPauseMs, Math.max(firstPauseMs, context.pauseMs * 2)),
    }),
  },
}).createMachine({
  id: 'binary-watcher',
  description: 'Watches the Envoy binary.',
  meta: { timeline: binaryWatcherTimeline },
  context: ({ input }) => ({ ...input, offered: input.first, isOrdered: false, pauseMs: 0 }),
  initial: 'starting',
  states: {
    starting: {
      description: 'The file may have changed between the start of the agent and the watch, so it is checked.',
      always: [{ guard: 'isWatched', target: 'checking', actions: 'watchDirectory' }, { target: 'idle' }],
    },
    checking: {
      description: 'Reads the version of the binary and, if it differs, checks whether it is compatible.',
      invoke: {
        id: 'check',
        src: 'checkBinary',
        input: ({ context: { path, offered } }) => ({ path, known: offered }),
        onDone: [
          { guard: 'isOutdated', target: 'debouncing' },
          {
            guard: { type: 'isUnknown', params: ({ event }) => event.output },
            target: 'backing off',
            actions: [
              'lengthenPause',
              { type: 'reject', params: ({ event }) => ({ reason: refusalOf(event.output) }) },
            ],
          },
          {
            guard: { type: 'isRejected', params: ({ event }) => event.output },
            target: 'idle',
            actions: [{ type: 'reject', params: ({ event }) => ({ reason: refusalOf(event.output) }) }, 'clearOrder'],
          },
          { guard: { type: 'isKnown', params: ({ event }) => event.output }, target: 'idle', actions: 'clearOrder' },
          {
            target: 'idle',
            actions: [
              { type: 'offer', params: ({ event }) => offeredBinaryOf(event.output) },
              { type: 'recordOffer', params: ({ event }) => offeredBinaryOf(event.output) },
            ],
          },
        ],
        onError: {
          target: 'backing off',
          actions: ['lengthenPause', { type: 'reject', params: ({ event }) => ({ reason: reasonOf(event.error) }) }],
        },
      },
      after: {
        checkLimit: {
          target: 'backing off',
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
      on: { 'binary.check': { target: '.outdated', actions: 'recordOrder' } },
      initial: 'current',
      states: {
        current: { on: { 'files.changed': 'outdated' } },
        outdated: {
          description: 'The file changed during the check, so it is checked again.',
          on: { 'files.changed': {} },
        },
      },
    },
    idle: {
      meta: { waitsFor: 'a change of the file, or an order: normal operation' },
      description: 'The binary was offered or rejected.',
      on: { 'files.changed': 'debouncing', 'binary.check': { target: 'checking', actions: 'recordOrder' } },
    },
    debouncing: {
      description: 'The file may still be written: waits until it no longer changes.',
      after: { maxDebounce: 'checking' },
      on: { 'binary.check': { target: 'checking', actions: 'recordOrder' } },
      initial: 'waiting',
      states: {
        waiting: {
          after: { debounce: '#binary-watcher.checking' },
          on: { 'files.changed': { target: 'waiting', reenter: true } },
        },
      },
    },
    'backing off': {
      description: 'The check failed. Retries at intervals that double up to one minute.',
      after: { pause: 'checking' },
      on: {
        'files.changed': { description: 'Checked after the pause.' },
        'binary.check': { target: 'checking', actions: 'recordOrder' },
      },
    },
  },
});

function refusalOf(checkResult: BinaryCheckResult): string {
  if ('unknown' in checkResult) return `it could not be checked: ${checkResult.unknown}`;
  return 'refused' in checkResult ? checkResult.refused : '';
}

const offeredBinaryOf = (checkResult: BinaryCheckResult): { binary: string; description: string } =>
  'binary' in checkResult ? checkResult : { binary: '', description: '' };
