/**
 * Which workloads have certificates of this control plane, and which roots each reports to trust. A rotation waits for this
 * (spec/identity.md §8). A workload is identified by its SPIFFE ID and node ID; one without a node ID cannot report, so its certificates
 * count until they expire.
 */
import type { AuthorityId } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import { FairQueue } from '../../../model/collections/fair-queue.ts';

export interface WorkloadInstance {
  readonly identity: string;
  /** Node ID that its agent reports; empty if it reports none. Scoped to the identity. */
  readonly node: string;
}

/** A certificate that was signed for a workload and may be in use. */
interface LedgerCertificate {
  readonly authority: AuthorityId;
  /** In OpenSSL's notation; empty if unknown, so that its arrival cannot be reported. */
  readonly serialNumber: string;
  /** Unix time in milliseconds. */
  readonly endsAt: number;
}

interface Entry extends WorkloadInstance {
  /** In the order of signing. Envoy may use any of them. */
  readonly certificates: readonly LedgerCertificate[];
  /** Sorted root IDs, joined; empty if it reported none. */
  readonly trusts: string;
}

export type LedgerLine =
  | { readonly issued: WorkloadInstance & LedgerCertificate }
  | { readonly arrived: WorkloadInstance & { readonly serialNumber: string } }
  | { readonly trusted: WorkloadInstance & { readonly roots: readonly AuthorityId[] } };

/** Workloads that a rotation stage waits for. */
export interface MissingWorkloads {
  readonly count: number;
  /** A sample, for display. */
  readonly workloads: readonly string[];
  /** When to check again, Unix time in milliseconds. */
  readonly checkAgainAt: number;
}

/** Expiry of a workload's newest certificate. */
export interface WorkloadEnd extends WorkloadInstance {
  /** Unix time in milliseconds. */
  readonly endsAt: number;
}

export interface WorkloadEnds {
  readonly count: number;
  /** The earliest to expire. */
  readonly first: readonly WorkloadEnd[];
}

export interface WorkloadLedgerOptions {
  /** Maximum lifetime of a certificate. */
  readonly maxLeafMs: number;
  /** Maximum number of workloads. Beyond it, the namespace with the most entries loses one. */
  readonly maxEntries?: number;
  /** Maximum number of reported nodes per identity. */
  readonly maxOfIdentity?: number;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

/** Waiting time for workloads that do not report, in addition to the maximum lifetime (spec/identity.md §8). */
const unconfirmedGraceMs = 24 * 3_600_000;
const maxListedNames = 10;
/** Per workload. Beyond it the oldest counts only by its expiry. */
const maxCertificates = 8;
/** Minimum interval between sweeps of expired entries when the ledger is full. */
const sweepIntervalMs = 60_000;

export class WorkloadLedger {
  readonly #entries = new Map<string, Entry>();
  readonly #maxLeafMs: number;
  readonly #maxEntries: number;
  readonly #maxOfIdentity: number;
  readonly #now: () => number;
  /** Keys of entries, by namespace and identity. */
  readonly #listed: FairQueue<string>;
  #sweptAt = Number.NEGATIVE_INFINITY;
  /** Latest expiry of certificates of workloads that are not listed, by authority. */
  readonly #unlisted = new Map<AuthorityId, number>();

