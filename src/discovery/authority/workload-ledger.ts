/**
 * Who holds a certificate of ours, and which roots each of them trusts by its own word: what decides whether a rotation may go
 * on (spec/identity.md §8). A workload is known by its identity and the id of its node; one that says no id can give no
 * word, and is waited for by time.
 */
import type { AuthorityId } from '../../../machines/discovery/protocol.ts';

export interface Workload {
  readonly identity: string;
  /** As its agent says; empty: it says none. It concerns workloads of the same identity only. */
  readonly node: string;
}

interface Entry extends Workload {
  readonly authority: AuthorityId;
  /** Unix time in milliseconds. */
  readonly endsAt: number;
  /** Sorted ids, joined; empty: it has said nothing. */
  readonly trusts: string;
}

export type LedgerLine =
  | { readonly issued: Workload & { readonly authority: AuthorityId; readonly endsAt: number } }
  | { readonly trusted: Workload & { readonly roots: readonly AuthorityId[] } };

/** What somebody waits for. */
export interface Missing {
  readonly count: number;
  /** Some of them. */
  readonly workloads: readonly string[];
  /** When to look again at the latest, Unix time in milliseconds. */
  readonly lookAgainAt: number;
}

export interface LedgerOptions {
  /** Longest life of a certificate. */
  readonly maxLeafMs: number;
  readonly mostEntries?: number;
}

/** For those that give no word, beyond the longest life of a certificate (spec/identity.md §8). */
const beyondMs = 24 * 3_600_000;
const namesShown = 10;

export class WorkloadLedger {
  readonly #entries = new Map<string, Entry>();
  readonly #maxLeafMs: number;
  readonly #mostEntries: number;
  /** The last end of a certificate of those that are not listed, by who signed it. */
  readonly #unlisted = new Map<AuthorityId, number>();

  constructor({ maxLeafMs, mostEntries = 200_000 }: LedgerOptions) {
    this.#maxLeafMs = maxLeafMs;
    this.#mostEntries = mostEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  apply(line: LedgerLine): void {
    if ('issued' in line) this.#issued(line.issued);
    else this.#trusted(line.trusted);
  }

  /** Whether this is what it said last; also for one that is not listed, of which nothing is kept. */
  hasWord({ roots, ...workload }: Workload & { readonly roots: readonly AuthorityId[] }): boolean {
    const known = this.#entries.get(keyOfWorkload(workload));
    return known === undefined || known.trusts === textOfRoots(roots);
  }

  /** As lines that lead to the same ledger. */
  *lines(now: number): Iterable<LedgerLine> {
    for (const { identity, node, authority, endsAt, trusts } of this.#entries.values()) {
      if (endsAt <= now) continue;
      yield { issued: { identity, node, authority, endsAt } };
      if (trusts !== '') yield { trusted: { identity, node, roots: trusts.split(' ') } };
    }
    for (const [authority, endsAt] of this.#unlisted) {
      if (endsAt > now) yield { issued: { identity: '', node: '', authority, endsAt } };
    }
  }

  /** Those that live and do not trust exactly these roots, as of `since`, when they were first given out. */
  missingTrust(roots: readonly AuthorityId[], since: number, now: number): Missing {
    const wanted = textOfRoots(roots);
    return this.#missing(now, ({ node, trusts }) => {
      // By time: everyone who renews is told of all roots then.
      if (node === '') return now < since + this.#maxLeafMs + beyondMs;
      return trusts !== wanted;
    });
  }

  /** Those that hold a certificate which this authority has signed. */
  missingRenewal(authority: AuthorityId, now: number): Missing {
    return this.#missing(now, (entry) => entry.authority === authority);
  }

  #issued({ identity, node, authority, endsAt }: Workload & { authority: AuthorityId; endsAt: number }): void {
    const key = keyOfWorkload({ identity, node });
    const known = this.#entries.get(key);
    const isNew = known === undefined && identity !== '';
    if (identity === '' || (isNew && this.#entries.size >= this.#mostEntries)) {
      this.#unlisted.set(authority, Math.max(endsAt, this.#unlisted.get(authority) ?? 0));
      return;
    }
    // Of several without an id the last one counts for all, for each authority.
    if (node === '' && known !== undefined && known.authority !== authority) {
      this.#unlisted.set(known.authority, Math.max(known.endsAt, this.#unlisted.get(known.authority) ?? 0));
    }
    this.#entries.set(key, { identity, node, authority, endsAt, trusts: known?.trusts ?? '' });
  }

  #trusted({ identity, node, roots }: Workload & { roots: readonly AuthorityId[] }): void {
    const known = this.#entries.get(keyOfWorkload({ identity, node }));
    if (known !== undefined) this.#entries.set(keyOfWorkload(known), { ...known, trusts: textOfRoots(roots) });
  }

  #missing(now: number, isMissing: (entry: Entry) => boolean): Missing {
    let count = 0;
    let lookAgainAt = now + 3_600_000;
    const workloads: string[] = [];
    for (const [key, entry] of this.#entries) {
      if (entry.endsAt <= now) {
        this.#entries.delete(key);
        continue;
      }
      if (!isMissing(entry)) continue;
      count++;
      lookAgainAt = Math.min(lookAgainAt, entry.endsAt);
      if (workloads.length < namesShown) workloads.push([entry.identity, entry.node].filter(Boolean).join(' '));
    }
    for (const [authority, endsAt] of this.#unlisted) {
      if (endsAt <= now) {
        this.#unlisted.delete(authority);
        continue;
      }
      if (!isMissing({ identity: '', node: '', authority, endsAt, trusts: '' })) continue;
      count++;
      lookAgainAt = Math.min(lookAgainAt, endsAt);
    }
    return { count, workloads, lookAgainAt };
  }
}

/** Of a workload among others. */
export function keyOfWorkload({ identity, node }: Workload): string {
  return `${identity} ${node}`;
}

/** The same for the same roots in whatever order. */
export function textOfRoots(roots: readonly AuthorityId[]): string {
  return roots.toSorted().join(' ');
}
