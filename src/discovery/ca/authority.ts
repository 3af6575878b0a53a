import type { AuthorityReading, Candidate, Journal } from '../../../machines/discovery/ca/authority.machine.ts';
import type { AuthorityId, RotationStage } from '../../../machines/discovery/ca/authority-protocol.ts';
import { rootKeyOf } from '../../identity/certificate.ts';
import { TrustBundle } from '../../identity/trust-bundle.ts';
import { explainInOneLine, messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { type AuthorityMaterial, hasPluggedInCa, readPluggedInCa } from './authority-material.ts';
import type { AuthorityStore } from './authority-store.ts';
import { generateRoot, type RootCertificateOptions } from './generate-root.ts';
import { CertificateSigner } from './issuing/certificate-signer.ts';

export interface AuthorityOptions {
  readonly root: Omit<RootCertificateOptions, 'trustDomain'>;
  readonly pluggedInDirectory: string;
  readonly store: AuthorityStore;
  readonly trustDomain: () => string;
  /** When this percentage of the current root's lifetime remains, the next root is generated. */
  readonly gracePercent: number;
  readonly now: () => Date;
  readonly log: Pick<Logger, 'warn'>;
}

export interface ActiveAuthority {
  readonly material: AuthorityMaterial;
  /** Roots that clients must trust, including the signer's. */
  readonly bundle: TrustBundle;
  readonly roots: readonly AuthorityId[];
  /**
   * Signs the control plane's server certificate. During a rotation, this is the previous authority until the last stage, so that clients that trust
   * only the old root can connect to receive the new one.
   */
  readonly serverAuthority: AuthorityMaterial;
  readonly authorities: readonly AuthorityMaterial[];
  /** No workload may keep a certificate that chains to one of these roots. */
  readonly tainted: readonly string[];
}

export interface SigningAuthority {
  readonly signer: CertificateSigner;
  /** `undefined` if nothing can sign. */
  readonly active: ActiveAuthority | undefined;
  /** The key of this authority is reported as compromised. */
  readonly tainted: AuthorityId | null;
  /** `undefined` without a journal. */
  readonly stage: RotationStage | undefined;
  onChanged(listener: (active: ActiveAuthority) => void): void;
}

export class Authority implements SigningAuthority {
  readonly signer: CertificateSigner;
  readonly #options: AuthorityOptions;
  readonly #materials = new Map<AuthorityId, AuthorityMaterial>();
  readonly #listeners = new Set<(active: ActiveAuthority) => void>();
  #roots: readonly AuthorityId[] = [];
  #taintedAuthority: AuthorityId | null = null;
  #signer: AuthorityMaterial | undefined;
  #journal: Journal | undefined;
  /** `since` is the start of the stage, even if an earlier process began it. */
  #recordedStage: { readonly journal: Journal; readonly since: number | undefined } | undefined;
  /** The plugged-in authority that an operator reverted. It is not used again while it stays in the directory, until a rotation is ordered. */
  #revertedAuthorityId: AuthorityId | undefined;
  #isReversionLogged = false;

  constructor(options: AuthorityOptions) {
    this.#options = options;
    this.signer = new CertificateSigner({
      onThreadFailure: (error) => options.log.warn('authority.signerFailed', { reason: messageOf(error) }),
    });
  }

  get active(): ActiveAuthority | undefined {
    const material = this.#signer;
    if (material === undefined || this.#roots.length === 0) return undefined;
    const [authorities, serverAuthority] = [this.#authorities, this.#previousSigner ?? material];
    const taintedRoots = authorities.filter(({ id }) => id === this.#taintedAuthority).map(({ root }) => root.sha256);
    return { material, bundle: this.#bundle, roots: this.#roots, serverAuthority, authorities, tainted: taintedRoots };
  }

  get #authorities(): AuthorityMaterial[] {
    return this.#roots.flatMap((id) => this.#materials.get(id) ?? []);
  }

  get #bundle(): TrustBundle {
    const roots = this.#authorities.map(({ root }) => root);
    return new TrustBundle(this.#options.trustDomain(), roots);
  }

  get #previousSigner(): AuthorityMaterial | undefined {
    const { stage, other } = this.#journal ?? {};
    const previousSigner = stage === 'signing' ? this.#materials.get(other ?? '') : undefined;
    return previousSigner !== undefined && previousSigner.notAfter > this.#options.now() ? previousSigner : undefined;
  }

  get tainted(): AuthorityId | null {
    return this.#journal?.tainted ?? null;
  }

  get stage(): RotationStage | undefined {
    return this.#journal?.stage;
  }

  /** When the distribution of the current stage's roots began, also by an earlier process. Unix time in milliseconds. */
  get distributedSince(): number | undefined {
    return this.#recordedStage?.since;
  }

  onChanged(listener: (active: ActiveAuthority) => void): void {
    this.#listeners.add(listener);
  }

  load(): AuthorityReading {
    const { pluggedInDirectory, now } = this.#options;
    try {
      const journal = this.#readJournal();
      if (hasPluggedInCa(pluggedInDirectory)) return this.#resumePluggedIn(this.#readPluggedIn(), journal);
      return journal === undefined ? { outcome: 'absent' } : this.#resumeStored(journal, now());
    } catch (error) {
      return { outcome: 'refused', reason: explainInOneLine(error) };
    }
  }

  async prepareRoot(): Promise<{ id: AuthorityId }> {
    const { root, trustDomain, store, pluggedInDirectory, now } = this.#options;
    const reverted = this.#revertedAuthorityId;
    this.#clearRevertedAuthority();
    if (hasPluggedInCa(pluggedInDirectory)) {
      const material = reverted === undefined ? undefined : this.#readPluggedIn();
      if (material !== undefined && material.id === reverted && material.id !== this.#journal?.signer) {
        store.save(material);
        this.#cacheMaterial(material);
        return { id: material.id };
      }
      throw new Error(
        `a plugged-in authority is not rotated by the control plane: put the next one into ${pluggedInDirectory}`,
      );
    }
    const material = await generateRoot({ ...root, trustDomain: trustDomain() }, now());
    store.save(material);
    // Reads the authority back, to detect a disk that corrupts data.
    this.#cacheMaterial(store.read(material.id, now()));
    return { id: material.id };
  }

  readCandidate(signer: AuthorityId): Candidate {
    const { pluggedInDirectory, store } = this.#options;
    // A reverted authority stays reverted while a mount or a deployment replaces its directory.
    if (!hasPluggedInCa(pluggedInDirectory)) return { outcome: 'same' };
    try {
      const material = this.#readPluggedIn();
      if (material.id !== signer && this.#isReverted(material)) return { outcome: 'same' };
      this.#clearRevertedAuthority();
      const current = this.#materials.get(signer);
      if (current !== undefined && isSameMaterial(material, current)) return { outcome: 'same' };
      const isTrusted = current !== undefined && rootKeyOf(material.root) === rootKeyOf(current.root);
      if (material.id === signer && !isTrusted) {
        throw new Error(this.#otherRoot);
      }
      store.save(material);
      this.#cacheMaterial(material);
      return { outcome: isTrusted ? 'renewed' : 'replaced', id: material.id };
    } catch (error) {
      return { outcome: 'refused', reason: explainInOneLine(error) };
    }
  }

  isRootDue(signer: AuthorityId): boolean {
    const { pluggedInDirectory, gracePercent, now, log } = this.#options;
    const root = this.#materials.get(signer)?.root;
    if (root === undefined) return false;
    const lifetimeMs = root.notAfter.getTime() - root.notBefore.getTime();
    const isDue = root.notAfter.getTime() - now().getTime() < (lifetimeMs * gracePercent) / 100;
    if (isDue && hasPluggedInCa(pluggedInDirectory)) {
      log.warn('authority.rootEnding', { notAfter: root.notAfter.toISOString(), directory: pluggedInDirectory });
      return false;
    }
    return isDue;
  }

  writeJournal(journal: Journal): void {
    const { store, now } = this.#options;
    const nextRevertedId = findRevertedAuthority(this.#journal, journal) ?? this.#revertedAuthorityId;
    const recorded = this.#recordedStage;
    const since = (isSameStage(recorded?.journal, journal) ? recorded?.since : undefined) ?? now().getTime();
    store.writeJournal({ ...journal, since, ...(nextRevertedId !== undefined && { reverted: nextRevertedId }) });
    this.#journal = journal;
    this.#recordedStage = { journal, since };
    this.#revertedAuthorityId = nextRevertedId;
    store.deleteAllExcept(idsOf(journal));
    for (const id of this.#materials.keys()) if (!idsOf(journal).includes(id)) this.#materials.delete(id);
  }

  publishRoots(roots: readonly AuthorityId[], taintedAuthority: AuthorityId | null = null): void {
    this.#roots = roots;
    this.#taintedAuthority = taintedAuthority;
    this.#saveRoots();
    this.#notifyListeners();
  }

  signWith(id: AuthorityId): void {
    const material = this.#materials.get(id);
    if (material === undefined || material === this.#signer) return;
    this.#signer = material;
    this.signer.useAuthority(material);
    this.#notifyListeners();
  }

  /** Certificates of two roots with the same key are indistinguishable. */
  get #otherRoot(): string {
    return `the authority in ${this.#options.pluggedInDirectory} has a new root certificate with the key of the previous one: create it with a new key`;
  }

  #resumePluggedIn(pluggedInAuthority: AuthorityMaterial, journal: Journal | undefined): AuthorityReading {
    const { store, log, now } = this.#options;
    const storedMaterials = this.#readStored(journal === undefined ? [] : idsOf(journal));
    const storedAuthority = storedMaterials.find(({ id }) => id === pluggedInAuthority.id);
    if (
      journal !== undefined &&
      storedAuthority !== undefined &&
      rootKeyOf(storedAuthority.root) !== rootKeyOf(pluggedInAuthority.root)
    ) {
      // At startup too, a reused key does not replace the signer.
      log.warn('authority.keyReused', { directory: this.#options.pluggedInDirectory });
      return this.#resumeStored(journal, now());
    }
    store.save(pluggedInAuthority);
    this.#cacheMaterial(pluggedInAuthority);
    const steadyReading = steadyReadingOf(
      pluggedInAuthority.id,
      journal?.tainted === pluggedInAuthority.id ? pluggedInAuthority.id : null,
    );
    if (journal === undefined) return steadyReading;
    const otherStored = storedMaterials.filter(({ id }) => id !== pluggedInAuthority.id);
    if (idsOf(journal).includes(pluggedInAuthority.id) && otherStored.length === idsOf(journal).length - 1) {
      return { outcome: 'resumed', journal };
    }
    // At startup too, the switch is postponed while certificates of the other root are in use.
    if (journal.stage === 'signing' && otherStored.length === idsOf(journal).length) {
      log.warn('authority.postponed', { authority: pluggedInAuthority.id });
      return { outcome: 'resumed', journal };
    }
    // Clients that trust only the old root must receive the new one first.
    const previousAuthority = otherStored.find(({ id }) => id === journal.signer);
    if (previousAuthority === undefined) {
      log.warn('authority.previousUnreadable', { authority: pluggedInAuthority.id, previous: journal.signer });
      return steadyReading;
    }
    const isTainted = journal.tainted === previousAuthority.id;
    if (!isTainted && otherStored.length === idsOf(journal).length && this.#isReverted(pluggedInAuthority))
      return { outcome: 'resumed', journal };
    if (rootKeyOf(pluggedInAuthority.root) === rootKeyOf(previousAuthority.root))
      return steadyReadingOf(pluggedInAuthority.id, isTainted ? pluggedInAuthority.id : null);
    const taintedAuthority = isTainted ? previousAuthority.id : null;
    return {
      outcome: 'resumed',
      journal: {
        stage: 'trusting',
        signer: previousAuthority.id,
        other: pluggedInAuthority.id,
        tainted: taintedAuthority,
      },
    };
  }

  #readJournal(): Journal | undefined {
    const storedJournal = this.#options.store.readJournal();
    if (storedJournal === undefined) return undefined;
    const { reverted, since, ...journal } = storedJournal;
    this.#revertedAuthorityId = reverted;
    this.#recordedStage = { journal, since };
    return journal;
  }

  #isReverted({ id }: AuthorityMaterial): boolean {
    const isReverted = id === this.#revertedAuthorityId;
    if (isReverted && !this.#isReversionLogged) {
      this.#isReversionLogged = true;
      this.#options.log.warn('authority.reverted', { authority: id, directory: this.#options.pluggedInDirectory });
    }
    return isReverted;
  }

  #clearRevertedAuthority(): void {
    if (this.#revertedAuthorityId === undefined) return;
    this.#revertedAuthorityId = undefined;
    this.#isReversionLogged = false;
    const since = this.distributedSince;
    if (this.#journal !== undefined)
      this.#options.store.writeJournal({ ...this.#journal, ...(since !== undefined && { since }) });
  }

  #resumeStored(journal: Journal, now: Date): AuthorityReading {
    const { store, log } = this.#options;
    const expired: AuthorityId[] = [];
    for (const id of idsOf(journal)) {
      // Expiry is not damage, so an expired authority is validated at a time within its lifetime.
      const material = readAsOfLifetime(store, id, now);
      this.#cacheMaterial(material);
      if (material.notAfter <= now) expired.push(id);
    }
    if (expired.length === 0) return { outcome: 'resumed', journal };
    const remainingId = idsOf(journal).find((id) => !expired.includes(id));
    log.warn('authority.expired', { authorities: expired.join(', '), next: remainingId ?? 'new root' });
    if (remainingId === undefined) return { outcome: 'absent' };
    return steadyReadingOf(remainingId, journal.tainted === remainingId ? remainingId : null);
  }

  #readStored(ids: readonly AuthorityId[]): AuthorityMaterial[] {
    const { store, now } = this.#options;
    return ids.flatMap((id) => {
      try {
        const material = store.read(id, now());
        this.#cacheMaterial(material);
        return material;
      } catch {
        return [];
      }
    });
  }

  #readPluggedIn(): AuthorityMaterial {
    const { pluggedInDirectory, now } = this.#options;
    return readPluggedInCa(pluggedInDirectory, now());
  }

  #cacheMaterial(material: AuthorityMaterial): void {
    this.#materials.set(material.id, material);
  }

  /** The file is only a copy, so the roots are trusted even if it cannot be written. */
  #saveRoots(): void {
    const { store, log } = this.#options;
    try {
      store.saveRoots(this.#bundle.pem);
    } catch (error) {
      log.warn('authority.rootsUnwritable', { reason: messageOf(error) });
    }
  }

  #notifyListeners(): void {
    const { active } = this;
    if (active !== undefined) for (const listener of this.#listeners) listener(active);
  }
}

/** Compares certificates too, because a renewed authority can have the same key and ID. */
function isSameMaterial(one: AuthorityMaterial, other: AuthorityMaterial): boolean {
  const textOf = ({ path }: AuthorityMaterial): string => path.map(({ sha256 }) => sha256).join();
  return textOf(one) === textOf(other) && one.revocationLists === other.revocationLists;
}

function readAsOfLifetime(store: AuthorityStore, id: AuthorityId, now: Date): AuthorityMaterial {
  try {
    return store.read(id, now);
  } catch (error) {
    const expiry = store.expiryOf(id);
    if (expiry !== undefined && expiry <= now) return store.read(id, new Date(expiry.getTime() - 1_000));
    throw error;
  }
}

function idsOf({ signer, other }: Journal): AuthorityId[] {
  return other === null ? [signer] : [signer, other];
}

function steadyReadingOf(signer: AuthorityId, taintedAuthority: AuthorityId | null): AuthorityReading {
  return { outcome: 'resumed', journal: { stage: 'steady', signer, other: null, tainted: taintedAuthority } };
}

/** Whether the same roots are distributed for the same purpose. */
function isSameStage(one: Journal | undefined, other: Journal): boolean {
  return one?.stage === other.stage && one.signer === other.signer && one.other === other.other;
}

/** Finds the authority that a `revert` order withdraws: the next signer, or the signer that has already replaced the previous one. */
function findRevertedAuthority(previous: Journal | undefined, next: Journal): AuthorityId | undefined {
  if (previous === undefined) return undefined;
  const stages = `${previous.stage} ${next.stage}`;
  if (stages === 'trusting steady') return previous.other ?? undefined;
  if (stages === 'signing signing' && next.signer === previous.other) return previous.signer;
  return stages === 'dropping trusting' ? previous.signer : undefined;
}
