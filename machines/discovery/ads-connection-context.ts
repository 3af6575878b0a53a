/** What an ads-connection knows, and what becomes of it. */
import type { AdsRequest, EndCode, ResponseSent, ResponseSkipped } from './ads-protocol.ts';
import { clusterType, endpointType, isWatchable } from './ads-types.ts';
import { judge, type Watches, withNewClusters, withoutResponse, withResponse } from './ads-watch.ts';
import { charactersIn } from './name-lists.ts';

export interface AdsConnectionInput {
  /** N of `ads-connection-N`; counts the streams of the process from 1. */
  connection: number;
  /** The only type that the stream serves (the separate services); null when the client says a type (ADS). */
  onlyType: string | null;
  /** Send endpoints again when their clusters were sent: Envoy needs it, a bare cache must not do it. */
  resendsEndpoints: boolean;
  /** See Rules of ads-watch.ts. */
  hearsLateNames: boolean;
  /** How long a change waits for the client's word on the response before it. */
  ackTimeoutMs: number;
  /** How long a response may wait until those before it have left: a client that reads nothing is then let go. */
  congestionMs: number;
  /** Names that a stream may be subscribed to, of all types together, and the characters in them. */
  maxNames: number;
  maxNameChars: number;
}

export interface AdsConnectionContext extends AdsConnectionInput {
  /** Who the client is, where it was asked: from its certificate or a token. */
  identities: readonly string[];
  /** The node's id; empty until it is known. */
  node: string;
  watches: Watches;
  /** The status with which the stream ends when we end it. */
  end: End;
  drainMs: number;
}

/** How a stream ends that we end. */
export type End = { code: EndCode; reason: string };

export const unauthenticated: End = { code: 'UNAUTHENTICATED', reason: 'authentication failure' };
export const shuttingDown: End = { code: 'UNAVAILABLE', reason: 'the server is shutting down' };
export const notReading: End = {
  code: 'RESOURCE_EXHAUSTED',
  reason: 'the client does not read what it is sent',
};
export const silent: End = {
  code: 'UNAVAILABLE',
  reason: 'the client has not said who it is: no request with a node came in time',
};
export const missingNode: End = {
  code: 'INVALID_ARGUMENT',
  reason: 'missing node information: the first request must carry a node with an id',
};
export const missingType: End = {
  code: 'INVALID_ARGUMENT',
  reason: 'missing type_url: a request on an aggregated stream must name the type',
};

export function unreadable(reason: string): End {
  return { code: 'INVALID_ARGUMENT', reason: `a message is not a discovery request: ${reason}` };
}

export function otherType(onlyType: string | null, typeUrl: string): End {
  return { code: 'INVALID_ARGUMENT', reason: `this service serves ${onlyType}, not ${typeUrl}` };
}

export function tooManyNames({ maxNames, maxNameChars }: AdsConnectionInput): End {
  const limit = `${maxNames} names, of ${maxNameChars} characters together`;
  return { code: 'RESOURCE_EXHAUSTED', reason: `a stream may be subscribed to no more than ${limit}` };
}

/** Whether the stream would be subscribed to more than it may be, if the request were taken. */
export function exceedsNames(context: AdsConnectionContext, request: AdsRequest): boolean {
  const { watches, maxNames, maxNameChars } = context;
  const said = request.protocol === 'sotw' ? [request.names] : [request.subscribe, request.known];
  const isWithin = (lists: readonly (readonly string[])[]): boolean =>
    lists.reduce((sum, { length }) => sum + length, 0) <= maxNames &&
    lists.reduce((sum, list) => sum + charactersIn(list), 0) <= maxNameChars;
  const before = Object.values(watches).map(({ names }) => names);
  // Most say nothing new: only where old and new together would be too much it matters what is in both.
  if (isWithin([...before, ...said])) return false;
  const { watch } = judge(watches[request.typeUrl], request, context);
  const others = Object.entries(watches).flatMap(([typeUrl, { names }]) =>
    typeUrl === request.typeUrl ? [] : [names],
  );
  return watch !== undefined && !isWithin([...others, watch.names]);
}

/** The watches when the stream has told what became of an order. */
export function afterOutcome(context: AdsConnectionContext, outcome: ResponseSent | ResponseSkipped): Watches {
  const { watches } = context;
  // What is asked for once is told of as well, and is no watch.
  const watch = isWatchable(outcome.typeUrl) ? watches[outcome.typeUrl] : undefined;
  if (watch === undefined) return watches;
  if (outcome.type === 'response.skipped') return { ...watches, [outcome.typeUrl]: withoutResponse(watch) };
  const next = { ...watches, [outcome.typeUrl]: withResponse(watch, outcome) };
  const endpoints = next[endpointType];
  if (outcome.typeUrl !== clusterType || !context.resendsEndpoints || endpoints === undefined) return next;
  return { ...next, [endpointType]: withNewClusters(endpoints) };
}
