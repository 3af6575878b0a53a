/** The effects of the chart `shared-authority`, and what is made of their outcome: who signs, and which roots are trusted. */

import { fromCallback, fromPromise } from 'xstate';
import { rootsIn } from '../../../machines/discovery/ca/authority.setup.ts';
import type { AuthorityId, RotationStage } from '../../../machines/discovery/ca/authority-protocol.ts';
import { type Creation, sharedAuthorityMachine } from '../../../machines/discovery/ca/shared-authority.machine.ts';
import type { SharedAuthorityReport } from '../../../machines/discovery/ca/shared-authority-protocol.ts';
import type { SharedJournal } from '../../../machines/discovery/ca/shared-rotation.ts';
import { type Certificate, rootKeyOf } from '../../identity/certificate.ts';
import { TrustBundle } from '../../identity/trust-bundle.ts';
import { explainInOneLine, messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import type { AuthorityInForce, SigningAuthority } from './authority.ts';
import type { AuthorityMaterial } from './authority-material.ts';
import { CertificateSigner } from './issuing/certificate-signer.ts';
import type { LifetimeLimits } from './issuing/leaf-lifetime.ts';
import { makeRoot, type RootOptions } from './root-maker.ts';
import {
  annotationOf,
  dataOf,
  type ReadAuthority,
  readPlugged,
  readShared,
  rotationAnnotation,
  secretType,
} from './shared-root/authority-secret.ts';

/** The Secrets that are followed, as far as they are known. */
export interface AuthoritySecrets {
  readonly namespace: string;
  /** Of the one that replicas share. */
  readonly name: string;
  /** The one that replicas share. */
  shared(): KubernetesObject | undefined;
  /** A person's, which counts before it. */
  plugged(): KubernetesObject | undefined;
  /** Settles when both are known. */
  readonly known: Promise<unknown>;
  /** @param changed whenever one of them is another. @returns ends it */
  watch(changed: () => void): () => void;
}

export interface SharedAuthorityOptions {
  readonly secrets: AuthoritySecrets;
  readonly server: Pick<ApiServer, 'request'>;
  readonly root: Omit<RootOptions, 'trustDomain'>;
  /** Of the mesh, now. */
  readonly trustDomain: () => string;
  readonly leaves: LifetimeLimits;
  readonly now: () => Date;
  readonly log: Pick<Logger, 'warn'>;
}

/** Of the answer to what is made. */
const answerMs = 10_000;

interface Adopted {
  readonly read: ReadAuthority;
  readonly reading: number;
}

export class SharedAuthority implements SigningAuthority {
  readonly signer: CertificateSigner;
  readonly #options: SharedAuthorityOptions;
  readonly #listeners = new Set<(inForce: AuthorityInForce) => void>();
  readonly #dueListeners = new Set<() => void>();
  #readings = 0;
  /** What was read last, if it can sign. */
  #last: Adopted | undefined;
  #adopted: Adopted | undefined;
  #inForce: AuthorityInForce | undefined;
  /** As it was told last: `uid version` of both. */
  #seen: string | undefined;
  /** Why there is nothing that signs; empty: there is, or it is not known. */
  awaited = '';

  constructor(options: SharedAuthorityOptions) {
    this.#options = options;
    this.signer = new CertificateSigner({
      broken: (error) => options.log.warn('authority.signerFailed', { reason: messageOf(error) }),
    });
  }

  get inForce(): AuthorityInForce | undefined {
    return this.#inForce;
  }

  get tainted(): AuthorityId | null {
    return this.#adopted?.read.journal.tainted ?? null;
  }

  get stage(): RotationStage | undefined {
    return this.#adopted?.read.journal.stage;
  }

  /** No certificate may last longer than the Secret says: by that is known when all of them have ended. */
  get limits(): LifetimeLimits {
    const { leaves } = this.#options;
    const longest = (): number => Math.min(leaves.maxMs, this.#adopted?.read.journal.longestLeafMs ?? leaves.maxMs);
    return {
      defaultMs: leaves.defaultMs,
      get maxMs() {
        return longest();
      },
    };
  }

  onChanged(listener: (inForce: AuthorityInForce) => void): void {
    this.#listeners.add(listener);
  }

  // ---- for the replica that leads

  /** What was read last, if it can sign, and what is in force here: the same, or a stranger's took its place. */
  get read(): { readonly last: ReadAuthority; readonly inForce: ReadAuthority } | undefined {
    if (this.#last === undefined || this.#adopted === undefined) return undefined;
    return { last: this.#last.read, inForce: this.#adopted.read };
  }

  /** @param due whenever there may be something to write. @returns ends it */
  watchDue(due: () => void): () => void {
    this.#dueListeners.add(due);
    return () => void this.#dueListeners.delete(due);
  }

  /** A root of its own key and name. */
  makeRoot(): Promise<AuthorityMaterial> {
    const { root, trustDomain, now } = this.#options;
    return makeRoot({ ...root, trustDomain: trustDomain() }, now());
  }

  machine() {
    return sharedAuthorityMachine.provide({
      actors: {
        followSecret: fromCallback<{ type: never }, undefined>(({ sendBack }) => this.#follow(sendBack)),
        createSecret: fromPromise<Creation, { anew: boolean }>(({ input, signal }) => this.#create(input.anew, signal)),
      },
      actions: {
        adopt: (_, { reading }) => this.#adopt(reading),
        lookForDue: () => {
          for (const due of this.#dueListeners) due();
        },
      },
    });
  }

  #follow(tell: (report: SharedAuthorityReport) => void): () => void {
    const { secrets } = this.#options;
    let isEnded = false;
    const look = (): void => {
      if (isEnded) return;
      const report = this.#look();
      if (report !== undefined) tell(report);
    };
    let stop = (): void => {};
    void secrets.known.then(() => {
      if (isEnded) return;
      stop = secrets.watch(look);
      look();
    });
    return () => {
      isEnded = true;
      stop();
    };
  }

  /** @returns undefined: there is no news */
  #look(): SharedAuthorityReport | undefined {
    const { secrets, now, leaves, log } = this.#options;
    const [plugged, shared] = [secrets.plugged(), secrets.shared()];
    const seen = [plugged, plugged === undefined ? shared : undefined].map(versionOf).join();
    if (seen === this.#seen) return undefined;
    this.#seen = seen;
    const object = plugged ?? shared;
    if (object === undefined) {
      this.#last = undefined;
      return { type: 'shared-authority.absent' };
    }
    try {
      const read = (plugged === undefined ? readShared : readPlugged)(object, now(), leaves.maxMs);
      const reading = ++this.#readings;
      const fits = this.#fits(read);
      this.#last = { read, reading };
      this.awaited = '';
      if (read.unknownOrder !== '') log.warn('authority.orderUnknown', { order: read.unknownOrder });
      const { stage, signer, other, tainted, before } = read.journal;
      return { type: 'shared-authority.read', reading, fits, stage, signer, other, tainted, before };
    } catch (error) {
      this.#last = undefined;
      this.awaited = explainInOneLine(error);
      return { type: 'shared-authority.refused', reason: this.awaited };
    }
  }

  /** Everybody trusts its root by now, and goes on trusting what was signed here. */
  #fits(read: ReadAuthority): boolean {
    const inForce = this.#inForce;
    if (inForce === undefined) return false;
    const { root } = read.materials.get(read.journal.signer)!;
    const before = inForce.bundle.roots.map(rootKeyOf);
    const after = rootsGivenOut(read).map(({ certificate }) => rootKeyOf(certificate));
    return before.includes(rootKeyOf(root)) && after.includes(rootKeyOf(inForce.material.root));
  }

  #adopt(reading: number): void {
    if (this.#last?.reading !== reading) return;
    const { read } = this.#last;
    this.#adopted = this.#last;
    const { journal, materials } = read;
    const material = materials.get(journal.signer)!;
    const given = rootsGivenOut(read);
    const bundle = new TrustBundle(
      this.#options.trustDomain(),
      given.map(({ certificate }) => certificate),
    );
    const authorities = rootsIn(journal.stage, journal).flatMap((id) => materials.get(id) ?? []);
    const tainted = journal.stage === 'signing' ? materials.get(journal.tainted ?? '') : undefined;
    this.#inForce = {
      ...{ material, bundle, authorities, roots: given.map(({ id }) => id) },
      ofServer: ofServer(read, this.#options.now()),
      tainted: tainted === undefined ? [] : [tainted.root.sha256],
    };
    this.signer.use(material);
    for (const listener of this.#listeners) listener(this.#inForce);
  }

  /** Whoever was first counts, whatever is here: it is read. */
  async #create(anew: boolean, signal: AbortSignal): Promise<Creation> {
    const { secrets, server, now, leaves } = this.#options;
    const { namespace, name } = secrets;
    try {
      const { journal, materials } = anew ? await this.#firstAuthority(now(), leaves.maxMs) : this.#toPutBack();
      const roots = rootsIn(journal.stage, journal).map((id) => materials.get(id)!.root);
      const body = {
        ...{ apiVersion: 'v1', kind: 'Secret', type: secretType, data: dataOf(journal, materials, roots) },
        metadata: { name, namespace, annotations: { [rotationAnnotation]: annotationOf(journal) } },
      };
      await server.request(
        { method: 'POST', resource: resourceOf('Secret'), namespace, body, timeoutMs: answerMs },
        signal,
      );
    } catch (error) {
      if (statusOf(error) !== 409) {
        const reason = `Secret ${namespace}/${name}: ${messageOf(error)}`;
        if (anew) this.awaited = reason;
        return { outcome: 'failed', reason };
      }
    }
    return { outcome: 'there' };
  }

  async #firstAuthority(now: Date, longestLeafMs: number): Promise<Pick<ReadAuthority, 'journal' | 'materials'>> {
    const material = await this.makeRoot();
    const journal: SharedJournal = {
      ...{ stage: 'steady', signer: material.id, other: null, tainted: null },
      ...{ since: now.getTime(), longestLeafMs, before: [] },
    };
    return { journal, materials: new Map([[material.id, material]]) };
  }

  #toPutBack(): Pick<ReadAuthority, 'journal' | 'materials'> {
    const { read } = this.#adopted!;
    if (read.isPluggedIn)
      throw new Error('the Secret of the plugged-in authority was deleted: restore it; its last content still applies');
    return read;
  }
}

/** With the id of each: of an authority its own, of a root without one that of the root. */
function rootsGivenOut({
  journal,
  materials,
  otherRoots,
}: ReadAuthority): { id: AuthorityId; certificate: Certificate }[] {
  const ofAuthorities = rootsIn(journal.stage, journal).flatMap((id) => {
    const certificate = materials.get(id)?.root;
    return certificate === undefined ? [] : [{ id, certificate }];
  });
  const known = new Set(ofAuthorities.map(({ certificate }) => certificate.sha256));
  const others = otherRoots
    .filter(({ sha256 }) => !known.has(sha256))
    .map((certificate) => ({ id: certificate.subjectKeyId ?? certificate.sha256, certificate }));
  return [...ofAuthorities, ...others];
}

/** While a new authority signs for workloads, whoever knows the root before alone must find the control plane (docs/identity.md). */
function ofServer({ journal: { stage, signer, other }, materials }: ReadAuthority, now: Date): AuthorityMaterial {
  const before = stage === 'signing' ? materials.get(other ?? '') : undefined;
  return before !== undefined && before.notAfter > now ? before : materials.get(signer)!;
}

function versionOf(object: KubernetesObject | undefined): string {
  return object === undefined ? '' : `${object.metadata.uid ?? ''} ${object.metadata.resourceVersion ?? ''}`;
}
