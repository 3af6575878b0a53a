/**
 * The agent's statecharts on a simulated host. All nondeterminism is a choice: orders to the agent (`cert`), Envoy's spontaneous events (`live:1`),
 * faults (`crash:0b`), and which of the possible deadlines is next (`tick:supervisor.backoff`).
 */
import type { AnyActorRef, CallbackSnapshot } from 'xstate';
import {
  type AdoptedEpoch,
  type Adoption,
  type ClaimedIds,
  type PersistedState,
  persistedStateOf,
} from '../../../machines/agent/envoy/adoption.ts';
import type { PrepareOrder, ProbeOrder, StartOrder } from '../../../machines/agent/envoy/epoch.machine.ts';
import type { EpochContext } from '../../../machines/agent/envoy/epoch-context.ts';
import type { EpochRecord } from '../../../machines/agent/envoy/epoch-record.ts';
import { parentDueMs } from '../../../machines/agent/envoy/parent-shutdown.ts';
import type { SupervisorContext } from '../../../machines/agent/envoy/supervisor-context.ts';
import type { BinaryCheckResult } from '../../../machines/agent/files/binary-watcher.machine.ts';
import type { ProbeRun, ProcessSignal } from '../../../machines/agent/protocol.ts';
import type { StatusHttpOrder } from '../../../machines/agent/status-protocol.ts';
import { type RunningEffect, reportEvent, settleCall } from '../../debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../debugger/explore/symbolic-system.ts';
import type { InvariantViolation, World, WorldChoice } from '../../debugger/explore/world.ts';
import { stateName } from '../../runtime/trace/statechart.ts';
import {
  type Bounds,
  type ExplorationOptions,
  explorationBaseIds,
  explorationSettings,
  withBinary,
} from './exploration-bounds.ts';
import {
  eventsOfChoices,
  hasNewProbeResult,
  isAdminResponsive,
  isDetectableAsLive,
  isTrigger,
  natureNames,
  possibleChoices,
} from './exploration-choices.ts';
import {
  type DirectoryWatchInput,
  type EffectWorld,
  noPendingFiles,
  readingOf,
  type ScriptedAgent,
  worldOf,
} from './exploration-effects.ts';
import { type AgentSnapshot, Oversight } from './exploration-oversight.ts';
import {
  type ExitedProcess,
  filesThatAreRead,
  firstState,
  keyOfActor,
  keyOfState,
  renumberGenerations,
  type StoppedAgent,
  type WorldState,
} from './exploration-state.ts';
import { invariants } from './invariants/all.ts';
import type { ProcessEnd } from './simulated-envoy.machine.ts';
import { SimulatedHost, type SimulatedProcess, takeOverOf } from './simulated-host.ts';
import { mayBeHeldBack } from './simulated-process.ts';

/** Maximum time until a probe has checked an Envoy (src/agent/admin/live-probe.ts). */
const probeMs = 300;
/** Maximum duration of a file read that finishes. */
const readMs = 5_000;
/** Maximum time until another agent replaces a killed one, on a loaded machine after Envoys have exited. */
const nextAgentMs = 120_000;
/** Maximum time until a running newer agent takes over or fails. */
const holdMs = 2_000;
/** Maximum duration of a preparation, derived from the limits of its requests. */
const preparationMs = 35_000;
/** The shell of a new process reports it, and is polled every 2 ms (`detached-envoy.ts`). */
const spawnMs = 500;
/** Maximum duration of an immediate check that gets a response. */
const probeNowMs = 100;

interface Run {
  readonly epoch: number;
  readonly baseId: number;
}

export class ExplorationWorld implements World, EffectWorld {
  readonly #system = new SymbolicSystem();
  readonly #host: SimulatedHost;
  readonly #beginAgent: () => AnyActorRef;
  #agent: AnyActorRef;
  readonly #oversight: Oversight;
  readonly #firstBaseId: number | undefined;
  readonly #exactTimes: boolean;
  readonly #faults: readonly string[] | undefined;
  readonly #orders: readonly string[] | undefined;
  readonly #filesLate: boolean;
  readonly #readingHangs: boolean;
  readonly #spawnsLate: boolean;
  readonly #watchFails: boolean;
  readonly #agentKilled: boolean;
  readonly #agentSucceeded: boolean;
  readonly #parentShutdownMs: number;
  readonly #maxFailures: number;
  #state: WorldState;
  readonly #checkedReadiness = new Set<string>();
  #choices: readonly WorldChoice[] | undefined;

