import { expect, test } from 'vitest';
import { assign, fromPromise, sendParent, sendTo, setup } from 'xstate';
import { startRoot, waitForActor } from '../../runtime/actors/actor-system.ts';
import { createRecorder } from '../../runtime/trace/recorder.ts';
import { parseDiagram } from '../diagram/parse.ts';
import { TraceChecker } from './check.ts';

const life = parseDiagram(
  `sequenceDiagram
  participant nest
  participant bird as bird-N
  participant wings as bird-N/wings
  participant outside

  nest->>bird: spawn
  bird->>wings: spawn
  nest->>bird: bird.wake
  bird->>bird: timer yawn
  bird->>nest: bird.awake
  outside->>bird: bird.fly
  wings->>bird: done
  bird->>nest: done
  nest->>nest: timer settle
  nest->>outside: done`,
  'life.mmd',
);

let foldWings: () => void;

const birdMachine = setup({
  actors: {
    wings: fromPromise(
      () =>
        new Promise<void>((resolve) => {
          foldWings = resolve;
        }),
    ),
  },
  actions: { tellNest: sendParent({ type: 'bird.awake' }) },
  delays: { yawn: 1 },
}).createMachine({
  id: 'bird',
  initial: 'asleep',
  invoke: { id: 'wings', src: 'wings', onDone: '.gone' },
  states: {
    asleep: { on: { 'bird.wake': 'yawning' } },
    yawning: { after: { yawn: { target: 'awake', actions: 'tellNest' } } },
    awake: {},
    gone: { type: 'final' },
  },
});

const nestMachine = setup({
  types: { context: {} as { awake: boolean } },
  actors: { bird: birdMachine },
  delays: { settle: 1 },
  actions: {
    wakeBird: sendTo('bird-4', { type: 'bird.wake' }),
    noteAwake: assign({ awake: true }),
  },
}).createMachine({
  id: 'nest',
  context: { awake: false },
  initial: 'full',
  states: {
    full: {
      invoke: { id: 'bird-4', src: 'bird', onDone: 'quiet' },
      entry: 'wakeBird',
      on: { 'bird.awake': { actions: 'noteAwake' }, 'nest.shake': { target: 'empty' } },
    },
    quiet: { after: { settle: 'empty' } },
    empty: { type: 'final' },
  },
});

function startNest(checker: TraceChecker) {
  const recorder = createRecorder({ program: 'nest' });
  recorder.observe(checker.feed);
  return startRoot(nestMachine, {
    id: 'nest',
    input: undefined,
    recorder,
    onError: (error) => {
      throw error;
    },
  });
}

test('the check accepts a recorded run of XState actors with spawns, timers, events and ends', async () => {
  const checker = new TraceChecker([life]);
  const nest = startNest(checker);
  const bird = nest.getSnapshot().children['bird-4']!;
  await expect.poll(() => nest.getSnapshot().context.awake).toBe(true);
  bird.send({ type: 'bird.fly' });
  foldWings();
  await waitForActor(nest);
  const { departures, diagrams } = checker.report();
  expect(departures).toEqual([]);
  expect(diagrams[0]).toEqual({ file: 'life.mmd', started: 1, completed: 1, interrupted: 0, live: 0 });
});

test('the check interrupts the activation of a numbered actor that is stopped', async () => {
  const checker = new TraceChecker([life]);
  const nest = startNest(checker);
  await expect.poll(() => nest.getSnapshot().context.awake).toBe(true);
  nest.send({ type: 'nest.shake' } as never);
  const { departures, diagrams } = checker.report();
  expect(departures.map(({ kind, message }) => `${kind} ${message.type}`)).toEqual([
    'undeclared nest.shake',
    'unexpected done',
  ]);
  expect(diagrams[0]).toMatchObject({ started: 1, interrupted: 1 });
});
