/**
 * What generated vitest files import (`chartpilot/machine-test`): runs a machine alone, in virtual time, step by step.
 * Any test runner will do: a step that does not bring what it should throws.
 */
import type { AnyStateMachine } from 'xstate';
import { messageOf } from '../../runtime/errors.ts';
import { MachineRun } from './machine-run.ts';
import { withStandIns } from './stand-ins.ts';
import { type Expectation, type GeneratedTest, type Step, type Suite, stepLabel } from './suite.ts';

/** A machine under test. Each step returns it, so that what is expected can be said in the same line. */
export interface MachineUnderTest {
  /** Sends it an event. */
  event(event: { readonly type: string; readonly [field: string]: unknown }): MachineUnderTest;
  /** Lets `ms` milliseconds pass since the last step; nothing may happen before they are over. The name is for readers. */
  after(timer: string, ms: number): MachineUnderTest;
  /** An effect (an invoked or spawned actor, by its id) ends well. */
  done(effect: string, output?: unknown): MachineUnderTest;
  /** An effect fails with an `Error` of this message. */
  fails(effect: string, message: string): MachineUnderTest;
  /**
   * What must be so after the last step.
   *
   * @param state nested states joined with `.`, regions with ` | `
   * @param sent what it sent to others in the last step, in order: `TYPE to RECEIVER`
   * @throws Error that says what is so instead
   */
  is(state: string, sent?: readonly string[]): MachineUnderTest;
}

/** Starts a machine with stand-ins for its effects, below a parent and among peers that take whatever it sends. */
export function startMachine(machine: AnyStateMachine, options: { readonly input?: unknown } = {}): MachineUnderTest {
  const run = new MachineRun(withStandIns(machine), options.input);
  let last = 'start';
  const take = (step: Step): MachineUnderTest => {
    last = stepLabel(step);
    run.take(step);
    return test;
  };
  const test: MachineUnderTest = {
    event: (event) => take({ kind: 'event', event }),
    after: (timer, ms) => take({ kind: 'delay', timers: [timer], ms }),
    done: (effect, output) => take({ kind: 'done', effect, output }),
    fails: (effect, message) => take({ kind: 'error', effect, message }),
    is(state, sent = []) {
      const outcome = run.outcome();
      expectSame(`${machine.id} after ${last}: state`, state, outcome.state);
      expectSame(`${machine.id} after ${last}: sent`, sent.join(', '), outcome.sent.join(', '));
      return test;
    },
  };
  return test;
}

/**
 * Runs one test of a suite (`--format json`).
 *
 * @returns what is not as the test expects it, in words; undefined when all is
 */
export function departureOf(
  machine: AnyStateMachine,
  suite: Pick<Suite, 'starts'>,
  test: GeneratedTest,
): string | undefined {
  const start = suite.starts[test.start];
  if (start === undefined) return `the suite does not define start ${test.start}`;
  const run = new MachineRun(withStandIns(machine), start.input);
  const initially = difference(start.expect, run.outcome());
  if (initially !== undefined) return `at the start: ${initially}`;
  for (const [index, { do: step, expect }] of test.steps.entries()) {
    try {
      run.take(step);
    } catch (error) {
      return `step ${index + 1}, ${stepLabel(step)}: ${messageOf(error)}`;
    }
    const different = difference(expect, run.outcome());
    if (different !== undefined) return `step ${index + 1}, ${stepLabel(step)}: ${different}`;
  }
  return undefined;
}

function difference(expected: Expectation, seen: Expectation): string | undefined {
  for (const what of ['state', 'done', 'sent', 'running'] as const) {
    const [wanted, got] = [JSON.stringify(expected[what]), JSON.stringify(seen[what])];
    if (wanted !== got) return `${what}: expected ${wanted}, got ${got}`;
  }
  return undefined;
}

function expectSame(what: string, expected: string, seen: string): void {
  if (expected !== seen) throw new Error(`${what}: expected '${expected}', got '${seen}'`);
}
