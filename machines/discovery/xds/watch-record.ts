/** Resources of an earlier stream that a client reports. */
export type KnownResources = {
  names: readonly string[];
  /** In the order of `names`. */
  versions: readonly string[];
};

export type DueResponse = {
  /** Whether all subscribed resources are sent, because the subscription is new. */
  all: boolean;
  /** With `all`: except resources that the client reports. */
  has?: KnownResources;
  requested: readonly string[];
  changed: boolean;
  /** Sent clusters may wait for resources of the type: the client may acknowledge the clusters only after this response. */
  warming?: true;
  ready?: readonly string[];
  returning?: true;
};

export type Watch = {
  /** Whether the client subscribes to all resources of the type, not only to `names`. */
  wildcard: boolean;
  /** Without a wildcard and names, the client has unsubscribed; the record keeps the last nonce. */
  names: readonly string[];
  due: DueResponse;
  /**
   * Responses that were ordered and whose outcome is not reported yet: requested names, or all differences from the client's state,
   * including later changes.
   */
  ordered: 'nothing' | 'names' | 'changes';
  nonceSent: string;
  nonceAcked: string;
  nonceRejected: string;
  /** Response whose acknowledgement is overdue: changes no longer wait for it. */
  nonceOverdue: string;
  versionSent: string;
  versionAcked: string;
  /** Reason of the last rejection; empty after a later response was accepted. */
  lastError: string;
  /** Unix time in milliseconds; 0 before the first response. */
  sentAt: number;
  /** The client has not requested the type on this stream: it is sent without a request (cluster-limit.ts). */
  unrequested?: true;
  /** Clusters that held resources of the type wait for (cluster-rollout.ts). */
  awaits?: readonly string[];
};

/** By type URL. */
export type Watches = Record<string, Watch>;
