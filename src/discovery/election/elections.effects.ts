import {
  electedWriterMachine,
  type WriteOutcome,
  type WriteRun,
} from '../../../machines/discovery/election/elected-writer.machine.ts';
import { type ElectionsInput, electionsMachine } from '../../../machines/discovery/election/elections.machine.ts';
import {
  type LeaseOrder,
  type LeaseSighting,
  type LeaseTimes,
  type LeaseWriteResult,
  leaderMachine,
} from '../../../machines/discovery/election/leader.machine.ts';
import type { DutyDue, LeaseName } from '../../../machines/discovery/election/leader-protocol.ts';
import { ApiError, statusOf } from '../kubernetes/api-failure.ts';
import { apiVersionOf, leases } from '../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import type { Duty } from './duty.ts';
import { electedWriterWithEffects } from './elected-writer.effects.ts';
import { leaderWithEffects } from './leader.effects.ts';
import { type ClockReading, elapsedMs } from './leader-term.ts';
import { buildHeldLease, releasedLease, sightingOf } from './lease.ts';
import { leaseTimesProblem, writeLimitMs } from './lease-times.ts';
import { WriteGate } from './write-gate.ts';

export interface ElectionsOptions {
  /** This connection is separate, because other writes must not delay a renewal. */
  readonly leaseServer: Pick<ApiServer, 'request'>;
  readonly server: Pick<ApiServer, 'request'>;
  readonly namespace: string;
  /** Unique over all processes and restarts. */
  readonly identity: string;
  readonly duties: readonly Duty[];
  /** This Lease must belong to one of the duties. */
  readonly presence: LeaseName;
  readonly times: LeaseTimes;
  readonly now: () => ClockReading;
  /** Random number from 0 to 1, for delays of the charts. */
  readonly draw: () => number;
}

export interface ElectionCharts {
  readonly leader: typeof leaderMachine;
  readonly writer: typeof electedWriterMachine;
}

interface Election {
  readonly duty: Duty;
  lease: KubernetesObject | undefined;
  /** `at` is the first observation of the record. */
  lastSighting: { readonly record: string; readonly at: ClockReading } | undefined;
  /** Each term has its own gate, so that writes of an earlier term are rejected. */
  writeGate: WriteGate;
  /** Two concurrent runs of a duty would write the same objects. */
  lastRun: Promise<unknown>;
  isNotified: boolean;
}

export class Elections {
  readonly #options: ElectionsOptions;
  readonly #elections: ReadonlyMap<LeaseName, Election>;

  /** @throws Error if duties share a Lease, if the times allow two leaders, or if no duty has the presence Lease */
  constructor(options: ElectionsOptions) {
    const problem = leaseTimesProblem(options.times);
    if (problem !== undefined) throw new Error(problem);
    this.#options = options;
    this.#elections = new Map(
      options.duties.map((duty): [LeaseName, Election] => [
        duty.lease,
        {
          ...{ duty, lease: undefined, lastSighting: undefined, writeGate: this.#newGate() },
          ...{ lastRun: Promise.resolve(), isNotified: false },
        },
      ]),
    );
    if (this.#elections.size < options.duties.length) throw new Error('two duties have one Lease');
    if (options.duties.length > 0) this.#electionOf(options.presence);
  }

  /** `null` without duties. */
  get input(): ElectionsInput | null {
    const { times, presence } = this.#options;
    const leaders = [...this.#elections.keys()].map((lease) => ({ lease, times }));
    return leaders.length === 0 ? null : { leaders, presence };
  }

  /** According to this replica's own clock. */
  isLeader(lease: LeaseName): boolean {
    return this.#electionOf(lease).writeGate.isOpen;
  }

  machine(charts: ElectionCharts = { leader: leaderMachine, writer: electedWriterMachine }): typeof electionsMachine {
    const electedWriter = electedWriterWithEffects(
      {
        watch: (lease, onDue) => this.#watch(lease, onDue),
        write: (run) => this.#writeDuty(run),
      },
      charts.writer,
    );
    const leader = leaderWithEffects(
      {
        electedWriter,
        readLease: (lease, signal) => this.#readLease(lease, signal),
        writeLease: (order, signal) => this.#writeLease(order, signal),
        finishWrites: (lease) => this.#electionOf(lease).writeGate.waitUntilIdle(),
        beginTerm: ({ lease, sent, termMs }) => {
          const election = this.#electionOf(lease);
          election.writeGate = this.#newGate();
          election.writeGate.extend(sent, termMs);
        },
        extendTerm: ({ lease, sent, termMs }) => this.#electionOf(lease).writeGate.extend(sent, termMs),
        endTerm: ({ lease, giveUp }) => this.#electionOf(lease).writeGate.close({ giveUp }),
      },
      charts.leader,
    );
    return electionsMachine.provide({ actors: { leader } });
  }

  #newGate(): WriteGate {
    const { server, now, times } = this.#options;
    return new WriteGate({ server, now, writeMs: writeLimitMs(times) });
  }

  #electionOf(lease: LeaseName): Election {
    const election = this.#elections.get(lease);
    if (election === undefined) throw new Error(`no election for Lease ${lease}`);
    return election;
  }

