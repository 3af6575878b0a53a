import { createPrivateKey } from 'node:crypto';
import { join } from 'node:path';
import type { authorityMachine } from '../../../machines/discovery/ca/authority.machine.ts';
import type { AuthorityId } from '../../../machines/discovery/ca/authority-protocol.ts';
import type { Certificate } from '../../identity/certificate.ts';
import { displayNameOf } from '../../identity/certificate-path.ts';
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
import { type ActiveAuthority, Authority, type SigningAuthority } from './authority.ts';
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
import { type RevokedCredentials, RevokedFile } from './revocation/revoked-file.ts';
import { RootsForAgents } from './roots-for-agents.ts';
import {
  type ControlPlaneCertificate,
  isCertificateDue,
  issueControlPlaneCertificate,
} from './server-certificate/own-certificate.ts';

const revokedFile = 'revoked';

export interface SigningOptions {
  readonly settings: AuthoritySettings;
  readonly trustDomains: () => readonly string[];
  readonly mesh: () => RootsInMesh;
  /** Entries are added later during startup. */
  readonly authenticators: readonly Authenticator[];
  readonly rootsChanged: (change: ResourceChange) => void;
  readonly logger: Logger;
  readonly shared?: SigningAuthority & { readonly limits: LifetimeLimits };
  /** Signs workload certificates instead of the authority, which always signs the port's certificate. */
  readonly registrar?: Registrar;
  readonly bundleAuthorities?: string;
}

