/** What an ads-connection knows, and what becomes of it. */
import type { EndCode } from './ads-protocol.ts';
import type { Watches } from './ads-watch.ts';

export interface AdsConnectionInput {
  /** N of `ads-connection-N`; counts the streams of the process from 1. */
  connection: number;
  /** The only type that the stream serves (the separate services); null when the client says a type (ADS). */
  onlyType: string | null;
  /** How long a change waits for the client's word on the response before it. */
  ackTimeoutMs: number;
  /** How long a response may wait until those before it have left: a client that reads nothing is then let go. */
  congestionMs: number;
  /** How long listeners and routes wait for clusters that are new to the client. */
  makeBeforeBreakMs: number;
  /** Since nothing names a cluster that is no longer configured, until it is removed. */
  removalDelayMs: number;
}

export interface AdsConnectionContext extends AdsConnectionInput {
  /** Who the client is, where it was asked: from its certificate or a token. */
  identities: readonly string[];
  /** The node's id; empty until it is known. */
  node: string;
  /** What the client watches, for people: it is told at the trace level full, and nothing is decided by it. */
  watches: Watches;
  /** The status with which the stream ends when we end it. */
  end: End;
  drainMs: number;
}

/** How a stream ends that we end. `cut`: at once, with what was not sent; the client does not hear why. */
export type End = { code: EndCode; reason: string; cut?: true };

export const unauthenticated: End = {
  code: 'UNAUTHENTICATED',
  reason: 'authentication failed [CLIENT_UNAUTHENTICATED]',
};
export const shuttingDown: End = { code: 'UNAVAILABLE', reason: 'the server is shutting down [SERVER_SHUTTING_DOWN]' };
export const notReading: End = {
  code: 'RESOURCE_EXHAUSTED',
  reason: 'the client does not read responses [STREAM_TIMEOUT]',
  cut: true,
};
export const silent: End = {
  code: 'UNAVAILABLE',
  reason: 'the client sent no request with a node in time [STREAM_TIMEOUT]',
};
export const missingNode: End = {
  code: 'INVALID_ARGUMENT',
  reason: 'missing node information: the first request must have a node with an id [NODE_INVALID]',
};
export const missingType: End = {
  code: 'INVALID_ARGUMENT',
  reason: 'missing type_url: a request on an aggregated stream must have one [XDS_REQUEST_INVALID]',
};

export function unreadable(reason: string): End {
  return { code: 'INVALID_ARGUMENT', reason: `invalid discovery request: ${reason} [XDS_REQUEST_INVALID]` };
}

export function otherType(onlyType: string | null, typeUrl: string): End {
  return {
    code: 'INVALID_ARGUMENT',
    reason: `type_url must be ${onlyType} for this service, got ${typeUrl} [XDS_REQUEST_INVALID]`,
  };
}
