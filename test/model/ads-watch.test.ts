/** The rules of spec/discovery.md §7.3 (S), §7.4 (D) and the rows of §7.6 that are about one type of one stream. */
import { describe, expect, test } from 'vitest';
import type {
  AdsRequest,
  DeltaRequest,
  ResponseOrder,
  SotwRequest,
} from '../../machines/discovery/xds/ads-protocol.ts';
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  routeType,
} from '../../machines/discovery/xds/ads-types.ts';
import {
  classify,
  isOutstanding,
  isSubscribed,
  nextOrders,
  type RequestClass,
  type Rules,
  type Watch,
  type Watches,
  withChange,
  withNewClusters,
  withoutResponse,
  withResponse,
} from '../../machines/discovery/xds/ads-watch.ts';

/** A stream from the perspective of its connection, with a source that responds to every order. */
class Stream {
  watches: Watches = {};
  rules: Rules = { acceptsLateNames: true };
  /** Nonces that were sent, newest last. */
  readonly nonces: string[] = [];

  request(request: AdsRequest): { requestClass: RequestClass; orders: readonly ResponseOrder[] } {
    const { watch, requestClass } = classify(this.watches[request.typeUrl], request, this.rules);
    if (watch !== undefined) this.watches = { ...this.watches, [request.typeUrl]: watch };
    return { requestClass, orders: this.order() };
  }

  push(...types: string[]): readonly ResponseOrder[] {
    for (const type of types) this.watches = { ...this.watches, [type]: withChange(this.watches[type]!) };
    return this.order();
  }

  /** Orders what is due; each order gets its response at once. */
  order(): readonly ResponseOrder[] {
    const { watches, orders } = nextOrders(this.watches);
    this.watches = watches;
    for (const { typeUrl } of orders) {
      const nonce = `n${this.nonces.length + 1}`;
      this.nonces.push(nonce);
      this.watches = {
        ...this.watches,
        [typeUrl]: withResponse(this.watches[typeUrl]!, { nonce, version: `v${this.nonces.length}`, sentAt: 1 }),
      };
    }
    return orders;
  }

  watch(typeUrl: string): Watch {
    return this.watches[typeUrl]!;
  }
}

const sotw = (typeUrl: string, names: string[], nonce = '', rejection: string | null = null): SotwRequest => ({
  protocol: 'sotw',
  typeUrl,
  nonce,
  names,
  rejection,
});

const delta = (typeUrl: string, request: Partial<DeltaRequest> = {}): DeltaRequest => ({
  protocol: 'delta',
  typeUrl,
  nonce: '',
  subscribe: [],
  unsubscribe: [],
  known: [],
  knownVersions: [],
  rejection: null,
  ...request,
});

const all = (typeUrl: string, names: string[] | '*'): ResponseOrder => ({
  typeUrl,
  names,
  all: true,
  asked: [],
  changed: false,
});
const asked = (typeUrl: string, names: string[], some: string[]): ResponseOrder => ({
  typeUrl,
  names,
  all: false,
  asked: some,
  changed: false,
});
const changed = (typeUrl: string, names: string[] | '*'): ResponseOrder => ({
  typeUrl,
  names,
  all: false,
  asked: [],
  changed: true,
});

/** A stream whose client has subscribed to `names` and acknowledged the response, n1. */
function settled(typeUrl: string, names: string[]): Stream {
  const stream = new Stream();
  stream.request(sotw(typeUrl, names));
  stream.request(sotw(typeUrl, names, 'n1'));
  return stream;
}

function settledDelta(typeUrl: string, subscribe: string[]): Stream {
  const stream = new Stream();
  stream.request(delta(typeUrl, { subscribe }));
  stream.request(delta(typeUrl, { nonce: 'n1' }));
  return stream;
}

