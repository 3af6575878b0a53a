/**
 * What a client watches of one type of resource, as one plain record, and the rules by which requests, responses and
 * pushes change it (spec/discovery.md §7.3 S1–S9, §7.4 D1–D5; where it differs, spec/xds-conformance.md).
 *
 * A record is never changed in place. One response of a type is on its way at a time: a push waits for the client's
 * word on the one before, within reason. A subscription does not wait: it is answered even so.
 */
import type { AdsRequest, DeltaRequest, ResponseOrder, SotwRequest } from './ads-protocol.ts';
import { inPushOrder, isByName, isIndependent } from './ads-types.ts';
import { isSameNames, noNames, readNames, union, within, without } from './name-lists.ts';
import type { Due, Watch, Watches } from './watch-record.ts';

export type { Due, Watch, Watches } from './watch-record.ts';

/** What a request turned out to be. */
export type Verdict =
  | 'subscription'
  | 'unsubscription'
  | 'acknowledgement'
  | 'rejection'
  /** It answers a response that is no longer the last one: ignored. */
  | 'stale'
  /** A delta request that neither answers a response nor changes the subscription (D5): ignored. */
  | 'misuse';

export type Judgement = { watch: Watch | undefined; verdict: Verdict };

const nothingDue: Due = { all: false, asked: noNames, changed: false };
const everythingDue: Due = { all: true, asked: noNames, changed: false };

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

/** A type that is sent to a client which has not requested it on this stream. */
export const unrequestedWatch: Watch = {
  ...freshWatch,
  wildcard: true,
  due: { ...everythingDue, returning: true },
  unrequested: true,
};

/** Whether the client wants anything of the type. */
export function isSubscribed(watch: Watch): boolean {
  return watch.wildcard || watch.names.length > 0;
}

/** Whether the client's word on the last response is waited for. */
export function isOutstanding({ nonceSent, nonceAcked, nonceRejected, nonceOverdue }: Watch): boolean {
  return nonceSent !== nonceAcked && nonceSent !== nonceRejected && nonceSent !== nonceOverdue;
}

/** Whether something is kept back until the client has acknowledged or rejected the last response. */
export function isBehind({ due }: Watch): boolean {
  return due.changed || due.ready !== undefined || due.warming !== undefined;
}

/** Whether nothing of the type is on its way or waits for the client's word. */
export function isSettled(watch: Watch): boolean {
  return watch.ordered === 'nothing' && !isOutstanding(watch);
}

/** In what servers differ. */
export type Rules = {
  /**
   * Whether names count that a delta client says in answer to a response that is no longer the last one. They say what it
   * wants, which it will not say again; only the answer is late. (A bare cache must ignore them: spec/xds-conformance.md.)
   */
  hearsLateNames: boolean;
};

/** Takes a request of either protocol. */
export function judge(watch: Watch | undefined, request: AdsRequest, rules: Rules): Judgement {
  if (watch?.unrequested === true) return judgeFirst(watch, request, rules);
  if (request.rejection !== null) return reject(watch, request, request.rejection);
  return request.protocol === 'sotw' ? judgeSotw(watch, request) : judgeDelta(watch, request, rules);
}

/**
 * The first request of a type that was sent without one. It may answer that response as well. In delta it reports which resources the
 * client has, and is responded to like any first request.
 */
function judgeFirst({ unrequested: _, ...watch }: Watch, request: AdsRequest, rules: Rules): Judgement {
  const judgement = judge(watch, request, rules);
  if (request.protocol === 'sotw') return judgement;
  const { wildcard, names, due } = firstDelta(request).watch!;
  const verdict = judgement.verdict === 'rejection' ? 'rejection' : 'subscription';
  return { watch: { ...judgement.watch!, wildcard, names, due }, verdict };
}

/**
 * S1, D1: a rejection is not answered. It settles the response that it names, if that is the last one. Names count in
 * delta, where they are said once (Envoy says them with whatever it sends next); a list of all names is said again.
 */
function reject(watch: Watch | undefined, request: AdsRequest, reason: string): Judgement {
  if (watch === undefined) return { watch, verdict: 'rejection' };
  const settled = request.nonce === watch.nonceSent ? { nonceRejected: request.nonce } : {};
  const rejected: Watch = { ...watch, ...settled, lastError: reason };
  const heard = request.protocol === 'delta' ? changeDelta(rejected, request).watch : rejected;
  return { watch: heard, verdict: 'rejection' };
}

