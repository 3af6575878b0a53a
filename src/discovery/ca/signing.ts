/** Everything that signs, put together: the chart `authority` with its effects, and the service that workloads ask. */
import { createPrivateKey } from 'node:crypto';
import { join } from 'node:path';
import type { authorityMachine } from '../../../machines/discovery/ca/authority.machine.ts';
import type { AuthorityId } from '../../../machines/discovery/ca/authority-protocol.ts';
import type { Certificate } from '../../identity/certificate.ts';
import { nameOf } from '../../identity/certificate-path.ts';
import { TrustPools } from '../../identity/trust-pools.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { messageOf } from '../../runtime/errors.ts';
import { type StopWatching, type WatchHandlers, watchFile } from '../../runtime/files/file-watch.ts';
import type { KeyPair } from '../../runtime/grpc/key-pair.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { BundleEndpoints } from '../bundles/bundle-endpoints.ts';
import type { Authenticator } from '../xds/access/authenticator.ts';
import type { UnaryService } from '../xds/ads-ports.ts';
import type { ResourceChange } from '../xds/resource-source.ts';
import { authorityWithEffects } from './authority.effects.ts';
import { Authority, type AuthorityInForce, type SigningAuthority } from './authority.ts';
import { ledgerIdsOf } from './authority-material.ts';
import type { AuthoritySettings } from './authority-settings.ts';
import { type AuthorityStore, DirectoryStore, MemoryStore } from './authority-store.ts';
import { CertificateService, certificateMethod, type IssuedLeaf } from './issuing/certificate-service.ts';
import { IssuanceCounts } from './issuing/issuance-counts.ts';
import type { LifetimeLimits } from './issuing/leaf-lifetime.ts';
import type { Registrar } from './issuing/registrar.ts';
import { LedgerKeeper } from './ledger/ledger-keeper.ts';
import { LedgerLog } from './ledger/ledger-log.ts';
import { WorkloadLedger } from './ledger/workload-ledger.ts';
import { type RootsInMesh, rootsOfMesh } from './mesh-roots.ts';
import { revocationListsOf } from './revocation/revocation-lists.ts';
import { type Revoked, RevokedFile } from './revocation/revoked-file.ts';
import { RootsForAgents } from './roots-for-agents.ts';
import { isOwnCertificateDue, issueOwnCertificate, type OwnCertificate } from './server-certificate/own-certificate.ts';

/** In SELF_SIGNED_CA_DIR. */
const revokedFile = 'revoked';

export interface SigningOptions {
  readonly settings: AuthoritySettings;
  /** Of the mesh, now: its own, and then its aliases. */
  readonly trustDomains: () => readonly string[];
  /** Of the mesh, now: what is trusted beside the authority. */
  readonly mesh: () => RootsInMesh;
  /** Who says who a caller is; filled by a later stage of the start. */
  readonly authenticators: readonly Authenticator[];
  /** Other roots are to be trusted: xDS clients that watch them are to be told. */
  readonly rootsChanged: (change: ResourceChange) => void;
  readonly logger: Logger;
  /** The authority that replicas share; absent: this program has one of its own. */
  readonly shared?: SigningAuthority & { readonly limits: LifetimeLimits };
  /** Signs for workloads instead of the authority, whose the port's certificate stays. */
  readonly registrar?: Registrar;
  /** PEM: by whom bundle endpoints are known, instead of the roots that Node knows; for tests. */
  readonly bundleAuthorities?: string;
}

export class Signing {
  readonly authority: SigningAuthority;
  /** Absent: replicas share one. */
  readonly #own: Authority | undefined;
  readonly ledger: LedgerKeeper;
  readonly issuance = new IssuanceCounts();
  readonly service: UnaryService;
  /** What an operator took back. */
  readonly revoked: RevokedFile;
  /** PEM; empty before there is an authority. */
  revocationLists = '';
  readonly #store: AuthorityStore;
  /** Of which the lists are. */
  #listed: { readonly revoked: Revoked; readonly roots: readonly AuthorityId[] } | undefined;
  /** Given out over xDS. */
  readonly roots: RootsForAgents;
  /** Roots that the mesh configuration names by an address. */
  readonly bundles: BundleEndpoints;
  readonly #options: SigningOptions;
  #ofMesh:
    | { readonly from: readonly unknown[]; readonly pools: ReadonlyMap<string, readonly Certificate[]> }
    | undefined;
  readonly #rootsWatchers: (() => void)[] = [];
  /** Shown to other control planes, with the authority that signed it. */
  #identity: { readonly of: AuthorityInForce; readonly certificate: OwnCertificate } | undefined;
  /** What was passed over of the mesh configuration, as it was told last. */
  #passedOver: ReadonlySet<string> = new Set();