  constructor({ maxLeafMs, maxEntries = 200_000, maxOfIdentity = 20_000, now = Date.now }: WorkloadLedgerOptions) {
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

  /** Whether these are the roots that it last reported. Also used for workloads that are not listed, of which nothing is stored. */
  isReported({ roots, ...workload }: WorkloadInstance & { readonly roots: readonly AuthorityId[] }): boolean {
    const known = this.#entries.get(workloadKey(workload));
    return known === undefined || known.trusts === rootsText(roots);
  }

  /** Whether the report changes anything: earlier certificates of the workload are then no longer in use. */
  isNewArrival({ serialNumber, ...workload }: WorkloadInstance & { readonly serialNumber: string }): boolean {
    return this.#placeOf(workload, serialNumber) > 0;
  }

  /** Lines from which the same ledger can be restored. */
  *lines(now: number): Iterable<LedgerLine> {
    for (const { identity, node, certificates, trusts } of this.#entries.values()) {
      const valid = certificates.filter(({ endsAt }) => endsAt > now);
      if (valid.length === 0) continue;
      for (const certificate of valid) yield { issued: { identity, node, ...certificate } };
      if (trusts !== '') yield { trusted: { identity, node, roots: trusts.split(' ') } };
    }
    for (const [authority, endsAt] of this.#unlisted) {
      if (endsAt > now) yield { issued: { identity: '', node: '', authority, serialNumber: '', endsAt } };
    }
  }

  /** Workloads with valid certificates that do not trust exactly these roots, which were first distributed at `since`. */
  missingTrust(roots: readonly AuthorityId[], since: number, now: number): MissingWorkloads {
    const requiredText = rootsText(roots);
    return this.#missing(now, ({ node, trusts, certificates }) => {
      // By time: each renewal receives all roots.
      const isMissing = node === '' ? now < since + this.#maxLeafMs + unconfirmedGraceMs : trusts !== requiredText;
      return isMissing ? { endsAt: latestExpiry(certificates), why: '' } : undefined;
    });
  }

