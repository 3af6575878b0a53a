/** A trace as a person sees it over time: a lane for each epoch or flow of the control plane, with bars, marks and counts. */
import type { Departure } from '../../src/debugger/check/check.ts';
import { StateTags } from '../../src/debugger/trace/state-tags.ts';
import type { TraceHeader, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { firstAfter } from './sorted.ts';

import { departureInOneLine, happeningInWords } from './words.ts';

export type Phase = 'starting' | 'live' | 'draining' | 'retiring' | 'ending' | 'building';

export type MarkKind =
  | 'departure'
  | 'failure'
  | 'rejected'
  | 'retry'
  | 'signal'
  | 'restart'
  | 'change'
  | 'push'
  | 'request';

/** Something that went on for a while. `to` is absent while it goes on. */
export interface Span {
  readonly from: number;
  to?: number;
  readonly phase: Phase;
  /** Place of the record that it began with. */
  readonly index: number;
}

export interface Mark {
  readonly t: number;
  /** Place of its record. */
  readonly index: number;
  readonly kind: MarkKind;
  readonly title: string;
}

export interface Lane {
  /** `epoch-1`, `pushes`: stable, for tests and styles. */
  readonly name: string;
  readonly title: string;
  /** In the order of time, not overlapping. */
  readonly spans: Span[];
  readonly marks: Mark[];
  /** How many there were from a time on; empty where nothing is counted. */
  readonly counts: { readonly t: number; readonly n: number }[];
}

const sources = new Set(['mesh-config', 'mesh-networks', 'config-controller', 'service-registry', 'jwks']);

/** Follows a trace record by record. */
export class Lanes {
  /** Grows with each change of what is drawn. */
  version = 0;
  /** Of the bars and marks that there are so far: what a legend has to explain. */
  readonly phases = new Set<Phase>();
  readonly kinds = new Set<MarkKind>();
  readonly #happenings: Lane;
  readonly #sources = lane('sources', 'sources');
  readonly #pushes = lane('pushes', 'pushes');
  readonly #connections = lane('connections', 'connections');
  readonly #departures = lane('departures', 'departures');
  readonly #epochs = new Map<string, Lane>();
  readonly #machines = new Map<string, string | undefined>();
  readonly #isControlPlane: boolean;
  readonly #tags: StateTags;
  /** Machines whose actors have a lane each. */
  readonly #withLanes: ReadonlySet<string>;
  #connected = 0;
  /** Of the files that were read last: the same digest is no change. */
  #digest: unknown;
  #doomed: ReadonlySet<string> = new Set();

  constructor(header: TraceHeader) {
    const isControlPlane = header.machines.some(({ id }) => id === 'push' || id === 'ads-connection');
    this.#isControlPlane = isControlPlane;
    this.#tags = new StateTags(header.machines);
    this.#withLanes = new Set(header.machines.map(({ id }) => id).filter((id) => this.#tags.knows(id, 'live')));
    this.#happenings = lane('program', isControlPlane ? 'program' : 'restarts, signals');
    const begin = header.actors?.length ? Math.max(...header.actors.map(({ spawnedAt }) => spawnedAt)) : 0;
    for (const { actor, machine, state, spawnedAt } of header.actors ?? []) {
      this.#machines.set(actor, machine);
      if (this.#hasLane(machine)) this.#enter(actor, state, state === '' ? spawnedAt : begin, -1);
      if (machine === 'ads-connection') this.#count(1, begin);
    }
  }

  /** Those that have something to show; the epochs in the order in which they first came. */
  get lanes(): readonly Lane[] {
    const own = this.#isControlPlane
      ? [this.#sources, this.#pushes, this.#connections]
      : [...this.#epochs.values()].sort(byEpoch);
    return [...[this.#departures, this.#happenings].filter((found) => !isEmpty(found)), ...own];
  }

  /** Of an actor that has a lane. */
  phaseOf({ machine, state }: { readonly machine?: string; readonly state: string }): Phase | 'gone' | undefined {
    return this.#hasLane(machine) ? phaseOf(this.#tags.of(machine, state)) : undefined;
  }

  feed(record: TraceRecord, index: number): void {
    switch (record.kind) {
      case 'spawn':
        this.#machines.set(record.actor, record.machine);
        if (this.#hasLane(record.machine)) this.#enter(record.actor, '', record.t, index);
        if (record.machine === 'ads-connection') this.#count(1, record.t);
        if (this.#isBuilding(record.actor)) this.#open(this.#pushes, 'building', record.t, index);
        break;
      case 'transition':
        if (this.#hasLane(this.#machines.get(record.actor))) this.#enter(record.actor, record.to, record.t, index);
        if (record.actor === 'supervisor') this.#noteDoomed(record, index);
        break;
      case 'stop':
        this.#ended(record, index);
        break;
      case 'unexpected':
        this.#mark(this.#happenings, record.t, index, 'failure', `${record.actor} ${happeningInWords(record)}`);
        break;
      case 'timer':
        if (record.actor === 'supervisor' && record.timer === 'backoff') {
          this.#mark(this.#happenings, record.t, index, 'retry', 'The pause after a failure is over: another try');
        }
        break;
      case 'event':
        this.#event(record, index);
        break;
    }
  }

  depart(departure: Departure, index: number): void {
    this.#mark(this.#departures, departure.message.t, index, 'departure', departureInOneLine(departure));
  }

  #event({ from, to, event, t }: TraceRecord & { kind: 'event' }, index: number): void {
    const [kind, title] = happeningOf(event) ?? [];
    const isSame = kind === 'change' && event.digest !== undefined && event.digest === this.#digest;
    if (kind === 'change') this.#digest = event.digest;
    if (kind !== undefined && !isSame) {
      const name = typeof event.name === 'string' ? event.name : undefined;
      const epoch = kind === 'failure' && name !== undefined ? this.#epochs.get(name) : undefined;
      this.#mark(epoch ?? this.#happenings, t, index, kind, title!);
    }
    if (!this.#isControlPlane) return;
    if (event.type === 'clients.push') {
      const configs = Array.isArray(event.configs) ? event.configs.length : 0;
      const what = event.forced === true ? 'everything' : `${configs} ${configs === 1 ? 'object' : 'objects'}`;
      this.#mark(this.#pushes, t, index, 'push', `Pushed to the clients: ${what}, version ${text(event.version)}`);
    } else if (event.type === 'push.request') {
      this.#mark(this.#pushes, t, index, 'request', `${from} asks for a push`);
    } else if (sources.has(from) && !sources.has(to) && !event.type.startsWith('xstate.') && kind === undefined) {
      this.#mark(this.#sources, t, index, 'change', `${from}: ${event.type}`);
    } else if (event.type === 'configs.changed') {
      const changes = Array.isArray(event.changes) ? event.changes.length : 0;
      this.#mark(
        this.#sources,
        t,
        index,
        'change',
        `${changes} configuration ${changes === 1 ? 'object' : 'objects'} changed`,
      );
    }
  }

  #ended({ actor, status, error, t }: TraceRecord & { kind: 'stop' }, index: number): void {
    const machine = this.#machines.get(actor);
    this.#machines.delete(actor);
    if (this.#hasLane(machine)) this.#close(this.#epochs.get(actor), t);
    if (machine === 'ads-connection') this.#count(-1, t);
    if (this.#isBuilding(actor)) this.#close(this.#pushes, t);
    if (status === 'error' && machine !== undefined) {
      this.#mark(this.#happenings, t, index, 'failure', `${actor} broke: ${error ?? 'no reason is told'}`);
    }
  }

  #hasLane(machine: string | undefined): boolean {
    return machine !== undefined && this.#withLanes.has(machine);
  }

  #isBuilding(actor: string): boolean {
    return actor === 'push/context' || actor === 'push/endpoints';
  }

  #enter(actor: string, state: string, t: number, index: number): void {
    const found = this.#epochs.get(actor) ?? lane(actor, actor.replace('-', ' '));
    this.#epochs.set(actor, found);
    const phase = phaseOf(this.#tags.of(this.#machines.get(actor), state));
    const last = found.spans.at(-1);
    if (last !== undefined && last.to === undefined && last.phase === phase) return;
    this.#close(found, t);
    if (phase !== 'gone') this.#open(found, phase, t, index);
  }

  #open(in_: Lane, phase: Phase, t: number, index: number): void {
    this.#close(in_, t);
    in_.spans.push({ from: t, phase, index });
    this.phases.add(phase);
    this.version++;
  }

  #close(found: Lane | undefined, t: number): void {
    const last = found?.spans.at(-1);
    if (last === undefined || last.to !== undefined) return;
    last.to = t;
    this.version++;
  }

  #mark(on: Lane, t: number, index: number, kind: MarkKind, title: string): void {
    on.marks.push({ t, index, kind, title });
    this.kinds.add(kind);
    this.version++;
  }

  #count(change: 1 | -1, t: number): void {
    this.#connected += change;
    const { counts } = this.#connections;
    // Many that come at the same time are one step.
    if (counts.at(-1)?.t === t) counts.pop();
    counts.push({ t, n: this.#connected });
    this.version++;
  }

  /** What only the supervisor knows: a parent died before its time, and its child will not live long. */
  #noteDoomed({ change, t }: TraceRecord & { kind: 'transition' }, index: number): void {
    const epochs = change?.find(({ path }) => path === '/epochs')?.value;
    if (!Array.isArray(epochs)) return;
    const doomed = new Set<string>(epochs.filter((epoch) => epoch?.doomed === true).map(({ name }) => String(name)));
    for (const name of doomed) {
      const found = this.#epochs.get(name);
      if (found === undefined || this.#doomed.has(name)) continue;
      this.#mark(found, t, index, 'failure', `${found.title} is doomed: its parent died before its time`);
    }
    this.#doomed = doomed;
  }
}

/** Tags of states: a chart of which one is `live` gets a lane for each of its actors. */
const lifePhases = ['starting', 'live', 'draining', 'retiring', 'ending', 'gone'] as const;

/** What a life is in, given the tags of its state; before there are any, it begins. */
function phaseOf(tags: ReadonlySet<string>): Phase | 'gone' {
  return lifePhases.find((phase) => tags.has(phase)) ?? 'starting';
}

/** How many there were at a time. */
export function countAt({ counts }: Lane, t: number): number {
  return counts[firstAfter(counts, (count) => count.t > t) - 1]?.n ?? 0;
}

/** The events that a person looks for in the life of a program. */
function happeningOf(event: { type: string; [field: string]: unknown }): [MarkKind, string] | undefined {
  switch (event.type) {
    case 'signal.received':
      return ['signal', `Signal ${text(event.signal)}`];
    case 'quit.requested':
      return ['signal', 'POST /quitquitquit'];
    case 'config.changed':
      return ['change', 'Certificates or configuration changed'];
    case 'config.rejected':
    case 'settings.rejected':
      return ['rejected', `What is configured would not do: ${problemOf(event)}`];
    case 'restart.decided': {
      const what = `${text(event.how)} of ${text(event.name)}: ${text(event.reason)}`;
      return Number(event.attempt) > 1 ? ['retry', `Try ${event.attempt}, ${what}`] : ['restart', capital(what)];
    }
    case 'epoch.failed':
      return ['failure', `${text(event.name)} failed while ${text(event.during)}: ${text(event.reason)}`];
    case 'context.failed':
    case 'configs.failed':
    case 'services.failed':
    case 'http.failed':
    case 'status.failed':
    case 'ads.failed':
      return ['failure', `${event.type}: ${text(event.reason)}`];
    default:
      return undefined;
  }
}

function problemOf(event: { [field: string]: unknown }): string {
  if (typeof event.reason === 'string') return event.reason;
  const [first] = Array.isArray(event.problems) ? (event.problems as { message?: unknown }[]) : [];
  return text(first?.message);
}

function lane(name: string, title: string): Lane {
  return { name, title, spans: [], marks: [], counts: [] };
}

function isEmpty({ spans, marks }: Lane): boolean {
  return spans.length === 0 && marks.length === 0;
}

/** epoch-2 before epoch-10, and epoch-1b behind epoch-1. */
function byEpoch(a: Lane, b: Lane): number {
  return a.name.localeCompare(b.name, 'en', { numeric: true });
}

function text(value: unknown): string {
  return value === undefined || value === null ? 'unknown' : String(value);
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
