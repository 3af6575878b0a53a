/**
 * What `chartpilot generate` makes: tests of one machine, as plain data (docs/generating-tests.md). A runner in any
 * language needs nothing else: it brings the machine into its first state, takes the steps one by one, and compares.
 */

/** Of {@link Suite.version}. Fields may be added under the same number; a change of meaning counts it up. */
export const suiteVersion = 1;

/** Everything that `--format json` prints. */
export interface Suite {
  readonly format: 'chartpilot-tests';
  readonly version: typeof suiteVersion;
  /** The machine's id, and where it came from: a name of ours or a module's path. */
  readonly machine: { readonly id: string; readonly source: string; readonly export: string };
  readonly cover: Cover;
  /** The ways in which the tests start the machine: one, unless samples give several inputs. */
  readonly starts: readonly Start[];
  readonly tests: readonly GeneratedTest[];
  readonly coverage: Coverage;
}

export type Cover = 'states' | 'transitions' | 'paths';

export interface Start {
  /** What the machine is started with; absent when it takes nothing. */
  readonly input?: unknown;
  /** Before the first step. */
  readonly expect: Expectation;
}

export interface GeneratedTest {
  /** Unique in its suite. */
  readonly name: string;
  /** Index in {@link Suite.starts}. */
  readonly start: number;
  readonly steps: readonly TestStep[];
}

export interface TestStep {
  readonly do: Step;
  readonly expect: Expectation;
}

/** One thing that happens to a machine. */
export type Step = EventStep | DelayStep | DoneStep | ErrorStep;

/** The machine is sent this event, whoever sends it. */
export interface EventStep {
  readonly kind: 'event';
  readonly event: { readonly type: string; readonly [field: string]: unknown };
}

/**
 * Time passes until these timers fall due (`after`, delayed events), and no sooner: `ms` milliseconds after the previous
 * step. Events and outcomes take no time.
 */
export interface DelayStep {
  readonly kind: 'delay';
  readonly timers: readonly string[];
  readonly ms: number;
}

/** An effect (an invoked or spawned actor, by its id) ends well. */
export interface DoneStep {
  readonly kind: 'done';
  readonly effect: string;
  readonly output?: unknown;
}

/** An effect fails with an `Error` of this message. */
export interface ErrorStep {
  readonly kind: 'error';
  readonly effect: string;
  readonly message: string;
}

/** What is so after a step. */
export interface Expectation {
  /** Names of nested states joined with `.`, parallel regions with ` | `, in the order of the definition. */
  readonly state: string;
  /** The machine has reached a final state. */
  readonly done: boolean;
  /** What the machine sent to others in this step, in order: `TYPE to RECEIVER`. */
  readonly sent: readonly string[];
  /** Ids of the effects that run now, sorted. */
  readonly running: readonly string[];
}

/** What the tests cover of the machine, and what they do not. */
export interface Coverage {
  readonly states: Share;
  readonly transitions: Share;
  /** Transitions whose guards are also seen to refuse an event that then nobody takes. */
  readonly refusals: number;
  /** How much of the machine was walked through to find the tests. */
  readonly explored: {
    /** Different configurations of state, context, effects and timers. */
    readonly configurations: number;
    readonly steps: number;
    readonly depth: number;
    /** Nothing was cut off by a bound. */
    readonly complete: boolean;
  };
  /** Every bound that cut something off, in words. */
  readonly bounds: readonly string[];
  /** Steps that the machine cannot take with the samples given: a guard or an action threw. */
  readonly failures: readonly string[];
}

export interface Share {
  readonly covered: number;
  readonly total: number;
  /** What is not covered, and why. */
  readonly missing: readonly { readonly what: string; readonly why: string }[];
}

/** A step in a few words, for names and messages. */
export function stepLabel(step: Step): string {
  switch (step.kind) {
    case 'event':
      return step.event.type;
    case 'delay':
      return `after ${step.timers.join(' and ')}`;
    case 'done':
      return `${step.effect} is done`;
    case 'error':
      return `${step.effect} fails`;
  }
}
