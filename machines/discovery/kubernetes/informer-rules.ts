/** The record of an informer, and pure functions that decide about its requests. */
import type { RequestFailure, ResourceName, ResourceVersion } from './kubernetes-protocol.ts';

/**
 * Version requested for the next list. `not older`: at least the last version, so that no object is replaced by an older one. `newest`: the current
 * state. `newest at once`: in one response, because the server may forget the version between the requests for two pages.
 */
export type ListBasis = 'not older' | 'newest' | 'newest at once';

export interface InformerRecord {
  resource: ResourceName;
  version: ResourceVersion;
  objects: number;
  /** Whether the store has a complete list that was processed, and a watch can continue from its version. */
  isWhole: boolean;
  basis: ListBasis;
  /** Content of the store that its readers have processed or are processing. */
  handed: 'nothing' | 'objects' | 'absence';
  streams: boolean;
  throttledStreams: number;
  /** Failed requests since the last stable watch. */
  failures: number;
  /** Consecutive responses that the kind does not exist. */
  absences: number;
  retryAfterMs: number;
  /** Random, from 0 to 1: spreads the requests of kinds. */
  draw: number;
}

/** All kinds reconnect within seconds. */
const minRetryMs = 250;
const maxRetryMs = 2_000;
const maxRetryAfterMs = 60_000;
const maxFailures = 8;
const minAbsentMs = 500;
const maxAbsentMs = 30_000;
/** Maximum failure count after a new connection or a success: the next request follows soon, but not immediately. */
export const maxKeptFailures = 2;
/** Timeout of a list or page, which grows with each failure so that a slow server can respond eventually. */
const minLimitMs = 4_000;
const maxLimitMs = 30_000;
/** A server may report a kind as unknown while it starts, so only this number of such responses removes the kind's objects. */
const minAbsences = 3;
export const maxUnconfirmedAbsences = minAbsences - 1;
/** Throttled streaming lists before pages are used, which need less memory in the server. */
const maxThrottledStreams = 3;

export const limitMs = ({ failures }: InformerRecord): number => Math.min(minLimitMs * 2 ** failures, maxLimitMs);

export function retryDelayMs({ failures, absences, draw, retryAfterMs }: InformerRecord): number {
  // A few requests in quick succession decide whether a kind is absent.
  const pause = absences > 0 ? minAbsentMs : minRetryMs * 2 ** Math.max(0, failures - 1);
  const delay = Math.min(pause, maxRetryMs) * (1 + draw / 2);
  return Math.max(delay, Math.min(retryAfterMs, maxRetryAfterMs));
}

export function absentDelayMs({ absences, draw }: InformerRecord): number {
  return Math.min(minAbsentMs * 2 ** Math.max(0, absences - 1), maxAbsentMs) * (1 + draw / 2);
}

export const cappedFailureCount = ({ failures }: InformerRecord): number => Math.min(failures, maxKeptFailures);

export const incrementFailures = (failures: number): number => Math.min(failures + 1, maxFailures);

export function nextBasis(basis: ListBasis): ListBasis | undefined {
  if (basis === 'not older') return 'newest';
  return basis === 'newest' ? 'newest at once' : undefined;
}

export const mayStream = ({ streams, throttledStreams }: InformerRecord): boolean =>
  streams && throttledStreams < maxThrottledStreams;

/** Whether the kind is certainly absent; at once if it had no objects. */
export const isAbsenceConfirmed = ({ handed, absences }: InformerRecord): boolean =>
  handed !== 'objects' || absences + 1 >= minAbsences;

/** Compares versions in the history of one server. Detects a restored server. */
export function isEarlier(one: ResourceVersion, other: ResourceVersion): boolean {
  return one.length === other.length ? one < other : one.length < other.length;
}

/** Whether there was no response, or an incomplete one: the server may be down. */
export const isUnresponsive = ({ kind }: RequestFailure): boolean =>
  kind === 'unreachable' || kind === 'closed' || kind === 'timeout';

export const isVersionExpired = ({ code }: RequestFailure): boolean => code === 410;

/** Whether the server has not reached the version: it lags behind or was restored. */
export const isVersionTooLarge = ({ causes }: RequestFailure): boolean =>
  causes?.includes('ResourceVersionTooLarge') === true;

export const isThrottled = ({ code }: RequestFailure): boolean => code === 429;

/** Whether the server does not know the options of streaming lists. */
export const isInvalidRequest = ({ code }: RequestFailure): boolean => code === 422 || code === 400;

export const isAbsent = ({ code }: RequestFailure): boolean => code === 404;

export const isGoAway = ({ kind }: RequestFailure): boolean => kind === 'going away';

/** Whether the request can be repeated from the same version. */
export const isConnectionFailure = ({ kind, code }: RequestFailure): boolean =>
  kind === 'credentials' || kind === 'going away' || kind === 'aborted' || code === 401 || code === 403;
