/**
 * Other replicas whose proxies this one does not see, by the Leases of their presence: those that are alive, and those that ended so
 * recently that their proxies may not have reconnected. Only this replica's clock counts.
 */

import { isObject } from '../../runtime/json-object.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import { presenceLeaseOf, presenceLeases } from './replica-presence.ts';

export interface OtherReplicasOptions {
  readonly server: Pick<ApiServer, 'list'>;
  /** Namespace of the Leases. */
  readonly namespace: string;
  /** Name of this replica. */
  readonly identity: string;
  /** Milliseconds after which a Lease that does not change has expired. */
  readonly leaseMs: number;
  /** Milliseconds, of any beginning. */
  readonly now: () => number;
  /** Is called when other replicas may serve proxies than before. */
  readonly changed?: () => void;
}

interface Sighting {
  readonly version: string;
  readonly identity: string;
  /** When this version was first seen. */
  readonly since: number;
  /** When the replica was first seen to have ended. */
  readonly endedAt?: number;
}

/** Between two requests to the API server. */
const minRestMs = 5_000;
/** Proxies of a replica that ended reconnect to another one within this time. */
const reconnectMs = 60_000;

export class OtherReplicas {
  readonly #options: OtherReplicasOptions;
  #sightings: ReadonlyMap<string, Sighting> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OtherReplicasOptions) {
    this.#options = options;
  }

  /** Lists the Leases, at most once in 5 s. If that fails, what was known before counts. */
  async look(): Promise<void> {
    const { server, namespace, identity, now } = this.#options;
    if (now() - this.#lookedAt < minRestMs) return;
    this.#lookedAt = now();
    try {
      const found = await presenceLeases(server, namespace);
      const own = presenceLeaseOf(identity);
      const others = found.filter(({ metadata: { name } }) => name !== own);
      const before = this.mayServe?.join();
      this.#sightings = this.#sightingsOf(others, now());
      if (this.mayServe?.join() !== before) this.#options.changed?.();
    } catch {
      // The next look tries again.
    }
  }

  /** Identities of replicas that may serve proxies; `undefined` before the first list. */
  get mayServe(): readonly string[] | undefined {
    const sightings = this.#sightings;
    return sightings && [...sightings.values()].map(({ identity }) => identity).sort();
  }

  #sightingsOf(found: readonly KubernetesObject[], at: number): ReadonlyMap<string, Sighting> {
    const before = this.#sightings ?? new Map<string, Sighting>();
    const seen = new Map<string, Sighting>();
    for (const lease of found) {
      const { name, resourceVersion: version = '' } = lease.metadata;
      const known = before.get(name);
      const holder = isObject(lease.spec) ? lease.spec.holderIdentity : undefined;
      const identity = typeof holder === 'string' && holder !== '' ? holder : (known?.identity ?? name);
      const since = known?.version === version ? known.since : at;
      const isAlive = holder !== '' && at - since < this.#options.leaseMs;
      seen.set(name, { version, identity, since, ...(!isAlive && { endedAt: known?.endedAt ?? at }) });
    }
    for (const [name, known] of before) if (!seen.has(name)) seen.set(name, { ...known, endedAt: known.endedAt ?? at });
    return new Map([...seen].filter(([, { endedAt }]) => endedAt === undefined || at - endedAt < reconnectMs));
  }
}
