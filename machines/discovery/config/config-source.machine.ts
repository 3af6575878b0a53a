import { assign, raise, sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { SourceChanged, SourceFailed, SourceMissing, SourceRead } from '../protocol.ts';
import { incrementFailures, retryDelayMs } from '../retry-delay.ts';
import { noLane } from '../timeline.ts';

export interface ConfigSourceInput {
  /** Address, such as `fs:///etc/mesh`. */
  source: string;
  quietMs: number;
  coalesceMs: number;
}

interface ConfigSourceContext extends ConfigSourceInput {
  /** Changed places of the source, such as paths, since the start of the last read. */
  places: string[];
  /** Whether the complete source must be read, because there were too many events or some may be missing. */
  isFullRead: boolean;
  /** Whether a burst began since the start of the last read. */
  isBurst: boolean;
  /** Whether the last read overlapped a burst and was not reported, although it had changes. */
  isUnreported: boolean;
  /** Whether the burst has reached its limit: the next read is reported even if it shows a mixed state. */
  isOverdue: boolean;
  failures: number;
}

/** If more places changed, the complete source is read. */
const maxPlaces = 256;

/** Quiet time that ends a burst. `git checkout` of 3,000 files has shorter gaps. */
const burstQuietMs = 200;

/** The same limit as for a push (`PILOT_DEBOUNCE_MAX`). */
export const burstLimitMs = 10_000;

export type SourceSummary =
  | {
      outcome: 'read';
      objects: number;
      problems: number;
      /** Always true for the first read. */
      changed: boolean;
    }
  | { outcome: 'missing'; reason: string }
  | { outcome: 'failed'; reason: string };

const recordPlaceAction = {
  type: 'recordPlace',
  params: ({ event }: { event: SourceChanged }) => ({ place: event.place, isBurst: event.isBurst === true }),
} as const;

/** A source is watched before its first read, and read again after changes. A failed read changes nothing. */
export const configSourceMachine = setup({
  types: {
    context: {} as ConfigSourceContext,
    input: {} as ConfigSourceInput,
    events: {} as SourceChanged,
    children: {} as { watch: 'watchSource'; reading: 'readSource' },
  },
  actors: {
    watchSource: callbackEffect<{ type: never }, { source: string }>('watchSource'),
    /** Reads the complete source if `places` is empty. */
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
    /** True at most once per burst: the next read is reported in any case. */
    isMixed: ({ context: { isBurst, isUnreported, isOverdue } }, { summary }: { summary: SourceSummary }) =>
      isBurst && !isUnreported && !isOverdue && summary.outcome === 'read' && summary.changed,
  },
  actions: {
    recordPlace: assign({
      isBurst: ({ context }, { isBurst }: { place: string; isBurst: boolean }) => context.isBurst || isBurst,
      places: ({ context: { places } }, { place }: { place: string; isBurst: boolean }) =>
        places.includes(place) || places.length >= maxPlaces ? places : [...places, place],
      isFullRead: ({ context: { places, isFullRead } }, { place }: { place: string; isBurst: boolean }) =>
        isFullRead || (places.length >= maxPlaces && !places.includes(place)),
    }),
    clearPlaces: assign({ places: [], isFullRead: false, isBurst: false }),
    /** The next read is compared with this one, and reported even without further changes. */
    deferReport: assign({ isUnreported: true }),
    endBurst: assign({ isUnreported: false, isOverdue: false }),
    markOverdue: assign({ isOverdue: true }),
    /** The failure may have affected more than the changed paths. */
    markAllChanged: assign({ isFullRead: true }),
    countFailure: assign({ failures: ({ context }) => incrementFailures(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    readAgain: raise(({ context }) => ({ type: 'source.changed', place: context.places.at(-1) ?? '' })),
    reportRead: sendParent(({ context }, { summary }: { summary: SourceSummary }): SourceRead => {
      const { objects, problems } = summary.outcome === 'read' ? summary : { objects: 0, problems: 0 };
      return { type: 'source.read', source: context.source, objects, problems };
    }),
    reportMissing: sendParent(
      ({ context }, { summary }: { summary: SourceSummary }): SourceMissing => ({
        type: 'source.missing',
        source: context.source,
        reason: failureReasonOf(summary),
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
    ...{ places: [], isFullRead: true, failures: 0 },
    ...{ isBurst: false, isUnreported: false, isOverdue: false },
  }),
  invoke: {
    id: 'watch',
    src: 'watchSource',
    input: ({ context: { source } }) => ({ source }),
    onError: {
      description: 'The source cannot be watched: its last objects apply.',
      actions: { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
    },
  },
  initial: 'reading',
  states: {
    reading: {
      description: 'Reads the source. Its last objects apply.',
      meta: { waitsFor: 'reading the source; /ready lists it until its first read' },
      invoke: {
        id: 'reading',
        src: 'readSource',
        input: ({ context: { source, places, isFullRead } }) => ({ source, places: isFullRead ? [] : places }),
        onDone: [
          {
            guard: { type: 'hasFailed', params: ({ event }) => ({ summary: event.output }) },
            target: 'backing off',
            actions: [
              { type: 'reportFailed', params: ({ event }) => ({ reason: failureReasonOf(event.output) }) },
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
            description:
              'A burst began during the read, so the result may be inconsistent. It is not reported, once per burst; the next read is reported.',
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
        current: { entry: 'clearPlaces', on: { 'source.changed': { target: 'outdated', actions: recordPlaceAction } } },
        outdated: {
          description: 'The source changed during the read: reads it again after this read, whose result applies.',
          exit: 'readAgain',
          on: { 'source.changed': { actions: recordPlaceAction } },
        },
      },
    },
    current: {
      description: 'Waits for changes. The applied objects are those of the source.',
      meta: { waitsFor: 'a change of the source: normal operation' },
      on: { 'source.changed': { target: 'coalescing', actions: recordPlaceAction } },
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
          after: {
            quiet: { description: 'There was no further event in the quiet time.', target: '#config-source.reading' },
          },
          on: { 'source.changed': { target: 'debouncing', reenter: true, actions: recordPlaceAction } },
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
          after: { burstQuiet: { description: 'The burst ended.', target: '#config-source.reading' } },
          on: { 'source.changed': { target: 'debouncing', reenter: true, actions: recordPlaceAction } },
        },
      },
    },
    'backing off': {
      description: 'The last read failed: reads the whole source again, at increasing intervals and at the next event.',
      after: { retryDelay: 'reading' },
      on: { 'source.changed': { target: 'coalescing', actions: recordPlaceAction } },
    },
    missing: {
      description: 'The source does not exist. Its last objects still apply.',
      meta: { waitsFor: 'the source to exist again. At the start, the program exits instead' },
      on: { 'source.changed': { target: 'coalescing', actions: recordPlaceAction } },
    },
  },
});

function failureReasonOf(summary: SourceSummary): string {
  return summary.outcome === 'read' ? '' : summary.reason;
}
