import type { CatalogueRow } from '../../catalogue-row.ts';

/** Kind as in API paths: `v1/pods`, `networking.istio.io/v1/virtualservices`. */
export type ResourceName = string;

/** Version of a list, bookmark or object: a decimal number of any length. Empty if unknown. */
export type ResourceVersion = string;

/** `ApiFailure` of src/discovery/kubernetes as plain data. */
export type RequestFailure = {
  kind: 'status' | 'unreachable' | 'going away' | 'closed' | 'timeout' | 'invalid' | 'credentials' | 'aborted';
  message: string;
  code?: number;
  /** Reasons such as `ResourceVersionTooLarge`. */
  causes?: readonly string[];
  retryAfterMs?: number;
};

/** api-server-N → informer-N. The server responds: start requests. Kinds are notified one after the other. */
export type ServerReachable = {
  type: 'server.reachable';
  /** The outage was so long that the history may differ: the kind is listed again. */
  afterLongOutage: boolean;
  streams: boolean;
};
/** api-server-N → informer-N. The connection is closed, with all its requests. */
export type ServerLost = { type: 'server.lost'; reason: string };
/** api-server-N → informer-N. Another kind found that the server does not support streaming lists. */
export type StreamingListsDisabled = { type: 'streaming-lists.disabled' };
/** api-server-N → informer-N. The kind was defined, or its definition changed. */
export type KindDefined = { type: 'kind.defined' };
/** api-server-N → informer-N. The definition of the kind was removed: the server is expected to respond that it is unknown. */
export type KindRemoved = { type: 'kind.removed' };

/** informer-N → api-server-N. A request got no response or was interrupted. The kind waits until the server responds. */
export type ServerUnresponsive = { type: 'server.unresponsive'; resource: ResourceName; reason: string };
/** informer-N → api-server-N. The server does not support streaming lists, or does not end them. */
export type StreamingListsUnsupported = { type: 'streaming-lists.unsupported'; resource: ResourceName; reason: string };
/** informer-N → api-server-N. All objects of the kind were read and processed. `absent`: the server does not serve the kind, so the list is empty. */
export type KindSynced = { type: 'kind.synced'; resource: ResourceName; objects: number; absent: boolean };
/** informer-N → api-server-N. A request was rejected and is repeated later: the last objects apply. */
export type KindFailed = { type: 'kind.failed'; resource: ResourceName; reason: string };

/** informer-N/stream → informer-N. Objects of the first list were received. `objects`: number so far. */
export type InitialListProgressed = { type: 'initial-list.progressed'; objects: number };
/** informer-N/stream → informer-N. The first list is complete at this version. */
export type InitialListEnded = { type: 'initial-list.ended'; version: ResourceVersion };
/** informer-N/stream → informer-N. Objects changed; the store has them. */
export type ObjectsChanged = { type: 'objects.changed'; version: ResourceVersion; objects: number };
/** informer-N/stream → informer-N. There are no other changes up to this version. */
export type BookmarkReceived = { type: 'bookmark.received'; version: ResourceVersion };
/** informer-N/stream → informer-N. The server ended the watch, as it does every few minutes. */
export type WatchEnded = { type: 'watch.ended' };
/** informer-N/check → informer-N. The current version of the server. */
export type VersionReceived = { type: 'version.received'; version: ResourceVersion };
/** informer-N/list → informer-N. A page of the list was received. `objects`: number so far. */
export type PageReceived = { type: 'page.received'; objects: number };
/** informer-N/list → informer-N. The list of this version is complete. */
export type ListEnded = { type: 'list.ended'; version: ResourceVersion };
/** informer-N/stream, informer-N/list, informer-N/check → informer-N. A request failed. `draw`: random, from 0 to 1. */
export type RequestFailed = { type: 'request.failed'; failure: RequestFailure; draw: number };

/** api-server-N/definitions → api-server-N. The definition of a kind was added, changed or removed. */
export type DefinitionChanged = { type: 'definition.changed'; resource: ResourceName; defined: boolean };