describe('a state-of-the-world request', () => {
  test('row 1: a first CDS request without names receives everything (S3)', () => {
    expect(new Stream().request(sotw(clusterType, []))).toEqual({
      requestClass: 'subscription',
      orders: [all(clusterType, '*')],
    });
  });

  test('row 2: an acknowledgement gets no response and is recorded (S6)', () => {
    const stream = new Stream();
    stream.request(sotw(clusterType, []));
    expect(isOutstanding(stream.watch(clusterType))).toBe(true);
    expect(stream.request(sotw(clusterType, [], 'n1'))).toEqual({ requestClass: 'acknowledgement', orders: [] });
    expect(stream.watch(clusterType)).toMatchObject({ nonceAcked: 'n1', versionAcked: 'v1', lastError: '' });
    expect(isOutstanding(stream.watch(clusterType))).toBe(false);
  });

  test('row 3: a rejection gets no response and keeps the acknowledged version (S1)', () => {
    const stream = settled(clusterType, []);
    stream.push(clusterType);
    const names = ['another', 'list'];
    expect(stream.request(sotw(clusterType, names, 'n2', 'bad cluster'))).toEqual({
      requestClass: 'rejection',
      orders: [],
    });
    expect(stream.watch(clusterType)).toMatchObject({
      wildcard: true,
      names: [],
      nonceSent: 'n2',
      nonceAcked: 'n1',
      nonceRejected: 'n2',
      lastError: 'bad cluster',
    });
  });

  test('a request with the rejected version accepts it after all, and one with an earlier version does not', () => {
    const stream = new Stream();
    stream.request(sotw(extensionType, ['a']));
    stream.request({ ...sotw(extensionType, ['a'], 'n1', 'no module') });
    expect(stream.watch(extensionType)).toMatchObject({ nonceAcked: '', lastError: 'no module' });
    stream.request({ ...sotw(extensionType, ['a'], 'n1'), version: 'v0' });
    expect(stream.watch(extensionType)).toMatchObject({ nonceAcked: '', lastError: 'no module' });
    stream.request({ ...sotw(extensionType, ['a'], 'n1'), version: 'v1' });
    expect(stream.watch(extensionType)).toMatchObject({ nonceAcked: 'n1', versionAcked: 'v1', lastError: '' });
  });

  test('row 4: a change after a rejection is pushed, and its acknowledgement clears the rejection', () => {
    const stream = settled(clusterType, []);
    stream.push(clusterType);
    stream.request(sotw(clusterType, [], 'n2', 'bad cluster'));
    expect(stream.push(clusterType)).toEqual([changed(clusterType, '*')]);
    stream.request(sotw(clusterType, [], 'n3'));
    expect(stream.watch(clusterType)).toMatchObject({ nonceAcked: 'n3', lastError: '' });
  });

  test('row 5: an acknowledgement of a response that is not the last one is ignored (S4)', () => {
    const stream = settled(endpointType, ['a']);
    stream.push(endpointType);
    const before = stream.watch(endpointType);
    expect(stream.request(sotw(endpointType, ['a', 'b'], 'n1'))).toEqual({ requestClass: 'stale', orders: [] });
    expect(stream.request(sotw(endpointType, [], 'n1'))).toEqual({ requestClass: 'stale', orders: [] });
    expect(stream.watch(endpointType)).toBe(before);
  });

  test('row 6: names added by an acknowledgement are sent alone (S8)', () => {
    const stream = new Stream();
    stream.request(sotw(endpointType, ['a', 'b']));
    expect(stream.request(sotw(endpointType, ['a', 'b', 'c'], 'n1'))).toEqual({
      requestClass: 'subscription',
      orders: [asked(endpointType, ['a', 'b', 'c'], ['c'])],
    });
    expect(stream.watch(endpointType).nonceAcked).toBe('n1');
  });

  test('replaced names receive the new resources', () => {
    expect(settled(routeType, ['80', '81']).request(sotw(routeType, ['82', '80'], 'n1')).orders).toEqual([
      asked(routeType, ['82', '80'], ['82']),
    ]);
  });

  test('row 7: removed names get no response (S7)', () => {
    const stream = settled(endpointType, ['a', 'b', 'c']);
    expect(stream.request(sotw(endpointType, ['a'], 'n1'))).toEqual({ requestClass: 'unsubscription', orders: [] });
    expect(stream.watch(endpointType).names).toEqual(['a']);
  });

  test('row 8: EDS without names ends the subscription, and no change is pushed (S2)', () => {
    const stream = settled(endpointType, ['a']);
    expect(stream.request(sotw(endpointType, [], 'n1'))).toEqual({ requestClass: 'unsubscription', orders: [] });
    expect(isSubscribed(stream.watch(endpointType))).toBe(false);
    expect(stream.push(endpointType)).toEqual([]);
  });

  test('EDS without names as a very first request leaves no watch (S2)', () => {
    const stream = new Stream();
    expect(stream.request(sotw(endpointType, []))).toEqual({ requestClass: 'unsubscription', orders: [] });
    expect(stream.watches).toEqual({});
  });

  test("row 9: a first request with another server's nonce is served like any first request (S3)", () => {
    expect(new Stream().request(sotw(endpointType, ['a', 'b'], 'elsewhere')).orders).toEqual([
      all(endpointType, ['a', 'b']),
    ]);
  });

  test('row 11: a name added before the acknowledgement is sent alone', () => {
    const stream = new Stream();
    stream.request(sotw(routeType, ['80']));
    expect(stream.request(sotw(routeType, ['80', '81'], 'n1')).orders).toEqual([
      asked(routeType, ['80', '81'], ['81']),
    ]);
    // n2 was sent before the acknowledgement of n1 arrived.
    expect(stream.request(sotw(routeType, ['80', '81'], 'n1')).requestClass).toBe('stale');
    expect(stream.request(sotw(routeType, ['80', '81'], 'n2')).requestClass).toBe('acknowledgement');
  });

  test('an empty nonce restarts the subscription, and everything is sent again (S3)', () => {
    expect(settled(endpointType, ['a', 'b']).request(sotw(endpointType, ['b'])).orders).toEqual([
      all(endpointType, ['b']),
    ]);
  });

  test('equal sets of names in another order or with duplicates are no change', () => {
    const stream = settled(endpointType, ['a', 'b', 'c']);
    expect(stream.request(sotw(endpointType, ['c', 'b', 'b', 'a'], 'n1'))).toEqual({
      requestClass: 'acknowledgement',
      orders: [],
    });
  });

  test('a first CDS request with names subscribes to these', () => {
    expect(new Stream().request(sotw(clusterType, ['a', 'b'])).orders).toEqual([all(clusterType, ['a', 'b'])]);
  });

  test('a CDS request with more names receives the whole subscription', () => {
    expect(settled(clusterType, ['a']).request(sotw(clusterType, ['a', 'b'], 'n1')).orders).toEqual([
      all(clusterType, ['a', 'b']),
    ]);
  });

  test('a CDS request with fewer names gets no response', () => {
    expect(settled(clusterType, ['a', 'b']).request(sotw(clusterType, ['a'], 'n1')).orders).toEqual([]);
  });

  test('S9: names that replace a wildcard receive a response', () => {
    expect(settled(listenerType, []).request(sotw(listenerType, ['a'], 'n1')).orders).toEqual([
      all(listenerType, ['a']),
    ]);
  });

  test('the star subscribes to everything, also beside names', () => {
    expect(settled(listenerType, ['a']).request(sotw(listenerType, ['a', '*'], 'n1')).orders).toEqual([
      all(listenerType, '*'),
    ]);
  });

  test.each([clusterType, listenerType, routeType, endpointType])(
    'the list of one empty name ends a subscription and is no wildcard: %s',
    (typeUrl) => {
      const stream = settled(typeUrl, ['a']);
      expect(stream.request(sotw(typeUrl, [''], 'n1'))).toEqual({ requestClass: 'unsubscription', orders: [] });
      expect(stream.push(typeUrl)).toEqual([]);
      expect(new Stream().request(sotw(typeUrl, [''])).orders).toEqual([]);
    },
  );

  test('an empty list after a list of names is not a wildcard', () => {
    const stream = settled(clusterType, ['a']);
    expect(stream.request(sotw(clusterType, [], 'n1')).orders).toEqual([]);
    expect(isSubscribed(stream.watch(clusterType))).toBe(false);
  });

  test('after an unsubscription the last nonce still counts', () => {
    const stream = settled(endpointType, ['a']);
    stream.request(sotw(endpointType, [''], 'n1'));
    expect(stream.request(sotw(endpointType, ['a'], 'other')).requestClass).toBe('stale');
    expect(stream.request(sotw(endpointType, ['a'], 'n1')).orders).toEqual([asked(endpointType, ['a'], ['a'])]);
  });

  test('a rejection without a previous response leaves no watch', () => {
    const stream = new Stream();
    expect(stream.request(sotw(clusterType, [], 'n1', 'no'))).toEqual({ requestClass: 'rejection', orders: [] });
    expect(stream.watches).toEqual({});
  });

  test('a rejection of an earlier response does not settle the last one', () => {
    const stream = settled(clusterType, []);
    stream.push(clusterType);
    stream.request(sotw(clusterType, [], 'n1', 'late'));
    expect(isOutstanding(stream.watch(clusterType))).toBe(true);
  });
});

