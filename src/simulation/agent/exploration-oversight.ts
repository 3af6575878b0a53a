/** Observes an exploration from outside the agent, and checks the invariants. */
import type { AnyEventObject, SnapshotFrom } from 'xstate';
import type { agentMachine } from '../../../machines/agent/agent.machine.ts';
import type { AgentSettings } from '../../../machines/agent/settings.ts';
import type { ReadinessRespond } from '../../../machines/agent/status-protocol.ts';
import type { SymbolicSystem } from '../../debugger/explore/symbolic-system.ts';
import type { WorldState } from './exploration-state.ts';
import type { Invariant, Observed } from './invariants/invariant.ts';
import type { ProcessEnd } from './simulated-envoy.machine.ts';
import type { HostWatch, SimulatedHost, SimulatedProcess } from './simulated-host.ts';

export type AgentSnapshot = SnapshotFrom<typeof agentMachine>;

export interface Watched {
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
  readonly #watched: Watched;
  readonly #options: OversightOptions;

  constructor(watched: Watched, options: OversightOptions) {
    this.#watched = watched;
    this.#options = options;
  }

  /** Called by the host before it acts. */
  readonly hostWatch: HostWatch = {
    spawning: (order) => this.judge((invariant, observation) => invariant.spawning?.(order, observation)),
    signalling: (process, signal) => {
      this.judge((invariant, observation) => invariant.signalling?.(process, signal, observation));
      if (!process.seen && !process.exitRequested) this.countCancelled();
    },
    wentLive: (process) => this.#countDeadline(process, false),
    seen: (process) => {
      this.#countDeadline(process, true);
      this.#recordFirstBinary(process);
    },
    left: (process, end) => {
      this.judge((invariant, observation) => invariant.leaving?.(process, end, observation));
      // If no agent is running, the exit counts when the next agent is notified of it.
      if (this.#watched.state.stoppedAgent === undefined) this.recordObservedExit(process);
      this.#markFailedBinary(process, end);
    },
  };

  judge(check: (invariant: Invariant, observed: Observed) => string | undefined): void {
    const observation = this.#observe();
    for (const invariant of this.#options.invariants) {
      const detail = check(invariant, observation);
      if (detail === undefined) continue;
      const { violations } = this.#watched.state;
      this.#watched.change({ violations: [...violations, { invariant: invariant.name, detail }] });
    }
  }

  /** Handles reports of the supervisor, which must report the decision and the end of each start once. */
  handleReport({ type, name, binary }: AnyEventObject): void {
    if (type === 'binary.withdrawn') this.#noteWithdrawn(binary as string);
    if (type !== 'restart.decided' && type !== 'restart.ended') return;
    this.judge((invariant, observation) => invariant.reporting?.(type, name, observation));
    this.#watched.change({ restart: type === 'restart.decided' ? name : undefined });
  }

  #noteWithdrawn(binary: string): void {
    const { withdrawn, failedBinaries } = this.#watched.state;
    const change = { withdrawn: new Set(withdrawn).add(binary), failedBinaries: new Set(failedBinaries).add(binary) };
    this.#watched.change(change);
  }

  /** Handles the first or second order to stop. */
  orderStop(): void {
    const { system, state } = this.#watched;
    if (state.stop === 'not ordered') system.arm(stopDeadline, this.#options.settings.terminationDrainMs, 'mark');
    else system.disarm(stopDeadline);
    this.#watched.change({ stop: state.stop === 'not ordered' ? 'ordered' : 'deadline passed' });
  }

  /** Removes deadlines that have passed or belong to exited processes. */
  expireDeadlines(): void {
    const { system, host } = this.#watched;
    if (system.zone.hasPassed(stopDeadline)) {
      system.disarm(stopDeadline);
      this.#watched.change({ stop: 'deadline passed' });
    }
    for (const name of system.zone.names('mark')) {
      const isDeadline = name.startsWith(deadlinePrefix);
      if (isDeadline && !host.processes.some((process) => deadlineOf(process) === name)) system.disarm(name);
    }
  }

  checkReadiness(response: ReadinessRespond): void {
    this.judge((invariant, observation) => invariant.respondingReadiness?.(response, observation));
  }

  /** Whether the desired configuration serves, or cannot: then the agent must have reported that its retries are exhausted. */
  get isReached(): boolean {
    const { state, agent, host } = this.#watched;
    if (agent?.status === 'done') return true;
    if (state.stop !== 'not ordered') return false;
    const { budget } = this.#options.settings.retry;
    if (state.failures > budget || this.#mayWaitForEver) return true;
    return (
      this.#options.baseIds.every((baseId) => this.#isLost(baseId)) ||
      host.processes.some((process) => this.#isDesired(process))
    );
  }

  /** Whether the desired configuration, or a newer one that was desired only briefly, prevents every Envoy from becoming live. */
  get #mayWaitForEver(): boolean {
    const { unfit, desired } = this.#watched.state;
    return unfit !== undefined && unfit.files >= desired.files && unfit.orders === desired.orders;
  }

  /** Whether a process that cannot be killed occupies the names of this base ID. */
  #isLost(baseId: number): boolean {
    return this.#watched.host.processes.some((other) => other.isUnkillable && other.baseId === baseId);
  }

  #isDesired(process: SimulatedProcess): boolean {
    const { state, host } = this.#watched;
    const { generation } = process;
    // The supervisor must know that it serves, too.
    if (!host.isServing(process) || !process.seen || process.isUnresponsive) return false;
    return generation.files >= state.desired.files && generation.orders === state.desired.orders;
  }

  get agentEnds(): boolean {
    const { agent } = this.#watched;
    return agent?.hasTag('leaving') === true;
  }

