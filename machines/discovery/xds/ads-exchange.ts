/**
 * What a stream and its client have said to each other, as one plain record, and the rules by which each message changes it.
 * The stream applies them itself, for an event of its chart would cost more than the response that it is about; the chart
 * hears what matters to the stream's life. A record is never changed in place.
 */
import type {
  AdsRequest,
  ChangesHeld,
  ChangesRelease,
  ChangesReleased,
  ClientSettled,
  NamesExceeded,
  PushToClient,
  RequestJudged,
  RequestReceived,
  ResponseOrder,
  ResponseSent,
  ResponseSkipped,
  ResponsesOrdered,
  StreamCongested,
  StreamDrain,
  StreamRelieved,
  WatchChanged,
} from './ads-protocol.ts';
import { clusterType, endpointType, healthType, isAskedOnce, isWatchable } from './ads-types.ts';
import {
  isBehind,
  isSettled,
  judge,
  nextOrders,
  type Rules,
  unrequestedWatch,
  type Verdict,
  type Watches,
  withAwaited,
  withChange,
  withNewClusters,
  withoutAcknowledgement,
  withoutAckTimeout,
  withoutResponse,
  withReady,
  withResponse,
} from './ads-watch.ts';
import { charactersIn, noNames } from './name-lists.ts';

export type Exchange = {
  watches: Watches;
  /** What the chart was told of it last. */
  standing: 'caught up' | 'changes held' | 'draining' | 'settled';
};

export const newExchange: Exchange = { watches: {}, standing: 'caught up' };

/** What differs between servers, and what a stream may cost. */
export type ExchangeRules = Rules & {
  /** Send endpoints again when their clusters were sent: Envoy needs it, a bare cache must not do it. */
  resendsEndpoints: boolean;
  /** Names that a stream may be subscribed to, of all types together, and the characters in them. */
  maxNames: number;
  maxNameChars: number;
  /** The limits are those of gRPC programs without a proxy. */
  isGrpcProgram?: boolean;
};

/** What changes the record: what passes on the stream, and what the chart orders. */
export type ExchangeEvent =
  | RequestReceived
  | PushToClient
  | ResponseSent
  | ResponseSkipped
  | StreamCongested
  | StreamRelieved
  | ChangesRelease
  | ResourcesReady
  | ClustersAwaitedBy
  | AcknowledgementOverdue
  | ClustersDue
  | ClustersUnrequested
  | StreamDrain;

/** Resources that were held back can be sent. `changed`: later changes of their type were not looked at since. */
export type ResourcesReady = { type: 'resources.ready'; typeUrl: string; names: readonly string[]; changed: boolean };
/** Which clusters resources of a type wait for, where that has changed. */
export type ClustersAwaitedBy = { type: 'awaited.changed'; typeUrl: string; awaits: readonly string[] };
/** Clusters were given up: their acknowledgement may never come. */
export type AcknowledgementOverdue = { type: 'acknowledgement.overdue'; typeUrl: string };
/** Clusters should be sent though their configuration has not changed: some can be removed, or were given up. */
export type ClustersDue = { type: 'clusters.due'; typeUrl: string };

/** The client requests no clusters on this stream, because one of them warms without end: they are sent without a request. */
export type ClustersUnrequested = { type: 'clusters.unrequested'; typeUrl: string };

/** What passes for every push and proxy. */
export type RoutineEvent = RequestReceived | PushToClient | ResponseSent | ResponseSkipped;

/** What the chart is told in any case. */
export type ExchangeReport =
  | RequestJudged
  | NamesExceeded
  | StreamCongested
  | StreamRelieved
  | ChangesHeld
  | ChangesReleased
  | ClientSettled;

export type ExchangeStep = {
  exchange: Exchange;
  /** What is to be sent now. */
  orders: readonly ResponseOrder[];
  /** Reports for the chart, in this order, before anything is sent. */
  reports: readonly ExchangeReport[];
};

/** The rules, as whoever applies them is given them. */
export type ExchangeStepper = (exchange: Exchange, event: ExchangeEvent, rules: ExchangeRules) => ExchangeStep;

const noReports: readonly ExchangeReport[] = [];

/**
 * Whether a request is one of those that the record is about. Of any other the chart hears: it asks for something once, tells
 * how the client is, or has no business on this stream.
 */
export function isOfExchange({ typeUrl }: AdsRequest, onlyType: string | null): boolean {
  if (onlyType !== null) return typeUrl === onlyType;
  return typeUrl !== '' && typeUrl !== healthType && !isAskedOnce(typeUrl);
}