describe('a delta request', () => {
  test('row 1, D2: a first CDS request that subscribes to nothing subscribes to everything', () => {
    expect(new Stream().request(delta(clusterType)).orders).toEqual([all(clusterType, '*')]);
  });

  test('D2: a first request may list names', () => {
    expect(new Stream().request(delta(clusterType, { subscribe: ['a'] })).orders).toEqual([all(clusterType, ['a'])]);
  });

  test('D2: resources that a client has from another server are subscribed to and looked up', () => {
    expect(new Stream().request(delta(endpointType, { subscribe: ['a'], known: ['a', 'b'] })).orders).toEqual([
      { ...all(endpointType, ['a', 'b']), returning: true },
    ]);
    expect(new Stream().request(delta(clusterType, { known: ['gone'] })).orders).toEqual([
      { ...all(clusterType, '*'), asked: ['gone'], returning: true },
    ]);
  });

  test('initial versions apply to the first response only', () => {
    const has = { names: ['a', 'b'], versions: ['1', '2'] };
    const known = { known: has.names, knownVersions: has.versions };
    const stream = new Stream();
    expect(stream.request(delta(clusterType, known)).orders).toEqual([
      { ...all(clusterType, '*'), asked: ['a', 'b'], has },
    ]);
    stream.request(delta(clusterType, { nonce: 'n1', ...known }));
    expect(stream.push(clusterType)).toEqual([changed(clusterType, '*')]);
  });

  test('row 21: a star that is subscribed to and unsubscribed from in one request has no effect', () => {
    const stream = new Stream();
    const request = delta(clusterType, { subscribe: ['*'], unsubscribe: ['*'] });
    expect(stream.request(request)).toEqual({ requestClass: 'unsubscription', orders: [] });
    expect(stream.push(clusterType)).toEqual([]);
  });

  test('row 2: an acknowledgement gets no response', () => {
    const stream = new Stream();
    stream.request(delta(endpointType, { subscribe: ['a'] }));
    expect(stream.request(delta(endpointType, { nonce: 'n1' }))).toEqual({
      requestClass: 'acknowledgement',
      orders: [],
    });
    expect(stream.watch(endpointType)).toMatchObject({ nonceAcked: 'n1', versionAcked: 'v1' });
  });

  test('row 3, D1: a rejection gets no response', () => {
    const stream = new Stream();
    stream.request(delta(endpointType, { subscribe: ['a'] }));
    const request = delta(endpointType, { nonce: 'n1', rejection: 'bad' });
    expect(stream.request(request)).toEqual({ requestClass: 'rejection', orders: [] });
    expect(stream.watch(endpointType)).toMatchObject({ names: ['a'], nonceAcked: '', lastError: 'bad' });
  });

  test('may reject and subscribe in one message, and the subscription gets one response', () => {
    const stream = new Stream();
    stream.request(delta(endpointType, { subscribe: ['a'] }));
    const request = delta(endpointType, { nonce: 'n1', rejection: 'bad', subscribe: ['b'], unsubscribe: ['a'] });
    expect(stream.request(request)).toEqual({
      requestClass: 'rejection',
      orders: [asked(endpointType, ['b'], ['b'])],
    });
    expect(stream.watch(endpointType)).toMatchObject({ names: ['b'], nonceAcked: '', lastError: 'bad' });
  });

  test('row 4: a change after a rejection is pushed', () => {
    const stream = new Stream();
    stream.request(delta(endpointType, { subscribe: ['a'] }));
    stream.request(delta(endpointType, { nonce: 'n1', rejection: 'bad' }));
    expect(stream.push(endpointType)).toEqual([changed(endpointType, ['a'])]);
  });

  test('row 5, D3: an acknowledgement of an earlier response does not count', () => {
    const stream = settledDelta(endpointType, ['a']);
    stream.push(endpointType);
    expect(stream.request(delta(endpointType, { nonce: 'n1' }))).toEqual({ requestClass: 'stale', orders: [] });
    expect(isOutstanding(stream.watch(endpointType))).toBe(true);
  });

  test('may acknowledge an earlier response and subscribe in one message', () => {
    const stream = settledDelta(endpointType, ['a']);
    stream.push(endpointType);
    const request = delta(endpointType, { nonce: 'n1', subscribe: ['b'] });
    expect(stream.request(request)).toEqual({
      requestClass: 'stale',
      orders: [asked(endpointType, ['a', 'b'], ['b'])],
    });
    expect(stream.request(delta(endpointType, { nonce: 'n1', unsubscribe: ['a', 'b'] })).requestClass).toBe('stale');
    expect(isSubscribed(stream.watch(endpointType))).toBe(false);
  });

  test('row 5, D3: an acknowledgement of an earlier response is ignored if the client is a plain cache', () => {
    const stream = settledDelta(endpointType, ['a']);
    stream.rules = { acceptsLateNames: false };
    stream.push(endpointType);
    const request = delta(endpointType, { nonce: 'n1', subscribe: ['b'] });
    expect(stream.request(request)).toEqual({ requestClass: 'stale', orders: [] });
    expect(stream.watch(endpointType).names).toEqual(['a']);
  });

  test('rows 6 and 11, D4: added names are sent alone, acknowledged or not', () => {
    expect(settledDelta(endpointType, ['a']).request(delta(endpointType, { subscribe: ['b'] })).orders).toEqual([
      asked(endpointType, ['a', 'b'], ['b']),
    ]);
    const stream = new Stream();
    stream.request(delta(endpointType, { subscribe: ['a'] }));
    expect(stream.request(delta(endpointType, { subscribe: ['b'] })).orders).toEqual([
      asked(endpointType, ['a', 'b'], ['b']),
    ]);
    expect(stream.request(delta(endpointType, { nonce: 'n2', subscribe: ['c'] })).orders).toEqual([
      asked(endpointType, ['a', 'b', 'c'], ['c']),
    ]);
  });

  test('D4: a name added to a wildcard subscription is sent alone', () => {
    const stream = settledDelta(clusterType, []);
    expect(stream.request(delta(clusterType, { subscribe: ['a'] })).orders).toEqual([
      { typeUrl: clusterType, names: '*', all: false, asked: ['a'], changed: false },
    ]);
  });

  test('row 7: an unsubscription gets no response', () => {
    const stream = settledDelta(endpointType, ['a', 'b']);
    const request = delta(endpointType, { unsubscribe: ['a'] });
    expect(stream.request(request)).toEqual({ requestClass: 'unsubscription', orders: [] });
    expect(stream.watch(endpointType).names).toEqual(['b']);
  });

  test('row 8: nothing is pushed after all names are unsubscribed', () => {
    const stream = settledDelta(clusterType, []);
    expect(stream.request(delta(clusterType, { unsubscribe: ['*'] })).requestClass).toBe('unsubscription');
    expect(stream.push(clusterType)).toEqual([]);
  });

  test('a later wildcard subscription receives everything', () => {
    expect(settledDelta(clusterType, ['a']).request(delta(clusterType, { subscribe: ['*'] })).orders).toEqual([
      all(clusterType, '*'),
    ]);
  });

  test('D5: a request without changes and without a nonce is ignored', () => {
    const stream = settledDelta(endpointType, ['a']);
    expect(stream.request(delta(endpointType, { subscribe: ['a'] }))).toEqual({ requestClass: 'misuse', orders: [] });
    expect(stream.request(delta(endpointType))).toEqual({ requestClass: 'misuse', orders: [] });
  });

  test('a star has no effect for types that require names', () => {
    const stream = new Stream();
    expect(stream.request(delta(endpointType, { subscribe: ['*'] })).orders).toEqual([]);
    expect(isSubscribed(stream.watch(endpointType))).toBe(false);
  });
});

