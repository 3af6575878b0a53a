/** Orders that the agent received and facts that were observed, against which invariants check a random run. */
import type { AnyEventObject, SnapshotFrom } from 'xstate';
import type { agentMachine } from '../../machines/agent/agent.machine.ts';
import type { AgentSettings } from '../../machines/agent/settings.ts';
import type { InvariantViolation } from '../../src/debugger/explore/world.ts';
import type { Invariant, Observation } from '../../src/simulation/agent/invariants/invariant.ts';
import type { HostWatch, SimulatedHost, SimulatedProcess } from '../../src/simulation/agent/simulated-host.ts';
import type { PacedClock } from './paced-clock.ts';

export type AgentSnapshot = SnapshotFrom<typeof agentMachine>;

export interface ObservedRun {
  readonly host: SimulatedHost;
  readonly agent: AgentSnapshot | undefined;
  readonly failures: readonly string[];
  /** Pending calls of `prepare`. */
  readonly prepareCount: number;
}

export interface LedgerOptions {
  readonly invariants: readonly Invariant[];
  readonly settings: AgentSettings;
  readonly baseIds: readonly number[];
  /** The agent's clock, because its limits are in its own time. */
  readonly clock: PacedClock;
}

export class Ledger {
  readonly #options: LedgerOptions;
  readonly #alwaysInvariants: readonly Invariant[];
  readonly #readRun: () => ObservedRun;
  readonly #exitDeadlines = new Map<number, number>();
  readonly #overduePids = new Set<number>();
  readonly violations: InvariantViolation[] = [];
  /** Content of the certificate files. */
  content = 1;
  restartOrders = 0;
  /** Started epochs and lost live epochs since the agent's last task. */
  triesSinceTask = 0;
  stop: 'not ordered' | 'ordered' | 'deadline passed' = 'not ordered';

  /** The start that the supervisor has reported as decided, but not as ended. */
  #restart: string | undefined;
  /** Whether the agent was ordered to stop while it only waited for killed processes. */
  #isHurried = false;
  /** Unreported reason why the files of a start had no space. */
  #unreportedReason: string | undefined;

  constructor(options: LedgerOptions, readRun: () => ObservedRun) {
    this.#options = options;
    this.#alwaysInvariants = options.invariants.filter(({ afterChoice }) => afterChoice !== undefined);
    this.#readRun = readRun;
  }

  /** Begins a new task of the agent; it may fail again, and earlier starts may still fail. */
  beginTask(): void {
    const { host, prepareCount } = this.#readRun();
    this.triesSinceTask = prepareCount + host.processes.filter(({ isSeenLive }) => !isSeenLive).length;
  }

  /** Handles a SIGHUP. */
  demandRestart(): void {
    this.restartOrders++;
    this.beginTask();
  }

