/** The rules of SotW (S), of delta (D), and the edge cases of one type of one stream. */
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
    return { requestClass, orders: this.takeOrders() };
  }

  push(...types: string[]): readonly ResponseOrder[] {
    for (const type of types) this.watches = { ...this.watches, [type]: withChange(this.watches[type]!) };
    return this.takeOrders();
  }

  /** Gives due orders; each gets its response immediately. */
  takeOrders(): readonly ResponseOrder[] {
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

const sotwRequest = (typeUrl: string, names: string[], nonce = '', rejection: string | null = null): SotwRequest => ({
  protocol: 'sotw',
  typeUrl,
  nonce,
  names,
  rejection,
});

const deltaRequest = (typeUrl: string, request: Partial<DeltaRequest> = {}): DeltaRequest => ({
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

const orderForAll = (typeUrl: string, names: string[] | '*'): ResponseOrder => ({
  typeUrl,
  names,
  all: true,
  requested: [],
  changed: false,
});
const orderFor = (typeUrl: string, names: string[], requestedNames: string[]): ResponseOrder => ({
  typeUrl,
  names,
  all: false,
  requested: requestedNames,
  changed: false,
});
const changeOrder = (typeUrl: string, names: string[] | '*'): ResponseOrder => ({
  typeUrl,
  names,
  all: false,
  requested: [],
  changed: true,
});

/** A stream whose client has subscribed to `names` and acknowledged the response `n1`. */
function createSettledStream(typeUrl: string, names: string[]): Stream {
  const stream = new Stream();
  stream.request(sotwRequest(typeUrl, names));
  stream.request(sotwRequest(typeUrl, names, 'n1'));
  return stream;
}

function settledDelta(typeUrl: string, subscribe: string[]): Stream {
  const stream = new Stream();
  stream.request(deltaRequest(typeUrl, { subscribe }));
  stream.request(deltaRequest(typeUrl, { nonce: 'n1' }));
  return stream;
}

describe('a state-of-the-world request', () => {
  test('receives everything if it is the first CDS request and has no names (row 1, S3)', () => {
    expect(new Stream().request(sotwRequest(clusterType, []))).toEqual({
      requestClass: 'subscription',
      orders: [orderForAll(clusterType, '*')],
    });
  });

  test('gets no response if it is an ACK, which is recorded (row 2, S6)', () => {
    const stream = new Stream();
    stream.request(sotwRequest(clusterType, []));
    expect(isOutstanding(stream.watch(clusterType))).toBe(true);
    expect(stream.request(sotwRequest(clusterType, [], 'n1'))).toEqual({ requestClass: 'acknowledgement', orders: [] });
    expect(stream.watch(clusterType)).toMatchObject({ nonceAcked: 'n1', versionAcked: 'v1', lastError: '' });
    expect(isOutstanding(stream.watch(clusterType))).toBe(false);
  });

  test('gets no response if it is a NACK, and keeps the acknowledged version (row 3, S1)', () => {
    const stream = createSettledStream(clusterType, []);
    stream.push(clusterType);
    const names = ['another', 'list'];
    expect(stream.request(sotwRequest(clusterType, names, 'n2', 'bad cluster'))).toEqual({
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

  test('accepts a rejected version if it contains that version, but not if it contains an earlier one', () => {
    const stream = new Stream();
    stream.request(sotwRequest(extensionType, ['a']));
    stream.request({ ...sotwRequest(extensionType, ['a'], 'n1', 'no module') });
    expect(stream.watch(extensionType)).toMatchObject({ nonceAcked: '', lastError: 'no module' });
    stream.request({ ...sotwRequest(extensionType, ['a'], 'n1'), version: 'v0' });
    expect(stream.watch(extensionType)).toMatchObject({ nonceAcked: '', lastError: 'no module' });
    stream.request({ ...sotwRequest(extensionType, ['a'], 'n1'), version: 'v1' });
    expect(stream.watch(extensionType)).toMatchObject({ nonceAcked: 'n1', versionAcked: 'v1', lastError: '' });
  });

  test('clears a rejection if it acknowledges a change that was pushed after the rejection (row 4)', () => {
    const stream = createSettledStream(clusterType, []);
    stream.push(clusterType);
    stream.request(sotwRequest(clusterType, [], 'n2', 'bad cluster'));
    expect(stream.push(clusterType)).toEqual([changeOrder(clusterType, '*')]);
    stream.request(sotwRequest(clusterType, [], 'n3'));
    expect(stream.watch(clusterType)).toMatchObject({ nonceAcked: 'n3', lastError: '' });
  });

  test('is ignored if it acknowledges a response before the last one (row 5, S4)', () => {
    const stream = createSettledStream(endpointType, ['a']);
    stream.push(endpointType);
    const watchBefore = stream.watch(endpointType);
    expect(stream.request(sotwRequest(endpointType, ['a', 'b'], 'n1'))).toEqual({ requestClass: 'stale', orders: [] });
    expect(stream.request(sotwRequest(endpointType, [], 'n1'))).toEqual({ requestClass: 'stale', orders: [] });
    expect(stream.watch(endpointType)).toBe(watchBefore);
  });

  test('receives only the names that an ACK adds (row 6, S8)', () => {
    const stream = new Stream();
    stream.request(sotwRequest(endpointType, ['a', 'b']));
    expect(stream.request(sotwRequest(endpointType, ['a', 'b', 'c'], 'n1'))).toEqual({
      requestClass: 'subscription',
      orders: [orderFor(endpointType, ['a', 'b', 'c'], ['c'])],
    });
    expect(stream.watch(endpointType).nonceAcked).toBe('n1');
  });

  test('receives the new resources if it replaces names', () => {
    expect(
      createSettledStream(routeType, ['80', '81']).request(sotwRequest(routeType, ['82', '80'], 'n1')).orders,
    ).toEqual([orderFor(routeType, ['82', '80'], ['82'])]);
  });

  test('gets no response if it only removes names (row 7, S7)', () => {
    const stream = createSettledStream(endpointType, ['a', 'b', 'c']);
    expect(stream.request(sotwRequest(endpointType, ['a'], 'n1'))).toEqual({
      requestClass: 'unsubscription',
      orders: [],
    });
    expect(stream.watch(endpointType).names).toEqual(['a']);
  });

  test('ends the subscription if it is for EDS without names, and no change is pushed (row 8, S2)', () => {
    const stream = createSettledStream(endpointType, ['a']);
    expect(stream.request(sotwRequest(endpointType, [], 'n1'))).toEqual({ requestClass: 'unsubscription', orders: [] });
    expect(isSubscribed(stream.watch(endpointType))).toBe(false);
    expect(stream.push(endpointType)).toEqual([]);
  });

  test('leaves no watch if it is the first request of the stream and for EDS without names (S2)', () => {
    const stream = new Stream();
    expect(stream.request(sotwRequest(endpointType, []))).toEqual({ requestClass: 'unsubscription', orders: [] });
    expect(stream.watches).toEqual({});
  });

  test("is served as a first request if it has another server's nonce (row 9, S3)", () => {
    expect(new Stream().request(sotwRequest(endpointType, ['a', 'b'], 'elsewhere')).orders).toEqual([
      orderForAll(endpointType, ['a', 'b']),
    ]);
  });

  test('receives only the name that is added before the ACK (row 11)', () => {
    const stream = new Stream();
    stream.request(sotwRequest(routeType, ['80']));
    expect(stream.request(sotwRequest(routeType, ['80', '81'], 'n1')).orders).toEqual([
      orderFor(routeType, ['80', '81'], ['81']),
    ]);
    // n2 was sent before the acknowledgement of n1 arrived.
    expect(stream.request(sotwRequest(routeType, ['80', '81'], 'n1')).requestClass).toBe('stale');
    expect(stream.request(sotwRequest(routeType, ['80', '81'], 'n2')).requestClass).toBe('acknowledgement');
  });

  test('restarts the subscription if its nonce is empty, and receives everything again (S3)', () => {
    expect(createSettledStream(endpointType, ['a', 'b']).request(sotwRequest(endpointType, ['b'])).orders).toEqual([
      orderForAll(endpointType, ['b']),
    ]);
  });

  test('changes nothing if its names only have another order or duplicates', () => {
    const stream = createSettledStream(endpointType, ['a', 'b', 'c']);
    expect(stream.request(sotwRequest(endpointType, ['c', 'b', 'b', 'a'], 'n1'))).toEqual({
      requestClass: 'acknowledgement',
      orders: [],
    });
  });

  test('subscribes to its names if it is the first CDS request', () => {
    expect(new Stream().request(sotwRequest(clusterType, ['a', 'b'])).orders).toEqual([
      orderForAll(clusterType, ['a', 'b']),
    ]);
  });

  test('receives the whole subscription if it adds names to CDS', () => {
    expect(createSettledStream(clusterType, ['a']).request(sotwRequest(clusterType, ['a', 'b'], 'n1')).orders).toEqual([
      orderForAll(clusterType, ['a', 'b']),
    ]);
  });

  test('gets no response if it removes names from CDS', () => {
    expect(createSettledStream(clusterType, ['a', 'b']).request(sotwRequest(clusterType, ['a'], 'n1')).orders).toEqual(
      [],
    );
  });

  test('receives a response if its names replace a wildcard (S9)', () => {
    expect(createSettledStream(listenerType, []).request(sotwRequest(listenerType, ['a'], 'n1')).orders).toEqual([
      orderForAll(listenerType, ['a']),
    ]);
  });

  test('subscribes to everything if it contains a star, even with other names', () => {
    expect(
      createSettledStream(listenerType, ['a']).request(sotwRequest(listenerType, ['a', '*'], 'n1')).orders,
    ).toEqual([orderForAll(listenerType, '*')]);
  });

  test.each([clusterType, listenerType, routeType, endpointType])(
    'ends a subscription, and is no wildcard, if its only name is empty: %s',
    (typeUrl) => {
      const stream = createSettledStream(typeUrl, ['a']);
      expect(stream.request(sotwRequest(typeUrl, [''], 'n1'))).toEqual({ requestClass: 'unsubscription', orders: [] });
      expect(stream.push(typeUrl)).toEqual([]);
      expect(new Stream().request(sotwRequest(typeUrl, [''])).orders).toEqual([]);
    },
  );

  test('is no wildcard if its list of names is empty after a list with names', () => {
    const stream = createSettledStream(clusterType, ['a']);
    expect(stream.request(sotwRequest(clusterType, [], 'n1')).orders).toEqual([]);
    expect(isSubscribed(stream.watch(clusterType))).toBe(false);
  });

  test('must have the last nonce even after an unsubscription', () => {
    const stream = createSettledStream(endpointType, ['a']);
    stream.request(sotwRequest(endpointType, [''], 'n1'));
    expect(stream.request(sotwRequest(endpointType, ['a'], 'other')).requestClass).toBe('stale');
    expect(stream.request(sotwRequest(endpointType, ['a'], 'n1')).orders).toEqual([
      orderFor(endpointType, ['a'], ['a']),
    ]);
  });

  test('leaves no watch if it is a NACK without a previous response', () => {
    const stream = new Stream();
    expect(stream.request(sotwRequest(clusterType, [], 'n1', 'no'))).toEqual({ requestClass: 'rejection', orders: [] });
    expect(stream.watches).toEqual({});
  });

  test('does not settle the last response if it rejects an earlier one', () => {
    const stream = createSettledStream(clusterType, []);
    stream.push(clusterType);
    stream.request(sotwRequest(clusterType, [], 'n1', 'late'));
    expect(isOutstanding(stream.watch(clusterType))).toBe(true);
  });
});

describe('a delta request', () => {
  test('subscribes to everything if it is the first CDS request and subscribes to nothing (row 1, D2)', () => {
    expect(new Stream().request(deltaRequest(clusterType)).orders).toEqual([orderForAll(clusterType, '*')]);
  });

  test('subscribes to its names if it is the first CDS request (D2)', () => {
    expect(new Stream().request(deltaRequest(clusterType, { subscribe: ['a'] })).orders).toEqual([
      orderForAll(clusterType, ['a']),
    ]);
  });

  test('subscribes to and looks up resources that the client has from another server (D2)', () => {
    expect(new Stream().request(deltaRequest(endpointType, { subscribe: ['a'], known: ['a', 'b'] })).orders).toEqual([
      { ...orderForAll(endpointType, ['a', 'b']), returning: true },
    ]);
    expect(new Stream().request(deltaRequest(clusterType, { known: ['gone'] })).orders).toEqual([
      { ...orderForAll(clusterType, '*'), requested: ['gone'], returning: true },
    ]);
  });

  test('has initial versions that apply only to the first response', () => {
    const heldResources = { names: ['a', 'b'], versions: ['1', '2'] };
    const knownFields = { known: heldResources.names, knownVersions: heldResources.versions };
    const stream = new Stream();
    expect(stream.request(deltaRequest(clusterType, knownFields)).orders).toEqual([
      { ...orderForAll(clusterType, '*'), requested: ['a', 'b'], has: heldResources },
    ]);
    stream.request(deltaRequest(clusterType, { nonce: 'n1', ...knownFields }));
    expect(stream.push(clusterType)).toEqual([changeOrder(clusterType, '*')]);
  });

  test('has no effect if it subscribes to and unsubscribes from a star (row 21)', () => {
    const stream = new Stream();
    const request = deltaRequest(clusterType, { subscribe: ['*'], unsubscribe: ['*'] });
    expect(stream.request(request)).toEqual({ requestClass: 'unsubscription', orders: [] });
    expect(stream.push(clusterType)).toEqual([]);
  });

  test('gets no response if it is an ACK (row 2)', () => {
    const stream = new Stream();
    stream.request(deltaRequest(endpointType, { subscribe: ['a'] }));
    expect(stream.request(deltaRequest(endpointType, { nonce: 'n1' }))).toEqual({
      requestClass: 'acknowledgement',
      orders: [],
    });
    expect(stream.watch(endpointType)).toMatchObject({ nonceAcked: 'n1', versionAcked: 'v1' });
  });

  test('gets no response if it is a NACK (row 3, D1)', () => {
    const stream = new Stream();
    stream.request(deltaRequest(endpointType, { subscribe: ['a'] }));
    const request = deltaRequest(endpointType, { nonce: 'n1', rejection: 'bad' });
    expect(stream.request(request)).toEqual({ requestClass: 'rejection', orders: [] });
    expect(stream.watch(endpointType)).toMatchObject({ names: ['a'], nonceAcked: '', lastError: 'bad' });
  });

  test('gets one response if it is a NACK with a subscription', () => {
    const stream = new Stream();
    stream.request(deltaRequest(endpointType, { subscribe: ['a'] }));
    const request = deltaRequest(endpointType, { nonce: 'n1', rejection: 'bad', subscribe: ['b'], unsubscribe: ['a'] });
    expect(stream.request(request)).toEqual({
      requestClass: 'rejection',
      orders: [orderFor(endpointType, ['b'], ['b'])],
    });
    expect(stream.watch(endpointType)).toMatchObject({ names: ['b'], nonceAcked: '', lastError: 'bad' });
  });

  test('does not prevent the next push if it is a NACK (row 4)', () => {
    const stream = new Stream();
    stream.request(deltaRequest(endpointType, { subscribe: ['a'] }));
    stream.request(deltaRequest(endpointType, { nonce: 'n1', rejection: 'bad' }));
    expect(stream.push(endpointType)).toEqual([changeOrder(endpointType, ['a'])]);
  });

  test('is not counted as an ACK if it acknowledges an earlier response (row 5, D3)', () => {
    const stream = settledDelta(endpointType, ['a']);
    stream.push(endpointType);
    expect(stream.request(deltaRequest(endpointType, { nonce: 'n1' }))).toEqual({ requestClass: 'stale', orders: [] });
    expect(isOutstanding(stream.watch(endpointType))).toBe(true);
  });

  test('gets a response to its subscription even if it acknowledges an earlier response', () => {
    const stream = settledDelta(endpointType, ['a']);
    stream.push(endpointType);
    const request = deltaRequest(endpointType, { nonce: 'n1', subscribe: ['b'] });
    expect(stream.request(request)).toEqual({
      requestClass: 'stale',
      orders: [orderFor(endpointType, ['a', 'b'], ['b'])],
    });
    expect(stream.request(deltaRequest(endpointType, { nonce: 'n1', unsubscribe: ['a', 'b'] })).requestClass).toBe(
      'stale',
    );
    expect(isSubscribed(stream.watch(endpointType))).toBe(false);
  });

  test('is ignored if it acknowledges an earlier response of a plain cache client (row 5, D3)', () => {
    const stream = settledDelta(endpointType, ['a']);
    stream.rules = { acceptsLateNames: false };
    stream.push(endpointType);
    const request = deltaRequest(endpointType, { nonce: 'n1', subscribe: ['b'] });
    expect(stream.request(request)).toEqual({ requestClass: 'stale', orders: [] });
    expect(stream.watch(endpointType).names).toEqual(['a']);
  });

  test('receives only added names, whether it is an ACK or not (rows 6 and 11, D4)', () => {
    expect(settledDelta(endpointType, ['a']).request(deltaRequest(endpointType, { subscribe: ['b'] })).orders).toEqual([
      orderFor(endpointType, ['a', 'b'], ['b']),
    ]);
    const stream = new Stream();
    stream.request(deltaRequest(endpointType, { subscribe: ['a'] }));
    expect(stream.request(deltaRequest(endpointType, { subscribe: ['b'] })).orders).toEqual([
      orderFor(endpointType, ['a', 'b'], ['b']),
    ]);
    expect(stream.request(deltaRequest(endpointType, { nonce: 'n2', subscribe: ['c'] })).orders).toEqual([
      orderFor(endpointType, ['a', 'b', 'c'], ['c']),
    ]);
  });

  test('receives only the name that it adds to a wildcard subscription (D4)', () => {
    const stream = settledDelta(clusterType, []);
    expect(stream.request(deltaRequest(clusterType, { subscribe: ['a'] })).orders).toEqual([
      { typeUrl: clusterType, names: '*', all: false, requested: ['a'], changed: false },
    ]);
  });

  test('gets no response if it only unsubscribes (row 7)', () => {
    const stream = settledDelta(endpointType, ['a', 'b']);
    const request = deltaRequest(endpointType, { unsubscribe: ['a'] });
    expect(stream.request(request)).toEqual({ requestClass: 'unsubscription', orders: [] });
    expect(stream.watch(endpointType).names).toEqual(['b']);
  });

  test('ends pushes if it unsubscribes from all names (row 8)', () => {
    const stream = settledDelta(clusterType, []);
    expect(stream.request(deltaRequest(clusterType, { unsubscribe: ['*'] })).requestClass).toBe('unsubscription');
    expect(stream.push(clusterType)).toEqual([]);
  });

  test('receives everything if it subscribes to a wildcard later', () => {
    expect(settledDelta(clusterType, ['a']).request(deltaRequest(clusterType, { subscribe: ['*'] })).orders).toEqual([
      orderForAll(clusterType, '*'),
    ]);
  });

  test('is ignored if it has neither changes nor a nonce (D5)', () => {
    const stream = settledDelta(endpointType, ['a']);
    expect(stream.request(deltaRequest(endpointType, { subscribe: ['a'] }))).toEqual({
      requestClass: 'misuse',
      orders: [],
    });
    expect(stream.request(deltaRequest(endpointType))).toEqual({ requestClass: 'misuse', orders: [] });
  });

  test('has no effect with a star if the type requires names', () => {
    const stream = new Stream();
    expect(stream.request(deltaRequest(endpointType, { subscribe: ['*'] })).orders).toEqual([]);
    expect(isSubscribed(stream.watch(endpointType))).toBe(false);
  });
});

describe('a push', () => {
  test('waits for the ACK of the last response, and is merged with other waiting pushes', () => {
    const stream = new Stream();
    stream.request(sotwRequest(clusterType, []));
    expect(stream.push(clusterType)).toEqual([]);
    expect(stream.push(clusterType)).toEqual([]);
    expect(stream.request(sotwRequest(clusterType, [], 'n1')).orders).toEqual([changeOrder(clusterType, '*')]);
    expect(stream.request(sotwRequest(clusterType, [], 'n2')).orders).toEqual([]);
  });

  test('is sent even after a rejection', () => {
    const stream = new Stream();
    stream.request(deltaRequest(clusterType));
    stream.push(clusterType);
    expect(stream.request(deltaRequest(clusterType, { nonce: 'n1', rejection: 'bad' })).orders).toEqual([
      changeOrder(clusterType, '*'),
    ]);
  });

  test('sends clusters, endpoints, listeners and routes in this order', () => {
    const stream = new Stream();
    const types = [routeType, 'a.type.of/its.own', listenerType, clusterType, endpointType];
    for (const type of types) stream.request(sotwRequest(type, ['a']));
    for (const type of types) stream.request(sotwRequest(type, ['a'], stream.watch(type).nonceSent));
    expect(stream.push(...types).map(({ typeUrl }) => typeUrl)).toEqual([
      clusterType,
      endpointType,
      listenerType,
      routeType,
      'a.type.of/its.own',
    ]);
  });

  test('delays routes while a push of clusters waits', () => {
    const stream = createSettledStream(routeType, ['80']);
    stream.request(sotwRequest(clusterType, []));
    expect(stream.push(clusterType, routeType)).toEqual([]);
    expect(stream.request(sotwRequest(clusterType, [], 'n2')).orders).toEqual([
      changeOrder(clusterType, '*'),
      changeOrder(routeType, ['80']),
    ]);
  });

  test('sends the endpoints of previously sent clusters even while other clusters wait', () => {
    const stream = createSettledStream(endpointType, ['a']);
    stream.request(sotwRequest(clusterType, []));
    stream.request(sotwRequest(clusterType, [], 'n2'));
    // A cluster is updated in place before its endpoints are acknowledged: the client warms it until they are sent again.
    expect(stream.push(clusterType, endpointType)).toHaveLength(2);
    stream.watches = { ...stream.watches, [endpointType]: withNewClusters(stream.watch(endpointType)) };
    expect(stream.push(clusterType, endpointType)).toEqual([]);
    // Excludes the newest endpoints, which belong to clusters that were not sent to the client yet.
    expect(stream.request(sotwRequest(endpointType, ['a'], 'n4')).orders).toEqual([
      { ...changeOrder(endpointType, ['a']), again: 'v4' },
    ]);
    expect(stream.request(sotwRequest(clusterType, [], 'n3')).orders).toEqual([changeOrder(clusterType, '*')]);
    expect(stream.request(sotwRequest(endpointType, ['a'], 'n5')).orders).toEqual([changeOrder(endpointType, ['a'])]);
  });

  test('does not delay the response to a subscription', () => {
    const stream = createSettledStream(routeType, ['80']);
    stream.request(sotwRequest(clusterType, []));
    stream.push(clusterType);
    expect(stream.request(sotwRequest(routeType, ['80', '81'], 'n1')).orders).toEqual([
      orderFor(routeType, ['80', '81'], ['81']),
    ]);
  });

  test('remains pending if a name is added while it waits', () => {
    const stream = new Stream();
    stream.request(deltaRequest(endpointType, { subscribe: ['a'] }));
    stream.push(endpointType);
    expect(stream.request(deltaRequest(endpointType, { subscribe: ['b'] })).orders).toEqual([
      orderFor(endpointType, ['a', 'b'], ['b']),
    ]);
    expect(stream.request(deltaRequest(endpointType, { nonce: 'n2' })).orders).toEqual([
      changeOrder(endpointType, ['a', 'b']),
    ]);
  });
});

describe('a pending order', () => {
  const rules: Rules = { acceptsLateNames: true };
  const orderedWatches = (watch: Partial<Watch> = {}): Watches => {
    const { watches } = nextOrders({
      [endpointType]: { ...classify(undefined, sotwRequest(endpointType, ['a']), rules).watch!, ...watch },
    });
    return watches;
  };

  test('delays another order of the same type until its result is known', () => {
    const waitingWatches = { [endpointType]: withChange(orderedWatches()[endpointType]!) };
    expect(nextOrders(waitingWatches).orders).toEqual([]);
    const skipped = { [endpointType]: withoutResponse(waitingWatches[endpointType]!) };
    expect(nextOrders(skipped).orders).toEqual([changeOrder(endpointType, ['a'])]);
  });

  test('includes the endpoints of new clusters if it is for changes, but not if it is for names', () => {
    expect(withNewClusters(orderedWatches()[endpointType]!).due.warming).toBeUndefined();
    const watchesByName = orderedWatches({ due: { all: false, requested: ['a'], changed: false } });
    expect(withNewClusters(watchesByName[endpointType]!).due.warming).toBe(true);
  });

  test('is stored once if a client restarts its subscription repeatedly', () => {
    const nextWatch = classify(orderedWatches()[endpointType], sotwRequest(endpointType, ['a']), rules).watch!;
    expect(nextOrders({ [endpointType]: nextWatch }).orders).toEqual([]);
  });
});
