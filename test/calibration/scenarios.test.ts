/** What the scenarios reach in the model. That the model is right is for test/e2e/calibration.test.ts to say. */
import { describe, expect, test } from 'vitest';
import type { AnyStateNode } from 'xstate';
import { type Reception, simulatedEnvoyMachine } from '../../src/simulation/agent/simulated-envoy.machine.ts';
import { scenarios } from './scenarios.ts';
import { runOnModel, transitionName } from './simulated-run.ts';

const runs = scenarios.map((scenario) => runOnModel(scenario));

/** All that an observer may find an Envoy in: a state that is left at once is none. */
function statesBelow(node: AnyStateNode): string[] {
  const own = node.always === undefined || node.always.length === 0 ? [node.id] : [];
  return [...own, ...Object.values(node.states).flatMap(statesBelow)];
}

function transitionsBelow(node: AnyStateNode): string[] {
  const own = [...node.transitions.values()].flat().map(transitionName);
  return [...own, ...Object.values(node.states).flatMap(transitionsBelow)];
}

/** Of moments that a test can't hit on a real Envoy. */
const tooShort = [
  // Between a child's first breath and its admin interface.
  'envoy.initializing: parent.died → envoy.calling a dead parent',
  // Between SIGKILL and the end.
  'envoy.killed: signal.sent → stays',
  'envoy.killed: envoy.crashed → stays',
  // Between the end of its main loop and its exit, some milliseconds (test/e2e/reopened-logs.test.ts sends SIGUSR1 all the time).
  'envoy.ending: signal.sent → envoy.killed',
  'envoy.ending: signal.sent → envoy.ended by SIGUSR1',
  'envoy.ended by SIGUSR1',
  // What keeps an Envoy that lacks a listener from being told as live is its probe's, not its own.
  'envoy: hold-back.over → stays',
];

const everyReception: Record<Reception, true> = {
  accepted: true,
  refused: true,
  'no address': true,
  'no parent': true,
  'no shared memory': true,
  'no response': true,
};

describe('the scenarios', () => {
  test.each(Object.values(simulatedEnvoyMachine.root.states).flatMap(statesBelow))('reach %s', (state) => {
    expect(runs.some(({ states }) => states.has(state))).toBe(!tooShort.includes(state));
  });

  test.each(transitionsBelow(simulatedEnvoyMachine.root))('take %s, unless no test can', (transition) => {
    const taken = runs.some(({ transitions }) => transitions.has(transition));
    expect(taken).toBe(!tooShort.includes(transition));
  });

  test.each(Object.keys(everyReception) as Reception[])('have a newcomer received as "%s"', (reception) => {
    expect(runs.flatMap(({ receptions }) => [...receptions])).toContain(reception);
  });

  test('have names of their own, and so have the processes of each', () => {
    expect(new Set(scenarios.map(({ name }) => name)).size).toBe(scenarios.length);
    for (const { name, steps } of scenarios) {
      const started = steps.flatMap((step) => (step.step === 'start' ? [step.name] : []));
      expect(new Set(started).size, name).toBe(started.length);
    }
  });
});
