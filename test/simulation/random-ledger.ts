/** What the outside has asked of the agent and what it has seen of it: the ground on which invariants judge a random run. */
import type { AnyEventObject, SnapshotFrom } from 'xstate';
import type { agentMachine } from '../../machines/agent/agent.machine.ts';
import type { AgentSettings } from '../../machines/agent/settings.ts';
import type { Violation } from '../../src/debugger/explore/world.ts';
import type { Invariant, Observed } from '../../src/simulation/agent/invariants/invariant.ts';
import type { HostWatch, SimulatedHost, SimulatedProcess } from '../../src/simulation/agent/simulated-host.ts';
import type { PacedClock } from './paced-clock.ts';

export type AgentSnapshot = SnapshotFrom<typeof agentMachine>;

export interface Judged {
  readonly host: SimulatedHost;
  readonly agent: AgentSnapshot | undefined;
  readonly failures: readonly string[];
  /** Calls of `prepare` that are not answered. */
  readonly preparing: number;
}

export interface LedgerOptions {
  readonly invariants: readonly Invariant[];
  readonly settings: AgentSettings;
  readonly baseIds: readonly number[];
  /** The agent's: what it has to wait for is a matter of its own time. */
  readonly clock: PacedClock;
}

export class Ledger {
  readonly #options: LedgerOptions;
  readonly #always: readonly Invariant[];
  readonly #judged: () => Judged;
  readonly #deadlines = new Map<number, number>();
  readonly #overdue = new Set<number>();
  readonly violations: Violation[] = [];
  /** What the certificate files hold. */
  content = 1;
  orders = 0;
  /** Epochs begun, and live ones lost, since the agent was last given something new to do. */
  tries = 0;
  stop: 'not ordered' | 'ordered' | 'deadline passed' = 'not ordered';

  /** The start that the supervisor has told of as decided and not as over. */
  #restart: string | undefined;
  /** It was told to end when it had nothing left to do but to wait for processes that are killed. */
  #hurried = false;
  /** Why a start had no room for its files, until that is told. */
  #untold: string | undefined;

  constructor(options: LedgerOptions, judged: () => Judged) {
    this.#options = options;
    this.#always = options.invariants.filter(({ always }) => always !== undefined);
    this.#judged = judged;
  }

  /** The agent has something new to do, and may fail anew; what was begun before may still fail. */
  beginAnew(): void {
    const { host, preparing } = this.#judged();
    this.tries = preparing + host.processes.filter(({ seen }) => !seen).length;
  }

  /** SIGHUP. */
  demandRestart(): void {
    this.orders++;
    this.beginAnew();
  }

  /** The agent was told to end, or something happened that it has to end of. */
  orderStop(): void {
    this.#hurried = this.#agentEnds;
    if (this.stop !== 'not ordered') {
      this.stop = 'deadline passed';
      return;
    }
    this.stop = 'ordered';
    this.#options.clock.setTimeout(() => {
      this.stop = 'deadline passed';
    }, this.#options.settings.terminationDrainMs);
  }

  /** What is wanted was tried as often as it may be. */
  get mayHaveGivenUp(): boolean {
    return this.tries > this.#options.settings.retry.budget;
  }

  /** What must hold whenever all is quiet. */
  judgeAlways(): void {
    const observed = this.#observed();
    for (const invariant of this.#always) {
      const detail = invariant.always?.(observed);
      if (detail !== undefined) this.accuse(invariant.name, detail);
    }
  }

  judge(ask: (invariant: Invariant, observed: Observed) => string | undefined): void {
    const observed = this.#observed();
    for (const invariant of this.#options.invariants) {
      const detail = ask(invariant, observed);
      if (detail !== undefined) this.accuse(invariant.name, detail);
    }
  }

  accuse(invariant: string, detail: string): void {
    this.violations.push({ invariant, detail });
  }

  /** What the host asks before it does something. */
  watch(): HostWatch {
    return {
      spawning: (newcomer) => this.judge((invariant, observed) => invariant.spawning?.(newcomer, observed)),
      signalling: (process, signal) =>
        this.judge((invariant, observed) => invariant.signalling?.(process, signal, observed)),
      wentLive: (child) => this.#countDeadline(child, false),
      seen: (child) => this.#countDeadline(child, true),
      left: (process, end) => {
        this.judge((invariant, observed) => invariant.leaving?.(process, end, observed));
        if (process.live && !process.sentAway) this.tries++;
      },
    };
  }

  /** A start has just failed of this. */
  expectTold(reason: string): void {
    this.#untold = reason;
  }

  /** An epoch tells its supervisor, and so the log and the trace, why it failed. */
  hearFailure({ type, during, reason }: AnyEventObject): void {
    const isTold = during === 'writing the bootstrap' || during === 'starting';
    if (type === 'epoch.failed' && isTold && reason === this.#untold) this.#untold = undefined;
  }

  /** The supervisor tells of its decisions. */
  readonly hear = ({ type, name }: AnyEventObject): void => {
    if (type !== 'restart.decided' && type !== 'restart.ended') return;
    this.judge((invariant, observed) => invariant.reporting?.(type, name, observed));
    this.#restart = type === 'restart.decided' ? name : undefined;
  };

  /**
   * A parent has so long to leave by itself; who is replaced has so long to let its requests finish. Anew for a child that
   * takes a dead one's place, once the supervisor knows of it.
   */
  #countDeadline({ epoch, baseId }: SimulatedProcess, seen: boolean): void {
    const { host } = this.#judged();
    const { parentShutdownMs, parentGraceMs } = this.#options.settings;
    for (const other of host.processes) {
      const isParent = other.baseId === baseId && other.epoch === epoch - 1 && other.supersededSeen === seen;
      // One that was replaced before goes on as it was.
      const isReplaced = !seen && other.baseId !== baseId && other.live && !other.closed && !host.isDoomed(other);
      if (isParent) this.#armDeadline(other, parentShutdownMs + parentGraceMs);
      else if (isReplaced) this.#armDeadline(other, parentShutdownMs);
    }
  }

  /** Anew for a child that starts in a dead one's place. */
  #armDeadline({ pid }: SimulatedProcess, ms: number): void {
    const { clock } = this.#options;
    clock.clearTimeout(this.#deadlines.get(pid) ?? 0);
    this.#overdue.delete(pid);
    // A moment less: sums of paced times are not exact.
    const timer = clock.setTimeout(() => this.#overdue.add(pid), ms - 1);
    this.#deadlines.set(pid, timer);
  }

  get #agentEnds(): boolean {
    return this.#judged().agent?.hasTag('leaving') === true;
  }

  #observed(): Observed {
    const { host, agent, failures } = this.#judged();
    const { settings, baseIds } = this.#options;
    return {
      host,
      wanted: { files: this.content, orders: this.orders },
      triesSinceTrigger: this.tries,
      retryBudget: settings.retry.budget,
      stopOrdered: this.stop !== 'not ordered',
      stopDeadlinePassed: this.stop === 'deadline passed',
      isOverdue: (parent) => this.#overdue.has(parent.pid),
      agentEnds: this.#agentEnds,
      hurried: this.#hurried,
      agentExitCode: agent?.status === 'done' ? agent.output?.exitCode : undefined,
      failures,
      restartsInFull: !settings.hotRestart || baseIds.length < 2,
      restart: this.#restart,
      untold: this.#untold,
    };
  }
}