/** Takes what has happened. */
export const stepOf: ExchangeStepper = (exchange, event, rules) => {
  switch (event.type) {
    case 'request.received':
      return takeRequest(exchange, event.request, rules);
    case 'connection.push':
      return takePush(exchange, event.types);
    case 'response.sent':
    case 'response.skipped':
      return stepTo(exchange, afterOutcome(exchange.watches, event, rules));
    case 'stream.congested':
      return { exchange, orders: [], reports: [event] };
    case 'stream.resumed':
      return toldAnew(exchange, exchange.watches, [event]);
    case 'changes.release':
      return toldAnew(exchange, afterSilence(exchange.watches), noReports);
    case 'resources.ready':
      return stepTo(
        exchange,
        changedWatch(exchange.watches, event.typeUrl, (watch) => withReady(watch, event.names, event.changed)),
      );
    case 'awaited.changed':
      return stepTo(
        exchange,
        changedWatch(exchange.watches, event.typeUrl, (watch) => withAwaited(watch, event.awaits)),
      );
    case 'acknowledgement.overdue':
      return stepTo(exchange, changedWatch(exchange.watches, event.typeUrl, withoutAcknowledgement));
    case 'clusters.due':
      return stepTo(exchange, changedWatch(exchange.watches, event.typeUrl, withChange));
    case 'clusters.unrequested':
      return stepTo(exchange, withUnrequested(exchange, event.typeUrl));
    case 'stream.drain':
      return stepTo({ ...exchange, standing: 'draining' }, exchange.watches);
  }
};

/** What the chart is told of the ordinary run before a step, where people want to see it. */
export function routineBefore(event: ExchangeEvent): RoutineEvent | undefined {
  switch (event.type) {
    case 'request.received':
    case 'connection.push':
    case 'response.sent':
    case 'response.skipped':
      return event;
    default:
      return undefined;
  }
}

/** And what it is told after the step, before anything is sent. */
export function routineAfter(
  before: Exchange,
  { exchange, orders }: ExchangeStep,
): (WatchChanged | ResponsesOrdered)[] {
  const changed = Object.entries(exchange.watches).filter(([typeUrl, watch]) => before.watches[typeUrl] !== watch);
  const watches = changed.map(([typeUrl, watch]): WatchChanged => ({ type: 'watch.changed', typeUrl, watch }));
  return orders.length === 0 ? watches : [...watches, { type: 'responses.scheduled', orders }];
}

function changedWatch(watches: Watches, typeUrl: string, change: (watch: Watches[string]) => Watches[string]): Watches {
  const watch = isWatchable(typeUrl) ? watches[typeUrl] : undefined;
  return watch === undefined ? watches : { ...watches, [typeUrl]: change(watch) };
}

/** A client that has requested the type by now is responded to anyway; a stream that drains takes no more. */
function withUnrequested({ watches, standing }: Exchange, typeUrl: string): Watches {
  if (!isWatchable(typeUrl) || watches[typeUrl] !== undefined) return watches;
  const isDraining = standing === 'draining' || standing === 'settled';
  return isDraining ? watches : { ...watches, [typeUrl]: unrequestedWatch };
}

/** The record with these watches, and what follows. */
export function stepTo(
  { standing: before }: Exchange,
  changed: Watches,
  reports: readonly ExchangeReport[] = noReports,
): ExchangeStep {
  const { watches, orders } = nextOrders(changed);
  const standing = standingAfter(before, watches);
  const told = standing === before ? reports : [...reports, reportOf(standing)];
  return { exchange: { watches, standing }, orders, reports: told };
}

/** The chart begins anew with what it knows: it was told something by which it goes back to being caught up. */
function toldAnew({ standing }: Exchange, changed: Watches, reports: readonly ExchangeReport[]): ExchangeStep {
  return stepTo({ watches: changed, standing: standing === 'changes held' ? 'caught up' : standing }, changed, reports);
}

function standingAfter(before: Exchange['standing'], watches: Watches): Exchange['standing'] {
  if (before === 'settled') return before;
  if (before === 'draining') return everyWatch(watches, isSettled) ? 'settled' : before;
  return everyWatch(watches, isNotBehind) ? 'caught up' : 'changes held';
}

function reportOf(standing: Exchange['standing']): ExchangeReport {
  if (standing === 'settled') return { type: 'client.idle' };
  return { type: standing === 'changes held' ? 'changes.held' : 'changes.released' };
}

const isNotBehind = (watch: Watches[string]): boolean => !isBehind(watch);

/** Without a list of them: it is asked for each message. */
function everyWatch(watches: Watches, holds: (watch: Watches[string]) => boolean): boolean {
  for (const typeUrl in watches) if (!holds(watches[typeUrl]!)) return false;
  return true;
}

// ---- what the client says

const told: Partial<Record<Verdict, RequestJudged['verdict']>> = {
  rejection: 'rejection',
  stale: 'stale',
  misuse: 'misuse',
};

