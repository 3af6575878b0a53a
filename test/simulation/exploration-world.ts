/**
 * The agent's real statecharts on a simulated host, with all that is not determined as a choice: what the world asks of the
 * agent (`cert`, `hup`, `term`), what Envoy does in its own time (`live:1`), what goes wrong (`crash:0`), and which of the
 * deadlines that may be next is next (`tick:supervisor.backoff`). Time is a zone: all timings at once.
 */
import type { AnyActorRef, InspectionEvent, SnapshotFrom } from 'xstate';
import type { agentMachine } from '../../machines/agent/agent.machine.ts';
import type { ProcessSignal } from '../../machines/agent/protocol.ts';
import { type AgentSettings, defaultSettings } from '../../machines/agent/settings.ts';
import { type Running, report, settle } from '../../src/debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { Choice, Violation, World } from '../../src/debugger/explore/world.ts';
import { stateName } from '../../src/runtime/actor-system.ts';
import { type EffectWorld, type ScriptedAgent, worldOf } from './exploration-effects.ts';
import { invariants } from './invariants/all.ts';
import type { Invariant, Observed } from './invariants/invariant.ts';
import { SimulatedHost, type SimulatedProcess } from './simulated-host.ts';

/** How much of each kind a run may hold. */
export interface Bounds {
  /** Changed certificates and SIGHUPs. */
  readonly triggers: number;
  /** Crashes, refused bootstraps, failed spawns, processes that do not end. */
  readonly faults: number;
  /** SIGTERMs: 1 a stop, 2 a stop that may lose its patience. */
  readonly stops: 0 | 1 | 2;
}

export interface ExplorationOptions {
  readonly settings?: AgentSettings;
  readonly invariants?: readonly Invariant[];
  /** Two states whose deadlines lie at other distances are two, though their order may be the same. */
  readonly exactTimes?: boolean;
  readonly inspect?: (event: InspectionEvent) => void;
}

/** As in production, but for counters: a bucket of two tokens, and a budget of one retry. */
export const explorationSettings: AgentSettings = {
  ...defaultSettings,
  retry: { ...defaultSettings.retry, budget: 1 },
  starts: { ...defaultSettings.starts, burst: 2 },
};

/** A probe comes by so often, and hears the answer (src/agent/live-probe.ts). */
const probeMs = 300;

interface WorldState {
  readonly triggers: number;
  readonly faults: number;
  readonly stops: number;
  readonly files: number;
  /** The files as the agent last read them. */
  readonly filesRead: number;
  readonly orders: number;
  /** Epochs begun, and live ones lost, since the last trigger: the most that can have failed. */
  readonly tries: number;
  readonly stop: 'not ordered' | 'ordered' | 'deadline passed';
  /** Calls of `prepare` that are not answered, by epoch. */
  readonly preparing: ReadonlyMap<number, AnyActorRef>;
  readonly probes: ReadonlyMap<number, AnyActorRef>;
  readonly releasing: AnyActorRef | undefined;
  readonly signals: AnyActorRef | undefined;
  readonly watch: AnyActorRef | undefined;
  /** The next start fails: the operating system has no process to give. */
  readonly unspawnable: boolean;
  readonly violations: readonly Violation[];
}

type AgentSnapshot = SnapshotFrom<typeof agentMachine>;

export class ExplorationWorld implements World, EffectWorld {
  readonly #system = new SymbolicSystem();
  readonly #host: SimulatedHost;
  readonly #agent: AnyActorRef;
  readonly #invariants: readonly Invariant[];
  readonly #settings: AgentSettings;
  readonly #exactTimes: boolean;
  #state: WorldState;
  #choices: readonly Choice[] | undefined;

