/** Other replicas include exited ones whose proxies may not have reconnected. */

import { isObject } from '../../runtime/json-object.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { presenceLeaseOf, presenceLeases } from '../election/replica-presence.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import {
  mergeCounts,
  type OtherCounts,
  type OtherReplicaCounts,
  type ReplicaReport,
  readReport,
  reportAnnotation,
} from './replica-report.ts';

export interface OtherReplicasOptions {
  readonly server: Pick<ApiServer, 'list'>;
  readonly namespace: string;
  readonly identity: string;
  /** REVISION. Empty for the default revision. Replicas of other revisions are not counted. */
  readonly revision: string;
  /** Milliseconds after which an unchanged Lease has expired. */
  readonly leaseMs: number;
  readonly isWriter: () => boolean;
  /** Monotonic clock in milliseconds. */
  readonly now: () => number;
  readonly onChanged?: () => void;
  readonly log: Pick<Logger, 'warn'>;
}

interface ReplicaSighting {
  readonly version: string;
  readonly identity: string;
  /** Absent if the replica reports nothing, such as an earlier version. */
  readonly report?: ReplicaReport;
  readonly invalid?: string;
  readonly observedSince: number;
  readonly endedAt?: number;
}

/** Other forms of identities are ignored, because identities appear in statuses. */
const plainIdentity = /^[A-Za-z0-9][A-Za-z0-9._-]{0,300}$/;
const minRestMs = 2_000;
/** Proxies of an exited replica reconnect in this time. */
const reconnectMs = 60_000;
/** Limits memory. If it is exceeded, statuses are `Unknown`. */
export const maxReportingReplicas = 64;

export class OtherReplicas implements OtherReplicaCounts {
  readonly #options: OtherReplicasOptions;
  #sightings: ReadonlyMap<string, ReplicaSighting> | undefined;
  #requestedAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(options: OtherReplicasOptions) {
    this.#options = options;
  }

  /** Lists the Leases, at most once in 2 s. If that fails, keeps the last list. */
  async refresh(): Promise<void> {
    const { server, namespace, identity, now } = this.#options;
    const observedAt = now();
    if (observedAt - this.#requestedAt < minRestMs) return;
    this.#requestedAt = observedAt;
    try {
      const presenceLeaseList = await presenceLeases(server, namespace);
      const ownLease = presenceLeaseOf(identity);
      const otherLeases = presenceLeaseList.filter(({ metadata: { name } }) => name !== ownLease);
      const previous = this.#names;
      this.#sightings = this.#sightingsOf(otherLeases, now());
      this.#readAt = observedAt;
      if (this.#names !== previous) this.#options.onChanged?.();
    } catch {}
  }

  /** `undefined` before the first list. */
  get isOnlyReplica(): boolean | undefined {
    return this.#sightings && this.#sightings.size === 0;
  }

  get isWriter(): boolean {
    return this.#options.isWriter();
  }

  get readAt(): number {
    return this.#readAt;
  }

  countsOf(key: string, generation: number, sinceMs: number): OtherCounts | undefined {
    if (this.#sightings === undefined || this.#readAt < sinceMs) return undefined;
    const totalCounts = { upToDate: 0, concerned: 0 };
    const [unreported, uncounted]: [string[], string[]] = [[], []];
    for (const sighting of this.#sightings.values()) {
      const count = sighting.report?.counts.get(key);
      if (sighting.endedAt !== undefined || this.#isOtherRevision(sighting)) uncounted.push(sighting.identity);
      else if (count?.generation !== generation) unreported.push(sighting.identity);
      else {
        totalCounts.upToDate += count.upToDate;
        totalCounts.concerned += count.concerned;
      }
    }
    return { ...totalCounts, unreportedReplicas: unreported.sort(), uncountedReplicas: uncounted.sort() };
  }

  *incompleteObjects(): Iterable<readonly [key: string, generation: number]> {
    for (const sighting of this.#sightings?.values() ?? []) {
      if (sighting.endedAt !== undefined || this.#isOtherRevision(sighting)) continue;
      for (const [key, { generation, upToDate, concerned }] of sighting.report?.counts ?? []) {
        if (upToDate < concerned) yield [key, generation];
      }
    }
  }

  #isOtherRevision({ report }: ReplicaSighting): boolean {
    return report !== undefined && report.revision !== this.#options.revision;
  }

  get #names(): string | undefined {
    return (
      this.#sightings &&
      [...this.#sightings.values()]
        .map(({ identity }) => identity)
        .sort()
        .join()
    );
  }

  #sightingsOf(
    presenceLeaseList: readonly KubernetesObject[],
    observedAt: number,
  ): ReadonlyMap<string, ReplicaSighting> {
    const previous = this.#sightings ?? new Map<string, ReplicaSighting>();
    const nextSightings = new Map<string, ReplicaSighting>();
    for (const lease of presenceLeaseList)
      nextSightings.set(lease.metadata.name, this.#sightingOf(lease, observedAt, nextSightings.size));
    for (const [name, previousEntry] of previous)
      if (!nextSightings.has(name))
        nextSightings.set(name, { ...previousEntry, endedAt: previousEntry.endedAt ?? observedAt });
    return new Map(
      [...nextSightings].filter(([, { endedAt }]) => endedAt === undefined || observedAt - endedAt < reconnectMs),
    );
  }

  #sightingOf({ metadata, spec }: KubernetesObject, observedAt: number, index: number): ReplicaSighting {
    const { name, resourceVersion: version = '', annotations } = metadata;
    const previousSighting = this.#sightings?.get(name);
    const holderIdentity = isObject(spec) ? spec.holderIdentity : undefined;
    const isValid =
      typeof holderIdentity === 'string' &&
      plainIdentity.test(holderIdentity) &&
      presenceLeaseOf(holderIdentity) === name;
    const identity = isValid ? holderIdentity : (previousSighting?.identity ?? name);
    const since = previousSighting?.version === version ? previousSighting.observedSince : observedAt;
    const isAlive = holderIdentity !== '' && observedAt - since < this.#options.leaseMs;
    const endedFields = !isAlive && { endedAt: previousSighting?.endedAt ?? observedAt };
    return {
      version,
      identity,
      observedSince: since,
      ...this.#parseReport(name, annotations?.[reportAnnotation], previousSighting, index),
      ...endedFields,
    };
  }

  #parseReport(
    lease: string,
    text: unknown,
    previousSighting: ReplicaSighting | undefined,
    index: number,
  ): Pick<ReplicaSighting, 'report' | 'invalid'> {
    if (text === undefined) return {};
    const report = index < maxReportingReplicas ? readReport(text) : `more than ${maxReportingReplicas} replicas`;
    if (typeof report === 'string') {
      if (previousSighting?.invalid !== report)
        this.#options.log.warn('status.reportInvalid', { lease, reason: report });
      return { invalid: report };
    }
    const { revision, counts } = report;
    return { report: { revision, counts: mergeCounts(previousSighting?.report?.counts ?? new Map(), counts) } };
  }
}
