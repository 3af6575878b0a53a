/** The machines define the lanes (`machines/timeline.ts`). */
import { lifePhases, type MarkKind, type MarkRule, markKinds, type Timeline } from '../../../machines/timeline.ts';
import type { Deviation } from '../../../src/debugger/check/check.ts';
import { fieldAt, fillTemplate, matchesConditions, stepOf } from '../../../src/debugger/trace/mark-text.ts';
import { StateTags } from '../../../src/debugger/trace/state-tags.ts';
import type { ContextChange, TraceHeader, TraceRecord } from '../../../src/runtime/trace/trace.ts';
import { actionText, deviationText, stateText } from './words.ts';

export type { MarkKind };

/** Derived from tags, or the name of a state. */
export type Phase = string;

/** `to` is absent while the phase lasts. */
export interface PhaseSpan {
  readonly from: number;
  to?: number;
  readonly phase: Phase;
  readonly index: number;
  /** What a step waits for. */
  readonly text?: string;
}

export interface Mark {
  readonly t: number;
  readonly index: number;
  readonly kind: MarkKind;
  readonly title: string;
}

export interface Lane {
  /** Stable name for tests and styles: `epoch-1`, `pushes`. */
  readonly name: string;
  readonly title: string;
  /** Sorted by time, without overlap. */
  readonly spans: PhaseSpan[];
  readonly marks: Mark[];
  readonly counts: { readonly t: number; readonly n: number }[];
}

/** Further actors of a machine without lane definitions are counted. */
const maxLanesByDefault = 24;
/** Actors of further machines share one entry. */
export const maxUnknownMachines = 100;
/** Further actors are counted. */
export const maxActorLanes = 50_000;
const program = 'program';
const maxColours = 6;

interface MachineDisplay {
  readonly name: string;
  readonly order: number;
  readonly timeline: Timeline;
  readonly hasLife: boolean;
  /** Whether the machine has only a root state, so that its actors run until they end. */
  readonly isStateless: boolean;
  readonly defaultNames: Set<string>;
  lanes: number;
}

interface ActorLane {
  readonly lane: Lane;
  readonly order: number;
}

export class Lanes {
  /** Increases with each visible change. */
  version = 0;
  readonly phases = new Set<Phase>();
  readonly kinds = new Set<MarkKind>();
  readonly #colours = new Map<Phase, number>();
  readonly #deviations = newLane('departures', 'deviations');
  /** In display order. */
  readonly #lanesByName = new Map<string, Lane>();
  readonly #actors = new Map<string, ActorLane>();
  #sortedLanes: readonly ActorLane[] = [];
  readonly #machines = new Map<string, string | undefined>();
  readonly #tags: StateTags;
  readonly #displayRules = new Map<string, MachineDisplay>();
  readonly #unknownMachines = new Set<string>();
  /** Shared by all machines beyond {@link maxUnknownMachines}. */
  readonly #otherMachines = unknownMachine('actors', Number.MAX_SAFE_INTEGER);
  readonly #rules = new Map<string, MarkRule[]>();
  /** Most events are neither steps of a process nor set its title. */
  readonly #stepEvents = new Set<string>();
  readonly #processTitles = new Map<string, string>();
  readonly #lastValues = new Map<MarkRule, unknown>();
  /** By rule and actor, so that each item is marked once. */
  readonly #lastItems = new Map<MarkRule, Map<string, ReadonlySet<string>>>();