  /**
   * Starts the deadline for a parent to exit, or for a replaced Envoy to finish its requests. It restarts when the supervisor detects the child as
   * live.
   */
  #countDeadline({ epoch, baseId }: SimulatedProcess, wasSeen: boolean): void {
    const { system, host } = this.#watched;
    const { parentShutdownMs, parentGraceMs } = this.#options.settings;
    for (const other of host.processes) {
      const isParent = other.baseId === baseId && other.epoch === epoch - 1 && other.supersededSeen === wasSeen;
      const isReplaced = !wasSeen && other.baseId !== baseId && other.live && !other.closed && !host.isOrphaned(other);
      if (!isParent && !isReplaced) continue;
      system.disarm(deadlineOf(other));
      system.arm(deadlineOf(other), isParent ? parentShutdownMs + parentGraceMs : parentShutdownMs, 'mark');
    }
  }

  countFailure(): void {
    this.#watched.change({ failures: this.#watched.state.failures + 1 });
  }

  /** Counts a start that the agent cancelled, unless the Envoy that it should have followed has exited: that loss was counted already. */
  countCancelled(): void {
    if (this.#watched.host.processes.some((other) => other.supersededSeen || isKnownToServe(other)))
      this.countFailure();
  }

  /**
   * Marks a binary as failed if its Envoy exited without an order within its first minute of serving: the agent must not start it again. A binary
   * that serves under another base ID is not marked.
   */
  #markFailedBinary(
    { binary, exitRequested: sentAway, supersededSeen, closed, parentCrashed, seen }: SimulatedProcess,
    end: ProcessEnd,
  ): void {
    const { state, host } = this.#watched;
    const isOrdered = sentAway || supersededSeen || closed || state.stop !== 'not ordered';
    if (isOrdered || parentCrashed || end.refusedByParent) return;
    if (state.proven.has(binary)) {
      // There is no other binary to fall back to.
      if (!seen && !host.processes.some(isKnownToServe)) this.#prove([...state.checked].at(-1)!);
      return;
    }
    if (host.processes.some((other) => other.binary === binary && isKnownToServe(other))) return;
    this.#watched.change({ failedBinaries: new Set(state.failedBinaries).add(binary) });
  }

  /** Before the first Envoy is live there is no binary to fall back to. */
  #recordFirstBinary({ binary }: SimulatedProcess): void {
    if (this.#watched.state.everLive) return;
    this.#watched.change({ everLive: true });
    this.#prove(binary);
  }

  #prove(binary: string): void {
    this.#watched.change({ proven: new Set(this.#watched.state.proven).add(binary) });
  }

  /**
   * Records that the agent was notified of an exited process.
   *
   * @param awaits whether the agent still waits for another Envoy's exit
   */
  recordObservedExit(process: SimulatedProcess, awaits = false): void {
    const isUseless = process.exitRequested || process.supersededSeen || process.closed;
    if (isUseless) {
      const isNeeded =
        process.supersededSeen && !this.#watched.host.processes.some(isKnownToServe) && (awaits || !this.#isIdle());
      if (isNeeded || this.#isUnobservedShutdown(process)) this.countFailure();
      return;
    }
    if (this.#isOutdated(process)) this.#watched.change({ failures: 0 });
    this.countFailure();
  }

  /** Whether the process's child terminated it while no agent was running. For the next agent, such a serving Envoy has exited without an order. */
  #isUnobservedShutdown({ exitRequested: sentAway, seen, supersededSeen, baseId, epoch }: SimulatedProcess): boolean {
    const child = this.#watched.host.processes.find((other) => other.baseId === baseId && other.epoch === epoch + 1);
    return sentAway && seen && !supersededSeen && child?.live === true && !child.seen && !child.exitRequested;
  }

  /** Whether the process kept serving while newer epochs failed. These failures do not affect it, so its loss starts a new count. */
  #isOutdated({ seen, generation }: SimulatedProcess): boolean {
    const { filesRead, desired } = this.#watched.state;
    return seen && (generation.files < filesRead || generation.orders < desired.orders);
  }

  #isIdle(): boolean {
    const { host, state } = this.#watched;
    return state.preparing.size === 0 && state.repairing === undefined && host.processes.every(({ seen }) => seen);
  }

  #observe(): Observed {
    const { system, host, state, agent } = this.#watched;
    const { settings, baseIds } = this.#options;
    const { zone } = system;
    return {
      host,
      desired: state.desired,
      triesSinceTrigger: state.failures,
      retryBudget: settings.retry.budget,
      stopOrdered: state.stop !== 'not ordered',
      stopDeadlinePassed: state.stop === 'deadline passed' || zone.hasPassed(stopDeadline),
      isOverdue: (parent) => zone.hasPassed(deadlineOf(parent)),
      agentEnds: this.agentEnds || state.stoppedAgent !== undefined,
      isHurried: state.hurried,
      mayWaitForEver: this.#mayWaitForEver,
      agentExitCode: agent?.status === 'done' ? agent.output?.exitCode : undefined,
      failures: system.failures,
      restartsInFull: !settings.hotRestart || baseIds.filter((baseId) => !this.#isLost(baseId)).length < 2,
      policy: settings,
      restart: state.restart,
      checked: state.checked,
      failedBinaries: state.failedBinaries,
      withdrawn: state.withdrawn,
    };
  }
}

const deadlinePrefix = 'deadline of ';

const isKnownToServe = ({ seen, supersededSeen, exitRequested: sentAway, closed }: SimulatedProcess): boolean =>
  seen && !supersededSeen && !sentAway && !closed;
