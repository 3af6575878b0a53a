/**
 * Every event between the charts that follow the API server of a cluster, and their effects. Events name kinds and versions and
 * count objects; the objects themselves are in a store on the side of the effects (src/discovery/kubernetes).
 */
import type { CatalogueRow } from '../../catalogue-row.ts';

/** How the API calls a kind, as in an address: `v1/pods`, `networking.istio.io/v1/virtualservices`. */
export type ResourceName = string;

/** Of a list, a bookmark or an object, as the server writes it: a decimal number of any length. Empty: none is known. */
export type ResourceVersion = string;

/** Why a request came to nothing. What the transport says (`ApiFailure` of src/discovery/kubernetes), as plain data. */
export type RequestFailure = {
  kind: 'status' | 'unreachable' | 'going away' | 'closed' | 'timeout' | 'invalid' | 'credentials' | 'aborted';
  message: string;
  /** Of a `status`: as in HTTP. */
  code?: number;
  /** Of a `status`: what caused it, as `ResourceVersionTooLarge`. */
  causes?: readonly string[];
  /** The least time until the next try. */
  retryAfterMs?: number;
};

// ---- api-server-N → informer-N

/** api-server-N → informer-N. The server answers: take up the work. One kind after the other is told, so that they do not come at once. */
export type ServerAnswers = {
  type: 'server.answers';
  /** It was away for so long that its history may be another one: what it has is taken anew. */
  anew: boolean;
  /** It sends lists as streams, as far as is known. */
  streams: boolean;
};
/** api-server-N → informer-N. The connection is given up, with what runs on it. */
export type ServerLost = { type: 'server.lost'; reason: string };
/** api-server-N → informer-N. It sends no lists as streams: another kind has found out. */
export type StreamsRefused = { type: 'streams.refused' };
/** api-server-N → informer-N. The kind was defined, or is defined otherwise than before. */
export type KindDefined = { type: 'kind.defined' };
/** api-server-N → informer-N. The definition of the kind is gone: that the server does not know it is no mistake. */
export type KindRemoved = { type: 'kind.removed' };

// ---- informer-N → api-server-N

/** informer-N → api-server-N. There was no answer, or it broke off: does the server answer anybody? Until it does, the kind waits. */
export type ServerMissed = { type: 'server.missed'; resource: ResourceName; reason: string };
/** informer-N → api-server-N. The server does not know, or does not end, a list that is streamed. */
export type StreamsMissing = { type: 'streams.missing'; resource: ResourceName; reason: string };
/**
 * informer-N → api-server-N. All that there is of the kind was taken, and handled by everybody who asked for it; the first time, or
 * anew. `absent`: the server does not know the kind, so there is nothing.
 */
export type KindSynced = { type: 'kind.synced'; resource: ResourceName; objects: number; absent: boolean };
/** informer-N → api-server-N. A request was refused, and is made again later; what was taken before stays in force. */
export type KindFailed = { type: 'kind.failed'; resource: ResourceName; reason: string };

// ---- effects of an informer

/** informer-N/stream → informer-N. Objects of the first list are coming: so many so far. */
export type InitialProgressed = { type: 'initial.progressed'; objects: number };
/** informer-N/stream → informer-N. That was all that there was at this version. */
export type InitialEnded = { type: 'initial.ended'; version: ResourceVersion };
/** informer-N/stream → informer-N. Objects are others than before; the store has them. */
export type ObjectsChanged = { type: 'objects.changed'; version: ResourceVersion; objects: number };
/** informer-N/stream → informer-N. Nothing else has happened up to this version. */
export type BookmarkReceived = { type: 'bookmark.received'; version: ResourceVersion };
/** informer-N/stream → informer-N. The server ended the watch, as it does every few minutes. */
export type WatchEnded = { type: 'watch.ended' };
/** informer-N/check → informer-N. What is true now has this version. */
export type HistorySeen = { type: 'history.seen'; version: ResourceVersion };
/** informer-N/list → informer-N. A page was taken: so many objects so far. */
export type PageTaken = { type: 'page.taken'; objects: number };
/** informer-N/list → informer-N. That was the last page of the list of this version. */
export type ListEnded = { type: 'list.ended'; version: ResourceVersion };
/** informer-N/stream, informer-N/list, informer-N/check → informer-N. It came to nothing. `draw`: at random, from 0 to 1. */
export type RequestFailed = { type: 'request.failed'; failure: RequestFailure; draw: number };

// ---- effects of api-server-N