  constructor(header: TraceHeader) {
    this.#tags = new StateTags(header.machines);
    for (const [order, { id, states, timeline = {} }] of header.machines.entries()) {
      const hasLife = lifePhases.some((phase) => this.#tags.isKnownTag(id, phase));
      const isStateless = states.length === 1;
      this.#displayRules.set(id, {
        name: id,
        order,
        timeline,
        hasLife,
        isStateless,
        defaultNames: new Set(),
        lanes: 0,
      });
      for (const { name, title = name } of timeline.lanes ?? []) {
        if (!this.#lanesByName.has(name)) this.#lanesByName.set(name, newLane(name, title));
      }
      const { process } = timeline;
      if (process?.title !== undefined) this.#stepEvents.add(process.title.event);
      for (const { event } of process?.steps ?? []) this.#stepEvents.add(event);
      for (const rule of timeline.marks ?? []) {
        if (rule.event === undefined || rule.event === '*' || !isSupportedRule(rule)) continue;
        const existingRules = this.#rules.get(rule.event);
        if (existingRules === undefined) this.#rules.set(rule.event, [rule]);
        else existingRules.push(rule);
      }
    }
    if (!this.#lanesByName.has(program)) this.#lanesByName.set(program, newLane(program, program));
    // Not `Math.max(...)`, because there may be a million actors.
    let startTime = Number.NEGATIVE_INFINITY;
    for (const { spawnedAt } of header.actors ?? []) startTime = Math.max(startTime, spawnedAt);
    for (const { actor, machine, state, spawnedAt } of header.actors ?? []) {
      this.#machines.set(actor, machine);
      this.#begin(actor, machine, state, state === '' ? spawnedAt : startTime, startTime, -1);
    }
  }

  /** Named lanes precede lanes of actors, which are in the order of their machines. */
  get lanes(): readonly Lane[] {
    if (this.#sortedLanes.length !== this.#actors.size) {
      this.#sortedLanes = [...this.#actors.values()].sort(
        (a, b) => a.order - b.order || compareByNumber(a.lane, b.lane),
      );
    }
    const happenings = this.#lanesByName.get(program)!;
    return [
      ...[this.#deviations, happenings].filter((candidate) => !isEmpty(candidate)),
      ...[...this.#lanesByName.values()].filter((candidate) => candidate !== happenings),
      ...this.#sortedLanes.map((actorLane) => actorLane.lane),
    ];
  }

  phaseOf({ machine, state }: { readonly machine?: string; readonly state: string }): Phase | undefined {
    const display = this.#displayRulesOf(machine);
    if (display === undefined || !display.hasLife || !hasLanes(display)) return undefined;
    return this.#phaseIn(machine!, state);
  }

  /** Only a phase that no tag defines has a number. */
  colourOf(phase: Phase): number | undefined {
    return this.#colours.get(phase);
  }

  addRecord(record: TraceRecord, index: number): void {
    switch (record.kind) {
      case 'spawn': {
        const { actor, parent, machine, t } = record;
        this.#machines.set(actor, machine);
        this.#begin(actor, machine, '', t, t, index);
        this.#reportWork(actor, parent, (targetLane, phase) => this.#openSpan(targetLane, phase, t, index));
        break;
      }
      case 'transition':
        if (this.#hasLane(record.actor)) this.#enterState(record.actor, record.to, record.t, index);
        this.#applyListChange(record, index);
        break;
      case 'step':
        this.#applyListChange(record, index);
        break;
      case 'stop':
        this.#endActor(record, index);
        break;
      case 'unexpected':
        this.#mark(
          this.#lanesByName.get(program)!,
          record.t,
          index,
          'failure',
          `${record.actor}: ${actionText(record)}`,
        );
        break;
      case 'timer': {
        const { marks = [] } = this.#timelineOf(record.actor) ?? {};
        const rule = marks.find(({ timer }) => timer === record.timer);
        if (rule !== undefined) this.#markBy(rule, { actor: record.actor }, record.t, index);
        break;
      }
      case 'event':
        if (this.#stepEvents.has(record.event.type)) this.#step(record, index);
        this.#event(record, index);
        break;
    }
  }

  addDeviation(deviation: Deviation, index: number): void {
    this.#mark(this.#deviations, deviation.message.t, index, 'departure', deviationText(deviation));
  }

  #step({ to, event, t }: TraceRecord & { kind: 'event' }, index: number): void {
    const process = this.#timelineOf(to)?.process;
    if (process === undefined) return;
    if (process.title?.event === event.type) this.#processTitles.set(to, fillTemplate(process.title.text, event));
    const existingLane = this.#actors.get(to);
    const lastSpan = existingLane?.lane.spans.at(-1);
    const rule = stepOf(process.steps, event, lastSpan?.to === undefined ? lastSpan?.phase : undefined);
    if (rule === undefined) return;
    if (rule.step === undefined) {
      this.#closeSpan(existingLane?.lane, t);
      return;
    }
    if (existingLane === undefined && this.#actors.size >= maxActorLanes) return;
    const display = this.#displayRulesOf(this.#machines.get(to))!;
    const processLane = existingLane ?? {
      lane: newLane(to, this.#processTitles.get(to) ?? to),
      order: display.order,
    };
    this.#actors.set(to, processLane);
    this.#openSpan(
      processLane.lane,
      rule.step,
      t,
      index,
      rule.text === undefined ? undefined : fillTemplate(rule.text, event),
    );
  }

  #event({ from, to, event, t }: TraceRecord & { kind: 'event' }, index: number): void {
    const rules = this.#rules.get(event.type);
    // Most events match no rule; copying each would double the time for lanes.
    if (rules === undefined) {
      const rule = this.#wildcard(from, to, event.type);
      if (rule !== undefined) this.#markBy(rule, { ...event, from, to }, t, index);
      return;
    }
    const fields = { ...event, from, to };
    const rule = rules.find((candidate) => matchesConditions(candidate, fields));
    if (rule !== undefined) this.#markBy(rule, fields, t, index);
  }

  /** The `*` rule applies to messages to another group of machines. */
  #wildcard(from: string, to: string, type: string): MarkRule | undefined {
    if (type.startsWith('xstate.')) return undefined;
    const { group, marks = [] } = this.#timelineOf(from) ?? {};
    if (group !== undefined && this.#timelineOf(to)?.group === group) return undefined;
    return marks.find(({ event }) => event === '*');
  }

  /** Marks items that match a rule for the first time. */
  #applyListChange(
    { actor, change, t }: TraceRecord & { actor: string; change?: readonly ContextChange[] },
    index: number,
  ): void {
    if (change === undefined) return;
    for (const rule of this.#timelineOf(actor)?.marks ?? []) {
      const listChange = rule.items === undefined ? undefined : change.find(({ path }) => path === rule.items)?.value;
      if (!Array.isArray(listChange)) continue;
      const currentItems = new Map<string, object>();
      for (const item of listChange) {
        if (typeof item === 'object' && item !== null && matchesConditions(rule, item))
          currentItems.set(fillTemplate(rule.text, item), item);
      }
      const lastItems = this.#lastItems.get(rule)?.get(actor);
      for (const [itemText, item] of currentItems) {
        if (lastItems?.has(itemText) !== true) this.#markBy(rule, { actor, ...item }, t, index);
      }
      const itemsByActor = this.#lastItems.get(rule) ?? new Map<string, ReadonlySet<string>>();
      this.#lastItems.set(rule, itemsByActor.set(actor, new Set(currentItems.keys())));
    }
  }

  #markBy(rule: MarkRule, fields: Readonly<Record<string, unknown>>, t: number, index: number): void {
    if (!isSupportedRule(rule)) return;
    if (rule.unlessSame !== undefined) {
      const value = fieldAt(fields, rule.unlessSame);
      const isUnchanged = value !== undefined && this.#lastValues.get(rule) === value;
      this.#lastValues.set(rule, value);
      if (isUnchanged) return;
    }
    const name = fillTemplate(rule.lane ?? program, fields);
    // In a merged trace, actor names begin with the program's name.
    const [, programPrefix = ''] = /^([^:/]*:)/.exec(String(fields.to ?? fields.actor ?? '')) ?? [];
    const actorLane = this.#actors.get(name) ?? this.#actors.get(`${programPrefix}${name}`);
    const targetLane = this.#lanesByName.get(name) ?? actorLane?.lane ?? this.#lanesByName.get(program)!;
    this.#mark(targetLane, t, index, rule.kind, fillTemplate(rule.text, fields));
  }

