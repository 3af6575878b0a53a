/** Effects of the chart `elections`: reads and writes Leases, opens and closes gates, and runs duties. */
import {
  electedWriterMachine,
  type WriteOutcome,
  type WriteRun,
} from '../../../machines/discovery/election/elected-writer.machine.ts';
import { type ElectionsInput, electionsMachine } from '../../../machines/discovery/election/elections.machine.ts';
import {
  type LeaseAnswer,
  type LeaseOrder,
  type LeaseSighting,
  type LeaseTimes,
  leaderMachine,
} from '../../../machines/discovery/election/leader.machine.ts';
import type { DutyDue, LeaseName } from '../../../machines/discovery/election/leader-protocol.ts';
import { ApiError, statusOf } from '../kubernetes/api-failure.ts';
import { apiVersionOf, leases } from '../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import type { Duty } from './duty.ts';
import { electedWriterWithEffects } from './elected-writer.effects.ts';
import { leaderWithEffects } from './leader.effects.ts';
import { elapsedMs, type Moment } from './leader-term.ts';
import { heldLease, releasedLease, sightingOf } from './lease.ts';
import { mistakeIn, writeLimitMs } from './lease-times.ts';
import { WriteGate } from './write-gate.ts';

export interface ElectionsOptions {
  /** A connection for Leases alone: what is written otherwise must not hold up a renewal. */
  readonly leaseServer: Pick<ApiServer, 'request'>;
  /** The connection for what duties write. */
  readonly server: Pick<ApiServer, 'request'>;
  /** Namespace of the Leases. */
  readonly namespace: string;
  /** Name of this process, which no other one ever has. */
  readonly identity: string;
  readonly duties: readonly Duty[];
  /** The Lease of this replica's presence, which one of the duties has. */
  readonly presence: LeaseName;
  readonly times: LeaseTimes;
  readonly now: () => Moment;
  /** Draws a number from 0 to 1: randomness for the charts. */
  readonly draw: () => number;
}

/** Tests have others, which are broken on purpose. */
export interface ElectionCharts {
  readonly leader: typeof leaderMachine;
  readonly writer: typeof electedWriterMachine;
}

interface Election {
  readonly duty: Duty;
  /** The Lease as it was read or written last. */
  lease: KubernetesObject | undefined;
  /** What its holder wrote, and when that was seen first. */
  seen: { readonly record: string; readonly at: Moment } | undefined;
  /** Gate of the last term. Each term has its own: what a run of an earlier one still asks for is refused. */
  gate: WriteGate;
  /** Ends with the last run: two of one duty would write the same objects. */
  running: Promise<unknown>;
  /** Something is due, and the chart knows. */
  isTold: boolean;
}

export class Elections {
  readonly #options: ElectionsOptions;
  readonly #elections: ReadonlyMap<LeaseName, Election>;

  /** @throws Error for duties that share a Lease, and for times by which two could lead, and if no duty has the Lease of the presence */
  constructor(options: ElectionsOptions) {
    const mistake = mistakeIn(options.times);
    if (mistake !== undefined) throw new Error(mistake);
    this.#options = options;
    this.#elections = new Map(
      options.duties.map((duty): [LeaseName, Election] => [
        duty.lease,
        {
          ...{ duty, lease: undefined, seen: undefined, gate: this.#newGate() },
          ...{ running: Promise.resolve(), isTold: false },
        },
      ]),
    );
    if (this.#elections.size < options.duties.length) throw new Error('two duties have one Lease');
    if (options.duties.length > 0) this.#of(options.presence);
  }

  /** Input of the chart; null: there is no duty. */
  get input(): ElectionsInput | null {
    const { times, presence } = this.#options;
    const leaders = [...this.#elections.keys()].map((lease) => ({ lease, times }));
    return leaders.length === 0 ? null : { leaders, presence };
  }

  /** Whether this replica may write for the duty now, by its own word. */
  leads(lease: LeaseName): boolean {
    return this.#of(lease).gate.isOpen;
  }

  machine(charts: ElectionCharts = { leader: leaderMachine, writer: electedWriterMachine }): typeof electionsMachine {
    const electedWriter = electedWriterWithEffects(
      {
        watch: (lease, due) => this.#watch(lease, due),
        write: (run) => this.#writeDuty(run),
      },
      charts.writer,
    );
    const leader = leaderWithEffects(
      {
        electedWriter,
        readLease: (lease, signal) => this.#readLease(lease, signal),
        writeLease: (order, signal) => this.#writeLease(order, signal),
        finishWrites: (lease) => this.#of(lease).gate.idle(),
        beginTerm: ({ lease, sent, termMs }) => {
          const election = this.#of(lease);
          election.gate = this.#newGate();
          election.gate.extend(sent, termMs);
        },
        extendTerm: ({ lease, sent, termMs }) => this.#of(lease).gate.extend(sent, termMs),
        endTerm: ({ lease, giveUp }) => this.#of(lease).gate.close({ giveUp }),
      },
      charts.leader,
    );
    return electionsMachine.provide({ actors: { leader } });
  }

  #newGate(): WriteGate {
    const { server, now, times } = this.#options;
    return new WriteGate({ server, now, writeMs: writeLimitMs(times) });
  }

  #of(lease: LeaseName): Election {
    const election = this.#elections.get(lease);
    if (election === undefined) throw new Error(`no election for Lease ${lease}`);
    return election;
  }

