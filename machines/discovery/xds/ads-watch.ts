/**
 * The subscription of a client to one type: a plain record, never changed in place, and the rules by which requests, responses and pushes change it
 * (rules S1 to S9 of SotW and D1 to D5 of delta: test/model/ads-watch.test.ts). One pushed response of a type is pending at a time.
 */
import type { AdsRequest, DeltaRequest, ResponseOrder, SotwRequest } from './ads-protocol.ts';
import { isByName, isIndependent, sortInPushOrder } from './ads-types.ts';
import { haveSameNames, intersection, namesWithout, noNames, readNames, union } from './name-lists.ts';
import type { DueResponse, Watch, Watches } from './watch-record.ts';

export type { DueResponse, Watch, Watches } from './watch-record.ts';

export type RequestClass =
  | 'subscription'
  | 'unsubscription'
  | 'acknowledgement'
  | 'rejection'
  | 'stale'
  /** A delta request that neither acknowledges a response nor changes the subscription (D5): ignored. */
  | 'misuse';

export type Classification = { watch: Watch | undefined; requestClass: RequestClass };

const nothingDue: DueResponse = { all: false, requested: noNames, changed: false };
const everythingDue: DueResponse = { all: true, requested: noNames, changed: false };

const noOrders: readonly ResponseOrder[] = [];

const freshWatch: Watch = {
  wildcard: false,
  names: noNames,
  due: nothingDue,
  ordered: 'nothing',
  nonceSent: '',
  nonceAcked: '',
  nonceRejected: '',
  nonceOverdue: '',
  versionSent: '',
  versionAcked: '',
  lastError: '',
  sentAt: 0,
};

export const unrequestedWatch: Watch = {
  ...freshWatch,
  wildcard: true,
  due: { ...everythingDue, returning: true },
  unrequested: true,
};

export function isSubscribed(watch: Watch): boolean {
  return watch.wildcard || watch.names.length > 0;
}

export function isOutstanding({ nonceSent, nonceAcked, nonceRejected, nonceOverdue }: Watch): boolean {
  return nonceSent !== nonceAcked && nonceSent !== nonceRejected && nonceSent !== nonceOverdue;
}

/** Whether changes wait until the last response is acknowledged or rejected. */
export function isBehind({ due }: Watch): boolean {
  return due.changed || due.ready !== undefined || due.warming !== undefined;
}

export function isSettled(watch: Watch): boolean {
  return watch.ordered === 'nothing' && !isOutstanding(watch);
}

export type Rules = {
  /**
   * Whether a delta client's names in a late acknowledgement count. They state its subscription, which it will not repeat. (A plain cache
   * must ignore them.)
   */
  acceptsLateNames: boolean;
};

export function classify(watch: Watch | undefined, request: AdsRequest, rules: Rules): Classification {
  if (watch?.unrequested === true) return classifyFirst(watch, request, rules);
  if (request.rejection !== null) return reject(watch, request, request.rejection);
  return request.protocol === 'sotw' ? classifySotw(watch, request) : classifyDelta(watch, request, rules);
}

/** The first request of a type that was sent without a request. It may also acknowledge that response. */
function classifyFirst({ unrequested: _, ...watch }: Watch, request: AdsRequest, rules: Rules): Classification {
  const classification = classify(watch, request, rules);
  if (request.protocol === 'sotw') return classification;
  const { wildcard, names, due } = firstDelta(request).watch!;
  const requestClass = classification.requestClass === 'rejection' ? 'rejection' : 'subscription';
  return { watch: { ...classification.watch!, wildcard, names, due }, requestClass };
}

/**
 * S1, D1: a rejection gets no response. If it has the nonce of the last response, it settles that response. A delta client sends the names in it only
 * once, so they count; a state-of-the-world client repeats its complete list.
 */
function reject(watch: Watch | undefined, request: AdsRequest, reason: string): Classification {
  if (watch === undefined) return { watch, requestClass: 'rejection' };
  const rejectionFields = request.nonce === watch.nonceSent ? { nonceRejected: request.nonce } : {};
  const rejectedWatch: Watch = { ...watch, ...rejectionFields, lastError: reason };
  const nextWatch =
    request.protocol === 'delta' ? changeDeltaSubscription(rejectedWatch, request).watch : rejectedWatch;
  return { watch: nextWatch, requestClass: 'rejection' };
}

function acknowledge(watch: Watch): Watch {
  return { ...watch, nonceAcked: watch.nonceSent, versionAcked: watch.versionSent, lastError: '' };
}

