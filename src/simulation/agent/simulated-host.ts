/** The true state of the host, against which invariants are checked. It is independent of the supervisor's view. */
import type { AnyActorRef } from 'xstate';
import type { EnvoyProbe, EnvoyResponded, RefusedListener } from '../../../machines/agent/status-protocol.ts';
import { reportEvent } from '../../debugger/explore/scripted-effect.ts';
import type { ActorHost } from '../../debugger/explore/symbolic-system.ts';
import {
  type Nature,
  type ProcessEnd,
  type Reception,
  type SimulatedEnvoyEvent,
  simulatedEnvoyMachine,
} from './simulated-envoy.machine.ts';
import {
  type EnvoySignal,
  firstBinary,
  type HostWatch,
  isChildOf,
  metaOf,
  type SimulatedProcess,
  type SpawnOrder,
} from './simulated-process.ts';

export type { EnvoySignal, Generation, HostWatch, SimulatedProcess, SpawnOrder } from './simulated-process.ts';

interface SharedMemory {
  /** The INITIALIZING bit is set while this is defined. */
  readonly initializingEpoch: number | undefined;
  /** Processes that are older than the creator use other memory. */
  readonly creatorPid: number;
}

const refusedListener: RefusedListener = { name: 'tls', reason: 'no certificate that Envoy takes' };

interface HostState {
  readonly processes: readonly SimulatedProcess[];
  readonly memory: ReadonlyMap<number, SharedMemory>;
  /** The owner of the admin port, by base ID. */
  readonly admin: ReadonlyMap<number, number>;
  readonly spawnCount: number;
}

/** Time until a child was live, reported after its exit. */
const simulatedStartMs = 300;

const hosts = new WeakMap<object, { host: SimulatedHost; process: () => SimulatedProcess }>();
type ActorScope = { self: AnyActorRef };

function withSimulatedHost(action: (host: SimulatedHost, process: SimulatedProcess) => void) {
  return ({ self }: ActorScope): void => {
    const foundHost = hosts.get(self);
    if (foundHost !== undefined) action(foundHost.host, foundHost.process());
  };
}

export const envoyOnHost = simulatedEnvoyMachine.provide({
  actions: {
    setInitializing: withSimulatedHost((host, process) => host.setInitializing(process)),
    clearInitializing: withSimulatedHost((host, process) => host.finishInitializing(process)),
    takeAdmin: withSimulatedHost((host, process) => host.takeAdmin(process)),
    closeListeners: withSimulatedHost((host, process) => host.closeListeners(process)),
    giveUpAdmin: withSimulatedHost((host, process) => host.giveUpAdmin(process)),
    tellParentLive: withSimulatedHost((host, process) => host.becameLive(process)),
    sendParentAway: withSimulatedHost((host, process) => host.requestExit(process)),
    leave: ({ self }: ActorScope, { end }: { end: ProcessEnd }) => {
      const foundHost = hosts.get(self);
      foundHost?.host.removeProcess(foundHost.process(), end);
    },
  },
});

export class SimulatedHost {
  readonly #system: ActorHost;
  readonly #watch: HostWatch;
  readonly #parentShutdownMs: number;
  readonly #envoy: typeof simulatedEnvoyMachine;
  readonly #pendingReports: (() => void)[] = [];
  #state: HostState = { processes: [], memory: new Map(), admin: new Map(), spawnCount: 0 };

  constructor(system: ActorHost, watch: HostWatch, parentShutdownMs: number, envoy = envoyOnHost) {
    this.#system = system;
    this.#watch = watch;
    this.#parentShutdownMs = parentShutdownMs;
    this.#envoy = envoy;
  }

  /** Running processes, oldest first. */
  get processes(): readonly SimulatedProcess[] {
    return this.#state.processes;
  }

  get spawnCount(): number {
    return this.#state.spawnCount;
  }

  processByLabel(label: string): SimulatedProcess {
    const labelledProcess = this.processes.find((process) => process.label === label);
    if (labelledProcess === undefined) throw new Error(`no process is named ${label}`);
    return labelledProcess;
  }

  processOfEffect(effect: AnyActorRef): SimulatedProcess | undefined {
    return this.processes.find((process) => process.effect === effect);
  }

  adopt(process: SimulatedProcess, effect: AnyActorRef): void {
    this.#change(process, { effect });
  }