describe('a push', () => {
  test('waits for the acknowledgement of the last response, and waiting pushes are merged', () => {
    const stream = new Stream();
    stream.request(sotw(clusterType, []));
    expect(stream.push(clusterType)).toEqual([]);
    expect(stream.push(clusterType)).toEqual([]);
    expect(stream.request(sotw(clusterType, [], 'n1')).orders).toEqual([changed(clusterType, '*')]);
    expect(stream.request(sotw(clusterType, [], 'n2')).orders).toEqual([]);
  });

  test('is sent after a rejection as well', () => {
    const stream = new Stream();
    stream.request(delta(clusterType));
    stream.push(clusterType);
    expect(stream.request(delta(clusterType, { nonce: 'n1', rejection: 'bad' })).orders).toEqual([
      changed(clusterType, '*'),
    ]);
  });

  test('serves clusters, endpoints, listeners, routes in this order', () => {
    const stream = new Stream();
    const types = [routeType, 'a.type.of/its.own', listenerType, clusterType, endpointType];
    for (const type of types) stream.request(sotw(type, ['a']));
    for (const type of types) stream.request(sotw(type, ['a'], stream.watch(type).nonceSent));
    expect(stream.push(...types).map(({ typeUrl }) => typeUrl)).toEqual([
      clusterType,
      endpointType,
      listenerType,
      routeType,
      'a.type.of/its.own',
    ]);
  });

  test('of routes waits while a push of clusters waits', () => {
    const stream = settled(routeType, ['80']);
    stream.request(sotw(clusterType, []));
    expect(stream.push(clusterType, routeType)).toEqual([]);
    expect(stream.request(sotw(clusterType, [], 'n2')).orders).toEqual([
      changed(clusterType, '*'),
      changed(routeType, ['80']),
    ]);
  });

  test('of clusters that waits does not delay the endpoints of the clusters sent before it', () => {
    const stream = settled(endpointType, ['a']);
    stream.request(sotw(clusterType, []));
    stream.request(sotw(clusterType, [], 'n2'));
    // A cluster is updated in place while endpoints are not acknowledged: the client warms it until they are sent again.
    expect(stream.push(clusterType, endpointType)).toHaveLength(2);
    stream.watches = { ...stream.watches, [endpointType]: withNewClusters(stream.watch(endpointType)) };
    expect(stream.push(clusterType, endpointType)).toEqual([]);
    // Not the newest ones: those are of clusters that the client was not sent yet.
    expect(stream.request(sotw(endpointType, ['a'], 'n4')).orders).toEqual([
      { ...changed(endpointType, ['a']), again: 'v4' },
    ]);
    expect(stream.request(sotw(clusterType, [], 'n3')).orders).toEqual([changed(clusterType, '*')]);
    expect(stream.request(sotw(endpointType, ['a'], 'n5')).orders).toEqual([changed(endpointType, ['a'])]);
  });

  test('does not delay the response to a subscription', () => {
    const stream = settled(routeType, ['80']);
    stream.request(sotw(clusterType, []));
    stream.push(clusterType);
    expect(stream.request(sotw(routeType, ['80', '81'], 'n1')).orders).toEqual([
      asked(routeType, ['80', '81'], ['81']),
    ]);
  });

  test('that waits is kept when a name is added', () => {
    const stream = new Stream();
    stream.request(delta(endpointType, { subscribe: ['a'] }));
    stream.push(endpointType);
    expect(stream.request(delta(endpointType, { subscribe: ['b'] })).orders).toEqual([
      asked(endpointType, ['a', 'b'], ['b']),
    ]);
    expect(stream.request(delta(endpointType, { nonce: 'n2' })).orders).toEqual([changed(endpointType, ['a', 'b'])]);
  });
});

