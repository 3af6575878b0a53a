/**
 * Which workloads of WorkloadGroups are connected here, for the charts that register them: bounded with a fair share for each namespace,
 * then for each service account, and reported as edges only. Writes to the API server take turns in the same way.
 */

import type { EntryAnswer, EntryOrder } from '../../../machines/discovery/registration/registration.machine.ts';
import type {
  EntryKey,
  WorkloadHealth,
  WorkloadReport,
} from '../../../machines/discovery/registration/registration-protocol.ts';
import { FairQueue, type ShareKey } from '../../model/collections/fair-queue.ts';
import { FairTasks } from '../../model/collections/fair-tasks.ts';
import { proxyText } from '../distribution/proxy-text.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import type { ObjectChange } from '../kubernetes/store/object-store.ts';
import { EntryWriter, groupProblem } from './entry-writer.ts';
import { annotations, type ReadGroup } from './group-entry.ts';
import type { Rejection, WorkloadClaim } from './workload-claim.ts';

export interface WorkloadRegistrationsOptions {
  readonly server: Pick<ApiServer, 'request'>;
  /** The group of a claim as the cluster has it; undefined: there is none. */
  readonly groupOf: (namespace: string, name: string) => ReadGroup | undefined;
  /** Tells what becomes of WorkloadEntries. */
  readonly onEntries: (changed: (changes: readonly ObjectChange[]) => void) => void;
  /** Name of this replica, which no other one has, nor one before it. */
  readonly controller: string;
  readonly limits?: Partial<RegistrationLimits>;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

export interface RegistrationLimits {
  /** Workloads that are connected, or were and still have an entry to be deleted. Beyond it the namespace with the most loses one. */
  readonly maxWorkloads: number;
  /** Workloads of one service account: a holder of its token can claim any address. */
  readonly maxOfAccount: number;
  /** Entries that are being written, of all namespaces. */
  readonly maxWrites: number;
  /** Entries of one namespace that are being written: a slot is left for other namespaces while the API server is slow. */
  readonly maxWritesOfNamespace: number;
}

/**
 * Each has a chart, which is a child of one parent: what it costs to begin or end one grows with those that there are (spec/xstate.md §2). 1,000
 * took 1.3 s to begin and, at the end of the program, 4.9 s to stop on a busy machine, 2,500 took 10 and 17.5 s.
 */
const registrationLimits: RegistrationLimits = {
  maxWorkloads: 1_000,
  maxOfAccount: 500,
  maxWrites: 16,
  maxWritesOfNamespace: 12,
};

/** Workloads that were displaced, and whose entries are still to be deleted, are known for a while beside those that have a slot. */
const maxKnownFactor = 2;

/** Why a workload is unhealthy is told to people. */
const maxHealthMessage = 1_000;

/** A connection of a workload that registers itself. */
export interface RegisteredConnection {
  /** What the workload says of itself; undefined `failure`: it is healthy. */
  reportHealth(failure: string | undefined): void;
  /** The connection is gone. */
  leave(): void;
}

type Turned = (rejection: Rejection) => void;

interface Workload {
  claim: WorkloadClaim;
  /** Service account that its connections have shown. */
  connectedAs: string;
  /** RFC 3339, of the first of its connections. */
  connectedAt: string;
  readonly connections: Set<Turned>;
  health: WorkloadHealth | undefined;
}

export class WorkloadRegistrations {
  readonly #options: WorkloadRegistrationsOptions;
  readonly #limits: RegistrationLimits;
  readonly #now: () => number;
  readonly #writer: EntryWriter;
  readonly #workloads = new Map<EntryKey, Workload>();
  /** Entries of workloads that have a slot, by namespace and service account. */
  readonly #slots: FairQueue<EntryKey>;
  readonly #writes: FairTasks;
  readonly #watchers = new Set<(report: WorkloadReport) => void>();

