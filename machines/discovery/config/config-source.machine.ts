import { assign, raise, sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { SourceFailed, SourceMissing, SourceMoved, SourceRead } from '../protocol.ts';
import { failedOnceMore, retryDelayMs } from '../retry-delay.ts';
import { noLane } from '../timeline.ts';

export interface ConfigSourceInput {
  /** Which one: its address, `fs:///etc/mesh`. */
  source: string;
  /** After so long without another event a batch is read. */
  quietMs: number;
  /** From the first event of a batch to the reading, at the most (spec/discovery.md §4.3: 20 ms). */
  coalesceMs: number;
}

interface ConfigSourceContext extends ConfigSourceInput {
  /** Where something happened since the last reading began, each place once. */
  places: string[];
  /** Everything is looked at: too much happened to be told apart, or something may have been missed. */
  everywhere: boolean;
  /** A burst of events began before the next reading, or during the current one. */
  isBurst: boolean;
  /** The last reading overlapped a burst and was not reported, although it brought something. */
  isUnreported: boolean;
  /** The burst has lasted as long as it may: the next reading is reported, even if it shows a mixed state. */
  isOverdue: boolean;
  /** Readings that broke off since the last one that did not. */
  failures: number;
}

/** So many places are looked at one by one; of more, all are. */
const mostPlaces = 256;

/** A burst of events is over when none came for this long. `git checkout` of 3,000 files pauses for less. */
const burstQuietMs = 200;

/** Time from the start of a burst to the reading at most. As long as pushes are delayed at most (`PILOT_DEBOUNCE_MAX`). */
export const burstLimitMs = 10_000;

/** What a reading of a source brought. The objects themselves are in the source's snapshot, on the side of the effects. */
export type SourceSummary =
  | {
      outcome: 'read';
      /** In force, the last good ones of rejected ones included. */
      objects: number;
      problems: number;
      /** Something is not what it was: an object, or what a person must be told. True of the first reading. */
      changed: boolean;
    }
  /** There is nothing where it should be. */
  | { outcome: 'missing'; reason: string }
  /** It could not be read: it is tried again. */
  | { outcome: 'failed'; reason: string };

const remembered = {
  type: 'recordPlace',
  params: ({ event }: { event: SourceMoved }) => ({ place: event.place, isBurst: event.isBurst === true }),
} as const;

/**
 * The life of one source of configuration: it is watched from before its first reading, and read again when something
 * happened in it. What a reading that fails would have brought stays as it was.
 */
export const configSourceMachine = setup({
  types: {
    context: {} as ConfigSourceContext,
    input: {} as ConfigSourceInput,
    events: {} as SourceMoved,
    children: {} as { watch: 'watchSource'; reading: 'readSource' },
  },
  actors: {
    /** Says where in the source something happens, from now on. */
    watchSource: callbackEffect<{ type: never }, { source: string }>('watchSource'),
    /**
     * Brings the source's snapshot up to date. Looks only at the places, or everywhere when there are none. The first one
     * answers when all that the source has is there.
     */
    readSource: promiseEffect<SourceSummary, { source: string; places: string[] }>('readSource'),
  },
  delays: {
    quiet: ({ context }) => context.quietMs,
    coalescing: ({ context }) => context.coalesceMs,
    burstQuiet: burstQuietMs,
    burstLimit: burstLimitMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    hasFailed: (_, params: { summary: SourceSummary }) => params.summary.outcome === 'failed',
    isMissing: (_, params: { summary: SourceSummary }) => params.summary.outcome === 'missing',
    hasChanges: ({ context }, params: { summary: SourceSummary }) =>
      params.summary.outcome === 'read' && (params.summary.changed || context.isUnreported),
    isBurst: ({ context }) => context.isBurst,
    /** Once for each burst: the reading after that is reported, whatever happens during it. */
    isMixed: ({ context: { isBurst, isUnreported, isOverdue } }, { summary }: { summary: SourceSummary }) =>
      isBurst && !isUnreported && !isOverdue && summary.outcome === 'read' && summary.changed,
  },
  actions: {
    recordPlace: assign({
      isBurst: ({ context }, { isBurst }: { place: string; isBurst: boolean }) => context.isBurst || isBurst,
      places: ({ context: { places } }, { place }: { place: string; isBurst: boolean }) =>
        places.includes(place) || places.length >= mostPlaces ? places : [...places, place],
      everywhere: ({ context: { places, everywhere } }, { place }: { place: string; isBurst: boolean }) =>
        everywhere || (places.length >= mostPlaces && !places.includes(place)),
    }),
    clearPlaces: assign({ places: [], everywhere: false, isBurst: false }),
    /** The next reading is compared with this one, and reported even if it brings nothing more. */
    deferReport: assign({ isUnreported: true }),
    endBurst: assign({ isUnreported: false, isOverdue: false }),
    markOverdue: assign({ isOverdue: true }),
    /** What broke a reading off may have kept it from more than its places. */
    markAllChanged: assign({ everywhere: true }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    /** What happened during a reading is read next. */
    readAgain: raise(({ context }) => ({ type: 'source.changed', place: context.places.at(-1) ?? '' })),
    reportRead: sendParent(({ context }, { summary }: { summary: SourceSummary }): SourceRead => {
      const { objects, problems } = summary.outcome === 'read' ? summary : { objects: 0, problems: 0 };
      return { type: 'source.read', source: context.source, objects, problems };
    }),
    reportMissing: sendParent(
      ({ context }, { summary }: { summary: SourceSummary }): SourceMissing => ({
        type: 'source.missing',
        source: context.source,
        reason: whyNot(summary),
      }),
    ),
    reportFailed: sendParent(
      ({ context }, { reason }: { reason: string }): SourceFailed => ({
        type: 'source.failed',
        source: context.source,
        reason,
      }),
    ),
  },
}).createMachine({
  id: 'config-source',
  description: 'One source of configuration: a directory, a cluster, another control plane.',
  meta: { timeline: noLane },
  context: ({ input }) => ({
    ...input,
    ...{ places: [], everywhere: true, failures: 0 },
    ...{ isBurst: false, isUnreported: false, isOverdue: false },
  }),
  invoke: {
    id: 'watch',
    src: 'watchSource',
    input: ({ context: { source } }) => ({ source }),
    onError: {
      description: 'The source cannot be watched; its last objects still apply.',
      actions: { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
    },
  },
  initial: 'reading',
  states: {
    reading: {
      description: 'Reads the source. Its last objects still apply.',
      meta: { waitsFor: 'reading the source; /ready lists it until its first read' },
      invoke: {
        id: 'reading',
        src: 'readSource',
        input: ({ context: { source, places, everywhere } }) => ({ source, places: everywhere ? [] : places }),
        onDone: [
          {
            guard: { type: 'hasFailed', params: ({ event }) => ({ summary: event.output }) },
            target: 'backing off',
            actions: [
              { type: 'reportFailed', params: ({ event }) => ({ reason: whyNot(event.output) }) },
              'markAllChanged',
              'countFailure',
            ],
          },
          {
            guard: { type: 'isMissing', params: ({ event }) => ({ summary: event.output }) },
            target: 'missing',
            actions: [
              'resetFailures',
              'endBurst',
              { type: 'reportMissing', params: ({ event }) => ({ summary: event.output }) },
            ],
          },
          {
            guard: { type: 'isMixed', params: ({ event }) => ({ summary: event.output }) },
            description: 'A burst began during the read, so the result may be inconsistent and is not reported.',
            target: 'burst',
            actions: ['resetFailures', 'deferReport'],
          },
          {
            guard: { type: 'hasChanges', params: ({ event }) => ({ summary: event.output }) },
            target: 'current',
            actions: [
              'resetFailures',
              'endBurst',
              { type: 'reportRead', params: ({ event }) => ({ summary: event.output }) },
            ],
          },
          {
            description: 'No object changed.',
            target: 'current',
            actions: ['resetFailures', 'endBurst'],
          },
        ],
        onError: {
          target: 'backing off',
          actions: [
            { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            'markAllChanged',
            'countFailure',
          ],
        },
      },
      initial: 'current',
      states: {
        current: { entry: 'clearPlaces', on: { 'source.changed': { target: 'outdated', actions: remembered } } },
        outdated: {
          description: 'The source changed during the read. The result applies, and the source is read again.',
          exit: 'readAgain',
          on: { 'source.changed': { actions: remembered } },
        },
      },
    },
    current: {
      description: 'The objects are those of the source.',
      meta: { waitsFor: 'a change of the source: normal operation' },
      on: { 'source.changed': { target: 'coalescing', actions: remembered } },
    },
    coalescing: {
      description: 'The source is changing. Collects events for a short time, so that no half-written state is read.',
      always: { guard: 'isBurst', target: 'burst' },
      after: {
        coalescing: { description: 'Changes continue. The delay counts from the first.', target: 'reading' },
      },
      initial: 'debouncing',
      states: {
        debouncing: {
          description: 'Waits for a pause between events.',
          after: { quiet: { description: 'There was no further event.', target: '#config-source.reading' } },
          on: { 'source.changed': { target: 'debouncing', reenter: true, actions: remembered } },
        },
      },
    },
    burst: {
      description:
        'A burst of events, such as a `git checkout` of thousands of files. The source is read after the burst, so that no mixed state applies.',
      after: {
        burstLimit: {
          description: 'The burst continues: the source is read now.',
          target: 'reading',
          actions: 'markOverdue',
        },
      },
      initial: 'debouncing',
      states: {
        debouncing: {
          description: 'Waits for a pause between events.',
          after: { burstQuiet: { description: 'The burst has ended.', target: '#config-source.reading' } },
          on: { 'source.changed': { target: 'debouncing', reenter: true, actions: remembered } },
        },
      },
    },
    'backing off': {
      description:
        'The last read failed. The whole source is read again, at increasing intervals and at the next event.',
      after: { retryDelay: 'reading' },
      on: { 'source.changed': { target: 'coalescing', actions: remembered } },
    },
    missing: {
      description: 'The source does not exist. Its last objects still apply.',
      meta: { waitsFor: 'the source to exist again; during the start, the end of the program' },
      on: { 'source.changed': { target: 'coalescing', actions: remembered } },
    },
  },
});

function whyNot(summary: SourceSummary): string {
  return summary.outcome === 'read' ? '' : summary.reason;
}
