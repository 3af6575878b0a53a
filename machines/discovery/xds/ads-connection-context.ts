import type { EndCode } from './ads-protocol.ts';
import type { Watches } from './ads-watch.ts';

export interface AdsConnectionInput {
  /** N of `ads-connection-N`: number of the stream in this process, from 1. */
  connection: number;
  /** The type of a single-type service (such as CDS); null on an aggregated stream (ADS). */
  onlyType: string | null;
  /** How long a change waits for the acknowledgement of the previous response. */
  ackTimeoutMs: number;
  /** How long a response may wait for earlier ones to be written before the stream is closed. */
  congestionMs: number;
  /** How long listeners and routes wait for clusters that are new to the client. */
  makeBeforeBreakMs: number;
  /** How long a cluster that is no longer configured is kept after the last resource that named it. */
  removalDelayMs: number;
}

export interface AdsConnectionContext extends AdsConnectionInput {
  /** Identities in the client's certificate or token, if authentication is required. */
  identities: readonly string[];
  /** Node ID; empty until it is known. */
  node: string;
  /** Subscriptions of the client, recorded only at trace level `full`. No decision depends on them. */
  watches: Watches;
  end: EndStatus;
  drainMs: number;
}

/** `cut`: ends the stream immediately, without pending data, so the client does not receive the status. */
export type EndStatus = { code: EndCode; reason: string; cut?: true };

export const unauthenticatedEnd: EndStatus = {
  code: 'UNAUTHENTICATED',
  reason: 'authentication failed [CLIENT_UNAUTHENTICATED]',
};
export const shuttingDownEnd: EndStatus = {
  code: 'UNAVAILABLE',
  reason: 'the server is shutting down [SERVER_SHUTTING_DOWN]',
};
export const notReadingEnd: EndStatus = {
  code: 'RESOURCE_EXHAUSTED',
  reason: 'the client does not read responses [STREAM_TIMEOUT]',
  cut: true,
};
export const internalErrorEnd: EndStatus = { code: 'UNAVAILABLE', reason: 'internal error [INTERNAL_ERROR]' };
/** For a stream that the client has half-closed. */
export const unfinishedEnd: EndStatus = {
  code: 'UNAVAILABLE',
  reason: 'a response was not complete in time [STREAM_TIMEOUT]',
};
export const nodeTimeoutEnd: EndStatus = {
  code: 'UNAVAILABLE',
  reason: 'the client sent no request with a node in time [STREAM_TIMEOUT]',
};
export const missingNodeEnd: EndStatus = {
  code: 'INVALID_ARGUMENT',
  reason: 'missing node information: the first request must have a node with an id [NODE_INVALID]',
};
export const missingTypeEnd: EndStatus = {
  code: 'INVALID_ARGUMENT',
  reason: 'missing type_url: a request on an aggregated stream must have one [XDS_REQUEST_INVALID]',
};

export function unreadableRequestEnd(reason: string): EndStatus {
  return { code: 'INVALID_ARGUMENT', reason: `invalid discovery request: ${reason} [XDS_REQUEST_INVALID]` };
}

export function otherTypeEnd(onlyType: string | null, typeUrl: string): EndStatus {
  return {
    code: 'INVALID_ARGUMENT',
    reason: `type_url must be ${onlyType} for this service, got ${typeUrl} [XDS_REQUEST_INVALID]`,
  };
}
