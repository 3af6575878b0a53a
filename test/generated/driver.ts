/** Runs a generated suite on a host, and counts tests that cannot run there: none is skipped silently. */
import type { GeneratedTest, Step, Suite } from '../../src/debugger/generate/suite.ts';
import { stepLabel } from '../../src/debugger/generate/suite.ts';

/** One machine with its peers, ready for the steps of one test. */
export interface TestSession {
  /**
   * Triggers a step and waits until the machine has handled it.
   *
   * @returns the machine's state after the step
   * @throws NotShown if a peer triggers another event first, or cannot trigger this one
   */
  take(step: Step): Promise<string>;
  /** Deviations of the peers from the expected state after all steps; `undefined` without deviations. */
  finalDeviation?(): Promise<string | undefined>;
  /** Stops everything that was started. */
  end(): Promise<void>;
}

export interface Driver {
  readonly name: string;
  /** Reason why a test cannot run here, known before it starts. */
  cannot(test: GeneratedTest): string | undefined;
  begin(test: GeneratedTest, input: unknown): Promise<TestSession>;
}

/** The next step cannot occur on this host. This is not a failure of the machine. */
export class StepNotPossible extends Error {}

export interface SuiteReport {
  readonly driver: string;
  readonly machine: string;
  readonly shown: readonly string[];
  /** Names of tests by reason. */
  readonly notShown: ReadonlyMap<string, readonly string[]>;
  /** Deviations of a machine from its tests. */
  readonly deviations: readonly string[];
  readonly ms: number;
}

/**
 * Runs all tests; a deviation does not stop the run.
 *
 * @param sideBySide number of concurrent tests, for hosts that mostly wait
 */
export async function runSuite(suite: Suite, driver: Driver, sideBySide = 1): Promise<SuiteReport> {
  const startedAt = performance.now();
  const shownNames: string[] = [];
  const deviations: string[] = [];
  const notShown = new Map<string, string[]>();
  const pendingTests = suite.tests.values();
  const runInTurn = async (): Promise<void> => {
    for (const test of pendingTests) {
      const reason = driver.cannot(test) ?? (await runTest(suite, test, driver));
      if (reason === undefined) shownNames.push(test.name);
      else if (reason.startsWith(deviationPrefix))
        deviations.push(`${test.name}: ${reason.slice(deviationPrefix.length)}`);
      else notShown.set(reason, [...(notShown.get(reason) ?? []), test.name]);
    }
  };
  await Promise.all(Array.from({ length: sideBySide }, runInTurn));
  const ms = Math.round(performance.now() - startedAt);
  return { driver: driver.name, machine: suite.machine.id, shown: shownNames, notShown, deviations, ms };
}

const deviationPrefix = 'departs: ';

async function runTest(suite: Suite, test: GeneratedTest, driver: Driver): Promise<string | undefined> {
  let session: TestSession | undefined;
  try {
    session = await driver.begin(test, suite.starts[test.start]!.input);
    for (const [index, { do: step, expect }] of test.steps.entries()) {
      const state = await session.take(step);
      if (state !== expect.state) {
        return `${deviationPrefix}step ${index + 1}, ${stepLabel(step)}: the state is ${state}, expected ${expect.state}`;
      }
    }
    const deviation = await session.finalDeviation?.();
    return deviation === undefined ? undefined : `${deviationPrefix}after its last step ${deviation}`;
  } catch (error) {
    if (error instanceof StepNotPossible) return error.message;
    throw new Error(`${driver.name}, ${test.name}`, { cause: error });
  } finally {
    await session?.end();
  }
}

/** Formats the number of paths shown, and the reasons why others could not be shown, most frequent first. */
export function formatSuiteReport({ driver, machine, shown, notShown, ms }: SuiteReport): string {
  const notShownCount = [...notShown.values()].reduce((sum, names) => sum + names.length, 0);
  return [
    `${machine} with ${driver}: ${shown.length} of ${shown.length + notShownCount} generated paths shown, ${(ms / 1000).toFixed(1)} s`,
    ...[...notShown]
      .sort(([, a], [, b]) => b.length - a.length)
      .map(([reason, names]) => `  ${String(names.length).padStart(3)} not: ${reason}`),
  ].join('\n');
}