  constructor(agent: ScriptedAgent, bounds: Bounds, options: ExplorationOptions = {}) {
    const { settings: chosenSettings = explorationSettings, baseIds = explorationBaseIds, inspect } = options;
    const settings = withBinary(chosenSettings, options.binaryReplaced === true);
    this.#exactTimes = options.exactTimes ?? false;
    this.#faults = options.faults;
    this.#orders = options.orders;
    this.#filesLate = options.filesLate ?? false;
    this.#readingHangs = options.readingHangs ?? false;
    this.#spawnsLate = options.spawnsLate ?? false;
    this.#watchFails = options.watchFails ?? false;
    this.#agentKilled = options.agentKilled ?? false;
    this.#agentSucceeded = options.agentSucceeded ?? false;
    this.#parentShutdownMs = settings.parentShutdownMs;
    this.#firstBaseId = baseIds[0];
    this.#maxFailures = settings.retry.budget + 1;
    this.#state = firstState(bounds);
    // Elapsed time is not part of a state, only of a trace.
    if (options.recordsTime === true) this.#system.arm(beginningMark, 0, 'mark');
    this.#oversight = this.#beginOversight({ settings, baseIds, invariants: options.invariants ?? invariants });
    const watch = this.#oversight.hostWatch;
    const onExit: typeof watch.onExit = (process, processEnd) => {
      this.#updateState({ pendingSpawns: withoutKey(this.#state.pendingSpawns, process.label) });
      this.#system.disarm(startOf(process));
      this.#recordUnseenExit(process, processEnd);
      watch.onExit(process, processEnd);
    };
    this.#host = new SimulatedHost(this.#system, { ...watch, onExit }, settings.parentShutdownMs);
    this.#beginAgent = () =>
      this.#system.start(agent, {
        id: 'agent',
        input: { settings: { ...settings, liveRestore: this.#agentKilled, givesWay: this.#agentSucceeded } },
        inspect,
        isSilenced: (timer) => options.logsDelays !== true && isNotice(timer),
        created: (root) => worldOf.set(root.system, this),
        onEvent: (event) => this.#oversight.handleReport(event),
      });
    this.#agent = this.#beginAgent();
    this.#runUntilIdle();
  }

  get violations(): readonly InvariantViolation[] {
    return this.#state.violations;
  }

  get spawnCount(): number {
    return this.#host.spawnCount;
  }

  get isEnding(): boolean {
    return this.#state.stop !== 'not ordered';
  }

  /** Whether the newest desired configuration serves, or the agent has exhausted its retries or exited after an order. */
  get isGoalReached(): boolean {
    return this.#oversight.isReached;
  }

  get host(): SimulatedHost {
    return this.#host;
  }

  /** Minimum of all timings that the run represents, for traces. */
  get earliestTime(): number {
    return this.#system.zone.has(beginningMark) ? this.#system.zone.minElapsedMs(beginningMark) : 0;
  }

  get agentSnapshot(): AgentSnapshot {
    return this.#agent.getSnapshot() as AgentSnapshot;
  }

  choices(): readonly WorldChoice[] {
    this.#choices ??= this.#isOver() ? [] : [...possibleChoices(this.#buildSituation())].filter(this.#isAllowed);
    return this.#choices;
  }

  apply(choice: string): void {
    const wasStandingBy = this.#isStandingBy;
    const separatorIndex = choice.indexOf(':');
    const kind = separatorIndex === -1 ? choice : choice.slice(0, separatorIndex);
    this.#perform(kind, choice.slice(separatorIndex + 1));
    const { supervisor } = this.agentSnapshot.children as Record<string, AnyActorRef | undefined>;
    // The agent has taken back the Envoys that it had released.
    if (wasStandingBy && supervisor !== undefined) this.#removeStoppedAgent();
    this.#runUntilIdle();
  }

