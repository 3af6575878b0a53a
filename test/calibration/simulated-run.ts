/** Runs a calibration scenario on the model of Envoy. The scenario's awaited events decide which spontaneous events occur. */
import { type AnyTransitionDefinition, createActor, fromCallback } from 'xstate';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { Reception } from '../../src/simulation/agent/simulated-envoy.machine.ts';
import { envoyOnHost, SimulatedHost, type SimulatedProcess } from '../../src/simulation/agent/simulated-host.ts';
import { type AdminObservation, type Elapsed, type Observation, Observations } from './observations.ts';
import type { CalibrationSignal, CalibrationStep, Family, Scenario, StartStep } from './scenario.ts';

/** Observations of a run, and the visited parts of the model. */
export interface SimulatedRun {
  readonly observed: readonly Observation[];
  readonly receptions: ReadonlySet<Reception>;
  /** State IDs of the model. */
  readonly states: ReadonlySet<string>;
  /** Names as of {@link transitionName}. */
  readonly transitions: ReadonlySet<string>;
}

/** Name such as `envoy.live.alone: child.went-live → envoy.live.superseded`. */
export function transitionName({ source, eventType, target }: AnyTransitionDefinition): string {
  const goal = target === undefined ? 'stays' : target.map(({ id }) => id).join();
  return `${source.id}: ${eventType} → ${goal}`;
}

const baseIds: Readonly<Record<Family, number>> = { main: 1, beside: 2 };
/** More than any scenario needs: ends the run if the model never reaches the awaited state. */
const maxEvents = 100;
const lapTimer = 'lap';

/**
 * Runs all steps of a scenario.
 *
 * @param envoy the model, which a test may break
 * @throws Error if the model never reaches an awaited state
 */
export function runOnModel(scenario: Scenario, envoy = envoyOnHost): SimulatedRun {
  const run = new ModelRun(envoy);
  for (const step of scenario.steps) run.take(step);
  return run;
}

class ModelRun implements SimulatedRun {
  readonly receptions = new Set<Reception>();
  readonly states = new Set<string>();
  readonly transitions = new Set<string>();
  readonly #system = new SymbolicSystem();
  readonly #host: SimulatedHost;
  readonly #observations: Observations;
  readonly #starts = new Map<string, { readonly start: StartStep; readonly pid: number }>();
  /** Processes whose machine has just reached its final state. */
  readonly #exitedProcesses: SimulatedProcess[] = [];
  readonly #families = new Set<Family>();

  constructor(envoy: typeof envoyOnHost) {
    this.#observations = new Observations(() => this.#takeLap());
    this.#system.arm(lapTimer, 0, 'mark');
    const watch = {
      onSpawn: () => {},
      onSignal: () => {},
      onLive: () => {},
      onExit: (process: SimulatedProcess, end: Parameters<Observations['exited']>[1]) => {
        this.#exitedProcesses.push(process);
        this.#observations.exited(this.#nameOf(process), end);
      },
    };
    this.#host = new SimulatedHost(this.#system, watch, 0, envoy);
  }

  get observed(): readonly Observation[] {
    return this.#observations.entries;
  }

  take(step: CalibrationStep): void {
    this.#perform(step);
    this.#settle();
    this.#advanceStarts();
  }

