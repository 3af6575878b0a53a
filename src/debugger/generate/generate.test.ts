import { describe, expect, test } from 'vitest';
import { type AnyStateMachine, assign, createMachine, emit, fromPromise, sendTo, setup } from 'xstate';
import { formatVitest } from './format-vitest.ts';
import { type GenerateOptions, generate } from './generate.ts';
import { departureOf } from './machine-test.ts';
import type { Samples } from './samples.ts';
import { type Step, type Suite, stepLabel } from './suite.ts';

const generateSuite = (
  machine: AnyStateMachine,
  samples: Samples = {},
  options: Partial<GenerateOptions> = {},
): Suite =>
  generate(machine, samples, { cover: 'transitions', limit: 500, depth: 20, ...options }, { source: '', export: '' });

const stepsOf = ({ tests }: Suite): string[] =>
  tests.map(({ steps }) => steps.map(({ do: step, expect: { state } }) => `${stepLabel(step)} → ${state}`).join(', '));

/** The deviations of a machine from the tests of a suite. */
const deviations = (suite: Suite, machine: AnyStateMachine): string[] =>
  suite.tests.flatMap((generatedTest) => departureOf(machine, suite, generatedTest) ?? []);

/** A lamp that is switched on and off, and turns off by itself. */
const lamp = (change: { delayMs?: number; offTarget?: string; eventName?: string } = {}) =>
  createMachine({
    id: 'lamp',
    initial: 'dark',
    states: {
      dark: { on: { 'switch.pressed': 'lit' } },
      lit: {
        entry: sendTo(({ system }) => system.get('meter'), { type: change.eventName ?? 'power.used' }),
        after: { [change.delayMs ?? 1_000]: 'dark' },
        on: { 'switch.pressed': change.offTarget ?? 'dark', 'bulb.died': 'broken' },
      },
      broken: { type: 'final' },
    },
  });

describe('coverage of a generated suite', () => {
  test('includes every transition by the smallest number of shortest runs', () => {
    expect(stepsOf(generateSuite(lamp()))).toEqual([
      'switch.pressed → lit, after 1000 → dark',
      'switch.pressed → lit, bulb.died → broken',
      'switch.pressed → lit, switch.pressed → dark',
    ]);
  });

  test('includes every state', () => {
    expect(stepsOf(generateSuite(lamp(), {}, { cover: 'states' }))).toEqual([
      'switch.pressed → lit, bulb.died → broken',
    ]);
  });

  test('includes every path that visits no configuration twice', () => {
    const three = createMachine({
      initial: 'a',
      states: { a: { on: { b: 'b', c: 'c' } }, b: { on: { c: 'c', a: 'a' } }, c: { on: { b: 'b' } } },
    });
    const paths = stepsOf(generateSuite(three, {}, { cover: 'paths' }));
    expect(paths).toEqual(['b → b, c → c', 'c → c, b → b']);
  });

  test('includes the outcomes of effects with the given samples', () => {
    const machine = setup({ actors: { load: fromPromise<{ rows: number }>(async () => ({ rows: 0 })) } }).createMachine(
      {
        initial: 'loading',
        states: {
          loading: {
            invoke: {
              id: 'load',
              src: 'load',
              onDone: [{ guard: ({ event }) => event.output.rows > 0, target: 'full' }, { target: 'empty' }],
              onError: 'broken',
            },
          },
          full: {},
          empty: {},
          broken: {},
        },
      },
    );
    const samples = { outcomes: { load: [{ output: { rows: 0 } }, { output: { rows: 9 } }, { error: 'no disk' }] } };
    const suite = generateSuite(machine, samples);
    expect(suite.coverage.transitions).toMatchObject({ covered: 3, total: 3 });
    expect(suite.tests.flatMap(({ steps }) => steps.map(({ do: step }) => step))).toContainEqual<Step>({
      kind: 'error',
      effect: 'load',
      message: 'no disk',
    });
  });

  test('includes eventless transitions and states that are left immediately', () => {
    const machine = createMachine({
      initial: 'a',
      states: { a: { on: { go: 'choosing' } }, choosing: { always: 'b' }, b: {} },
    });
    expect(generateSuite(machine).coverage).toMatchObject({
      states: { covered: 3, total: 3, missing: [] },
      transitions: { covered: 2, total: 2, missing: [] },
    });
  });

  test('includes intentionally ignored events and guards that reject an event', () => {
    const machine = createMachine({
      initial: 'a',
      states: { a: { on: { noise: {}, go: { guard: ({ event }) => event.ticket === true, target: 'b' } } }, b: {} },
    });
    const suite = generateSuite(machine, { events: { go: [{ ticket: true }, { ticket: false }] } });
    expect(stepsOf(suite).toSorted()).toEqual(['go → a', 'go → b', 'noise → a']);
    expect(suite.coverage.refusals).toBe(1);
  });

  test('includes each of several inputs', () => {
    const machine = createMachine({
      context: ({ input }) => ({ lazy: (input as { lazy: boolean }).lazy }),
      initial: 'a',
      states: {
        a: { on: { go: [{ guard: ({ context }) => context.lazy, target: 'bed' }, { target: 'work' }] } },
        bed: {},
        work: {},
      },
    });
    expect(generateSuite(machine, { inputs: [{ lazy: true }, { lazy: false }] }).coverage.states.missing).toEqual([]);
  });
});

