/**
 * Who holds a certificate of ours, and which roots each of them trusts by its own word: what decides whether a rotation may go
 * on (spec/identity.md §8). A workload is known by its identity and the id of its node; one that says no id can give no
 * word, and is waited for by time.
 */
import type { AuthorityId } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import { FairQueue } from '../../../model/collections/fair-queue.ts';

export interface Workload {
  readonly identity: string;
  /** As its agent says; empty: it says none. It concerns workloads of the same identity only. */
  readonly node: string;
}

/** What was signed for a workload, and may be in its Envoy. */
interface IssuedCertificate {
  readonly authority: AuthorityId;
  /** As OpenSSL writes it; empty: not known, so nobody can say that it has arrived. */
  readonly serialNumber: string;
  /** Unix time in milliseconds. */
  readonly endsAt: number;
}

interface Entry extends Workload {
  /** In the order in which they were signed. The first may be the one in its Envoy, and any of those after it. */
  readonly certificates: readonly IssuedCertificate[];
  /** Sorted ids, joined; empty: it has said nothing. */
  readonly trusts: string;
}

export type LedgerLine =
  | { readonly issued: Workload & IssuedCertificate }
  | { readonly arrived: Workload & { readonly serialNumber: string } }
  | { readonly trusted: Workload & { readonly roots: readonly AuthorityId[] } };

/** What somebody waits for. */
export interface Missing {
  readonly count: number;
  /** Some of them. */
  readonly workloads: readonly string[];
  /** When to look again at the latest, Unix time in milliseconds. */
  readonly lookAgainAt: number;
}

/** When the newest certificate of a workload ends. */
export interface WorkloadEnd extends Workload {
  /** Unix time in milliseconds. */
  readonly endsAt: number;
}

export interface WorkloadEnds {
  readonly count: number;
  /** The first ones to end. */
  readonly first: readonly WorkloadEnd[];
}

export interface LedgerOptions {
  /** Longest life of a certificate. */
  readonly maxLeafMs: number;
  /** Workloads that are listed. Beyond it the namespace with the most gives one up. */
  readonly maxEntries?: number;
  /** Nodes that workloads of one identity may be at, by their own word. */
  readonly maxOfIdentity?: number;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

/** For those that give no word, beyond the longest life of a certificate (spec/identity.md §8). */
const beyondMs = 24 * 3_600_000;
const namesShown = 10;
/** Of a workload: what it asks for beyond that it has to wait for. */
const mostCertificates = 8;
/** Where there is no room, those whose certificates have ended are looked for no more often. */
const sweptEveryMs = 60_000;

export class WorkloadLedger {
  readonly #entries = new Map<string, Entry>();
  readonly #maxLeafMs: number;
  readonly #maxEntries: number;
  readonly #maxOfIdentity: number;
  readonly #now: () => number;
  /** Keys of entries, by namespace and identity. */
  readonly #listed: FairQueue<string>;
  #sweptAt = Number.NEGATIVE_INFINITY;
  /** The last end of a certificate of those that are not listed, by who signed it. */
  readonly #unlisted = new Map<AuthorityId, number>();

  constructor({ maxLeafMs, maxEntries = 200_000, maxOfIdentity = 20_000, now = Date.now }: LedgerOptions) {
    this.#maxLeafMs = maxLeafMs;
    this.#maxEntries = maxEntries;
    this.#maxOfIdentity = maxOfIdentity;
    this.#listed = new FairQueue({ maxItems: maxEntries, maxOfKey: [undefined, maxOfIdentity] });
    this.#now = now;
  }

  get size(): number {
    return this.#entries.size;
  }

  apply(line: LedgerLine): void {
    if ('issued' in line) this.#issued(line.issued);
    else if ('arrived' in line) this.#arrived(line.arrived);
    else this.#trusted(line.trusted);
  }

  /** Whether this is what it said last; also for one that is not listed, of which nothing is kept. */
  hasWord({ roots, ...workload }: Workload & { readonly roots: readonly AuthorityId[] }): boolean {
    const known = this.#entries.get(keyOfWorkload(workload));
    return known === undefined || known.trusts === textOfRoots(roots);
  }

