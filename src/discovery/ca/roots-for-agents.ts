/**
 * The roots that agents are to trust, given out over xDS to those who ask (PCDS: a ProxyConfig with `caCertificatesPem`), and
 * their word that they do: the acknowledgement of a client that has shown who it is, of a response that held these very roots.
 * A rotation goes on by that word (spec/identity.md §8), and by another that comes the same way: which certificate their Envoy has.
 */
import { create } from '@bufbuild/protobuf';
import { LRUCache } from 'lru-cache';
import type { AuthorityId } from '../../../machines/discovery/ca/authority-protocol.ts';
import { proxyConfigType } from '../../../machines/discovery/xds/ads-types.ts';
import { ProxyConfigSchema } from '../../gen/istio/mesh/v1alpha1/proxy_pb.ts';
import { oneWorkloadOf, uriInMesh } from '../../identity/spiffe-id.ts';
import type { TrustBundle } from '../../identity/trust-bundle.ts';
import type {
  NodeIdentity,
  NodeResources,
  ResourceChange,
  ResourcePreparation,
  ResourceSet,
  ResourceSource,
} from '../xds/resource-source.ts';
import { encodeResource } from '../xds/responses/encoding.ts';
import { keyOfWorkload, textOfRoots, type Workload } from './ledger/workload-ledger.ts';

export interface RootsForAgentsOptions {
  /** Of the mesh, now: its own, and then its aliases. */
  readonly trustDomains: () => readonly string[];
  /** A workload says that it trusts these roots and no others of ours. */
  readonly trusted: (word: Workload & { readonly roots: readonly AuthorityId[] }) => void;
  /** A workload says that its Envoy has this certificate, and none from before it. */
  readonly arrived: (word: Workload & { readonly serialNumber: string }) => void;
  /** These are about to be sent to it: what it said of others counts no more, for it may trust these alone from now on. */
  readonly sending: (roots: Workload & { readonly roots: readonly AuthorityId[] }) => void;
  /** There are other roots: whoever watches them is to be brought up to date. */
  readonly changed: (change: ResourceChange) => void;
}

/** There is one resource, and it is asked for by no name. */
const resourceName = 'mesh-roots';
/** Of the node's metadata, in a request for roots: the certificate that every Envoy of the workload has, as OpenSSL writes it. */
const serialNumberKey = 'CERTIFICATE_SERIAL_NUMBER';
const serialNumber = /^[0-9A-F]{1,40}$/;
/** What a client acknowledges late was given out a few steps ago. */
const mostVersions = 8;

export class RootsForAgents {
  readonly #options: RootsForAgentsOptions;
  #set: ResourceSet | undefined;
  /** Whose roots a version stands for. */
  readonly #versions = new LRUCache<string, readonly AuthorityId[]>({ max: mostVersions });
  /** By workload, what it said on each stream that is still there, the latest word last. */
  readonly #words = new Map<string, Map<object, readonly AuthorityId[]>>();

  constructor(options: RootsForAgentsOptions) {
    this.#options = options;
  }

