/**
 * Events of the actors of an xDS stream. Their order is in sequences/ads.mmd. The prefix of an event names its subject, not its sender. Events
 * contain no resources: the stream reads these from the cache.
 */
import type { KnownResources, Watch } from './watch-record.ts';

export type SotwRequest = {
  protocol: 'sotw';
  typeUrl: string;
  /** Nonce of the acknowledged response; empty without one. */
  nonce: string;
  /** All subscribed names of the type. Equal lists are usually the same object. */
  names: readonly string[];
  /** Why the client rejects the response; null if it does not. */
  rejection: string | null;
  /** The request has a version but no nonce: the client has resources of another stream. */
  returning?: true;
  /** The version that the client has, if the request has a nonce. */
  version?: string;
};

export type DeltaRequest = {
  protocol: 'delta';
  typeUrl: string;
  nonce: string;
  subscribe: readonly string[];
  unsubscribe: readonly string[];
  /** Names in `initial_resource_versions`: resources of an earlier stream. */
  known: readonly string[];
  /** In the order of `known`. */
  knownVersions: readonly string[];
  rejection: string | null;
};

export type AdsRequest = SotwRequest | DeltaRequest;

/** A response to generate from the resources at the time of the order; Secrets and one-time responses from those at the time of sending. */
export type ResponseOrder = {
  typeUrl: string;
  names: readonly string[] | '*';
  /** Send all subscribed resources, whatever was sent before. */
  all: boolean;
  /** With `all`: resources that the client reports. Those whose reported version is current are not sent. */
  has?: KnownResources;
  /** Send these, whatever was sent before. */
  requested: readonly string[];
  /** Send resources that changed since they were sent. */
  changed: boolean;
  /** Send these in the version in which they were held. */
  ready?: readonly string[];
  /** With `all`: the client has resources of another stream, but does not report their names or versions. */
  returning?: true;
  /** With `changed`: repeat the resources of this version if the client needs them again, and nothing newer. */
  again?: string;
};

export type EndCode =
  | 'OK'
  | 'FAILED_PRECONDITION'
  | 'INVALID_ARGUMENT'
  | 'PERMISSION_DENIED'
  | 'RESOURCE_EXHAUSTED'
  | 'UNAUTHENTICATED'
  | 'UNAVAILABLE';

// ---- ads-connection/stream → ads-connection: the client's side

/** Identities of the client; empty on a port without authentication. */
export type PeerAuthenticated = { type: 'peer.authenticated'; identities: readonly string[] };
/** Authentication failed; `reason` is logged and not sent to the client. */
export type PeerUnauthenticated = { type: 'peer.unauthenticated'; reason: string };
/** The first request names a node that can be served. */
export type NodeAccepted = { type: 'node.accepted'; node: string };
/** The first request names a node that cannot be served; `reason` is sent to the client. */
export type NodeInvalid = { type: 'node.invalid'; reason: string };
/** The first request names a node that does not belong to the client's identities. */
export type NodeForbidden = { type: 'node.forbidden'; reason: string };
/** The workload cannot be registered, or a limit of streams (their rate or number) is exceeded; `reason` is sent to the client. */
export type WorkloadRejected = { type: 'workload.rejected'; code: EndCode; reason: string };
/** The first request names no node. */
export type NodeMissing = { type: 'node.missing' };
/** A request was received. */
export type RequestReceived = { type: 'request.received'; request: AdsRequest };
/** A one-time request names a resource that is forbidden or unavailable. */
export type RequestDenied = { type: 'request.denied'; code: EndCode; reason: string };
/** A message is not a discovery request. */
export type RequestInvalid = { type: 'request.invalid'; reason: string };
/** The client will send no more requests (half-close). */
export type PeerHalfClosed = { type: 'peer.half-closed' };
/** A response waits until earlier ones are written; the client is not read. */
export type StreamCongested = { type: 'stream.congested' };
/** No response waits: the client is read again. */
export type StreamResumed = { type: 'stream.resumed' };
/** An error of this program in the work of the stream; `reason` is logged and not sent to the client. */
export type StreamFailed = { type: 'stream.failed'; reason: string };
/** The stream has closed. */
export type StreamClosed = { type: 'stream.closed'; reason: string };

// ---- ads-connection/stream → ads-connection: outcome of the rules

