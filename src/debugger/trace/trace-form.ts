import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { TraceLine } from '../../runtime/trace/trace.ts';

export type Form = (value: unknown) => boolean;
export type FieldForms = Readonly<Record<string, Form>>;

const text: Form = (value) => typeof value === 'string';
/** JSON can contain an infinite number as `1e999`, which no time axis can show. */
const number: Form = Number.isFinite;
const acceptAny: Form = () => true;

/**
 * Maximum number of levels of a JSON Pointer. Deeper pointers exceed the stack in recursive functions, and no program
 * writes them (runtime/trace/redact.ts).
 */
const maxPointerLevels = 500;
const pointer: Form = (value) =>
  typeof value === 'string' && value.split('/', maxPointerLevels + 2).length <= maxPointerLevels + 1;

function optional(form: Form): Form {
  return (value) => value === undefined || form(value);
}

function list(form: Form): Form {
  return (value) => Array.isArray(value) && value.every(form);
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean';
}

function oneOf(...allowedValues: readonly string[]): Form {
  return (value) => typeof value === 'string' && allowedValues.includes(value);
}

function record(fields: FieldForms): Form {
  const entries = Object.entries(fields);
  return (value) =>
    typeof value === 'object' &&
    value !== null &&
    entries.every(([name, form]) => form((value as Record<string, unknown>)[name]));
}

const timeline = record({
  lane: (value) => value === undefined || value === 'each' || value === 'none' || record({ count: text })(value),
  lanes: optional(list(record({ name: text, title: optional(text) }))),
  group: optional(text),
  work: optional(list(record({ child: text, lane: text, phase: text }))),
  marks: optional(
    list(
      record({
        kind: text,
        text,
        lane: optional(text),
        event: optional(text),
        timer: optional(text),
        items: optional(text),
        when: optional(record({})),
        above: optional(record({})),
        unlessSame: optional(text),
      }),
    ),
  ),
  process: optional(
    record({
      title: optional(record({ event: text, text })),
      steps: list(
        record({
          event: text,
          when: optional(record({})),
          during: optional(list(text)),
          step: optional(text),
          text: optional(text),
        }),
      ),
    }),
  ),
  links: optional(
    list(record({ event: text, side: oneOf('sends', 'receives', 'is'), key: text, text: optional(text) })),
  ),
});
const machineFields = record({
  id: text,
  states: list(
    record({
      path: text,
      parent: optional(number),
      type: oneOf('atomic', 'compound', 'parallel', 'final', 'history'),
      initial: optional(number),
      description: optional(text),
      tags: optional(list(text)),
      entry: optional(list(text)),
      exit: optional(list(text)),
      invoke: optional(list(record({ id: text, src: text }))),
    }),
  ),
  transitions: list(
    record({
      source: number,
      targets: list(number),
      kind: oneOf('event', 'timer', 'always', 'done', 'error'),
      on: text,
      guard: optional(text),
      actions: optional(list(text)),
      description: optional(text),
    }),
  ),
  timeline: optional(timeline),
});
const machine: Form = (value) => machineFields(value) && isConsistent(value as Statechart);

/** Checks that each state follows its parent, so that there are no cycles, and that all indexes exist. */
function isConsistent({ states, transitions }: Statechart): boolean {
  const isPlace = (stateIndex: number, end = states.length): boolean =>
    Number.isInteger(stateIndex) && stateIndex >= 0 && stateIndex < end;
  return (
    states.every(
      ({ parent, initial }, number) =>
        (parent === undefined ? number === 0 : isPlace(parent, number)) && (initial === undefined || isPlace(initial)),
    ) && transitions.every(({ source, targets }) => isPlace(source) && targets.every((target) => isPlace(target)))
  );
}

const livingActor = record({
  actor: text,
  parent: optional(text),
  machine: optional(text),
  state: text,
  timers: optional(list(record({ timer: text, state: text, ms: number, startedAt: number }))),
  spawned: number,
  spawnedAt: number,
});

const stamp: FieldForms = { seq: number, t: number };
const caused: FieldForms = { ...stamp, cause: optional(number) };
const step: FieldForms = {
  ...caused,
  actor: text,
  on: text,
  taken: optional(list(number)),
  change: optional(list(record({ path: pointer, value: acceptAny }))),
};

export const machinesForm = list(machine);

/** By the kind of the line (`docs/trace-format.md`). */
export const formOf: Readonly<Record<TraceLine['kind'], FieldForms>> = {
  header: {
    version: number,
    program: text,
    pid: number,
    startedAt: text,
    level: text,
    machines: machinesForm,
    foreign: optional(isBoolean),
    omits: optional(list(text)),
    programs: optional(list(record({ label: text, program: text, pid: number, foreign: optional(isBoolean) }))),
    actors: optional(list(livingActor)),
  },
  spawn: { ...caused, actor: text, parent: optional(text), machine: optional(text) },
  event: { ...caused, from: text, to: text, event: record({ type: text }) },
  'timer-started': { ...caused, actor: text, timer: text, state: text, ms: number },
  timer: { ...stamp, actor: text, timer: text },
  transition: { ...step, from: text, to: text },
  step,
  effect: { ...caused, actor: text, effect: text },
  stop: {
    ...caused,
    actor: text,
    status: oneOf('done', 'stopped', 'error'),
    error: optional(text),
    during: optional(number),
  },
  unexpected: { ...caused, actor: text, on: text, state: text },
  log: { ...stamp, actor: text, level: text, component: optional(text), text },
};
