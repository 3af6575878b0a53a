/**
 * The output of `chartpilot generate`: tests of one machine, as plain data (docs/generating-tests.md). A runner in any
 * language needs nothing else: it starts the machine, takes the steps one by one, and compares.
 */

/** The value of {@link Suite.version}. Fields may be added under the same number; a change of meaning increments it. */
export const suiteVersion = 1;

/** The output of `--format json`. */
export interface Suite {
  readonly format: 'chartpilot-tests';
  readonly version: typeof suiteVersion;
  /** The ID of the machine, and its source: the name of a machine of chartpilot, or the path of a module. */
  readonly machine: { readonly id: string; readonly source: string; readonly export: string };
  readonly cover: Cover;
  /** The starts of the tests: one, unless samples give several inputs. */
  readonly starts: readonly Start[];
  readonly tests: readonly GeneratedTest[];
  readonly coverage: Coverage;
}

export type Cover = 'states' | 'transitions' | 'paths';

export interface Start {
  /** Absent if the machine takes no input. */
  readonly input?: unknown;
  /** The expected result before the first step. */
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

export type Step = EventStep | DelayStep | DoneStep | ErrorStep;

/** The machine receives this event, from any sender. */
export interface EventStep {
  readonly kind: 'event';
  readonly event: { readonly type: string; readonly [field: string]: unknown };
}

/**
 * Time passes until exactly these timers fire (`after`, delayed events): `ms` milliseconds after the previous step.
 * Events and outcomes take no time.
 */
export interface DelayStep {
  readonly kind: 'delay';
  readonly timers: readonly string[];
  readonly ms: number;
}

/** An effect (an invoked or spawned actor, by its ID) succeeds. */
export interface DoneStep {
  readonly kind: 'done';
  readonly effect: string;
  readonly output?: unknown;
}

/** An effect fails with an `Error` with this message. */
export interface ErrorStep {
  readonly kind: 'error';
  readonly effect: string;
  readonly message: string;
}

/** The expected result of a step. */
export interface Expectation {
  /**
   * Names of nested states joined with `.`, parallel regions with `
   *  `, in the order of the definition.
   */
  readonly state: string;
  /** Whether the machine has reached a final state. */
  readonly done: boolean;
  /** Events that the machine sent in this step, in order: `TYPE to RECEIVER`. */
  readonly sent: readonly string[];
  /** IDs of the running effects, sorted. */
  readonly running: readonly string[];
}

/** The coverage of the machine by the tests. */
export interface Coverage {
  readonly states: Share;
  readonly transitions: Share;
  /** Transitions whose guards also refuse an event in a test, with no other transition taken. */
  readonly refusals: number;
  /** The part of the machine that was explored to find the tests. */
  readonly explored: {
    /** Different configurations of state, context, effects and timers. */
    readonly configurations: number;
    readonly steps: number;
    readonly depth: number;
    /** Whether no limit was reached. */
    readonly complete: boolean;
  };
  /** Descriptions of all limits that were reached. */
  readonly bounds: readonly string[];
  /** Steps that the machine cannot take with the given samples because a guard or an action threw an error. */
  readonly failures: readonly string[];
}

export interface Share {
  readonly covered: number;
  readonly total: number;
  /** Names of targets that are not covered, with the reason. */
  readonly missing: readonly { readonly what: string; readonly why: string }[];
}

/** A short description of a step, for names and messages. */
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
