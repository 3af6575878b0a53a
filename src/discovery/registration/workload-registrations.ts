/** The number of workloads and their writes to the API server are limited, with a fair share per namespace, then per service account. */

import type { EntryOrder, EntryResult } from '../../../machines/discovery/registration/registration.machine.ts';
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
import { annotations, type GroupResult } from './group-entry.ts';
import type { RegistrationRejection, WorkloadClaim } from './workload-claim.ts';

export interface WorkloadRegistrationsOptions {
  readonly server: Pick<ApiServer, 'request'>;
  readonly groupOf: (namespace: string, name: string) => GroupResult | undefined;
  readonly onEntries: (onChanged: (changes: readonly ObjectChange[]) => void) => void;
  readonly controller: string;
  readonly limits?: Partial<RegistrationLimits>;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

export interface RegistrationLimits {
  /** Includes disconnected workloads with an entry to delete. Beyond the limit, the namespace with the most workloads loses one. */
  readonly maxWorkloads: number;
  /** The limit exists because the token of a service account can claim any address. */
  readonly maxOfAccount: number;
  readonly maxWrites: number;
  /** The limit allows other namespaces to write while the API server is slow. */
  readonly maxWritesOfNamespace: number;
}

/**
 * Each workload has a chart below a common parent, and starting or stopping a chart takes longer the more there are. On a busy machine, 1,000 took
 * 1.3 s to start and 4.9 s to stop.
 */
const registrationLimits: RegistrationLimits = {
  maxWorkloads: 1_000,
  maxOfAccount: 500,
  maxWrites: 16,
  maxWritesOfNamespace: 12,
};

/** Maximum known workloads as a multiple of the slots. Displaced workloads are kept until their entries are deleted. */
const maxKnownFactor = 2;

const maxHealthMessage = 1_000;

export interface RegisteredConnection {
  /** @param failure `undefined` if the workload is healthy */
  reportHealth(failure: string | undefined): void;
  disconnect(): void;
}

type RejectionHandler = (rejection: RegistrationRejection) => void;

interface Workload {
  claim: WorkloadClaim;
  connectedAccount: string;
  connectedAt: string;
  readonly connections: Set<RejectionHandler>;
  health: WorkloadHealth | undefined;
}

export class WorkloadRegistrations {
  readonly #options: WorkloadRegistrationsOptions;
  readonly #limits: RegistrationLimits;
  readonly #now: () => number;
  readonly #writer: EntryWriter;
  readonly #workloads = new Map<EntryKey, Workload>();
  /** Entries of workloads with a slot, by namespace and service account. */
  readonly #slots: FairQueue<EntryKey>;
  readonly #writeTasks: FairTasks;
  readonly #watchers = new Set<(report: WorkloadReport) => void>();

  constructor(options: WorkloadRegistrationsOptions) {
    this.#options = options;
    this.#limits = { ...registrationLimits, ...options.limits };
    this.#now = options.now ?? Date.now;
    const { maxWorkloads, maxOfAccount, maxWrites, maxWritesOfNamespace } = this.#limits;
    this.#slots = new FairQueue({ maxItems: maxWorkloads, maxOfKey: [undefined, maxOfAccount] });
    this.#writeTasks = new FairTasks({
      ...{ maxRunning: maxWrites, maxRunningOfKey: maxWritesOfNamespace },
      // Sufficient because each workload has at most one write.
      maxWaiting: maxKnownFactor * maxWorkloads,
    });
    const { server, controller } = options;
    const groupOf = ({ namespace, group }: WorkloadClaim): GroupResult | undefined => options.groupOf(namespace, group);
    this.#writer = new EntryWriter({ server, controller, groupOf, now: this.#now });
    options.onEntries((changes) => this.#entriesChanged(changes));
  }

