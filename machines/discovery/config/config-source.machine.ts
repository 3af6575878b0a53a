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
  type: 'rememberPlace',
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
    isBroken: (_, params: { summary: SourceSummary }) => params.summary.outcome === 'failed',
    isMissing: (_, params: { summary: SourceSummary }) => params.summary.outcome === 'missing',
    isNews: ({ context }, params: { summary: SourceSummary }) =>
      params.summary.outcome === 'read' && (params.summary.changed || context.isUnreported),
    isBurst: ({ context }) => context.isBurst,
    /** Once for each burst: the reading after that is reported, whatever happens during it. */
    isMixed: ({ context: { isBurst, isUnreported, isOverdue } }, { summary }: { summary: SourceSummary }) =>
      isBurst && !isUnreported && !isOverdue && summary.outcome === 'read' && summary.changed,
  },
  actions: {
    rememberPlace: assign({
      isBurst: ({ context }, { isBurst }: { place: string; isBurst: boolean }) => context.isBurst || isBurst,
      places: ({ context: { places } }, { place }: { place: string; isBurst: boolean }) =>
        places.includes(place) || places.length >= mostPlaces ? places : [...places, place],
      everywhere: ({ context: { places, everywhere } }, { place }: { place: string; isBurst: boolean }) =>
        everywhere || (places.length >= mostPlaces && !places.includes(place)),
    }),
    forgetPlaces: assign({ places: [], everywhere: false, isBurst: false }),
    /** The next reading is compared with this one, and reported even if it brings nothing more. */
    withholdReading: assign({ isUnreported: true }),
    endBurst: assign({ isUnreported: false, isOverdue: false }),
    noteOverdue: assign({ isOverdue: true }),
    /** What broke a reading off may have kept it from more than its places. */
    suspectEverything: assign({ everywhere: true }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    forgetFailures: assign({ failures: 0 }),
    /** What happened during a reading is read next. */
    lookAgain: raise(({ context }) => ({ type: 'source.moved', place: context.places.at(-1) ?? '' })),
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
      description: 'It cannot be watched; what is in force stays in force.',
      actions: { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
    },
  },
  initial: 'reading',
  states: {
    reading: {
      description: 'It is read, for the first time or again. What was read before is in force.',
      meta: { waitsFor: 'the reading of the source; before the first one is over, /ready names it' },
      invoke: {
        id: 'reading',
        src: 'readSource',
        input: ({ context: { source, places, everywhere } }) => ({ source, places: everywhere ? [] : places }),
        onDone: [
          {
            guard: { type: 'isBroken', params: ({ event }) => ({ summary: event.output }) },
            target: 'backing off',
            actions: [
              { type: 'reportFailed', params: ({ event }) => ({ reason: whyNot(event.output) }) },
              'suspectEverything',
              'countFailure',
            ],
          },
          {
            guard: { type: 'isMissing', params: ({ event }) => ({ summary: event.output }) },
            target: 'missing',
            actions: [
              'forgetFailures',
              'endBurst',
              { type: 'reportMissing', params: ({ event }) => ({ summary: event.output }) },
            ],
          },
          {
            guard: { type: 'isMixed', params: ({ event }) => ({ summary: event.output }) },
            description: 'A burst began during the reading: it shows a mixed state, and is not reported.',
            target: 'holding',
            actions: ['forgetFailures', 'withholdReading'],
          },
          {
            guard: { type: 'isNews', params: ({ event }) => ({ summary: event.output }) },
            target: 'current',
            actions: [
              'forgetFailures',
              'endBurst',
              { type: 'reportRead', params: ({ event }) => ({ summary: event.output }) },
            ],
          },
          {
            description: 'Nothing that anybody could notice.',
            target: 'current',
            actions: ['forgetFailures', 'endBurst'],
          },
        ],
        onError: {
          target: 'backing off',
          actions: [
            { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            'suspectEverything',
            'countFailure',
          ],
        },
      },
      initial: 'undisturbed',
      states: {
        undisturbed: { entry: 'forgetPlaces', on: { 'source.moved': { target: 'outdated', actions: remembered } } },
        outdated: {
          description: 'Something happened while it was read: what was read counts, and is read again.',
          exit: 'lookAgain',
          on: { 'source.moved': { actions: remembered } },
        },
      },
    },
    current: {
      description: 'What is in force is what the source says.',
      meta: { waitsFor: 'a change of the source: this is the work' },
      on: { 'source.moved': { target: 'coalescing', actions: remembered } },
    },
    coalescing: {
      description:
        'Something is changing: what is being written is not read by halves, and what comes at once is read at once.',
      always: { guard: 'isBurst', target: 'holding' },
      after: {
        coalescing: { description: 'It goes on changing; the delay counts from the first.', target: 'reading' },
      },
      initial: 'quieting',
      states: {
        quieting: {
          description: 'The last of it was just now.',
          after: { quiet: { description: 'That was all.', target: '#config-source.reading' } },
          on: { 'source.moved': { target: 'quieting', reenter: true, actions: remembered } },
        },
      },
    },
    holding: {
      description:
        'A burst of events, as of `git checkout` over thousands of files: the source is read when it is quiet, so that a mixed state is not applied.',
      after: {
        burstLimit: {
          description: 'The burst does not end: what is there is applied.',
          target: 'reading',
          actions: 'noteOverdue',
        },
      },
      initial: 'settling',
      states: {
        settling: {
          description: 'The last event was just now.',
          after: { burstQuiet: { description: 'The burst is over.', target: '#config-source.reading' } },
          on: { 'source.moved': { target: 'settling', reenter: true, actions: remembered } },
        },
      },
    },
    'backing off': {
      description: 'The last reading broke off: all is read again, later each time, and when something happens.',
      after: { retryDelay: 'reading' },
      on: { 'source.moved': { target: 'coalescing', actions: remembered } },
    },
    missing: {
      description: 'There is nothing to be read where it should be. What was read before stays in force.',
      meta: { waitsFor: 'its coming back; at the start, the end of the program' },
      on: { 'source.moved': { target: 'coalescing', actions: remembered } },
    },
  },
});

function whyNot(summary: SourceSummary): string {
  return summary.outcome === 'read' ? '' : summary.reason;
}
