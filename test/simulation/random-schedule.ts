/**
 * A schedule: the events of the agent, its Envoys and their host, and their times. fast-check generates and shrinks it; the same schedule always
 * gives the same run.
 */
import fc from 'fast-check';
import { type AgentSettings, defaultSettings } from '../../machines/agent/settings.ts';
import type { WatchFault } from './random-watch.ts';

/** Settings with a directory to watch. */
const shippedSettings: AgentSettings = {
  ...defaultSettings,
  watch: { ...defaultSettings.watch, directories: ['certs'] },
};

/** Settings that change the agent's behaviour. Counters are those of production. */
export const settingsKinds = {
  'as shipped': shippedSettings,
  'short times': {
    ...shippedSettings,
    drainMs: 1_000,
    parentShutdownMs: 4_000,
    watch: { ...shippedSettings.watch, delayMs: 500 },
  },
  'restartPolicy exit': { ...shippedSettings, restartPolicy: 'exit' },
  'hotRestart off': { ...shippedSettings, hotRestart: false },
} satisfies Record<string, AgentSettings>;

export type ProcessSelection = 'newest' | 'oldest' | 'serving' | 'starting';

/** A temporary fault. */
export type LastingFault =
  /** No bootstrap and no named pipe to an Envoy can be created: their folder is missing until the fault ends. */
  | 'folder full'
  | 'folder read-only'
  | 'folder gone'
  /** The user's own bootstrap is used, but there is no named pipe to an Envoy. */
  | 'no room for pipes'
  /** Control plane and certificate source are unreachable: a starting Envoy waits for them. */
  | 'sources away'
  /** Drain orders do not reach Envoy. */
  | 'admin unheard'
  /** The mark that a crashed child left in shared memory cannot be cleared. */
  | 'no repair'
  /** An Envoy does not exit on SIGTERM. */
  | 'deaf to SIGTERM'
  /** The operating system cannot start processes. */
  | 'no processes';

export type ScheduledEvent =
  | { readonly kind: 'certificate' | 'certificate reverted' | 'certificate half written' | 'certificate missing' }
  | { readonly kind: 'SIGHUP' | 'SIGUSR1' | 'SIGTERM' | 'SIGINT' | 'quit' | 'ready?' }
  /** `oom`: SIGKILL by the kernel. */
  | { readonly kind: 'crash' | 'oom'; readonly target: ProcessSelection }
  | { readonly kind: LastingFault; readonly forMs: number }
  /** The next Envoy needs this much longer until it is live. */
  | { readonly kind: 'slow start'; readonly ms: number }
  /** Envoy's own check rejects the next bootstrap. */
  | { readonly kind: 'bootstrap refused' }
  /** Another process left the mark of an initializing Envoy in shared memory. */
  | { readonly kind: 'stuck' }
  /** The agent's timers take this percentage of their time from now on. */
  | { readonly kind: 'pace'; readonly percent: number }
  | { readonly kind: 'status server broken' };

/** The wait before a step: a duration, or a number of spontaneous events. */
export type Gap = { readonly ms: number } | { readonly events: number };

export interface Step {
  readonly gap: Gap;
  readonly scheduledEvent: ScheduledEvent;
}

/** A fault of the outlet of the agent's log or trace. */
export type SinkFault = {
  readonly outlet: 'log' | 'trace';
  /** Step before which it begins; modulo the number of steps plus 1. */
  readonly beforeStep: number;
} & (
  | {
      /** `full`: no space left; `broken`: no reader; `stalled`: the reader stops reading. The outlet recovers afterwards. */
      readonly kind: 'full' | 'broken' | 'stalled';
      /** Bytes accepted before the fault: a line can be cut anywhere. */
      readonly afterBytes: number;
      readonly forMs: number;
    }
  /** The file is renamed. */
  | { readonly kind: 'moved away' }
);

/** A fault of the watch of the certificate directory. */
export interface WatchStep {
  readonly kind: WatchFault;
  readonly forMs: number;
  /** As in {@link SinkFault}. */
  readonly beforeStep: number;
}

export interface Schedule {
  readonly settings: keyof typeof settingsKinds;
  readonly startConditions:
    | 'in order'
    | 'one base id'
    | 'no files'
    | 'half written'
    | 'no base id'
    | 'status port taken';
  /** Seed of the host's random times; 0: the middle of each range. */
  readonly durationSeed: number;
  readonly steps: readonly Step[];
  /** `in peace`: the faults end, the agent must recover, then it is stopped. `in trouble`: it is stopped immediately. */
  readonly ending: 'in peace' | 'in trouble';
  /** Separate from the steps: the run must be the same without them. */
  readonly sinkFaults?: readonly SinkFault[];
  /** Separate from the steps, like `sinkFaults`. */
  readonly watchFaults?: readonly WatchStep[];
}

const kindArbitrary = <What extends string>(...whats: What[]) => fc.constantFrom(...whats).map((kind) => ({ kind }));

const lastingFaultArbitrary = fc.record({
  kind: fc.constantFrom<LastingFault>(
    'folder full',
    'folder read-only',
    'folder gone',
    'no room for pipes',
    'sources away',
    'admin unheard',
    'no repair',
    'deaf to SIGTERM',
    'no processes',
  ),
  forMs: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 600_000 })),
});

const crashArbitrary = fc.record({
  kind: fc.constantFrom('crash' as const, 'oom' as const),
  target: fc.constantFrom<ProcessSelection>('newest', 'oldest', 'serving', 'starting'),
});