  /**
   * From now on these are given out. The same ones again are nothing new.
   *
   * @param tainted hashes of those whose certificates are to be renewed now
   */
  publish(bundle: TrustBundle, ids: readonly AuthorityId[], tainted: readonly string[] = []): void {
    const message = create(ProxyConfigSchema, {
      caCertificatesPem: bundle.roots.map(({ pem }) => pem),
      ...(tainted.length > 0 && { proxyMetadata: { TAINTED_ROOTS: tainted.join(',') } }),
    });
    const resource = encodeResource(ProxyConfigSchema, message, resourceName);
    const { version } = resource;
    this.#versions.set(version, ids);
    if (this.#set?.version === version) return;
    this.#set = { version, resources: new Map([[resourceName, resource]]) };
    this.#options.changed(rootsChange(version));
  }

  /** What a workload said of the roots that it trusts, on a stream that is still there. */
  wordOf(workload: Workload): readonly AuthorityId[] | undefined {
    return [...(this.#words.get(keyOfWorkload(workload))?.values() ?? [])].at(-1);
  }

  /** What there is, and the roots beside it. */
  beside(source: ResourceSource): ResourceSource {
    return {
      open: (node, refused) => {
        const opened = source.open(node, refused);
        if ('error' in opened) return opened;
        return { resources: this.#withRoots(opened.resources, node) };
      },
    };
  }

  #withRoots(others: NodeResources, node: NodeIdentity): NodeResources {
    const workload = this.#workloadOf(node);
    const stream = {};
    let sent: ResourceSet | undefined;
    return {
      get: (typeUrl, names) => {
        if (typeUrl !== proxyConfigType) return others.get(typeUrl, names);
        if (sent !== this.#set && workload !== undefined) this.#sends(workload, stream);
        sent = this.#set;
        return sent;
      },
      prepare: (typeUrl, names): ResourcePreparation | undefined =>
        typeUrl === proxyConfigType ? undefined : others.prepare?.(typeUrl, names),
      typesToPush: (change, watched) => {
        const due = change.configs.has(rootsKey) ? noTypes : others.typesToPush(change, watched);
        const theirs = due.includes(proxyConfigType) ? due.filter((typeUrl) => typeUrl !== proxyConfigType) : due;
        return sent !== this.#set && watched.includes(proxyConfigType) ? [...theirs, proxyConfigType] : theirs;
      },
      sent: (typeUrl, version, cause) => others.sent?.(typeUrl, version, cause),
      acknowledged: (typeUrl, version) => {
        others.acknowledged?.(typeUrl, version);
        if (typeUrl === proxyConfigType && workload !== undefined) this.#heard(workload, stream, version);
      },
      rejected: (typeUrl) => others.rejected?.(typeUrl),
      watched: (watches) => others.watched?.(watches),
      nodeUpdated: (typeUrl, metadata) => {
        others.nodeUpdated?.(typeUrl, metadata);
        const said = metadata[serialNumberKey];
        if (typeUrl !== proxyConfigType || workload === undefined || typeof said !== 'string') return;
        if (serialNumber.test(said)) this.#options.arrived({ ...workload, serialNumber: said });
      },
      healthReported: (failure) => others.healthReported?.(failure),
      close: () => {
        if (workload !== undefined) this.#forget(workload, stream);
        others.close();
      },
    };
  }

  #sends(workload: Workload, stream: object): void {
    const roots = this.#set && this.#versions.get(this.#set.version);
    if (roots === undefined) return;
    const words = this.#words.get(keyOfWorkload(workload));
    if (textOfRoots(words?.get(stream) ?? []) !== textOfRoots(roots)) words?.delete(stream);
    this.#options.sending({ ...workload, roots });
  }

  #heard(workload: Workload, stream: object, version: string): void {
    const roots = this.#versions.get(version);
    if (roots === undefined) return;
    const key = keyOfWorkload(workload);
    const words = this.#words.get(key) ?? new Map<object, readonly AuthorityId[]>();
    this.#words.set(key, words);
    words.delete(stream);
    words.set(stream, roots);
    this.#options.trusted({ ...workload, roots });
  }

  #forget(workload: Workload, stream: object): void {
    const key = keyOfWorkload(workload);
    const words = this.#words.get(key);
    words?.delete(stream);
    if (words?.size === 0) this.#words.delete(key);
  }

  /** Undefined: its word counts for nobody. Who it is never comes from what it says of itself, but for the id of its node. */
  #workloadOf({ id, identities = [] }: NodeIdentity): Workload | undefined {
    const identity = oneWorkloadOf(identities);
    const uri = identity && uriInMesh(identity, this.#options.trustDomains());
    return uri === undefined ? undefined : { identity: uri, node: id };
  }
}

const noTypes: readonly string[] = [];
/** In the shape of `Kind/namespace/name`, of no kind that there is. */
const rootsKey = 'TrustedRoots//';

function rootsChange(version: string): ResourceChange {
  return { version, forced: false, configs: new Set([rootsKey]) };
}