  constructor(options: SigningOptions) {
    const { settings, trustDomains, authenticators, logger, shared } = options;
    const trustDomain = (): string => trustDomains()[0]!;
    const { stateDirectory, pluggedInDirectory, rootTtlMs, rsaBits, gracePercent, leaves } = settings;
    this.#options = options;
    if (stateDirectory === '' && shared === undefined) {
      logger.warn('authority.inMemory');
    }
    this.bundles = new BundleEndpoints({
      mesh: options.mesh,
      directory: stateDirectory,
      logger,
      now: () => new Date(),
      ...(options.bundleAuthorities !== undefined && { ca: options.bundleAuthorities }),
    });
    this.revoked = new RevokedFile(stateDirectory === '' ? '' : join(stateDirectory, revokedFile), logger);
    const store = stateDirectory === '' ? new MemoryStore() : new DirectoryStore(stateDirectory);
    this.#store = store;
    this.#own =
      shared === undefined
        ? new Authority({
            root: { ttlMs: rootTtlMs, rsaBits },
            pluggedInDirectory,
            store,
            trustDomain,
            gracePercent,
            now: () => new Date(),
            log: logger,
          })
        : undefined;
    this.authority = shared ?? this.#own!;
    this.ledger = new LedgerKeeper({
      ledger: new WorkloadLedger({ maxLeafMs: leaves.maxMs }),
      ...(stateDirectory !== '' && { log: new LedgerLog(join(stateDirectory, 'workloads.log')) }),
      idsOf: (authority) => {
        const material = this.authority.inForce?.authorities.find(({ id }) => id === authority);
        return material === undefined ? [authority] : ledgerIdsOf(material);
      },
      now: Date.now,
      logger,
    });
    this.roots = new RootsForAgents({
      trustDomains,
      trusted: (word) => this.ledger.trusted(word),
      arrived: (word) => this.ledger.arrived(word),
      sending: (roots) => this.ledger.sending(roots),
      changed: options.rootsChanged,
    });
    this.authority.onChanged((inForce) => {
      // There is a list of each root before anybody is told of it.
      this.#publishRevocations(inForce);
      this.#publishRoots(inForce);
    });
    const service = new CertificateService({
      authenticators,
      inForce: () => this.authority.inForce,
      signer: this.authority.signer,
      trustDomains,
      limits: shared?.limits ?? leaves,
      now: () => new Date(),
      logger,
      ...(options.registrar && { registrar: options.registrar }),
      rootsInMesh: () => this.trusted?.own.roots ?? [],
      issued: (leaf) => this.#issued(leaf),
      counts: this.issuance,
    });
    this.service = { method: certificateMethod, handle: (...call) => service.handle(...call) };
  }

  /** Those of the mesh that are trusted beside the authority: what others sign for it leads to one of them. */
  get rootsBeside(): readonly Certificate[] {
    return this.#rootsOfMesh().get(this.#options.trustDomains()[0]!) ?? [];
  }

  /** When the certificates of the authority that signs expire; `undefined` before there is one. */
  get ends(): { readonly root: Date; readonly chain: Date } | undefined {
    const material = this.authority.inForce?.material;
    return material && { root: material.root.notAfter, chain: material.notAfter };
  }

  /** By what clients of ours are judged, and agents judge others; undefined before there is an authority. */
  get trusted(): TrustPools | undefined {
    const { inForce } = this.authority;
    return inForce && this.#poolsOf(inForce);
  }

  /**
   * Identity of this control plane as a client of another one, and the roots that verify the other.
   *
   * @param namespace its own
   * @returns undefined before there is an authority
   */
  identityOf(namespace: string): { readonly roots: string; readonly certificate: KeyPair } | undefined {
    const { inForce } = this.authority;
    if (inForce === undefined) return undefined;
    const now = new Date();
    if (this.#identity?.of !== inForce || isOwnCertificateDue(this.#identity.certificate, inForce, now)) {
      const id = `spiffe://${this.#options.trustDomains()[0]!}/ns/${namespace}/sa/istiod`;
      this.#identity = { of: inForce, certificate: issueOwnCertificate(inForce, [], now, [id]) };
    }
    const { ca, chain, key } = this.#identity.certificate;
    return { roots: ca.toString(), certificate: { chain: chain.toString(), key: createPrivateKey(key) } };
  }

  /** Tells whenever other roots may be trusted, the first ones included. */
  onRoots(changed: () => void): void {
    this.#rootsWatchers.push(changed);
  }