  #endActor({ actor, status, error, t }: TraceRecord & { kind: 'stop' }, index: number): void {
    const machine = this.#machines.get(actor);
    if (this.#hasLane(actor)) this.#closeSpan(this.#actors.get(actor)?.lane, t);
    else this.#count(machine, -1, t);
    if (this.#timelineOf(actor)?.process !== undefined) this.#closeSpan(this.#actors.get(actor)?.lane, t);
    this.#processTitles.delete(actor);
    const separatorIndex = actor.lastIndexOf('/');
    this.#reportWork(actor, separatorIndex < 0 ? undefined : actor.slice(0, separatorIndex), (targetLane) =>
      this.#closeSpan(targetLane, t),
    );
    this.#machines.delete(actor);
    this.#displayRulesOf(machine)?.defaultNames.delete(actor);
    if (status === 'error' && machine !== undefined) {
      this.#mark(this.#lanesByName.get(program)!, t, index, 'failure', `${actor} failed: ${error ?? 'reason unknown'}`);
    }
  }

  #begin(actor: string, machine: string | undefined, state: string, t: number, startTime: number, index: number): void {
    const display = this.#displayRulesOf(machine);
    if (display === undefined) return;
    const isKnownLane = this.#actors.has(actor);
    if (display.timeline.lane === undefined && (isKnownLane || display.lanes < maxLanesByDefault)) {
      display.defaultNames.add(actor);
    }
    if (this.#hasLane(actor)) this.#enterState(actor, state, t, index);
    else this.#count(machine, 1, startTime);
  }

  /** A machine missing from the header shares the entry of machines without lane definitions. */
  #displayRulesOf(machine: string | undefined): MachineDisplay | undefined {
    if (machine === undefined) return undefined;
    const cachedDisplay = this.#displayRules.get(machine);
    if (cachedDisplay !== undefined) return cachedDisplay;
    if (this.#unknownMachines.size === maxUnknownMachines) return this.#otherMachines;
    const newDisplay = unknownMachine(machine, this.#displayRules.size);
    this.#unknownMachines.add(machine);
    this.#displayRules.set(machine, newDisplay);
    return newDisplay;
  }

  #timelineOf(actor: string): Timeline | undefined {
    return this.#displayRulesOf(this.#machines.get(actor))?.timeline;
  }

