/**
 * Generated tests of the agent's machines with the agent's own effects and processes: a stand-in for Envoy, which can be
 * made to do whatever a test says, and the real Envoy.
 */
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { GeneratedTest } from '../../src/debugger/generate/suite.ts';
import { stepLabel } from '../../src/debugger/generate/suite.ts';
import { type Driver, formatSuiteReport, runSuite } from '../generated/driver.ts';
import { epochDriver } from '../generated/epoch-session.ts';
import { realHost, standInHost } from '../generated/process-host.ts';
import { restartDriver } from '../generated/restart-session.ts';
import { shutdownDriver } from '../generated/shutdown-session.ts';
import { suiteOf } from '../generated/suites.ts';
import { supervisorDriver } from '../generated/supervisor-session.ts';

/** XState's development build warns of every event that comes too late for an actor. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

/** Each test has base ids, ports and a folder of its own, and mostly waits for its processes. */
const sideBySide = 6;

async function show(
  machine: 'epoch' | 'supervisor' | 'restart' | 'shutdown',
  driver: Driver,
  atLeast: number,
): Promise<void> {
  const report = await runSuite(await suiteOf(machine), driver, sideBySide);
  console.log(formatSuiteReport(report));
  expect(report.departures).toEqual([]);
  expect(report.shown.length).toBeGreaterThanOrEqual(atLeast);
}

const labelsOf = ({ steps }: GeneratedTest): string[] => steps.map((each) => stepLabel(each.do));

/** What needs an Envoy that does something at a moment of the test's choice. */
function beyondEnvoy(labels: readonly string[]): string | undefined {
  if (labels.includes('after firstNotice') && labels.includes('probe.passed'))
    return 'Envoy is not live late on demand';
  return undefined;
}

/** Whatever happens before there is a process is the same with scripted effects, and shown there. */
function withoutProcess(test: GeneratedTest): string | undefined {
  return labelsOf(test).some((label) => /^epoch\.(live|failed|exited)$/.test(label))
    ? undefined
    : 'no process has a part in it';
}

describe('with a stand-in process', () => {
  test('an epoch does what its generated tests expect', () => show('epoch', epochDriver(standInHost), 30));

  test('the supervisor does what its generated tests expect', () =>
    show('supervisor', supervisorDriver(standInHost, withoutProcess), 17));

  test('a restart does what its generated tests expect', () => show('restart', restartDriver(standInHost), 15));

  test('the end does what its generated tests expect', () => show('shutdown', shutdownDriver(standInHost), 7));
});

describe('with the real Envoy', () => {
  test('an epoch does what its generated tests expect', () => show('epoch', epochDriver(realHost, beyondEnvoy), 30));

  test('the supervisor does what its generated tests expect', () =>
    show('supervisor', supervisorDriver(realHost, withoutProcess), 16));

  test('a restart does what its generated tests expect', () => show('restart', restartDriver(realHost), 15));

  test('the end does what its generated tests expect', () => show('shutdown', shutdownDriver(realHost), 7));
});