  /** Sends no request to the API server. */
  rejectionOf(claim: WorkloadClaim): RegistrationRejection | undefined {
    const problem = groupProblem(this.#options.groupOf(claim.namespace, claim.group), claim);
    if (problem !== undefined) {
      // The client may not use the service account of the group.
      const code = /service account/.test(problem) ? 'PERMISSION_DENIED' : 'FAILED_PRECONDITION';
      return { code, reason: problem };
    }
    const existingWorkload = this.#workloads.get(claim.entry);
    const ownershipProblem = existingWorkload === undefined ? undefined : ownershipProblemOf(existingWorkload, claim);
    if (ownershipProblem !== undefined || this.#slots.has(claim.entry)) return ownershipProblem;
    const isFull = existingWorkload === undefined && this.#workloads.size >= maxKnownFactor * this.#limits.maxWorkloads;
    return isFull || !this.#slots.canAdd(shareOf(claim)) ? this.#exhaustedRejection(claim) : undefined;
  }

  /** @param onRejected called if the registration is rejected later */
  connect(claim: WorkloadClaim, onRejected: RejectionHandler): RegisteredConnection {
    const { entry } = claim;
    this.#reserveSlot(claim);
    const workload = this.#workloadOf(claim);
    const isFirst = workload.connections.size === 0;
    workload.connections.add(onRejected);
    if (isFirst) {
      workload.connectedAt = new Date(this.#now()).toISOString();
      this.#report({ type: 'workload.connected', entry });
    }
    return {
      reportHealth: (failure) => this.#healthReported(workload, failure),
      disconnect: () => {
        if (!workload.connections.delete(onRejected) || workload.connections.size > 0) return;
        workload.health = undefined;
        if (this.#workloads.get(entry) === workload) this.#report({ type: 'workload.disconnected', entry });
      },
    };
  }

  /** Reports all connected workloads, then changes. */
  watch(report: (report: WorkloadReport) => void): () => void {
    this.#watchers.add(report);
    for (const [entry, { connections }] of this.#workloads) {
      if (connections.size > 0) report({ type: 'workload.connected', entry });
    }
    return () => void this.#watchers.delete(report);
  }

  async write(order: EntryOrder, signal: AbortSignal): Promise<EntryResult> {
    const workload = this.#workloads.get(order.entry);
    if (workload === undefined) return { outcome: 'foreign' };
    return this.#writeTasks.schedule<EntryResult>(
      {
        key: shareOf(workload.claim),
        run: async (settle) => settle(await this.#writer.write(order, workload.claim, workload.connectedAt, signal)),
        reject: (waitingCount) => ({
          outcome: 'failed',
          reason: `the write queue is full (${waitingCount} WorkloadEntries)`,
        }),
        cancelled: () => ({ outcome: 'failed', reason: 'the write was cancelled' }),
      },
      signal,
    );
  }

  rejectWorkload(entry: EntryKey, reason: string): void {
    this.#closeConnections(entry, { code: 'FAILED_PRECONDITION', reason });
  }

  remove(entry: EntryKey): void {
    if (this.#workloads.delete(entry)) this.#slots.remove(entry);
  }

  #closeConnections(entry: EntryKey, rejection: RegistrationRejection): void {
    for (const onRejected of [...(this.#workloads.get(entry)?.connections ?? [])]) onRejected(rejection);
  }

  #reserveSlot({ entry, ...claim }: WorkloadClaim): void {
    if (this.#slots.has(entry)) return;
    const displacedEntry = this.#slots.add(entry, shareOf(claim));
    if (displacedEntry === undefined || displacedEntry === entry) return;
    const workload = this.#workloads.get(displacedEntry)!;
    this.#closeConnections(displacedEntry, this.#exhaustedRejection(workload.claim));
    workload.connections.clear();
    workload.health = undefined;
    this.#report({ type: 'workload.evicted', entry: displacedEntry });
  }

  #exhaustedRejection({
    namespace,
    serviceAccount,
  }: Pick<WorkloadClaim, 'namespace' | 'serviceAccount'>): RegistrationRejection {
    const { maxWorkloads, maxOfAccount } = this.#limits;
    const accountSize = this.#slots.sizeOf([namespace, serviceAccount]);
    const reason =
      accountSize >= maxOfAccount
        ? `service account ${namespace}/${serviceAccount} has ${accountSize} registered workloads, the limit is ${maxOfAccount}`
        : `${this.#slots.size} of at most ${maxWorkloads} workloads are registered at this replica, and namespace ${namespace} has its fair share of ${this.#slots.sizeOf([namespace])}`;
    return { code: 'RESOURCE_EXHAUSTED', reason };
  }

  #workloadOf(claim: WorkloadClaim): Workload {
    const existingWorkload = this.#workloads.get(claim.entry);
    if (existingWorkload !== undefined) {
      // Reported metadata may have changed. The slot still belongs to the original account.
      existingWorkload.claim = { ...claim, serviceAccount: existingWorkload.claim.serviceAccount };
      if (existingWorkload.connections.size === 0) existingWorkload.connectedAccount = claim.serviceAccount;
      return existingWorkload;
    }
    const workload: Workload = {
      ...{ claim, connectedAccount: claim.serviceAccount, connectedAt: '' },
      ...{ connections: new Set<RejectionHandler>(), health: undefined },
    };
    this.#workloads.set(claim.entry, workload);
    return workload;
  }

  #healthReported(workload: Workload, failure: string | undefined): void {
    const { entry } = workload.claim;
    const health = { healthy: failure === undefined, message: proxyText(failure ?? '', maxHealthMessage) };
    const { health: previous } = workload;
    if (previous?.healthy === health.healthy && previous.message === health.message) return;
    if (workload.connections.size === 0 || this.#workloads.get(entry) !== workload) return;
    workload.health = health;
    this.#report({ type: 'workload-health.reported', entry, ...health });
  }

  /** Includes changes by the workload's own chart. */
  #entriesChanged(changes: readonly ObjectChange[]): void {
    for (const change of changes) {
      // Includes briefly disconnected workloads, whose entry must be written again when they reconnect.
      if (!this.#workloads.has(change.key)) continue;
      const entryAnnotations = change.event === 'delete' ? undefined : change.object.metadata.annotations;
      if (entryAnnotations?.[annotations.connectedAt] === undefined)
        this.#report({ type: 'entry.lost', entry: change.key });
    }
  }

  #report(report: WorkloadReport): void {
    for (const notify of this.#watchers) notify(report);
  }
}

/**
 * Returns why a claim must not use the entry: it belongs to a connected workload of another account, or to another group, address or network with the
 * same entry name.
 */
function ownershipProblemOf(
  { claim: existingClaim, connectedAccount, connections }: Workload,
  claim: WorkloadClaim,
): RegistrationRejection | undefined {
  const prefix = `WorkloadEntry ${claim.namespace}/${claim.name} already exists, and is`;
  if (existingClaim.group !== claim.group)
    return { code: 'FAILED_PRECONDITION', reason: `${prefix} of WorkloadGroup ${existingClaim.group}` };
  if (existingClaim.address !== claim.address || existingClaim.network !== claim.network)
    return { code: 'FAILED_PRECONDITION', reason: `${prefix} of another address` };
  if (connections.size === 0 || connectedAccount === claim.serviceAccount) return undefined;
  return { code: 'PERMISSION_DENIED', reason: `${prefix} of a connected workload with another service account` };
}

function shareOf({ namespace, serviceAccount }: Pick<WorkloadClaim, 'namespace' | 'serviceAccount'>): ShareKey {
  return [namespace, serviceAccount];
}