  #hasLane(actor: string): boolean {
    const display = this.#displayRulesOf(this.#machines.get(actor));
    if (display === undefined || (display.timeline.lane !== 'each' && !display.defaultNames.has(actor))) return false;
    return this.#actors.has(actor) || this.#actors.size < maxActorLanes;
  }

  #reportWork(actor: string, parent: string | undefined, report: (on: Lane, phase: Phase) => void): void {
    if (parent === undefined || this.#machines.get(actor) !== undefined) return;
    for (const { child, lane: name, phase } of this.#timelineOf(parent)?.work ?? []) {
      const targetLane = actor === `${parent}/${child}` ? this.#lanesByName.get(name) : undefined;
      if (targetLane !== undefined) report(targetLane, phase);
    }
  }

  #phaseIn(machine: string, state: string): Phase {
    const tags = this.#tags.tagsOf(machine, state);
    const taggedPhase = lifePhases.find((phase) => tags.has(phase));
    // An actor without a state is starting.
    return taggedPhase ?? (state === '' ? 'starting' : stateText(state));
  }

  #enterState(actor: string, state: string, t: number, index: number): void {
    const machine = this.#machines.get(actor)!;
    const display = this.#displayRulesOf(machine)!;
    let actorLane = this.#actors.get(actor);
    if (actorLane === undefined) {
      actorLane = { lane: newLane(actor, actor.replace(/-(?=\d)/, ' ')), order: display.order };
      this.#actors.set(actor, actorLane);
      display.lanes++;
    }
    if (state === '' && !display.hasLife && !display.isStateless) return;
    const phase = display.isStateless ? 'running' : this.#phaseIn(machine, state);
    const lastSpan = actorLane.lane.spans.at(-1);
    if (lastSpan !== undefined && lastSpan.to === undefined && lastSpan.phase === phase) return;
    this.#closeSpan(actorLane.lane, t);
    if (phase !== 'gone') this.#openSpan(actorLane.lane, phase, t, index);
  }

  #openSpan(targetLane: Lane, phase: Phase, t: number, index: number, text?: string): void {
    this.#closeSpan(targetLane, t);
    targetLane.spans.push({ from: t, phase, index, ...(text !== undefined && { text }) });
    this.phases.add(phase);
    if (!isLifePhase(phase) && !this.#colours.has(phase)) this.#colours.set(phase, this.#colours.size % maxColours);
    this.version++;
  }

  #closeSpan(closedLane: Lane | undefined, t: number): void {
    const lastSpan = closedLane?.spans.at(-1);
    if (lastSpan === undefined || lastSpan.to !== undefined) return;
    lastSpan.to = t;
    this.version++;
  }

  #mark(targetLane: Lane, t: number, index: number, kind: MarkKind, title: string): void {
    targetLane.marks.push({ t, index, kind, title });
    this.kinds.add(kind);
    this.version++;
  }

  #count(machine: string | undefined, change: 1 | -1, t: number): void {
    const display = this.#displayRulesOf(machine);
    const laneRule = display?.timeline.lane;
    if (display === undefined || laneRule === 'none') return;
    const moreName = `more ${display.name}`;
    const [name, title] = typeof laneRule === 'object' ? [laneRule.count, laneRule.count] : [moreName, moreName];
    const targetLane = this.#lanesByName.get(name) ?? newLane(name, title);
    this.#lanesByName.set(name, targetLane);
    const { counts } = targetLane;
    const n = Math.max(0, (counts.at(-1)?.n ?? 0) + change);
    // Several changes at the same time are one point.
    if (counts.at(-1)?.t === t) counts.pop();
    counts.push({ t, n });
    this.version++;
  }
}

function unknownMachine(name: string, order: number): MachineDisplay {
  return {
    name,
    order,
    timeline: {},
    hasLife: false,
    isStateless: false,
    defaultNames: new Set(),
    lanes: 0,
  };
}

function isLifePhase(phase: Phase): boolean {
  return phase === 'building' || (lifePhases as readonly string[]).includes(phase);
}

function hasLanes({ timeline }: MachineDisplay): boolean {
  return timeline.lane === undefined || timeline.lane === 'each';
}

/** A newer program may use a mark that this version does not support. */
function isSupportedRule({ kind }: MarkRule): boolean {
  return (markKinds as readonly string[]).includes(kind);
}

function newLane(name: string, title: string): Lane {
  return { name, title, spans: [], marks: [], counts: [] };
}

function isEmpty({ spans, marks }: Lane): boolean {
  return spans.length === 0 && marks.length === 0;
}

/** Sorts epoch-2 before epoch-10, and epoch-1b after epoch-1. */
const nameOrder = new Intl.Collator('en', { numeric: true });

const compareByNumber = (a: Lane, b: Lane): number => nameOrder.compare(a.name, b.name);
