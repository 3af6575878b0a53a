/**
 * Every event that passes between two actors around an xDS stream, declared once: who sends it, who receives it. The
 * order in which they may pass is in sequences/ads.mmd.
 *
 * Resources never travel in them: they go from the source's cache to the stream. What is known of each type that is watched
 * (names, nonces, versions) is the stream's record, changed by the rules of ads-exchange.ts.
 */
import type { KnownResources, Watch } from './watch-record.ts';

/** A request of a state-of-the-world stream. */
export type SotwRequest = {
  protocol: 'sotw';
  typeUrl: string;
  /** Nonce of the response that it answers; empty when it answers none. */
  nonce: string;
  /** All that the client wants of the type. Lists of names that are equal are one list, wherever that costs little. */
  names: readonly string[];
  /** Why the client rejects the response; null when it does not. */
  rejection: string | null;
  /** It has a version and no nonce: the client has resources of another stream. Absent: it has none, or it answers a response. */
  returning?: true;
  /** Version that the client has, with a nonce; absent: it has none. */
  version?: string;
};

/** A request of an incremental stream. */
export type DeltaRequest = {
  protocol: 'delta';
  typeUrl: string;
  nonce: string;
  subscribe: readonly string[];
  unsubscribe: readonly string[];
  /** What a client that comes back has already: the names in `initial_resource_versions`. */
  known: readonly string[];
  /** The versions of these, in turn. */
  knownVersions: readonly string[];
  rejection: string | null;
};

export type AdsRequest = SotwRequest | DeltaRequest;

/** One response that the stream should make, of what the source has when its turn comes. */
export type ResponseOrder = {
  typeUrl: string;
  /** What the client is subscribed to. */
  names: readonly string[] | '*';
  /** Send all of it, whatever was sent before. */
  all: boolean;
  /** With `all`: not what the client has in the version that there is, by its own word. */
  has?: KnownResources;
  /** Send these, whatever was sent before. */
  asked: readonly string[];
  /** Send what is not as it was when it was last sent. */
  changed: boolean;
  /** Send these as they were when they were held back. Absent: none. */
  ready?: readonly string[];
  /** With `all`: the client has resources of another stream, and does not say which, or not in which versions. */
  returning?: true;
  /** With `changed`: send what was sent with this version, where the client needs it again, and nothing newer. */
  again?: string;
};

/** The gRPC status of an ended stream. */
export type EndCode =
  | 'OK'
  | 'FAILED_PRECONDITION'
  | 'INVALID_ARGUMENT'
  | 'PERMISSION_DENIED'
  | 'RESOURCE_EXHAUSTED'
  | 'UNAUTHENTICATED'
  | 'UNAVAILABLE';

// ---- ads-connection/stream → ads-connection: the client's side

/** Who is at the other end: none on a port that does not ask. */
export type PeerAuthenticated = { type: 'peer.authenticated'; identities: readonly string[] };
/** Nobody knows who is at the other end; `reason` is for us, not for the client. */
export type PeerUnauthenticated = { type: 'peer.unauthenticated'; reason: string };
/** The first message names a node that the source can serve. */
export type NodeAccepted = { type: 'node.accepted'; node: string };
/** The first message names a node that the source cannot serve; `reason` is for the client. */
export type NodeRefused = { type: 'node.refused'; reason: string };
/** The first message names a node that the client is not. */
export type NodeForbidden = { type: 'node.forbidden'; reason: string };
/** The workload wants to register itself, and cannot: found out at once, or later; `reason` is for the client. */
export type WorkloadRejected = { type: 'workload.rejected'; code: EndCode; reason: string };
/** The first message names no node. */
export type NodeMissing = { type: 'node.missing' };
/** A request came. */
export type RequestReceived = { type: 'request.received'; request: AdsRequest };
/** What a request asks for once is not for this client, or not to be had. */
export type RequestRefused = { type: 'request.refused'; code: EndCode; reason: string };
/** A message came that is no request. */
export type RequestUnreadable = { type: 'request.unreadable'; reason: string };
/** The client will send no more (half-close). */
export type PeerFinished = { type: 'peer.finished' };
/** A response waits until those before it have left; nothing is read from the client meanwhile. */
export type StreamCongested = { type: 'stream.congested' };
/** No response waits any more; the client is read from again. */
export type StreamRelieved = { type: 'stream.relieved' };
/** The stream is gone. */
export type StreamClosed = { type: 'stream.closed'; reason: string };