  key(): string {
    const time = this.#exactTimes
      ? this.#system.zone.key()
      : this.#system.zone.orderKey(this.#agentKilled || this.#agentSucceeded);
    const { isEnding } = this;
    let key = `${keyOfState(this.#state, this.#maxFailures)}|${this.#host.key(isEnding)}|${time}|`;
    for (const actor of this.#system.actors()) key += keyOfActor(actor, isEnding);
    return isEnding ? key : renumberGenerations(key);
  }

  save(): () => void {
    const state = this.#state;
    const choices = this.#choices;
    const agent = this.#agent;
    const system = this.#system.save();
    const host = this.#host.save();
    return () => {
      this.#state = state;
      this.#choices = choices;
      this.#agent = agent;
      system();
      host();
    };
  }

  setSignals(self: AnyActorRef | undefined): void {
    this.#updateState({ signals: self });
  }

  setWatch({ self, input: { knownHash } }: RunningEffect<DirectoryWatchInput>, isOn: boolean): void {
    this.#updateState({ watch: isOn ? self : undefined, isWatchHung: false });
    if (!isOn) return;
    if (this.#state.isDirectoryAway) {
      reportEvent(self, { type: 'directory.missing' });
      return;
    }
    reportEvent(self, { type: 'watch.began' });
    if (knownHash !== null && knownHash !== this.#contents) this.#reportFileChange();
  }

  setFileWait(call: AnyActorRef, isOn: boolean): void {
    if (!isOn) this.#updateState({ fileWait: undefined });
    else if (this.#filesLate) this.#updateState({ fileWait: call });
    else reportEvent(call, noPendingFiles);
  }

  setFileRead(call: AnyActorRef, isOn: boolean): void {
    if (!isOn) this.#updateState({ fileRead: undefined });
    else if (this.#readingHangs) this.#updateState({ fileRead: call });
    else settleCall(call, { value: readingOf(this) });
  }

  readFiles(): string {
    const { files, filesRead, isSpoiled } = this.#state;
    if (!isSpoiled && files !== filesRead) this.#updateState({ filesRead: files, failures: 0 });
    return this.#contents;
  }

  fileProblems(): string[] {
    return this.#state.isSpoiled ? ['tls.crt: not a certificate'] : [];
  }

  setBinaryWatch(watch: AnyActorRef | undefined): void {
    this.#updateState({ binaryWatch: watch });
  }

  checkBinary(): BinaryCheckResult {
    const { binary, isBinaryIncompatible, checkedBinaries } = this.#state;
    if (isBinaryIncompatible) return { refused: 'its hot restart version is 11.112' };
    const name = `binary-${binary}`;
    if (!checkedBinaries.has(name)) this.#updateState({ failures: 0 });
    this.#updateState({ checkedBinaries: new Set(checkedBinaries).add(name) });
    return { binary: name, description: '' };
  }

  /** An agent that takes back its Envoys starts a new link before the old one stops. */
  setSuccessorLink(link: AnyActorRef, isOn: boolean): void {
    if (isOn) this.#updateState({ link });
    else if (this.#state.link === link) this.#updateState({ link: undefined });
  }

  /** Keeps the agent's timers, which measure the duration of its operations. */
  beginHandOver(): void {
    // An agent without a supervisor decides nothing, and rejects the newer agent.
    if (this.agentSnapshot.children.supervisor === undefined) return;
    const timers = this.#system.timersOf(this.#agent).filter((name) => !name.startsWith('predecessor.'));
    this.#system.keepCancelled(timers);
    const { restart } = this.#state;
    this.#updateState({ stoppedAgent: this.#stateOfStoppedAgent(timers, restart), restart: undefined });
  }

  cancelHandOver(): void {
    this.#updateState({ restart: this.#state.stoppedAgent?.restart, stoppedAgent: undefined });
  }

  claim(baseIds: number[]): ClaimedIds {
    const adoption = this.#buildAdoption();
    return { baseIds, sweptFiles: [], ...(adoption && { adoption }) };
  }

  startPreparing({ input, self }: RunningEffect<PrepareOrder>): void {
    if (input.adopted !== undefined) {
      settleCall(self, { value: { configFile: input.adopted.configFile, adminPort: input.adminPort } });
      return;
    }
    this.#oversight.checkInvariants((invariant, observation) => invariant.onPrepare?.(input, observation));
    this.#host.recordAttempt(input.baseId);
    this.#updateState({ prepareCalls: new Map(this.#state.prepareCalls).set(this.#nameOf(input), self) });
  }

  stopPreparing({ input, self }: RunningEffect<Run>): void {
    const { prepareCalls } = this.#state;
    const name = this.#nameOf(input);
    if (prepareCalls.get(name) !== self) return;
    this.#takeCall(name);
    if (this.#state.stoppedAgent === undefined) this.#oversight.countCancelled();
  }

  spawn({ input, self }: RunningEffect<StartOrder>): void {
    if (input.adopted !== undefined) {
      this.#adopt(input, self);
      return;
    }
    if (this.#state.failsNextSpawn) {
      this.#host.recordSpawnFailure(input.baseId);
      reportEvent(self, { type: 'process.failed', reason: 'EAGAIN' });
      return;
    }
    const generation = { files: filesThatAreRead(this.#state), orders: this.#state.desired.orders };
    const { epoch, baseId, binary } = input;
    const lacksListener = generation.files === this.#state.refusedFiles;
    const { pid, label } = this.#host.spawn({
      epoch,
      baseId,
      generation,
      binary,
      lacksListener,
      effect: self,
    });
    if (this.#agentKilled || this.#agentSucceeded) this.#system.arm(startOf({ label }), 0, 'mark');
    if (this.#spawnsLate) this.#updateState({ pendingSpawns: new Map(this.#state.pendingSpawns).set(label, self) });
    else reportEvent(self, { type: 'process.spawned', pid, startedAtMs: 0 });
  }

  signal({ self }: RunningEffect<unknown>, signal: ProcessSignal['signal']): void {
    const process = this.#host.processOfEffect(self);
    if (process !== undefined) this.#host.signal(process, signal);
  }

  abandonProcess({ self }: RunningEffect<unknown>): void {
    const process = this.#host.processOfEffect(self);
    if (process !== undefined && this.#state.stoppedAgent === undefined) this.#host.kill(process);
  }

  setProbing(probe: RunningEffect<ProbeOrder>, isOn: boolean): void {
    const { input, self } = probe;
    if (input.adopted?.live) {
      if (isOn) reportEvent(self, { type: 'probe.passed', timeToLiveMs: 0, unseenMs: 0 });
      return;
    }
    const { probes } = this.#state;
    const name = this.#nameOf(input);
    if (isOn) {
      this.#updateState({ probes: new Map(probes).set(name, self) });
      if (input.isProbeRequested) this.probeNow(probe, { type: 'probe.run', acceptsMissingListeners: false });
    } else if (probes.get(name) === self) {
      this.#updateState({
        probes: withoutKey(probes, name),
        pendingProbes: withoutKey(this.#state.pendingProbes, name),
      });
    }
  }

  probeNow({ input, self }: RunningEffect<Run>, { acceptsMissingListeners }: ProbeRun): void {
    this.#updateState({
      pendingProbes: new Map(this.#state.pendingProbes).set(this.#nameOf(input), {
        probe: self,
        acceptsMissingListeners,
      }),
    });
  }

  explain({ self }: RunningEffect<Run>): void {
    reportEvent(self, { type: 'probe.waiting', reason: '503 INITIALIZING' });
  }

  drain({ epoch, baseId, replaced }: Run & { replaced: boolean }): boolean {
    const process = this.#host.processes.find(
      (other) => other.epoch === epoch && other.baseId === baseId && this.#host.hasAdmin(other),
    );
    if (process === undefined || !this.#host.isResponsive(process)) return false;
    this.#oversight.checkInvariants((invariant, observation) => invariant.onDrain?.(process, observation));
    if (replaced) this.#host.drainListeners(process);
    return true;
  }

  startRepair({ input, self }: RunningEffect<{ baseId: number }>): void {
    this.#updateState({ pendingRepair: { call: self, baseId: input.baseId } });
  }

  release({ self, input: { keeps } }: RunningEffect<{ keeps: boolean }>): void {
    if (keeps) {
      settleCall(self, { value: undefined });
      return;
    }
    this.#updateState({ releaseCall: self });
    for (const process of this.#host.processes) this.#host.kill(process);
  }

  orderStatus({ self }: RunningEffect<unknown>, order: StatusHttpOrder): void {
    if (order.type === 'envoy.probe') {
      if (order.at !== 'port') this.#reportListeners(self);
      reportEvent(self, {
        type: 'envoy.responded',
        request: order.request,
        ...this.#host.responseOf(order.at, this.#state.adminOf),
      });
    }
    if (order.type === 'admin.use') {
      this.#updateState({ adminOf: order.baseId });
      this.#reportListeners(self);
    }
    if (order.type === 'readiness.respond') this.#oversight.checkReadiness(order);
  }

  /** When the Envoy starts to serve, the listeners are reported too, because later its child may own the admin port. */
  #reportListeners(http: AnyActorRef): void {
    const listeners = this.#host.refusedListeners(this.#state.adminOf);
    if (listeners !== undefined) reportEvent(http, { type: 'listeners.checked', listeners });
  }

  openStatus(http: AnyActorRef | undefined): void {
    this.#updateState({ http });
  }

  #perform(kind: string, subject: string): void {
    switch (kind) {
      case 'cert':
      case 'spoil':
        this.#changeFiles(kind === 'spoil');
        return;
      case 'unwatch':
      case 'unseen':
      case 'replace':
      case 'away':
      case 'back':
        this.#changeDirectory(kind, subject === 'hung');
        return;
      case 'binary':
      case 'misfit':
        this.#replaceBinary(kind === 'misfit');
        return;
      case 'hup':
        this.#requestRestart();
        return;
      case 'reopen':
        this.#updateState({ triggers: this.#state.triggers - 1 });
        this.#deliverSignal('SIGUSR1');
        return;
      case 'term':
        this.#updateState({ stops: this.#state.stops - 1, isHurried: this.#oversight.agentEnds });
        this.#oversight.orderStop();
        this.#deliverSignal('SIGTERM');
        return;
      case 'kill':
        this.#killAgent();
        return;
      case 'successor':
        this.#updateState({ triggers: this.#state.triggers - 1 });
        reportEvent(this.#state.link!, { type: 'successor.ready', pid: 2 });
        return;
      case 'hold':
        reportEvent(this.#state.link!, { type: 'successor.confirmed' });
        return;
      case 'next':
        this.#startNextAgent();
        return;
      case 'came':
        this.#reportFilesPresent();
        return;
      case 'read':
      case 'unread':
        this.#filesRead(kind === 'read');
        return;
      case 'prepared':
      case 'unspawnable':
        this.#onPrepared(subject, kind === 'unspawnable');
        return;
      case 'spawned':
        this.#onSpawned(subject);
        return;
      case 'unprepared':
        this.#consumeFault();
        this.#updateState({ hungPrepares: new Set(this.#state.hungPrepares).add(subject) });
        return;
      case 'lack':
        this.#consumeFault();
        this.#updateState({ refusedFiles: filesThatAreRead(this.#state) });
        this.#onPrepared(subject, false);
        return;
      case 'refuse':
        this.#consumeFault();
        this.#oversight.countFailure();
        settleCall(this.#takeCall(subject), { error: new Error('no such field: bogus') });
        return;
      case 'repaired':
      case 'unrepaired':
        this.#finishRepair(kind === 'repaired');
        return;
      case 'tick':
        // A minute of health resets the failures, like a trigger.
        if (subject.endsWith('.healthy')) this.#updateState({ failures: 0 });
        this.#recordHealth(subject);
        this.#countPreparationLimit(subject);
        this.#system.fire(subject);
        return;
      case 'seen':
        this.#reportLive(subject);
        return;
      case 'starve':
        this.#consumeFault();
        this.#updateState({ unusableGeneration: this.#host.processByLabel(subject).generation });
        return;
      case 'usr1':
        this.#consumeFault();
        this.#host.processByLabel(subject).envoy.send({ type: 'signal.sent', signal: 'SIGUSR1' });
        return;
      case 'undying':
        this.#consumeFault();
        this.#host.markUnkillable(this.#host.processByLabel(subject));
        return;
      case 'sick':
      case 'well':
        if (kind === 'sick') this.#consumeFault();
        this.#host.setUnresponsive(this.#host.processByLabel(subject), kind === 'sick');
        return;
      case 'looked':
        this.#runProbe(subject);
        return;
      default:
        this.#raiseEnvoyEvent(kind, this.#host.processByLabel(subject));
    }
  }

  /** The agent's persisted state remains; pending calls are dropped. */
  #killAgent(): void {
    this.#consumeFault();
    const stoppedAgent = this.#stateOfStoppedAgent(this.#system.timersOf(this.#agent), undefined);
    this.#system.kill(this.#agent);
    const emptyMap = new Map<string, never>();
    this.#updateState({
      stoppedAgent,
      ...{
        signals: undefined,
        link: undefined,
        watch: undefined,
        binaryWatch: undefined,
        fileWait: undefined,
        fileRead: undefined,
      },
      ...{ http: undefined, adminOf: undefined, pendingRepair: undefined, releaseCall: undefined, restart: undefined },
      ...{
        prepareCalls: emptyMap,
        hungPrepares: new Set<string>(),
        pendingSpawns: emptyMap,
        probes: emptyMap,
        pendingProbes: emptyMap,
      },
    });
  }

  #stateOfStoppedAgent(timers: StoppedAgent['timers'], restart: StoppedAgent['restart']): StoppedAgent {
    const knowledge = this.#persistedState();
    return {
      persistedState: knowledge,
      exitingParents: this.#leavingEpochsOf(knowledge),
      timers,
      restart,
      exitedProcesses: new Map(),
    };
  }

  #leavingEpochsOf({ epochs }: PersistedState): StoppedAgent['exitingParents'] {
    const { children } = (this.agentSnapshot.children as Record<string, AnyActorRef>).supervisor!.getSnapshot();
    const leavingEpochs = epochs.filter(({ phase }) => phase === 'leaving');
    return new Map(leavingEpochs.map(({ name }) => [name, children[name].getSnapshot().context as EpochContext]));
  }

  #persistedState(): PersistedState {
    const { supervisor } = this.agentSnapshot.children as Record<string, AnyActorRef | undefined>;
    return persistedStateOf(supervisor?.getSnapshot().context as SupervisorContext);
  }

  get #isStandingBy(): boolean {
    const { stoppedAgent, link } = this.#state;
    return stoppedAgent !== undefined && link !== undefined && this.#agent.getSnapshot().status === 'active';
  }