describe('a pending order', () => {
  const rules: Rules = { acceptsLateNames: true };
  const ordered = (watch: Partial<Watch> = {}): Watches => {
    const { watches } = nextOrders({
      [endpointType]: { ...classify(undefined, sotw(endpointType, ['a']), rules).watch!, ...watch },
    });
    return watches;
  };

  test('delays another one of its type until its outcome is known', () => {
    const waiting = { [endpointType]: withChange(ordered()[endpointType]!) };
    expect(nextOrders(waiting).orders).toEqual([]);
    const skipped = { [endpointType]: withoutResponse(waiting[endpointType]!) };
    expect(nextOrders(skipped).orders).toEqual([changed(endpointType, ['a'])]);
  });

  test('for changes includes the endpoints of new clusters, unlike one for names', () => {
    expect(withNewClusters(ordered()[endpointType]!).due.warming).toBeUndefined();
    const byName = ordered({ due: { all: false, asked: ['a'], changed: false } });
    expect(withNewClusters(byName[endpointType]!).due.warming).toBe(true);
  });

  test('of a client that restarts its subscription repeatedly is stored once', () => {
    const again = classify(ordered()[endpointType], sotw(endpointType, ['a']), rules).watch!;
    expect(nextOrders({ [endpointType]: again }).orders).toEqual([]);
  });
});