function takeRequest(exchange: Exchange, request: AdsRequest, rules: ExchangeRules): ExchangeStep {
  const { watches } = exchange;
  const { typeUrl } = request;
  // Nobody makes such resources: not answered (spec/discovery.md §7.6 row 12), and nothing of it is kept.
  if (!isWatchable(typeUrl)) return { exchange, orders: [], reports: [judged(typeUrl, 'unserved', '')] };
  const { watch, verdict } = judge(watches[typeUrl], believed(request, watches, rules), rules);
  if (exceedsNames(watches, request, watch, rules)) {
    return { exchange, orders: [], reports: [{ type: 'subscription-limit.exceeded', reason: tooManyNames(rules) }] };
  }
  const changed = watch === undefined ? watches : { ...watches, [typeUrl]: watch };
  const out = told[verdict];
  return stepTo(exchange, changed, out === undefined ? noReports : [judged(typeUrl, out, request.rejection ?? '')]);
}

/**
 * Envoy asks for clusters first, but for none while a cluster that has changed waits for its endpoints. Those that it has
 * then are of the cluster as it was, and the versions that it says of them are no reason not to send them: it would wait for
 * ever (test/e2e/reconnect.test.ts).
 */
function believed(request: AdsRequest, watches: Watches, { resendsEndpoints }: ExchangeRules): AdsRequest {
  if (request.protocol === 'sotw' || request.knownVersions.length === 0) return request;
  if (request.typeUrl !== endpointType || !resendsEndpoints || watches[clusterType] !== undefined) return request;
  return { ...request, knownVersions: noNames };
}

function judged(typeUrl: string, verdict: RequestJudged['verdict'], reason: string): RequestJudged {
  return { type: 'request.classified', typeUrl, verdict, reason };
}

/** Why a stream ends that asks for more. */
export function tooManyNames({ maxNames, maxNameChars, isGrpcProgram = false }: ExchangeRules): string {
  const stream = isGrpcProgram ? 'one stream of a gRPC program' : 'one stream';
  return `the limit of ${maxNames} resource names (${maxNameChars} characters in total) of ${stream} is exceeded [STREAM_NAMES_EXHAUSTED]`;
}

/** Whether the stream would be subscribed to more than it may be, if the request were taken. */
function exceedsNames(
  watches: Watches,
  request: AdsRequest,
  watch: Watches[string] | undefined,
  { maxNames, maxNameChars }: ExchangeRules,
): boolean {
  const said = request.protocol === 'sotw' ? [request.names] : [request.subscribe, request.known];
  // An acknowledgement says nothing new.
  if (said.every((list) => list.length === 0 || list === watches[request.typeUrl]?.names)) return false;
  const isWithin = (lists: readonly (readonly string[])[]): boolean =>
    lists.reduce((sum, { length }) => sum + length, 0) <= maxNames &&
    lists.reduce((sum, list) => sum + charactersIn(list), 0) <= maxNameChars;
  const before = Object.values(watches).map(({ names }) => names);
  // Most say nothing new: only where old and new together would be too much it matters what is in both.
  if (isWithin([...before, ...said])) return false;
  const others = Object.entries(watches).flatMap(([typeUrl, { names }]) =>
    typeUrl === request.typeUrl ? [] : [names],
  );
  // A client that asks for all there is is subscribed to none of what it has, and is told all the same what of it is gone.
  const has = request.protocol === 'delta' && watch?.wildcard === true ? request.known : noNames;
  return watch !== undefined && !isWithin([...others, watch.names, has]);
}

// ---- what the server has

/** A stream that drains takes no more: the next server has it. */
function takePush(exchange: Exchange, types: readonly string[]): ExchangeStep {
  const { watches, standing } = exchange;
  if (standing === 'draining' || standing === 'settled') return { exchange, orders: [], reports: noReports };
  let changed = watches;
  for (const typeUrl of types) {
    const watch = isWatchable(typeUrl) ? watches[typeUrl] : undefined;
    if (watch !== undefined) changed = { ...changed, [typeUrl]: withChange(watch) };
  }
  return stepTo(exchange, changed);
}

/** The watches when it is known what became of an order. */
function afterOutcome(watches: Watches, outcome: ResponseSent | ResponseSkipped, rules: ExchangeRules): Watches {
  const { typeUrl } = outcome;
  // What is asked for once is told of as well, and is no watch.
  const watch = isWatchable(typeUrl) ? watches[typeUrl] : undefined;
  if (watch === undefined) return watches;
  if (outcome.type === 'response.skipped') return { ...watches, [typeUrl]: withoutResponse(watch, outcome.awaits) };
  const next = { ...watches, [typeUrl]: withResponse(watch, outcome) };
  const endpoints = next[endpointType];
  if (typeUrl !== clusterType || !rules.resendsEndpoints || endpoints === undefined) return next;
  return { ...next, [endpointType]: withNewClusters(endpoints) };
}

/** Nobody waits any longer for what the client might say. */
function afterSilence(watches: Watches): Watches {
  return Object.fromEntries(Object.entries(watches).map(([type, watch]) => [type, withoutAckTimeout(watch)]));
}