/** A remote cluster that a Secret defines, without its credentials. */
export type ListedCluster = {
  /** Cluster ID: the key in the Secret. */
  cluster: string;
  /** Changes with the kubeconfig. */
  revision: string;
  server: string;
  resources: ResourceName[];
};
/** remote-clusters/secrets → remote-clusters. All remote clusters, as defined by Secrets. */
export type ClustersListed = { type: 'clusters.listed'; clusters: ListedCluster[] };
/** remote-clusters/secrets → remote-clusters. All objects of the cluster were processed, with this revision of its kubeconfig. */
export type ClusterSynced = { type: 'cluster.synced'; cluster: string; revision: string };

export type InformerOrder = ServerReachable | ServerLost | StreamingListsDisabled | KindDefined | KindRemoved;
export type InformerReport = ServerUnresponsive | StreamingListsUnsupported | KindSynced | KindFailed;
export type WatchStreamReport =
  | InitialListProgressed
  | InitialListEnded
  | ObjectsChanged
  | BookmarkReceived
  | WatchEnded
  | RequestFailed;
export type ListReport = PageReceived | ListEnded | RequestFailed;
export type CheckReport = VersionReceived | RequestFailed;

type Diagram = 'api-server' | 'informer' | 'remote-clusters';

const catalogueRows = (diagram: Diagram, from: string, to: string, types: readonly string[]): CatalogueRow<Diagram>[] =>
  types.map((type) => ({ type, from, to, diagram, seeds: [] }));

const orders: readonly InformerOrder['type'][] = [
  ...(['server.reachable', 'server.lost', 'streaming-lists.disabled', 'kind.defined', 'kind.removed'] as const),
];
const reports: readonly InformerReport['type'][] = [
  'server.unresponsive',
  'streaming-lists.unsupported',
  'kind.synced',
  'kind.failed',
];
const watchStreamTypes: readonly WatchStreamReport['type'][] = [
  ...(['initial-list.progressed', 'initial-list.ended', 'objects.changed', 'bookmark.received'] as const),
  ...(['watch.ended', 'request.failed'] as const),
];
const listTypes: readonly ListReport['type'][] = ['page.received', 'list.ended', 'request.failed'];
const checkTypes: readonly CheckReport['type'][] = ['version.received', 'request.failed'];
const serverTimers = ['resumeInterval', 'pingInterval', 'pingLimit', 'probePause', 'longOutage'];
const informerTimers = ['initialListLimit', 'responseLimit', 'shortWatch', 'retryDelay', 'absentDelay'];
const timers = (names: readonly string[]): string[] => names.map((name) => `timer ${name}`);

export const kubernetesCatalogue: readonly CatalogueRow<Diagram>[] = [
  ...catalogueRows('api-server', 'api-server-N', 'api-server-N/definitions', ['spawn']),
  ...catalogueRows('api-server', 'api-server-N', 'api-server-N/ping', ['spawn']),
  ...catalogueRows('api-server', 'api-server-N', 'api-server-N', timers(serverTimers)),
  ...catalogueRows('api-server', 'api-server-N/definitions', 'api-server-N', ['definition.changed']),
  ...catalogueRows('informer', 'api-server-*', 'informer-N', ['spawn', ...orders]),
  ...catalogueRows('informer', 'informer-N', 'api-server-*', reports),
  ...catalogueRows('informer', 'informer-N', 'informer-N/check', ['spawn']),
  ...catalogueRows('informer', 'informer-N/check', 'informer-N', checkTypes),
  ...catalogueRows('informer', 'informer-N', 'informer-N/list', ['spawn']),
  ...catalogueRows('informer', 'informer-N/list', 'informer-N', listTypes),
  ...catalogueRows('informer', 'informer-N', 'informer-N/stream', ['spawn']),
  ...catalogueRows('informer', 'informer-N/stream', 'informer-N', watchStreamTypes),
  ...catalogueRows('informer', 'informer-N', 'informer-N/hand-over', ['spawn']),
  ...catalogueRows('informer', 'informer-N', 'informer-N', timers(informerTimers)),
  ...catalogueRows('remote-clusters', 'remote-clusters/secrets', 'remote-clusters', [
    'clusters.listed',
    'cluster.synced',
  ]),
  ...catalogueRows('remote-clusters', 'remote-clusters', 'remote-clusters/secrets', ['spawn']),
  ...catalogueRows('api-server', 'remote-clusters', 'api-server-N', ['spawn']),
];