  spawn(run: SpawnOrder): SimulatedProcess {
    this.#watch.onSpawn(run);
    this.recordAttempt(run.baseId);
    const reception = this.#receptionOf(run.epoch, run.baseId);
    const { lacksListener = false } = run;
    const pid = this.#state.spawnCount + 1;
    const label = this.#labelFor(run);
    const parentShutdownMs = run.parentShutdownMs ?? this.#parentShutdownMs;
    if (run.epoch === 0 && !this.#isSocketInUse(run)) this.#createMemory(run.baseId, pid, reception);
    const currentProcess = (): SimulatedProcess =>
      this.processes.find((process) => process.pid === pid) ?? startedProcess;
    let startedProcess!: SimulatedProcess;
    this.#system.start(this.#envoy, {
      id: `envoy-${label}`,
      input: {
        epoch: run.epoch,
        baseId: run.baseId,
        reception,
        parentShutdownMs,
        drainMs: run.drainMs ?? 0,
      },
      created: (envoy) => {
        hosts.set(envoy, { host: this, process: currentProcess });
        startedProcess = {
          epoch: run.epoch,
          baseId: run.baseId,
          generation: run.generation,
          binary: run.binary ?? firstBinary,
          effect: run.effect,
          label,
          pid,
          envoy: envoy as SimulatedProcess['envoy'],
          isLive: false,
          isSeenLive: false,
          isUnkillable: false,
          isUnresponsive: false,
          lacksListener,
          isHeldBack: false,
          isChildSeenLive: false,
          exitRequested: false,
          hasClosedListeners: false,
          parentCrashed: false,
          successorTried: false,
          successorCrashed: false,
        };
        this.#updateState({ processes: [...this.processes, startedProcess], spawnCount: pid });
      },
    });
    if (reception === 'accepted' || reception === 'no response') {
      this.#parentOf(startedProcess)?.envoy.send({ type: 'child.started' });
    }
    return currentProcess();
  }

  signal(process: SimulatedProcess, signal: EnvoySignal): void {
    this.#watch.onSignal(process, signal);
    if (signal !== 'SIGUSR1') this.#change(process, { exitRequested: true });
    process.envoy.send({ type: 'signal.sent', signal });
  }

  /** Kills a process that must not outlive the agent, in any state, as the process table does. */
  kill(process: SimulatedProcess): void {
    this.#change(process, { exitRequested: true });
    process.envoy.send({ type: 'signal.sent', signal: 'SIGKILL' });
  }

  sendEvent(process: SimulatedProcess, event: SimulatedEnvoyEvent['type'] & `envoy.${string}`): void {
    process.envoy.send({ type: event });
  }

  natureOf(process: SimulatedProcess): Nature | undefined {
    return process.isUnkillable ? undefined : metaOf(process).nature;
  }

  mayHang(process: SimulatedProcess): boolean {
    return metaOf(process).mayHang === true;
  }

  /** `POST /drain_listeners`: its listeners close at once, or gradually in its drain time; the process keeps running. */
  drainListeners(process: SimulatedProcess, { gradually = false } = {}): void {
    process.envoy.send({ type: gradually ? 'listeners.drain' : 'listeners.close' });
  }

  /** Notes that its epoch was notified of the missing listener. */
  delayProcess(process: SimulatedProcess): void {
    this.#change(process, { isHeldBack: true });
  }

  closeListeners(process: SimulatedProcess): void {
    this.#change(process, { hasClosedListeners: true });
  }

  isServing(process: SimulatedProcess): boolean {
    return process.isLive && !process.exitRequested && !process.hasClosedListeners && !this.isDraining(process);
  }

  /** Independent of the supervisor's intent and knowledge. Envoys of several base IDs share the port (SO_REUSEPORT). */
  isAccepting(process: SimulatedProcess): boolean {
    const state = process.envoy.getSnapshot();
    const canServe = state.matches('live') || state.matches({ 'calling a dead parent': 'serving' });
    return canServe && !process.isUnresponsive && !process.hasClosedListeners && !this.isDraining(process);
  }

  /** Whether its main thread waits for a parent, which blocks its admin interface, too. */
  isBlocked(process: SimulatedProcess): boolean {
    return process.envoy.getSnapshot().matches('calling a dead parent');
  }

  /** A draining process has closed its listeners and finishes its requests. */
  isDraining(process: SimulatedProcess): boolean {
    return process.envoy.getSnapshot().matches({ live: 'superseded' });
  }

  /** Whether the process was ordered to exit but never will. */
  isHanging(process: SimulatedProcess): boolean {
    return process.envoy.getSnapshot().matches('hanging');
  }

  /** SIGKILL was sent, but the kernel has not ended the process yet. */
  isKilled(process: SimulatedProcess): boolean {
    return process.envoy.getSnapshot().matches('killed');
  }

  markUnkillable(process: SimulatedProcess): void {
    this.#change(process, { isUnkillable: true });
  }

  setUnresponsive(process: SimulatedProcess, isUnresponsive: boolean): void {
    this.#change(process, { isUnresponsive: isUnresponsive });
  }

  isResponsive(process: SimulatedProcess): boolean {
    return !process.isUnresponsive && !this.isBlocked(process) && !this.isKilled(process);
  }

  /** Whether the process needs its parent, which has exited (fact 4). */
  isOrphaned(process: SimulatedProcess): boolean {
    const state = process.envoy.getSnapshot();
    return state.matches({ live: 'doomed' }) || state.matches({ initializing: 'orphaned' }) || this.isBlocked(process);
  }

  /** Whether no child can ever attach: the flag that an Envoy is initializing is set, but none is (fact 1). */
  isStuck(baseId: number): boolean {
    return (
      this.#sharedMemoryOf(baseId).initializingEpoch !== undefined && !this.#peers(baseId).some((peer) => !peer.isLive)
    );
  }

  hasAdmin(process: SimulatedProcess): boolean {
    return this.#state.admin.get(process.baseId) === process.pid;
  }

  /** Contains all facts that determine an Envoy's response and its evaluation. */
  readinessKey(baseId: number | undefined): string {
    const responseTexts = (['admin', 'admin or port', 'port'] as const).map((at) => this.responseOf(at, baseId));
    const refusedCount = this.refusedListeners(baseId)?.length;
    const processTexts = this.processes.map((process) => {
      const accepts = this.isAccepting(process);
      return `${process.isSeenLive}${accepts}${process.lacksListener}${this.isReadyFor(process)}`;
    });
    return `${responseTexts.map(({ by, live }) => `${by} ${live}`).join(' ')} ${refusedCount} ${processTexts.join(' ')}`;
  }

  /** The response of Envoy: of the owner of that base ID's admin port, or of the process that accepts connections. */
  responseOf(at: EnvoyProbe['at'], baseId: number | undefined): Omit<EnvoyResponded, 'type' | 'request'> {
    const admin = this.processes.find(
      (process) => process.baseId === baseId && this.hasAdmin(process) && this.isResponsive(process),
    );
    if (at === 'admin' || (at === 'admin or port' && admin !== undefined)) {
      const isLive = admin?.isLive === true;
      return { by: 'admin', live: isLive, detail: isLive ? 'LIVE' : '503', unserved: '' };
    }
    const live = this.processes.some((process) => this.isAccepting(process));
    const detail = live ? 'the port responds' : 'connection refused';
    return { by: 'port', live, detail, unserved: '' };
  }

  /** `undefined` without a response. */
  refusedListeners(baseId: number | undefined): readonly RefusedListener[] | undefined {
    const admin = this.processes.find((process) => process.baseId === baseId && this.hasAdmin(process));
    return admin === undefined || !this.isResponsive(admin) ? undefined : admin.lacksListener ? [refusedListener] : [];
  }

  isReadyFor(process: SimulatedProcess): boolean {
    const canServe = this.isAccepting(process) && this.isServing(process) && this.isResponsive(process);
    return canServe && process.isSeenLive && !process.lacksListener && !this.isOrphaned(process);
  }

  /** A running child may have set the INITIALIZING bit, so it is not cleared then (fact 2). */
  repair(baseId: number): boolean {
    if (this.#peers(baseId).some(({ isLive }) => !isLive)) return false;
    this.clearInitializing(baseId);
    return true;
  }

  clearInitializing(baseId: number): void {
    this.#setMemory(baseId, { ...this.#sharedMemoryOf(baseId), initializingEpoch: undefined });
  }

  /** A child that exits before it is live leaves the INITIALIZING bit set. */
  leaveMark(baseId: number, epoch: number): void {
    this.#setMemory(baseId, { ...this.#sharedMemoryOf(baseId), initializingEpoch: epoch });
  }

  /** Processes that have the memory open continue. */
  removeSharedMemory(baseId: number): void {
    const memoryByBaseId = new Map(this.#state.memory);
    memoryByBaseId.delete(baseId);
    this.#updateState({ memory: memoryByBaseId });
  }

  /** The value of `/server_info.hot_restart_initializing`. */
  seesMark(process: SimulatedProcess): boolean {
    return this.#sharesMemory(process) && this.#sharedMemoryOf(process.baseId).initializingEpoch !== undefined;
  }

  markSeenLive(process: SimulatedProcess): void {
    this.#recordTakeover(process);
    this.#change(process, { isSeenLive: true });
  }

  /** Notes that the agent knows that the parent no longer serves. */
  #recordTakeover(process: SimulatedProcess): void {
    this.#watch.onSeenLive?.(process);
    const parent = this.#parentOf(process);
    if (parent !== undefined) this.#change(parent, { isChildSeenLive: true });
  }

  /** Notes for orphaned Envoys with another base ID that an Envoy is about to be prepared or started. */
  recordAttempt(baseId: number): void {
    for (const other of this.processes) {
      if (other.baseId !== baseId && this.isOrphaned(other)) this.#change(other, { successorTried: true });
    }
  }

  /** Marks each orphaned Envoy with another base ID, and each whose parent crashed, as one whose successor crashed. */
  recordSpawnFailure(baseId: number): void {
    for (const other of this.processes) {
      if (other.baseId !== baseId && (this.isOrphaned(other) || other.parentCrashed))
        this.#change(other, { successorCrashed: true });
    }
  }

  setInitializing({ baseId, epoch }: SimulatedProcess): void {
    this.leaveMark(baseId, epoch);
  }

  finishInitializing(process: SimulatedProcess): void {
    if (this.#sharesMemory(process)) this.clearInitializing(process.baseId);
  }

  takeAdmin({ baseId, pid }: SimulatedProcess): void {
    this.#updateState({ admin: new Map(this.#state.admin).set(baseId, pid) });
  }

  giveUpAdmin(process: SimulatedProcess): void {
    if (!this.hasAdmin(process)) return;
    const admin = new Map(this.#state.admin);
    admin.delete(process.baseId);
    this.#updateState({ admin });
  }

  becameLive(process: SimulatedProcess): void {
    this.#change(process, { isLive: true });
    this.#parentOf(process)?.envoy.send({ type: 'child.went-live' });
    this.#watch.onLive(process);
  }

  requestExit(process: SimulatedProcess): void {
    const parent = this.#parentOf(process);
    if (parent === undefined) return;
    this.#change(parent, { exitRequested: true });
    parent.envoy.send({ type: 'child.sent-away' });
  }

  removeProcess(process: SimulatedProcess, processEnd: ProcessEnd): void {
    const isDetectedNow = process.isLive && process.epoch > 0 && !process.isSeenLive && !this.isKilled(process);
    this.#updateState({ processes: this.processes.filter(({ pid }) => pid !== process.pid) });
    this.#system.removeRoot(process.envoy);
    this.giveUpAdmin(process);
    this.#watch.onExit(process, processEnd);
    this.#recordExit(process, processEnd);
    if (isDetectedNow) this.#recordTakeover(process);
    this.#pendingReports.push(() => {
      for (const child of this.#peers(process.baseId)) {
        if (isChildOf(child, process)) child.envoy.send({ type: 'parent.died' });
      }
      reportEvent(process.effect, { type: 'process.exited', ...processEnd, ...takeOverOf(process) });
    });
  }

  reportLater(report: () => void): void {
    this.#pendingReports.push(report);
  }

  /** Sends reports that were deferred because a chart was ending. */
  sendPendingReports(): void {
    for (let report = this.#pendingReports.shift(); report !== undefined; report = this.#pendingReports.shift())
      report();
  }

  save(): () => void {
    const state = this.#state;
    return () => {
      this.#state = state;
    };
  }

  /** The Envoys' charts are not included. With `ending`, no process starts any more, so the generations of running processes are omitted. */
  key(isEnding = false): string {
    const { processes, memory, admin } = this.#state;
    let key = '';
    for (const process of processes) {
      key += `${process.label}:${keyOfProcess(process, isEnding)}`;
      key += admin.get(process.baseId) === process.pid ? 'A ' : ' ';
    }
    for (const [id, { initializingEpoch }] of memory)
      key += `${id}=${initializingEpoch ?? ''}${this.#isTorn(id) ? '!' : ''} `;
    return key;
  }

  #receptionOf(epoch: number, baseId: number): Reception {
    if (this.#isSocketInUse({ epoch, baseId })) return 'no address';
    // A first epoch next to others cannot request the admin port from a parent.
    if (epoch === 0) return this.#state.admin.has(baseId) ? 'no address' : 'accepted';
    const sharedMemory = this.#state.memory.get(baseId);
    if (sharedMemory === undefined) return 'no shared memory';
    if (sharedMemory.initializingEpoch !== undefined) return 'refused';
    const parent = this.#peers(baseId).find((peer) => peer.epoch % 3 === (epoch - 1) % 3);
    // A killed parent does not respond, and exits before the new process calls it.
    if (parent === undefined || parent.envoy.getSnapshot().matches('killed')) return 'no parent';
    return this.isOrphaned(parent) || this.isHanging(parent) ? 'no response' : 'accepted';
  }

  /** Envoy names its sockets after its epoch modulo 3. */
  #isSocketInUse({ epoch, baseId }: { epoch: number; baseId: number }): boolean {
    return this.#peers(baseId).some((peer) => peer.epoch % 3 === epoch % 3);
  }

  /** A first epoch removes existing memory. If it does not get the admin port, it leaves its mark in the memory that it created. */
  #createMemory(baseId: number, pid: number, reception: Reception): void {
    this.#setMemory(baseId, { initializingEpoch: reception === 'accepted' ? undefined : 0, creatorPid: pid });
  }

  #sharesMemory({ baseId, pid }: SimulatedProcess): boolean {
    return pid >= this.#sharedMemoryOf(baseId).creatorPid;
  }

  /** Whether the memory was recreated under a running Envoy. */
  #isTorn(baseId: number): boolean {
    return this.#peers(baseId).some((peer) => !this.#sharesMemory(peer));
  }

  #sharedMemoryOf(baseId: number): SharedMemory {
    return this.#state.memory.get(baseId) ?? { initializingEpoch: undefined, creatorPid: 0 };
  }

  #setMemory(baseId: number, sharedMemory: SharedMemory): void {
    this.#updateState({ memory: new Map(this.#state.memory).set(baseId, sharedMemory) });
  }

  #peers(baseId: number): SimulatedProcess[] {
    return this.processes.filter((process) => process.baseId === baseId);
  }

  #recordExit(process: SimulatedProcess, { code, signal }: ProcessEnd): void {
    for (const other of this.processes) {
      if (isChildOf(other, process) && other.baseId === process.baseId && code !== 0 && signal !== 'SIGUSR1')
        this.#change(other, { parentCrashed: true });
      if (other.baseId !== process.baseId && !process.isSeenLive && !process.exitRequested)
        this.#change(other, { successorCrashed: true });
    }
  }

  #parentOf(process: SimulatedProcess): SimulatedProcess | undefined {
    return this.#peers(process.baseId).find((other) => isChildOf(process, other));
  }

  #labelFor({ epoch, baseId }: { epoch: number; baseId: number }): string {
    const firstBaseId = this.#state.memory.keys().next().value ?? baseId;
    let label = baseId === firstBaseId ? `${epoch}` : `${epoch}b`;
    while (this.processes.some((process) => process.label === label)) label += '+';
    return label;
  }

  #change(process: SimulatedProcess, change: Partial<SimulatedProcess>): void {
    this.#updateState({
      processes: this.processes.map((other) => (other.pid === process.pid ? { ...other, ...change } : other)),
    });
  }

  #updateState(change: Partial<HostState>): void {
    this.#state = { ...this.#state, ...change };
  }
}

