/** Tests of one machine, as plain data (docs/generating-tests.md). */

/** Fields may be added under the same number; a change of meaning increments it. */
export const suiteVersion = 1;

export interface Suite {
  readonly format: 'chartpilot-tests';
  readonly version: typeof suiteVersion;
  /** The source is the name of a machine of chartpilot, or the path of a module. */
  readonly machine: { readonly id: string; readonly source: string; readonly export: string };
  readonly cover: Cover;
  /** There is one start, unless samples give several inputs. */
  readonly starts: readonly SuiteStart[];
  readonly tests: readonly GeneratedTest[];
  readonly coverage: Coverage;
}

export type Cover = 'states' | 'transitions' | 'paths';

export interface SuiteStart {
  /** Absent if the machine takes no input. */
  readonly input?: unknown;
  readonly expect: Expectation;
}

export interface GeneratedTest {
  /** Unique in its suite. */
  readonly name: string;
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

/** Time passes until exactly these timers fire. Events and outcomes take no time. */
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

export interface Expectation {
  /** Names of nested states joined with `.`, parallel regions with ` | `, in the order of the definition. */
  readonly state: string;
  readonly done: boolean;
  /** Events that the machine sent in this step, in order: `TYPE to RECEIVER`. */
  readonly sent: readonly string[];
  readonly running: readonly string[];
}

export interface Coverage {
  readonly states: Share;
  readonly transitions: Share;
  /** Transitions for which a test also sends an event that the guard rejects, so that no transition is taken. */
  readonly refusals: number;
  readonly explored: {
    /** Different configurations of state, context, effects and timers. */
    readonly configurations: number;
    readonly steps: number;
    readonly depth: number;
    readonly complete: boolean;
  };
  readonly bounds: readonly string[];
  /** Steps that fail because a guard or an action threw an error. */
  readonly failures: readonly string[];
}

export interface Share {
  readonly covered: number;
  readonly total: number;
  readonly missing: readonly { readonly what: string; readonly why: string }[];
}

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
