/**
 * Deletes WorkloadEntries of exited replicas. A replica is considered exited if its Lease (src/discovery/election/replica-presence.ts) is unchanged
 * or missing for longer than a workload may take to connect to another replica, measured with the local clock.
 */
import { FairQueue } from '../../model/collections/fair-queue.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Duty, DutyReport, DutyRun } from '../election/duty.ts';
import { presenceLeaseOf, presenceLeases } from '../election/replica-presence.ts';
import type { WriteGate } from '../election/write-gate.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import { leases, resourceOf } from '../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import { annotations } from './group-entry.ts';

/** Records that other replicas must end when their replica exits. */
export interface ReplicaRecords {
  readonly leases: ReadonlySet<string>;
  onReplicaEnded(lease: string): void;
}

export interface OrphanedEntriesOptions {
  readonly server: Pick<ApiServer, 'list'>;
  readonly entries: () => Iterable<KubernetesObject>;
  readonly records?: ReplicaRecords;
  readonly namespace: string;
  /** The charts of this replica manage its entries. */
  readonly identity: string;
  readonly leaseMs: number;
  /** Time for which a workload may be disconnected. */
  readonly graceMs: number;
  /** Monotonic clock in milliseconds. */
  readonly now: () => number;
}

interface LeaseObservation {
  /** `undefined` if the Lease does not exist. */
  readonly version: string | undefined;
  readonly observedSince: number;
}

const workloadEntries = resourceOf('WorkloadEntry');
/** Annotations of entries can name any replica, so the number is limited, with a fair share per namespace. */
const maxReplicas = 500;
/** Maximum per run, with a fair share per namespace. The next run continues. */
const maxDeletions = 200;
/** If no other replica has entries, Leases of exited replicas are checked only in one of this many calls. */
const callsPerLeaseCheck = 12;

export class OrphanedEntries implements Duty {
  readonly lease = 'istio-workload-entry-cleanup';
  readonly #options: OrphanedEntriesOptions;
  #observations = new Map<string, LeaseObservation>();
  readonly #watchers = new Set<() => void>();
  #isDue = false;
  #checks = 1;

  constructor(options: OrphanedEntriesOptions) {
    this.#options = options;
  }

  /** Call periodically, because no event reports that a replica exited. */
  check(): void {
    const hasRecords =
      (this.#options.records?.leases.size ?? 0) > 0 || this.#entriesOfOtherReplicas().next().done !== true;
    this.#isDue = this.#checks++ % callsPerLeaseCheck === 0 || hasRecords;
    if (this.#isDue) for (const notifyDue of this.#watchers) notifyDue();
  }

  watch(onDue: () => void): () => void {
    this.#watchers.add(onDue);
    return () => void this.#watchers.delete(onDue);
  }

  get isDue(): boolean {
    return this.#isDue;
  }

  async writeDue({ includesAll }: Pick<DutyRun, 'includesAll'>, writeGate: WriteGate): Promise<DutyReport> {
    this.#isDue = false;
    // Starts new observations in each term, because replicas cannot renew their Leases while the API server is unreachable.
    if (includesAll) this.#observations = new Map();
    try {
      await this.#observeLeases();
    } catch (error) {
      this.#observations = new Map();
      return { writtenCount: 0, failedCount: 1, reason: messageOf(error) };
    }
    const { records } = this.#options;
    for (const lease of records?.leases ?? []) if (this.#hasExited(lease)) records?.onReplicaEnded(lease);
    const orphans = new FairQueue<KubernetesObject>({ maxItems: maxDeletions });
    for (const [entry, lease] of this.#entriesOfOtherReplicas()) {
      if (this.#hasExited(lease)) orphans.add(entry, [entry.metadata.namespace ?? '']);
    }
    const report = { writtenCount: 0, failedCount: 0, reason: '' };
    for (const { metadata } of orphans.items()) {
      const { name, namespace = '', resourceVersion: version = '' } = metadata;
      await tryDelete(writeGate, { resource: workloadEntries, namespace, name, version }, report);
    }
    await this.#deleteLeases(writeGate, report);
    return report;
  }

  *#entriesOfOtherReplicas(): Generator<readonly [KubernetesObject, string]> {
    const { entries, identity } = this.#options;
    for (const entry of entries()) {
      const entryAnnotations = entry.metadata.annotations ?? {};
      const controller = entryAnnotations[annotations.controller];
      if (entryAnnotations[annotations.group] === undefined || controller === undefined || controller === identity)
        continue;
      const lease = presenceLeaseOf(controller);
      if (lease !== undefined) yield [entry, lease];
    }
  }

  async #observeLeases(): Promise<void> {
    const { server, namespace } = this.#options;
    const presenceLeasesFound = await presenceLeases(server, namespace);
    const versions = new Map(presenceLeasesFound.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
    const observedAt = this.#options.now();
    const names = new Set([...versions.keys(), ...this.#listLeaseHolders(), ...(this.#options.records?.leases ?? [])]);
    this.#observations = new Map(
      [...names].slice(0, maxReplicas).map((name) => {
        const [version, previous] = [versions.get(name), this.#observations.get(name)];
        return [
          name,
          previous?.version === version && previous !== undefined ? previous : { version, observedSince: observedAt },
        ];
      }),
    );
  }

  #listLeaseHolders(): Iterable<string> {
    const leaseHolders = new FairQueue<string>({ maxItems: maxReplicas });
    for (const [{ metadata }, lease] of this.#entriesOfOtherReplicas()) {
      if (!leaseHolders.has(lease)) leaseHolders.add(lease, [metadata.namespace ?? '']);
    }
    return leaseHolders.items();
  }

  #hasExited(lease: string): boolean {
    const { leaseMs, graceMs, now, identity } = this.#options;
    const observation = this.#observations.get(lease);
    if (observation === undefined || lease === presenceLeaseOf(identity)) return false;
    return now() - observation.observedSince >= leaseMs + graceMs;
  }

  async #deleteLeases(writeGate: WriteGate, report: MutableReport): Promise<void> {
    const { namespace } = this.#options;
    const neededLeases = new Set([...this.#entriesOfOtherReplicas()].map(([, lease]) => lease));
    for (const [name, { version }] of this.#observations) {
      if (version === undefined || neededLeases.has(name) || !this.#hasExited(name)) continue;
      await tryDelete(writeGate, { resource: leases, namespace, name, version }, report);
    }
  }
}

type MutableReport = { -readonly [K in keyof DutyReport]: DutyReport[K] };
type Deletion = Omit<Extract<Parameters<WriteGate['write']>[0], { verb: 'delete' }>, 'verb'>;

/** An entry that changed in the meantime is in use. */
async function tryDelete(writeGate: WriteGate, deletion: Deletion, report: MutableReport): Promise<void> {
  try {
    await writeGate.write({ ...deletion, verb: 'delete' });
    report.writtenCount++;
  } catch (error) {
    if (statusOf(error) === 404 || statusOf(error) === 409) return;
    report.failedCount++;
    report.reason = messageOf(error);
  }
}
