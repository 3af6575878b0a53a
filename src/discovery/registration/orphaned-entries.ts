/**
 * WorkloadEntries of replicas that died before they could delete them: the elected replica does, and says whose words have ended. Whether a replica lives, its Lease says
 * (src/discovery/election/replica-presence.ts): one that is there and does not change any more, or is gone, for longer than a workload may take to come to another
 * replica. By our clock alone: what time a Lease says is never looked at.
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

/** What replicas say in places from which it does not go with them. */
export interface WordsOfReplicas {
  /** Leases of the presence of replicas whose word stands. */
  readonly leases: ReadonlySet<string>;
  /** The replica of a Lease is no more. */
  ended(lease: string): void;
}

export interface OrphanedEntriesOptions {
  readonly server: Pick<ApiServer, 'list'>;
  /** All that are known. */
  readonly entries: () => Iterable<KubernetesObject>;
  /** What else replicas leave behind; absent: nothing. */
  readonly words?: WordsOfReplicas;
  /** Namespace of the Leases. */
  readonly namespace: string;
  /** Name of this replica, whose own entries its charts see to. */
  readonly identity: string;
  /** How long a Lease that does not change is waited for. */
  readonly leaseMs: number;
  /** How long a workload may be away. */
  readonly graceMs: number;
  /** Milliseconds, of any beginning. */
  readonly now: () => number;
}

/** When a replica was last seen to live. */
interface Sighting {
  /** Version of its Lease; undefined: it has none. */
  readonly version: string | undefined;
  readonly since: number;
}

const workloadEntries = resourceOf('WorkloadEntry');
/** Replicas that are followed, dead ones too. Annotations of entries name them: each namespace has a fair share. */
const maxReplicas = 500;
/** Deletions in one run, with a fair share for each namespace; more are left for the next. */
const maxDeletions = 200;
/** Where no other replica has entries, Leases of dead ones are looked for that rarely. */
const looksUntilLeases = 12;

export class OrphanedEntries implements Duty {
  readonly lease = 'istio-workload-entry-cleanup';
  readonly #options: OrphanedEntriesOptions;
  /** What was seen of each replica's Lease, by its name. */
  #sightings = new Map<string, Sighting>();
  readonly #watchers = new Set<() => void>();
  #isDue = false;
  #looks = 1;

  constructor(options: OrphanedEntriesOptions) {
    this.#options = options;
  }

  /** Looks whether other replicas have entries, or have left something: from time to time, as nobody tells when one has died. */
  look(): void {
    const hasLeft = (this.#options.words?.leases.size ?? 0) > 0 || this.#othersEntries().next().done !== true;
    this.#isDue = this.#looks++ % looksUntilLeases === 0 || hasLeft;
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
    // While the API server does not answer nobody can renew anything: that time says nothing of who lives.
    if (anew) this.#sightings = new Map();
    try {
      await this.#see();
    } catch (error) {
      this.#sightings = new Map();
      return { written: 0, failed: 1, reason: messageOf(error) };
    }
    const { words } = this.#options;
    for (const lease of words?.leases ?? []) if (this.#isDead(lease)) words?.ended(lease);
    const orphans = new FairQueue<KubernetesObject>({ maxItems: maxDeletions });
    for (const [entry, lease] of this.#othersEntries()) {
      if (this.#isDead(lease)) orphans.add(entry, [entry.metadata.namespace ?? '']);
    }
    const report = { written: 0, failed: 0, reason: '' };
    for (const { metadata } of orphans.items()) {
      const { name, namespace = '', resourceVersion: version = '' } = metadata;
      await deleted(gate, { resource: workloadEntries, namespace, name, version }, report);
    }
    await this.#deleteLeases(gate, report);
    return report;
  }

  /** Entries that other replicas of ours hold, or held, with the name of the replica's Lease. */
  *#othersEntries(): Generator<readonly [KubernetesObject, string]> {
    const { entries, identity } = this.#options;
    for (const entry of entries()) {
      const said = entry.metadata.annotations ?? {};
      const controller = said[annotations.controller];
      if (said[annotations.group] === undefined || controller === undefined || controller === identity) continue;
      const lease = presenceLeaseOf(controller);
      if (lease !== undefined) yield [entry, lease];
    }
  }

  /** Asks which replicas there are, and notes since when each is as it is. */
  async #see(): Promise<void> {
    const { server, namespace } = this.#options;
    const found = await presenceLeases(server, namespace);
    const there = new Map(found.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
    const at = this.#options.now();
    const names = new Set([...there.keys(), ...this.#holders(), ...(this.#options.words?.leases ?? [])]);
    this.#sightings = new Map(
      [...names].slice(0, maxReplicas).map((name) => {
        const [version, before] = [there.get(name), this.#sightings.get(name)];
        return [name, before?.version === version && before !== undefined ? before : { version, since: at }];
      }),
    );
  }

  /** Leases of the replicas that entries name. */
  #holders(): Iterable<string> {
    const holders = new FairQueue<string>({ maxItems: maxReplicas });
    for (const [{ metadata }, lease] of this.#othersEntries()) {
      if (!holders.has(lease)) holders.add(lease, [metadata.namespace ?? '']);
    }
    return holders.items();
  }

  #isDead(lease: string): boolean {
    const { leaseMs, graceMs, now, identity } = this.#options;
    const sighting = this.#sightings.get(lease);
    if (sighting === undefined || lease === presenceLeaseOf(identity)) return false;
    return now() - sighting.since >= leaseMs + graceMs;
  }

  /** Deletes Leases of replicas that are dead and have left nothing. */
  async #deleteLeases(gate: WriteGate, report: MutableReport): Promise<void> {
    const { namespace } = this.#options;
    const needed = new Set([...this.#othersEntries()].map(([, lease]) => lease));
    for (const [name, { version }] of this.#sightings) {
      if (version === undefined || needed.has(name) || !this.#isDead(name)) continue;
      await deleted(gate, { resource: leases, namespace, name, version }, report);
    }
  }
}

type MutableReport = { -readonly [K in keyof DutyReport]: DutyReport[K] };
type Deletion = Omit<Extract<Parameters<WriteGate['write']>[0], { verb: 'delete' }>, 'verb'>;

/** What somebody has touched since lives, and what is gone already is as it should be. */
async function deleted(gate: WriteGate, deletion: Deletion, report: MutableReport): Promise<void> {
  try {
    await gate.write({ ...deletion, verb: 'delete' });
    report.written++;
  } catch (error) {
    if (statusOf(error) === 404 || statusOf(error) === 409) return;
    report.failed++;
    report.reason = messageOf(error);
  }
}
