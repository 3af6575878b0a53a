/**
 * Candidates for one duty: their charts with the real effects and separate clocks, in front of one Lease on a simulated API server. Checks after each
 * step that at most one candidate would begin a write.
 */
import { type Actor, setup } from 'xstate';
import { electedWriterMachine } from '../../machines/discovery/election/elected-writer.machine.ts';
import { electionsMachine } from '../../machines/discovery/election/elections.machine.ts';
import { leaderMachine } from '../../machines/discovery/election/leader.machine.ts';
import type { ElectionsResigned } from '../../machines/discovery/election/leader-protocol.ts';
import type { Duty, DutyReport, DutyRun } from '../../src/discovery/election/duty.ts';
import { type ElectionCharts, Elections } from '../../src/discovery/election/elections.effects.ts';
import type { ClockReading } from '../../src/discovery/election/leader-term.ts';
import { leaseTimesOf } from '../../src/discovery/election/lease-times.ts';
import type { WriteGate } from '../../src/discovery/election/write-gate.ts';
import { ApiError } from '../../src/discovery/kubernetes/api-failure.ts';
import type { ApiRequest, KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { PacedProcess } from './paced-process.ts';
import { VirtualClock } from './virtual-clock.ts';

export const lease = 'duty';
export const times = leaseTimesOf(15_000);

/** The outcome of the next request: the request or its response is lost or delayed. */
export interface RequestFate {
  readonly lostMessage?: 'request' | 'answer';
  readonly takenAfterMs?: number;
  readonly respondsAfterMs?: number;
}

/** The API server: one Lease, and one object with its last writer and a number. */
class SimulatedLeaseServer {
  isUp = true;
  readonly objects = new Map<string, KubernetesObject>();
  /** Outcome of all later requests; by default each is accepted and gets its response after 5 ms. */
  fate: (request: ApiRequest, of: string) => RequestFate = () => ({});
  readonly acceptedRequests: {
    readonly at: number;
    readonly request: ApiRequest;
    readonly object: KubernetesObject;
  }[] = [];
  readonly #clock: VirtualClock;
  #version = 0;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  get lease(): KubernetesObject | undefined {
    return this.objects.get(lease);
  }

  get holder(): string {
    return String((this.lease?.spec as { holderIdentity?: string } | undefined)?.holderIdentity ?? '');
  }

  /** Sends a request of one replica, on its process's clock. */
  request(of: PacedProcess, name: string, request: ApiRequest, signal: AbortSignal): Promise<KubernetesObject> {
    const { promise, resolve, reject } = Promise.withResolvers<KubernetesObject>();
    const fail = (kind: 'aborted' | 'timeout' | 'unreachable'): void => reject(new ApiError({ kind, message: kind }));
    signal.addEventListener('abort', () => fail('aborted'));
    of.setTimeout(() => fail('timeout'), request.timeoutMs!);
    if (request.permit?.() === false) {
      fail('aborted');
      return promise;
    }
    const { lostMessage, takenAfterMs = 2, respondsAfterMs = 3 } = this.fate(request, name);
    const respond = (work: () => KubernetesObject): void => {
      let timer: () => void;
      try {
        const object = structuredClone(work());
        timer = () => resolve(object);
      } catch (error) {
        timer = () => reject(error);
      }
      if (lostMessage !== 'answer') this.#clock.setTimeout(() => of.whenAwake(timer), respondsAfterMs);
    };
    if (!this.isUp) this.#clock.setTimeout(() => of.whenAwake(() => fail('unreachable')), respondsAfterMs);
    else if (lostMessage !== 'request')
      this.#clock.setTimeout(() => this.isUp && respond(() => this.#applyRequest(request)), takenAfterMs);
    return promise;
  }

  /** Writes an object as another client. */
  put(name: string, object: Omit<KubernetesObject, 'metadata'>): void {
    this.objects.set(name, { ...object, metadata: { name, resourceVersion: String(++this.#version) } });
  }

  #applyRequest(request: ApiRequest): KubernetesObject {
    const { method, body } = request;
    const writtenObject = structuredClone(body) as KubernetesObject | undefined;
    const name = request.name ?? writtenObject!.metadata.name;
    const previous = this.objects.get(name);
    if (method === 'GET') return previous ?? throwApiError(404, 'NotFound');
    if (
      method === 'POST'
        ? previous !== undefined
        : writtenObject!.metadata.resourceVersion !== previous?.metadata.resourceVersion
    )
      return throwApiError(409, 'Conflict');
    this.put(name, writtenObject!);
    const object = this.objects.get(name)!;
    this.acceptedRequests.push({ at: this.#clock.now(), request, object });
    return object;
  }
}

function throwApiError(code: number, reason: string): never {
  throw new ApiError({ kind: 'status', code, reason, message: reason, causes: [] });
}

/** A duty that writes one object each time a test orders it. */
class CountingDuty implements Duty {
  readonly lease = lease;
  readonly runs: (DutyRun & { readonly at: number })[] = [];
  /** Number of failures that the next runs report; an error is an internal error. */
  nextFailure: number | Error = 0;
  readonly #now: () => number;
  readonly #watchers = new Set<() => void>();
  isDue = false;

  constructor(now: () => number) {
    this.#now = now;
  }

  watch(onDue: () => void): () => void {
    this.#watchers.add(onDue);
    return () => void this.#watchers.delete(onDue);
  }

  becomeDue(): void {
    this.isDue = true;
    for (const onDue of this.#watchers) onDue();
  }

  async writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport> {
    this.runs.push({ ...run, at: this.#now() });
    this.isDue = false;
    if (this.nextFailure instanceof Error) throw this.nextFailure;
    if (this.nextFailure > 0) return { writtenCount: 0, failedCount: this.nextFailure, reason: 'refused' };
    return { writtenCount: gate.isOpen ? 1 : 0, failedCount: 0, reason: '' };
  }
}

type Port = (request: ApiRequest, signal: AbortSignal) => Promise<KubernetesObject>;

export interface ReplicaOptions {
  /** Rate of the replica's clocks; 1 is correct. */
  readonly rate?: number;
  /** Whether its monotonic clock stops while it is paused. */
  readonly suspends?: boolean;
  /** A layer between the replica and the API server that adds deliberate faults. */
  readonly port?: (request: Port) => Port;
  readonly clocks?: (moment: ClockReading) => ClockReading;
  /** Charts with deliberate faults. */
  readonly charts?: Partial<ElectionCharts>;
  readonly recordsNothing?: boolean;
}

/** The part of the control plane that elections use. */
const rootOf = (elections: typeof electionsMachine) =>
  setup({ types: { events: {} as ElectionsResigned, input: {} as never }, actors: { elections } }).createMachine({
    id: 'discovery',
    invoke: {
      id: 'elections',
      src: 'elections',
      input: { leaders: [{ lease, times }], presence: lease },
    },
    on: { 'elections.resigned': {} },
  });

export const rootMachine = rootOf(electionsMachine);

export class Replica {
  static readonly instances: Replica[] = [];
  readonly name: string;
  readonly process: PacedProcess;
  readonly duty: CountingDuty;
  readonly elections: Elections;
  readonly records: TraceRecord[] = [];
  failure: unknown;
  readonly actor: Actor<typeof rootMachine>;

  constructor(
    name: string,
    server: SimulatedLeaseServer,
    clock: VirtualClock,
    {
      rate = 1,
      suspends = false,
      port = (one) => one,
      clocks = (one) => one,
      charts,
      recordsNothing = false,
    }: ReplicaOptions = {},
  ) {
    this.name = name;
    this.process = new PacedProcess(clock, rate, suspends);
    this.duty = new CountingDuty(clock.now);
    const clients = { request: port((request, signal) => server.request(this.process, name, request, signal)) };
    let draws = 0;
    this.elections = new Elections({
      ...{
        server: clients,
        leaseServer: clients,
        namespace: 'istio-system',
        identity: name,
        duties: [this.duty],
        presence: lease,
        times,
      },
      now: () => clocks(this.process.clockReading),
      draw: () => (draws++ * 0.618) % 1,
    });
    const recorder = createRecorder({ program: 'pilot-discovery', now: clock.now });
    if (!recordsNothing) {
      Replica.instances.push(this);
      recorder.observe((record) => this.records.push(record));
    }
    const machine = this.elections.machine({ leader: leaderMachine, writer: electedWriterMachine, ...charts });
    this.actor = startRoot(rootOf(machine), {
      ...{ id: 'discovery', input: undefined as never, clock: this.process as never },
      ...(!recordsNothing && { recorder }),
      onError: (error) => {
        this.failure = error;
      },
    }) as Actor<typeof rootMachine>;
    this.order('elections.join');
  }

  order(type: 'elections.join' | 'elections.resign'): void {
    this.actor.getSnapshot().children.elections!.send({ type });
  }

  get isLeader(): boolean {
    return this.elections.isLeader(lease);
  }

  /** State of its leader's chart; `gone` after the end. */
  get state(): string {
    const elections = this.actor.getSnapshot().children.elections?.getSnapshot();
    const value = elections?.children['leader-1']?.getSnapshot().value ?? 'gone';
    return JSON.stringify(value).replaceAll(/["{}]/g, '').replaceAll(':', '.');
  }

  end(): void {
    this.actor.stop();
    this.process.end();
  }
}

export class LeaderWorld {
  readonly clock = new VirtualClock();
  readonly server = new SimulatedLeaseServer(this.clock);
  readonly replicas: Replica[] = [];
  readonly violations: string[] = [];

  start(name: string, options: ReplicaOptions = {}): Replica {
    const replica = new Replica(name, this.server, this.clock, options);
    this.replicas.push(replica);
    return replica;
  }

  get leaders(): string[] {
    return this.replicas.filter(({ isLeader }) => isLeader).map(({ name }) => name);
  }

  /** The process exits, and its connections close. */
  kill(replica: Replica): void {
    replica.end();
    this.replicas.splice(this.replicas.indexOf(replica), 1);
  }

  async passTime(ms: number): Promise<void> {
    const untilMs = this.clock.now() + ms;
    await this.#settle();
    for (let next = this.clock.nextDueMs(); next !== undefined && next <= untilMs; next = this.clock.nextDueMs()) {
      // A term ends just before any other event at that time.
      this.#checkInvariants();
      while (this.clock.nextDueMs() === next) this.clock.fireNext();
      await this.#settle();
    }
    this.clock.advance(untilMs - this.clock.now());
  }

  end(): void {
    for (const replica of this.replicas) replica.end();
  }

  async #settle(): Promise<void> {
    for (let tick = 0; tick < 30; tick++) await Promise.resolve();
    this.#checkInvariants();
  }

  #checkInvariants(): void {
    if (this.leaders.length > 1) this.violations.push(`${this.leaders} lead at ${this.clock.now()}`);
    for (const { name, failure } of this.replicas)
      if (failure !== undefined) this.violations.push(`${name}: ${failure}`);
  }
}
