/** Observes an exploration from outside the agent. */
import type { AnyEventObject, SnapshotFrom } from 'xstate';
import type { agentMachine } from '../../../machines/agent/agent.machine.ts';
import type { AgentSettings } from '../../../machines/agent/settings.ts';
import type { ReadinessRespond } from '../../../machines/agent/status-protocol.ts';
import type { SymbolicSystem } from '../../debugger/explore/symbolic-system.ts';
import type { WorldState } from './exploration-state.ts';
import type { Invariant, Observation } from './invariants/invariant.ts';
import type { ProcessEnd } from './simulated-envoy.machine.ts';
import type { HostWatch, SimulatedHost, SimulatedProcess } from './simulated-host.ts';

export type AgentSnapshot = SnapshotFrom<typeof agentMachine>;

export interface ObservedWorld {
  readonly system: SymbolicSystem;
  readonly host: SimulatedHost;
  readonly state: WorldState;
  /** `undefined` while the agent is being started. */
  readonly agent: AgentSnapshot | undefined;
  change(state: Partial<WorldState>): void;
}

export interface OversightOptions {
  readonly settings: AgentSettings;
  readonly baseIds: readonly number[];
  readonly invariants: readonly Invariant[];
}

const stopDeadline = 'stop deadline';
const deadlineOf = ({ label }: SimulatedProcess): string => `deadline of ${label}`;

export class Oversight {
  readonly #world: ObservedWorld;
  readonly #options: OversightOptions;

  constructor(observedWorld: ObservedWorld, options: OversightOptions) {
    this.#world = observedWorld;
    this.#options = options;
  }

  /** Called by the host before it acts. */
  readonly hostWatch: HostWatch = {
    onSpawn: (order) => this.checkInvariants((invariant, observation) => invariant.onSpawn?.(order, observation)),
    onSignal: (process, signal) => {
      this.checkInvariants((invariant, observation) => invariant.onSignal?.(process, signal, observation));
      if (!process.isSeenLive && !process.exitRequested) this.countCancelled();
    },
    onLive: (process) => this.#countDeadline(process, false),
    onSeenLive: (process) => {
      this.#countDeadline(process, true);
      this.#recordFirstBinary(process);
    },
    onExit: (process, processEnd) => {
      this.checkInvariants((invariant, observation) => invariant.onExit?.(process, processEnd, observation));
      // If no agent is running, the exit counts when the next agent is notified of it.
      if (this.#world.state.stoppedAgent === undefined) this.recordObservedExit(process);
      this.#markFailedBinary(process, processEnd);
    },
  };

  checkInvariants(check: (invariant: Invariant, observation: Observation) => string | undefined): void {
    const observation = this.#observe();
    for (const invariant of this.#options.invariants) {
      const detail = check(invariant, observation);
      if (detail === undefined) continue;
      const { violations } = this.#world.state;
      this.#world.change({ violations: [...violations, { invariant: invariant.name, detail }] });
    }
  }

  /** The supervisor must report the decision and the end of each start once. */
  handleReport({ type, name, binary }: AnyEventObject): void {
    if (type === 'binary.withdrawn') this.#recordWithdrawal(binary as string);
    if (type !== 'restart.decided' && type !== 'restart.ended') return;
    this.checkInvariants((invariant, observation) => invariant.onReport?.(type, name, observation));
    this.#world.change({ restart: type === 'restart.decided' ? name : undefined });
  }

  #recordWithdrawal(binary: string): void {
    const { withdrawnBinaries, failedBinaries } = this.#world.state;
    const change = {
      withdrawnBinaries: new Set(withdrawnBinaries).add(binary),
      failedBinaries: new Set(failedBinaries).add(binary),
    };
    this.#world.change(change);
  }

