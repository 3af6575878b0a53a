/** The agent is killed at any moment and leaves its Envoys running; another one follows it. Every state within bounds, as in explore.test.ts. */
import { beforeAll, expect, test, vi } from 'vitest';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { type Exploration, explore, findShortest } from '../../src/debugger/explore/explorer.ts';
import type { Bounds } from '../../src/simulation/agent/exploration-bounds.ts';
import { exploreAgent } from '../../src/simulation/agent/explore-agent.ts';
import { nobodyForgotten } from '../../src/simulation/agent/invariants/exits.ts';
import { sized } from '../harness/size-of-run.ts';

vi.setConfig({ testTimeout: 900_000 });

/** XState's development build warns of every event that comes too late for an actor: here, of thousands. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const bounds = (triggers: number, faults: number, stops: Bounds['stops']): Bounds => ({ triggers, faults, stops });
const figures = ({ outcome, found }: Exploration) => ({ outcome, found });
const killed = { agentKilled: true };

test.each([
  { within: bounds(0, 1, 0), faults: ['kill'] },
  { within: bounds(0, 1, 1), faults: ['kill'] },
  { within: bounds(0, 2, 0), faults: ['kill', 'crash'] },
  // 32,318 states; and 63,400 where the second agent may be killed, too.
  ...sized({
    short: [],
    full: [
      { within: bounds(1, 1, 0), faults: ['kill'] },
      { within: bounds(1, 2, 0), faults: ['kill'] },
    ],
  }),
])('one that takes over breaks no invariant and conforms to the diagrams: $within, $faults', ({ within, faults }) => {
  const result = explore(() => exploreAgent(within, { ...killed, faults }).beginChecked());
  expect(figures(result)).toEqual({ outcome: 'complete', found: undefined });
});

test.each([
  { within: bounds(1, 0, 0), orders: ['successor'] },
  { within: bounds(1, 0, 1), orders: ['successor'] },
  { within: bounds(1, 1, 0), orders: ['successor'], faults: ['crash'] },
  ...sized({
    short: [],
    full: [
      // 41,763 states.
      { within: bounds(2, 0, 0), orders: ['successor', 'hup'] },
      { within: bounds(3, 0, 1), orders: ['successor', 'hup'] },
      { within: bounds(2, 1, 0), orders: ['successor', 'hup'], faults: ['crash', 'kill'] },
    ],
  }),
])('one that gives way, and takes back, breaks no invariant and conforms to the diagrams: $within', (run) => {
  const { within, ...which } = run;
  const result = explore(() => exploreAgent(within, { ...killed, agentSucceeded: true, ...which }).beginChecked());
  expect(figures(result)).toEqual({ outcome: 'complete', found: undefined });
});

test('one that took over nothing would be noticed: an Envoy would have nobody who waits for its exit', () => {
  const forgetful = supervisorMachine.provide({ actions: { adoptEpochs: () => {} } });
  const machines = { supervisor: forgetful };
  const invariants = [nobodyForgotten];
  const agent = exploreAgent(bounds(0, 1, 0), { ...killed, faults: ['kill'], machines, invariants });
  const { found } = findShortest(() => agent.begin());
  expect(found?.path).toContain('kill');
  expect(found?.violations[0]?.invariant).toBe('every process is reaped');
});
