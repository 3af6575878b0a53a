/**
 * A host on which simulated Envoys run: its processes, the shared memory of each base id, who has the admin port. The truth,
 * whatever the supervisor believes; invariants are checked against it. All of it is plain immutable data and actors.
 */
import type { ActorRefFrom, AnyActorRef } from 'xstate';
import { report } from '../../src/debugger/explore/scripted-effect.ts';
import type { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import {
  type Nature,
  type ProcessEnd,
  type Reception,
  type SimulatedEnvoyEvent,
  type SimulatedEnvoyMeta,
  simulatedEnvoyMachine,
} from './simulated-envoy.machine.ts';

export type EnvoySignal = 'SIGTERM' | 'SIGKILL' | 'SIGUSR1';

/** What a process was started for: which certificate files were there, and how many SIGHUPs had come. */
export interface Generation {
  readonly files: number;
  readonly orders: number;
}

export interface SimulatedProcess {
  /** Its number in choices: the epoch; with the base id where that is another one. */
  readonly label: string;
  readonly pid: number;
  readonly epoch: number;
  readonly baseId: number;
  readonly generation: Generation;
  readonly envoy: ActorRefFrom<typeof simulatedEnvoyMachine>;
  /** The effect that is told of its exit. */
  readonly effect: AnyActorRef;
  /** Has been live. */
  readonly live: boolean;
  /** And its supervisor was told. */
  readonly seen: boolean;
  /** Its supervisor was told that its child is live. */
  readonly supersededSeen: boolean;
  /** Was told to end: by a signal, or by its child. */
  readonly sentAway: boolean;
}

/** Of one base id. */
interface SharedMemory {
  /** Epoch that set the INITIALIZING bit. */
  readonly initializing: number | undefined;
  /** Made anew under a living Envoy: no child can attach any more. */
  readonly torn: boolean;
}

interface HostState {
  readonly processes: readonly SimulatedProcess[];
  readonly memory: ReadonlyMap<number, SharedMemory>;
  /** By base id: the pid of who has the admin port. */
  readonly admin: ReadonlyMap<number, number>;
  readonly spawned: number;
}

/** Who is told what happens on the host. Asked before it takes effect. */
export interface HostWatch {
  spawning(newcomer: { epoch: number; baseId: number }): void;
  signalling(process: SimulatedProcess, signal: EnvoySignal): void;
  wentLive(process: SimulatedProcess): void;
  left(process: SimulatedProcess): void;
}

const hosts = new WeakMap<object, { host: SimulatedHost; process: () => SimulatedProcess }>();
type Self = { self: AnyActorRef };

function onHost(act: (host: SimulatedHost, process: SimulatedProcess) => void) {
  return ({ self }: Self): void => {
    const found = hosts.get(self);
    if (found !== undefined) act(found.host, found.process());
  };
}

const envoyOnHost = simulatedEnvoyMachine.provide({
  actions: {
    setInitializing: onHost((host, process) => host.setInitializing(process)),
    clearInitializing: onHost((host, process) => host.clearInitializing(process.baseId)),
    takeAdmin: onHost((host, process) => host.takeAdmin(process)),
    tellParentLive: onHost((host, process) => host.becameLive(process)),
    sendParentAway: onHost((host, process) => host.sendAway(process)),
    leave: ({ self }: Self, { end }: { end: ProcessEnd }) => {
      const found = hosts.get(self);
      found?.host.left(found.process(), end);
    },
  },
});

export class SimulatedHost {
  readonly #system: SymbolicSystem;
  readonly #watch: HostWatch;
  readonly #parentShutdownMs: number;
  readonly #news: (() => void)[] = [];
  #state: HostState = { processes: [], memory: new Map(), admin: new Map(), spawned: 0 };

  constructor(system: SymbolicSystem, watch: HostWatch, parentShutdownMs: number) {
    this.#system = system;
    this.#watch = watch;
    this.#parentShutdownMs = parentShutdownMs;
  }

  /** What is alive, oldest first. */
  get processes(): readonly SimulatedProcess[] {
    return this.#state.processes;
  }

  get spawned(): number {
    return this.#state.spawned;
  }

  byLabel(label: string): SimulatedProcess {
    const found = this.processes.find((process) => process.label === label);
    if (found === undefined) throw new Error(`no process is named ${label}`);
    return found;
  }

  ofEffect(effect: AnyActorRef): SimulatedProcess | undefined {
    return this.processes.find((process) => process.effect === effect);
  }

  /** Starts an Envoy. */
  spawn(run: { epoch: number; baseId: number; generation: Generation; effect: AnyActorRef }): SimulatedProcess {
    this.#watch.spawning(run);
    const reception = this.#reception(run.epoch, run.baseId);
    const pid = this.#state.spawned + 1;
    const label = this.#labelFor(run);
    const peers = this.#peers(run.baseId);
    if (run.epoch === 0) this.#makeMemory(run.baseId, peers.length > 0 && !peers.some(({ epoch }) => epoch % 3 === 0));
    const current = (): SimulatedProcess => this.processes.find((process) => process.pid === pid) ?? started;
    let started!: SimulatedProcess;
    this.#system.start(envoyOnHost, {
      id: `envoy-${label}`,
      input: { epoch: run.epoch, baseId: run.baseId, reception, parentShutdownMs: this.#parentShutdownMs },
      created: (envoy) => {
        hosts.set(envoy, { host: this, process: current });
        started = {
          ...run,
          label,
          pid,
          envoy: envoy as SimulatedProcess['envoy'],
          live: false,
          seen: false,
          supersededSeen: false,
          sentAway: false,
        };
        this.#set({ processes: [...this.processes, started], spawned: pid });
      },
    });
    if (reception === 'accepted') this.#parentOf(started)?.envoy.send({ type: 'child.started' });
    return current();
  }

  signal(process: SimulatedProcess, signal: EnvoySignal): void {
    this.#watch.signalling(process, signal);
    if (signal !== 'SIGUSR1') this.#change(process, { sentAway: true });
    process.envoy.send({ type: 'signal.sent', signal });
  }

  /** What ends with the agent is killed by the process table, whatever it does. */
  kill(process: SimulatedProcess): void {
    this.#change(process, { sentAway: true });
    process.envoy.send({ type: 'signal.sent', signal: 'SIGKILL' });
  }

  /** Something happens to a process by nature, or by a fault. */
  happen(process: SimulatedProcess, event: SimulatedEnvoyEvent['type'] & `envoy.${string}`): void {
    process.envoy.send({ type: event });
  }

  natureOf(process: SimulatedProcess): Nature | undefined {
    return metaOf(process).nature;
  }

  mayHang(process: SimulatedProcess): boolean {
    return metaOf(process).mayHang === true;
  }

  /** Takes connections, and nobody has told it to end. */
  isServing(process: SimulatedProcess): boolean {
    return process.live && !process.sentAway && !this.isDraining(process);
  }

  /** A child has taken over: it has closed its listeners and lets its requests finish. */
  isDraining(process: SimulatedProcess): boolean {
    return process.envoy.getSnapshot().matches({ live: 'superseded' });
  }

  /** It needs its parent, and its parent is gone (fact 4). */
  isDoomed(process: SimulatedProcess): boolean {
    const state = process.envoy.getSnapshot();
    return state.matches('calling a dead parent') || state.matches({ live: 'doomed' });
  }

  /** No child will ever attach here: the flag that an Envoy initializes is set, and none does (fact 1). */
  isStuck(baseId: number): boolean {
    const memory = this.#state.memory.get(baseId);
    if (memory === undefined) return false;
    const { initializing, torn } = memory;
    return torn || (initializing !== undefined && !this.#peers(baseId).some((peer) => !peer.live));
  }

  hasAdmin(process: SimulatedProcess): boolean {
    return this.#state.admin.get(process.baseId) === process.pid;
  }

  /** The repair from outside (fact 2): only while no child is alive that may have set the flag. */
  repair(baseId: number): boolean {
    if (this.#peers(baseId).some(({ live }) => !live)) return false;
    this.clearInitializing(baseId);
    return true;
  }

  clearInitializing(baseId: number): void {
    this.#setMemory(baseId, { ...this.#memory(baseId), initializing: undefined });
  }

  noteSeen(process: SimulatedProcess): void {
    this.#change(process, { seen: true });
    const parent = this.#parentOf(process);
    if (parent !== undefined) this.#change(parent, { supersededSeen: true });
  }

  setInitializing({ baseId, epoch }: SimulatedProcess): void {
    this.#setMemory(baseId, { ...this.#memory(baseId), initializing: epoch });
  }

  takeAdmin({ baseId, pid }: SimulatedProcess): void {
    this.#set({ admin: new Map(this.#state.admin).set(baseId, pid) });
  }

  becameLive(process: SimulatedProcess): void {
    this.#change(process, { live: true });
    this.#parentOf(process)?.envoy.send({ type: 'child.went-live' });
    this.#watch.wentLive(process);
  }

  sendAway(process: SimulatedProcess): void {
    const parent = this.#parentOf(process);
    if (parent === undefined) return;
    this.#change(parent, { sentAway: true });
    parent.envoy.send({ type: 'child.sent-away' });
  }

  left(process: SimulatedProcess, end: ProcessEnd): void {
    this.#set({ processes: this.processes.filter(({ pid }) => pid !== process.pid) });
    this.#system.forget(process.envoy);
    if (this.hasAdmin(process)) {
      const admin = new Map(this.#state.admin);
      admin.delete(process.baseId);
      this.#set({ admin });
    }
    this.#watch.left(process);
    this.#news.push(() => {
      for (const child of this.#peers(process.baseId)) {
        if (child.epoch === process.epoch + 1) child.envoy.send({ type: 'parent.died' });
      }
      report(process.effect, { type: 'process.exited', ...end });
    });
  }

  /** Tells of the exits so far: not from inside the chart that ended. */
  tellNews(): void {
    for (let tell = this.#news.shift(); tell !== undefined; tell = this.#news.shift()) tell();
  }

  save(): () => void {
    const state = this.#state;
    return () => {
      this.#state = state;
    };
  }

  /** Identity, beside that of the Envoys' own charts. */
  key(): string {
    const { processes, memory, admin } = this.#state;
    const holders = processes.map((process) => {
      const { label, generation, live, seen, supersededSeen, sentAway } = process;
      return `${label}:${generation.files}.${generation.orders}${live ? 'L' : ''}${seen ? 'S' : ''}${supersededSeen ? 'P' : ''}${sentAway ? 'E' : ''}${admin.get(process.baseId) === process.pid ? 'A' : ''}`;
    });
    const shared = [...memory].map(([id, { initializing, torn }]) => `${id}=${initializing ?? ''}${torn ? '!' : ''}`);
    return `${holders.join(' ')}|${shared.join(' ')}`;
  }

  #reception(epoch: number, baseId: number): Reception {
    const peers = this.#peers(baseId);
    if (peers.some((peer) => peer.epoch % 3 === epoch % 3)) return 'no address';
    // A first epoch beside others gets its socket, and not the admin port.
    if (epoch === 0) return peers.length === 0 ? 'accepted' : 'no address';
    const memory = this.#state.memory.get(baseId);
    if (memory === undefined) return 'no shared memory';
    if (memory.initializing !== undefined || memory.torn) return 'refused';
    return peers.some((peer) => peer.epoch % 3 === (epoch - 1) % 3) ? 'accepted' : 'no parent';
  }

  #makeMemory(baseId: number, torn: boolean): void {
    this.#setMemory(baseId, { initializing: undefined, torn });
  }

  #memory(baseId: number): SharedMemory {
    return this.#state.memory.get(baseId) ?? { initializing: undefined, torn: false };
  }

  #setMemory(baseId: number, memory: SharedMemory): void {
    this.#set({ memory: new Map(this.#state.memory).set(baseId, memory) });
  }

  #peers(baseId: number): SimulatedProcess[] {
    return this.processes.filter((process) => process.baseId === baseId);
  }

  #parentOf({ baseId, epoch, pid }: SimulatedProcess): SimulatedProcess | undefined {
    return this.processes.find((other) => other.baseId === baseId && other.epoch === epoch - 1 && other.pid !== pid);
  }

  #labelFor({ epoch, baseId }: { epoch: number; baseId: number }): string {
    const first = this.#state.memory.keys().next().value ?? baseId;
    let label = baseId === first ? `${epoch}` : `${epoch}@${baseId}`;
    while (this.processes.some((process) => process.label === label)) label += '+';
    return label;
  }

  #change(process: SimulatedProcess, change: Partial<SimulatedProcess>): void {
    this.#set({
      processes: this.processes.map((other) => (other.pid === process.pid ? { ...other, ...change } : other)),
    });
  }

  #set(change: Partial<HostState>): void {
    this.#state = { ...this.#state, ...change };
  }
}

function metaOf(process: SimulatedProcess): SimulatedEnvoyMeta {
  return Object.assign({}, ...Object.values(process.envoy.getSnapshot().getMeta())) as SimulatedEnvoyMeta;
}
