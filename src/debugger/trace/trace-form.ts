import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { TraceLine } from '../../runtime/trace/trace.ts';

export type ValueCheck = (value: unknown) => boolean;
export type FieldForms = Readonly<Record<string, ValueCheck>>;

const text: ValueCheck = (value) => typeof value === 'string';
/** JSON can contain an infinite number as `1e999`, which no time axis can show. */
const number: ValueCheck = Number.isFinite;
const acceptAny: ValueCheck = () => true;

const maxPointerLevels = 500;
const pointer: ValueCheck = (value) =>
  typeof value === 'string' && value.split('/', maxPointerLevels + 2).length <= maxPointerLevels + 1;

function optionalForm(form: ValueCheck): ValueCheck {
  return (value) => value === undefined || form(value);
}

function listForm(form: ValueCheck): ValueCheck {
  return (value) => Array.isArray(value) && value.every(form);
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean';
}

function oneOf(...allowedValues: readonly string[]): ValueCheck {
  return (value) => typeof value === 'string' && allowedValues.includes(value);
}

function record(fields: FieldForms): ValueCheck {
  const entries = Object.entries(fields);
  return (value) =>
    typeof value === 'object' &&
    value !== null &&
    entries.every(([name, form]) => form((value as Record<string, unknown>)[name]));
}

const timeline = record({
  lane: (value) => value === undefined || value === 'each' || value === 'none' || record({ count: text })(value),
  lanes: optionalForm(listForm(record({ name: text, title: optionalForm(text) }))),
  group: optionalForm(text),
  work: optionalForm(listForm(record({ child: text, lane: text, phase: text }))),
  marks: optionalForm(
    listForm(
      record({
        kind: text,
        text,
        lane: optionalForm(text),
        event: optionalForm(text),
        timer: optionalForm(text),
        items: optionalForm(text),
        when: optionalForm(record({})),
        above: optionalForm(record({})),
        unlessSame: optionalForm(text),
      }),
    ),
  ),
  process: optionalForm(
    record({
      title: optionalForm(record({ event: text, text })),
      steps: listForm(
        record({
          event: text,
          when: optionalForm(record({})),
          during: optionalForm(listForm(text)),
          step: optionalForm(text),
          text: optionalForm(text),
        }),
      ),
    }),
  ),
  links: optionalForm(
    listForm(record({ event: text, side: oneOf('sends', 'receives', 'is'), key: text, text: optionalForm(text) })),
  ),
});
const machineFields = record({
  id: text,
  states: listForm(
    record({
      path: text,
      parent: optionalForm(number),
      type: oneOf('atomic', 'compound', 'parallel', 'final', 'history'),
      initial: optionalForm(number),
      description: optionalForm(text),
      tags: optionalForm(listForm(text)),
      entry: optionalForm(listForm(text)),
      exit: optionalForm(listForm(text)),
      invoke: optionalForm(listForm(record({ id: text, src: text }))),
    }),
  ),
  transitions: listForm(
    record({
      source: number,
      targets: listForm(number),
      kind: oneOf('event', 'timer', 'always', 'done', 'error'),
      on: text,
      guard: optionalForm(text),
      actions: optionalForm(listForm(text)),
      description: optionalForm(text),
    }),
  ),
  timeline: optionalForm(timeline),
});
const machine: ValueCheck = (value) => machineFields(value) && isConsistentStatechart(value as Statechart);

/** Each state must follow its parent, so that there are no cycles. */
function isConsistentStatechart({ states, transitions }: Statechart): boolean {
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
  parent: optionalForm(text),
  machine: optionalForm(text),
  state: text,
  timers: optionalForm(listForm(record({ timer: text, state: text, ms: number, startedAt: number }))),
  spawned: number,
  spawnedAt: number,
});

const stampFields: FieldForms = { seq: number, t: number };
const causedFields: FieldForms = { ...stampFields, cause: optionalForm(number) };
const step: FieldForms = {
  ...causedFields,
  actor: text,
  on: text,
  taken: optionalForm(listForm(number)),
  change: optionalForm(listForm(record({ path: pointer, value: acceptAny }))),
};

export const machinesForm = listForm(machine);

/** By the kind of the line (`docs/trace-format.md`). */
export const formOf: Readonly<Record<TraceLine['kind'], FieldForms>> = {
  header: {
    version: number,
    program: text,
    pid: number,
    startedAt: text,
    level: text,
    machines: machinesForm,
    foreign: optionalForm(isBoolean),
    omits: optionalForm(listForm(text)),
    programs: optionalForm(
      listForm(record({ label: text, program: text, pid: number, foreign: optionalForm(isBoolean) })),
    ),
    actors: optionalForm(listForm(livingActor)),
  },
  spawn: { ...causedFields, actor: text, parent: optionalForm(text), machine: optionalForm(text) },
  event: { ...causedFields, from: text, to: text, event: record({ type: text }) },
  'timer-started': { ...causedFields, actor: text, timer: text, state: text, ms: number },
  timer: { ...stampFields, actor: text, timer: text },
  transition: { ...step, from: text, to: text },
  step,
  effect: { ...causedFields, actor: text, effect: text },
  stop: {
    ...causedFields,
    actor: text,
    status: oneOf('done', 'stopped', 'error'),
    error: optionalForm(text),
    during: optionalForm(number),
  },
  unexpected: { ...causedFields, actor: text, on: text, state: text },
  log: { ...stampFields, actor: text, level: text, component: optionalForm(text), text },
};
