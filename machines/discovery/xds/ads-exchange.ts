/**
 * The exchange between a stream and its client: a plain record, never changed in place, and the rules by which each message changes it. The stream
 * applies the rules itself, because an event of its chart would cost more than the response.
 */
import type {
  AdsRequest,
  ChangesHeld,
  ChangesRelease,
  ChangesReleased,
  ClientIdle,
  ConnectionPush,
  PeerHalfClosed,
  RequestClassified,
  RequestReceived,
  ResponseOrder,
  ResponseSent,
  ResponseSkipped,
  ResponsesScheduled,
  ResponsesSend,
  StreamCongested,
  StreamDrain,
  StreamResumed,
  SubscriptionLimitExceeded,
  WatchChanged,
} from './ads-protocol.ts';
import { clusterType, endpointType, healthType, isOneTimeType, isWatchable } from './ads-types.ts';
import {
  classify,
  isBehind,
  isSettled,
  nextOrders,
  type RequestClass,
  type Rules,
  unrequestedWatch,
  type Watches,
  withAwaited,
  withChange,
  withNewClusters,
  withoutAcknowledgement,
  withoutAckTimeout,
  withoutResponse,
  withoutWaits,
  withReadyNames,
  withResponse,
} from './ads-watch.ts';
import { charactersIn, noNames } from './name-lists.ts';

export type Exchange = {
  watches: Watches;
  /** Last report to the chart. */
  standing: 'caught up' | 'changes held' | 'draining' | 'settled';
  /** One-time responses that were ordered and whose outcome is not reported yet. */
  oneTimeOrders: number;
  /** The client sends no more requests, so it acknowledges no response. */
  isHalfClosed: boolean;
};

export const newExchange: Exchange = { watches: {}, standing: 'caught up', oneTimeOrders: 0, isHalfClosed: false };

export type ExchangeRules = Rules & {
  /** Whether to send endpoints again after their clusters: required by Envoy, forbidden for a plain cache. */
  resendsEndpoints: boolean;
  /** Maximum number of subscribed names of all types, and of characters in them. */
  maxNames: number;
  maxNameChars: number;
  isGrpcProgram?: boolean;
};

export type ExchangeEvent =
  | RequestReceived
  | ConnectionPush
  | ResponseSent
  | ResponseSkipped
  | StreamCongested
  | StreamResumed
  | ChangesRelease
  | ResourcesReady
  | ClustersAwaitedBy
  | AcknowledgementOverdue
  | ClustersDue
  | ClustersUnrequested
  | ResponsesSend
  | PeerHalfClosed
  | StreamDrain;

/** Held resources can be sent. `changed`: later changes of their type have not been processed. */
export type ResourcesReady = { type: 'resources.ready'; typeUrl: string; names: readonly string[]; changed: boolean };
/** The clusters that resources of a type wait for have changed. */
export type ClustersAwaitedBy = { type: 'awaited.changed'; typeUrl: string; awaits: readonly string[] };
/** Clusters were abandoned: their acknowledgement may never arrive. */
export type AcknowledgementOverdue = { type: 'acknowledgement.overdue'; typeUrl: string };
/** Clusters must be sent although no configuration changed: some can be removed, or were abandoned. */
export type ClustersDue = { type: 'clusters.due'; typeUrl: string };

/** The client requests no clusters on this stream because one of them never finishes warming: they are sent without a request. */
export type ClustersUnrequested = { type: 'clusters.unrequested'; typeUrl: string };

/** Occurs for every push and proxy. */
export type RoutineEvent = RequestReceived | ConnectionPush | ResponseSent | ResponseSkipped;

export type ExchangeReport =
  | RequestClassified
  | SubscriptionLimitExceeded
  | StreamCongested
  | StreamResumed
  | PeerHalfClosed
  | ChangesHeld
  | ChangesReleased
  | ClientIdle;

export type ExchangeStep = {
  exchange: Exchange;
  orders: readonly ResponseOrder[];
  /** Reports to the chart, in this order, before a response is sent. */
  reports: readonly ExchangeReport[];
};

/** The rules as a function, which tests replace. */
export type ExchangeStepper = (exchange: Exchange, event: ExchangeEvent, rules: ExchangeRules) => ExchangeStep;

const noReports: readonly ExchangeReport[] = [];

/**
 * Whether the record handles a request. The chart handles all others: one-time requests, health reports, and types that the stream does not
 * serve.
 */
export function isExchangeRequest({ typeUrl }: AdsRequest, onlyType: string | null): boolean {
  if (onlyType !== null) return typeUrl === onlyType;
  return typeUrl !== '' && typeUrl !== healthType && !isOneTimeType(typeUrl);
}