/**
 * An unusual request: the client rejects a response, or the request is ignored because it acknowledges an old response (`stale`), requests
 * nothing new (`misuse`), or names a type that is not served (`unserved`).
 */
export type RequestClassified = {
  type: 'request.classified';
  typeUrl: string;
  requestClass: 'rejection' | 'stale' | 'misuse' | 'unserved';
  reason: string;
};
/** The client exceeds the limit of subscriptions of a stream; `reason` is sent to the client. */
export type SubscriptionLimitExceeded = { type: 'subscription-limit.exceeded'; reason: string };
/** There are changes, but the client has not acknowledged or rejected the previous response. */
export type ChangesHeld = { type: 'changes.held' };
/** No change is held. */
export type ChangesReleased = { type: 'changes.released' };
/**
 * On a draining or half-closed stream: no response is pending, and the client has acknowledged or rejected all responses, unless it has half-closed
 * the stream.
 */
export type ClientIdle = { type: 'client.idle' };
/** The rules order these responses. A pushed change of a type waits until the type's previous response was acknowledged or rejected. */
export type ResponsesScheduled = { type: 'responses.scheduled'; orders: readonly ResponseOrder[] };
/** The subscription of a type changed. */
export type WatchChanged = { type: 'watch.changed'; typeUrl: string; watch: Watch };

// ---- ads-connection/stream → ads-connection: outcome of an order

/** A response was sent. `sentAt`: Unix time in milliseconds. */
export type ResponseSent = {
  type: 'response.sent';
  typeUrl: string;
  nonce: string;
  version: string;
  resources: number;
  removed: number;
  sentAt: number;
  /** Clusters that other resources of the type wait for. */
  awaits?: readonly string[];
};
/** No response was sent: nothing changed, all resources wait for clusters, the type is not served, or the source failed. */
export type ResponseSkipped = {
  type: 'response.skipped';
  typeUrl: string;
  reason: 'unchanged' | 'held' | 'not served' | 'failed';
  awaits?: readonly string[];
};

// ---- ads-connection/stream → ads-connection: make before break (cluster-rollout.ts)

/** The client cannot use these clusters yet: resources of these types (possibly none) are held, and the limit runs. */
export type ClustersPending = { type: 'clusters.pending'; clusters: readonly string[]; typeUrls: readonly string[] };
/** No resource is held, and no limit runs. */
export type ClustersUsable = { type: 'clusters.usable' };
/**
 * The client could not use these clusters within the limit: resources that wait for them are sent. Clusters that were sent are
 * sent again with a limit for what they fetch.
 */
export type ClustersAbandoned = { type: 'clusters.abandoned'; clusters: readonly string[] };
/** These clusters are no longer configured, and no resource names them: they are removed after a delay. */
export type ClustersLingering = { type: 'clusters.lingering'; clusters: readonly string[] };
export type RetentionState = 'named' | 'unacknowledged' | 'lingering' | 'removable';
/**
 * Clusters that are no longer configured, and why the client keeps them: a listener or route names them (`named`), the client has not
 * acknowledged these types without them (`unacknowledged`), requests may still use them (`lingering`), or the next response with clusters
 * removes them (`removable`).
 */
export type ClustersRetained = {
  type: 'clusters.retained';
  state: RetentionState;
  clusters: readonly string[];
  unacknowledged?: readonly string[];
};
/** The client keeps too many clusters that are no longer configured: these are removed early. */
export type ClustersEvicted = { type: 'clusters.evicted'; clusters: readonly string[] };
/** No cluster waits for its removal. */
export type ClustersRemoved = { type: 'clusters.removed' };

// ---- ads-connection → ads-connection/stream

/** Respond to a one-time request. The rules in the stream (ads-exchange.ts) handle watched types. */
export type ResponsesSend = { type: 'responses.send'; orders: readonly ResponseOrder[] };
/** Send the held changes: the client has not responded in time. */
export type ChangesRelease = { type: 'changes.release' };
/** One step of the limit for pending clusters has passed. */
export type WaitsExpire = { type: 'waits.expire' };
/** One step of the delay of removed clusters has passed. */
export type RemovalsExpire = { type: 'removals.expire' };
/** Take no more changes, and report when the client has acknowledged or rejected all responses. */
export type StreamDrain = { type: 'stream.drain' };
/** End the stream after written responses, or at once. */
export type StreamEnd = { type: 'stream.end'; code: EndCode; reason: string; cut?: true };

// ---- discovery/ads-server → ads-connection

