/**
 * Other replicas whose proxies this one does not see, by the Leases of their presence: those that run, with the counts that they report
 * there, and those that ended so recently that their proxies may not have reconnected. Only this replica's clock counts.
 */

import { isObject } from '../../runtime/json-object.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { presenceLeaseOf, presenceLeases } from '../election/replica-presence.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import {
  mergedCounts,
  type OtherCounts,
  type OtherReplicaCounts,
  type ReplicaReport,
  readReport,
  reportAnnotation,
} from './replica-report.ts';

export interface OtherReplicasOptions {
  readonly server: Pick<ApiServer, 'list'>;
  /** Namespace of the Leases. */
  readonly namespace: string;
  /** Name of this replica. */
  readonly identity: string;
  /** REVISION; empty: the default one. Replicas of another revision are not counted. */
  readonly revision: string;
  /** Milliseconds after which a Lease that does not change has expired. */
  readonly leaseMs: number;
  /** Whether this replica writes the statuses. */
  readonly isWriter: () => boolean;
  /** Milliseconds, of any beginning. */
  readonly now: () => number;
  /** Is called when other replicas may serve proxies than before. */
  readonly changed?: () => void;
  readonly log: Pick<Logger, 'warn'>;
}

interface Sighting {
  readonly version: string;
  readonly identity: string;
  /** Counts of all reports; absent: the replica reports nothing, as one of an earlier version. */
  readonly report?: ReplicaReport;
  /** Why the annotation is ignored; absent: it is not. */
  readonly invalid?: string;
  /** When this version was first seen. */
  readonly since: number;
  /** When the replica was first seen to have ended. */
  readonly endedAt?: number;
}

/** An identity that a status may show: other text in a Lease is not from a replica. */
const plainIdentity = /^[A-Za-z0-9][A-Za-z0-9._-]{0,300}$/;
/** Between two requests to the API server. */
const minRestMs = 2_000;
/** Proxies of a replica that ended reconnect to another one within this time. */
const reconnectMs = 60_000;
/** Reports of more replicas are not read, so that Leases cannot fill the memory; the status of objects is `Unknown` then. */
export const maxReportingReplicas = 64;

export class OtherReplicas implements OtherReplicaCounts {
  readonly #options: OtherReplicasOptions;
  #sightings: ReadonlyMap<string, Sighting> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(options: OtherReplicasOptions) {
    this.#options = options;
  }

  /** Lists the Leases, at most once in 2 s. If that fails, the last list counts. */
  async look(): Promise<void> {
    const { server, namespace, identity, now } = this.#options;
    const at = now();
    if (at - this.#lookedAt < minRestMs) return;
    this.#lookedAt = at;
    try {
      const found = await presenceLeases(server, namespace);
      const own = presenceLeaseOf(identity);
      const others = found.filter(({ metadata: { name } }) => name !== own);
      const before = this.#names;
      this.#sightings = this.#sightingsOf(others, now());
      this.#readAt = at;
      if (this.#names !== before) this.#options.changed?.();
    } catch {
      // The next look tries again.
    }
  }

  /** Whether no other replica, of whatever revision, may serve proxies; `undefined` before the first list. */
  get isAlone(): boolean | undefined {
    return this.#sightings && this.#sightings.size === 0;
  }

  get isWriter(): boolean {
    return this.#options.isWriter();
  }

  get readAt(): number {
    return this.#readAt;
  }

  countsOf(key: string, generation: number, since: number): OtherCounts | undefined {
    if (this.#sightings === undefined || this.#readAt < since) return undefined;
    const total = { upToDate: 0, concerned: 0 };
    const [unreported, uncounted]: [string[], string[]] = [[], []];
    for (const sighting of this.#sightings.values()) {
      const count = sighting.report?.counts.get(key);
      if (sighting.endedAt !== undefined || this.#isOfOtherRevision(sighting)) uncounted.push(sighting.identity);
      else if (count?.generation !== generation) unreported.push(sighting.identity);
      else {
        total.upToDate += count.upToDate;
        total.concerned += count.concerned;
      }
    }
    return { ...total, unreported: unreported.sort(), uncounted: uncounted.sort() };
  }

  *incomplete(): Iterable<readonly [key: string, generation: number]> {
    for (const sighting of this.#sightings?.values() ?? []) {
      if (sighting.endedAt !== undefined || this.#isOfOtherRevision(sighting)) continue;
      for (const [key, { generation, upToDate, concerned }] of sighting.report?.counts ?? []) {
        if (upToDate < concerned) yield [key, generation];
      }
    }
  }

  #isOfOtherRevision({ report }: Sighting): boolean {
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

  #sightingsOf(found: readonly KubernetesObject[], at: number): ReadonlyMap<string, Sighting> {
    const before = this.#sightings ?? new Map<string, Sighting>();
    const seen = new Map<string, Sighting>();
    for (const lease of found) seen.set(lease.metadata.name, this.#sightingOf(lease, at, seen.size));
    for (const [name, known] of before) if (!seen.has(name)) seen.set(name, { ...known, endedAt: known.endedAt ?? at });
    return new Map([...seen].filter(([, { endedAt }]) => endedAt === undefined || at - endedAt < reconnectMs));
  }

  #sightingOf({ metadata, spec }: KubernetesObject, at: number, place: number): Sighting {
    const { name, resourceVersion: version = '', annotations } = metadata;
    const known = this.#sightings?.get(name);
    const holder = isObject(spec) ? spec.holderIdentity : undefined;
    const isValid = typeof holder === 'string' && plainIdentity.test(holder) && presenceLeaseOf(holder) === name;
    const identity = isValid ? holder : (known?.identity ?? name);
    const since = known?.version === version ? known.since : at;
    const isAlive = holder !== '' && at - since < this.#options.leaseMs;
    const ended = !isAlive && { endedAt: known?.endedAt ?? at };
    return {
      version,
      identity,
      since,
      ...this.#reportIn(name, annotations?.[reportAnnotation], known, place),
      ...ended,
    };
  }

  /** The report of a Lease together with earlier ones of it. What is no report is ignored. */
  #reportIn(
    lease: string,
    text: unknown,
    known: Sighting | undefined,
    place: number,
  ): Pick<Sighting, 'report' | 'invalid'> {
    if (text === undefined) return {};
    const report = place < maxReportingReplicas ? readReport(text) : `more than ${maxReportingReplicas} replicas`;
    if (typeof report === 'string') {
      if (known?.invalid !== report) this.#options.log.warn('status.reportInvalid', { lease, reason: report });
      return { invalid: report };
    }
    const { revision, counts } = report;
    return { report: { revision, counts: mergedCounts(known?.report?.counts ?? new Map(), counts) } };
  }
}
