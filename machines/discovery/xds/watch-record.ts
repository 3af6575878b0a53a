/** What is known of a type that a client watches. ads-watch.ts has the rules by which it changes. */

/** What a client that comes back has from another stream. */
export type KnownResources = {
  names: readonly string[];
  /** Of these, in turn. */
  versions: readonly string[];
};

/** What should still be sent. */
export type Due = {
  /** All that is subscribed to: a new subscription. */
  all: boolean;
  /** With `all`: but for what the client has by its own word. Absent: it has said nothing of it. */
  has?: KnownResources;
  /** These: names that were added to a subscription. */
  asked: readonly string[];
  /** What changed: a push. */
  changed: boolean;
  /** What clusters that were sent may wait for: the client may acknowledge them only after this. Absent: nothing. */
  warming?: true;
  /** These, which were held back until clusters were usable. Absent: none. */
  ready?: readonly string[];
  /** With `all`: the client has resources of another stream, and does not say which, or not in which versions. */
  returning?: true;
};

export type Watch = {
  /** All there is of the type, not only `names`. */
  wildcard: boolean;
  /** Neither wildcard nor a name: the client has unsubscribed; the record remembers the last nonce. */
  names: readonly string[];
  due: Due;
  /**
   * What the stream was ordered to send and has not yet told about: names that were asked for, or whatever is not as
   * the client has it (which includes what changes until the order's turn comes).
   */
  ordered: 'nothing' | 'names' | 'changes';
  nonceSent: string;
  nonceAcked: string;
  nonceRejected: string;
  /** Of a response on which the client has kept silent for too long: changes wait for its word no more. */
  nonceOverdue: string;
  versionSent: string;
  versionAcked: string;
  /** Why the client rejected the last response that it rejected; empty once it has accepted a later one. */
  lastError: string;
  /** Unix time in milliseconds; 0 before the first response. */
  sentAt: number;
  /** The client has not requested the type on this stream: it is sent without a request (cluster-limit.ts). */
  unrequested?: true;
  /** Clusters that resources of the type wait for, which are held back until then (cluster-rollout.ts). Absent: none. */
  awaits?: readonly string[];
};

/** By type URL. */
export type Watches = Record<string, Watch>;
