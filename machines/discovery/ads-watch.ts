/**
 * What a client watches of one type of resource, as one plain record, and the rules by which requests, responses and
 * pushes change it (spec/discovery.md §7.3 S1–S9, §7.4 D1–D5; where it differs, spec/xds-conformance.md).
 *
 * A record is never changed in place. One response of a type is on its way at a time: a push waits for the client's
 * word on the one before, within reason. A subscription does not wait: it is answered even so.
 */
import type { AdsRequest, DeltaRequest, ResponseOrder, SotwRequest } from './ads-protocol.ts';
import { inPushOrder, isByName } from './ads-types.ts';

/** What should still be sent. */
export type Due = {
  /** All that is subscribed to: a new subscription. */
  all: boolean;
  /** These: names that were added to a subscription. */
  asked: string[];
  /** What changed: a push. */
  changed: boolean;
};

export type Watch = {
  /** All there is of the type, not only `names`. */
  wildcard: boolean;
  /** Neither wildcard nor a name: the client has unsubscribed; the record remembers the last nonce. */
  names: string[];
  due: Due;
  /**
   * What the stream was ordered to send and has not yet told about: names that were asked for, or whatever is not as
   * the client has it (which includes what changes until the order's turn comes).
   */
  ordered: 'nothing' | 'names' | 'changes';
  nonceSent: string;
  nonceAcked: string;
  nonceRejected: string;
  /** Of a response on which the client has kept silent for too long: changes wait for its word no more. */
  nonceOverdue: string;
  versionSent: string;
  versionAcked: string;
  /** Why the client rejected the last response that it rejected; empty once it has accepted a later one. */
  lastError: string;
  /** Unix time in milliseconds; 0 before the first response. */
  sentAt: number;
};

/** By type URL. */
export type Watches = Record<string, Watch>;

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

const nothingDue: Due = { all: false, asked: [], changed: false };
const everythingDue: Due = { all: true, asked: [], changed: false };