function acknowledge(watch: Watch): Watch {
  return { ...watch, nonceAcked: watch.nonceSent, versionAcked: watch.versionSent, lastError: '' };
}

// ---- state of the world

type Subscription = Pick<Watch, 'wildcard' | 'names'>;

/**
 * What a list of names means. An empty list is everything in a client's first request of a type that can be asked for
 * as a whole, and as long as it never named anything; the list of one empty name is nothing.
 */
function subscriptionOf(request: SotwRequest, before: Watch | undefined): Subscription {
  const { names, hasStar } = readNames(request.names);
  if (isByName(request.typeUrl)) return { wildcard: false, names };
  const everything = request.names.length === 0 && (before === undefined || before.wildcard);
  return { wildcard: everything || hasStar, names };
}

function judgeSotw(watch: Watch | undefined, request: SotwRequest): Judgement {
  // S3: a client without a nonce begins anew; one that brings another server's nonce begins here.
  if (watch === undefined || request.nonce === '') {
    return subscribeAnew(watch, subscriptionOf(request, undefined), request.returning);
  }
  // S4 goes before S2: a stale request is ignored altogether, and the answer to the last response says all again.
  if (request.nonce !== watch.nonceSent) return { watch, verdict: 'stale' };
  // What it has rejected it does not accept by asking for something else (Envoy names the last response whatever it says).
  const isRejected = request.nonce === watch.nonceRejected && !acceptsLater(watch, request);
  const heard = isRejected ? watch : acknowledge(watch);
  return change(heard, subscriptionOf(request, watch), isByName(request.typeUrl));
}

/** The client has the version that it rejected first: an agent forwarded a part of the response when it had fetched the Wasm module for it. */
function acceptsLater({ versionSent, versionAcked }: Watch, { version = '' }: SotwRequest): boolean {
  return version !== '' && version === versionSent && version !== versionAcked;
}

function subscribeAnew(watch: Watch | undefined, wanted: Subscription, returning?: true): Judgement {
  // S2, also as a very first request.
  if (!wanted.wildcard && wanted.names.length === 0) {
    return { watch: watch === undefined ? undefined : unsubscribed(watch), verdict: 'unsubscription' };
  }
  const due: Due = returning ? { ...everythingDue, returning } : everythingDue;
  return { watch: { ...(watch ?? freshWatch), ...wanted, lastError: '', due }, verdict: 'subscription' };
}

function unsubscribed(watch: Watch): Watch {
  return { ...watch, wildcard: false, names: noNames, due: nothingDue };
}

/** S2, S5–S9: the request answers the last response, and may change the subscription. */
function change(watch: Watch, wanted: Subscription, byName: boolean): Judgement {
  if (!wanted.wildcard && wanted.names.length === 0) {
    return { watch: unsubscribed(watch), verdict: isSubscribed(watch) ? 'unsubscription' : 'acknowledgement' };
  }
  if (wanted.wildcard === watch.wildcard && isSameNames(watch.names, wanted.names)) {
    return { watch, verdict: 'acknowledgement' };
  }
  const added = without(wanted.names, watch.names);
  const next: Watch = { ...watch, ...wanted, due: { ...watch.due, asked: within(watch.due.asked, wanted.names) } };
  if (wanted.wildcard !== watch.wildcard) return { watch: { ...next, due: everythingDue }, verdict: 'subscription' };
  if (added.length === 0) return { watch: next, verdict: 'unsubscription' };
  // A response of a type that is sent as a whole must hold the whole subscription.
  const due = byName ? { ...next.due, asked: union(next.due.asked, added) } : { ...next.due, all: true };
  return { watch: { ...next, due }, verdict: 'subscription' };
}

// ---- delta

function judgeDelta(watch: Watch | undefined, request: DeltaRequest, rules: Rules): Judgement {
  if (watch === undefined) return firstDelta(request);
  if (request.nonce !== '' && request.nonce !== watch.nonceSent) {
    return { watch: rules.hearsLateNames ? changeDelta(watch, request).watch : watch, verdict: 'stale' };
  }
  return changeDelta(request.nonce === '' ? watch : acknowledge(watch), request);
}