// ---- ads-connection/stream → ads-connection: what the rules make of it

/**
 * A request was not in the ordinary run of things: the client rejects a response, answers one that is no longer the last
 * (it is ignored), asks for nothing new without answering anything (ignored too), or speaks of a type that nobody serves
 * (ignored as well).
 */
export type RequestJudged = {
  type: 'request.judged';
  typeUrl: string;
  verdict: 'rejection' | 'stale' | 'misuse' | 'unserved';
  /** Why the client rejects; empty when it does not. */
  reason: string;
};
/** The client would be subscribed to more than a stream may be; `reason` is for the client. */
export type NamesExceeded = { type: 'names.exceeded'; reason: string };
/** There are changes, and the client has not acknowledged or rejected what it was sent before. */
export type ChangesHeld = { type: 'changes.held' };
/** No change is held back any more. */
export type ChangesReleased = { type: 'changes.released' };
/** A stream that drains: nothing is on its way any more, and the client has had its say on all that it was sent. */
export type ClientSettled = { type: 'client.settled' };
/** The rules have it make and send these, in this order, each when the client has taken what was sent before. */
export type ResponsesOrdered = { type: 'responses.ordered'; orders: readonly ResponseOrder[] };
/** What is known of a type that the client watches, when that has changed. */
export type WatchChanged = { type: 'watch.changed'; typeUrl: string; watch: Watch };

// ---- ads-connection/stream → ads-connection: what became of an order

/** A response is on its way. `sentAt` is Unix time in milliseconds. */
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
/** There was nothing to send: nothing changed, all of it waits for clusters, no such type, or the source failed. */
export type ResponseSkipped = {
  type: 'response.skipped';
  typeUrl: string;
  why: 'unchanged' | 'held' | 'not served' | 'failed';
  /** Clusters that resources of the type wait for. */
  awaits?: readonly string[];
};

// ---- ads-connection/stream → ads-connection: make before break (cluster-rollout.ts)

/** The client cannot use these clusters yet: resources of these types (or of none) are held back, and the limit runs. */
export type ClustersAwaited = { type: 'clusters.awaited'; clusters: readonly string[]; typeUrls: readonly string[] };
/** No resource is held back, and the limit runs for no cluster. */
export type ClustersUsable = { type: 'clusters.usable' };
/**
 * The client could not use these clusters within the limit: what waited for them is sent. Those that it was sent are sent again
 * with a time limit for what they fetch.
 */
export type ClustersAbandoned = { type: 'clusters.abandoned'; clusters: readonly string[] };
/** These clusters are no longer configured, and nothing names them: they are removed after a delay. */
export type ClustersKept = { type: 'clusters.kept'; clusters: readonly string[] };
export type RetentionState = 'named' | 'unacknowledged' | 'lingering' | 'removable';
/**
 * Clusters that are no longer configured, and the reason for which the client keeps them from now on: a listener or route names them
 * (`named`), the client has not acknowledged these types without them (`unacknowledged`), requests may still use them (`lingering`), or the
 * next response with clusters removes them (`removable`).
 */
export type ClustersRetained = {
  type: 'clusters.retained';
  state: RetentionState;
  clusters: readonly string[];
  unacknowledged?: readonly string[];
};
/** A client kept too many clusters that are no longer configured: these are removed before their time. */
export type ClustersEvicted = { type: 'clusters.evicted'; clusters: readonly string[] };
/** No cluster is about to be removed any more. */
export type ClustersRemoved = { type: 'clusters.removed' };

// ---- ads-connection → ads-connection/stream

