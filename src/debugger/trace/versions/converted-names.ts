/** Converts chart names in a trace of version 3 to those of version 4. */

import type { RawLine, VersionStep } from '../raw-line.ts';
import { renamedChildren, renamedContextFields, renamedPayloadFields } from './fields-of-version-3.ts';
import { renamedEvents, renamedInMachines } from './names-of-version-3.ts';
import type { RenamedInMachine, RenameMap } from './renamed.ts';

type RawObject = Readonly<Record<string, unknown>>;

const newName = (names: RenameMap | undefined, name: string): string =>
  names !== undefined && Object.hasOwn(names, name) ? names[name]! : name;

const isText = (value: unknown): value is string => typeof value === 'string';
const isObject = (value: unknown): value is RawObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function withTexts(line: RawObject, fields: Readonly<Record<string, (text: string) => string>>): RawLine {
  const convertedLine: RawLine = { ...line };
  for (const [field, convert] of Object.entries(fields)) {
    if (isText(line[field])) convertedLine[field] = convert(line[field]);
  }
  return convertedLine;
}

const mapItems = <Item>(list: unknown, convert: (item: Item) => unknown): unknown =>
  Array.isArray(list) ? list.map((item) => convert(item as Item)) : list;

const mapTexts = (list: unknown, names: RenameMap | undefined): unknown =>
  mapItems(list, (item) => (isText(item) ? newName(names, item) : item));

/** Renames fields at any depth. */
function withFields(names: RenameMap | undefined, value: unknown): unknown {
  if (names === undefined || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => withFields(names, item));
  return Object.fromEntries(
    Object.entries(value).map(([field, item]) => [newName(names, field), withFields(names, item)]),
  );
}

/** Changed fields of a context: JSON Pointers with their values. */
const newChanges = (names: RenameMap | undefined, changes: unknown): unknown =>
  mapItems(changes, (change) =>
    isObject(change) && names !== undefined
      ? {
          ...withTexts(change, { path: (path) => path.replaceAll(/[^/]+/g, (segment) => newName(names, segment)) }),
          ...('value' in change && { value: withFields(names, change.value) }),
        }
      : change,
  );

function withNestedFields(line: RawObject, names: RenameMap | undefined, fields: readonly string[]): RawLine {
  const convertedLine: RawLine = { ...line };
  for (const field of fields) if (field in line) convertedLine[field] = withFields(names, line[field]);
  if ('change' in line) convertedLine.change = newChanges(names, line.change);
  return convertedLine;
}

const tableOf = (tables: Readonly<Record<string, RenameMap>>, name: string): RenameMap | undefined =>
  Object.hasOwn(tables, name) ? tables[name] : undefined;

/** @param text paths of active states, joined with ` | ` */
function newStates({ states }: RenamedInMachine, text: string): string {
  return text.replaceAll(/[^.|]+/g, (segment) => {
    const name = segment.trim();
    return segment.replace(name, () => newName(states, name));
  });
}

/** Also converts event types that XState generates for delays and final states. */
function newEventType(machine: string, machineNames: RenamedInMachine, type: string): string {
  const [, delay = '', path = ''] = /^xstate\.after\.([^.]+)\.(.*)$/.exec(type) ?? [];
  if (delay !== '' && path.startsWith(machine)) {
    const state = path.slice(machine.length);
    return `xstate.after.${newName(machineNames.delays, delay)}.${machine}${newStates(machineNames, state)}`;
  }
  const [, eventPrefix = '', child = ''] = /^(xstate\.(?:done|error|snapshot)\.actor\.)(.+)$/.exec(type) ?? [];
  if (eventPrefix !== '') return `${eventPrefix}${newName(tableOf(renamedChildren, machine), child)}`;
  const doneType = `xstate.done.state.${machine}`;
  if (type.startsWith(doneType)) return `${doneType}${newStates(machineNames, type.slice(doneType.length))}`;
  return newName(renamedEvents, type);
}

/** @param text a condition with names of guards and states */
function newGuard({ guards, states }: RenamedInMachine, text: string): string {
  return text.replaceAll(/"([^"]*)"|[A-Za-z]\w*/g, (name, state: string | undefined) =>
    state === undefined ? newName(guards, name) : `"${newName(states, state)}"`,
  );
}

function newTransition(machine: string, machineNames: RenamedInMachine, transition: unknown): unknown {
  if (!isObject(transition)) return transition;
  const names = namesOfTrigger(transition.kind, machine, machineNames);
  return {
    ...withTexts(transition, {
      on: (triggerName) => newName(names, triggerName),
      guard: (guard) => newGuard(machineNames, guard),
    }),
    ...('actions' in transition && { actions: mapTexts(transition.actions, machineNames.actions) }),
  };
}

function namesOfTrigger(kind: unknown, machine: string, machineNames: RenamedInMachine): RenameMap | undefined {
  if (kind === 'timer') return machineNames.delays;
  if (kind === 'event') return renamedEvents;
  return kind === 'done' || kind === 'error' ? tableOf(renamedChildren, machine) : undefined;
}

function newState(machine: string, machineNames: RenamedInMachine, state: unknown): unknown {
  if (!isObject(state)) return state;
  return {
    ...withTexts(state, { path: (path) => newStates(machineNames, path) }),
    ...('tags' in state && { tags: mapTexts(state.tags, machineNames.tags) }),
    ...('entry' in state && { entry: mapTexts(state.entry, machineNames.actions) }),
    ...('exit' in state && { exit: mapTexts(state.exit, machineNames.actions) }),
    ...('invoke' in state && {
      invoke: mapItems(state.invoke, (invoked) =>
        isObject(invoked)
          ? withTexts(invoked, { id: (id) => newName(tableOf(renamedChildren, machine), id) })
          : invoked,
      ),
    }),
  };
}

