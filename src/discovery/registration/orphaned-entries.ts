/**
 * WorkloadEntries of replicas that exited without deleting them: the elected replica deletes them and ends other records of dead replicas. A replica
 * is dead if its Lease (src/discovery/election/replica-presence.ts) is unchanged or missing for longer than a workload may take to connect to another
 * replica. This is measured with the local clock; times in Leases are never used.
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

/** Records of replicas that are not deleted with them. */
export interface ReplicaRecords {
  /** Presence Leases of the replicas with active records. */
  readonly leases: ReadonlySet<string>;
  /** The replica of a Lease is dead. */
  ended(lease: string): void;
}

export interface OrphanedEntriesOptions {
  readonly server: Pick<ApiServer, 'list'>;
  readonly entries: () => Iterable<KubernetesObject>;
  /** Other records of replicas, if any. */
  readonly records?: ReplicaRecords;
  readonly namespace: string;
  /** Name of this replica, whose own entries its charts manage. */
  readonly identity: string;
  /** Time after which an unchanged Lease counts as expired. */
  readonly leaseMs: number;
  /** Time that a workload may be disconnected. */
  readonly graceMs: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** Last observation of a replica's Lease. */
interface LeaseObservation {
  /** Version of the Lease, or `undefined` if it does not exist. */
  readonly version: string | undefined;
  readonly since: number;
}

const workloadEntries = resourceOf('WorkloadEntry');
/** Maximum number of observed replicas, including dead ones. Annotations of entries name them, so each namespace has a fair share. */
const maxReplicas = 500;
/** Maximum deletions in one run, with a fair share for each namespace. The rest is left for the next. */
const maxDeletions = 200;
/** If no other replica has entries, Leases of dead ones are checked only in one of so many calls. */
const checksPerLeaseCheck = 12;

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

  /** Checks whether other replicas have entries or records. Called periodically, because no event reports the death of a replica. */
  check(): void {
    const hasRecords = (this.#options.records?.leases.size ?? 0) > 0 || this.#entriesOfOthers().next().done !== true;
    this.#isDue = this.#checks++ % checksPerLeaseCheck === 0 || hasRecords;
    if (this.#isDue) for (const due of this.#watchers) due();
  }

  watch(due: () => void): () => void {
    this.#watchers.add(due);
    return () => void this.#watchers.delete(due);
  }

  get isDue(): boolean {
    return this.#isDue;
  }

  async writeDue({ anew }: Pick<DutyRun, 'anew'>, gate: WriteGate): Promise<DutyReport> {
    this.#isDue = false;
    // While the API server does not respond, no replica can renew its Lease, so that time does not count.
    if (anew) this.#observations = new Map();
    try {
      await this.#observeLeases();
    } catch (error) {
      this.#observations = new Map();
      return { written: 0, failed: 1, reason: messageOf(error) };
    }
    const { records } = this.#options;
    for (const lease of records?.leases ?? []) if (this.#isDead(lease)) records?.ended(lease);
    const orphans = new FairQueue<KubernetesObject>({ maxItems: maxDeletions });
    for (const [entry, lease] of this.#entriesOfOthers()) {
      if (this.#isDead(lease)) orphans.add(entry, [entry.metadata.namespace ?? '']);
    }
    const report = { written: 0, failed: 0, reason: '' };
    for (const { metadata } of orphans.items()) {
      const { name, namespace = '', resourceVersion: version = '' } = metadata;
      await tryDelete(gate, { resource: workloadEntries, namespace, name, version }, report);
    }
    await this.#deleteLeases(gate, report);
    return report;
  }

  *#entriesOfOthers(): Generator<readonly [KubernetesObject, string]> {
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

  /** Lists the Leases and records since when each is unchanged. */
  async #observeLeases(): Promise<void> {
    const { server, namespace } = this.#options;
    const found = await presenceLeases(server, namespace);
    const versions = new Map(found.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
    const at = this.#options.now();
    const names = new Set([...versions.keys(), ...this.#holders(), ...(this.#options.records?.leases ?? [])]);
    this.#observations = new Map(
      [...names].slice(0, maxReplicas).map((name) => {
        const [version, previous] = [versions.get(name), this.#observations.get(name)];
        return [name, previous?.version === version && previous !== undefined ? previous : { version, since: at }];
      }),
    );
  }

  #holders(): Iterable<string> {
    const holders = new FairQueue<string>({ maxItems: maxReplicas });
    for (const [{ metadata }, lease] of this.#entriesOfOthers()) {
      if (!holders.has(lease)) holders.add(lease, [metadata.namespace ?? '']);
    }
    return holders.items();
  }

  #isDead(lease: string): boolean {
    const { leaseMs, graceMs, now, identity } = this.#options;
    const observation = this.#observations.get(lease);
    if (observation === undefined || lease === presenceLeaseOf(identity)) return false;
    return now() - observation.since >= leaseMs + graceMs;
  }

  async #deleteLeases(gate: WriteGate, report: MutableReport): Promise<void> {
    const { namespace } = this.#options;
    const needed = new Set([...this.#entriesOfOthers()].map(([, lease]) => lease));
    for (const [name, { version }] of this.#observations) {
      if (version === undefined || needed.has(name) || !this.#isDead(name)) continue;
      await tryDelete(gate, { resource: leases, namespace, name, version }, report);
    }
  }
}

type MutableReport = { -readonly [K in keyof DutyReport]: DutyReport[K] };
type Deletion = Omit<Extract<Parameters<WriteGate['write']>[0], { verb: 'delete' }>, 'verb'>;

/** Ignores entries that changed since (they are in use) and those already deleted. */
async function tryDelete(gate: WriteGate, deletion: Deletion, report: MutableReport): Promise<void> {
  try {
    await gate.write({ ...deletion, verb: 'delete' });
    report.written++;
  } catch (error) {
    if (statusOf(error) === 404 || statusOf(error) === 409) return;
    report.failed++;
    report.reason = messageOf(error);
  }
}