// ---- state of the world

type Subscription = Pick<Watch, 'wildcard' | 'names'>;

/**
 * Meaning of a list of names. An empty list means all resources if the type can be requested completely and the client has not sent a name yet. A
 * list with one empty name means none.
 */
function subscriptionOf(request: SotwRequest, previousWatch: Watch | undefined): Subscription {
  const { names, hasStar } = readNames(request.names);
  if (isByName(request.typeUrl)) return { wildcard: false, names };
  const isWildcardRequest = request.names.length === 0 && (previousWatch === undefined || previousWatch.wildcard);
  return { wildcard: isWildcardRequest || hasStar, names };
}

function classifySotw(watch: Watch | undefined, request: SotwRequest): Classification {
  // S3: a client without a nonce, or with a nonce of another server, starts from the beginning.
  if (watch === undefined || request.nonce === '') {
    return resubscribe(watch, subscriptionOf(request, undefined), request.returning);
  }
  // S4 precedes S2: a stale request is ignored completely, because the next acknowledgement repeats its names.
  if (request.nonce !== watch.nonceSent) return { watch, requestClass: 'stale' };
  // A request with the nonce of a rejected response does not accept it (Envoy sends the last nonce with every request).
  const isRejected = request.nonce === watch.nonceRejected && !acknowledgesLaterVersion(watch, request);
  const nextWatch = isRejected ? watch : acknowledge(watch);
  return changeSubscription(nextWatch, subscriptionOf(request, watch), isByName(request.typeUrl));
}

/** The client has a version that it first rejected: an agent forwarded part of the response after fetching the Wasm module. */
function acknowledgesLaterVersion({ versionSent, versionAcked }: Watch, { version = '' }: SotwRequest): boolean {
  return version !== '' && version === versionSent && version !== versionAcked;
}

function resubscribe(watch: Watch | undefined, requested: Subscription, isReturning?: true): Classification {
  // S2, even as the very first request.
  if (!requested.wildcard && requested.names.length === 0) {
    return { watch: watch === undefined ? undefined : withoutSubscription(watch), requestClass: 'unsubscription' };
  }
  const nextDue: DueResponse = isReturning ? { ...everythingDue, returning: isReturning } : everythingDue;
  return {
    watch: { ...(watch ?? freshWatch), ...requested, lastError: '', due: nextDue },
    requestClass: 'subscription',
  };
}

function withoutSubscription(watch: Watch): Watch {
  return { ...watch, wildcard: false, names: noNames, due: nothingDue };
}

/** S2, S5–S9: acknowledges the last response, and may change the subscription. */
function changeSubscription(watch: Watch, requested: Subscription, isByNameType: boolean): Classification {
  if (!requested.wildcard && requested.names.length === 0) {
    return {
      watch: withoutSubscription(watch),
      requestClass: isSubscribed(watch) ? 'unsubscription' : 'acknowledgement',
    };
  }
  if (requested.wildcard === watch.wildcard && haveSameNames(watch.names, requested.names)) {
    return { watch, requestClass: 'acknowledgement' };
  }
  const addedNames = namesWithout(requested.names, watch.names);
  const nextWatch: Watch = {
    ...watch,
    ...requested,
    due: { ...watch.due, requested: intersection(watch.due.requested, requested.names) },
  };
  if (requested.wildcard !== watch.wildcard)
    return { watch: { ...nextWatch, due: everythingDue }, requestClass: 'subscription' };
  if (addedNames.length === 0) return { watch: nextWatch, requestClass: 'unsubscription' };
  // A response of a type that is sent completely must contain the complete subscription.
  const nextDue = isByNameType
    ? { ...nextWatch.due, requested: union(nextWatch.due.requested, addedNames) }
    : { ...nextWatch.due, all: true };
  return { watch: { ...nextWatch, due: nextDue }, requestClass: 'subscription' };
}

// ---- delta

function classifyDelta(watch: Watch | undefined, request: DeltaRequest, rules: Rules): Classification {
  if (watch === undefined) return firstDelta(request);
  if (request.nonce !== '' && request.nonce !== watch.nonceSent) {
    return {
      watch: rules.acceptsLateNames ? changeDeltaSubscription(watch, request).watch : watch,
      requestClass: 'stale',
    };
  }
  return changeDeltaSubscription(request.nonce === '' ? watch : acknowledge(watch), request);
}

