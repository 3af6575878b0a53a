/** The agent is killed at any moment and leaves its Envoys running; another agent takes over. Every state within bounds, as in explore.test.ts. */
import { beforeAll, expect, test, vi } from 'vitest';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { type Exploration, explore, findShortest } from '../../src/debugger/explore/explorer.ts';
import type { Bounds } from '../../src/simulation/agent/exploration-bounds.ts';
import { exploreAgent } from '../../src/simulation/agent/explore-agent.ts';
import { everyProcessIsAwaited } from '../../src/simulation/agent/invariants/exits.ts';
import { sized } from '../harness/size-of-run.ts';
import { expectSameChoices } from './given-worlds.ts';

/** The full run takes minutes on a shared CPU. */
vi.setConfig({ testTimeout: 1_200_000 });

/** XState's development build warns about every event for a stopped actor, here thousands. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const bounds = (triggers: number, faults: number, stops: Bounds['stops']): Bounds => ({ triggers, faults, stops });
const killedOptions = { agentKilled: true };

function expectComplete({ outcome, states, edges, found, ms }: Exploration): void {
  console.info(`${expect.getState().currentTestName}: ${states} states, ${edges} edges, ${(ms / 1_000).toFixed(1)} s`);
  expect(found).toBeUndefined();
  expect(outcome).toBe('complete');
  expect(states).toBeGreaterThan(50);
}

test.each([
  { within: bounds(0, 1, 0), faults: ['kill'] },
  { within: bounds(0, 1, 1), faults: ['kill'] },
  { within: bounds(0, 2, 0), faults: ['kill', 'crash'] },
  ...sized({
    short: [],
    full: [
      { within: bounds(1, 1, 0), faults: ['kill'] },
      // The second agent may be killed, too.
      { within: bounds(1, 2, 0), faults: ['kill'] },
      { within: bounds(1, 2, 0), faults: ['kill', 'crash'] },
    ],
  }),
])(
  'an agent that adopts epochs breaks no invariant and conforms to the diagrams within the bounds $within with the faults $faults',
  ({ within, faults }) => {
    expectComplete(explore(() => exploreAgent(within, { ...killedOptions, faults }).beginChecked()));
  },
);

test.each([
  { within: bounds(1, 0, 0), orders: ['successor'] },
  { within: bounds(1, 0, 1), orders: ['successor'] },
  { within: bounds(1, 1, 0), orders: ['successor'], faults: ['crash'] },
  ...sized({
    short: [],
    full: [
      { within: bounds(2, 0, 0), orders: ['successor', 'hup'] },
      { within: bounds(3, 0, 1), orders: ['successor', 'hup'] },
      { within: bounds(2, 1, 0), orders: ['successor', 'hup'], faults: ['crash', 'kill'] },
    ],
  }),
])(
  'an agent that is replaced or resumes control breaks no invariant and conforms to the diagrams within the bounds $within',
  (run) => {
    const { within, ...options } = run;
    expectComplete(
      explore(() => exploreAgent(within, { ...killedOptions, agentSucceeded: true, ...options }).beginChecked()),
    );
  },
);

test.each([
  { within: bounds(1, 0, 1), orders: ['successor', 'hup'] },
  ...sized({ short: [], full: [{ within: bounds(1, 1, 1), orders: ['successor'], faults: ['crash', 'kill'] }] }),
])(
  'states with equal keys have the same possible choices within the bounds $within with the orders $orders',
  ({ within, ...options }) => {
    expectSameChoices(() => exploreAgent(within, { ...killedOptions, agentSucceeded: true, ...options }).beginWorld());
  },
);

/** A hot restart, effect by effect, until the parent has exited; the child's process is reported late. */
const stepsBeforeRestart = ['prepared:0', 'spawned:0', 'admin:0', 'live:0', 'seen:0', 'tick:start-limiter.refill'];
const restartUntil = (end: string): string[] => [
  'hup',
  'prepared:1',
  'spawned:1',
  'admin:1',
  'live:1',
  'seen:1',
  'tick:envoy-1.parentShutdown',
  end,
];
const restart = restartUntil('exit:0');
/** Events that occur while no agent runs. */
const ownDoings = /^(admin|live|exit|usr1|tick:envoy)/;
const absences = restart.flatMap((_, from) =>
  Array.from({ length: restart.length - from + 1 }, (_, length) => ({ firstStep: from, lastStep: from + length })),
);

interface Absence {
  readonly firstStep: number;
  readonly lastStep: number;
  /** The parent's exit; `usr1:0`: killed by SIGUSR1 while it shuts down. */
  readonly end?: string;
}

