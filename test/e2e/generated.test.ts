/** Generated tests of the agent's machines with the agent's real effects and processes, with the real Envoy and with a scripted fake. */
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { GeneratedTest, Suite } from '../../src/debugger/generate/suite.ts';
import { stepLabel } from '../../src/debugger/generate/suite.ts';
import { type Driver, formatSuiteReport, runSuite } from '../generated/driver.ts';
import { epochDriver } from '../generated/epoch-session.ts';
import { realHost, standInHost } from '../generated/process-host.ts';
import { restartDriver } from '../generated/restart-session.ts';
import { scriptedHost } from '../generated/scripted-host.ts';
import { shutdownDriver } from '../generated/shutdown-session.ts';
import { suiteOf } from '../generated/suites.ts';
import { supervisorDriver } from '../generated/supervisor-session.ts';
import { sized } from '../harness/size-of-run.ts';

/** XState's development build warns about every event that reaches a stopped actor. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const isFull = sized({ short: false, full: true });

/** Number of parallel tests: each has its own base IDs, ports and folder, and mostly waits for its processes. */
const sideBySide = 6;

/** The suite without the tests with these names, which an environment need not pass. */
const withoutTests = (suite: Suite, names: readonly string[]): Suite => ({
  ...suite,
  tests: suite.tests.filter(({ name }) => !names.includes(name)),
});

/** With simulated effects, Envoy is abandoned at its deadline; a real process exits while the virtual clock stands still. */
const onlyOfTime = 'epoch.unkillable comes before epoch.exited';

interface Drivers {
  readonly scripted: Driver;
  readonly real: Driver;
  readonly standIn: Driver;
}

/**
 * Skips tests that need an impossible environment, and tests that wait for seconds with real processes; the fake does not repeat tests that passed
 * with the real Envoy. A full run tries all tests with both.
 */
async function show(
  machine: 'epoch' | 'supervisor' | 'restart' | 'shutdown',
  { scripted, real, standIn }: Drivers,
  minShown: { real: number; standIn: number; either: number },
): Promise<void> {
  const suite = await suiteOf(machine);
  const { notShown } = await runSuite(suite, scripted);
  const impossible = [...notShown].flatMap(([reason, names]) => (isFull || reason === onlyOfTime ? [] : names));
  const possible = withoutTests(suite, impossible);
  const sharedReport = await runSuite(possible, real, sideBySide);
  // Envoy may be too slow next to five others; those tests are repeated one at a time.
  const singleReport = await runSuite(withoutTests(possible, sharedReport.shown), real);
  const envoyReport = { ...singleReport, shown: [...sharedReport.shown, ...singleReport.shown] };
  const standInReport = await runSuite(
    isFull ? possible : withoutTests(possible, envoyReport.shown),
    standIn,
    sideBySide,
  );
  for (const report of [sharedReport, singleReport, standInReport]) {
    console.log(formatSuiteReport(report));
    expect(report.deviations).toEqual([]);
  }
  expect(envoyReport.shown.length).toBeGreaterThanOrEqual(minShown.real);
  expect(standInReport.shown.length).toBeGreaterThanOrEqual(isFull ? minShown.real : minShown.standIn);
  expect(new Set([...envoyReport.shown, ...standInReport.shown]).size).toBeGreaterThanOrEqual(minShown.either);
}

const labelsOf = ({ steps }: GeneratedTest): string[] => steps.map((testStep) => stepLabel(testStep.do));

/** Returns the reason if the test needs an Envoy that acts at a given moment. */
function beyondEnvoy(labels: readonly string[]): string | undefined {
  if (labels.includes('after firstNotice') && labels.includes('probe.passed'))
    return 'Envoy is not live late on demand';
  return undefined;
}

/** Returns the reason if all events precede the start of a process; simulated effects cover these. */
function withoutProcess(test: GeneratedTest): string | undefined {
  return labelsOf(test).some((label) => /^epoch\.(live|failed|exited)$/.test(label))
    ? undefined
    : 'no process has a part in it';
}

describe('generated tests with a real Envoy, or a fake one for behavior that cannot be forced', () => {
  test('pass for an epoch', () =>
    show(
      'epoch',
      {
        scripted: epochDriver(scriptedHost),
        real: epochDriver(realHost, beyondEnvoy),
        standIn: epochDriver(standInHost),
      },
      { real: 30, standIn: 0, either: 42 },
    ));

  test('pass for the supervisor', () =>
    show(
      'supervisor',
      {
        scripted: supervisorDriver(scriptedHost, () => undefined),
        real: supervisorDriver(realHost, withoutProcess),
        standIn: supervisorDriver(standInHost, withoutProcess),
      },
      // A daily run has nine tenths of the tests of this suite (test/generated/suites.ts).
      sized({ short: { real: 15, standIn: 0, either: 15 }, full: { real: 19, standIn: 0, either: 19 } }),
    ));

  test('pass for a restart', () =>
    show(
      'restart',
      { scripted: restartDriver(scriptedHost), real: restartDriver(realHost), standIn: restartDriver(standInHost) },
      { real: 15, standIn: 0, either: 15 },
    ));

  test('pass for a shutdown', () =>
    show(
      'shutdown',
      { scripted: shutdownDriver(scriptedHost), real: shutdownDriver(realHost), standIn: shutdownDriver(standInHost) },
      { real: 7, standIn: 0, either: 7 },
    ));
});