/** Push these types to the client: a new push context affects them. */
export type ConnectionPush = { type: 'connection.push'; version: string; types: string[] };
/** End the stream: at once if no response is pending or unacknowledged, otherwise after that or after the limit. */
export type ConnectionDrain = { type: 'connection.drain'; withinMs: number };

export type AdsStreamReport =
  | PeerAuthenticated
  | PeerUnauthenticated
  | NodeAccepted
  | NodeInvalid
  | NodeForbidden
  | WorkloadRejected
  | NodeMissing
  | RequestReceived
  | RequestDenied
  | RequestInvalid
  | RequestClassified
  | SubscriptionLimitExceeded
  | PeerHalfClosed
  | StreamCongested
  | StreamResumed
  | StreamFailed
  | StreamClosed
  | ChangesHeld
  | ChangesReleased
  | ClientIdle
  | ClustersPending
  | ClustersUsable
  | ClustersAbandoned
  | ClustersLingering
  | ClustersRetained
  | ClustersRemoved
  | ClustersEvicted
  | ResponsesScheduled
  | ResponseSent
  | ResponseSkipped
  | WatchChanged;

export type StreamOrder = ResponsesSend | ChangesRelease | WaitsExpire | RemovalsExpire | StreamDrain | StreamEnd;

export const adsCatalogue = [
  { type: 'spawn', from: 'ads-connection-N', to: 'ads-connection-N/stream', diagram: 'ads', seeds: ['6.8 #1'] },
  { type: 'peer.authenticated', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'peer.unauthenticated', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'timer nodeLimit', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'timer authenticationLimit', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'node.accepted', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'node.invalid', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'node.forbidden', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'workload.rejected', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'node.missing', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  {
    type: 'request.received',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'ads',
    seeds: ['6.8 #2'],
  },
  { type: 'request.denied', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'request.invalid', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'request.classified', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  {
    type: 'subscription-limit.exceeded',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'ads',
    seeds: [],
  },
  {
    type: 'responses.scheduled',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'ads',
    seeds: ['6.8 #3', '6.8 #16', '6.8 #19', '6.8 #23'],
  },
  { type: 'responses.send', from: 'ads-connection-N', to: 'ads-connection-N/stream', diagram: 'ads', seeds: [] },
  { type: 'response.sent', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'response.skipped', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  {
    type: 'connection.push',
    from: 'discovery/ads-server',
    to: 'ads-connection-N',
    diagram: 'ads',
    seeds: ['6.8 #20', '6.8 #21', '6.8 #22'],
  },
  { type: 'watch.changed', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'changes.held', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'changes.released', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'changes.release', from: 'ads-connection-N', to: 'ads-connection-N/stream', diagram: 'ads', seeds: [] },
  {
    type: 'clusters.pending',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'clusters.usable',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'clusters.abandoned',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'clusters.lingering',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'clusters.retained',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'clusters.evicted',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'clusters.removed',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'removals.expire',
    from: 'ads-connection-N',
    to: 'ads-connection-N/stream',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'timer removalStep',
    from: 'ads-connection-N',
    to: 'ads-connection-N',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'waits.expire',
    from: 'ads-connection-N',
    to: 'ads-connection-N/stream',
    diagram: 'make-before-break',
    seeds: [],
  },
  {
    type: 'timer limitStep',
    from: 'ads-connection-N',
    to: 'ads-connection-N',
    diagram: 'make-before-break',
    seeds: [],
  },
  { type: 'timer ackTimeout', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'connection.drain', from: 'discovery/ads-server', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.drain', from: 'ads-connection-N', to: 'ads-connection-N/stream', diagram: 'ads', seeds: [] },
  { type: 'client.idle', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'timer drainTime', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'peer.half-closed', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.congested', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.resumed', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'timer congestionLimit', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'timer responseLimit', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.failed', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.end', from: 'ads-connection-N', to: 'ads-connection-N/stream', diagram: 'ads', seeds: [] },
  { type: 'timer closeLimit', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.closed', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
] as const;

/** They occur for every proxy and type of every push, and are sent only at trace level `full`, except requests for types that are not watched. */
export const routineMessages = [
  'connection.push',
  'request.received',
  'responses.scheduled',
  'response.sent',
  'response.skipped',
  'watch.changed',
] as const satisfies readonly (AdsStreamReport | StreamOrder | ConnectionPush)['type'][];