export class CertificateSigning {
  readonly authority: SigningAuthority;
  /** `undefined` if replicas share the authority. */
  readonly #localAuthority: Authority | undefined;
  readonly ledger: LedgerKeeper;
  readonly issuance = new IssuanceCounts();
  readonly service: UnaryService;
  readonly revokedFile: RevokedFile;
  /** PEM CRLs. Empty until an authority is available. */
  revocationLists = '';
  readonly #store: AuthorityStore;
  #revocationListInputs: { readonly revoked: RevokedCredentials; readonly roots: readonly AuthorityId[] } | undefined;
  readonly roots: RootsForAgents;
  readonly bundles: BundleEndpoints;
  readonly #options: SigningOptions;
  #meshRoots:
    | { readonly from: readonly unknown[]; readonly pools: ReadonlyMap<string, readonly Certificate[]> }
    | undefined;
  readonly #rootsWatchers: (() => void)[] = [];
  #identity: { readonly authority: ActiveAuthority; readonly certificate: ControlPlaneCertificate } | undefined;
  /** Invalid entries of the mesh configuration that were already reported. */
  #reportedProblems: ReadonlySet<string> = new Set();

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
    this.revokedFile = new RevokedFile(stateDirectory === '' ? '' : join(stateDirectory, revokedFile), logger);
    const store = stateDirectory === '' ? new MemoryStore() : new DirectoryStore(stateDirectory);
    this.#store = store;
    this.#localAuthority =
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
    this.authority = shared ?? this.#localAuthority!;
    this.ledger = new LedgerKeeper({
      ledger: new WorkloadLedger({ maxLeafMs: leaves.maxMs }),
      ...(stateDirectory !== '' && { log: new LedgerLog(join(stateDirectory, 'workloads.log')) }),
      idsOf: (authority) => {
        const material = this.authority.active?.authorities.find(({ id }) => id === authority);
        return material === undefined ? [authority] : ledgerIdsOf(material);
      },
      distributedSince: () => this.#localAuthority?.distributedSince,
      certificateInUse: (workload) => this.roots.certificateOf(workload),
      now: Date.now,
      logger,
    });
    this.roots = new RootsForAgents({
      trustDomains,
      onTrusted: (trustedReport) => this.ledger.recordTrusted(trustedReport),
      onArrived: (arrivedReport) => this.ledger.recordArrived(arrivedReport),
      onSending: (roots) => this.ledger.recordSending(roots),
      onChanged: options.rootsChanged,
    });
    this.authority.onChanged((active) => {
      // Each root needs a CRL before clients receive it.
      this.#publishRevocations(active);
      this.#publishRoots(active);
    });
    const service = new CertificateService({
      authenticators,
      activeAuthority: () => this.authority.active,
      signer: this.authority.signer,
      trustDomains,
      limits: shared?.limits ?? leaves,
      now: () => new Date(),
      logger,
      ...(options.registrar && { registrar: options.registrar }),
      meshRoots: () => this.trustedRoots?.meshBundle.roots ?? [],
      onIssued: (leaf) => this.#recordIssued(leaf),
      counts: this.issuance,
    });
    this.service = { method: certificateMethod, handle: (...call) => service.handle(...call) };
  }

  /** Certificates of a registrar chain to a root of the mesh configuration. */
  get additionalRoots(): readonly Certificate[] {
    return this.#rootsOfMesh().get(this.#options.trustDomains()[0]!) ?? [];
  }

  /** `undefined` until an authority is available. */
  get expiry(): { readonly root: Date; readonly chain: Date } | undefined {
    const material = this.authority.active?.material;
    return material && { root: material.root.notAfter, chain: material.notAfter };
  }

  get trustedRoots(): TrustPools | undefined {
    const { active } = this.authority;
    return active && this.#poolsOf(active);
  }

  /**
   * Certificate for connections to another control plane, and the roots that verify its server.
   *
   * @returns `undefined` without an authority
   */
  identityOf(namespace: string): { readonly roots: string; readonly certificate: KeyPair } | undefined {
    const { active } = this.authority;
    if (active === undefined) return undefined;
    const currentDate = new Date();
    if (this.#identity?.authority !== active || isCertificateDue(this.#identity.certificate, active, currentDate)) {
      const id = `spiffe://${this.#options.trustDomains()[0]!}/ns/${namespace}/sa/istiod`;
      this.#identity = { authority: active, certificate: issueControlPlaneCertificate(active, [], currentDate, [id]) };
    }
    const { ca, chain, key } = this.#identity.certificate;
    return { roots: ca.toString(), certificate: { chain: chain.toString(), key: createPrivateKey(key) } };
  }

  /** The listener is called when the trusted roots may have changed. */
  onRoots(onChanged: () => void): void {
    this.#rootsWatchers.push(onChanged);
  }

  onMeshChanged(): boolean {
    const previousPools = this.#meshRoots?.pools;
    const { active } = this.authority;
    const isChanged = this.#rootsOfMesh() !== previousPools && active !== undefined;
    if (isChanged) this.#publishRoots(active);
    return isChanged;
  }

  onBundlesChanged(): void {
    this.#meshRoots = undefined;
    this.onMeshChanged();
  }

  /** Agents use one pool, so they receive only the pool of their own trust domain. */
  #publishRoots(active: ActiveAuthority): void {
    this.roots.publish(this.#poolsOf(active).meshBundle, active.roots, active.tainted);
    for (const onChanged of this.#rootsWatchers) onChanged();
  }

  #poolsOf({ bundle }: ActiveAuthority): TrustPools {
    const poolsOfAliases = new Map(this.#rootsOfMesh());
    const meshPool = poolsOfAliases.get(bundle.trustDomain) ?? [];
    poolsOfAliases.delete(bundle.trustDomain);
    return new TrustPools(bundle.withRoots(...meshPool), poolsOfAliases);
  }

  /** Cached per configuration; invalid entries are reported once. */
  #rootsOfMesh(): ReadonlyMap<string, readonly Certificate[]> {
    const mesh = this.#options.mesh();
    const rootInputs = [mesh.caCertificates, mesh.trustDomain, mesh.trustDomainAliases];
    if (this.#meshRoots === undefined || !sameItems(this.#meshRoots.from, rootInputs)) {
      const { pools, ignoredRoots: problems } = rootsOfMesh(mesh, (url) => this.bundles.rootsOf(url));
      for (const reason of problems) {
        if (!this.#reportedProblems.has(reason)) this.#options.logger.warn('authority.rootIgnored', { reason });
      }
      this.#reportedProblems = new Set(problems);
      this.#meshRoots = { from: rootInputs, pools };
    }
    return this.#meshRoots.pools;
  }

  #publishRevocations({ authorities, roots }: ActiveAuthority): void {
    const { current } = this.revokedFile;
    if (this.#revocationListInputs?.revoked === current && this.#revocationListInputs.roots === roots) return;
    this.#revocationListInputs = { revoked: current, roots };
    try {
      this.revocationLists = revocationListsOf(authorities, current, new Date());
      this.#store.saveRevocationLists(this.revocationLists);
    } catch (error) {
      this.#options.logger.warn('revocations.unwritable', { reason: messageOf(error) });
    }
  }

  /** Records the certificate, and the trusted roots that the workload last reported. */
  #recordIssued(leaf: IssuedLeaf): void {
    this.ledger.recordIssued(leaf);
    const roots = this.roots.reportOf(leaf);
    if (roots !== undefined) this.ledger.recordTrusted({ identity: leaf.identity, node: leaf.node, roots });
  }

  describe(): object {
    const { active, stage, tainted } = this.authority;
    const { missingWorkloads } = this.ledger;
    const { tokens, certificates } = this.revokedFile.current;
    return {
      stage: stage ?? 'not ready',
      ...(tainted !== null && { tainted }),
      signer: active && describeCertificate(active.material.issuer.certificate),
      roots: active?.bundle.roots.map(describeCertificate) ?? [],
      bundles: this.bundles.describe(),
      revoked: { tokens: tokens.size, certificates: certificates.size, lists: this.revocationLists },
      waitingToBeSigned: this.authority.signer.waitingCount,
      waitsFor: missingWorkloads && { missing: missingWorkloads.count, workloads: missingWorkloads.workloads },
    };
  }

  /** Authentications check the file themselves. */
  #watchRevoked({ failed }: WatchHandlers): StopWatching {
    const { file } = this.revokedFile;
    if (file === '') return () => {};
    const onChanged = (): void => {
      const { active } = this.authority;
      if (active !== undefined) this.#publishRevocations(active);
    };
    return watchFile(file, { changed: onChanged, failed });
  }

  /** `undefined` if replicas share the authority, which has another chart. */
  machine(): typeof authorityMachine | undefined {
    const { ledger } = this;
    const authority = this.#localAuthority;
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
  return { id: subjectKeyId ?? sha256, name: displayNameOf(certificate), serialNumber, notBefore, notAfter };
}