/** Answer what was asked for once. What is watched is answered by the rules, in the stream (ads-exchange.ts). */
export type ResponsesSend = { type: 'responses.send'; orders: readonly ResponseOrder[] };
/** Send the changes that are held back: the client has kept silent for too long. */
export type ChangesRelease = { type: 'changes.release' };
/** A step of the limit has passed for clusters that resources wait for. */
export type WaitsExpire = { type: 'waits.expire' };
/** A step of the delay has passed after which clusters are removed that nothing names. */
export type RemovalsExpire = { type: 'removals.expire' };
/** Take no more changes, and tell when the client has had its say on all that it was sent. */
export type StreamDrain = { type: 'stream.drain' };
/** End the stream after what was sent, or at once. */
export type StreamEnd = { type: 'stream.end'; code: EndCode; reason: string; cut?: true };

// ---- discovery/ads-server → ads-connection

/** Bring the client up to date in these types: a new snapshot concerns them. */
export type PushToClient = { type: 'push.order'; version: string; types: string[] };
/** Let the client go: at once when nothing is under way, else when that is done or the time is up. */
export type DrainOrder = { type: 'drain.order'; withinMs: number };

/** What a stream tells its connection. */
export type StreamReport =
  | PeerAuthenticated
  | PeerUnauthenticated
  | NodeAccepted
  | NodeRefused
  | NodeForbidden
  | WorkloadRejected
  | NodeMissing
  | RequestReceived
  | RequestRefused
  | RequestUnreadable
  | RequestJudged
  | NamesExceeded
  | PeerFinished
  | StreamCongested
  | StreamRelieved
  | StreamClosed
  | ChangesHeld
  | ChangesReleased
  | ClientSettled
  | ClustersAwaited
  | ClustersUsable
  | ClustersAbandoned
  | ClustersKept
  | ClustersRetained
  | ClustersRemoved
  | ClustersEvicted
  | ResponsesOrdered
  | ResponseSent
  | ResponseSkipped
  | WatchChanged;

/** What a connection orders its stream to do. */
export type StreamOrder = ResponsesSend | ChangesRelease | WaitsExpire | RemovalsExpire | StreamDrain | StreamEnd;

/** Rows of the catalogue of events, as in event-catalogue.ts; `N` is the connection's number. */
export const adsCatalogue = [
  { type: 'spawn', from: 'ads-connection-N', to: 'ads-connection-N/stream', diagram: 'ads', seeds: ['6.8 #1'] },
  { type: 'peer.authenticated', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'peer.unauthenticated', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'timer introductionTime', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'timer authenticationTime', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'node.accepted', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'node.refused', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
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
  { type: 'request.refused', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'request.unreadable', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'request.judged', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'names.exceeded', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  {
    type: 'responses.ordered',
    from: 'ads-connection-N/stream',
    to: 'ads-connection-N',
    diagram: 'ads',
    seeds: ['6.8 #3', '6.8 #16', '6.8 #19', '6.8 #23'],
  },
  { type: 'responses.send', from: 'ads-connection-N', to: 'ads-connection-N/stream', diagram: 'ads', seeds: [] },
  { type: 'response.sent', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'response.skipped', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  {
    type: 'push.order',
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
    type: 'clusters.awaited',
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
    type: 'clusters.kept',
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
  { type: 'drain.order', from: 'discovery/ads-server', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.drain', from: 'ads-connection-N', to: 'ads-connection-N/stream', diagram: 'ads', seeds: [] },
  { type: 'client.settled', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'timer drainTime', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'peer.finished', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.congested', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.relieved', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'timer congestionTime', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.end', from: 'ads-connection-N', to: 'ads-connection-N/stream', diagram: 'ads', seeds: [] },
  { type: 'timer closingTime', from: 'ads-connection-N', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
  { type: 'stream.closed', from: 'ads-connection-N/stream', to: 'ads-connection-N', diagram: 'ads', seeds: [] },
] as const;

/**
 * The ordinary run of an xDS stream: each passes once for every proxy and type of every push. They are told when all is asked
 * for (the trace level `full`), and else do not pass at all, but for requests that are not about what is watched; what is out
 * of the ordinary (`request.judged`, changes that are held back, an end, a change of state) is in every trace.
 */
export const routineMessages = [
  'push.order',
  'request.received',
  'responses.ordered',
  'response.sent',
  'response.skipped',
  'watch.changed',
] as const satisfies readonly (StreamReport | StreamOrder | PushToClient)['type'][];
