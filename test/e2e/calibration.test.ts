/**
 * Runs the same scenarios with the simulated Envoy and the real one: the order of events and the exits must be the same. A deliberately broken model
 * must be detected.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { envoyOnHost } from '../../src/simulation/agent/simulated-host.ts';
import { deviations, type Observation } from '../calibration/observations.ts';
import { runOnRealEnvoys } from '../calibration/real-run.ts';
import type { Scenario } from '../calibration/scenario.ts';
import { scenarios } from '../calibration/scenarios.ts';
import { runOnModel } from '../calibration/simulated-run.ts';
import { leftovers } from '../harness/host-processes.ts';

/** Number of parallel scenarios; most of them wait most of the time. */
const sideBySide = 8;
/**
 * Scenarios have time limits, which an Envoy on a busy machine may exceed. A deviating scenario is repeated without others; a wrong model deviates
 * each time.
 */
const maxRepetitions = 4;

const testRun = randomUUID();
const observedOnEnvoy = new Map<Scenario, readonly Observation[] | Error>();

beforeAll(async () => {
  const pendingScenarios = scenarios.values();
  const runInTurn = async (): Promise<void> => {
    for (const scenario of pendingScenarios) {
      observedOnEnvoy.set(scenario, await runOnEnvoy(scenario));
    }
  };
  await Promise.all(Array.from({ length: sideBySide }, runInTurn));
  for (let repetition = 0; repetition < maxRepetitions; repetition++) {
    for (const scenario of scenarios.filter(departs)) {
      console.log(`once more: ${scenario.name}`);
      observedOnEnvoy.set(scenario, await runOnEnvoy(scenario));
    }
  }
  // A quiet machine needs 20 s; with a load average of 30, two minutes were not enough.
});

afterAll(() => {
  expect(leftovers(testRun, new Set())).toEqual([]);
});

function runOnEnvoy(scenario: Scenario): Promise<readonly Observation[] | Error> {
  return runOnRealEnvoys(scenario, testRun).catch((error: unknown) => error as Error);
}

function departs(scenario: Scenario): boolean {
  return observedOnEnvoy.get(scenario) instanceof Error || deviationsIn(scenario).length > 0;
}

/** How the model deviates from the real Envoy in this scenario. */
function deviationsIn(scenario: Scenario, envoy = envoyOnHost): string[] {
  const envoyObservations = observedOnEnvoy.get(scenario)!;
  if (envoyObservations instanceof Error) throw envoyObservations;
  try {
    return deviations(envoyObservations, runOnModel(scenario, envoy).observed);
  } catch (error) {
    return [(error as Error).message];
  }
}

test.each(scenarios)('$name', (scenario) => {
  expect(deviationsIn(scenario)).toEqual([]);
});

/** An action of the machine with its signature for the host. */
type Effect = (actor: { self: { getSnapshot(): { matches(state: string): boolean } } }, params?: unknown) => void;
const effects = envoyOnHost.implementations.actions as unknown as Record<string, Effect>;
const withEffect = (name: string, effect: Effect): typeof envoyOnHost =>
  envoyOnHost.provide({ actions: { [name]: effect } } as never);

describe('calibration with an incorrect model of Envoy', () => {
  // Broken models exit at wrong times, and XState's development build warns about events for an exited Envoy.
  beforeAll(() => {
    vi.spyOn(console, 'warn').mockImplementation(() => {});
  });

  const noticed = (envoy: typeof envoyOnHost): string[] =>
    scenarios.filter((scenario) => deviationsIn(scenario, envoy).length > 0).map(({ name }) => name);

  // live-probe.test.ts covers the hold-back of an Envoy without listeners, which belongs to the probe.
  const probeEffects = new Set(['beginHoldBack', 'endHoldBack']);
  const envoyEffects = Object.keys(effects).filter((name) => !probeEffects.has(name));

  test.each(envoyEffects)('detects that the model omits the action "%s"', (name) => {
    expect(noticed(withEffect(name, () => {}))).not.toEqual([]);
  });

  test('detects that a child that is not live exits without its parent (fact 3)', () => {
    const sendsParentAwayWhenLive: Effect = (actor) => {
      if (!actor.self.getSnapshot().matches('initializing')) effects.sendParentAway!(actor);
    };
    expect(noticed(withEffect('sendParentAway', sendsParentAwayWhenLive))).toEqual([
      'a child that receives SIGTERM before it is live, while its grandparent drains, exits with its parent',
      'a child that receives SIGTERM before it is live exits with its parent',
    ]);
  });

  test.each([
    ['a clean exit has exit code 1', { code: 0 }, { code: 1 }],
    ['an abort has the same exit code as a kill', { signal: 'SIGABRT' }, { signal: 'SIGKILL' }],
    [
      'a rejection by the parent has the same exit code as another failure',
      { refusedByParent: true },
      { refusedByParent: false },
    ],
  ])('detects that %s', (_, usualFields, wrongFields) => {
    const leavesWrong: Effect = (actor, params) => {
      const { end } = params as { end: object };
      const isUsual = Object.entries(usualFields).every(
        ([key, value]) => (end as Record<string, unknown>)[key] === value,
      );
      effects.leave!(actor, { end: isUsual ? { ...end, ...wrongFields } : end });
    };
    expect(noticed(withEffect('leave', leavesWrong))).not.toEqual([]);
  });

  test.each([
    ['drainTime', 20_000],
    ['parentShutdown', 20_000],
    ['tenTries', 1_000],
    ['tenTries', 20_000],
  ])('detects that the delay %s takes %d ms', (delay, ms) => {
    expect(noticed(envoyOnHost.provide({ delays: { [delay]: ms } } as never))).not.toEqual([]);
  });
});
