/** Generated tests of the agent's machines with scripted effects and real peers; the generated vitest files run each machine without peers. */
import { beforeAll, expect, test, vi } from 'vitest';
import { createMachine, fromPromise } from 'xstate';
import { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import { stepLabel } from '../../src/debugger/generate/suite.ts';
import { formatSuiteReport, runSuite, StepNotPossible } from './driver.ts';
import { epochDriver } from './epoch-session.ts';
import type { Host, HostKind, HostPlan } from './host.ts';
import { restartDriver } from './restart-session.ts';
import { scriptedHost } from './scripted-host.ts';
import { shutdownDriver } from './shutdown-session.ts';
import { suiteOf } from './suites.ts';
import { supervisorDriver } from './supervisor-session.ts';
import { watcherWithRealFiles, watcherWithScriptedFiles } from './watcher-session.ts';

/** XState's development build warns about every event for a stopped actor. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

test('the epoch machine with its peers behaves as its generated tests expect', async () => {
  const report = await runSuite(await suiteOf('epoch'), epochDriver(scriptedHost));
  console.log(formatSuiteReport(report));
  expect(report.deviations).toEqual([]);
  expect(report.shown.length).toBeGreaterThanOrEqual(30);
});

test('an epoch machine deviates from its generated tests if it stops instead of draining', async () => {
  const runningState = epochMachine.config.states!.running!;
  const live = { ...runningState.states!.live, on: { ...runningState.states!.live!.on, 'epoch.drain': 'ending' } };
  const states = {
    ...epochMachine.config.states,
    running: { ...runningState, states: { ...runningState.states, live } },
  };
  const brokenMachine = createMachine(
    { ...epochMachine.config, states } as never,
    epochMachine.implementations as never,
  );
  const driver = epochDriver(scriptedHost, undefined, brokenMachine as unknown as typeof epochMachine);
  const { deviations } = await runSuite(await suiteOf('epoch'), driver);
  expect(deviations).toContainEqual(
    expect.stringMatching(/epoch.drain: the state is running.ending.terminating, expected running.draining$/),
  );
});

test('the supervisor machine with its peers behaves as its generated tests expect', async () => {
  const report = await runSuite(
    await suiteOf('supervisor'),
    supervisorDriver(scriptedHost, () => undefined),
  );
  console.log(formatSuiteReport(report));
  expect(report.deviations).toEqual([]);
  expect(report.shown.length).toBeGreaterThanOrEqual(30);
});

test('the restart machine with its peers behaves as its generated tests expect', async () => {
  const report = await runSuite(await suiteOf('restart'), restartDriver(scriptedHost));
  console.log(formatSuiteReport(report));
  expect(report.deviations).toEqual([]);
  expect(report.shown.length).toBeGreaterThanOrEqual(15);
});

test.each([
  ['restart', restartDriver],
  ['shutdown', shutdownDriver],
] as const)(
  'the %s machine deviates from its generated tests if SIGKILL does not end processes',
  async (name, driver) => {
    const openHost = async (plan: HostPlan): Promise<Host> => {
      const host = await scriptedHost.open(plan);
      return { ...host, end: (epoch, endKind) => (endKind === 'killed' ? undefined : host.end(epoch, endKind)) };
    };
    const suite = await suiteOf(name);
    // Tests that wait for the exit would only time out.
    const tests = suite.tests.filter(
      ({ steps }) => !steps.some((testStep) => stepLabel(testStep.do) === 'child.ended'),
    );
    const { deviations } = await runSuite({ ...suite, tests }, driver({ ...scriptedHost, open: openHost }));
    expect(deviations).toContainEqual(expect.stringMatching(/after its last step epoch-\d is there$/));
  },
);

test.each([
  ['epoch', (kind: HostKind) => epochDriver(kind)],
  ['restart', restartDriver],
  ['shutdown', shutdownDriver],
  ['supervisor', (kind: HostKind) => supervisorDriver(kind, () => undefined)],
] as const)('a session of the %s machine that fails to start closes its host', async (name, driver) => {
  const [openSpy, closeSpy] = [vi.fn(), vi.fn(async () => {})];
  const openHost = async (plan: HostPlan): Promise<Host> => {
    openSpy();
    const host = await scriptedHost.open(plan);
    const rejectPreparation = () => Promise.reject(new StepNotPossible('its folder cannot be made'));
    return Object.defineProperty({ ...host, prepare: rejectPreparation, close: closeSpy }, 'epochEffects', {
      get: () => {
        throw new StepNotPossible('none');
      },
    });
  };
  const suite = await suiteOf(name);
  await runSuite({ ...suite, tests: suite.tests.slice(0, 3) }, driver({ ...scriptedHost, open: openHost }));
  expect(openSpy).toHaveBeenCalled();
  expect(closeSpy).toHaveBeenCalledTimes(openSpy.mock.calls.length);
});

test('a shutdown test is reported as not demonstrated if the host miscounts requests', async () => {
  const openHost = async (plan: HostPlan): Promise<Host> => ({
    ...(await scriptedHost.open(plan)),
    shutdownEffects: { countRequests: fromPromise<number, { adminPort: number }>(async () => 0) },
  });
  const { notShown } = await runSuite(await suiteOf('shutdown'), shutdownDriver({ ...scriptedHost, open: openHost }));
  expect(notShown.get('count is done comes for another reason')).toHaveLength(1);
  expect(notShown.get('xstate.done.actor.count comes before count fails')).toHaveLength(1);
});

test('the shutdown machine with its peers behaves as its generated tests expect', async () => {
  const report = await runSuite(await suiteOf('shutdown'), shutdownDriver(scriptedHost));
  console.log(formatSuiteReport(report));
  expect(report.deviations).toEqual([]);
  expect(report.shown.length).toBeGreaterThanOrEqual(7);
});

test.each([
  ['scripted files', watcherWithScriptedFiles, 6],
  ['real files', watcherWithRealFiles, 2],
] as const)(
  'the certificate watcher with its peers and %s behaves as its generated tests expect',
  async (_, driver, minShown) => {
    const report = await runSuite(await suiteOf('cert-watcher'), driver);
    console.log(formatSuiteReport(report));
    expect(report.deviations).toEqual([]);
    expect(report.shown.length).toBeGreaterThanOrEqual(minShown);
  },
);
