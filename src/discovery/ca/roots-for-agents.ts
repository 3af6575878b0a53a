/**
 * Distributes trusted roots over xDS (PCDS: a ProxyConfig with `caCertificatesPem`). The ACK of an authenticated client reports that the client
 * trusts exactly these roots. A rotation waits for these ACKs.
 */
import { create } from '@bufbuild/protobuf';
import { LRUCache } from 'lru-cache';
import type { AuthorityId } from '../../../machines/discovery/ca/authority-protocol.ts';
import { proxyConfigType } from '../../../machines/discovery/xds/ads-types.ts';
import { ProxyConfigSchema } from '../../gen/istio/mesh/v1alpha1/proxy_pb.ts';
import { singleWorkloadOf, uriInMesh } from '../../identity/spiffe-id.ts';
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
import { rootsText, type WorkloadInstance, workloadKey } from './ledger/workload-ledger.ts';

export interface RootsForAgentsOptions {
  /** The mesh's trust domain is first, followed by its aliases. */
  readonly trustDomains: () => readonly string[];
  /** Called when the workload trusts exactly these roots. */
  readonly onTrusted: (report: WorkloadInstance & { readonly roots: readonly AuthorityId[] }) => void;
  /** Called when the workload's Envoy uses no earlier certificate. */
  readonly onArrived: (report: WorkloadInstance & { readonly serialNumber: string }) => void;
  /** Called before roots are sent. After that, the workload may trust only these. */
  readonly onSending: (roots: WorkloadInstance & { readonly roots: readonly AuthorityId[] }) => void;
  readonly onChanged: (change: ResourceChange) => void;
}

/** Clients subscribe by wildcard. */
const resourceName = 'mesh-roots';
/** A request reports in its node metadata the certificate that every Envoy of the workload uses, in OpenSSL's notation. */
const serialNumberKey = 'CERTIFICATE_SERIAL_NUMBER';
const serialNumber = /^[0-9A-F]{1,40}$/;
/** Maximum number of published versions whose ACKs are recognized. */
const maxVersions = 8;

export class RootsForAgents {
  readonly #options: RootsForAgentsOptions;
  #set: ResourceSet | undefined;
  readonly #versions = new LRUCache<string, readonly AuthorityId[]>({ max: maxVersions });
  /** The inner keys are open streams; the latest report is last. */
  readonly #reports = new Map<string, Map<object, readonly AuthorityId[]>>();
  readonly #certificates = new Map<string, Map<object, string>>();

  constructor(options: RootsForAgentsOptions) {
    this.#options = options;
  }