  /** The launcher repeats the order to stop if there was one. */
  #startNextAgent(): void {
    this.#system.removeRoot(this.#agent);
    this.#agent = this.#beginAgent();
    this.#removeStoppedAgent();
    if (this.#state.stop !== 'not ordered') this.#deliverSignal('SIGTERM');
  }

  #removeStoppedAgent(): void {
    const timers = this.#state.stoppedAgent?.timers ?? [];
    this.#system.forgetKilled(timers.filter((name) => !isOverdueTimer.test(name)));
    // The agent that decides from now on has a new retry budget.
    this.#updateState({ stoppedAgent: undefined, failures: 0 });
  }

  /** Disarms the overdue timer of a parent whose process has exited. */
  #disarmOverdue(): void {
    for (const timer of this.#system.zone.names('mark')) {
      const [, name] = isOverdueTimer.exec(timer) ?? [];
      if (name !== undefined && !this.#host.processes.some(({ label }) => label === name)) this.#system.disarm(timer);
    }
  }

  #recordUnseenExit(process: SimulatedProcess, processEnd: ProcessEnd): void {
    const { stoppedAgent } = this.#state;
    if (stoppedAgent === undefined) return;
    const exitedProcess = { process, end: { ...processEnd, ...takeOverOf(process) } };
    const nextExits = new Map(stoppedAgent.exitedProcesses).set(this.#nameOf(process), exitedProcess);
    this.#updateState({ stoppedAgent: { ...stoppedAgent, exitedProcesses: nextExits } });
  }

  #buildAdoption(): Adoption | undefined {
    const { stoppedAgent } = this.#state;
    if (stoppedAgent === undefined) return undefined;
    const isThere = (run: Run): boolean =>
      this.#processOf(run) !== undefined || stoppedAgent.exitedProcesses.has(this.#nameOf(run));
    const epochs = stoppedAgent.persistedState.epochs.filter(isThere).map((epoch) => {
      return { ...epoch, configFile: 'envoy.json', ...this.#adoptionTimesOf(epoch, stoppedAgent) };
    });
    return epochs.length === 0 ? undefined : { ...stoppedAgent.persistedState, epochs };
  }

  /** The next agent treats the range between lower and upper bound as unobserved. */
  #adoptionTimesOf(
    { name, phase }: EpochRecord,
    { exitingParents }: StoppedAgent,
  ): Pick<AdoptedEpoch, 'startedAtMs' | 'elapsedMs' | 'unseenMs'> {
    const { zone } = this.#system;
    const unknownDurations = { startedAtMs: 0, elapsedMs: 0, unseenMs: 0 };
    if (phase === 'live') return unknownDurations;
    if (phase === 'starting') {
      const start = startOf({ label: name.replace('epoch-', '') });
      if (!zone.has(start)) return unknownDurations;
      // Times beyond the parent's shutdown time are equivalent: the child may have finished by then.
      return {
        ...unknownDurations,
        startedAtMs: -roundUpMs(Math.min(zone.maxElapsedMs(start), this.#parentShutdownMs)),
      };
    }
    const timer = `${name}.${phase === 'leaving' ? 'parentDue' : 'linger'}`;
    const knownDurations = exitingParents.get(name);
    if (!zone.has(timer)) return { ...unknownDurations, elapsedMs: this.#parentShutdownMs };
    if (knownDurations === undefined) return unknownDurations;
    const beganMs = this.#parentShutdownMs - knownDurations.parentShutdownMs + parentDueMs(knownDurations);
    const [minMs, maxMs] = [zone.minElapsedMs(timer), zone.maxElapsedMs(timer)];
    return {
      ...unknownDurations,
      elapsedMs: Math.max(0, beganMs + minMs),
      unseenMs: knownDurations.unseenMs + maxMs - minMs,
    };
  }

  #adopt(run: StartOrder, effect: AnyActorRef): void {
    const process = this.#processOf(run);
    if (process !== undefined) this.#host.adopt(process, effect);
    reportEvent(effect, {
      type: 'process.spawned',
      pid: process?.pid ?? 0,
      startedAtMs: run.adopted?.startedAtMs ?? 0,
    });
    const { stoppedAgent } = this.#state;
    const exitedProcess = stoppedAgent?.exitedProcesses.get(this.#nameOf(run));
    if (process !== undefined || exitedProcess === undefined) return;
    // Exits of Envoys that have been live are reported first; the agent then still waits for the others.
    const awaits =
      stoppedAgent?.persistedState.restart !== undefined &&
      exitedProcess.process.isSeenLive &&
      [...stoppedAgent.exitedProcesses.values()].some(hasUnseenProcess);
    this.#host.reportLater(() => {
      this.#oversight.recordObservedExit(exitedProcess.process, awaits);
      reportEvent(effect, { type: 'process.exited', ...exitedProcess.end });
    });
  }

  #processOf({ epoch, baseId }: Run): SimulatedProcess | undefined {
    return this.#host.processes.find((other) => other.epoch === epoch && other.baseId === baseId);
  }

  #reportLive(name: string): void {
    this.#system.disarm(`probe of ${name}`);
    const process = this.#host.processByLabel(name);
    const probe = this.#state.probes.get(name)!;
    if (mayBeHeldBack(process)) {
      this.#host.delayProcess(process);
      reportEvent(probe, { type: 'probe.incomplete', reason: 'LIVE without tls' });
    } else this.#completeProbe(process, probe);
  }

  #completeProbe(process: SimulatedProcess, probe: AnyActorRef): void {
    this.#host.markSeenLive(process);
    this.#system.disarm(startOf(process));
    // The probe's clock is at 0, so an earlier start is negative.
    const { startedAtMs } = (probe.getSnapshot() as CallbackSnapshot<ProbeOrder>).input;
    reportEvent(probe, { type: 'probe.passed', timeToLiveMs: 300, unseenMs: probeMs - startedAtMs });
  }

  #runProbe(name: string): void {
    const { probe, acceptsMissingListeners } = this.#state.pendingProbes.get(name)!;
    this.#updateState({ pendingProbes: withoutKey(this.#state.pendingProbes, name) });
    const process = this.#host.processes.find(({ label }) => label === name);
    const isThere = process !== undefined && isDetectableAsLive(process, this.#state, this.#host);
    if (isThere && (acceptsMissingListeners || !mayBeHeldBack(process))) this.#completeProbe(process, probe);
    else reportEvent(probe, { type: 'probe.failed', reason: '503 INITIALIZING' });
  }

  /** If the files are unusable, the contents read last stay desired. */
  #changeFiles(isSpoiled: boolean): void {
    const { desired } = this.#state;
    if (isSpoiled) {
      this.#consumeFault();
      this.#updateState({ isSpoiled: isSpoiled, desired: { ...desired, files: this.#state.filesRead } });
    } else {
      this.#updateState({ triggers: this.#state.triggers - 1 });
      this.#putOtherFiles();
    }
    this.#reportFileChange();
  }

  get #contents(): string {
    return this.#state.isSpoiled ? 'unusable' : `files-${this.#state.files}`;
  }

  #reportFileChange(): void {
    const { watch, isWatchHung } = this.#state;
    if (watch !== undefined && !isWatchHung) reportEvent(watch, { type: 'files.changed', path: 'tls.crt' });
  }

  /**
   * `unwatch`: the watch fails, and files can change before it is set up again. `replace` and `unseen`: another directory with other files replaces
   * it, reported or not. `away`: the directory is removed. `back`: a directory with other files reappears.
   */
  #changeDirectory(change: 'unwatch' | 'unseen' | 'replace' | 'away' | 'back', hangs: boolean): void {
    const { watch, filesRead, desired } = this.#state;
    const previousContents = this.#contents;
    if (change !== 'back') this.#consumeFault();
    const isHung = change === 'replace' || hangs;
    this.#updateState({ isWatchHung: isHung, isDirectoryAway: change === 'away' });
    if (change === 'away') this.#updateState({ isSpoiled: true, desired: { ...desired, files: filesRead } });
    else if (change !== 'unwatch') this.#putOtherFiles();
    if (watch === undefined) return;
    if (change === 'unwatch' || change === 'unseen')
      reportEvent(watch, { type: 'watch.failed', reason: 'EIO', knownHash: previousContents });
    if (change === 'away') reportEvent(watch, { type: 'directory.missing' });
    if (change === 'replace' || change === 'back') reportEvent(watch, { type: 'directory.found' });
    if (change === 'back' && !isHung) reportEvent(watch, { type: 'watch.began' });
    if (change === 'away' || change === 'back') this.#reportFileChange();
  }

  #putOtherFiles(): void {
    const { desired } = this.#state;
    const files = this.#state.files + 1;
    this.#updateState({ files, isSpoiled: false, desired: { ...desired, files } });
  }

  /** An incompatible binary has no effect; a compatible one becomes desired. */
  #replaceBinary(isIncompatible: boolean): void {
    if (isIncompatible) this.#consumeFault();
    else this.#updateState({ triggers: this.#state.triggers - 1 });
    this.#updateState({ binary: this.#state.binary + 1, isBinaryIncompatible: isIncompatible });
    const { binaryWatch } = this.#state;
    if (binaryWatch !== undefined) reportEvent(binaryWatch, { type: 'files.changed', path: '/usr/bin/envoy' });
  }

  #requestRestart(): void {
    const { triggers, desired } = this.#state;
    this.#updateState({ triggers: triggers - 1, desired: { ...desired, orders: desired.orders + 1 }, failures: 0 });
    this.#deliverSignal('SIGHUP');
  }

  #raiseEnvoyEvent(kind: string, process: SimulatedProcess): void {
    const event = eventsOfChoices[kind];
    if (event === undefined) throw new Error(`no choice is named '${kind}'`);
    if (event === 'envoy.crashed' || event === 'envoy.hung') this.#consumeFault();
    this.#host.sendEvent(process, event);
  }

  #onPrepared(name: string, isUnspawnable: boolean): void {
    const adminPort = name.endsWith('b') ? 15_001 : 15_000;
    if (isUnspawnable) {
      this.#consumeFault();
      this.#oversight.countFailure();
    }
    this.#updateState({ failsNextSpawn: isUnspawnable });
    settleCall(this.#takeCall(name), { value: { configFile: `envoy-rev${name}.json`, adminPort } });
    this.#updateState({ failsNextSpawn: false });
  }

  #onSpawned(label: string): void {
    const { pendingSpawns } = this.#state;
    this.#updateState({ pendingSpawns: withoutKey(pendingSpawns, label) });
    reportEvent(pendingSpawns.get(label)!, {
      type: 'process.spawned',
      pid: this.#host.processByLabel(label).pid,
      startedAtMs: -spawnMs,
    });
  }

  #recordHealth(timer: string): void {
    const [, name] = /^epoch-(\w+)\.healthy$/.exec(timer) ?? [];
    if (name !== undefined)
      this.#updateState({
        provenBinaries: new Set(this.#state.provenBinaries).add(this.#host.processByLabel(name).binary),
      });
  }

  #countPreparationLimit(timer: string): void {
    const [, name] = /^epoch-(\w+)\.prepareLimit$/.exec(timer) ?? [];
    if (name === undefined) return;
    this.#takeCall(name);
    this.#oversight.countFailure();
  }

  #reportFilesPresent(): void {
    const { fileWait } = this.#state;
    this.#updateState({ fileWait: undefined });
    if (fileWait !== undefined) reportEvent(fileWait, noPendingFiles);
  }

  /** If the read does not respond, only a new read returns a result. */
  #filesRead(responds: boolean): void {
    const { fileRead } = this.#state;
    this.#updateState({ fileRead: undefined });
    if (!responds) this.#consumeFault();
    else if (fileRead !== undefined) settleCall(fileRead, { value: readingOf(this) });
  }

  #finishRepair(isAwaited: boolean): void {
    const { call, baseId } = this.#state.pendingRepair!;
    this.#updateState({ pendingRepair: undefined });
    if (!isAwaited) this.#consumeFault();
    const isRepaired = isAwaited && this.#host.repair(baseId);
    settleCall(call, isRepaired ? { value: undefined } : { error: new Error('an epoch initializes') });
  }

  #takeCall(name: string): AnyActorRef {
    const { prepareCalls } = this.#state;
    const hungPrepares = new Set(this.#state.hungPrepares);
    hungPrepares.delete(name);
    this.#updateState({ prepareCalls: withoutKey(prepareCalls, name), hungPrepares: hungPrepares });
    return prepareCalls.get(name)!;
  }

  #consumeFault(): void {
    this.#updateState({ faults: this.#state.faults - 1 });
  }

  #deliverSignal(signal: string): void {
    if (this.#state.signals !== undefined) reportEvent(this.#state.signals, { type: 'signal.received', signal });
  }

  /** Runs when the actors are idle. */
  #runUntilIdle(): void {
    this.#system.keepCancelled([]);
    this.#host.sendPendingReports();
    const { releaseCall } = this.#state;
    if (releaseCall !== undefined && this.#host.processes.length === 0) {
      this.#updateState({ releaseCall: undefined });
      settleCall(releaseCall, { value: undefined });
    }
    this.#armNature();
    this.#disarmOverdue();
    this.#oversight.expireDeadlines();
    this.#system.elapse();
    this.#choices = undefined;
    this.#probeReadiness();
    this.#oversight.checkInvariants((invariant, observation) => invariant.afterChoice?.(observation));
    if (this.#isIdle) this.#oversight.checkInvariants((invariant, observation) => invariant.whenIdle?.(observation));
  }

  /** Repeated notices of waiting Envoys do not count. */
  get #isIdle(): boolean {
    return (
      this.#system.zone.names('exact').every(isNotice) &&
      !this.choices().some(({ name, free }) => free && !isNotice(name))
    );
  }

  /** The response depends only on the status chart and the Envoys, so it is queried once per combination. */
  #probeReadiness(): void {
    const { http } = this.#state;
    const status = http?._parent;
    if (http === undefined || status === undefined) return;
    const readinessKey = `${this.isEnding} ${stateName(status.getSnapshot().value)} ${this.#host.readinessKey(this.#state.adminOf)}`;
    if (this.#checkedReadiness.has(readinessKey)) return;
    this.#checkedReadiness.add(readinessKey);
    reportEvent(http, { type: 'readiness.requested', request: 0 });
  }

  #armNature(): void {
    const dueTimers = new Map<string, number>();
    for (const process of this.#host.processes) {
      const nature = this.#host.natureOf(process);
      if (nature?.withinMs !== undefined)
        dueTimers.set(`${natureNames[nature.event]} of ${process.label}`, nature.withinMs);
      if (hasNewProbeResult(process, this.#state, this.#host)) dueTimers.set(`probe of ${process.label}`, probeMs);
    }
    for (const name of this.#state.prepareCalls.keys()) {
      if (!this.#state.hungPrepares.has(name)) dueTimers.set(`preparation of ${name}`, preparationMs);
    }
    for (const label of this.#state.pendingSpawns.keys()) dueTimers.set(`process of ${label}`, spawnMs);
    if (this.#state.stoppedAgent !== undefined)
      dueTimers.set('the next agent', this.#isStandingBy ? holdMs : nextAgentMs);
    if (this.#state.fileRead !== undefined) dueTimers.set('reading of the files', readMs);
    for (const name of this.#state.pendingProbes.keys())
      if (isAdminResponsive(name, this.#host)) dueTimers.set(`check of ${name}`, probeNowMs);
    for (const name of this.#system.zone.names('within')) if (!dueTimers.has(name)) this.#system.disarm(name);
    for (const [name, ms] of dueTimers) if (!this.#system.zone.has(name)) this.#system.arm(name, ms, 'within');
  }

  #beginOversight(options: ConstructorParameters<typeof Oversight>[1]): Oversight {
    const world = this;
    const observedWorld = {
      system: this.#system,
      get host() {
        return world.#host;
      },
      get state() {
        return world.#state;
      },
      get agent() {
        const agent = world.#agent?.getSnapshot() as AgentSnapshot | undefined;
        // The exit code of a replaced agent is for the launcher only.
        return world.#state.stoppedAgent !== undefined && agent?.status === 'done' ? undefined : agent;
      },
      change: (change: Partial<WorldState>) => this.#updateState(change),
    };
    return new Oversight(observedWorld, options);
  }

  #buildSituation() {
    return {
      state: this.#state,
      host: this.#host,
      zone: this.#system.zone,
      watchFails: this.#watchFails,
      mayBeKilled: this.#agentKilled,
      mayBeSucceeded: this.#agentSucceeded,
      standsBy: this.#isStandingBy,
      agentEnds: this.#oversight.agentEnds || this.#state.stoppedAgent !== undefined,
    };
  }

  readonly #isAllowed = ({ name, free }: WorldChoice): boolean => {
    if (free || name.startsWith('tick:') || name === 'term') return true;
    if (isTrigger(name)) return this.#orders?.includes(name) ?? name !== 'reopen';
    if (name.startsWith('usr1:')) return this.#faults?.includes('usr1') === true;
    return this.#faults?.some((fault) => name.startsWith(fault)) ?? true;
  };

  #isOver(): boolean {
    const hasEnded = this.#state.stoppedAgent === undefined && this.#agent.getSnapshot().status !== 'active';
    return hasEnded || this.#state.violations.length > 0;
  }

  /** The name of the supervisor's actor without `epoch-`. */
  #nameOf({ epoch, baseId }: Run): string {
    return baseId === this.#firstBaseId ? `${epoch}` : `${epoch}b`;
  }

  #updateState(change: Partial<WorldState>): void {
    this.#state = { ...this.#state, ...change };
  }
}

const beginningMark = 'beginning';
/** Timer of an Envoy's start, until a probe finds it live. */
const startOf = ({ label }: Pick<SimulatedProcess, 'label'>): string => `start of ${label}`;
const hasUnseenProcess = ({ process }: ExitedProcess): boolean => !process.isSeenLive;
const isOverdueTimer = /^epoch-(\w+)\.parentOverdue$/;
const isNotice = (name: string): boolean => /\bepoch-\w+\.(firstNotice|notice)$/.test(name);

/** A state per millisecond would be too many. */
const roundUpMs = (ms: number): number => probeMs * 2 ** Math.max(0, Math.ceil(Math.log2(ms / probeMs)));

function withoutKey<Value>(map: ReadonlyMap<string, Value>, key: string): ReadonlyMap<string, Value> {
  const remainingEntries = new Map(map);
  remainingEntries.delete(key);
  return remainingEntries;
}
