import { fromCallback, fromPromise } from 'xstate';
import { rootsIn } from '../../../machines/discovery/ca/authority.setup.ts';
import type { AuthorityId, RotationStage } from '../../../machines/discovery/ca/authority-protocol.ts';
import {
  type CreationResult,
  sharedAuthorityMachine,
} from '../../../machines/discovery/ca/shared-authority.machine.ts';
import type { SharedAuthorityReport } from '../../../machines/discovery/ca/shared-authority-protocol.ts';
import { orderRejection, type SharedJournal } from '../../../machines/discovery/ca/shared-rotation.ts';
import { type Certificate, rootKeyOf } from '../../identity/certificate.ts';
import { TrustBundle } from '../../identity/trust-bundle.ts';
import { explainInOneLine, messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import type { ActiveAuthority, SigningAuthority } from './authority.ts';
import type { AuthorityMaterial } from './authority-material.ts';
import { generateRoot, type RootCertificateOptions } from './generate-root.ts';
import { CertificateSigner } from './issuing/certificate-signer.ts';
import type { LifetimeLimits } from './issuing/leaf-lifetime.ts';
import {
  annotationOf,
  caSecretType,
  dataOf,
  type ReadAuthority,
  readPluggedInAuthority,
  readSharedAuthority,
  rotationAnnotation,
} from './shared-root/authority-secret.ts';

/** Last received versions of the watched Secrets. */
export interface AuthoritySecrets {
  readonly namespace: string;
  readonly name: string;
  sharedSecret(): KubernetesObject | undefined;
  /** The plugged-in Secret takes precedence over the shared one. */
  pluggedInSecret(): KubernetesObject | undefined;
  readonly whenSynced: Promise<unknown>;
  watch(onChanged: () => void): () => void;
}

export interface SharedAuthorityOptions {
  readonly secrets: AuthoritySecrets;
  readonly server: Pick<ApiServer, 'request'>;
  readonly root: Omit<RootCertificateOptions, 'trustDomain'>;
  readonly trustDomain: () => string;
  readonly leaves: LifetimeLimits;
  readonly now: () => Date;
  readonly log: Pick<Logger, 'warn'>;
}

const writeTimeoutMs = 10_000;

interface AdoptedAuthority {
  readonly read: ReadAuthority;
  readonly readingId: number;
}

export class SharedAuthority implements SigningAuthority {
  readonly signer: CertificateSigner;
  readonly #options: SharedAuthorityOptions;
  readonly #listeners = new Set<(active: ActiveAuthority) => void>();
  readonly #dueListeners = new Set<() => void>();
  #readingCount = 0;
  /** Last read authority, even before the chart adopts it. `undefined` while its Secret is missing or unusable. */
  #lastAdopted: AdoptedAuthority | undefined;
  #adoptedAuthority: AdoptedAuthority | undefined;
  #activeAuthority: ActiveAuthority | undefined;
  /** UIDs and versions of both Secrets. */
  #reportedVersion: string | undefined;
  /** Why nothing can sign; empty if it can or if the reason is unknown. */
  unavailableReason = '';

  constructor(options: SharedAuthorityOptions) {
    this.#options = options;
    this.signer = new CertificateSigner({
      onThreadFailure: (error) => options.log.warn('authority.signerFailed', { reason: messageOf(error) }),
    });
  }

  get active(): ActiveAuthority | undefined {
    return this.#activeAuthority;
  }

  get tainted(): AuthorityId | null {
    return this.#adoptedAuthority?.read.journal.tainted ?? null;
  }

  get stage(): RotationStage | undefined {
    return this.#adoptedAuthority?.read.journal.stage;
  }

  /** Replicas calculate from the maximum in the Secret when all certificates have expired. */
  get limits(): LifetimeLimits {
    const { leaves } = this.#options;
    const maxLeafMs = (): number =>
      Math.min(leaves.maxMs, this.#adoptedAuthority?.read.journal.maxLeafMs ?? leaves.maxMs);
    return {
      defaultMs: leaves.defaultMs,
      get maxMs() {
        return maxLeafMs();
      },
    };
  }

  onChanged(listener: (active: ActiveAuthority) => void): void {
    this.#listeners.add(listener);
  }

  /** `last` differs from `current` if an unknown authority replaced the Secret. */
  get read(): { readonly last: ReadAuthority; readonly current: ReadAuthority } | undefined {
    if (this.#lastAdopted === undefined || this.#adoptedAuthority === undefined) return undefined;
    return { last: this.#lastAdopted.read, current: this.#adoptedAuthority.read };
  }

  /** @param onDue called when a write may be necessary */
  subscribeDue(onDue: () => void): () => void {
    this.#dueListeners.add(onDue);
    return () => void this.#dueListeners.delete(onDue);
  }

  generateRoot(): Promise<AuthorityMaterial> {
    const { root, trustDomain, now } = this.#options;
    return generateRoot({ ...root, trustDomain: trustDomain() }, now());
  }

  machine() {
    return sharedAuthorityMachine.provide({
      actors: {
        followSecret: fromCallback<{ type: never }, undefined>(({ sendBack }) => this.#followSecrets(sendBack)),
        createSecret: fromPromise<CreationResult, { withNewRoot: boolean }>(({ input, signal }) =>
          this.#create(input.withNewRoot, signal),
        ),
      },
      actions: {
        applyAuthority: (_, { reading }) => this.#adoptAuthority(reading),
        checkRotation: () => {
          for (const notifyDue of this.#dueListeners) notifyDue();
        },
      },
    });
  }

  #followSecrets(sendReport: (report: SharedAuthorityReport) => void): () => void {
    const { secrets } = this.#options;
    let isEnded = false;
    const check = (): void => {
      if (isEnded) return;
      const report = this.#readChange();
      if (report !== undefined) sendReport(report);
    };
    let stop = (): void => {};
    void secrets.whenSynced.then(() => {
      if (isEnded) return;
      stop = secrets.watch(check);
      check();
    });
    return () => {
      isEnded = true;
      stop();
    };
  }

  #readChange(): SharedAuthorityReport | undefined {
    const { secrets, now, leaves, log } = this.#options;
    const [pluggedInSecret, sharedSecret] = [secrets.pluggedInSecret(), secrets.sharedSecret()];
    const secretVersion = [pluggedInSecret, pluggedInSecret === undefined ? sharedSecret : undefined]
      .map(versionOf)
      .join();
    if (secretVersion === this.#reportedVersion) return undefined;
    this.#reportedVersion = secretVersion;
    const object = pluggedInSecret ?? sharedSecret;
    if (object === undefined) {
      this.#lastAdopted = undefined;
      return { type: 'shared-authority.absent' };
    }
    try {
      const parsedAuthority = (pluggedInSecret === undefined ? readSharedAuthority : readPluggedInAuthority)(
        object,
        now(),
        leaves.maxMs,
      );
      const readingNumber = ++this.#readingCount;
      const isCompatible = this.#isCompatible(parsedAuthority);
      this.#lastAdopted = { read: parsedAuthority, readingId: readingNumber };
      this.unavailableReason = '';
      if (parsedAuthority.unknownOrder !== '')
        log.warn('authority.orderUnknown', { order: parsedAuthority.unknownOrder });
      const rejection =
        parsedAuthority.order === null ? undefined : orderRejection(parsedAuthority.order, parsedAuthority.journal);
      if (rejection !== undefined)
        log.warn('authority.orderRejected', { order: parsedAuthority.order, reason: rejection });
      const { stage, signer, other, tainted, previousSigners } = parsedAuthority.journal;
      return {
        type: 'shared-authority.read',
        reading: readingNumber,
        isCompatible,
        stage,
        signer,
        other,
        tainted,
        previousSigners,
      };
    } catch (error) {
      this.#lastAdopted = undefined;
      this.unavailableReason = explainInOneLine(error);
      return { type: 'shared-authority.unusable', reason: this.unavailableReason };
    }
  }

  /** Whether all clients already trust the authority's root, and the authority's clients will trust certificates that this replica signed. */
  #isCompatible(candidateAuthority: ReadAuthority): boolean {
    const activeAuthority = this.#activeAuthority;
    if (activeAuthority === undefined) return false;
    const { root } = candidateAuthority.materials.get(candidateAuthority.journal.signer)!;
    const activeKeys = activeAuthority.bundle.roots.map(rootKeyOf);
    const nextRoots = distributedRoots(candidateAuthority).map(({ certificate }) => rootKeyOf(certificate));
    return activeKeys.includes(rootKeyOf(root)) && nextRoots.includes(rootKeyOf(activeAuthority.material.root));
  }

  #adoptAuthority(readingNumber: number): void {
    if (this.#lastAdopted?.readingId !== readingNumber) return;
    const { read } = this.#lastAdopted;
    this.#adoptedAuthority = this.#lastAdopted;
    const { journal, materials } = read;
    const material = materials.get(journal.signer)!;
    const trustedRoots = distributedRoots(read);
    const bundle = new TrustBundle(
      this.#options.trustDomain(),
      trustedRoots.map(({ certificate }) => certificate),
    );
    const authorities = rootsIn(journal.stage, journal).flatMap((id) => materials.get(id) ?? []);
    const taintedMaterial = journal.stage === 'signing' ? materials.get(journal.tainted ?? '') : undefined;
    this.#activeAuthority = {
      ...{ material, bundle, authorities, roots: trustedRoots.map(({ id }) => id) },
      serverAuthority: serverAuthorityOf(read, this.#options.now()),
      tainted: taintedMaterial === undefined ? [] : [taintedMaterial.root.sha256],
    };
    this.signer.useAuthority(material);
    for (const listener of this.#listeners) listener(this.#activeAuthority);
  }

  /** The first replica to write wins, so read the stored object back after success and after a conflict. */
  async #create(withNewRoot: boolean, signal: AbortSignal): Promise<CreationResult> {
    const { secrets, server, now, leaves } = this.#options;
    const { namespace, name } = secrets;
    try {
      const { journal, materials } = withNewRoot
        ? await this.#firstAuthority(now(), leaves.maxMs)
        : this.#authorityToRestore();
      const roots = rootsIn(journal.stage, journal).map((id) => materials.get(id)!.root);
      const body = {
        ...{ apiVersion: 'v1', kind: 'Secret', type: caSecretType, data: dataOf(journal, materials, roots) },
        metadata: { name, namespace, annotations: { [rotationAnnotation]: annotationOf(journal) } },
      };
      await server.request(
        { method: 'POST', resource: resourceOf('Secret'), namespace, body, timeoutMs: writeTimeoutMs },
        signal,
      );
    } catch (error) {
      if (statusOf(error) !== 409) {
        const reason = `Secret ${namespace}/${name}: ${messageOf(error)}`;
        if (withNewRoot) this.unavailableReason = reason;
        return { outcome: 'failed', reason };
      }
    }
    return { outcome: 'there' };
  }

  async #firstAuthority(now: Date, maxLeafMs: number): Promise<Pick<ReadAuthority, 'journal' | 'materials'>> {
    const material = await this.generateRoot();
    const journal: SharedJournal = {
      ...{ stage: 'steady', signer: material.id, other: null, tainted: null },
      ...{ since: now.getTime(), maxLeafMs, previousSigners: [] },
    };
    return { journal, materials: new Map([[material.id, material]]) };
  }

  #authorityToRestore(): Pick<ReadAuthority, 'journal' | 'materials'> {
    const { read } = this.#adoptedAuthority!;
    if (read.isPluggedIn)
      throw new Error('the Secret of the plugged-in authority was deleted: restore it; its last content still applies');
    return read;
  }
}

/** Distributed roots. Each has the ID of its authority or, without one, its own ID. */
function distributedRoots({
  journal,
  materials,
  otherRoots,
}: ReadAuthority): { id: AuthorityId; certificate: Certificate }[] {
  const authorityRoots = rootsIn(journal.stage, journal).flatMap((id) => {
    const certificate = materials.get(id)?.root;
    return certificate === undefined ? [] : [{ id, certificate }];
  });
  const synced = new Set(authorityRoots.map(({ certificate }) => certificate.sha256));
  const otherRootList = otherRoots
    .filter(({ sha256 }) => !synced.has(sha256))
    .map((certificate) => ({ id: certificate.subjectKeyId ?? certificate.sha256, certificate }));
  return [...authorityRoots, ...otherRootList];
}

/** Returns the previous authority until the end of a rotation, so that clients that trust only its root can connect (docs/identity.md). */
function serverAuthorityOf(
  { journal: { stage, signer, other }, materials }: ReadAuthority,
  now: Date,
): AuthorityMaterial {
  const previous = stage === 'signing' ? materials.get(other ?? '') : undefined;
  return previous !== undefined && previous.notAfter > now ? previous : materials.get(signer)!;
}

function versionOf(object: KubernetesObject | undefined): string {
  return object === undefined ? '' : `${object.metadata.uid ?? ''} ${object.metadata.resourceVersion ?? ''}`;
}