/** api-server-N/definitions → api-server-N. The definition of a kind has come, is another, or is gone. */
export type DefinitionChanged = { type: 'definition.changed'; resource: ResourceName; defined: boolean };

// ---- remote-clusters/secrets → remote-clusters

/** A cluster as a Secret has it. Of the Secret nothing is here but that it is another than before. */
export type ListedCluster = {
  /** Its id: the key of the Secret. */
  cluster: string;
  /** Another one: another kubeconfig. */
  revision: string;
  /** How the chart of its API server calls it: no other one has the name. */
  server: string;
  resources: ResourceName[];
};
/** remote-clusters/secrets → remote-clusters. Secrets have these clusters, and no others. */
export type ClustersListed = { type: 'clusters.listed'; clusters: ListedCluster[] };
/** remote-clusters/secrets → remote-clusters. All that the cluster has was handed over, as of this revision. */
export type ClusterSynced = { type: 'cluster.synced'; cluster: string; revision: string };

/** What an informer is told by the chart of its server. */
export type InformerOrder = ServerAnswers | ServerLost | StreamsRefused | KindDefined | KindRemoved;
/** What informers tell the chart of their server. */
export type InformerReport = ServerMissed | StreamsMissing | KindSynced | KindFailed;
export type StreamReport =
  | InitialProgressed
  | InitialEnded
  | ObjectsChanged
  | BookmarkReceived
  | WatchEnded
  | RequestFailed;
export type ListReport = PageTaken | ListEnded | RequestFailed;
export type CheckReport = HistorySeen | RequestFailed;

type Diagram = 'api-server' | 'informer' | 'remote-clusters';

const rows = (diagram: Diagram, from: string, to: string, types: readonly string[]): CatalogueRow<Diagram>[] =>
  types.map((type) => ({ type, from, to, diagram, seeds: [] }));

const orders: readonly InformerOrder['type'][] = [
  ...(['server.answers', 'server.lost', 'streams.refused', 'kind.defined', 'kind.removed'] as const),
];
const reports: readonly InformerReport['type'][] = ['server.missed', 'streams.missing', 'kind.synced', 'kind.failed'];
const ofStream: readonly StreamReport['type'][] = [
  ...(['initial.progressed', 'initial.ended', 'objects.changed', 'bookmark.received'] as const),
  ...(['watch.ended', 'request.failed'] as const),
];
const ofList: readonly ListReport['type'][] = ['page.taken', 'list.ended', 'request.failed'];
const ofCheck: readonly CheckReport['type'][] = ['history.seen', 'request.failed'];
const serverTimers = ['wakeInterval', 'pingInterval', 'pingLimit', 'probePause', 'longOutage'];
const informerTimers = ['endLimit', 'answerLimit', 'shortWatch', 'retryDelay', 'absentDelay'];
const timers = (names: readonly string[]): string[] => names.map((name) => `timer ${name}`);

export const kubernetesCatalogue: readonly CatalogueRow<Diagram>[] = [
  ...rows('api-server', 'api-server-N', 'api-server-N/definitions', ['spawn']),
  ...rows('api-server', 'api-server-N', 'api-server-N/ping', ['spawn']),
  ...rows('api-server', 'api-server-N', 'api-server-N', timers(serverTimers)),
  ...rows('api-server', 'api-server-N/definitions', 'api-server-N', ['definition.changed']),
  ...rows('informer', 'api-server-*', 'informer-N', ['spawn', ...orders]),
  ...rows('informer', 'informer-N', 'api-server-*', reports),
  ...rows('informer', 'informer-N', 'informer-N/check', ['spawn']),
  ...rows('informer', 'informer-N/check', 'informer-N', ofCheck),
  ...rows('informer', 'informer-N', 'informer-N/list', ['spawn']),
  ...rows('informer', 'informer-N/list', 'informer-N', ofList),
  ...rows('informer', 'informer-N', 'informer-N/stream', ['spawn']),
  ...rows('informer', 'informer-N/stream', 'informer-N', ofStream),
  ...rows('informer', 'informer-N', 'informer-N/hand-over', ['spawn']),
  ...rows('informer', 'informer-N', 'informer-N', timers(informerTimers)),
  ...rows('remote-clusters', 'remote-clusters/secrets', 'remote-clusters', ['clusters.listed', 'cluster.synced']),
  ...rows('remote-clusters', 'remote-clusters', 'remote-clusters/secrets', ['spawn']),
  ...rows('api-server', 'remote-clusters', 'api-server-N', ['spawn']),
];