  orderStop(): void {
    const { system, state } = this.#world;
    if (state.stop === 'not ordered') system.arm(stopDeadline, this.#options.settings.terminationDrainMs, 'mark');
    else system.disarm(stopDeadline);
    this.#world.change({ stop: state.stop === 'not ordered' ? 'ordered' : 'deadline passed' });
  }

  expireDeadlines(): void {
    const { system, host } = this.#world;
    if (system.zone.isOverdue(stopDeadline)) {
      system.disarm(stopDeadline);
      this.#world.change({ stop: 'deadline passed' });
    }
    for (const name of system.zone.names('mark')) {
      const isDeadline = name.startsWith(deadlinePrefix);
      if (isDeadline && !host.processes.some((process) => deadlineOf(process) === name)) system.disarm(name);
    }
  }

  checkReadiness(response: ReadinessRespond): void {
    this.checkInvariants((invariant, observation) => invariant.onReadiness?.(response, observation));
  }

  /** Whether the desired configuration serves. If it cannot, the agent must have reported that its retries are exhausted. */
  get isReached(): boolean {
    const { state, agent, host } = this.#world;
    if (agent?.status === 'done') return true;
    if (state.stop !== 'not ordered') return false;
    const { budget } = this.#options.settings.retry;
    if (state.failures > budget || this.#mayWaitForEver) return true;
    return (
      this.#options.baseIds.every((baseId) => this.#isBaseIdLost(baseId)) ||
      host.processes.some((process) => this.#isDesired(process))
    );
  }

  /** A configuration that was desired only briefly may also prevent every Envoy from becoming live. */
  get #mayWaitForEver(): boolean {
    const { unusableGeneration, desired } = this.#world.state;
    return (
      unusableGeneration !== undefined &&
      unusableGeneration.files >= desired.files &&
      unusableGeneration.orders === desired.orders
    );
  }

  /** Whether a process that cannot be killed occupies the names of this base ID. */
  #isBaseIdLost(baseId: number): boolean {
    return this.#world.host.processes.some((other) => other.isUnkillable && other.baseId === baseId);
  }

  #isDesired(process: SimulatedProcess): boolean {
    const { state, host } = this.#world;
    const { generation } = process;
    // The supervisor must also know that the process serves.
    if (!host.isServing(process) || !process.isSeenLive || process.isUnresponsive) return false;
    return generation.files >= state.desired.files && generation.orders === state.desired.orders;
  }

  get agentEnds(): boolean {
    const { agent } = this.#world;
    return agent?.hasTag('leaving') === true;
  }