  constructor(agent: ScriptedAgent, bounds: Bounds, options: ExplorationOptions = {}) {
    this.#exactTimes = options.exactTimes ?? false;
    this.#settings = options.settings ?? explorationSettings;
    this.#invariants = options.invariants ?? invariants;
    this.#state = {
      ...bounds,
      files: 0,
      filesRead: 0,
      orders: 0,
      tries: 0,
      stop: 'not ordered',
      preparing: new Map(),
      probes: new Map(),
      releasing: undefined,
      signals: undefined,
      watch: undefined,
      unspawnable: false,
      violations: [],
    };
    // Time spent is no part of a state, only of a trace.
    if (options.inspect !== undefined) this.#system.arm(beginning, 0, 'mark');
    this.#host = new SimulatedHost(this.#system, this.#watchOver(), this.#settings.parentShutdownMs);
    this.#agent = this.#system.start(agent, {
      id: 'agent',
      input: { settings: this.#settings },
      inspect: options.inspect,
      created: (root) => worldOf.set(root.system, this),
    });
    this.#settle();
  }

  get violations(): readonly Violation[] {
    return this.#state.violations;
  }

  get spawned(): number {
    return this.#host.spawned;
  }

  get ending(): boolean {
    return this.#state.stop !== 'not ordered';
  }

  get host(): SimulatedHost {
    return this.#host;
  }

  /** Milliseconds: some of the timings that a run stands for may have taken as little. For a trace. */
  get earliestTime(): number {
    return this.#system.zone.has(beginning) ? this.#system.zone.sinceMs(beginning) : 0;
  }

  get agentSnapshot(): AgentSnapshot {
    return this.#agent.getSnapshot() as AgentSnapshot;
  }

  choices(): readonly Choice[] {
    this.#choices ??= [...this.#list()];
    return this.#choices;
  }

  apply(choice: string): void {
    const colon = choice.indexOf(':');
    const kind = colon === -1 ? choice : choice.slice(0, colon);
    this.#perform(kind, choice.slice(colon + 1));
    this.#settle();
  }

  key(): string {
    const time = this.#exactTimes ? this.#system.zone.key() : this.#system.zone.orderKey();
    const actors = [...this.#system.actors()].map(keyOfActor).join('\n');
    const s = this.#state;
    const calls = `${[...s.preparing.keys()]}/${[...s.probes.keys()]}/${s.releasing !== undefined}`;
    const wanted = `${s.files}.${s.filesRead}.${s.orders} ${Math.min(s.tries, this.#settings.retry.budget + 1)}`;
    return `${s.triggers} ${s.faults} ${s.stops} ${s.stop}|${wanted}|${calls}|${this.#host.key()}|${time}|${actors}`;
  }

  save(): () => void {
    const state = this.#state;
    const choices = this.#choices;
    const system = this.#system.save();
    const host = this.#host.save();
    return () => {
      this.#state = state;
      this.#choices = choices;
      system();
      host();
    };
  }

  // ---- what the effects ask

  listening(effect: 'signals' | 'files', self: AnyActorRef | undefined): void {
    this.#set(effect === 'signals' ? { signals: self } : { watch: self });
  }

  readFiles(): string {
    const { files, filesRead } = this.#state;
    if (files !== filesRead) this.#set({ filesRead: files, tries: this.#triesUnderWay() });
    return `files-${files}`;
  }

  preparing({ input, self }: Running<{ epoch: number }>): void {
    this.#set({ preparing: new Map(this.#state.preparing).set(input.epoch, self), tries: this.#state.tries + 1 });
  }

  notPreparing({ input, self }: Running<{ epoch: number }>): void {
    if (this.#state.preparing.get(input.epoch) === self)
      this.#set({ preparing: less(this.#state.preparing, input.epoch) });
  }

  spawn({ input, self }: Running<{ epoch: number; baseId: number }>): void {
    if (this.#state.unspawnable) {
      report(self, { type: 'process.failed', reason: 'EAGAIN' });
      return;
    }
    const { files, orders } = this.#state;
    const { epoch, baseId } = input;
    const { pid } = this.#host.spawn({ epoch, baseId, generation: { files, orders }, effect: self });
    report(self, { type: 'process.spawned', pid });
  }

  signal({ self }: Running<unknown>, signal: ProcessSignal['signal']): void {
    const process = this.#host.ofEffect(self);
    if (process !== undefined) this.#host.signal(process, signal);
  }

  abandon({ self }: Running<unknown>): void {
    const process = this.#host.ofEffect(self);
    if (process !== undefined) this.#host.kill(process);
  }

  probing({ input, self }: Running<{ epoch: number }>, on: boolean): void {
    const { probes } = this.#state;
    if (on) this.#set({ probes: new Map(probes).set(input.epoch, self) });
    else if (probes.get(input.epoch) === self) this.#set({ probes: less(probes, input.epoch) });
  }

  drain(epoch: number): boolean {
    const process = this.#host.processes.find((other) => other.epoch === epoch && this.#host.hasAdmin(other));
    if (process === undefined || this.#host.isDoomed(process)) return false;
    this.#check((invariant, observed) => invariant.draining?.(process, observed));
    return true;
  }

  repair(baseId: number): boolean {
    return this.#host.repair(baseId);
  }

  release({ self }: Running<unknown>): void {
    this.#set({ releasing: self });
    for (const process of this.#host.processes) this.#host.kill(process);
  }

  // ---- what happens

  *#list(): Generator<Choice> {
    const s = this.#state;
    if (this.#agent.getSnapshot().status !== 'active' || s.violations.length > 0) return;
    if (s.triggers > 0 && s.stop === 'not ordered' && !this.#agentEnds()) {
      if (s.watch !== undefined) yield bounded('cert');
      yield bounded('hup');
    }
    if (s.stops > 0) yield bounded('term');
    for (const epoch of s.preparing.keys()) {
      yield free(`prepared:${epoch}`);
      if (s.faults > 0) {
        yield bounded(`refuse:${epoch}`);
        yield bounded(`unspawnable:${epoch}`);
      }
    }
    for (const process of this.#host.processes) yield* this.#ofProcess(process);
    for (const timer of this.#system.zone.firable()) yield free(`tick:${timer}`);
  }

  *#ofProcess(process: SimulatedProcess): Generator<Choice> {
    const { label } = process;
    const nature = this.#host.natureOf(process);
    if (nature !== undefined) yield free(`${natureNames[nature.event]}:${label}`);
    if (this.#isSeen(process)) yield free(`seen:${label}`);
    if (this.#state.faults === 0) return;
    if (this.#host.mayHang(process)) yield bounded(`hang:${label}`);
    if (nature?.withinMs === undefined || this.#host.isDoomed(process)) yield bounded(`crash:${label}`);
  }

  #perform(kind: string, subject: string): void {
    const s = this.#state;
    switch (kind) {
      case 'cert':
        this.#set({ triggers: s.triggers - 1, files: s.files + 1 });
        if (s.watch !== undefined) report(s.watch, { type: 'files.changed', path: 'tls.crt' });
        return;
      case 'hup':
        this.#set({ triggers: s.triggers - 1, orders: s.orders + 1, tries: this.#triesUnderWay() });
        this.#raise('SIGHUP');
        return;
      case 'term':
        this.#set({ stops: s.stops - 1, stop: s.stop === 'not ordered' ? 'ordered' : 'deadline passed' });
        if (s.stop === 'not ordered') this.#system.arm('stop deadline', this.#settings.terminationDrainMs, 'mark');
        else this.#system.disarm('stop deadline');
        this.#raise('SIGTERM');
        return;
      case 'prepared':
      case 'unspawnable':
        this.#prepared(Number(subject), kind === 'unspawnable');
        return;
      case 'refuse':
        this.#spendFault();
        settle(this.#takeCall(Number(subject)), { error: new Error('no such field: bogus') });
        return;
      case 'tick':
        this.#system.fire(subject);
        return;
      case 'seen':
        this.#system.disarm(`probe of ${subject}`);
        this.#host.noteSeen(this.#host.byLabel(subject));
        report(this.#state.probes.get(this.#host.byLabel(subject).epoch)!, { type: 'probe.passed', timeToLiveMs: 300 });
        return;
      default:
        this.#happen(kind, this.#host.byLabel(subject));
    }
  }

  #happen(kind: string, process: SimulatedProcess): void {
    const event = happenings[kind];
    if (event === undefined) throw new Error(`no choice is named '${kind}'`);
    if (event === 'envoy.crashed' || event === 'envoy.hung') this.#spendFault();
    this.#host.happen(process, event);
  }

  #prepared(epoch: number, unspawnable: boolean): void {
    if (unspawnable) this.#spendFault();
    this.#set({ unspawnable });
    settle(this.#takeCall(epoch), { value: { configFile: `envoy-rev${epoch}.json` } });
    this.#set({ unspawnable: false });
  }

  #takeCall(epoch: number): AnyActorRef {
    const call = this.#state.preparing.get(epoch)!;
    this.#set({ preparing: less(this.#state.preparing, epoch) });
    return call;
  }

  #spendFault(): void {
    this.#set({ faults: this.#state.faults - 1 });
  }

  #raise(signal: string): void {
    if (this.#state.signals !== undefined) report(this.#state.signals, { type: 'signal.received', signal });
  }

  /** What may still fail of what was begun before. */
  #triesUnderWay(): number {
    return this.#state.preparing.size + this.#host.processes.filter(({ seen }) => !seen).length;
  }

  #isSeen(process: SimulatedProcess): boolean {
    return this.#state.probes.has(process.epoch) && process.live && this.#host.hasAdmin(process) && !process.sentAway;
  }

  /** Once the actors are quiet: the release that waits, the deadlines of nature, time, and what must always hold. */
  #settle(): void {
    this.#host.tellNews();
    const { releasing } = this.#state;
    if (releasing !== undefined && this.#host.processes.length === 0) {
      this.#set({ releasing: undefined });
      settle(releasing, { value: undefined });
    }
    this.#armNature();
    this.#notePassedDeadlines();
    this.#system.elapse();
    this.#choices = undefined;
    this.#check((invariant, observed) => invariant.always?.(observed));
    if (!this.choices().some((choice) => choice.free)) {
      this.#check((invariant, observed) => invariant.atRest?.(observed));
    }
  }

  #armNature(): void {
    const due = new Map<string, number>();
    for (const process of this.#host.processes) {
      const nature = this.#host.natureOf(process);
      if (nature?.withinMs !== undefined) due.set(`${natureNames[nature.event]} of ${process.label}`, nature.withinMs);
      if (this.#isSeen(process)) due.set(`probe of ${process.label}`, probeMs);
    }
    for (const name of this.#system.zone.names('within')) if (!due.has(name)) this.#system.disarm(name);
    for (const [name, ms] of due) if (!this.#system.zone.has(name)) this.#system.arm(name, ms, 'within');
  }

  #notePassedDeadlines(): void {
    if (this.#system.zone.hasPassed('stop deadline')) {
      this.#system.disarm('stop deadline');
      this.#set({ stop: 'deadline passed' });
    }
    for (const name of this.#system.zone.names('mark')) {
      const gone = name.startsWith('patience with ') && !this.#host.processes.some((p) => patienceWith(p) === name);
      if (gone) this.#system.disarm(name);
    }
  }

  #watchOver() {
    return {
      spawning: (newcomer: { epoch: number; baseId: number }) =>
        this.#check((invariant, observed) => invariant.spawning?.(newcomer, observed)),
      signalling: (process: SimulatedProcess, signal: ProcessSignal['signal']) =>
        this.#check((invariant, observed) => invariant.signalling?.(process, signal, observed)),
      wentLive: ({ epoch, baseId }: SimulatedProcess) => {
        const parent = this.#host.processes.find((p) => p.baseId === baseId && p.epoch === epoch - 1);
        if (parent === undefined) return;
        const { parentShutdownMs, parentGraceMs } = this.#settings;
        // Anew for a child that starts in a dead one's place.
        this.#system.disarm(patienceWith(parent));
        this.#system.arm(patienceWith(parent), parentShutdownMs + parentGraceMs, 'mark');
      },
      left: ({ live, sentAway }: SimulatedProcess) => {
        if (live && !sentAway) this.#set({ tries: this.#state.tries + 1 });
      },
    };
  }

  #check(ask: (invariant: Invariant, observed: Observed) => string | undefined): void {
    const observed = this.#observed();
    for (const invariant of this.#invariants) {
      const detail = ask(invariant, observed);
      if (detail !== undefined) {
        this.#set({ violations: [...this.#state.violations, { invariant: invariant.name, detail }] });
      }
    }
  }

  #observed(): Observed {
    const { files, orders, tries, stop } = this.#state;
    const snapshot = this.#agent?.getSnapshot() as AgentSnapshot | undefined;
    return {
      host: this.#host,
      wanted: { files, orders },
      triesSinceTrigger: tries,
      retryBudget: this.#settings.retry.budget,
      stopOrdered: stop !== 'not ordered',
      stopDeadlinePassed: stop === 'deadline passed' || this.#system.zone.hasPassed('stop deadline'),
      isOverdue: (parent) => this.#system.zone.hasPassed(patienceWith(parent)),
      agentEnds: this.#agentEnds(),
      agentExitCode: snapshot?.status === 'done' ? snapshot.output?.exitCode : undefined,
      failures: this.#system.failures,
    };
  }

  #agentEnds(): boolean {
    const snapshot = this.#agent?.getSnapshot() as AgentSnapshot | undefined;
    return snapshot !== undefined && !snapshot.matches('claiming a base id') && !snapshot.matches('at work');
  }

  #set(change: Partial<WorldState>): void {
    this.#state = { ...this.#state, ...change };
  }
}

