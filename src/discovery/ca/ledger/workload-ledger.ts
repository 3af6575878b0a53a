/**
 * A rotation waits until workloads use the right certificates and trust the right roots. A workload is identified by SPIFFE ID and node ID. If it has
 * no node ID, its certificates count until they expire.
 */
import type { AuthorityId } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import { FairQueue } from '../../../model/collections/fair-queue.ts';

export interface WorkloadInstance {
  readonly identity: string;
  /** The agent reports a node ID that is unique within the identity. Empty if none is reported. */
  readonly node: string;
}

interface LedgerCertificate {
  readonly authority: AuthorityId;
  /** In OpenSSL's notation. Empty if unknown. */
  readonly serialNumber: string;
  /** Unix time in milliseconds. */
  readonly endsAt: number;
}

interface LedgerEntry extends WorkloadInstance {
  /** Oldest first. Envoy may use any of them. */
  readonly certificates: readonly LedgerCertificate[];
  /** Root IDs, sorted and joined. Empty if none were reported. */
  readonly trusts: string;
}

export type LedgerLine =
  | { readonly issued: WorkloadInstance & LedgerCertificate }
  | { readonly arrived: WorkloadInstance & { readonly serialNumber: string } }
  | { readonly trusted: WorkloadInstance & { readonly roots: readonly AuthorityId[] } };

export interface MissingWorkloads {
  readonly count: number;
  /** A sample of the workloads. */
  readonly workloads: readonly string[];
  readonly checkAgainAt: number;
}

export interface WorkloadEnd extends WorkloadInstance {
  /** Unix time in milliseconds. */
  readonly endsAt: number;
  /** If false, the workload may use a later certificate that another replica of the control plane signed. */
  readonly isConfirmed: boolean;
}

export interface WorkloadEnds {
  readonly count: number;
  /** Earliest expiry first. */
  readonly first: readonly WorkloadEnd[];
  readonly signedElsewhere: number;
}

export interface WorkloadLedgerOptions {
  readonly maxLeafMs: number;
  /** If the ledger is full, an entry of the largest namespace is evicted. */
  readonly maxEntries?: number;
  readonly maxOfIdentity?: number;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

/** Added to the maximum lifetime for workloads that do not report. */
const unconfirmedGraceMs = 24 * 3_600_000;
const maxListedNames = 10;
/** Of older certificates of a workload, only the expiry is kept. */
const maxCertificates = 8;
const sweepIntervalMs = 60_000;

export class WorkloadLedger {
  readonly #entries = new Map<string, LedgerEntry>();
  readonly #maxLeafMs: number;
  readonly #maxEntries: number;
  readonly #maxOfIdentity: number;
  readonly #now: () => number;
  readonly #listedWorkloads: FairQueue<string>;
  #sweptAt = Number.NEGATIVE_INFINITY;
  readonly #evictedExpiries = new Map<AuthorityId, number>();

  constructor({ maxLeafMs, maxEntries = 200_000, maxOfIdentity = 20_000, now = Date.now }: WorkloadLedgerOptions) {
    this.#maxLeafMs = maxLeafMs;
    this.#maxEntries = maxEntries;
    this.#maxOfIdentity = maxOfIdentity;
    this.#listedWorkloads = new FairQueue({ maxItems: maxEntries, maxOfKey: [undefined, maxOfIdentity] });
    this.#now = now;
  }

  get size(): number {
    return this.#entries.size;
  }

  apply(ledgerLine: LedgerLine): void {
    if ('issued' in ledgerLine) this.#applyIssued(ledgerLine.issued);
    else if ('arrived' in ledgerLine) this.#applyArrival(ledgerLine.arrived);
    else this.#recordTrusted(ledgerLine.trusted);
  }

  /** Also true for evicted workloads, whose reports are not recorded. */
  isReported({ roots, ...workload }: WorkloadInstance & { readonly roots: readonly AuthorityId[] }): boolean {
    const ledgerEntry = this.#entries.get(workloadKey(workload));
    return ledgerEntry === undefined || ledgerEntry.trusts === rootsText(roots);
  }

  /** Whether the report marks earlier certificates as replaced. */
  isNewArrival({ serialNumber, ...workload }: WorkloadInstance & { readonly serialNumber: string }): boolean {
    return this.#indexOf(workload, serialNumber) > 0;
  }

  *ledgerLines(now: number): Iterable<LedgerLine> {
    for (const { identity, node, certificates, trusts } of this.#entries.values()) {
      const unexpiredCertificates = certificates.filter(({ endsAt }) => endsAt > now);
      if (unexpiredCertificates.length === 0) continue;
      for (const certificate of unexpiredCertificates) yield { issued: { identity, node, ...certificate } };
      if (trusts !== '') yield { trusted: { identity, node, roots: trusts.split(' ') } };
    }
    for (const [authority, endsAt] of this.#evictedExpiries) {
      if (endsAt > now) yield { issued: { identity: '', node: '', authority, serialNumber: '', endsAt } };
    }
  }

