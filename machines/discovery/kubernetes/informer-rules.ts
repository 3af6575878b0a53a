/** What is known of a kind of object, and what follows from what a server answers: a plain record and pure rules. */
import type { RequestFailure, ResourceName, ResourceVersion } from './kubernetes-protocol.ts';

/**
 * What the next whole set is asked for. `not older`: than the last version, so that nothing goes back in time. `newest`: what is
 * true now, whatever was seen before. `newest at once`: without pages, which the server forgets between two requests.
 */
export type Basis = 'not older' | 'newest' | 'newest at once';

export interface InformerRecord {
  resource: ResourceName;
  /** Up to which all is known; empty: nothing was taken yet. */
  version: ResourceVersion;
  /** In the store. */
  objects: number;
  /** What is in the store was taken as a whole and handled, and a watch can go on from its version. */
  isWhole: boolean;
  basis: Basis;
  /** What is in the store, which whoever reads it has handled, or is about to. */
  handed: 'nothing' | 'objects' | 'absence';
  /** The server sends lists as streams, as far as is known. */
  streams: boolean;
  /** Streams that the server had no room for, in a row. */
  throttledStreams: number;
  /** Requests that came to nothing since one that lasted. */
  failures: number;
  /** Answers in a row that there is no such kind. */
  absences: number;
  retryAfterMs: number;
  /** At random, from 0 to 1: kinds of one server do not come back at once. */
  draw: number;
}

/** 0.25 s, 0.5 s, 1 s, and then 2 s, up to half as much again: a server that is well again has everybody within seconds. */
const shortestRetryMs = 250;
const longestRetryMs = 2_000;
/** Whoever asks for a year is not obeyed. */
const longestRetryAfterMs = 60_000;
const mostFailures = 8;
const shortestAbsentMs = 500;
const longestAbsentMs = 30_000;
/** What another connection, or a good answer, leaves of them: the kind is asked for soon, and not without a pause. */
export const failuresKept = 2;
/** A list, or its next part, is given up after so long, and later each time: a slow server is not to be asked for ever in vain. */
const shortestLimitMs = 4_000;
const longestLimitMs = 30_000;
/** As often, a server that knows a kind may say that it does not while it starts, before what it had is believed to be gone. */
const absencesBelieved = 3;
/** The next one is believed. */
export const absencesBeforeBelief = absencesBelieved - 1;
/** As often, a list is tried as a stream that there is no room for; a list in pages needs less. */
const throttledStreamsTried = 3;

export const limitMs = ({ failures }: InformerRecord): number =>
  Math.min(shortestLimitMs * 2 ** failures, longestLimitMs);

export function retryDelayMs({ failures, absences, draw, retryAfterMs }: InformerRecord): number {
  // Whether a kind is gone is to be known soon: it is asked for some times, and then believed.
  const pause = absences > 0 ? shortestAbsentMs : shortestRetryMs * 2 ** Math.max(0, failures - 1);
  const delay = Math.min(pause, longestRetryMs) * (1 + draw / 2);
  return Math.max(delay, Math.min(retryAfterMs, longestRetryAfterMs));
}

/** A kind that is not there is looked for soon, and then less and less. */
export function absentDelayMs({ absences, draw }: InformerRecord): number {
  return Math.min(shortestAbsentMs * 2 ** Math.max(0, absences - 1), longestAbsentMs) * (1 + draw / 2);
}

export const fewFailures = ({ failures }: InformerRecord): number => Math.min(failures, failuresKept);

export const failedOnceMore = (failures: number): number => Math.min(failures + 1, mostFailures);

/** What else could be asked for, when the server cannot answer this; undefined: nothing. */
export function nextBasis(basis: Basis): Basis | undefined {
  if (basis === 'not older') return 'newest';
  return basis === 'newest' ? 'newest at once' : undefined;
}

/** Streams may be sent, and there was room for one lately. */
export const mayStream = ({ streams, throttledStreams }: InformerRecord): boolean =>
  streams && throttledStreams < throttledStreamsTried;

/** What there was is gone for certain; where there was nothing, at once. */
export const isAbsenceBelieved = ({ handed, absences }: InformerRecord): boolean =>
  handed !== 'objects' || absences + 1 >= absencesBelieved;

/** Of one kind in one server's history, which count upwards. What a restored server has is told so. */
export function isEarlier(one: ResourceVersion, other: ResourceVersion): boolean {
  return one.length === other.length ? one < other : one.length < other.length;
}

/** Nobody answered, or not to the end: whether the server is there at all is to be asked. */
export const isMissed = ({ kind }: RequestFailure): boolean =>
  kind === 'unreachable' || kind === 'closed' || kind === 'timeout';

/** The history that a watch or list begins in is gone. */
export const isGone = ({ code }: RequestFailure): boolean => code === 410;

/** The server has not seen that version: it lags behind, or was restored. */
export const isTooLarge = ({ causes }: RequestFailure): boolean => causes?.includes('ResourceVersionTooLarge') === true;

export const isThrottled = ({ code }: RequestFailure): boolean => code === 429;

/** The server does not know the options of a list that is streamed. */
export const isInvalid = ({ code }: RequestFailure): boolean => code === 422 || code === 400;

export const isAbsent = ({ code }: RequestFailure): boolean => code === 404;

/** The connection takes no more requests. Servers do that on purpose, now and then, so that others get their share. */
export const isGoingAway = ({ kind }: RequestFailure): boolean => kind === 'going away';

/** It is about who asks, or over which connection, and not about what was asked for: the same is asked for again. */
export const isAboutUs = ({ kind, code }: RequestFailure): boolean =>
  kind === 'credentials' || kind === 'going away' || kind === 'aborted' || code === 401 || code === 403;