const beginning = 'beginning';

const free = (name: string): Choice => ({ name, free: true });
const bounded = (name: string): Choice => ({ name, free: false });
const patienceWith = ({ label }: SimulatedProcess): string => `patience with ${label}`;

const natureNames = {
  'envoy.admin-opened': 'admin',
  'envoy.went-live': 'live',
  'envoy.ended': 'exit',
  'envoy.called-parent': 'call',
} as const;

const happenings: Readonly<Record<string, Parameters<SimulatedHost['happen']>[1]>> = {
  admin: 'envoy.admin-opened',
  live: 'envoy.went-live',
  exit: 'envoy.ended',
  call: 'envoy.called-parent',
  crash: 'envoy.crashed',
  hang: 'envoy.hung',
};

/** What is constant, or says only how things came to be. */
const history = new Set(['settings', 'attempts', 'trouble', 'reason', 'configFile']);
const keys = new WeakMap<object, string>();

function keyOfActor(actor: AnyActorRef): string {
  const snapshot = actor.getSnapshot() as { status: string; value?: never; context?: object };
  if (snapshot.value === undefined) return '';
  const known = keys.get(snapshot);
  if (known !== undefined) return known;
  const context = JSON.stringify(snapshot.context, (name, value: unknown) => (history.has(name) ? undefined : value));
  const key = `${actor.id} ${snapshot.status} ${stateName(snapshot.value)} ${context}`;
  keys.set(snapshot, key);
  return key;
}

function less<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key): ReadonlyMap<Key, Value> {
  const rest = new Map(map);
  rest.delete(key);
  return rest;
}