/** D2: the response contains resources whose version differs from the client's, and removals. */
function firstDelta(request: DeltaRequest): Classification {
  const subscribe = readNames(request.subscribe);
  const unsubscribe = readNames(request.unsubscribe);
  const knownReading = readNames(request.known);
  const wildcard =
    !isByName(request.typeUrl) && (request.subscribe.length === 0 || subscribe.hasStar) && !unsubscribe.hasStar;
  // Removals are reported for the client's resources, which a wildcard subscription does not name.
  const clientNames = namesWithout(knownReading.names, unsubscribe.names);
  const subscribedNames = namesWithout(subscribe.names, unsubscribe.names);
  const names = wildcard ? subscribedNames : union(subscribedNames, clientNames);
  const subscribesAny = wildcard || names.length > 0;
  const nextDue: DueResponse = {
    all: subscribesAny,
    requested: wildcard ? clientNames : noNames,
    changed: false,
    ...versionsOf(request),
  };
  return {
    watch: { ...freshWatch, wildcard, names, due: nextDue },
    requestClass: subscribesAny ? 'subscription' : 'unsubscription',
  };
}

function versionsOf({ known, knownVersions }: DeltaRequest): Pick<DueResponse, 'has' | 'returning'> {
  if (knownVersions.length > 0) return { has: { names: known, versions: knownVersions } };
  return known.length === 0 ? {} : { returning: true };
}

/** D4: a name in both lists is unsubscribed. */
function changeDeltaSubscription(watch: Watch, request: DeltaRequest): Classification {
  const nothingNew: Classification = { watch, requestClass: request.nonce === '' ? 'misuse' : 'acknowledgement' };
  if (request.subscribe.length === 0 && request.unsubscribe.length === 0) return nothingNew;
  const subscribe = readNames(request.subscribe);
  const unsubscribe = readNames(request.unsubscribe);
  const keptNames = namesWithout(watch.names, unsubscribe.names);
  const addedNames = namesWithout(namesWithout(subscribe.names, unsubscribe.names), watch.names);
  const names = union(keptNames, addedNames);
  const requestsAll = !isByName(request.typeUrl) && subscribe.hasStar;
  const wildcard = (watch.wildcard || requestsAll) && !unsubscribe.hasStar;
  if (keptNames === watch.names && addedNames.length === 0 && wildcard === watch.wildcard) return nothingNew;
  const becomesWildcard = wildcard && !watch.wildcard;
  const dueNames = union(namesWithout(watch.due.requested, unsubscribe.names), addedNames);
  const nextWatch: Watch = {
    ...watch,
    wildcard,
    names,
    due: { ...watch.due, requested: dueNames, all: watch.due.all || becomesWildcard },
  };
  if (!isSubscribed(nextWatch)) return { watch: withoutSubscription(nextWatch), requestClass: 'unsubscription' };
  return {
    watch: nextWatch,
    requestClass: addedNames.length > 0 || becomesWildcard ? 'subscription' : 'unsubscription',
  };
}

// ---- responses and pushes

/** Pending pushes are merged into one response. */
export function withChange(watch: Watch): Watch {
  if (!isSubscribed(watch) || watch.due.changed) return watch;
  return { ...watch, due: { ...watch.due, changed: true } };
}

/** Sends endpoints again after their clusters, because Envoy waits for the endpoints of a changed cluster even if it has them. */
export function withNewClusters(watch: Watch): Watch {
  if (watch.ordered === 'changes' || !isSubscribed(watch)) return watch;
  return { ...watch, due: { ...watch.due, warming: true } };
}

/** @param isChanged whether to also send later changes of the type */
export function withReadyNames(watch: Watch, names: readonly string[], isChanged: boolean): Watch {
  if (!isSubscribed(watch)) return watch;
  const readyNames = union(watch.due.ready ?? noNames, names);
  const nextDue: DueResponse = {
    ...watch.due,
    ...(readyNames.length > 0 && { ready: readyNames }),
    changed: watch.due.changed || isChanged,
  };
  return { ...watch, due: nextDue };
}

/** Stops waiting for the acknowledgement of a response, because it may not arrive while clusters of the response are warming. */
export function withoutAcknowledgement(watch: Watch): Watch {
  return isOutstanding(watch) ? { ...watch, nonceOverdue: watch.nonceSent } : watch;
}

/** Called when the client acknowledges nothing any more: sends resources that wait for clusters, as after a change. */
export function withoutWaits(watch: Watch): Watch {
  return watch.awaits === undefined ? watch : withChange(withAwaited(watch));
}

export function withoutAckTimeout(watch: Watch): Watch {
  return isBehind(watch) && isOutstanding(watch) ? { ...watch, nonceOverdue: watch.nonceSent } : watch;
}