  /** Starts the deadline for a parent to exit, or for a replaced Envoy to finish its requests. */
  #countDeadline({ epoch, baseId }: SimulatedProcess, wasSeen: boolean): void {
    const { system, host } = this.#world;
    const { parentShutdownMs, parentGraceMs } = this.#options.settings;
    for (const other of host.processes) {
      const isParent = other.baseId === baseId && other.epoch === epoch - 1 && other.isChildSeenLive === wasSeen;
      const isReplaced =
        !wasSeen && other.baseId !== baseId && other.isLive && !other.hasClosedListeners && !host.isOrphaned(other);
      if (!isParent && !isReplaced) continue;
      system.disarm(deadlineOf(other));
      system.arm(deadlineOf(other), isParent ? parentShutdownMs + parentGraceMs : parentShutdownMs, 'mark');
    }
  }

  countFailure(): void {
    this.#world.change({ failures: this.#world.state.failures + 1 });
  }

  /** If the Envoy that the cancelled start should have followed has exited, the loss was counted already. */
  countCancelled(): void {
    if (this.#world.host.processes.some((other) => other.isChildSeenLive || isKnownToServe(other))) this.countFailure();
  }

  /** If an Envoy exited without an order within its first minute of serving, the agent must not start its binary again. */
  #markFailedBinary(
    { binary, exitRequested, isChildSeenLive, hasClosedListeners, parentCrashed, isSeenLive }: SimulatedProcess,
    processEnd: ProcessEnd,
  ): void {
    const { state, host } = this.#world;
    const isOrdered = exitRequested || isChildSeenLive || hasClosedListeners || state.stop !== 'not ordered';
    if (isOrdered || parentCrashed || processEnd.refusedByParent) return;
    if (state.provenBinaries.has(binary)) {
      if (!isSeenLive && !host.processes.some(isKnownToServe))
        this.#recordProvenBinary([...state.checkedBinaries].at(-1)!);
      return;
    }
    if (host.processes.some((other) => other.binary === binary && isKnownToServe(other))) return;
    this.#world.change({ failedBinaries: new Set(state.failedBinaries).add(binary) });
  }

  /** Before the first Envoy is live there is no binary to fall back to. */
  #recordFirstBinary({ binary }: SimulatedProcess): void {
    if (this.#world.state.wasEverLive) return;
    this.#world.change({ wasEverLive: true });
    this.#recordProvenBinary(binary);
  }

  #recordProvenBinary(binary: string): void {
    this.#world.change({ provenBinaries: new Set(this.#world.state.provenBinaries).add(binary) });
  }

  /** @param awaits whether the agent still waits for another Envoy's exit */
  recordObservedExit(process: SimulatedProcess, awaits = false): void {
    const isUseless = process.exitRequested || process.isChildSeenLive || process.hasClosedListeners;
    if (isUseless) {
      const isNeeded =
        process.isChildSeenLive && !this.#world.host.processes.some(isKnownToServe) && (awaits || !this.#isIdle());
      if (isNeeded || this.#isUnobservedShutdown(process)) this.countFailure();
      return;
    }
    if (this.#isOutdated(process)) this.#world.change({ failures: 0 });
    this.countFailure();
  }

  /** Whether the process's child terminated it while no agent was running. For the next agent, such a serving Envoy has exited without an order. */
  #isUnobservedShutdown({ exitRequested, isSeenLive, isChildSeenLive, baseId, epoch }: SimulatedProcess): boolean {
    const child = this.#world.host.processes.find((other) => other.baseId === baseId && other.epoch === epoch + 1);
    return (
      exitRequested &&
      isSeenLive &&
      !isChildSeenLive &&
      child?.isLive === true &&
      !child.isSeenLive &&
      !child.exitRequested
    );
  }

  /** Failures of newer epochs do not affect a process that kept serving, so its loss starts a new count. */
  #isOutdated({ isSeenLive, generation }: SimulatedProcess): boolean {
    const { filesRead, desired } = this.#world.state;
    return isSeenLive && (generation.files < filesRead || generation.orders < desired.orders);
  }

  #isIdle(): boolean {
    const { host, state } = this.#world;
    return (
      state.prepareCalls.size === 0 &&
      state.pendingRepair === undefined &&
      host.processes.every(({ isSeenLive }) => isSeenLive)
    );
  }

  #observe(): Observation {
    const { system, host, state, agent } = this.#world;
    const { settings, baseIds } = this.#options;
    const { zone } = system;
    return {
      host,
      desired: state.desired,
      triesSinceTrigger: state.failures,
      retryBudget: settings.retry.budget,
      stopOrdered: state.stop !== 'not ordered',
      stopDeadlinePassed: state.stop === 'deadline passed' || zone.isOverdue(stopDeadline),
      isOverdue: (parent) => zone.isOverdue(deadlineOf(parent)),
      agentEnds: this.agentEnds || state.stoppedAgent !== undefined,
      isHurried: state.isHurried,
      mayWaitForEver: this.#mayWaitForEver,
      agentExitCode: agent?.status === 'done' ? agent.output?.exitCode : undefined,
      failures: system.failures,
      restartsInFull: !settings.hotRestart || baseIds.filter((baseId) => !this.#isBaseIdLost(baseId)).length < 2,
      policy: settings,
      restart: state.restart,
      checkedBinaries: state.checkedBinaries,
      failedBinaries: state.failedBinaries,
      withdrawnBinaries: state.withdrawnBinaries,
    };
  }
}

const deadlinePrefix = 'deadline of ';

const isKnownToServe = ({
  isSeenLive,
  isChildSeenLive,
  exitRequested,
  hasClosedListeners,
}: SimulatedProcess): boolean => isSeenLive && !isChildSeenLive && !exitRequested && !hasClosedListeners;