const freshWatch: Watch = {
  wildcard: false,
  names: [],
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

/** Whether the client wants anything of the type. */
export function isSubscribed(watch: Watch): boolean {
  return watch.wildcard || watch.names.length > 0;
}

/** Whether the client's word on the last response is waited for. */
export function isOutstanding({ nonceSent, nonceAcked, nonceRejected, nonceOverdue }: Watch): boolean {
  return nonceSent !== nonceAcked && nonceSent !== nonceRejected && nonceSent !== nonceOverdue;
}

/** Whether a change is kept back. */
export function isBehind(watch: Watch): boolean {
  return watch.due.changed;
}

/** Whether nothing of the type is on its way or waits for the client's word. */
export function isSettled(watch: Watch): boolean {
  return watch.ordered === 'nothing' && !isOutstanding(watch);
}

/** Takes a request of either protocol. */
export function judge(watch: Watch | undefined, request: AdsRequest): Judgement {
  if (request.rejection !== null) return reject(watch, request.nonce, request.rejection);
  return request.protocol === 'sotw' ? judgeSotw(watch, request) : judgeDelta(watch, request);
}

/** S1, D1: nothing else of a rejecting request counts. It settles the response that it names, if that is the last one. */
function reject(watch: Watch | undefined, nonce: string, reason: string): Judgement {
  if (watch === undefined) return { watch, verdict: 'rejection' };
  const settled = nonce === watch.nonceSent ? { nonceRejected: nonce } : {};
  return { watch: { ...watch, ...settled, lastError: reason }, verdict: 'rejection' };
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
  const byName = isByName(request.typeUrl);
  const named = request.names.filter((name) => name !== '' && name !== '*');
  const names = named.length === request.names.length ? request.names : named;
  if (byName) return { wildcard: false, names };
  const everything = request.names.length === 0 && (before === undefined || before.wildcard);
  return { wildcard: everything || request.names.includes('*'), names };
}

function judgeSotw(watch: Watch | undefined, request: SotwRequest): Judgement {
  // S3: a client without a nonce begins anew; one that brings another server's nonce begins here.
  if (watch === undefined || request.nonce === '') return subscribeAnew(watch, subscriptionOf(request, undefined));
  // S4 goes before S2: a stale request is ignored altogether, and the answer to the last response says all again.
  if (request.nonce !== watch.nonceSent) return { watch, verdict: 'stale' };
  return change(acknowledge(watch), subscriptionOf(request, watch), isByName(request.typeUrl));
}

function subscribeAnew(watch: Watch | undefined, wanted: Subscription): Judgement {
  // S2, also as a very first request.
  if (!wanted.wildcard && wanted.names.length === 0) {
    return { watch: watch === undefined ? undefined : unsubscribed(watch), verdict: 'unsubscription' };
  }
  return {
    watch: { ...(watch ?? freshWatch), ...wanted, names: unique(wanted.names), lastError: '', due: everythingDue },
    verdict: 'subscription',
  };
}

function unsubscribed(watch: Watch): Watch {
  return { ...watch, wildcard: false, names: [], due: nothingDue };
}

/** S2, S5–S9: the request answers the last response, and may change the subscription. */
function change(watch: Watch, wanted: Subscription, byName: boolean): Judgement {
  if (!wanted.wildcard && wanted.names.length === 0) {
    return { watch: unsubscribed(watch), verdict: isSubscribed(watch) ? 'unsubscription' : 'acknowledgement' };
  }
  if (wanted.wildcard === watch.wildcard && isSameList(watch.names, wanted.names)) {
    return { watch, verdict: 'acknowledgement' };
  }
  const before = new Set(watch.names);
  const names = unique(wanted.names);
  const added = names.filter((name) => !before.has(name));
  const isSame = added.length === 0 && names.length === before.size && wanted.wildcard === watch.wildcard;
  if (isSame) return { watch, verdict: 'acknowledgement' };
  const next: Watch = { ...watch, ...wanted, names, due: dueWithin(watch.due, names) };
  if (wanted.wildcard !== watch.wildcard) return { watch: { ...next, due: everythingDue }, verdict: 'subscription' };
  if (added.length === 0) return { watch: next, verdict: 'unsubscription' };
  // A response of a type that is sent as a whole must hold the whole subscription.
  const due = byName ? { ...next.due, asked: [...next.due.asked, ...added] } : { ...next.due, all: true };
  return { watch: { ...next, due }, verdict: 'subscription' };
}

/** What is still wanted of what was due. */
function dueWithin(due: Due, names: readonly string[]): Due {
  if (due.asked.length === 0) return due;
  const wanted = new Set(names);
  return { ...due, asked: due.asked.filter((name) => wanted.has(name)) };
}

// ---- delta

function judgeDelta(watch: Watch | undefined, request: DeltaRequest): Judgement {
  if (watch === undefined) return firstDelta(request);
  if (request.nonce !== '' && request.nonce !== watch.nonceSent) return { watch, verdict: 'stale' };
  return changeDelta(request.nonce === '' ? watch : acknowledge(watch), request);
}

/** D2. The versions that a client brings are not compared: all is sent again; what is gone is told (§7.4). */
function firstDelta(request: DeltaRequest): Judgement {
  const refused = new Set(request.unsubscribe);
  const wanted = (names: readonly string[]): string[] =>
    unique(names.filter((name) => isName(name) && !refused.has(name)));
  const wildcard =
    !isByName(request.typeUrl) &&
    (request.subscribe.length === 0 || request.subscribe.includes('*')) &&
    !refused.has('*');
  const names = wanted(wildcard ? request.subscribe : [...request.subscribe, ...request.known]);
  const subscribed = wildcard || names.length > 0;
  const due: Due = { all: subscribed, asked: wildcard ? wanted(request.known) : [], changed: false };
  return {
    watch: { ...freshWatch, wildcard, names, due },
    verdict: subscribed ? 'subscription' : 'unsubscription',
  };
}

/** D4. A name that is both subscribed to and unsubscribed from is not subscribed to. */
function changeDelta(watch: Watch, request: DeltaRequest): Judgement {
  if (request.subscribe.length === 0 && request.unsubscribe.length === 0) {
    return { watch, verdict: request.nonce === '' ? 'misuse' : 'acknowledgement' };
  }
  const removed = new Set(request.unsubscribe);
  const before = new Set(watch.names);
  const added = unique(request.subscribe.filter((name) => isName(name) && !before.has(name) && !removed.has(name)));
  const asksForAll = !isByName(request.typeUrl) && request.subscribe.includes('*');
  const wildcard = (watch.wildcard || asksForAll) && !removed.has('*');
  const names = [...watch.names.filter((name) => !removed.has(name)), ...added];
  const isSame = added.length === 0 && names.length === before.size && wildcard === watch.wildcard;
  if (isSame) return { watch, verdict: request.nonce === '' ? 'misuse' : 'acknowledgement' };
  const asked = [...watch.due.asked.filter((name) => !removed.has(name)), ...added];
  const due: Due = { ...watch.due, asked, all: watch.due.all || (wildcard && !watch.wildcard) };
  const next: Watch = { ...watch, wildcard, names, due };
  if (!isSubscribed(next)) return { watch: unsubscribed(next), verdict: 'unsubscription' };
  const isMore = added.length > 0 || (wildcard && !watch.wildcard);
  return { watch: next, verdict: isMore ? 'subscription' : 'unsubscription' };
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
  return watch.ordered === 'changes' ? watch : withChange(watch);
}

/** The client's word on the last response is no longer waited for. */
export function withoutPatience(watch: Watch): Watch {
  return isBehind(watch) && isOutstanding(watch) ? { ...watch, nonceOverdue: watch.nonceSent } : watch;
}

/** The stream has sent a response. */
export function withResponse(watch: Watch, sent: { nonce: string; version: string; sentAt: number }): Watch {
  return { ...watch, ordered: 'nothing', nonceSent: sent.nonce, versionSent: sent.version, sentAt: sent.sentAt };
}

/** The stream had nothing to send. */
export function withoutResponse(watch: Watch): Watch {
  return { ...watch, ordered: 'nothing' };
}

/**
 * What may be ordered now, in push order. A pushed type waits while one before it in that order has a change that
 * cannot go yet: a route must not arrive before the cluster that it leads to.
 */
export function nextOrders(watches: Watches): { watches: Watches; orders: ResponseOrder[] } {
  const orders: ResponseOrder[] = [];
  let next = watches;
  let isHeld = false;
  for (const typeUrl of inPushOrder(Object.keys(watches))) {
    const watch = watches[typeUrl]!;
    const changed = watch.due.changed && !isOutstanding(watch) && !isHeld;
    const { all, asked } = watch.due;
    if (watch.ordered === 'nothing' && (all || asked.length > 0 || changed)) {
      orders.push({ typeUrl, names: watch.wildcard ? '*' : watch.names, all, asked, changed: changed && !all });
      const due = { ...nothingDue, changed: watch.due.changed && !changed && !all };
      next = { ...next, [typeUrl]: { ...watch, due, ordered: all || changed ? 'changes' : 'names' } };
    }
    isHeld ||= next[typeUrl]!.due.changed;
  }
  return { watches: next, orders };
}

// ---- lists of names

function isName(name: string): boolean {
  return name !== '' && name !== '*';
}

function unique(names: string[]): string[] {
  const set = new Set(names);
  return set.size === names.length ? names : [...set];
}

/** The common case of an acknowledgement: the client lists the names as it did before. */
function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, i) => name === other[i]);
}