  async #readLease(name: LeaseName, signal: AbortSignal): Promise<LeaseSighting> {
    const { leaseServer, namespace, identity, times, draw, now } = this.#options;
    const election = this.#of(name);
    try {
      const order = { method: 'GET', resource: leases, namespace, name, timeoutMs: times.answerMs } as const;
      const lease = await leaseServer.request(order, signal);
      const sighting = sightingOf(lease, identity, times.leaseMs);
      election.lease = lease;
      if (election.seen?.record !== sighting.record) election.seen = { record: sighting.record, at: now() };
      return { ...sighting, draw: draw() };
    } catch (error) {
      if (statusOf(error) !== 404) return this.#failed(error);
      election.lease = undefined;
      election.seen = undefined;
      return { outcome: 'absent', draw: draw() };
    }
  }

  async #writeLease({ lease: name, deed, version }: LeaseOrder, signal: AbortSignal): Promise<LeaseAnswer> {
    const { leaseServer, namespace, times, draw, now } = this.#options;
    const election = this.#of(name);
    const before = version === '' ? undefined : election.lease;
    const leftMs = deed === 'claim' && before !== undefined ? this.#leftMs(election, before) : 0;
    if (leftMs > 0) return { outcome: 'early', leftMs, draw: draw() };
    // The Lease is another one than the chart speaks of: a request that nobody waited for has read it since.
    if (before?.metadata.resourceVersion !== (version === '' ? undefined : version)) {
      return { outcome: 'conflict', draw: draw() };
    }
    const body = this.#bodyOf(name, deed, before);
    const sent = now();
    const where = { resource: leases, namespace, body, timeoutMs: times.answerMs };
    try {
      const lease = await leaseServer.request(
        before === undefined ? { method: 'POST', ...where } : { method: 'PUT', name, ...where },
        signal,
      );
      election.lease = lease;
      const tookMs = elapsedMs(sent, now());
      return {
        outcome: 'taken',
        version: lease.metadata.resourceVersion ?? '',
        sent: { ...sent },
        tookMs,
        draw: draw(),
      };
    } catch (error) {
      const isConflict = statusOf(error) === 409 || (statusOf(error) === 404 && before !== undefined);
      return isConflict ? { outcome: 'conflict', draw: draw() } : this.#failed(error);
    }
  }

  /**
   * What is left of another holder's time. The chart has waited for it; where this process was stopped or busy just when the record came, its
   * timer began too early. The clock that stands still in a suspended machine is the one that never says too much.
   */
  #leftMs({ seen }: Election, lease: KubernetesObject): number {
    const { identity, times, now } = this.#options;
    const { holder, leaseMs, record } = sightingOf(lease, identity, times.leaseMs);
    if (holder !== 'another' || seen?.record !== record) return 0;
    return Math.max(0, Math.ceil(leaseMs - (now().monotonicMs - seen.at.monotonicMs)));
  }

  #bodyOf(name: LeaseName, deed: LeaseOrder['deed'], before: KubernetesObject | undefined): object {
    const { namespace, identity, times, now } = this.#options;
    const nowMs = now().wallMs;
    if (deed === 'release' && before !== undefined) return releasedLease(before, nowMs);
    const annotations = this.#of(name).duty.leaseAnnotations?.();
    const held = heldLease(before, { identity, leaseMs: times.leaseMs, nowMs, ...(annotations && { annotations }) });
    const typed = { apiVersion: apiVersionOf(leases), kind: leases.kind };
    const metadata = { name, namespace, ...(annotations && { annotations }) };
    return before === undefined ? { ...typed, metadata, ...held } : held;
  }

  #failed(error: unknown): Extract<LeaseAnswer, { outcome: 'failed' }> {
    const failure = error instanceof ApiError ? error.failure : undefined;
    const retryAfterMs = failure?.kind === 'status' ? (failure.retryAfterMs ?? 0) : 0;
    return { outcome: 'failed', reason: failure?.message ?? String(error), retryAfterMs, draw: this.#options.draw() };
  }

  #watch(lease: LeaseName, tell: (due: DutyDue) => void): () => void {
    const election = this.#of(lease);
    election.isTold = false;
    return election.duty.watch(() => {
      // Ten thousand objects are one event.
      if (election.isTold) return;
      election.isTold = true;
      tell({ type: 'duty.due' });
    });
  }

  async #writeDuty({ lease, retry, anew }: WriteRun): Promise<WriteOutcome> {
    const election = this.#of(lease);
    const { gate } = election;
    await election.running;
    election.isTold = false;
    const run = election.duty.writeDue({ retry, anew }, gate);
    election.running = run.catch(() => {});
    const { written, failed, reason } = await run;
    return { written, failed, reason };
  }
}