export const stepOf: ExchangeStepper = (exchange, event, rules) => {
  switch (event.type) {
    case 'request.received':
      return takeRequest(exchange, event.request, rules);
    case 'connection.push':
      return takePush(exchange, event.types);
    case 'response.sent':
    case 'response.skipped':
      return isOneTimeType(event.typeUrl)
        ? stepTo({ ...exchange, oneTimeOrders: exchange.oneTimeOrders - 1 }, exchange.watches)
        : stepTo(exchange, watchesAfterOutcome(exchange.watches, event, rules));
    case 'responses.send': {
      const { orders } = event;
      return {
        exchange: { ...exchange, oneTimeOrders: exchange.oneTimeOrders + orders.length },
        orders,
        reports: noReports,
      };
    }
    case 'stream.congested':
      return { exchange, orders: [], reports: [event] };
    case 'stream.resumed':
      return repeatedReports(exchange, exchange.watches, [event]);
    case 'changes.release':
      return repeatedReports(exchange, watchesAfterTimeout(exchange.watches), noReports);
    case 'resources.ready':
      return stepTo(
        exchange,
        changedWatch(exchange.watches, event.typeUrl, (watch) => withReadyNames(watch, event.names, event.changed)),
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
    case 'peer.half-closed':
      return stepTo(
        { ...exchange, standing: 'draining', isHalfClosed: true },
        mapWatches(exchange.watches, withoutWaits),
        [event],
      );
  }
};

export function routineEventBefore(event: ExchangeEvent): RoutineEvent | undefined {
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

export function routineEventAfter(
  previousExchange: Exchange,
  { exchange, orders }: ExchangeStep,
): (WatchChanged | ResponsesScheduled)[] {
  const changedWatches = Object.entries(exchange.watches).filter(
    ([typeUrl, watch]) => previousExchange.watches[typeUrl] !== watch,
  );
  const watches = changedWatches.map(([typeUrl, watch]): WatchChanged => ({ type: 'watch.changed', typeUrl, watch }));
  if (orders.length === 0 || exchange.oneTimeOrders > previousExchange.oneTimeOrders) return watches;
  return [...watches, { type: 'responses.scheduled', orders }];
}

function changedWatch(watches: Watches, typeUrl: string, change: (watch: Watches[string]) => Watches[string]): Watches {
  const watch = isWatchable(typeUrl) ? watches[typeUrl] : undefined;
  return watch === undefined ? watches : { ...watches, [typeUrl]: change(watch) };
}

/** A client that has requested the type gets a response anyway; a draining stream accepts no new changes. */
function withUnrequested({ watches, standing }: Exchange, typeUrl: string): Watches {
  if (!isWatchable(typeUrl) || watches[typeUrl] !== undefined) return watches;
  const isDraining = standing === 'draining' || standing === 'settled';
  return isDraining ? watches : { ...watches, [typeUrl]: unrequestedWatch };
}

export function stepTo(
  exchange: Exchange,
  changedWatches: Watches,
  reports: readonly ExchangeReport[] = noReports,
): ExchangeStep {
  const { standing: previousStanding, isHalfClosed } = exchange;
  const { watches, orders } = nextOrders(
    isHalfClosed ? mapWatches(changedWatches, withoutAcknowledgement) : changedWatches,
  );
  const exchangeStanding = standingAfter(exchange, watches);
  const allReports = exchangeStanding === previousStanding ? reports : [...reports, reportOf(exchangeStanding)];
  return { exchange: { ...exchange, watches, standing: exchangeStanding }, orders, reports: allReports };
}

/** Repeats the current reports after an event that returns `delivery` of the chart to 'up to date'. */
function repeatedReports(
  exchange: Exchange,
  changedWatches: Watches,
  reports: readonly ExchangeReport[],
): ExchangeStep {
  const { standing } = exchange;
  return stepTo(
    { ...exchange, standing: standing === 'changes held' ? 'caught up' : standing },
    changedWatches,
    reports,
  );
}

function standingAfter(
  { standing: previousStanding, oneTimeOrders }: Exchange,
  watches: Watches,
): Exchange['standing'] {
  if (previousStanding === 'settled') return previousStanding;
  if (previousStanding === 'draining')
    return oneTimeOrders === 0 && everyWatch(watches, isSettled) ? 'settled' : previousStanding;
  return everyWatch(watches, isNotBehind) ? 'caught up' : 'changes held';
}

function reportOf(exchangeStanding: Exchange['standing']): ExchangeReport {
  if (exchangeStanding === 'settled') return { type: 'client.idle' };
  return { type: exchangeStanding === 'changes held' ? 'changes.held' : 'changes.released' };
}

const isNotBehind = (watch: Watches[string]): boolean => !isBehind(watch);

/** Evaluated for each message, so it creates no list. */
function everyWatch(watches: Watches, predicate: (watch: Watches[string]) => boolean): boolean {
  for (const typeUrl in watches) if (!predicate(watches[typeUrl]!)) return false;
  return true;
}

function mapWatches(watches: Watches, change: (watch: Watches[string]) => Watches[string]): Watches {
  return Object.fromEntries(Object.entries(watches).map(([typeUrl, watch]) => [typeUrl, change(watch)]));
}

// ---- requests of the client

const reportedClasses: Partial<Record<RequestClass, RequestClassified['requestClass']>> = {
  rejection: 'rejection',
  stale: 'stale',
  misuse: 'misuse',
};

function takeRequest(exchange: Exchange, request: AdsRequest, rules: ExchangeRules): ExchangeStep {
  const { watches } = exchange;
  const { typeUrl } = request;
  // Types that are not served get no response; nothing of them is stored.
  if (!isWatchable(typeUrl)) return { exchange, orders: [], reports: [classified(typeUrl, 'unserved', '')] };
  const { watch, requestClass } = classify(watches[typeUrl], withTrustedVersions(request, watches, rules), rules);
  if (exceedsNames(watches, request, watch, rules)) {
    return { exchange, orders: [], reports: [{ type: 'subscription-limit.exceeded', reason: tooManyNames(rules) }] };
  }
  const nextWatches = watch === undefined ? watches : { ...watches, [typeUrl]: watch };
  const reportClass = reportedClasses[requestClass];
  return stepTo(
    exchange,
    nextWatches,
    reportClass === undefined ? noReports : [classified(typeUrl, reportClass, request.rejection ?? '')],
  );
}

/**
 * Envoy requests clusters first, but not while a changed cluster waits for its endpoints. Then the endpoints must be sent although the versions that
 * Envoy reports match; otherwise the cluster would warm without end (test/e2e/reconnect.test.ts).
 */
function withTrustedVersions(request: AdsRequest, watches: Watches, { resendsEndpoints }: ExchangeRules): AdsRequest {
  if (request.protocol === 'sotw' || request.knownVersions.length === 0) return request;
  if (request.typeUrl !== endpointType || !resendsEndpoints || watches[clusterType] !== undefined) return request;
  return { ...request, knownVersions: noNames };
}

function classified(
  typeUrl: string,
  requestClass: RequestClassified['requestClass'],
  reason: string,
): RequestClassified {
  return { type: 'request.classified', typeUrl, requestClass, reason };
}

export function tooManyNames({ maxNames, maxNameChars, isGrpcProgram = false }: ExchangeRules): string {
  const stream = isGrpcProgram ? 'one stream of a gRPC program' : 'one stream';
  return `the limit of ${maxNames} resource names (${maxNameChars} characters in total) of ${stream} is exceeded [STREAM_NAMES_EXHAUSTED]`;
}

function exceedsNames(
  watches: Watches,
  request: AdsRequest,
  watch: Watches[string] | undefined,
  { maxNames, maxNameChars }: ExchangeRules,
): boolean {
  const requestedLists = request.protocol === 'sotw' ? [request.names] : [request.subscribe, request.known];
  // An acknowledgement adds no names.
  if (requestedLists.every((list) => list.length === 0 || list === watches[request.typeUrl]?.names)) return false;
  const isWithin = (lists: readonly (readonly string[])[]): boolean =>
    lists.reduce((sum, { length }) => sum + length, 0) <= maxNames &&
    lists.reduce((sum, list) => sum + charactersIn(list), 0) <= maxNameChars;
  const currentLists = Object.values(watches).map(({ names }) => names);
  // The sum counts repeated names twice, so the exact number matters only if the sum exceeds the limit.
  if (isWithin([...currentLists, ...requestedLists])) return false;
  const otherTypeNames = Object.entries(watches).flatMap(([typeUrl, { names }]) =>
    typeUrl === request.typeUrl ? [] : [names],
  );
  // A client with a wildcard subscription does not list its resources, but must be notified of removals.
  const clientNames = request.protocol === 'delta' && watch?.wildcard === true ? request.known : noNames;
  return watch !== undefined && !isWithin([...otherTypeNames, watch.names, clientNames]);
}

// ---- what the server has

/** A draining stream accepts no pushes: the next server has the changes. */
function takePush(exchange: Exchange, types: readonly string[]): ExchangeStep {
  const { watches, standing } = exchange;
  if (standing === 'draining' || standing === 'settled') return { exchange, orders: [], reports: noReports };
  let nextWatches = watches;
  for (const typeUrl of types) {
    const watch = isWatchable(typeUrl) ? watches[typeUrl] : undefined;
    if (watch !== undefined) nextWatches = { ...nextWatches, [typeUrl]: withChange(watch) };
  }
  return stepTo(exchange, nextWatches);
}

function watchesAfterOutcome(watches: Watches, outcome: ResponseSent | ResponseSkipped, rules: ExchangeRules): Watches {
  const { typeUrl } = outcome;
  // Outcomes of one-time requests change no subscription.
  const watch = isWatchable(typeUrl) ? watches[typeUrl] : undefined;
  if (watch === undefined) return watches;
  if (outcome.type === 'response.skipped') return { ...watches, [typeUrl]: withoutResponse(watch, outcome.awaits) };
  const nextWatches = { ...watches, [typeUrl]: withResponse(watch, outcome) };
  const endpoints = nextWatches[endpointType];
  if (typeUrl !== clusterType || !rules.resendsEndpoints || endpoints === undefined) return nextWatches;
  // A client that returns with current clusters warms none.
  if (outcome.resources === 0) return nextWatches;
  return { ...nextWatches, [endpointType]: withNewClusters(endpoints) };
}

function watchesAfterTimeout(watches: Watches): Watches {
  return mapWatches(watches, withoutAckTimeout);
}
