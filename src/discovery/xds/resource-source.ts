/**
 * Interface between the ADS server (streams, nonces, subscriptions, sent resources) and a source of the resources of
 * each node.
 */
import type { EndCode } from '../../../machines/discovery/xds/ads-protocol.ts';

import type { Watches } from '../../../machines/discovery/xds/watch-record.ts';
import type { EnvoyBuild } from '../../model/node/envoy-build.ts';

/** Its bytes are shared by all streams. */
export interface EncodedResource {
  readonly name: string;
  /** Equal for equal content: a hash, or a counter of the source. A different version is sent again. */
  readonly version: string;
  /** Field 2 of a DiscoveryResponse, including tag and length: `0x12 len Any`. */
  readonly sotwFrame: Uint8Array;
  /** Field 2 of a DeltaDiscoveryResponse, including tag and length: `0x12 len Resource{name, version, Any}`. */
  readonly deltaFrame: Uint8Array;
  /** Chunks that follow either frame and are included in its length. Similar resources share them. */
  readonly rest: readonly Uint8Array[];
}

/**
 * Resources of a type for a node. Immutable.
 *
 * The ADS server keeps the map as the record of what a stream was sent. Equal nodes should get the same map, so that
 * differences are computed once. Returning the last map means that nothing changed.
 */
export interface ResourceSet {
  /** `version_info` and `system_version_info` of the response. */
  readonly version: string;
  /** By name, in sending order. Includes requested names that have a response even if they do not exist (§7.3). */
  readonly resources: ReadonlyMap<string, EncodedResource>;
}

/** When a client can use a new cluster. */
export interface ClusterReadiness {
  /** `at once`: after reading it. `assignment`: with its endpoints. `warming`: when it has acknowledged CDS. */
  readonly after: 'at once' | 'assignment' | 'warming';
  readonly assignment: string;
  readonly secrets: ReadonlySet<string>;
}

export interface FetchLimit {
  /** For endpoints, and for each secret. */
  readonly fetchMs: number;
  /** Whether Envoy waits until host names are resolved. */
  readonly awaitsNames: boolean;
}

/** Used only while clusters are new to a client or are removed. */
export interface ResourceReferences {
  /** For a listener, route configuration or extension configuration. */
  names(resource: EncodedResource, cluster: string): boolean;
  /** In the order of `clusters`. */
  namesAmong(resource: EncodedResource, clusters: ReadonlySet<string>): readonly string[];
  usabilityOf(cluster: EncodedResource): ClusterReadiness;
  fetchesEndpoints(cluster: EncodedResource): boolean;
  isEmptyAssignment(assignment: EncodedResource): boolean;
  secretsOf(cluster: EncodedResource): ReadonlySet<string>;
  routeConfigurationsOf(listener: EncodedResource): ReadonlySet<string>;
  /** Ignores a virtual host that matches any host. */
  hasHosts(configuration: EncodedResource): boolean;
  /**
   * Limits what Envoy fetches before using the cluster. Returns the same cluster if it fetches nothing without a limit.
   */
  withFetchLimit(cluster: EncodedResource, limit: FetchLimit): EncodedResource;
}

export interface NodeIdentity {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Verified identity that matches the node. Absent on ports without authentication. */
  readonly verifiedIdentity?: string;
  /** Absent if the client has none. */
  readonly identities?: readonly string[];
  /** The port is unauthenticated (PILOT_SECRETS_ON_PLAINTEXT). */
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

/** A resource set that is built in steps. */
export interface ResourcePreparation {
  /** Does one step. May throw. @returns whether there are more */
  piece(): boolean;
  /** As of the start. */
  result(): ResourceSet | undefined;
}

/** One for each stream of a connected node. */
export interface NodeResources {
  /**
   * Current resources of a type. If it throws, nothing is sent and the client keeps its resources.
   *
   * @param names subscribed names; `'*'` for all (CDS and LDS without names).
   * @returns `undefined` if the source has no such type; then there is no response (§7.1).
   */
  get(typeUrl: string, names: readonly string[] | '*'): ResourceSet | undefined;
  /** Builds in steps what {@link get} would take long for. */
  prepare?(typeUrl: string, names: readonly string[] | '*'): ResourcePreparation | undefined;
  /** Watched types that may differ for this node after the change. Empty: nothing is pushed (§6.5). */
  typesToPush(change: ResourceChange, watched: readonly string[]): readonly string[];
  /** @param version that of the {@link ResourceSet} */
  sent?(typeUrl: string, version: string, cause: ResponseCause): void;
  acknowledged?(typeUrl: string, version: string): void;
  /** The {@link watched} record contains the reason. */
  rejected?(typeUrl: string): void;
  /** Provides access to the client's subscriptions, ACKs and NACKs. */
  watched?(watches: () => Watches): void;
  /** Unverified, from a later request. */
  nodeUpdated?(typeUrl: string, metadata: Readonly<Record<string, unknown>>): void;
  /** @param failure `undefined` if the workload is healthy */
  healthReported?(failure: string | undefined): void;
  close(): void;
}

export interface StreamRejection {
  readonly code: EndCode;
  /** Text for the client. */
  readonly reason: string;
}

/** The default code is INVALID_ARGUMENT. */
export type OpenedNode = { readonly error: string; readonly code?: EndCode } | { readonly resources: NodeResources };

export interface ResourceSource {
  /** @param refused closes the stream later */
  open(node: NodeIdentity, refused?: (why: StreamRejection) => void): OpenedNode;
}