  async #readLease(name: LeaseName, signal: AbortSignal): Promise<LeaseSighting> {
    const { leaseServer, namespace, identity, times, draw, now } = this.#options;
    const election = this.#electionOf(name);
    try {
      const leaseRequest = {
        method: 'GET',
        resource: leases,
        namespace,
        name,
        timeoutMs: times.requestLimitMs,
      } as const;
      const lease = await leaseServer.request(leaseRequest, signal);
      const sighting = sightingOf(lease, identity, times.leaseMs);
      election.lease = lease;
      if (election.lastSighting?.record !== sighting.record)
        election.lastSighting = { record: sighting.record, at: now() };
      return { ...sighting, draw: draw() };
    } catch (error) {
      if (statusOf(error) !== 404) return this.#failedResult(error);
      election.lease = undefined;
      election.lastSighting = undefined;
      return { outcome: 'absent', draw: draw() };
    }
  }

  async #writeLease({ lease: name, operation, version }: LeaseOrder, signal: AbortSignal): Promise<LeaseWriteResult> {
    const { leaseServer, namespace, times, draw, now } = this.#options;
    const election = this.#electionOf(name);
    const previous = version === '' ? undefined : election.lease;
    const remainingMs = operation === 'claim' && previous !== undefined ? this.#remainingMs(election, previous) : 0;
    if (remainingMs > 0) return { outcome: 'early', leftMs: remainingMs, draw: draw() };
    // An aborted request may have read another version of the Lease than the one that the chart refers to.
    if (previous?.metadata.resourceVersion !== (version === '' ? undefined : version)) {
      return { outcome: 'conflict', draw: draw() };
    }
    const body = this.#bodyOf(name, operation, previous);
    const sentAt = now();
    const leaseRequest = { resource: leases, namespace, body, timeoutMs: times.requestLimitMs };
    try {
      const lease = await leaseServer.request(
        previous === undefined ? { method: 'POST', ...leaseRequest } : { method: 'PUT', name, ...leaseRequest },
        signal,
      );
      election.lease = lease;
      const elapsed = elapsedMs(sentAt, now());
      return {
        outcome: 'taken',
        version: lease.metadata.resourceVersion ?? '',
        sent: { ...sentAt },
        tookMs: elapsed,
        draw: draw(),
      };
    } catch (error) {
      const isConflict = statusOf(error) === 409 || (statusOf(error) === 404 && previous !== undefined);
      return isConflict ? { outcome: 'conflict', draw: draw() } : this.#failedResult(error);
    }
  }

  /** The monotonic clock stops in a suspended machine and so never overstates the elapsed time. */
  #remainingMs({ lastSighting }: Election, lease: KubernetesObject): number {
    const { identity, times, now } = this.#options;
    const { holder, leaseMs, record } = sightingOf(lease, identity, times.leaseMs);
    if (holder !== 'another' || lastSighting?.record !== record) return 0;
    return Math.max(0, Math.ceil(leaseMs - (now().monotonicMs - lastSighting.at.monotonicMs)));
  }

  #bodyOf(name: LeaseName, action: LeaseOrder['operation'], previous: KubernetesObject | undefined): object {
    const { namespace, identity, times, now } = this.#options;
    const nowMs = now().wallMs;
    if (action === 'release' && previous !== undefined) return releasedLease(previous, nowMs);
    const annotations = this.#electionOf(name).duty.leaseAnnotations?.();
    const leaseSpec = buildHeldLease(previous, {
      identity,
      leaseMs: times.leaseMs,
      nowMs,
      ...(annotations && { annotations }),
    });
    const typeMeta = { apiVersion: apiVersionOf(leases), kind: leases.kind };
    const metadata = { name, namespace, ...(annotations && { annotations }) };
    return previous === undefined ? { ...typeMeta, metadata, ...leaseSpec } : leaseSpec;
  }

  #failedResult(error: unknown): Extract<LeaseWriteResult, { outcome: 'failed' }> {
    const failure = error instanceof ApiError ? error.failure : undefined;
    const retryAfterMs = failure?.kind === 'status' ? (failure.retryAfterMs ?? 0) : 0;
    return { outcome: 'failed', reason: failure?.message ?? String(error), retryAfterMs, draw: this.#options.draw() };
  }

  #watch(lease: LeaseName, report: (dutyDue: DutyDue) => void): () => void {
    const election = this.#electionOf(lease);
    election.isNotified = false;
    return election.duty.watch(() => {
      if (election.isNotified) return;
      election.isNotified = true;
      report({ type: 'duty.due' });
    });
  }

  async #writeDuty({ lease, retry, includesAll }: WriteRun): Promise<WriteOutcome> {
    const election = this.#electionOf(lease);
    const { writeGate } = election;
    await election.lastRun;
    election.isNotified = false;
    const run = election.duty.writeDue({ retry, includesAll }, writeGate);
    election.lastRun = run.catch(() => {});
    const { writtenCount, failedCount, reason } = await run;
    return { written: writtenCount, failed: failedCount, reason };
  }
}
