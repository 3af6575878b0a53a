/** Interface between the ADS server and a source of each node's resources. */
import type { EndCode } from '../../../machines/discovery/xds/ads-protocol.ts';

import type { Watches } from '../../../machines/discovery/xds/watch-record.ts';
import type { EnvoyBuild } from '../../model/node/envoy-build.ts';

/** All streams share its bytes. */
export interface EncodedResource {
  readonly name: string;
  /** Equal for equal content, such as a hash or a counter of the source. */
  readonly version: string;
  /** Field 2 of a DiscoveryResponse, including tag and length: `0x12 len Any`. */
  readonly sotwFrame: Uint8Array;
  /** Field 2 of a DeltaDiscoveryResponse, including tag and length: `0x12 len Resource{name, version, Any}`. */
  readonly deltaFrame: Uint8Array;
  /** Chunks that come after either frame and are included in its length. Similar resources share them. */
  readonly tailChunks: readonly Uint8Array[];
}

/**
 * Must not be modified: the ADS server keeps the map as the record of resources sent on a stream. Equal nodes should get the same map, so that
 * differences are computed once. If the source returns the last map, nothing changed.
 */
export interface ResourceSet {
  /** `version_info` and `system_version_info` of the response. */
  readonly version: string;
  /** The map has the order of sending. It may include requested names that do not exist. */
  readonly resources: ReadonlyMap<string, EncodedResource>;
}

export interface ClusterReadiness {
  /** When Envoy can use the cluster: `at once` after reading it, `assignment` after receiving its endpoints, `warming` after acknowledging CDS. */
  readonly usableAfter: 'at once' | 'assignment' | 'warming';
  readonly assignment: string;
  readonly secrets: ReadonlySet<string>;
}

export interface FetchLimit {
  /** Timeout for endpoints, and for each secret. */
  readonly fetchMs: number;
  /** Whether Envoy waits until host names are resolved. */
  readonly awaitsNames: boolean;
}

/** Used only while clusters are new to a client or are removed. */
export interface ResourceReferences {
  names(resource: EncodedResource, cluster: string): boolean;
  /** Returns the names in the order of `clusters`. */
  referencedNamesAmong(resource: EncodedResource, clusters: ReadonlySet<string>): readonly string[];
  usabilityOf(cluster: EncodedResource): ClusterReadiness;
  fetchesEndpoints(cluster: EncodedResource): boolean;
  isEmptyAssignment(assignment: EncodedResource): boolean;
  secretsOf(cluster: EncodedResource): ReadonlySet<string>;
  routeConfigurationsOf(listener: EncodedResource): ReadonlySet<string>;
  /** Whether the route configuration has virtual hosts, apart from one that matches any host. */
  hasHosts(configuration: EncodedResource): boolean;
  /** Limits how long Envoy fetches dependencies. Returns the same cluster if all fetches have limits. */
  withFetchLimit(cluster: EncodedResource, limit: FetchLimit): EncodedResource;
}

export interface NodeIdentity {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Identity that matches the node. Absent on ports without authentication. */
  readonly verifiedIdentity?: string;
  /** Absent if the client has no verified identities. */
  readonly identities?: readonly string[];
  /** Set on an unauthenticated port with PILOT_SECRETS_ON_PLAINTEXT. */
  readonly secretsUnverified?: true;
  readonly locality?: { readonly region: string; readonly zone: string; readonly subZone: string };
  /** Absent if the node does not report an Envoy build. */
  readonly envoy?: EnvoyBuild;
}

/** The source decides whether a change affects a node. */
export interface ResourceChange {
  readonly version: string;
  readonly forced: boolean;
  /** `Kind/namespace/name` of changed objects. */
  readonly configs: ReadonlySet<string>;
}

export type ResponseCause = 'request' | 'push';

export interface ResourcePreparation {
  /** May throw. @returns whether there are more steps */
  runStep(): boolean;
  /** Resource set as of the start of the preparation. */
  result(): ResourceSet | undefined;
}

export interface NodeResources {
  /**
   * If it throws, nothing is sent and the client keeps its resources.
   *
   * @param names subscribed names; `'*'` for all (CDS and LDS without names).
   * @returns `undefined` if the source has no such type; then there is no response.
   */
  get(typeUrl: string, names: readonly string[] | '*'): ResourceSet | undefined;
  /** Builds in steps a set that {@link get} would build slowly. */
  prepare?(typeUrl: string, names: readonly string[] | '*'): ResourcePreparation | undefined;
  /** Watched types that may differ for this node after the change. */
  typesToPush(change: ResourceChange, watchedTypes: readonly string[]): readonly string[];
  /** @param version of the {@link ResourceSet} */
  sent?(typeUrl: string, version: string, cause: ResponseCause): void;
  acknowledged?(typeUrl: string, version: string): void;
  /** The reason is in {@link provideWatches}. */
  rejected?(typeUrl: string): void;
  /** Provides access to the client's subscriptions, ACKs and NACKs. */
  provideWatches?(watches: () => Watches): void;
  /** The metadata of a later request is not verified. */
  nodeUpdated?(typeUrl: string, metadata: Readonly<Record<string, unknown>>): void;
  /** @param failure `undefined` if the workload is healthy */
  healthReported?(failure: string | undefined): void;
  close(): void;
}

export interface StreamRejection {
  readonly code: EndCode;
  readonly reason: string;
}

/** The code defaults to INVALID_ARGUMENT. */
export type OpenedNode = { readonly error: string; readonly code?: EndCode } | { readonly resources: NodeResources };

export interface ResourceSource {
  /** @param onRejected closes the stream later */
  openNode(node: NodeIdentity, onRejected?: (reason: StreamRejection) => void): OpenedNode;
}