/** The shared memory shows after the exit whether the process was live, even if no probe detected it in time. */
export function takeOverOf({ isLive, epoch }: SimulatedProcess): { tookOverWithinMs?: number } {
  return isLive && epoch > 0 ? { tookOverWithinMs: simulatedStartMs } : {};
}

export function keyOfProcess(process: SimulatedProcess, isEnding: boolean): string {
  return isEnding ? lifeKey(process) : `${startKey(process)}${lifeKey(process)}`;
}

function startKey({ generation, binary, lacksListener, successorTried, successorCrashed }: SimulatedProcess): string {
  return `${binary === firstBinary ? '' : binary}${lacksListener ? 'K' : ''}f${generation.files};o${generation.orders};${successorTried ? 'T' : ''}${successorCrashed ? 'D' : ''}`;
}

function lifeKey({
  isLive,
  isSeenLive,
  isChildSeenLive,
  exitRequested,
  hasClosedListeners,
  parentCrashed,
  ...extraFields
}: SimulatedProcess): string {
  const { isUnkillable, isUnresponsive, isHeldBack } = extraFields;
  return `${isUnkillable ? 'U' : ''}${isHeldBack ? 'H' : ''}${isUnresponsive ? 'I' : ''}${parentCrashed ? 'O' : ''}${isLive ? 'L' : ''}${isSeenLive ? 'S' : ''}${isChildSeenLive ? 'P' : ''}${exitRequested ? 'E' : ''}${hasClosedListeners ? 'C' : ''}`;
}