const eventArbitrary: fc.Arbitrary<ScheduledEvent> = fc.oneof(
  { weight: 20, arbitrary: kindArbitrary('certificate') },
  { weight: 14, arbitrary: kindArbitrary('SIGHUP') },
  { weight: 6, arbitrary: kindArbitrary('certificate reverted', 'certificate half written', 'certificate missing') },
  { weight: 3, arbitrary: kindArbitrary('SIGUSR1', 'ready?') },
  { weight: 26, arbitrary: crashArbitrary },
  { weight: 14, arbitrary: lastingFaultArbitrary },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('slow start' as const), ms: fc.integer({ min: 0, max: 90_000 }) }),
  },
  { weight: 5, arbitrary: kindArbitrary('bootstrap refused') },
  { weight: 4, arbitrary: kindArbitrary('stuck') },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('pace' as const),
      percent: fc.oneof(fc.integer({ min: 95, max: 105 }), fc.integer({ min: 20, max: 1_000 })),
    }),
  },
  { weight: 1, arbitrary: kindArbitrary('SIGTERM', 'SIGINT', 'quit', 'status server broken') },
);

const gapArbitrary: fc.Arbitrary<Gap> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ events: fc.integer({ min: 0, max: 12 }) }) },
  { weight: 2, arbitrary: fc.record({ ms: fc.integer({ min: 0, max: 1_500 }) }) },
  { weight: 3, arbitrary: fc.record({ ms: fc.integer({ min: 0, max: 20_000 }) }) },
  { weight: 2, arbitrary: fc.record({ ms: fc.integer({ min: 0, max: 90_000 }) }) },
  { weight: 1, arbitrary: fc.record({ ms: fc.integer({ min: 0, max: 1_800_000 }) }) },
);

const stepArbitrary = fc.record({ gap: gapArbitrary, scheduledEvent: eventArbitrary });

/** Mostly short ones, because shrinking leads to short ones anyway. */
const steps = fc.oneof(
  { weight: 60, arbitrary: fc.array(stepArbitrary, { maxLength: 6, size: 'max' }) },
  { weight: 7, arbitrary: fc.array(stepArbitrary, { maxLength: 24, size: 'max' }) },
  { weight: 1, arbitrary: fc.array(stepArbitrary, { maxLength: 120, size: 'max' }) },
);

const watchStep: fc.Arbitrary<WatchStep> = fc.record({
  kind: fc.constantFrom('watch fails' as const, 'watch hangs' as const, 'directory gone' as const),
  forMs: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 300_000 })),
  beforeStep: fc.nat({ max: 120 }),
});

const sinkOf = { outlet: fc.constantFrom('log' as const, 'trace' as const), beforeStep: fc.nat({ max: 120 }) };

const sinkFault: fc.Arbitrary<SinkFault> = fc.oneof(
  {
    weight: 7,
    arbitrary: fc.record({
      ...sinkOf,
      kind: fc.constantFrom('full' as const, 'broken' as const, 'stalled' as const),
      afterBytes: fc.oneof(fc.constant(0), fc.nat({ max: 5_000 })),
      forMs: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 300_000 })),
    }),
  },
  { weight: 3, arbitrary: fc.record({ ...sinkOf, kind: fc.constant('moved away' as const) }) },
);

export const schedules: fc.Arbitrary<Schedule> = fc.record({
  settings: fc.oneof(
    { weight: 6, arbitrary: fc.constant('as shipped' as const) },
    { weight: 2, arbitrary: fc.constant('short times' as const) },
    { weight: 1, arbitrary: fc.constantFrom('restartPolicy exit' as const, 'hotRestart off' as const) },
  ),
  startConditions: fc.oneof(
    { weight: 30, arbitrary: fc.constant('in order' as const) },
    { weight: 3, arbitrary: fc.constantFrom('one base id' as const, 'no files' as const, 'half written' as const) },
    { weight: 1, arbitrary: fc.constantFrom('no base id' as const, 'status port taken' as const) },
  ),
  durationSeed: fc.nat({ max: 0x7fffffff }),
  steps,
  ending: fc.oneof(
    { weight: 4, arbitrary: fc.constant('in peace' as const) },
    { weight: 1, arbitrary: fc.constant('in trouble' as const) },
  ),
  // Drawn last, so that a seed gives the same other values without them.
  sinkFaults: fc.array(sinkFault, { maxLength: 6, size: 'max' }),
  watchFaults: fc.oneof(
    { weight: 5, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(watchStep, { minLength: 1, maxLength: 3, size: 'max' }) },
  ),
});

/** Formats a schedule as text, one line per step. */
export function formatSchedule({
  settings,
  startConditions,
  durationSeed,
  steps,
  ending,
  sinkFaults = [],
  watchFaults = [],
}: Schedule): string {
  return [
    `settings: ${settings}; start conditions: ${startConditions}; duration seed ${durationSeed}`,
    ...steps.map(
      ({ gap, scheduledEvent }, i) =>
        `  ${String(i + 1).padStart(3)}  ${formatGap(gap)}: ${formatHappening(scheduledEvent)}`,
    ),
    `ending: ${ending}`,
    ...sinkFaults.map(
      ({ outlet, beforeStep, ...fault }) => `  ${outlet}, before step ${beforeStep + 1}: ${formatHappening(fault)}`,
    ),
    ...watchFaults.map(({ kind, beforeStep, forMs }) => `  before step ${beforeStep + 1}: ${kind}, forMs ${forMs}`),
  ].join('\n');
}

function formatGap(gap: Gap): string {
  if ('ms' in gap) return `after ${gap.ms} ms`;
  return `after ${gap.events} events`;
}

function formatHappening({ kind, ...rest }: ScheduledEvent | Omit<SinkFault, 'outlet' | 'beforeStep'>): string {
  return [kind, ...Object.entries(rest).map(([name, value]) => `${name} ${value}`)].join(', ');
}