function newTimeline(machineNames: RenamedInMachine, timeline: unknown): unknown {
  if (!isObject(timeline) || !('marks' in timeline)) return timeline;
  const newMark = (mark: unknown): unknown =>
    isObject(mark)
      ? withTexts(mark, {
          event: (event) => newName(renamedEvents, event),
          timer: (timer) => newName(machineNames.delays, timer),
        })
      : mark;
  return { ...timeline, marks: mapItems(timeline.marks, newMark) };
}

function newMachine(machine: unknown): unknown {
  if (!isObject(machine) || !isText(machine.id)) return machine;
  const { id } = machine;
  const machineNames = namesOfMachine(id);
  return {
    ...machine,
    states: mapItems(machine.states, (state) => newState(id, machineNames, state)),
    transitions: mapItems(machine.transitions, (transition) => newTransition(id, machineNames, transition)),
    ...('timeline' in machine && { timeline: newTimeline(machineNames, machine.timeline) }),
  };
}

const namesOfMachine = (machine: string): RenamedInMachine =>
  Object.hasOwn(renamedInMachines, machine) ? renamedInMachines[machine]! : {};

/** Converts one trace, line by line. Names are converted by the machine of their actor. Traces of other programs are not changed. */
export function convertNames(): VersionStep {
  const machines = new Map<unknown, string>();
  let isForeign = false;

  const newHeader = (header: RawLine): RawLine => ({
    ...header,
    version: 4,
    machines: mapItems(header.machines, newMachine),
    ...('omits' in header && { omits: mapTexts(header.omits, renamedEvents) }),
    ...('actors' in header && { actors: mapItems(header.actors, newActor) }),
  });

  /** An effect has the machine of its parent. */
  const machineOf = (actor: unknown): string =>
    machines.get(actor) ?? (isText(actor) ? machines.get(actor.slice(0, actor.lastIndexOf('/'))) : undefined) ?? '';

  const newActorName = (actor: string): string => {
    const slash = actor.lastIndexOf('/');
    const names = slash < 0 ? undefined : tableOf(renamedChildren, machines.get(actor.slice(0, slash)) ?? '');
    return names === undefined ? actor : `${actor.slice(0, slash + 1)}${newName(names, actor.slice(slash + 1))}`;
  };
  const actors = { actor: newActorName, parent: newActorName };

  const newActor = (actor: unknown): unknown => {
    if (!isObject(actor)) return actor;
    if (isText(actor.machine)) machines.set(actor.actor, actor.machine);
    const machine = machineOf(actor.actor);
    const machineNames = namesOfMachine(machine);
    return {
      ...withNestedFields(withTexts(actor, actors), tableOf(renamedContextFields, machine), ['context']),
      ...withTexts(pickState(actor), { state: (state) => newStates(machineNames, state) }),
      ...('timers' in actor && { timers: mapItems(actor.timers, (timer) => newTimer(machineNames, timer)) }),
    };
  };

  return (line) => {
    if (line.kind === 'header') {
      isForeign = line.foreign === true;
      return isForeign ? { ...line, version: 4 } : newHeader(line);
    }
    if (isForeign) return line;
    if (line.kind === 'spawn' && isText(line.machine)) machines.set(line.actor, line.machine);
    if (line.kind === 'event') {
      const machine = machines.get(line.to) ?? '';
      return withTexts(newRecord(machine, namesOfMachine(machine), line), { from: newActorName, to: newActorName });
    }
    const machine = machines.get(line.actor) ?? '';
    const fields = tableOf(renamedContextFields, machineOf(line.actor));
    const record = newRecord(machine, namesOfMachine(machine), line);
    return withNestedFields(withTexts(record, actors), fields, ['input', 'output', 'params']);
  };
}

/** Results of children (`xstate.done.actor.…`) have fields of the receiving machine. */
function newEvent(machine: string, event: RawLine): unknown {
  if (!isText(event.type)) return event;
  const isBuiltIn = event.type.startsWith('xstate.');
  return withFields(
    isBuiltIn ? tableOf(renamedContextFields, machine) : tableOf(renamedPayloadFields, event.type),
    event,
  );
}

const pickState = ({ state }: RawObject): RawObject => (state === undefined ? {} : { state });

const newTimer = (machineNames: RenamedInMachine, timer: unknown): unknown =>
  isObject(timer)
    ? withTexts(timer, {
        timer: (name) => newName(machineNames.delays, name),
        state: (state) => newStates(machineNames, state),
      })
    : timer;

function newRecord(machine: string, machineNames: RenamedInMachine, line: RawLine): RawLine {
  const states = (text: string): string => newStates(machineNames, text);
  const newType = (type: string): string => newEventType(machine, machineNames, type);
  switch (line.kind) {
    case 'event':
      return isObject(line.event)
        ? { ...line, event: newEvent(machine, withTexts(line.event, { type: newType })) }
        : line;
    case 'transition':
      return withTexts(line, { from: states, to: states, on: newType });
    case 'step':
      return withTexts(line, { on: newType });
    case 'unexpected':
      return withTexts(line, { on: newType, state: states });
    case 'timer':
    case 'timer-started':
      return newTimer(machineNames, line) as RawLine;
    case 'effect':
      return withTexts(line, { effect: (effect) => newName(machineNames.actions, effect) });
    default:
      return line;
  }
}
