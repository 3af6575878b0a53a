/** The effects of the chart `authority`, and what is made of their outcome: who signs, and which roots are trusted. */

import type { AuthorityReading, Candidate, Journal } from '../../../machines/discovery/ca/authority.machine.ts';
import type { AuthorityId, RotationStage } from '../../../machines/discovery/ca/authority-protocol.ts';
import { rootKeyOf } from '../../identity/certificate.ts';
import { TrustBundle } from '../../identity/trust-bundle.ts';
import { explainInOneLine, messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { type AuthorityMaterial, isPluggedIn, readPluggedIn } from './authority-material.ts';
import type { AuthorityStore } from './authority-store.ts';
import { CertificateSigner } from './issuing/certificate-signer.ts';
import { makeRoot, type RootOptions } from './root-maker.ts';

export interface AuthorityOptions {
  readonly root: Omit<RootOptions, 'trustDomain'>;
  /** Where a person may plug one in (ROOT_CA_DIR). */
  readonly pluggedInDirectory: string;
  readonly store: AuthorityStore;
  /** Of the mesh, now. */
  readonly trustDomain: () => string;
  /** Of a root's life, so many hundredths before its end the next one is begun. */
  readonly gracePercent: number;
  readonly now: () => Date;
  readonly log: Pick<Logger, 'warn'>;
}

/** What counts now. */
export interface AuthorityInForce {
  readonly material: AuthorityMaterial;
  /** The roots that everybody is to trust, the signer's among them. */
  readonly bundle: TrustBundle;
  readonly roots: readonly AuthorityId[];
  /**
   * Signs what the control plane itself shows. While a new authority signs for workloads that is still the one before: whoever
   * knows the old root alone must find the control plane, to be told of the new one (spec/identity.md §8, "last").
   */
  readonly ofServer: AuthorityMaterial;
  /** Those whose roots are trusted. */
  readonly authorities: readonly AuthorityMaterial[];
  /** Of these, hashes of those of which nobody is to have a certificate any more. */
  readonly tainted: readonly string[];
}

/** Whoever says what counts: an authority of this program alone, or one that replicas share. */
export interface SigningAuthority {
  readonly signer: CertificateSigner;
  /** Undefined as long as nothing can be signed. */
  readonly inForce: AuthorityInForce | undefined;
  /** Whose key is no longer only ours; null: nobody has said so. */
  readonly tainted: AuthorityId | null;
  /** Undefined before there is one. */
  readonly stage: RotationStage | undefined;
  /** Called with each change of the signer or the roots. */
  onChanged(listener: (inForce: AuthorityInForce) => void): void;
}

export class Authority implements SigningAuthority {
  readonly signer: CertificateSigner;
  readonly #options: AuthorityOptions;
  readonly #materials = new Map<AuthorityId, AuthorityMaterial>();
  readonly #listeners = new Set<(inForce: AuthorityInForce) => void>();
  #roots: readonly AuthorityId[] = [];
  #tainted: AuthorityId | null = null;
  #signer: AuthorityMaterial | undefined;
  #journal: Journal | undefined;

  constructor(options: AuthorityOptions) {
    this.#options = options;
    this.signer = new CertificateSigner({
      broken: (error) => options.log.warn('authority.signerFailed', { reason: messageOf(error) }),
    });
  }

  /** Undefined as long as nothing can be signed. */
  get inForce(): AuthorityInForce | undefined {
    const material = this.#signer;
    if (material === undefined || this.#roots.length === 0) return undefined;
    const [authorities, ofServer] = [this.#authorities, this.#ofServer ?? material];
    const tainted = authorities.filter(({ id }) => id === this.#tainted).map(({ root }) => root.sha256);
    return { material, bundle: this.#bundle, roots: this.#roots, ofServer, authorities, tainted };
  }

  get #authorities(): AuthorityMaterial[] {
    return this.#roots.flatMap((id) => this.#materials.get(id) ?? []);
  }

  get #bundle(): TrustBundle {
    const roots = this.#authorities.map(({ root }) => root);
    return new TrustBundle(this.#options.trustDomain(), roots);
  }

  get #ofServer(): AuthorityMaterial | undefined {
    const { stage, other } = this.#journal ?? {};
    const before = stage === 'signing' ? this.#materials.get(other ?? '') : undefined;
    return before !== undefined && before.notAfter > this.#options.now() ? before : undefined;
  }

  /** Whose key is no longer only ours; null: nobody has said so. */
  get tainted(): AuthorityId | null {
    return this.#journal?.tainted ?? null;
  }

  /** What was written down last; undefined before. */
  get stage(): RotationStage | undefined {
    return this.#journal?.stage;
  }

  /** Called with each change of the signer or the roots. */
  onChanged(listener: (inForce: AuthorityInForce) => void): void {
    this.#listeners.add(listener);
  }

  // ---- effects of the chart

  load(): AuthorityReading {
    const { store, pluggedInDirectory, now } = this.#options;
    try {
      const journal = store.readJournal();
      if (isPluggedIn(pluggedInDirectory)) return this.#resumePluggedIn(this.#readPluggedIn(), journal);
      return journal === undefined ? { outcome: 'absent' } : this.#resumeStored(journal, now());
    } catch (error) {
      return { outcome: 'refused', reason: explainInOneLine(error) };
    }
  }

  async prepareRoot(): Promise<{ id: AuthorityId }> {
    const { root, trustDomain, store, pluggedInDirectory, now } = this.#options;
    if (isPluggedIn(pluggedInDirectory)) {
      throw new Error(
        `a plugged-in authority is not rotated by the control plane: put the next one into ${pluggedInDirectory}`,
      );
    }
    const material = await makeRoot({ ...root, trustDomain: trustDomain() }, now());
    store.save(material);
    // What was stored is what counts: a disk that answers something else is found out here.
    this.#remember(store.read(material.id, now()));
    return { id: material.id };
  }

  readCandidate(signer: AuthorityId): Candidate {
    const { pluggedInDirectory, store } = this.#options;
    if (!isPluggedIn(pluggedInDirectory)) return { outcome: 'same' };
    try {
      const material = this.#readPluggedIn();
      const before = this.#materials.get(signer);
      if (before !== undefined && isSame(material, before)) return { outcome: 'same' };
      const isTrusted = before !== undefined && rootKeyOf(material.root) === rootKeyOf(before.root);
      if (material.id === signer && !isTrusted) {
        throw new Error(this.#otherRoot);
      }
      store.save(material);
      this.#remember(material);
      return { outcome: isTrusted ? 'renewed' : 'replaced', id: material.id };
    } catch (error) {
      return { outcome: 'refused', reason: explainInOneLine(error) };
    }
  }

  isRootDue(signer: AuthorityId): boolean {
    const { pluggedInDirectory, gracePercent, now, log } = this.#options;
    const root = this.#materials.get(signer)?.root;
    if (root === undefined) return false;
    const life = root.notAfter.getTime() - root.notBefore.getTime();
    const isDue = root.notAfter.getTime() - now().getTime() < (life * gracePercent) / 100;
    if (isDue && isPluggedIn(pluggedInDirectory)) {
      log.warn('authority.rootEnding', { notAfter: root.notAfter.toISOString(), directory: pluggedInDirectory });
      return false;
    }
    return isDue;
  }

  writeJournal(journal: Journal): void {
    const { store } = this.#options;
    store.writeJournal(journal);
    this.#journal = journal;
    store.keepOnly(idsOf(journal));
    for (const id of this.#materials.keys()) if (!idsOf(journal).includes(id)) this.#materials.delete(id);
  }

  publishRoots(roots: readonly AuthorityId[], tainted: AuthorityId | null = null): void {
    this.#roots = roots;
    this.#tainted = tainted;
    this.#saveRoots();
    this.#tell();
  }

  signWith(id: AuthorityId): void {
    const material = this.#materials.get(id);
    if (material === undefined || material === this.#signer) return;
    this.#signer = material;
    this.signer.use(material);
    this.#tell();
  }

  /** Of two with one key nobody could say which root a certificate hangs on. */
  get #otherRoot(): string {
    return `the authority in ${this.#options.pluggedInDirectory} has a new root certificate with the key of the previous one: create it with a new key`;
  }

  // ---- what was there before

  #resumePluggedIn(plugged: AuthorityMaterial, journal: Journal | undefined): AuthorityReading {
    const { store, log, now } = this.#options;
    const stored = this.#readStored(journal === undefined ? [] : idsOf(journal));
    const namesake = stored.find(({ id }) => id === plugged.id);
    if (journal !== undefined && namesake !== undefined && rootKeyOf(namesake.root) !== rootKeyOf(plugged.root)) {
      // As in one that runs, what signs goes on.
      log.warn('authority.keyReused', { directory: this.#options.pluggedInDirectory });
      return this.#resumeStored(journal, now());
    }
    store.save(plugged);
    this.#remember(plugged);
    const steady: AuthorityReading = {
      outcome: 'resumed',
      journal: { stage: 'steady', signer: plugged.id, other: null, tainted: null },
    };
    if (journal === undefined) return steady;
    const before = stored.filter(({ id }) => id !== plugged.id);
    if (idsOf(journal).includes(plugged.id) && before.length === idsOf(journal).length - 1) {
      return { outcome: 'resumed', journal };
    }
    // As in one that runs, nothing is taken over: certificates of the other root are in use.
    if (journal.stage === 'signing' && before.length === idsOf(journal).length) {
      log.warn('authority.postponed', { authority: plugged.id });
      return { outcome: 'resumed', journal };
    }
    // Plugged in while nothing ran: those who trust the old root alone are told first.
    const old = before.find(({ id }) => id === journal.signer);
    if (old === undefined) {
      log.warn('authority.previousUnreadable', { authority: plugged.id, previous: journal.signer });
      return steady;
    }
    if (rootKeyOf(plugged.root) === rootKeyOf(old.root)) return steady;
    return { outcome: 'resumed', journal: { stage: 'trusting', signer: old.id, other: plugged.id, tainted: null } };
  }

  #resumeStored(journal: Journal, now: Date): AuthorityReading {
    const { store, log } = this.#options;
    const ended: AuthorityId[] = [];
    for (const id of idsOf(journal)) {
      // What has ended is no damage: it is read as of its own time.
      const material = readAtItsTime(store, id, now);
      this.#remember(material);
      if (material.notAfter <= now) ended.push(id);
    }
    if (ended.length === 0) return { outcome: 'resumed', journal };
    const living = idsOf(journal).find((id) => !ended.includes(id));
    log.warn('authority.expired', { authorities: ended.join(', '), next: living ?? 'new root' });
    if (living === undefined) return { outcome: 'absent' };
    return { outcome: 'resumed', journal: { stage: 'steady', signer: living, other: null, tainted: null } };
  }

  #readStored(ids: readonly AuthorityId[]): AuthorityMaterial[] {
    const { store, now } = this.#options;
    return ids.flatMap((id) => {
      try {
        const material = store.read(id, now());
        this.#remember(material);
        return material;
      } catch {
        return [];
      }
    });
  }

  #readPluggedIn(): AuthorityMaterial {
    const { pluggedInDirectory, now } = this.#options;
    return readPluggedIn(pluggedInDirectory, now());
  }

  #remember(material: AuthorityMaterial): void {
    this.#materials.set(material.id, material);
  }

  /** A full disk costs the copy, not the roots. */
  #saveRoots(): void {
    const { store, log } = this.#options;
    try {
      store.saveRoots(this.#bundle.pem);
    } catch (error) {
      log.warn('authority.rootsUnwritable', { reason: messageOf(error) });
    }
  }

  #tell(): void {
    const { inForce } = this;
    if (inForce !== undefined) for (const listener of this.#listeners) listener(inForce);
  }
}

/** One that was renewed may have the key, and so the id, of the one before. */
function isSame(one: AuthorityMaterial, other: AuthorityMaterial): boolean {
  const textOf = ({ path }: AuthorityMaterial): string => path.map(({ sha256 }) => sha256).join();
  return textOf(one) === textOf(other) && one.revocationLists === other.revocationLists;
}

/** @throws ChartpilotError for one that is damaged */
function readAtItsTime(store: AuthorityStore, id: AuthorityId, now: Date): AuthorityMaterial {
  try {
    return store.read(id, now);
  } catch (error) {
    const end = store.endOf(id);
    if (end !== undefined && end <= now) return store.read(id, new Date(end.getTime() - 1_000));
    throw error;
  }
}

function idsOf({ signer, other }: Journal): AuthorityId[] {
  return other === null ? [signer] : [signer, other];
}