  #perform(step: CalibrationStep): void {
    switch (step.step) {
      case 'start':
        this.#start(step);
        return;
      case 'live':
        this.#runUntil(`${step.name} is live`, () => this.#processOf(step.name)?.isLive === true, step.name);
        this.#observations.occurred(step.name, 'is live');
        return;
      case 'admin open':
        this.#runUntil(`${step.name} has the admin port`, () => this.#hasAdmin(step.name));
        this.#observations.occurred(step.name, 'has the admin port');
        return;
      case 'blocked':
        this.#runUntil(`${step.name} is blocked`, () => this.#isBlocked(step.name), step.name);
        this.#observations.occurred(step.name, 'is blocked');
        return;
      case 'closes':
        this.#runUntil(
          `${step.name} takes no more connections`,
          () => this.#runningProcess(step.name).hasClosedListeners,
        );
        this.#observations.occurred(step.name, 'takes no more connections');
        return;
      case 'exits':
        this.#runUntil(`${step.names.join(' and ')} exit`, () => step.names.every((name) => this.#hasExited(name)));
        this.#observations.leaveOrderOpen(step.names);
        return;
      case 'signal':
        this.#signal(step.name, step.signal);
        return;
      case 'hang':
        this.#signal(step.name, 'SIGTERM');
        this.#host.sendEvent(this.#runningProcess(step.name), 'envoy.hung');
        return;
      case 'drain':
        this.#observations.ordered(`listeners of ${step.name} drain`);
        this.#host.drainListeners(this.#runningProcess(step.name), step);
        return;
      case 'mark':
        this.#observations.ordered('the mark is set');
        this.#host.leaveMark(baseIds.main, 0);
        return;
      case 'repair':
        this.#observations.ordered('the mark is cleared');
        if (!this.#host.repair(baseIds.main)) throw new Error('the model does not allow the repair');
        return;
      case 'lose memory':
        this.#observations.ordered('the shared memory is removed');
        this.#host.removeSharedMemory(baseIds.main);
        return;
      case 'observe':
        this.#observe();
        return;
    }
  }

  #start(start: StartStep): void {
    const { name, epoch, family, drainMs, parentShutdownMs } = start;
    this.#families.add(family);
    this.#observations.ordered(`start of ${name}`);
    this.#starts.set(name, { start, pid: this.#host.spawnCount + 1 });
    const process = this.#host.spawn({
      epoch,
      baseId: baseIds[family],
      generation: { files: 0, orders: 0 },
      effect: createActor(fromCallback(() => {})),
      drainMs,
      parentShutdownMs,
    });
    this.receptions.add(process.envoy.getSnapshot().context.reception);
    process.envoy.system.inspect((event) => {
      if (event.type !== '@xstate.microstep') return;
      for (const transition of event._transitions) this.transitions.add(transitionName(transition));
    });
  }

  #signal(name: string, signal: CalibrationSignal): void {
    this.#observations.signalled(name, signal);
    const process = this.#processOf(name);
    if (process === undefined) return;
    if (signal === 'SIGSEGV') this.#host.sendEvent(process, 'envoy.crashed');
    else this.#host.signal(process, signal);
  }

  #observe(): void {
    const admins = [...this.#families].map((family) => ({ family, admin: this.#adminOf(family) }));
    const servingProcesses = this.#host.processes.filter((process) => this.#host.isAccepting(process));
    this.#observations.recordObservation({ admins, serving: servingProcesses.map((process) => this.#nameOf(process)) });
  }

  #adminOf(family: Family): AdminObservation {
    const process = this.#host.processes.find((one) => one.baseId === baseIds[family] && this.#host.hasAdmin(one));
    if (process === undefined) return 'nobody';
    if (this.#host.isBlocked(process) || this.#host.isHanging(process)) return 'silent';
    return { name: this.#nameOf(process), live: process.isLive, marked: this.#host.seesMark(process) };
  }

  /** @param awaitedProcess process whose `awaited` configuration arrives now */
  #runUntil(awaitedGoal: string, isSo: () => boolean, awaitedProcess?: string): void {
    for (let count = 0; !isSo(); count++) {
      if (count > maxEvents || !this.#triggerNext(awaitedProcess))
        throw new Error(`the model never comes to: ${awaitedGoal}`);
      this.#settle();
      this.#advanceStarts();
    }
  }

  /** Triggers due events first, then the event that an Envoy waits for, then the next timer. @returns whether an event occurred */
  #triggerNext(awaitedProcess: string | undefined): boolean {
    for (const process of this.#host.processes) {
      const { event, withinMs } = this.#host.natureOf(process) ?? {};
      const isConfigured = this.#nameOf(process) === awaitedProcess && this.#configurationOf(process) === 'awaited';
      if (isConfigured && this.#host.hasAdmin(process) && !process.isLive) {
        this.#raise(process, 'envoy.went-live');
        return true;
      }
      if (event !== undefined && withinMs !== undefined) {
        this.#raise(process, event);
        return true;
      }
    }
    this.#system.elapse();
    const [timer] = this.#system.zone.firableTimers();
    if (timer !== undefined) this.#system.fire(timer);
    return timer !== undefined;
  }

  /** Advances starting Envoys as far as their configuration allows, without delay. */
  #advanceStarts(): void {
    for (let process = this.#nextToBringUp(); process !== undefined; process = this.#nextToBringUp()) {
      const configuration = this.#configurationOf(process);
      const { event } = this.#host.natureOf(process)!;
      const fails = event === 'envoy.went-live' ? configuration.endsWith('taken') : configuration === 'broken';
      this.#raise(process, fails ? 'envoy.failed' : event);
      this.#settle();
    }
  }

  /** Time passes only before spontaneous events: the scenario acts without delay. */
  #raise(process: SimulatedProcess, event: Parameters<SimulatedHost['sendEvent']>[1]): void {
    this.#system.elapse();
    this.#host.sendEvent(process, event);
  }

  #nextToBringUp(): SimulatedProcess | undefined {
    return this.#host.processes.find((process) => {
      const nature = this.#host.natureOf(process);
      if (nature === undefined || nature.withinMs !== undefined) return false;
      const configuration = this.#configurationOf(process);
      return nature.event === 'envoy.admin-opened' || (configuration !== 'awaited' && configuration !== 'never there');
    });
  }

  /** When the machines are idle, delivers pending notifications, and records the spontaneous events with their time limits. */
  #settle(): void {
    this.#host.sendPendingReports();
    for (const process of [...this.#exitedProcesses.splice(0), ...this.#host.processes]) this.#note(process);
    const dueTimes = new Map<string, number>();
    for (const process of this.#host.processes) {
      const nature = this.#host.natureOf(process);
      if (nature?.withinMs !== undefined) dueTimes.set(`${nature.event} ${process.pid}`, nature.withinMs);
    }
    for (const name of this.#system.zone.names('within')) if (!dueTimes.has(name)) this.#system.disarm(name);
    for (const [name, ms] of dueTimes) if (!this.#system.zone.has(name)) this.#system.arm(name, ms, 'within');
  }

  #takeLap(): Elapsed {
    const elapsed = {
      minMs: this.#system.zone.minElapsedMs(lapTimer),
      maxMs: this.#system.zone.maxElapsedMs(lapTimer),
    };
    this.#system.disarm(lapTimer);
    this.#system.arm(lapTimer, 0, 'mark');
    return elapsed;
  }

  #note(process: SimulatedProcess): void {
    for (const { id } of process.envoy.getSnapshot()._nodes) this.states.add(id);
  }

  #hasAdmin(name: string): boolean {
    const process = this.#processOf(name);
    return process !== undefined && this.#host.hasAdmin(process);
  }

  #isBlocked(name: string): boolean {
    const process = this.#processOf(name);
    return process !== undefined && this.#host.isBlocked(process);
  }

  #hasExited(name: string): boolean {
    return this.#processOf(name) === undefined;
  }

  #runningProcess(name: string): SimulatedProcess {
    const process = this.#processOf(name);
    if (process === undefined) throw new Error(`in the model ${name} has exited`);
    return process;
  }

  /** `undefined` after the process has exited. */
  #processOf(name: string): SimulatedProcess | undefined {
    const pid = this.#starts.get(name)?.pid;
    if (pid === undefined) throw new Error(`the scenario starts no ${name}`);
    return this.#host.processes.find((process) => process.pid === pid);
  }

  #nameOf({ pid }: SimulatedProcess): string {
    return this.#startOf(pid).name;
  }

  #configurationOf({ pid }: SimulatedProcess): StartStep['configuration'] {
    return this.#startOf(pid).configuration;
  }

  #startOf(pid: number): StartStep {
    return [...this.#starts.values()].find((one) => one.pid === pid)!.start;
  }
}