  /** @param taintedRoots hashes of roots whose certificates must be renewed now */
  publish(bundle: TrustBundle, ids: readonly AuthorityId[], taintedRoots: readonly string[] = []): void {
    const message = create(ProxyConfigSchema, {
      caCertificatesPem: bundle.roots.map(({ pem }) => pem),
      ...(taintedRoots.length > 0 && { proxyMetadata: { TAINTED_ROOTS: taintedRoots.join(',') } }),
    });
    const resource = encodeResource(ProxyConfigSchema, message, resourceName);
    const { version } = resource;
    this.#versions.set(version, ids);
    if (this.#set?.version === version) return;
    this.#set = { version, resources: new Map([[resourceName, resource]]) };
    this.#options.onChanged(rootsChange(version));
  }

  reportOf(workload: WorkloadInstance): readonly AuthorityId[] | undefined {
    return latestReportOf(this.#reports, workload);
  }

  certificateOf(workload: WorkloadInstance): string | undefined {
    return latestReportOf(this.#certificates, workload);
  }

  addRootsTo(source: ResourceSource): ResourceSource {
    return {
      openNode: (node, onRejected) => {
        const openedNode = source.openNode(node, onRejected);
        if ('error' in openedNode) return openedNode;
        return { resources: this.#withRoots(openedNode.resources, node) };
      },
    };
  }

  #withRoots(nodeResources: NodeResources, node: NodeIdentity): NodeResources {
    const workload = this.#workloadOf(node);
    const stream = {};
    let sentSet: ResourceSet | undefined;
    return {
      get: (typeUrl, names) => {
        if (typeUrl !== proxyConfigType) return nodeResources.get(typeUrl, names);
        if (sentSet !== this.#set && workload !== undefined) this.#recordSent(workload, stream);
        sentSet = this.#set;
        return sentSet;
      },
      prepare: (typeUrl, names): ResourcePreparation | undefined =>
        typeUrl === proxyConfigType ? undefined : nodeResources.prepare?.(typeUrl, names),
      typesToPush: (change, watchedTypes) => {
        const dueTypes = change.configs.has(rootsKey) ? noTypes : nodeResources.typesToPush(change, watchedTypes);
        const sourceTypes = dueTypes.includes(proxyConfigType)
          ? dueTypes.filter((typeUrl) => typeUrl !== proxyConfigType)
          : dueTypes;
        return sentSet !== this.#set && watchedTypes.includes(proxyConfigType)
          ? [...sourceTypes, proxyConfigType]
          : sourceTypes;
      },
      sent: (typeUrl, version, cause) => nodeResources.sent?.(typeUrl, version, cause),
      acknowledged: (typeUrl, version) => {
        nodeResources.acknowledged?.(typeUrl, version);
        if (typeUrl === proxyConfigType && workload !== undefined) this.#recordReport(workload, stream, version);
      },
      rejected: (typeUrl) => nodeResources.rejected?.(typeUrl),
      provideWatches: (watches) => nodeResources.provideWatches?.(watches),
      nodeUpdated: (typeUrl, metadata) => {
        nodeResources.nodeUpdated?.(typeUrl, metadata);
        const reportedSerialNumber = metadata[serialNumberKey];
        if (typeUrl !== proxyConfigType || workload === undefined || typeof reportedSerialNumber !== 'string') return;
        if (!serialNumber.test(reportedSerialNumber)) return;
        setLatestReport(this.#certificates, workload, stream, reportedSerialNumber);
        this.#options.onArrived({ ...workload, serialNumber: reportedSerialNumber });
      },
      healthReported: (failure) => nodeResources.healthReported?.(failure),
      close: () => {
        if (workload !== undefined) this.#removeReport(workload, stream);
        nodeResources.close();
      },
    };
  }

  #recordSent(workload: WorkloadInstance, stream: object): void {
    const roots = this.#set && this.#versions.get(this.#set.version);
    if (roots === undefined) return;
    const reports = this.#reports.get(workloadKey(workload));
    if (rootsText(reports?.get(stream) ?? []) !== rootsText(roots)) reports?.delete(stream);
    this.#options.onSending({ ...workload, roots });
  }

  #recordReport(workload: WorkloadInstance, stream: object, version: string): void {
    const roots = this.#versions.get(version);
    if (roots === undefined) return;
    setLatestReport(this.#reports, workload, stream, roots);
    this.#options.onTrusted({ ...workload, roots });
  }

  #removeReport(workload: WorkloadInstance, stream: object): void {
    const key = workloadKey(workload);
    for (const reports of [this.#reports, this.#certificates]) {
      const ofWorkload: Map<object, unknown> | undefined = reports.get(key);
      ofWorkload?.delete(stream);
      if (ofWorkload?.size === 0) reports.delete(key);
    }
  }

  /** Workload of the client. `undefined` if its reports are ignored. The identity is authenticated, the node ID is not. */
  #workloadOf({ id, identities = [] }: NodeIdentity): WorkloadInstance | undefined {
    const identity = singleWorkloadOf(identities);
    const uri = identity && uriInMesh(identity, this.#options.trustDomains());
    return uri === undefined ? undefined : { identity: uri, node: id };
  }
}

type ReportsByStream<Report> = Map<string, Map<object, Report>>;

function latestReportOf<Report>(reports: ReportsByStream<Report>, workload: WorkloadInstance): Report | undefined {
  return [...(reports.get(workloadKey(workload))?.values() ?? [])].at(-1);
}

function setLatestReport<Report>(
  reports: ReportsByStream<Report>,
  workload: WorkloadInstance,
  stream: object,
  report: Report,
): void {
  const key = workloadKey(workload);
  const ofWorkload = reports.get(key) ?? new Map<object, Report>();
  reports.set(key, ofWorkload);
  ofWorkload.delete(stream);
  ofWorkload.set(stream, report);
}

const noTypes: readonly string[] = [];
const rootsKey = 'TrustedRoots//';

function rootsChange(version: string): ResourceChange {
  return { version, forced: false, configs: new Set([rootsKey]) };
}