/** D2. Of what a client brings from another stream it is sent what is in another version by now, and told what is gone. */
function firstDelta(request: DeltaRequest): Judgement {
  const subscribe = readNames(request.subscribe);
  const unsubscribe = readNames(request.unsubscribe);
  const known = readNames(request.known);
  const wildcard =
    !isByName(request.typeUrl) && (request.subscribe.length === 0 || subscribe.hasStar) && !unsubscribe.hasStar;
  // Of what it has it wants to hear whether it is gone; a client that asks for everything does not name what it wants.
  const has = without(known.names, unsubscribe.names);
  const named = without(subscribe.names, unsubscribe.names);
  const names = wildcard ? named : union(named, has);
  const subscribed = wildcard || names.length > 0;
  const due: Due = { all: subscribed, asked: wildcard ? has : noNames, changed: false, ...versionsOf(request) };
  return {
    watch: { ...freshWatch, wildcard, names, due },
    verdict: subscribed ? 'subscription' : 'unsubscription',
  };
}

function versionsOf({ known, knownVersions }: DeltaRequest): Pick<Due, 'has' | 'returning'> {
  if (knownVersions.length > 0) return { has: { names: known, versions: knownVersions } };
  return known.length === 0 ? {} : { returning: true };
}

/** D4. A name that is both subscribed to and unsubscribed from is not subscribed to. */
function changeDelta(watch: Watch, request: DeltaRequest): Judgement {
  const nothingNew: Judgement = { watch, verdict: request.nonce === '' ? 'misuse' : 'acknowledgement' };
  if (request.subscribe.length === 0 && request.unsubscribe.length === 0) return nothingNew;
  const subscribe = readNames(request.subscribe);
  const unsubscribe = readNames(request.unsubscribe);
  const kept = without(watch.names, unsubscribe.names);
  const added = without(without(subscribe.names, unsubscribe.names), watch.names);
  const names = union(kept, added);
  const asksForAll = !isByName(request.typeUrl) && subscribe.hasStar;
  const wildcard = (watch.wildcard || asksForAll) && !unsubscribe.hasStar;
  if (kept === watch.names && added.length === 0 && wildcard === watch.wildcard) return nothingNew;
  const isAll = wildcard && !watch.wildcard;
  const asked = union(without(watch.due.asked, unsubscribe.names), added);
  const next: Watch = { ...watch, wildcard, names, due: { ...watch.due, asked, all: watch.due.all || isAll } };
  if (!isSubscribed(next)) return { watch: unsubscribed(next), verdict: 'unsubscription' };
  return { watch: next, verdict: added.length > 0 || isAll ? 'subscription' : 'unsubscription' };
}

// ---- what goes out

/** A push concerns the type. Pushes that wait are one: what is sent is what the source has then. */
export function withChange(watch: Watch): Watch {
  if (!isSubscribed(watch) || watch.due.changed) return watch;
  return { ...watch, due: { ...watch.due, changed: true } };
}

/**
 * Clusters were sent. Envoy waits for the endpoints of a cluster that it makes anew, also when it has them already:
 * they are sent again (§7.4), unless an order that stands will do so.
 */
export function withNewClusters(watch: Watch): Watch {
  if (watch.ordered === 'changes' || !isSubscribed(watch)) return watch;
  return { ...watch, due: { ...watch.due, warming: true } };
}

/** Resources that were held back can be sent. @param changed later changes of the type should be sent as well */
export function withReady(watch: Watch, names: readonly string[], changed: boolean): Watch {
  if (!isSubscribed(watch)) return watch;
  const ready = union(watch.due.ready ?? noNames, names);
  const due: Due = { ...watch.due, ...(ready.length > 0 && { ready }), changed: watch.due.changed || changed };
  return { ...watch, due };
}

/** The client does not acknowledge a response because clusters in it warm: nothing waits for its acknowledgement any more. */
export function withoutAcknowledgement(watch: Watch): Watch {
  return isOutstanding(watch) ? { ...watch, nonceOverdue: watch.nonceSent } : watch;
}

/** The client's word on the last response is no longer waited for. */
export function withoutAckTimeout(watch: Watch): Watch {
  return isBehind(watch) && isOutstanding(watch) ? { ...watch, nonceOverdue: watch.nonceSent } : watch;
}