  /**
   * Workloads that may use a certificate of one of these authorities: it has not expired, and no later one is reported to have arrived.
   * Signing alone proves nothing: the agent may have exited before its Envoy received it.
   */
  missingRenewal(authorities: readonly AuthorityId[], now: number): MissingWorkloads {
    return this.#missing(now, ({ certificates }) => {
      const relevant = certificates.filter((one) => authorities.includes(one.authority) && one.endsAt > now);
      if (relevant.length === 0) return undefined;
      const isRenewed = !authorities.includes(certificates.at(-1)!.authority);
      return { endsAt: latestExpiry(relevant), why: isRenewed ? 'renewed, but the renewal is not confirmed; ' : '' };
    });
  }

  /**
   * Workloads whose newest certificate has not expired.
   *
   * @param max listed workloads, the earliest to expire first
   */
  ends(now: number, max: number): WorkloadEnds {
    const valid: WorkloadEnd[] = [];
    for (const { identity, node, certificates } of this.#entries.values()) {
      const endsAt = latestExpiry(certificates);
      if (endsAt > now) valid.push({ identity, node, endsAt });
    }
    valid.sort((one, other) => one.endsAt - other.endsAt);
    return { count: valid.length, first: valid.slice(0, max) };
  }

  #issued({ identity, node, ...certificate }: WorkloadInstance & LedgerCertificate): void {
    const key = workloadKey({ identity, node });
    const known = this.#entries.get(key);
    if (identity === '' || (known === undefined && !this.#list(key, identity))) {
      this.#addUnlisted(certificate);
      return;
    }
    const previous = known?.certificates ?? [];
    // Workloads without a node ID share one entry: the latest expiry per authority counts.
    const all = node === '' ? withLatestExpiry(previous, certificate) : [...previous, certificate];
    this.#entries.set(key, { identity, node, certificates: this.#bounded(all), trusts: known?.trusts ?? '' });
  }

  /**
   * Adds an entry with fair shares: one identity's nodes leave entries to other identities, and one namespace's identities to other
   * namespaces. An evicted entry counts until its certificates expire.
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
    if (Math.abs(now - this.#sweptAt) < sweepIntervalMs) return;
    this.#sweptAt = now;
    for (const [key, entry] of this.#entries) if (latestExpiry(entry.certificates) <= now) this.#forget(key);
  }

  #forget(key: string): void {
    this.#entries.delete(key);
    this.#listed.remove(key);
  }

  /** The oldest loses its owner and counts until it expires. */
  #bounded(certificates: readonly LedgerCertificate[]): readonly LedgerCertificate[] {
    if (certificates.length <= maxCertificates) return certificates;
    const [oldest, next, ...rest] = certificates;
    if (next!.authority === oldest!.authority) {
      return [{ ...next!, endsAt: Math.max(oldest!.endsAt, next!.endsAt) }, ...rest];
    }
    this.#addUnlisted(oldest!);
    return [next!, ...rest];
  }

  #addUnlisted({ authority, endsAt }: Omit<LedgerCertificate, 'serialNumber'>): void {
    this.#unlisted.set(authority, Math.max(endsAt, this.#unlisted.get(authority) ?? 0));
  }

  #arrived({ serialNumber, ...workload }: WorkloadInstance & { readonly serialNumber: string }): void {
    const place = this.#placeOf(workload, serialNumber);
    if (place <= 0) return;
    const key = workloadKey(workload);
    const known = this.#entries.get(key)!;
    this.#entries.set(key, { ...known, certificates: known.certificates.slice(place) });
  }

  /** Index in its certificates; -1 if it is not among them, or if the workload has no node ID. */
  #placeOf(workload: WorkloadInstance, serialNumber: string): number {
    if (workload.node === '' || serialNumber === '') return -1;
    const known = this.#entries.get(workloadKey(workload));
    return known?.certificates.findIndex((one) => one.serialNumber === serialNumber) ?? -1;
  }

  #trusted({ identity, node, roots }: WorkloadInstance & { roots: readonly AuthorityId[] }): void {
    const known = this.#entries.get(workloadKey({ identity, node }));
    if (known !== undefined) this.#entries.set(workloadKey(known), { ...known, trusts: rootsText(roots) });
  }

  #missing(now: number, missingOf: (entry: Entry) => { endsAt: number; why: string } | undefined): MissingWorkloads {
    let count = 0;
    let checkAgainAt = now + 3_600_000;
    const workloads: string[] = [];
    for (const [key, entry] of this.#entries) {
      if (latestExpiry(entry.certificates) <= now) {
        this.#forget(key);
        continue;
      }
      const missing = missingOf(entry);
      if (missing === undefined) continue;
      count++;
      checkAgainAt = Math.min(checkAgainAt, missing.endsAt);
      if (workloads.length < maxListedNames) workloads.push(describeMissing(entry, missing));
    }
    for (const [authority, endsAt] of this.#unlisted) {
      if (endsAt <= now) {
        this.#unlisted.delete(authority);
        continue;
      }
      const certificates = [{ authority, serialNumber: '', endsAt }];
      if (missingOf({ identity: '', node: '', certificates, trusts: '' }) === undefined) continue;
      count++;
      checkAgainAt = Math.min(checkAgainAt, endsAt);
    }
    return { count, workloads, checkAgainAt };
  }
}

/** Workload and latest expiry, after which it no longer counts. */
function describeMissing({ identity, node }: Entry, { endsAt, why }: { endsAt: number; why: string }): string {
  return `${[identity, node].filter(Boolean).join(' ')} (${why}certificate expires ${new Date(endsAt).toISOString()})`;
}

function latestExpiry(certificates: readonly LedgerCertificate[]): number {
  return certificates.reduce((latest, { endsAt }) => Math.max(latest, endsAt), 0);
}

function withLatestExpiry(existing: readonly LedgerCertificate[], certificate: LedgerCertificate): LedgerCertificate[] {
  const { authority, endsAt } = certificate;
  const sameAuthority = existing.find((one) => one.authority === authority);
  const otherCertificates = existing.filter((one) => one !== sameAuthority);
  return [...otherCertificates, { authority, serialNumber: '', endsAt: Math.max(endsAt, sameAuthority?.endsAt ?? 0) }];
}

/** Key of a workload in maps. */
export function workloadKey({ identity, node }: WorkloadInstance): string {
  return `${identity} ${node}`;
}

/** Independent of the order. */
export function rootsText(roots: readonly AuthorityId[]): string {
  return roots.toSorted().join(' ');
}
