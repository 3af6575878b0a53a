/** Converts chart names in a trace of version 3 to those of version 4. */

import type { RawLine, VersionStep } from '../raw-line.ts';
import { renamedEvents, renamedInMachines } from './names-of-version-3.ts';
import type { Renamed, RenamedInMachine } from './renamed.ts';

type Raw = Readonly<Record<string, unknown>>;

const newName = (names: Renamed | undefined, name: string): string =>
  names !== undefined && Object.hasOwn(names, name) ? names[name]! : name;

const isText = (value: unknown): value is string => typeof value === 'string';
const isObject = (value: unknown): value is Raw => typeof value === 'object' && value !== null && !Array.isArray(value);

function withTexts(line: Raw, fields: Readonly<Record<string, (text: string) => string>>): RawLine {
  const converted: RawLine = { ...line };
  for (const [field, convert] of Object.entries(fields)) {
    if (isText(line[field])) converted[field] = convert(line[field]);
  }
  return converted;
}

const mapped = <Item>(list: unknown, convert: (item: Item) => unknown): unknown =>
  Array.isArray(list) ? list.map((item) => convert(item as Item)) : list;

const texts = (list: unknown, names: Renamed | undefined): unknown =>
  mapped(list, (item) => (isText(item) ? newName(names, item) : item));

/**
 * @param text paths of active states, joined with ` `
 */
function newStates({ states }: RenamedInMachine, text: string): string {
  return text.replaceAll(/[^.|]+/g, (segment) => {
    const name = segment.trim();
    return segment.replace(name, () => newName(states, name));
  });
}

/** Also converts event types that XState generates for delays and final states. */
function newEventType(machine: string, renamed: RenamedInMachine, type: string): string {
  const [, delay = '', path = ''] = /^xstate\.after\.([^.]+)\.(.*)$/.exec(type) ?? [];
  if (delay !== '' && path.startsWith(machine)) {
    const state = path.slice(machine.length);
    return `xstate.after.${newName(renamed.delays, delay)}.${machine}${newStates(renamed, state)}`;
  }
  const done = `xstate.done.state.${machine}`;
  if (type.startsWith(done)) return `${done}${newStates(renamed, type.slice(done.length))}`;
  return newName(renamedEvents, type);
}

/** @param text a condition, with names of guards, and states in JSON */
function newGuard({ guards, states }: RenamedInMachine, text: string): string {
  return text.replaceAll(/"([^"]*)"|[A-Za-z]\w*/g, (name, state: string | undefined) =>
    state === undefined ? newName(guards, name) : `"${newName(states, state)}"`,
  );
}

function newTransition(renamed: RenamedInMachine, transition: unknown): unknown {
  if (!isObject(transition)) return transition;
  const names = transition.kind === 'timer' ? renamed.delays : transition.kind === 'event' ? renamedEvents : undefined;
  return {
    ...withTexts(transition, { on: (on) => newName(names, on), guard: (guard) => newGuard(renamed, guard) }),
    ...('actions' in transition && { actions: texts(transition.actions, renamed.actions) }),
  };
}

function newState(renamed: RenamedInMachine, state: unknown): unknown {
  if (!isObject(state)) return state;
  return {
    ...withTexts(state, { path: (path) => newStates(renamed, path) }),
    ...('tags' in state && { tags: texts(state.tags, renamed.tags) }),
    ...('entry' in state && { entry: texts(state.entry, renamed.actions) }),
    ...('exit' in state && { exit: texts(state.exit, renamed.actions) }),
  };
}

function newTimeline(renamed: RenamedInMachine, timeline: unknown): unknown {
  if (!isObject(timeline) || !('marks' in timeline)) return timeline;
  const newMark = (mark: unknown): unknown =>
    isObject(mark)
      ? withTexts(mark, {
          event: (event) => newName(renamedEvents, event),
          timer: (timer) => newName(renamed.delays, timer),
        })
      : mark;
  return { ...timeline, marks: mapped(timeline.marks, newMark) };
}

function newMachine(machine: unknown): unknown {
  if (!isObject(machine) || !isText(machine.id)) return machine;
  const renamed = ofMachine(machine.id);
  return {
    ...machine,
    states: mapped(machine.states, (state) => newState(renamed, state)),
    transitions: mapped(machine.transitions, (transition) => newTransition(renamed, transition)),
    ...('timeline' in machine && { timeline: newTimeline(renamed, machine.timeline) }),
  };
}

const ofMachine = (machine: string): RenamedInMachine =>
  Object.hasOwn(renamedInMachines, machine) ? renamedInMachines[machine]! : {};

/**
 * The conversion of one trace, line by line. States and timers are converted by the machine of their actor, which the
 * header and `spawn` records name. Traces of other programs are not changed.
 */
export function convertNames(): VersionStep {
  const machines = new Map<unknown, string>();
  let isForeign = false;

  const newHeader = (header: RawLine): RawLine => ({
    ...header,
    version: 4,
    machines: mapped(header.machines, newMachine),
    ...('omits' in header && { omits: texts(header.omits, renamedEvents) }),
    ...('actors' in header && { actors: mapped(header.actors, newActor) }),
  });

  const newActor = (actor: unknown): unknown => {
    if (!isObject(actor)) return actor;
    if (isText(actor.machine)) machines.set(actor.actor, actor.machine);
    const renamed = ofMachine(machines.get(actor.actor) ?? '');
    return {
      ...withTexts(actor, { state: (state) => newStates(renamed, state) }),
      ...('timers' in actor && { timers: mapped(actor.timers, (timer) => newTimer(renamed, timer)) }),
    };
  };

  return (line) => {
    if (line.kind === 'header') {
      isForeign = line.foreign === true;
      return isForeign ? { ...line, version: 4 } : newHeader(line);
    }
    if (isForeign) return line;
    if (line.kind === 'spawn' && isText(line.machine)) machines.set(line.actor, line.machine);
    const machine = machines.get(line.kind === 'event' ? line.to : line.actor) ?? '';
    return newRecord(machine, ofMachine(machine), line);
  };
}

const newTimer = (renamed: RenamedInMachine, timer: unknown): unknown =>
  isObject(timer)
    ? withTexts(timer, {
        timer: (name) => newName(renamed.delays, name),
        state: (state) => newStates(renamed, state),
      })
    : timer;

function newRecord(machine: string, renamed: RenamedInMachine, line: RawLine): RawLine {
  const states = (text: string): string => newStates(renamed, text);
  const on = (type: string): string => newEventType(machine, renamed, type);
  switch (line.kind) {
    case 'event':
      return isObject(line.event) ? { ...line, event: withTexts(line.event, { type: on }) } : line;
    case 'transition':
      return withTexts(line, { from: states, to: states, on });
    case 'step':
      return withTexts(line, { on });
    case 'unexpected':
      return withTexts(line, { on, state: states });
    case 'timer':
    case 'timer-started':
      return newTimer(renamed, line) as RawLine;
    case 'effect':
      return withTexts(line, { effect: (effect) => newName(renamed.actions, effect) });
    default:
      return line;
  }
}