export function withResponse(
  watch: Watch,
  response: { nonce: string; version: string; sentAt: number; awaits?: readonly string[] },
): Watch {
  const { nonce: nonceSent, version: versionSent, sentAt } = response;
  return withAwaited({ ...watch, ordered: 'nothing', nonceSent, versionSent, sentAt }, response.awaits);
}

export function withoutResponse(watch: Watch, awaitedNames?: readonly string[]): Watch {
  return withAwaited({ ...watch, ordered: 'nothing' }, awaitedNames);
}

export function withAwaited(watch: Watch, awaitedNames: readonly string[] = noNames): Watch {
  if (awaitedNames.length > 0) return { ...watch, awaits: awaitedNames };
  if (watch.awaits === undefined) return watch;
  const { awaits: _, ...otherFields } = watch;
  return otherFields;
}

/**
 * Responses that may be sent now, in push order. A type waits while an earlier one has a change that cannot be sent yet: a route must not
 * arrive before its cluster. Independent types do not wait.
 */
export function nextOrders(watches: Watches): { watches: Watches; orders: readonly ResponseOrder[] } {
  const types = dueTypesOf(watches);
  if (types.length === 0) return { watches, orders: noOrders };
  const orders: ResponseOrder[] = [];
  let next = watches;
  let isHeldBack = false;
  for (const typeUrl of sortInPushOrder(types)) {
    const watch = watches[typeUrl]!;
    const isFree = !isOutstanding(watch);
    const { all, requested, ready, warming } = watch.due;
    const mayBeSent = !isHeldBack || isIndependent(typeUrl);
    const isChanged = (watch.due.changed || warming !== undefined) && isFree && mayBeSent;
    // The client may acknowledge clusters only after this response, so the response must not wait for a change of clusters that itself waits for that
    // acknowledgement.
    const isWarmingUpdate = warming !== undefined && isFree && isHeldBack && watch.versionSent !== '';
    // Held resources refer to clusters that the client has: later changes of clusters do not delay them.
    const isResponse = all || requested.length > 0;
    const isReady = ready !== undefined && isFree && !isResponse;
    if (watch.ordered === 'nothing' && isWarmingUpdate && !isResponse) {
      const names = watch.wildcard ? '*' : watch.names;
      orders.push({ typeUrl, names, all, requested, changed: true, again: watch.versionSent });
      const nextDue: DueResponse = { ...nothingDue, changed: watch.due.changed };
      next = { ...next, [typeUrl]: { ...watch, due: nextDue, ordered: 'names' } };
    } else if (watch.ordered === 'nothing' && isReady) {
      const names = watch.wildcard ? '*' : watch.names;
      orders.push({ typeUrl, names, all, requested, changed: false, ready });
      next = { ...next, [typeUrl]: { ...watch, due: { ...nothingDue, changed: watch.due.changed }, ordered: 'names' } };
    } else if (watch.ordered === 'nothing' && (isResponse || isChanged)) {
      const names = watch.wildcard ? '*' : watch.names;
      orders.push({ typeUrl, names, all, requested, changed: isChanged && !all, ...moreOf(watch.due) });
      const remainingReady = ready !== undefined && !all ? { ready } : {};
      const isDueLater = !isChanged && !all;
      const nextDue: DueResponse = {
        ...nothingDue,
        changed: watch.due.changed && isDueLater,
        ...(isDueLater && moreDue(watch.due)),
        ...remainingReady,
      };
      next = { ...next, [typeUrl]: { ...watch, due: nextDue, ordered: all || isChanged ? 'changes' : 'names' } };
    }
    const { due } = next[typeUrl]!;
    if (isIndependent(typeUrl)) continue;
    isHeldBack ||= due.changed || due.warming !== undefined;
  }
  return { watches: next, orders };
}

function moreDue({ warming }: DueResponse): Pick<DueResponse, 'warming'> {
  return warming === undefined ? {} : { warming };
}

function moreOf({ has, returning }: DueResponse): Pick<ResponseOrder, 'has' | 'returning'> {
  return { ...(has !== undefined && { has }), ...(returning !== undefined && { returning }) };
}

function dueTypesOf(watches: Watches): readonly string[] {
  const types: string[] = [];
  for (const typeUrl in watches) {
    const { all, requested, changed, ready, warming } = watches[typeUrl]!.due;
    if (all || changed || requested.length > 0 || ready !== undefined || warming !== undefined) types.push(typeUrl);
  }
  return types;
}