  /** Handles an order or event that stops the agent. */
  orderStop(): void {
    this.#isHurried = this.#agentEnds;
    if (this.stop !== 'not ordered') {
      this.stop = 'deadline passed';
      return;
    }
    this.stop = 'ordered';
    this.#options.clock.setTimeout(() => {
      this.stop = 'deadline passed';
    }, this.#options.settings.terminationDrainMs);
  }

  /** Whether the desired configuration was tried as often as the budget allows. */
  get mayHaveGivenUp(): boolean {
    return this.triesSinceTask > this.#options.settings.retry.budget;
  }

  /** Checks conditions that must hold whenever no event is pending. */
  judgeAlways(): void {
    const observed = this.#observe();
    for (const invariant of this.#alwaysInvariants) {
      const detail = invariant.afterChoice?.(observed);
      if (detail !== undefined) this.recordViolation(invariant.name, detail);
    }
  }

  checkInvariants(check: (invariant: Invariant, observed: Observation) => string | undefined): void {
    const observed = this.#observe();
    for (const invariant of this.#options.invariants) {
      const detail = check(invariant, observed);
      if (detail !== undefined) this.recordViolation(invariant.name, detail);
    }
  }

  recordViolation(invariant: string, detail: string): void {
    this.violations.push({ invariant, detail });
  }

  /** Called by the host before it acts. */
  watch(): HostWatch {
    return {
      onSpawn: (order) => this.checkInvariants((invariant, observed) => invariant.onSpawn?.(order, observed)),
      onSignal: (process, signal) =>
        this.checkInvariants((invariant, observed) => invariant.onSignal?.(process, signal, observed)),
      onLive: (child) => this.#countDeadline(child, false),
      onSeenLive: (child) => this.#countDeadline(child, true),
      onExit: (process, end) => {
        this.checkInvariants((invariant, observed) => invariant.onExit?.(process, end, observed));
        if (process.isLive && !process.exitRequested) this.triesSinceTask++;
      },
    };
  }

  /** Expects a report of this reason, because a start has just failed. */
  expectReport(reason: string): void {
    this.#unreportedReason = reason;
  }

  /** Handles an epoch's report to its supervisor, and so to log and trace, of why it failed. */
  handleFailure({ type, during, reason }: AnyEventObject): void {
    const isReported = during === 'writing the bootstrap' || during === 'starting';
    if (type === 'epoch.failed' && isReported && reason === this.#unreportedReason) this.#unreportedReason = undefined;
  }

  /** Handles the supervisor's reports of its decisions. */
  readonly handleReport = ({ type, name }: AnyEventObject): void => {
    if (type !== 'restart.decided' && type !== 'restart.ended') return;
    this.checkInvariants((invariant, observed) => invariant.onReport?.(type, name, observed));
    this.#restart = type === 'restart.decided' ? name : undefined;
  };

  /**
   * Starts the deadline for a parent to exit, or for a replaced epoch to complete its requests. It restarts for a child that replaces a crashed one,
   * once the supervisor has detected the child as live.
   */
  #countDeadline({ epoch, baseId }: SimulatedProcess, isSeen: boolean): void {
    const { host } = this.#readRun();
    const { parentShutdownMs, parentGraceMs } = this.#options.settings;
    for (const other of host.processes) {
      const isParent = other.baseId === baseId && other.epoch === epoch - 1 && other.isChildSeenLive === isSeen;
      // A replaced epoch keeps its deadline.
      const isReplaced =
        !isSeen && other.baseId !== baseId && other.isLive && !other.hasClosedListeners && !host.isOrphaned(other);
      if (isParent) this.#armDeadline(other, parentShutdownMs + parentGraceMs);
      else if (isReplaced) this.#armDeadline(other, parentShutdownMs);
    }
  }

  /** Starts the deadline, or restarts it for a child that replaces a crashed one. */
  #armDeadline({ pid }: SimulatedProcess, ms: number): void {
    const { clock } = this.#options;
    clock.clearTimeout(this.#exitDeadlines.get(pid) ?? 0);
    this.#overduePids.delete(pid);
    // One millisecond less, because sums of paced times are not exact.
    const timer = clock.setTimeout(() => this.#overduePids.add(pid), ms - 1);
    this.#exitDeadlines.set(pid, timer);
  }

  get #agentEnds(): boolean {
    return this.#readRun().agent?.hasTag('leaving') === true;
  }

  #observe(): Observation {
    const { host, agent, failures } = this.#readRun();
    const { settings, baseIds } = this.#options;
    return {
      host,
      desired: { files: this.content, orders: this.restartOrders },
      triesSinceTrigger: this.triesSinceTask,
      retryBudget: settings.retry.budget,
      stopOrdered: this.stop !== 'not ordered',
      stopDeadlinePassed: this.stop === 'deadline passed',
      isOverdue: (parent) => this.#overduePids.has(parent.pid),
      agentEnds: this.#agentEnds,
      isHurried: this.#isHurried,
      agentExitCode: agent?.status === 'done' ? agent.output?.exitCode : undefined,
      failures,
      restartsInFull: !settings.hotRestart || baseIds.length < 2,
      restart: this.#restart,
      unreportedReason: this.#unreportedReason,
    };
  }
}