/** Kills the agent before `firstStep`, and starts the next one before `lastStep`. */
function restartWithout(
  { firstStep, lastStep, end = 'exit:0' }: Absence,
  options: Parameters<typeof exploreAgent>[1] = {},
) {
  const restart = restartUntil(end);
  const agent = exploreAgent(bounds(1, 2, 0), {
    ...killedOptions,
    faults: ['kill', 'usr1'],
    orders: ['hup'],
    spawnsLate: true,
    ...options,
  });
  const path: string[] = [];
  const world = agent.beginWorld();
  const does = (choice: string) => {
    path.push(choice);
    world.apply(choice);
  };
  const isPossible = (choice: string) => world.choices().some(({ name }) => name === choice);
  const dueTimer = () =>
    world.choices().find(({ name }) => name.startsWith('tick:') && !name.endsWith('.parentOverdue'))?.name;
  for (const step of [...stepsBeforeRestart, ...restart.slice(0, firstStep), 'kill']) {
    while (!isPossible(step)) does(dueTimer()!);
    does(step);
  }
  for (const step of restart.slice(firstStep, lastStep).filter((step) => ownDoings.test(step)))
    if (isPossible(step)) does(step);
  does('next');
  const usualSteps = ['looked:1', ...restart, 'tick:start-limiter.refill'];
  const follows = () => usualSteps.find(isPossible) ?? (world.host.processes.length > 1 ? dueTimer() : undefined);
  for (let next = follows(); next !== undefined; next = follows()) does(next);
  return { path, world, next: world.choices().filter(({ name }) => name.startsWith('prepared:')) };
}

test.each([...absences, ...absences.map((absence): Absence => ({ ...absence, end: 'usr1:0' }))])(
  'a hot restart without an agent from step $firstStep to $lastStep ends with $end',
  (absence) => {
    const { path, world, next } = restartWithout(absence);
    expect(world.violations, path.join(' ')).toEqual([]);
    expect(world.host.processes.map(({ label }) => label)).toEqual(['1']);
    expect(world.host.spawnCount).toBe(2);
    expect(next).toEqual([]);
  },
);

test('a parent whose child exited has its full shutdown time again for the next child, even if another agent adopts both', () => {
  const agent = exploreAgent(bounds(1, 2, 0), { ...killedOptions, faults: ['kill', 'crash'], orders: ['hup'] });
  const world = agent.beginWorld();
  const first = ['prepared:0', 'admin:0', 'live:0', 'seen:0', 'tick:start-limiter.refill'];
  const child = ['hup', 'prepared:1', 'admin:1', 'live:1', 'crash:1', 'tick:start-limiter.refill'];
  const next = ['prepared:1', 'admin:1', 'tick:start-limiter.refill', 'tick:epoch-0.parentDue'];
  for (const choice of [...first, ...child, ...next, 'kill', 'next', 'live:1', 'seen:1']) world.apply(choice);
  const dueTicks = world.choices().filter(({ name }) => name.startsWith('tick:'));
  expect(dueTicks.map(({ name }) => name)).toEqual(['tick:envoy-1.parentShutdown', 'tick:epoch-1.healthy']);
  for (const choice of ['tick:envoy-1.parentShutdown', 'exit:0']) world.apply(choice);
  expect(world.violations).toEqual([]);
});

test('the exploration detects an agent that treats every exited parent as crashed', () => {
  const distrustful = supervisorMachine.provide({
    guards: {
      isOrphanedCandidate: ({ context, event }) =>
        event.type === 'epoch.live' && context.epochs.length === 1 && event.epoch > 0,
    },
  });
  const absence = { firstStep: 3, lastStep: restart.length };
  const { next } = restartWithout(absence, { machines: { supervisor: distrustful } });
  expect(next).toMatchObject([{ name: 'prepared:0b' }]);
});

test("the exploration detects an agent that adopts no epochs, so that no agent waits for an Envoy's exit", () => {
  const forgetful = supervisorMachine.provide({ actions: { adoptEpochs: () => {} } });
  const machines = { supervisor: forgetful };
  const invariants = [everyProcessIsAwaited];
  const agent = exploreAgent(bounds(0, 1, 0), { ...killedOptions, faults: ['kill'], machines, invariants });
  const { found } = findShortest(() => agent.beginWorld());
  expect(found?.path).toContain('kill');
  expect(found?.violations[0]?.invariant).toBe('every process is reaped');
});
