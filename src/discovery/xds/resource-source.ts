/**
 * The port between the ADS server and whoever makes resources: the mesh's generators, or the conformance adapter's
 * bare cache. The ADS server knows streams, nonces, subscriptions and what was sent; a source knows what a node should
 * have.
 */
import type { EndCode } from '../../../machines/discovery/xds/ads-protocol.ts';

import type { Watches } from '../../../machines/discovery/xds/watch-record.ts';
import type { EnvoyBuild } from '../../model/node/envoy-build.ts';

/** A resource in the form in which it goes out: encoded once, its bytes shared by every stream that gets it. */
export interface EncodedResource {
  readonly name: string;
  /** Equal for equal content: a hash of the bytes, or a counter of the source. What differs in it is sent again. */
  readonly version: string;
  /** Field 2 of a DiscoveryResponse, tag and length included: `0x12 len Any`. */
  readonly sotwFrame: Uint8Array;
  /** Field 2 of a DeltaDiscoveryResponse, tag and length included: `0x12 len Resource{name, version, Any}`. */
  readonly deltaFrame: Uint8Array;
  /** What comes after either frame: the length in it counts these as well. Resources that have much in common share them. */
  readonly rest: readonly Uint8Array[];
}

/**
 * What a node should have of one type, at one moment. Immutable.
 *
 * The ADS server keeps the map as the record of what a stream was sent. A source that hands the same map to nodes with
 * the same needs makes that record cost nothing, and lets what changed between two maps be worked out once for all of
 * them; a source that hands out the very map that was sent says that nothing changed.
 */
export interface ResourceSet {
  /** `version_info` and `system_version_info` of a response made from this set. */
  readonly version: string;
  /**
   * By name, in the order in which they go out. For a subscription by name: those of the asked names that exist (or that
   * are answered when they do not, §7.3).
   */
  readonly resources: ReadonlyMap<string, EncodedResource>;
}

/** When a client can use a cluster that is new to it. */
export interface ClusterUsability {
  /** `at once`: when it has read it. `assignment`: with its endpoints. `warming`: when it has acknowledged CDS. */
  readonly after: 'at once' | 'assignment' | 'warming';
  /** Name of the ClusterLoadAssignment. */
  readonly assignment: string;
  /** Names of the secrets that it fetches. */
  readonly secrets: ReadonlySet<string>;
}

/** What Envoy waits for before it uses a cluster. */
export interface FetchLimit {
  /** Time for endpoints, and for each secret. */
  readonly fetchMs: number;
  /** Whether Envoy waits until host names are resolved. */
  readonly awaitsNames: boolean;
}

/** What resources say of clusters. Asked only while clusters are new to a client, or are removed from it. */
export interface ResourceReferences {
  /** Whether a listener, a route configuration or an extension configuration names the cluster. */
  names(resource: EncodedResource, cluster: string): boolean;
  /** Those of these clusters that it names, in their order. */
  namesAmong(resource: EncodedResource, clusters: ReadonlySet<string>): readonly string[];
  usabilityOf(cluster: EncodedResource): ClusterUsability;
  /** Whether a cluster fetches its endpoints from the control plane. */
  fetchesEndpoints(cluster: EncodedResource): boolean;
  /** Whether a ClusterLoadAssignment has no endpoints. */
  isEmptyAssignment(assignment: EncodedResource): boolean;
  /** Names of the secrets that a cluster fetches. */
  secretsOf(cluster: EncodedResource): ReadonlySet<string>;
  /** Names of the route configurations that a listener fetches. */
  routeConfigurationsOf(listener: EncodedResource): ReadonlySet<string>;
  /** Whether a route configuration has virtual hosts besides one that takes requests for any host. */
  hasHosts(configuration: EncodedResource): boolean;
  /** The cluster with a time limit for what Envoy fetches before it uses it; the same if it fetches nothing without a limit. */
  withFetchLimit(cluster: EncodedResource, limit: FetchLimit): EncodedResource;
}

/** The node as the first request of a stream told it. */
export interface NodeIdentity {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The identity that its client has shown to be the node's own; absent where it was not asked for. */
  readonly verifiedIdentity?: string;
  /** Everything that its client has shown to be; absent where it was not asked, or is nobody. */
  readonly identities?: readonly string[];
  /** The client's port gives secrets to whoever asks for those of the node's namespace (PILOT_SECRETS_ON_PLAINTEXT). */
  readonly secretsUnverified?: true;
  readonly locality?: { readonly region: string; readonly zone: string; readonly subZone: string };
  /** Which Envoy it runs; absent if it does not say so, or is not an Envoy. */
  readonly envoy?: EnvoyBuild;
}

/** What changed since a node was last served; the source decides whether the node is concerned. */
export interface ResourceChange {
  /** Version of the snapshot that has the change. */
  readonly version: string;
  /** Everything may have changed. */
  readonly forced: boolean;
  /** `Kind/namespace/name` of what changed. */
  readonly configs: ReadonlySet<string>;
}

/** Why a response was sent. */
export type ResponseCause = 'request' | 'push';

/** What a node should have of a type, on its way. */
export interface Preparation {
  /** Does a little. May throw. @returns whether there is more to do */
  piece(): boolean;
  /** What there was when it was begun. */
  result(): ResourceSet | undefined;
}

/** One per connected node and stream; the source may keep what it knows of the node in it. */
export interface NodeResources {
  /**
   * What the node should have of a type now. May throw: the stream is then sent nothing, and keeps what it has.
   *
   * @param names the names subscribed to; `'*'` for all (CDS and LDS with no names).
   * @returns undefined when the source makes no resources of this type: nothing is answered then (§7.1).
   */
  get(typeUrl: string, names: readonly string[] | '*'): ResourceSet | undefined;
  /**
   * Makes ahead, piece by piece, what {@link get} would take long for; absent, or undefined: it takes little.
   *
   * @param names as `get` is given them
   */
  prepare?(typeUrl: string, names: readonly string[] | '*'): Preparation | undefined;
  /** Which of the watched types may differ for this node after the change; empty: do not push (§6.5). */
  typesToPush(change: ResourceChange, watched: readonly string[]): readonly string[];
  /** A response of a type was sent. @param version that of its {@link ResourceSet} */
  sent?(typeUrl: string, version: string, cause: ResponseCause): void;
  /** The client has taken the last response of a type, which was of this version. */
  acknowledged?(typeUrl: string, version: string): void;
  /** The client has rejected the last response of a type. Why, the record says that {@link watched} has shown. */
  rejected?(typeUrl: string): void;
  /** What the client watches, and has said to what it was sent, can be seen by this from now on. */
  watched?(watches: () => Watches): void;
  /** The client says something of its node again, in a later request of a type. What it says is its own word. */
  nodeHeard?(typeUrl: string, metadata: Readonly<Record<string, unknown>>): void;
  /** The workload says how it is; undefined: it is healthy, else why it is not. */
  healthReported?(failure: string | undefined): void;
  /** The stream is gone. */
  close(): void;
}

/** Why a node is served no more. */
export interface Refused {
  readonly code: EndCode;
  /** Why, in words for the client. */
  readonly reason: string;
}

/** A node's resources, or why it cannot be served: a sentence, for INVALID_ARGUMENT where there is no other code. */
export type OpenedNode = { readonly error: string; readonly code?: EndCode } | { readonly resources: NodeResources };

export interface ResourceSource {
  /** @param refused called when it is found out later that the node must not be served: its stream ends */
  open(node: NodeIdentity, refused?: (why: Refused) => void): OpenedNode;
}
