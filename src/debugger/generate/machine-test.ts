/** The runtime of generated tests (`chartpilot/machine-test`): runs one machine in isolation, in virtual time, step by step. */
import type { AnyStateMachine } from 'xstate';
import { messageOf } from '../../runtime/errors.ts';
import { MachineRun } from './machine-run.ts';
import { withStandIns } from './stand-ins.ts';
import { type Expectation, type GeneratedTest, type Step, type Suite, stepLabel } from './suite.ts';

/** Each step returns the machine, so that the expectation can follow in the same statement. */
export interface MachineUnderTest {
  event(event: { readonly type: string; readonly [field: string]: unknown }): MachineUnderTest;
  /** No other timer may fire before this one. The name is documentation only. */
  after(timer: string, ms: number): MachineUnderTest;
  /** Ends an effect (an invoked or spawned actor, by its ID) with success. */
  done(effect: string, output?: unknown): MachineUnderTest;
  fails(effect: string, message: string): MachineUnderTest;
  /**
   * @param state nested states joined with `.`, regions with ` | `
   * @param sent events sent in the last step, in order: `TYPE to RECEIVER`
   * @throws Error with expected and actual values
   */
  is(state: string, sent?: readonly string[]): MachineUnderTest;
}

export function startMachine(machine: AnyStateMachine, options: { readonly input?: unknown } = {}): MachineUnderTest {
  const run = new MachineRun(withStandIns(machine), options.input);
  let lastStepLabel = 'start';
  const runStep = (step: Step): MachineUnderTest => {
    lastStepLabel = stepLabel(step);
    run.runStep(step);
    return test;
  };
  const test: MachineUnderTest = {
    event: (event) => runStep({ kind: 'event', event }),
    after: (timer, ms) => runStep({ kind: 'delay', timers: [timer], ms }),
    done: (effect, output) => runStep({ kind: 'done', effect, output }),
    fails: (effect, message) => runStep({ kind: 'error', effect, message }),
    is(state, sentEvents = []) {
      const runOutcome = run.outcome();
      expectSame(`${machine.id} after ${lastStepLabel}: state`, state, runOutcome.state);
      expectSame(`${machine.id} after ${lastStepLabel}: sent`, sentEvents.join(', '), runOutcome.sent.join(', '));
      return test;
    },
  };
  return test;
}

/** @returns the deviation as text; `undefined` if the test passes */
export function departureOf(
  machine: AnyStateMachine,
  suite: Pick<Suite, 'starts'>,
  test: GeneratedTest,
): string | undefined {
  const start = suite.starts[test.start];
  if (start === undefined) return `the suite does not define start ${test.start}`;
  const run = new MachineRun(withStandIns(machine), start.input);
  const initialDifference = difference(start.expect, run.outcome());
  if (initialDifference !== undefined) return `at the start: ${initialDifference}`;
  for (const [index, { do: step, expect }] of test.steps.entries()) {
    try {
      run.runStep(step);
    } catch (error) {
      return `step ${index + 1}, ${stepLabel(step)}: ${messageOf(error)}`;
    }
    const differenceText = difference(expect, run.outcome());
    if (differenceText !== undefined) return `step ${index + 1}, ${stepLabel(step)}: ${differenceText}`;
  }
  return undefined;
}

function difference(expected: Expectation, actual: Expectation): string | undefined {
  for (const field of ['state', 'done', 'sent', 'running'] as const) {
    const [expectedText, actualText] = [JSON.stringify(expected[field]), JSON.stringify(actual[field])];
    if (expectedText !== actualText) return `${field}: expected ${expectedText}, got ${actualText}`;
  }
  return undefined;
}

function expectSame(field: string, expected: string, actual: string): void {
  if (expected !== actual) throw new Error(`${field}: expected '${expected}', got '${actual}'`);
}
