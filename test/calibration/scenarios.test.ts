/** Checks which states and transitions of the model the scenarios reach. test/e2e/calibration.test.ts compares the model with the real Envoy. */
import { describe, expect, test } from 'vitest';
import type { AnyStateNode } from 'xstate';
import { type Reception, simulatedEnvoyMachine } from '../../src/simulation/agent/simulated-envoy.machine.ts';
import { scenarios } from './scenarios.ts';
import { runOnModel, transitionName } from './simulated-run.ts';

const runs = scenarios.map((scenario) => runOnModel(scenario));

/** States in which an observer can find an Envoy, except those that are left immediately. */
function statesBelow(node: AnyStateNode): string[] {
  const ownIds = node.always === undefined || node.always.length === 0 ? [node.id] : [];
  return [...ownIds, ...Object.values(node.states).flatMap(statesBelow)];
}

function transitionsBelow(node: AnyStateNode): string[] {
  const ownTransitions = [...node.transitions.values()].flat().map(transitionName);
  return [...ownTransitions, ...Object.values(node.states).flatMap(transitionsBelow)];
}

/** Transitions within periods too short for a test with a real Envoy. */
const tooShort = [
  // Between the start of a child and its admin interface.
  'envoy.initializing: parent.died → envoy.calling a dead parent',
  // Between SIGKILL and the exit.
  'envoy.killed: signal.sent → stays',
  'envoy.killed: envoy.crashed → stays',
  // A few milliseconds between the end of Envoy's main loop and its exit (test/e2e/reopened-logs.test.ts sends SIGUSR1 repeatedly).
  'envoy.ending: signal.sent → envoy.killed',
  'envoy.ending: signal.sent → envoy.ended by SIGUSR1',
  'envoy.ended by SIGUSR1',
  // The agent's probe, not Envoy's state, keeps an Envoy without a listener from being reported as live.
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
  test.each(Object.values(simulatedEnvoyMachine.root.states).flatMap(statesBelow))(
    'the scenarios reach the state %s, or it is listed as too short',
    (state) => {
      expect(runs.some(({ states }) => states.has(state))).toBe(!tooShort.includes(state));
    },
  );

  test.each(transitionsBelow(simulatedEnvoyMachine.root))(
    'the scenarios take the transition %s, or it is listed as too short',
    (transition) => {
      const isTaken = runs.some(({ transitions }) => transitions.has(transition));
      expect(isTaken).toBe(!tooShort.includes(transition));
    },
  );

  test.each(Object.keys(everyReception) as Reception[])(
    'the scenarios contain a child whose request to its parent has the result "%s"',
    (reception) => {
      expect(runs.flatMap(({ receptions }) => [...receptions])).toContain(reception);
    },
  );

  test('the scenarios have unique names, and each scenario has unique process names', () => {
    expect(new Set(scenarios.map(({ name }) => name)).size).toBe(scenarios.length);
    for (const { name, steps } of scenarios) {
      const startedNames = steps.flatMap((step) => (step.step === 'start' ? [step.name] : []));
      expect(new Set(startedNames).size, name).toBe(startedNames.length);
    }
  });
});