  /** @returns whether other roots are trusted now */
  meshChanged(): boolean {
    const before = this.#ofMesh?.pools;
    const { inForce } = this.authority;
    const isChanged = this.#rootsOfMesh() !== before && inForce !== undefined;
    if (isChanged) this.#publishRoots(inForce);
    return isChanged;
  }

  /** What was fetched of an address is another: who is told of roots is told. */
  bundlesChanged(): void {
    this.#ofMesh = undefined;
    this.meshChanged();
  }

  /** Agents judge by one pool, so they are told of the mesh's own alone. */
  #publishRoots(inForce: AuthorityInForce): void {
    this.roots.publish(this.#poolsOf(inForce).own, inForce.roots, inForce.tainted);
    for (const changed of this.#rootsWatchers) changed();
  }

  #poolsOf({ bundle }: AuthorityInForce): TrustPools {
    const ofAliases = new Map(this.#rootsOfMesh());
    const own = ofAliases.get(bundle.trustDomain) ?? [];
    ofAliases.delete(bundle.trustDomain);
    return new TrustPools(bundle.with(...own), ofAliases);
  }

  /** The same ones for the same configuration; what is passed over is told once. */
  #rootsOfMesh(): ReadonlyMap<string, readonly Certificate[]> {
    const mesh = this.#options.mesh();
    const from = [mesh.caCertificates, mesh.trustDomain, mesh.trustDomainAliases];
    if (this.#ofMesh === undefined || !sameItems(this.#ofMesh.from, from)) {
      const { pools, passedOver } = rootsOfMesh(mesh, (url) => this.bundles.rootsOf(url));
      for (const reason of passedOver) {
        if (!this.#passedOver.has(reason)) this.#options.logger.warn('authority.rootIgnored', { reason });
      }
      this.#passedOver = new Set(passedOver);
      this.#ofMesh = { from, pools };
    }
    return this.#ofMesh.pools;
  }

  /** A list of each authority whose root is trusted, in a file beside them. */
  #publishRevocations({ authorities, roots }: AuthorityInForce): void {
    const { current } = this.revoked;
    if (this.#listed?.revoked === current && this.#listed.roots === roots) return;
    this.#listed = { revoked: current, roots };
    try {
      this.revocationLists = revocationListsOf(authorities, current, new Date());
      this.#store.saveRevocationLists(this.revocationLists);
    } catch (error) {
      this.#options.logger.warn('revocations.unwritable', { reason: messageOf(error) });
    }
  }

  /** A first certificate: what its workload said by an earlier token, which roots it trusts, counts for it. */
  #issued(leaf: IssuedLeaf): void {
    this.ledger.issued(leaf);
    const roots = this.roots.wordOf(leaf);
    if (roots !== undefined) this.ledger.trusted({ identity: leaf.identity, node: leaf.node, roots });
  }

  /** For the debug page. */
  describe(): object {
    const { inForce, stage, tainted } = this.authority;
    const { missing } = this.ledger;
    const { tokens, certificates } = this.revoked.current;
    return {
      stage: stage ?? 'not ready',
      ...(tainted !== null && { tainted }),
      signer: inForce && describeCertificate(inForce.material.issuer.certificate),
      roots: inForce?.bundle.roots.map(describeCertificate) ?? [],
      bundles: this.bundles.describe(),
      revoked: { tokens: tokens.size, certificates: certificates.size, lists: this.revocationLists },
      waitingToBeSigned: this.authority.signer.waiting,
      waitsFor: missing && { missing: missing.count, workloads: missing.workloads },
    };
  }

  /** A revoked certificate is refused when it comes; nobody asks for the lists. */
  #watchRevoked({ failed }: WatchHandlers): StopWatching {
    const { file } = this.revoked;
    if (file === '') return () => {};
    const changed = (): void => {
      const { inForce } = this.authority;
      if (inForce !== undefined) this.#publishRevocations(inForce);
    };
    return watchFile(file, { changed, failed });
  }

  /** Undefined: replicas share the authority, and another chart has it. */
  machine(): typeof authorityMachine | undefined {
    const { ledger } = this;
    const authority = this.#own;
    if (authority === undefined) return undefined;
    const { settings, logger } = this.#options;
    return authorityWithEffects({
      authority,
      ledger,
      directory: settings.pluggedInDirectory,
      watchRevoked: (handlers) => this.#watchRevoked(handlers),
      logger,
    });
  }
}

function describeCertificate(certificate: Certificate): object {
  const { subjectKeyId, sha256, serialNumber, notBefore, notAfter } = certificate;
  return { id: subjectKeyId ?? sha256, name: nameOf(certificate), serialNumber, notBefore, notAfter };
}