describe('list of gaps in a generated suite', () => {
  const reasonsOf = (machine: AnyStateMachine, samples: Samples = {}, options: Partial<GenerateOptions> = {}) =>
    Object.fromEntries(
      generateSuite(machine, samples, options).coverage.transitions.missing.map((gap) => [gap.what, gap.why]),
    );

  test('contains a guard that is false for all samples, with the reason', () => {
    const machine = setup({ guards: { isRich: ({ event }) => event.coins === 100 } }).createMachine({
      initial: 'a',
      states: { a: { on: { pay: { guard: 'isRich', target: 'b' } } }, b: { on: { go: 'a' } } },
    });
    expect(reasonsOf(machine)).toEqual({
      'a: pay [isRich] → b': expect.stringContaining('isRich is never true'),
      'b: go → a': 'b is never entered',
    });
  });

  test('contains a timer that never fires because another timer fires first', () => {
    const machine = createMachine({ initial: 'a', states: { a: { after: { 10: 'b', 20: 'c' } }, b: {}, c: {} } });
    expect(reasonsOf(machine)).toEqual({ 'a: after 20 → c': expect.stringContaining('is always taken first') });
  });

  test('contains an event with a missing payload, because the machine fails', () => {
    const machine = createMachine({
      initial: 'a',
      states: { a: { on: { pay: { guard: ({ event }) => event.purse.coins > 0, target: 'b' } } }, b: {} },
    });
    expect(generateSuite(machine).coverage.failures).toEqual([
      expect.stringMatching(/^in a, pay: Unable to evaluate guard/),
    ]);
  });

  test('contains configurations beyond a limit if a counter has unlimited values', () => {
    const counter = setup({ types: { context: {} as { n: number } } }).createMachine({
      context: { n: 0 },
      initial: 'a',
      states: {
        a: {
          on: {
            up: { actions: assign({ n: ({ context }) => context.n + 1 }) },
            far: { guard: ({ context }) => context.n > 99, target: 'b' },
          },
        },
        b: {},
      },
    });
    const { coverage } = generateSuite(counter, {}, { limit: 10 });
    expect(coverage.explored).toMatchObject({ configurations: 10, complete: false });
    expect(coverage.bounds).toEqual(['stopped after 10 configurations (--limit)']);
    expect(coverage.states.missing[0]?.why).toContain('the exploration was limited');
    expect(generateSuite(counter, { relevant: () => undefined }).coverage.explored.configurations).toBe(1);
  });

  test('contains the number of paths beyond the limit', () => {
    const names = [...'abcdef'];
    const transitions = Object.fromEntries(names.map((name) => [name, `.${name}`]));
    const every = createMachine({
      initial: 'a',
      on: transitions,
      states: Object.fromEntries(names.map((name) => [name, {}])),
    });
    const suite = generateSuite(every, {}, { cover: 'paths', limit: 20 });
    expect(suite.tests).toHaveLength(20);
    expect(suite.coverage.bounds).toEqual(['at least 20 paths after the first 20 are omitted (--limit)']);
  });

  test('contains an actor that an action spawns without a name, because it cannot be replaced by a fake', () => {
    const machine = createMachine({
      initial: 'a',
      states: {
        a: {
          on: { go: { target: 'b', actions: assign(({ spawn }) => ({ ref: spawn(fromPromise(async () => 1)) })) } },
        },
        b: {},
      },
    });
    expect(generateSuite(machine).coverage.failures).toEqual([expect.stringContaining('name it in setup({ actors })')]);
  });
});

describe('a generated test', () => {
  test('passes on the machine that it was generated from', () => {
    for (const cover of ['states', 'transitions', 'paths'] as const) {
      expect(deviations(generateSuite(lamp(), {}, { cover }), lamp())).toEqual([]);
    }
  });

  test.each([
    ['another target of a transition', { offTarget: 'lit' }, /switch.pressed: state: expected "dark", got "lit"/],
    ['a longer delay', { delayMs: 1_001 }, /after 1000: state: expected "dark", got "lit"/],
    ['a shorter delay', { delayMs: 999 }, /a timer elapsed before 1000 ms/],
    ['another sent event', { eventName: 'power.wasted' }, /sent: expected .*, got \["power.wasted to meter"\]/],
  ])('fails on a machine with %s', (_, change, message) => {
    expect(deviations(generateSuite(lamp()), lamp(change)).join('\n')).toMatch(message);
  });

  test('does not run the effects of named actions, and checks emitted events', () => {
    const executedEffects: string[] = [];
    const machine = setup({ actions: { launch: () => executedEffects.push('launched') } }).createMachine({
      initial: 'a',
      states: { a: { on: { go: { target: 'b', actions: ['launch', emit({ type: 'rocket.left' })] } } }, b: {} },
    });
    const [first] = generateSuite(machine).tests;
    expect(first?.steps[0]?.expect.sent).toEqual(['rocket.left to observers']);
    expect(executedEffects).toEqual([]);
  });
});

test('a generated vitest file contains error messages and commands with line breaks as comments', () => {
  const message = 'no such seat\nglobalThis.isHere = true;\r\nprocess.exit(3);\u2028alert(1);';
  const machine = setup({
    guards: {
      isFree: () => {
        throw new Error(message);
      },
    },
  }).createMachine({
    id: 'seat',
    initial: 'a',
    states: { a: { on: { take: { target: 'b', guard: 'isFree' }, leave: 'b' } }, b: {} },
  });
  const suite = generateSuite(machine);
  expect(suite.coverage.failures.join()).toContain('\n');
  const text = formatVitest(suite, {
    machineImport: './seat.ts',
    runtimeImport: 'chartpilot/machine-test',
    runner: 'vitest',
    command: "chartpilot generate './a\nb.ts'",
  });
  expect(text).not.toMatch(/^\s*(globalThis|process|alert|b\.ts)/mu);
  const head = text
    .slice(0, text.indexOf('import '))
    .trimEnd()
    .split(/[\n\r\u2028\u2029]/);
  expect(head.filter((line) => !line.startsWith('//'))).toEqual([]);
});
