/**
 * The agent's real statecharts on a simulated host with concrete times: each timer fires when it is due, and events outside the agent's control (a
 * start, an exit, a response to a probe) occur at random times within measured bounds. Faults are switched on and off from outside.
 */
import type { AnyActorRef, InspectionEvent } from 'xstate';
import type { PreparedEpoch, PrepareOrder } from '../../machines/agent/envoy/epoch.machine.ts';
import type { ProcessSignal } from '../../machines/agent/protocol.ts';
import type { AgentSettings } from '../../machines/agent/settings.ts';
import type { EnvoyProbe } from '../../machines/agent/status-protocol.ts';
import { type RunningEffect, reportEvent, settleCall } from '../../src/debugger/explore/scripted-effect.ts';
import {
  type DirectoryWatchInput,
  noPendingFiles,
  type ScriptedAgent,
  worldOf,
} from '../../src/simulation/agent/exploration-effects.ts';
import type { Invariant } from '../../src/simulation/agent/invariants/invariant.ts';
import { SimulatedHost } from '../../src/simulation/agent/simulated-host.ts';
import { ConcreteSystem } from './concrete-system.ts';
import { RandomDurations } from './nature.ts';
import { PacedClock } from './paced-clock.ts';
import { PendingCalls } from './random-calls.ts';
import type { RandomEffectWorld } from './random-effects.ts';
import { EnvoyTimes } from './random-envoys.ts';
import { CertificateFiles } from './random-files.ts';
import { type AgentSnapshot, Ledger } from './random-ledger.ts';
import { type LastingFault, type Schedule, settingsKinds } from './random-schedule.ts';
import { RandomWatch, type WatchFault } from './random-watch.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface RandomWorldOptions {
  readonly invariants: readonly Invariant[];
  readonly inspect?: (event: InspectionEvent) => void;
  /** Runs after each iteration of the agent's event loop. */
  readonly onTurn?: () => void;
}

type Run = { epoch: number; baseId: number };

/** Durations of the real effects. */
const maxDurations = { claimMs: 50, readMs: 50, repairMs: 20, prepareMs: 900 };
/** Errors of a folder that accepts no files. */
const diskErrors = {
  'folder full': 'ENOSPC: no space left on device',
  'folder read-only': 'EROFS: read-only file system',
  'folder gone': 'ENOENT: no such file or directory',
  'no room for pipes': 'EACCES: permission denied',
} satisfies Partial<Record<LastingFault, string>>;
const folderFaults = ['folder full', 'folder read-only', 'folder gone'] as const;
/** Limits a watch that fails repeatedly. */
export const watchIsSpared = 'a failed watch is retried with growing delays';

const keyOf = ({ epoch, baseId }: Run): string => `${baseId}/${epoch}`;

export class RandomWorld implements RandomEffectWorld {
  readonly clock = new VirtualClock();
  /** The agent's clock. */
  readonly pacedClock = new PacedClock(this.clock);
  readonly host: SimulatedHost;
  readonly ledger: Ledger;
  readonly #failures: string[] = [];
  readonly #agents = new ConcreteSystem(this.pacedClock, this.#failures);
  readonly #envoys = new ConcreteSystem(this.clock, this.#failures);
  readonly #agent: AnyActorRef;
  readonly schedule: Schedule;
  readonly #onTurn: (() => void) | undefined;
  readonly #settings: AgentSettings;
  readonly #durations: RandomDurations;
  readonly #lastingFaults = new Set<LastingFault>();
  readonly #calls = new PendingCalls(this.clock);
  readonly #files = new CertificateFiles();
  readonly #watch: RandomWatch;
  readonly #times: EnvoyTimes;
  readonly #prepareCalls = new Set<AnyActorRef>();
  readonly #probes = new Map<string, AnyActorRef>();
  readonly #slownessByPid = new Map<number, number>();
  readonly #occasionCounts = new Map<string, number>();
  #signals: AnyActorRef | undefined;
  #http: AnyActorRef | undefined;
  #fileWait: AnyActorRef | undefined;
  #releaseCall: AnyActorRef | undefined;
  #adminOf: number | undefined;
  /** Number of Envoys that have started to serve: probes of earlier ones get no response. */
  #serverStarts = 0;
  /** Number of bootstraps to reject, and the delay of the next Envoy. */
  pendingRefusals = 0;
  slowerMs = 0;