/** The stream has sent a response. @param sent with the clusters that other resources of the type wait for */
export function withResponse(
  watch: Watch,
  sent: { nonce: string; version: string; sentAt: number; awaits?: readonly string[] },
): Watch {
  const { nonce: nonceSent, version: versionSent, sentAt } = sent;
  return withAwaited({ ...watch, ordered: 'nothing', nonceSent, versionSent, sentAt }, sent.awaits);
}

/** The stream had nothing to send. @param awaits clusters that resources of the type wait for */
export function withoutResponse(watch: Watch, awaits?: readonly string[]): Watch {
  return withAwaited({ ...watch, ordered: 'nothing' }, awaits);
}

/** Clusters that resources of the type wait for; none: they wait for none. */
export function withAwaited(watch: Watch, awaits: readonly string[] = noNames): Watch {
  if (awaits.length > 0) return { ...watch, awaits };
  if (watch.awaits === undefined) return watch;
  const { awaits: _, ...rest } = watch;
  return rest;
}

/**
 * What may be ordered now, in push order. A pushed type waits while one before it in that order has a change that
 * cannot go yet: a route must not arrive before the cluster that it leads to. Types that refer to no other one do not wait.
 */
export function nextOrders(watches: Watches): { watches: Watches; orders: readonly ResponseOrder[] } {
  const types = typesDue(watches);
  if (types.length === 0) return { watches, orders: noOrders };
  const orders: ResponseOrder[] = [];
  let next = watches;
  let isHeld = false;
  for (const typeUrl of inPushOrder(types)) {
    const watch = watches[typeUrl]!;
    const isFree = !isOutstanding(watch);
    const { all, asked, ready, warming } = watch.due;
    const mayGo = !isHeld || isIndependent(typeUrl);
    const changed = (watch.due.changed || warming !== undefined) && isFree && mayGo;
    // The client may acknowledge clusters only after this: it must not wait for a change of clusters that waits for their acknowledgement.
    const isAgain = warming !== undefined && isFree && isHeld && watch.versionSent !== '';
    // What was held back refers to clusters that the client has: later changes of clusters do not delay it.
    const isAnswer = all || asked.length > 0;
    const isReady = ready !== undefined && isFree && !isAnswer;
    if (watch.ordered === 'nothing' && isAgain && !isAnswer) {
      const names = watch.wildcard ? '*' : watch.names;
      orders.push({ typeUrl, names, all, asked, changed: true, again: watch.versionSent });
      const due: Due = { ...nothingDue, changed: watch.due.changed };
      next = { ...next, [typeUrl]: { ...watch, due, ordered: 'names' } };
    } else if (watch.ordered === 'nothing' && isReady) {
      const names = watch.wildcard ? '*' : watch.names;
      orders.push({ typeUrl, names, all, asked, changed: false, ready });
      next = { ...next, [typeUrl]: { ...watch, due: { ...nothingDue, changed: watch.due.changed }, ordered: 'names' } };
    } else if (watch.ordered === 'nothing' && (isAnswer || changed)) {
      const names = watch.wildcard ? '*' : watch.names;
      orders.push({ typeUrl, names, all, asked, changed: changed && !all, ...moreOf(watch.due) });
      const left = ready !== undefined && !all ? { ready } : {};
      const isLeft = !changed && !all;
      const due: Due = {
        ...nothingDue,
        changed: watch.due.changed && isLeft,
        ...(isLeft && moreDue(watch.due)),
        ...left,
      };
      next = { ...next, [typeUrl]: { ...watch, due, ordered: all || changed ? 'changes' : 'names' } };
    }
    const { due } = next[typeUrl]!;
    if (isIndependent(typeUrl)) continue;
    isHeld ||= due.changed || due.warming !== undefined;
  }
  return { watches: next, orders };
}

function moreDue({ warming }: Due): Pick<Due, 'warming'> {
  return warming === undefined ? {} : { warming };
}

function moreOf({ has, returning }: Due): Pick<ResponseOrder, 'has' | 'returning'> {
  return { ...(has !== undefined && { has }), ...(returning !== undefined && { returning }) };
}

/** The types of which something should be sent: none after most acknowledgements. */
function typesDue(watches: Watches): readonly string[] {
  const types: string[] = [];
  for (const typeUrl in watches) {
    const { all, asked, changed, ready, warming } = watches[typeUrl]!.due;
    if (all || changed || asked.length > 0 || ready !== undefined || warming !== undefined) types.push(typeUrl);
  }
  return types;
}