  /**
   * A workload must trust exactly these roots.
   *
   * @param sinceMs start of the distribution of these roots
   */
  missingTrust(roots: readonly AuthorityId[], sinceMs: number, now: number): MissingWorkloads {
    const requiredText = rootsText(roots);
    return this.#findMissing(now, ({ node, trusts, certificates }) => {
      // A workload that does not report is missing until all its certificates have been renewed, because each renewal returns all roots.
      const isMissing = node === '' ? now < sinceMs + this.#maxLeafMs + unconfirmedGraceMs : trusts !== requiredText;
      return isMissing ? { endsAt: latestExpiry(certificates), why: '' } : undefined;
    });
  }

  /** Signing a certificate does not prove its delivery. */
  missingRenewal(authorities: readonly AuthorityId[], now: number): MissingWorkloads {
    return this.#findMissing(now, ({ certificates }) => {
      const relevantCertificates = certificates.filter(
        (candidate) => authorities.includes(candidate.authority) && candidate.endsAt > now,
      );
      if (relevantCertificates.length === 0) return undefined;
      const isRenewed = !authorities.includes(certificates.at(-1)!.authority);
      return {
        endsAt: latestExpiry(relevantCertificates),
        why: isRenewed ? 'renewed, but the renewal is not confirmed; ' : '',
      };
    });
  }

  /**
   * If no certificate is reported as in use, the newest one of the workload counts.
   *
   * @param maxCount limit of listed workloads, earliest expiry first
   * @param certificateInUse serial number that a connected workload last reported
   */
  upcomingExpiries(
    now: number,
    maxCount: number,
    certificateInUse: (workload: WorkloadInstance) => string | undefined = () => undefined,
  ): WorkloadEnds {
    const knownExpiries: WorkloadEnd[] = [];
    let signedElsewhere = 0;
    for (const { identity, node, certificates } of this.#entries.values()) {
      if (latestExpiry(certificates) <= now) continue;
      const serialNumberInUse = certificateInUse({ identity, node });
      const confirmedCertificate = certificates.find(
        ({ serialNumber }) => serialNumber !== '' && serialNumber === serialNumberInUse,
      );
      const { endsAt } = confirmedCertificate ?? certificates.at(-1)!;
      if (serialNumberInUse !== undefined && confirmedCertificate === undefined) signedElsewhere++;
      else if (endsAt > now)
        knownExpiries.push({ identity, node, endsAt, isConfirmed: confirmedCertificate !== undefined });
    }
    knownExpiries.sort((one, other) => one.endsAt - other.endsAt);
    return { count: knownExpiries.length, first: knownExpiries.slice(0, maxCount), signedElsewhere };
  }

  #applyIssued({ identity, node, ...certificate }: WorkloadInstance & LedgerCertificate): void {
    const key = workloadKey({ identity, node });
    const ledgerEntry = this.#entries.get(key);
    if (identity === '' || (ledgerEntry === undefined && !this.#list(key, identity))) {
      this.#addUnlistedCertificate(certificate);
      return;
    }
    const previous = ledgerEntry?.certificates ?? [];
    // All instances of an identity without a node ID share one entry.
    const nextCertificates = node === '' ? withLatestExpiry(previous, certificate) : [...previous, certificate];
    this.#entries.set(key, {
      identity,
      node,
      certificates: this.#limitCertificates(nextCertificates),
      trusts: ledgerEntry?.trusts ?? '',
    });
  }

  /**
   * Nodes have fair shares per identity, and identities per namespace.
   *
   * @returns whether the new entry is stored
   */
  #list(key: string, identity: string): boolean {
    const shareKey = [workloadIdentityOf(identity)?.namespace ?? identity, identity];
    if (this.#listedWorkloads.size >= this.#maxEntries || this.#listedWorkloads.sizeOf(shareKey) >= this.#maxOfIdentity)
      this.#sweep();
    const rejectedKey = this.#listedWorkloads.add(key, shareKey);
    if (rejectedKey === key) return false;
    if (rejectedKey !== undefined) {
      for (const certificate of this.#entries.get(rejectedKey)!.certificates) this.#addUnlistedCertificate(certificate);
      this.#entries.delete(rejectedKey);
    }
    return true;
  }

  #sweep(): void {
    const now = this.#now();
    if (Math.abs(now - this.#sweptAt) < sweepIntervalMs) return;
    this.#sweptAt = now;
    for (const [key, entry] of this.#entries) if (latestExpiry(entry.certificates) <= now) this.#removeEntry(key);
  }

  #removeEntry(key: string): void {
    this.#entries.delete(key);
    this.#listedWorkloads.remove(key);
  }

  /** Drops the oldest certificate from the list. Its authority is considered in use until the certificate expires. */
  #limitCertificates(certificates: readonly LedgerCertificate[]): readonly LedgerCertificate[] {
    if (certificates.length <= maxCertificates) return certificates;
    const [oldest, next, ...laterCertificates] = certificates;
    if (next!.authority === oldest!.authority) {
      return [{ ...next!, endsAt: Math.max(oldest!.endsAt, next!.endsAt) }, ...laterCertificates];
    }
    this.#addUnlistedCertificate(oldest!);
    return [next!, ...laterCertificates];
  }

  #addUnlistedCertificate({ authority, endsAt }: Omit<LedgerCertificate, 'serialNumber'>): void {
    this.#evictedExpiries.set(authority, Math.max(endsAt, this.#evictedExpiries.get(authority) ?? 0));
  }

  #applyArrival({ serialNumber, ...workload }: WorkloadInstance & { readonly serialNumber: string }): void {
    const certificateIndex = this.#indexOf(workload, serialNumber);
    if (certificateIndex <= 0) return;
    const key = workloadKey(workload);
    const ledgerEntry = this.#entries.get(key)!;
    this.#entries.set(key, { ...ledgerEntry, certificates: ledgerEntry.certificates.slice(certificateIndex) });
  }

  /** -1 if the certificate is unknown, or if the workload has no node ID. */
  #indexOf(workload: WorkloadInstance, serialNumber: string): number {
    if (workload.node === '' || serialNumber === '') return -1;
    const ledgerEntry = this.#entries.get(workloadKey(workload));
    return ledgerEntry?.certificates.findIndex((candidate) => candidate.serialNumber === serialNumber) ?? -1;
  }

  #recordTrusted({ identity, node, roots }: WorkloadInstance & { roots: readonly AuthorityId[] }): void {
    const ledgerEntry = this.#entries.get(workloadKey({ identity, node }));
    if (ledgerEntry !== undefined)
      this.#entries.set(workloadKey(ledgerEntry), { ...ledgerEntry, trusts: rootsText(roots) });
  }

  #findMissing(
    now: number,
    findMissingPart: (entry: LedgerEntry) => { endsAt: number; why: string } | undefined,
  ): MissingWorkloads {
    let count = 0;
    let checkAgainAt = now + 3_600_000;
    const workloads: string[] = [];
    for (const [key, entry] of this.#entries) {
      if (latestExpiry(entry.certificates) <= now) {
        this.#removeEntry(key);
        continue;
      }
      const missingWorkload = findMissingPart(entry);
      if (missingWorkload === undefined) continue;
      count++;
      checkAgainAt = Math.min(checkAgainAt, missingWorkload.endsAt);
      if (workloads.length < maxListedNames) workloads.push(describeMissing(entry, missingWorkload));
    }
    for (const [authority, endsAt] of this.#evictedExpiries) {
      if (endsAt <= now) {
        this.#evictedExpiries.delete(authority);
        continue;
      }
      const certificates = [{ authority, serialNumber: '', endsAt }];
      if (findMissingPart({ identity: '', node: '', certificates, trusts: '' }) === undefined) continue;
      count++;
      checkAgainAt = Math.min(checkAgainAt, endsAt);
    }
    return { count, workloads, checkAgainAt };
  }
}

function describeMissing({ identity, node }: LedgerEntry, { endsAt, why }: { endsAt: number; why: string }): string {
  return `${[identity, node].filter(Boolean).join(' ')} (${why}certificate expires ${new Date(endsAt).toISOString()})`;
}

function latestExpiry(certificates: readonly LedgerCertificate[]): number {
  return certificates.reduce((latestMs, { endsAt }) => Math.max(latestMs, endsAt), 0);
}

function withLatestExpiry(
  existingCertificates: readonly LedgerCertificate[],
  certificate: LedgerCertificate,
): LedgerCertificate[] {
  const { authority, endsAt } = certificate;
  const sameAuthority = existingCertificates.find((candidate) => candidate.authority === authority);
  const otherCertificates = existingCertificates.filter((candidate) => candidate !== sameAuthority);
  return [...otherCertificates, { authority, serialNumber: '', endsAt: Math.max(endsAt, sameAuthority?.endsAt ?? 0) }];
}

export function workloadKey({ identity, node }: WorkloadInstance): string {
  return `${identity} ${node}`;
}

export function rootsText(roots: readonly AuthorityId[]): string {
  return roots.toSorted().join(' ');
}