  constructor(agent: ScriptedAgent, schedule: Schedule, { invariants, inspect, onTurn }: RandomWorldOptions) {
    const { startConditions, durationSeed } = schedule;
    const settings = settingsKinds[schedule.settings];
    this.schedule = schedule;
    this.#onTurn = onTurn;
    this.#settings = settings;
    this.#durations = new RandomDurations(durationSeed);
    this.ledger = new Ledger({ invariants, settings, baseIds: this.#baseIds, clock: this.pacedClock }, () => ({
      host: this.host,
      agent: this.#agent?.getSnapshot() as AgentSnapshot | undefined,
      failures: this.#failures,
      prepareCount: this.#prepareCalls.size,
    }));
    this.host = new SimulatedHost(this.#envoys, this.ledger.watch(), settings.parentShutdownMs);
    this.#watch = new RandomWatch(() => this.#contents, this.pacedClock.now);
    this.#times = new EnvoyTimes({
      host: this.host,
      clock: this.clock,
      durations: this.#durations,
      probeOf: (process) => this.#probes.get(keyOf(process)),
      slownessOf: (pid) => this.#slownessByPid.get(pid) ?? 0,
    });
    if (startConditions === 'no files') this.changeFiles('missing');
    if (startConditions === 'half written') this.changeFiles('half written');
    // An agent that cannot start must end.
    if (startConditions === 'no base id' || startConditions === 'status port taken') this.ledger.orderStop();
    this.#agent = this.#agents.start(agent, {
      id: 'agent',
      input: { settings },
      inspect: this.#isDiskFaulty ? this.#inspector(inspect) : inspect,
      onEvent: this.ledger.handleReport,
      created: (root) => worldOf.set(root.system, this),
    });
    this.#settle();
  }

  get #baseIds(): number[] {
    return this.schedule.startConditions === 'one base id' ? [7] : [7, 8];
  }

  get #isDiskFaulty(): boolean {
    return this.schedule.steps.some(({ scheduledEvent }) => scheduledEvent.kind in diskErrors);
  }

  /** Failures of epochs are events between two actors within the agent. */
  #inspector(inspect: RandomWorldOptions['inspect']): (event: InspectionEvent) => void {
    return (event) => {
      inspect?.(event);
      if (event.type === '@xstate.event') this.ledger.handleFailure(event.event);
    };
  }

  get agent(): AgentSnapshot {
    return this.#agent.getSnapshot() as AgentSnapshot;
  }

  /** Whether the agent has exited, or there is a violation. */
  get isOver(): boolean {
    return this.agent.status !== 'active' || this.ledger.violations.length > 0;
  }

  // ---- time

  /** Runs the next spontaneous event; false when no event is pending. */
  next(): boolean {
    const fired = this.clock.fireNext();
    this.#settle();
    return fired;
  }

  passTime(ms: number): void {
    const untilMs = this.clock.now() + ms;
    for (
      let dueAt = this.clock.nextDueMs();
      dueAt !== undefined && dueAt <= untilMs && !this.isOver;
      dueAt = this.clock.nextDueMs()
    ) {
      this.next();
    }
    if (!this.isOver) this.clock.advance(untilMs - this.clock.now());
  }

  // ---- faults and orders; `runAction` runs their consequences

  runAction(action: () => void): void {
    action();
    this.#settle();
  }

  deliverSignal(signal: string): void {
    if (this.#signals !== undefined) reportEvent(this.#signals, { type: 'signal.received', signal });
  }

  /** Sends an HTTP call at the status port, or the end of its server. */
  http(event: { type: string; reason?: string; request?: number }): void {
    if (this.#http !== undefined) reportEvent(this.#http, event);
  }

  get hasHttp(): boolean {
    return this.#http !== undefined;
  }

  changeFiles(to: Parameters<CertificateFiles['change']>[0]): void {
    this.#files.change(to, Math.max(0, ...this.host.processes.map(({ generation }) => generation.files)));
    this.ledger.content = this.#files.content;
    this.#watch.notifyChange();
    if (to !== 'missing' && this.#fileWait !== undefined) this.#reportFilesPresent(this.#fileWait);
  }

  beginFault(fault: LastingFault, forMs: number): void {
    this.#lastingFaults.add(fault);
    this.clock.setTimeout(() => this.#lastingFaults.delete(fault), forMs);
  }

  get #contents(): string {
    return `${this.#files.read().digest} ${this.#files.state}`;
  }

  beginWatchFault(fault: WatchFault, forMs: number): void {
    if (fault === 'directory gone') this.changeFiles('missing');
    this.#watch.beginFault(fault);
    this.clock.setTimeout(() => this.#endWatchFault(fault), forMs);
  }

  #endWatchFault(fault: WatchFault): void {
    this.#watch.endFault(fault);
    if (fault === 'directory gone' && this.#files.state === 'missing') this.changeFiles('fine');
  }

  /** Ends every fault permanently. */
  endFaults(): void {
    this.pendingRefusals = 0;
    this.slowerMs = 0;
    this.#lastingFaults.clear();
    for (const fault of ['watch fails', 'watch hangs', 'directory gone'] as const) this.#endWatchFault(fault);
    this.pacedClock.setPace(1);
    if (this.#files.state !== 'fine') this.changeFiles('fine');
  }

  // ---- requests of the effects

  startClaim(call: AnyActorRef): void {
    const result =
      this.schedule.startConditions === 'no base id'
        ? { error: new Error('every base id is taken') }
        : { value: { baseIds: this.#baseIds, sweptFiles: [] } };
    this.#calls.respond(call, result, this.#durations.drawMostlyShort(maxDurations.claimMs, 'claim'));
  }

  setSignals(self: AnyActorRef | undefined): void {
    this.#signals = self;
  }

  setWatch({ self, input }: RunningEffect<DirectoryWatchInput>, isOn: boolean): void {
    if (!isOn) {
      this.#calls.cancelCall(self);
      this.#watch.stop(self);
      return;
    }
    // A check of the directory takes time; a change since it was ordered is reported.
    const seenContents = input.knownHash ?? this.#contents;
    this.#calls.runLater(self, 0, () => {
      const tooOften = this.#watch.start(self, seenContents);
      if (tooOften !== undefined) this.ledger.recordViolation(watchIsSpared, tooOften);
    });
  }

  serveStatus(http: AnyActorRef, isOn: boolean): void {
    this.#http = isOn ? http : undefined;
    if (!isOn) return;
    if (this.schedule.startConditions === 'status port taken')
      reportEvent(http, { type: 'http.failed', reason: 'EADDRINUSE' });
    else reportEvent(http, { type: 'http.listening', port: 15020 });
  }

  statusOrder(
    http: AnyActorRef,
    order: { type: string; request?: number; baseId?: number; at?: EnvoyProbe['at'] },
  ): void {
    if (order.type === 'admin.use') {
      this.#serverStarts++;
      this.#adminOf = order.baseId;
    }
    if (order.type !== 'envoy.probe') return;
    const ms = this.#durations.drawMostlyShort(20, this.#nextOccasion('ask'));
    const servings = this.#serverStarts;
    this.clock.setTimeout(() => {
      if (this.#serverStarts !== servings) return;
      const event = {
        type: 'envoy.responded',
        request: order.request,
        ...this.host.responseOf(order.at ?? 'admin', this.#adminOf),
      };
      reportEvent(http, event);
    }, ms);
  }

  setFileWait(call: AnyActorRef, isOn: boolean): void {
    this.#fileWait = isOn ? call : undefined;
    if (!isOn) this.#calls.cancelCall(call);
    // Files that already exist cause no watch event: without this report, the chart would wait until its time limit.
    else if (this.#files.state !== 'missing') this.#reportFilesPresent(call);
  }

  #reportFilesPresent(wait: AnyActorRef): void {
    this.#calls.runLater(wait, 0, () => reportEvent(wait, noPendingFiles));
  }

  readFiles(): string {
    return this.#files.read().digest;
  }

  setFileRead(call: AnyActorRef, isOn: boolean): void {
    if (!isOn) {
      this.#calls.cancelCall(call);
      return;
    }
    const reading = this.#files.read();
    const endReading = this.#files.beginReading();
    this.#calls.runLater(call, this.#durations.drawMostlyShort(maxDurations.readMs, this.#nextOccasion('read')), () => {
      if (endReading()) this.ledger.beginTask();
      settleCall(call, { value: reading });
    });
  }

  startPreparing({ input, self }: RunningEffect<PrepareOrder>): void {
    this.host.recordAttempt(input.baseId);
    const { digest } = this.#files.read();
    const isOutdated = input.certificates !== null && input.certificates !== digest;
    this.#prepareCalls.add(self);
    this.ledger.triesSinceTask++;
    this.#calls.runLater(
      self,
      3 + this.#durations.drawMostlyShort(maxDurations.prepareMs, this.#nextOccasion('prepare')),
      () => {
        this.#prepareCalls.delete(self);
        settleCall(self, isOutdated ? { value: { outdated: 'other certificates' } } : this.#bootstrap(input));
      },
    );
  }

  stopPreparing({ self }: RunningEffect<Run>): void {
    this.#prepareCalls.delete(self);
    this.#calls.cancelCall(self);
  }

  spawn({ input: { epoch, baseId }, self }: RunningEffect<Run>): void {
    const diskError = this.#diskErrorOf('no room for pipes');
    if (diskError !== undefined) {
      this.ledger.expectReport(diskError);
      reportEvent(self, { type: 'process.failed', reason: diskError });
      return;
    }
    if (this.#lastingFaults.has('no processes')) {
      reportEvent(self, { type: 'process.failed', reason: 'spawn EAGAIN' });
      return;
    }
    const generation = { files: this.ledger.content, orders: this.ledger.restartOrders };
    const { pid } = this.host.spawn({ epoch, baseId, generation, effect: self });
    this.#slownessByPid.set(pid, this.slowerMs);
    this.slowerMs = 0;
    reportEvent(self, { type: 'process.spawned', pid, startedAtMs: 0 });
  }

  signal({ self }: RunningEffect<unknown>, signal: ProcessSignal['signal']): void {
    const process = this.host.processOfEffect(self);
    if (process !== undefined) this.host.signal(process, signal);
  }

  abandonProcess({ self }: RunningEffect<unknown>): void {
    const process = this.host.processOfEffect(self);
    if (process !== undefined) this.host.kill(process);
  }

  setProbing({ input, self }: RunningEffect<Run>, isOn: boolean): void {
    const key = keyOf(input);
    if (isOn) {
      this.#probes.set(key, self);
    } else if (this.#probes.get(key) === self) {
      this.#probes.delete(key);
      this.#calls.cancelCall(self);
    }
  }

  explain({ self }: RunningEffect<Run>): void {
    this.#calls.runLater(self, this.#durations.drawMostlyShort(20, this.#nextOccasion('look')), () =>
      reportEvent(self, { type: 'probe.waiting', reason: 'Envoy is initializing' }),
    );
  }

  probeNow({ input, self }: RunningEffect<Run>): void {
    const ms = this.#durations.drawMostlyShort(20, this.#nextOccasion('look'));
    this.clock.setTimeout(() => {
      const process = this.host.processes.find((other) => keyOf(other) === keyOf(input) && this.host.hasAdmin(other));
      if (process !== undefined && this.host.isBlocked(process)) return;
      if (process?.isLive !== true || process.exitRequested) reportEvent(self, { type: 'probe.failed', reason: '503' });
      else this.#times.reportLive(process);
    }, ms);
  }

  drain({ replaced, ...run }: Run & { replaced: boolean }): boolean {
    if (this.#lastingFaults.has('admin unheard')) return false;
    const process = this.host.processes.find((other) => keyOf(other) === keyOf(run) && this.host.hasAdmin(other));
    if (process === undefined || this.host.isBlocked(process)) return false;
    this.ledger.checkInvariants((invariant, observed) => invariant.onDrain?.(process, observed));
    if (replaced) this.host.drainListeners(process);
    return true;
  }

  startRepair({ input, self }: RunningEffect<{ baseId: number }>): void {
    const repaired = !this.#lastingFaults.has('no repair') && this.host.repair(input.baseId);
    settleCall(self, repaired ? { value: undefined } : { error: new Error('an epoch initializes') });
  }

  release({ self }: RunningEffect<unknown>): void {
    this.#releaseCall = self;
    for (const process of this.host.processes) this.host.kill(process);
  }

  // ---- continuation

  #bootstrap({ validate, adminPort }: PrepareOrder): { value: PreparedEpoch } | { error: Error } {
    // The Envoy that checks the bootstrap needs a pipe, too.
    const unwritable = this.#diskErrorOf(...(validate ? (['no room for pipes'] as const) : []));
    if (unwritable !== undefined) {
      this.ledger.expectReport(unwritable);
      return { value: { unwritable } };
    }
    if (this.pendingRefusals === 0) return { value: { configFile: 'envoy.json', adminPort } };
    this.pendingRefusals--;
    return { error: new Error('no such field: bogus') };
  }

  /** The operating system's error for the folder, or for the pipes' folder where requested. */
  #diskErrorOf(...faults: readonly (keyof typeof diskErrors)[]): string | undefined {
    const lasting = [...folderFaults, ...faults].find((fault) => this.#lastingFaults.has(fault));
    return lasting === undefined ? undefined : diskErrors[lasting];
  }

  #settle(): void {
    this.host.sendPendingReports();
    if (this.#releaseCall !== undefined && this.host.processes.length === 0) {
      const call = this.#releaseCall;
      this.#releaseCall = undefined;
      settleCall(call, { value: undefined });
    }
    this.#times.scheduleEvents({
      sourcesAway: this.#lastingFaults.has('sources away'),
      deafToSigterm: this.#lastingFaults.has('deaf to SIGTERM'),
    });
    this.ledger.judgeAlways();
    this.#onTurn?.();
  }

  /** Name of the n-th occasion of a kind: its random values do not depend on other events. */
  #nextOccasion(name: string): string {
    const n = (this.#occasionCounts.get(name) ?? 0) + 1;
    this.#occasionCounts.set(name, n);
    return `${name} ${n}`;
  }
}