  /** Whether it tells something that a certificate has arrived: there were others before it, which are in use no more. */
  isNews({ serialNumber, ...workload }: Workload & { readonly serialNumber: string }): boolean {
    return this.#placeOf(workload, serialNumber) > 0;
  }

  /** As lines that lead to the same ledger. */
  *lines(now: number): Iterable<LedgerLine> {
    for (const { identity, node, certificates, trusts } of this.#entries.values()) {
      const living = certificates.filter(({ endsAt }) => endsAt > now);
      if (living.length === 0) continue;
      for (const certificate of living) yield { issued: { identity, node, ...certificate } };
      if (trusts !== '') yield { trusted: { identity, node, roots: trusts.split(' ') } };
    }
    for (const [authority, endsAt] of this.#unlisted) {
      if (endsAt > now) yield { issued: { identity: '', node: '', authority, serialNumber: '', endsAt } };
    }
  }

  /** Those that live and do not trust exactly these roots, as of `since`, when they were first given out. */
  missingTrust(roots: readonly AuthorityId[], since: number, now: number): Missing {
    const wanted = textOfRoots(roots);
    return this.#missing(now, ({ node, trusts, certificates }) => {
      // By time: everyone who renews is told of all roots then.
      const isMissing = node === '' ? now < since + this.#maxLeafMs + beyondMs : trusts !== wanted;
      return isMissing ? { endsAt: lastEnd(certificates), why: '' } : undefined;
    });
  }

  /**
   * Those that may hold a certificate which an authority of these ids has signed: it lives, and none that was signed later is known to have
   * arrived in its place. That one was signed is no such word: its agent may have ended before its Envoy had it.
   */
  missingRenewal(authorities: readonly AuthorityId[], now: number): Missing {
    return this.#missing(now, ({ certificates }) => {
      const held = certificates.filter((one) => authorities.includes(one.authority) && one.endsAt > now);
      if (held.length === 0) return undefined;
      const isSignedAnew = !authorities.includes(certificates.at(-1)!.authority);
      return { endsAt: lastEnd(held), why: isSignedAnew ? 'renewed, but the renewal is not confirmed; ' : '' };
    });
  }

  /**
   * Workloads whose newest certificate has not expired.
   *
   * @param max workloads that are listed: those whose newest certificate expires first
   */
  ends(now: number, max: number): WorkloadEnds {
    const living: WorkloadEnd[] = [];
    for (const { identity, node, certificates } of this.#entries.values()) {
      const endsAt = lastEnd(certificates);
      if (endsAt > now) living.push({ identity, node, endsAt });
    }
    living.sort((one, other) => one.endsAt - other.endsAt);
    return { count: living.length, first: living.slice(0, max) };
  }

  #issued({ identity, node, ...certificate }: Workload & IssuedCertificate): void {
    const key = keyOfWorkload({ identity, node });
    const known = this.#entries.get(key);
    if (identity === '' || (known === undefined && !this.#list(key, identity))) {
      this.#addUnlisted(certificate);
      return;
    }
    const before = known?.certificates ?? [];
    // Several workloads without an id are one to us: of what each authority has signed for them the last end counts.
    const all = node === '' ? withLastEnd(before, certificate) : [...before, certificate];
    this.#entries.set(key, { identity, node, certificates: this.#bounded(all), trusts: known?.trusts ?? '' });
  }

  /**
   * However many nodes one identity names, there is room for other identities, and however many identities a namespace has, for other
   * namespaces. An entry that makes room is waited for by time.
   *
   * @returns whether the new entry is listed
   */
  #list(key: string, identity: string): boolean {
    const share = [workloadIdentityOf(identity)?.namespace ?? identity, identity];
    if (this.#listed.size >= this.#maxEntries || this.#listed.sizeOf(share) >= this.#maxOfIdentity) this.#sweep();
    const rejected = this.#listed.add(key, share);
    if (rejected === key) return false;
    if (rejected !== undefined) {
      for (const certificate of this.#entries.get(rejected)!.certificates) this.#addUnlisted(certificate);
      this.#entries.delete(rejected);
    }
    return true;
  }

  #sweep(): void {
    const now = this.#now();
    if (Math.abs(now - this.#sweptAt) < sweptEveryMs) return;
    this.#sweptAt = now;
    for (const [key, entry] of this.#entries) if (lastEnd(entry.certificates) <= now) this.#forget(key);
  }

  #forget(key: string): void {
    this.#entries.delete(key);
    this.#listed.remove(key);
  }

  /** The oldest is forgotten as a certificate of somebody, and waited for until it ends. */
  #bounded(certificates: readonly IssuedCertificate[]): readonly IssuedCertificate[] {
    if (certificates.length <= mostCertificates) return certificates;
    const [oldest, next, ...rest] = certificates;
    if (next!.authority === oldest!.authority) {
      return [{ ...next!, endsAt: Math.max(oldest!.endsAt, next!.endsAt) }, ...rest];
    }
    this.#addUnlisted(oldest!);
    return [next!, ...rest];
  }

  #addUnlisted({ authority, endsAt }: Omit<IssuedCertificate, 'serialNumber'>): void {
    this.#unlisted.set(authority, Math.max(endsAt, this.#unlisted.get(authority) ?? 0));
  }

  #arrived({ serialNumber, ...workload }: Workload & { readonly serialNumber: string }): void {
    const place = this.#placeOf(workload, serialNumber);
    if (place <= 0) return;
    const key = keyOfWorkload(workload);
    const known = this.#entries.get(key)!;
    this.#entries.set(key, { ...known, certificates: known.certificates.slice(place) });
  }

  /** Among what was signed for it; -1: it was not, or nobody's word counts for all who have no id. */
  #placeOf(workload: Workload, serialNumber: string): number {
    if (workload.node === '' || serialNumber === '') return -1;
    const known = this.#entries.get(keyOfWorkload(workload));
    return known?.certificates.findIndex((one) => one.serialNumber === serialNumber) ?? -1;
  }

  #trusted({ identity, node, roots }: Workload & { roots: readonly AuthorityId[] }): void {
    const known = this.#entries.get(keyOfWorkload({ identity, node }));
    if (known !== undefined) this.#entries.set(keyOfWorkload(known), { ...known, trusts: textOfRoots(roots) });
  }

  #missing(now: number, missingOf: (entry: Entry) => { endsAt: number; why: string } | undefined): Missing {
    let count = 0;
    let lookAgainAt = now + 3_600_000;
    const workloads: string[] = [];
    for (const [key, entry] of this.#entries) {
      if (lastEnd(entry.certificates) <= now) {
        this.#forget(key);
        continue;
      }
      const missing = missingOf(entry);
      if (missing === undefined) continue;
      count++;
      lookAgainAt = Math.min(lookAgainAt, missing.endsAt);
      if (workloads.length < namesShown) workloads.push(described(entry, missing));
    }
    for (const [authority, endsAt] of this.#unlisted) {
      if (endsAt <= now) {
        this.#unlisted.delete(authority);
        continue;
      }
      const certificates = [{ authority, serialNumber: '', endsAt }];
      if (missingOf({ identity: '', node: '', certificates, trusts: '' }) === undefined) continue;
      count++;
      lookAgainAt = Math.min(lookAgainAt, endsAt);
    }
    return { count, workloads, lookAgainAt };
  }
}

/** Who it is, and when what it may hold ends: nobody is waited for beyond that. */
function described({ identity, node }: Entry, { endsAt, why }: { endsAt: number; why: string }): string {
  return `${[identity, node].filter(Boolean).join(' ')} (${why}certificate expires ${new Date(endsAt).toISOString()})`;
}

function lastEnd(certificates: readonly IssuedCertificate[]): number {
  return certificates.reduce((latest, { endsAt }) => Math.max(latest, endsAt), 0);
}

function withLastEnd(before: readonly IssuedCertificate[], certificate: IssuedCertificate): IssuedCertificate[] {
  const { authority, endsAt } = certificate;
  const same = before.find((one) => one.authority === authority);
  const others = before.filter((one) => one !== same);
  return [...others, { authority, serialNumber: '', endsAt: Math.max(endsAt, same?.endsAt ?? 0) }];
}

/** Of a workload among others. */
export function keyOfWorkload({ identity, node }: Workload): string {
  return `${identity} ${node}`;
}

/** The same for the same roots in whatever order. */
export function textOfRoots(roots: readonly AuthorityId[]): string {
  return roots.toSorted().join(' ');
}