  constructor(options: WorkloadRegistrationsOptions) {
    this.#options = options;
    this.#limits = { ...registrationLimits, ...options.limits };
    this.#now = options.now ?? Date.now;
    const { maxWorkloads, maxOfAccount, maxWrites, maxWritesOfNamespace } = this.#limits;
    this.#slots = new FairQueue({ maxItems: maxWorkloads, maxOfKey: [undefined, maxOfAccount] });
    this.#writes = new FairTasks({
      ...{ maxRunning: maxWrites, maxRunningOfKey: maxWritesOfNamespace },
      // Each workload has one write at a time.
      maxWaiting: maxKnownFactor * maxWorkloads,
    });
    const { server, controller } = options;
    const groupOf = ({ namespace, group }: WorkloadClaim): ReadGroup | undefined => options.groupOf(namespace, group);
    this.#writer = new EntryWriter({ server, controller, groupOf, now: this.#now });
    options.onEntries((changes) => this.#entriesChanged(changes));
  }

  /** Why a workload may not be registered, as far as that is known without a question to the API server. */
  rejectionOf(claim: WorkloadClaim): Rejection | undefined {
    const problem = groupProblem(this.#options.groupOf(claim.namespace, claim.group), claim);
    if (problem !== undefined) {
      // Of an account that is not the group's: it is not its client's to have.
      const code = /service account/.test(problem) ? 'PERMISSION_DENIED' : 'FAILED_PRECONDITION';
      return { code, reason: problem };
    }
    const known = this.#workloads.get(claim.entry);
    const foreignness = known === undefined ? undefined : foreignnessOf(known, claim);
    if (foreignness !== undefined || this.#slots.has(claim.entry)) return foreignness;
    const isFull = known === undefined && this.#workloads.size >= maxKnownFactor * this.#limits.maxWorkloads;
    return isFull || !this.#slots.accepts(shareOf(claim)) ? this.#exhausted(claim) : undefined;
  }

  /** @param turned called when the workload cannot be registered after all */
  enter(claim: WorkloadClaim, turned: Turned): RegisteredConnection {
    const { entry } = claim;
    this.#takeSlot(claim);
    const workload = this.#workloadOf(claim);
    const isFirst = workload.connections.size === 0;
    workload.connections.add(turned);
    if (isFirst) {
      workload.connectedAt = new Date(this.#now()).toISOString();
      this.#tell({ type: 'workload.connected', entry });
    }
    return {
      reportHealth: (failure) => this.#healthReported(workload, failure),
      leave: () => {
        if (!workload.connections.delete(turned) || workload.connections.size > 0) return;
        workload.health = undefined;
        if (this.#workloads.get(entry) === workload) this.#tell({ type: 'workload.disconnected', entry });
      },
    };
  }

  /** Tells of all that are there, and from then on what becomes of them. @returns ends it */
  watch(tell: (report: WorkloadReport) => void): () => void {
    this.#watchers.add(tell);
    for (const [entry, { connections }] of this.#workloads) {
      if (connections.size > 0) tell({ type: 'workload.connected', entry });
    }
    return () => void this.#watchers.delete(tell);
  }

  /** A failure is a result. */
  async write(order: EntryOrder, signal: AbortSignal): Promise<EntryAnswer> {
    const workload = this.#workloads.get(order.entry);
    if (workload === undefined) return { outcome: 'foreign' };
    return this.#writes.do<EntryAnswer>(
      {
        key: shareOf(workload.claim),
        run: async (settle) => settle(await this.#writer.write(order, workload.claim, workload.connectedAt, signal)),
        reject: (waiting) => ({ outcome: 'failed', reason: `the write queue is full (${waiting} WorkloadEntries)` }),
        cancelled: () => ({ outcome: 'failed', reason: 'the write was cancelled' }),
      },
      signal,
    );
  }

  /** Ends the connections of a workload. */
  turnAway(entry: EntryKey, reason: string): void {
    this.#closeConnections(entry, { code: 'FAILED_PRECONDITION', reason });
  }

  /** Nothing of the workload is left to do. */
  forget(entry: EntryKey): void {
    if (this.#workloads.delete(entry)) this.#slots.remove(entry);
  }

  #closeConnections(entry: EntryKey, rejection: Rejection): void {
    for (const turned of [...(this.#workloads.get(entry)?.connections ?? [])]) turned(rejection);
  }

  /** Gives the claim a slot; another workload may lose its slot for it. */
  #takeSlot({ entry, ...claim }: WorkloadClaim): void {
    if (this.#slots.has(entry)) return;
    const displaced = this.#slots.add(entry, shareOf(claim));
    if (displaced === undefined || displaced === entry) return;
    const workload = this.#workloads.get(displaced)!;
    this.#closeConnections(displaced, this.#exhausted(workload.claim));
    workload.connections.clear();
    workload.health = undefined;
    this.#tell({ type: 'workload.displaced', entry: displaced });
  }

  #exhausted({ namespace, serviceAccount }: Pick<WorkloadClaim, 'namespace' | 'serviceAccount'>): Rejection {
    const { maxWorkloads, maxOfAccount } = this.#limits;
    const ofAccount = this.#slots.sizeOf([namespace, serviceAccount]);
    const reason =
      ofAccount >= maxOfAccount
        ? `service account ${namespace}/${serviceAccount} has ${ofAccount} registered workloads, the limit is ${maxOfAccount}`
        : `${this.#slots.size} of at most ${maxWorkloads} workloads are registered at this replica, and namespace ${namespace} has its fair share of ${this.#slots.sizeOf([namespace])}`;
    return { code: 'RESOURCE_EXHAUSTED', reason };
  }

  #workloadOf(claim: WorkloadClaim): Workload {
    const known = this.#workloads.get(claim.entry);
    if (known !== undefined) {
      // What it says of itself may be another word by now; it counts for whom it was counted.
      known.claim = { ...claim, serviceAccount: known.claim.serviceAccount };
      if (known.connections.size === 0) known.connectedAs = claim.serviceAccount;
      return known;
    }
    const made: Workload = {
      ...{ claim, connectedAs: claim.serviceAccount, connectedAt: '' },
      ...{ connections: new Set<Turned>(), health: undefined },
    };
    this.#workloads.set(claim.entry, made);
    return made;
  }

  #healthReported(workload: Workload, failure: string | undefined): void {
    const { entry } = workload.claim;
    const health = { healthy: failure === undefined, message: proxyText(failure ?? '', maxHealthMessage) };
    const { health: before } = workload;
    if (before?.healthy === health.healthy && before.message === health.message) return;
    if (workload.connections.size === 0 || this.#workloads.get(entry) !== workload) return;
    workload.health = health;
    this.#tell({ type: 'workload.health', entry, ...health });
  }

  /** Somebody has deleted the entry of a workload, or written that it is not connected; it may have been the workload's own chart. */
  #entriesChanged(changes: readonly ObjectChange[]): void {
    for (const change of changes) {
      // A workload that is away for a moment counts as well: when it is back, it must not be taken for registered.
      if (!this.#workloads.has(change.key)) continue;
      const said = change.event === 'delete' ? undefined : change.object.metadata.annotations;
      if (said?.[annotations.connectedAt] === undefined) this.#tell({ type: 'entry.lost', entry: change.key });
    }
  }

  #tell(report: WorkloadReport): void {
    for (const tell of this.#watchers) tell(report);
  }
}

/**
 * Why a claim is not of the workload that has its entry: of another account, while that one is connected, or made of another group and
 * address, of which the same name came out.
 */
function foreignnessOf(
  { claim: known, connectedAs, connections }: Workload,
  claim: WorkloadClaim,
): Rejection | undefined {
  const there = `WorkloadEntry ${claim.namespace}/${claim.name} already exists, and is`;
  if (known.group !== claim.group)
    return { code: 'FAILED_PRECONDITION', reason: `${there} of WorkloadGroup ${known.group}` };
  if (known.address !== claim.address || known.network !== claim.network)
    return { code: 'FAILED_PRECONDITION', reason: `${there} of another address` };
  if (connections.size === 0 || connectedAs === claim.serviceAccount) return undefined;
  return { code: 'PERMISSION_DENIED', reason: `${there} of a connected workload with another service account` };
}

function shareOf({ namespace, serviceAccount }: Pick<WorkloadClaim, 'namespace' | 'serviceAccount'>): ShareKey {
  return [namespace, serviceAccount];
}
