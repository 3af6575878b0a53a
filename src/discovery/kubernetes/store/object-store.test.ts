import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../api-server.ts';
import { maxNamedRefusals, NamespaceShares, SharesOfKinds } from './namespace-shares.ts';
import { type ObjectChange, ObjectStore, rejectionReasonOf } from './object-store.ts';

const object = (name: string, resourceVersion: string, uid = `uid-${name}`): KubernetesObject => ({
  metadata: { name, namespace: 'shop', uid, resourceVersion },
});
const storeWith = (...objects: KubernetesObject[]): ObjectStore => {
  const store = new ObjectStore();
  for (const one of objects) store.collect(one);
  store.activateCollected();
  return store;
};
const eventTexts = (changes: readonly ObjectChange[]): string[] => changes.map(({ event, key }) => `${event} ${key}`);

describe('a full set of objects', () => {
  it('is not visible until it is complete', () => {
    const store = storeWith(object('a', '1'));
    store.beginSet();
    store.collect(object('b', '2'));
    expect([store.size, store.get('shop/b')]).toEqual([1, undefined]);
    expect(eventTexts(store.activateCollected())).toEqual(['delete shop/a', 'add shop/b']);
  });

  it('is discarded if it is interrupted', () => {
    const store = new ObjectStore();
    store.beginSet();
    store.collect(object('a', '1'));
    store.beginSet();
    store.collect(object('b', '2'));
    expect(eventTexts(store.activateCollected())).toEqual(['add shop/b']);
  });

  it('reports only the differences', () => {
    const store = storeWith(object('a', '1'), object('b', '2'));
    store.collect(object('a', '1'));
    store.collect(object('b', '3'));
    expect(eventTexts(store.activateCollected())).toEqual(['update shop/b']);
  });

  it('applies even if it is older, because the server can have been restored from a backup', () => {
    const store = storeWith(object('a', '9'));
    store.collect(object('a', '3'));
    expect(eventTexts(store.activateCollected())).toEqual(['update shop/a']);
    expect(store.get('shop/a')?.metadata.resourceVersion).toBe('3');
  });

  it('reports a recreated object as deletion and addition', () => {
    const store = storeWith(object('a', '1', 'old'));
    store.collect(object('a', '5', 'new'));
    expect(eventTexts(store.activateCollected())).toEqual(['delete shop/a', 'add shop/a']);
  });

  it('removes all objects if it is empty', () => {
    const store = storeWith(object('a', '1'));
    expect(eventTexts(store.clear())).toEqual(['delete shop/a']);
    expect(store.size).toBe(0);
  });
});

describe('a watch event', () => {
  it('is ignored if it is older than the stored object, comparing versions as numbers', () => {
    const store = storeWith(object('a', '10'));
    expect(store.apply({ type: 'MODIFIED', object: object('a', '9') })).toEqual([]);
    expect(store.apply({ type: 'DELETED', object: object('a', '9') })).toEqual([]);
    expect(eventTexts(store.apply({ type: 'MODIFIED', object: object('a', '11') }))).toEqual(['update shop/a']);
  });

  it('is ignored if it repeats the stored version', () => {
    const store = storeWith(object('a', '10'));
    expect(store.apply({ type: 'ADDED', object: object('a', '10') })).toEqual([]);
  });

  it('is reported as deletion and addition if the object was recreated', () => {
    const store = storeWith(object('a', '10', 'old'));
    expect(eventTexts(store.apply({ type: 'MODIFIED', object: object('a', '12', 'new') }))).toEqual([
      'delete shop/a',
      'add shop/a',
    ]);
  });

  it('does not delete an object that replaced the deleted one', () => {
    const store = storeWith(object('a', '12', 'new'));
    expect(store.apply({ type: 'DELETED', object: object('a', '11', 'old') })).toEqual([]);
    expect(store.size).toBe(1);
  });

  it('is ignored if it deletes an unknown object', () => {
    expect(new ObjectStore().apply({ type: 'DELETED', object: object('a', '1') })).toEqual([]);
  });

  it('contains the previous object', () => {
    const store = storeWith(object('a', '1'));
    expect(store.apply({ type: 'DELETED', object: object('a', '2') })).toEqual([
      { event: 'delete', key: 'shop/a', previous: object('a', '1') },
    ]);
  });
});

it('a cluster-scoped object has a key without a namespace', () => {
  const store = new ObjectStore();
  store.apply({ type: 'ADDED', object: { metadata: { name: 'node-1' } } });
  expect([...store.entries()].map(([key]) => key)).toEqual(['/node-1']);
});

describe('the size limit of a namespace', () => {
  const largeObject = (name: string, version = '1', namespace = 'mallory'): KubernetesObject => ({
    ...{ apiVersion: 'v1', kind: 'Service', spec: { text: 'x'.repeat(1_000) } },
    metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: version },
  });
  const createLimitedStore = (maxBytes = 10_000) => {
    const refusals: string[] = [];
    const shares = new NamespaceShares(maxBytes);
    const store = new ObjectStore({ shares, onRejected: (key, reason) => void refusals.push(`${key} ${reason}`) });
    return {
      store,
      shares,
      refused: refusals,
      put: (object: KubernetesObject) => store.apply({ type: 'ADDED', object }),
    };
  };
  const isKeptCompletely = (object: KubernetesObject | undefined): boolean =>
    object !== undefined && rejectionReasonOf(object) === undefined;

  it('rejects further objects, keeps only their names, and does not affect other namespaces', () => {
    const { store, refused, put } = createLimitedStore();
    for (let at = 0; at < 20; at++) put(largeObject(`s${at}`));
    put(largeObject('web', '1', 'bank'));
    const keptNames = [...store.values()].filter(isKeptCompletely).map(({ metadata }) => metadata.name);
    expect(keptNames).toHaveLength(7 + 1);
    expect(isKeptCompletely(store.get('bank/web'))).toBe(true);
    expect(store.get('mallory/s19')).toMatchObject({ kind: 'Service', metadata: { name: 's19' } });
    expect(store.get('mallory/s19')).not.toHaveProperty('spec');
    expect(refused).toHaveLength(13);
    expect(refused[0]).toMatch(/^mallory\/s7 is too large \(\d+ bytes.* namespace mallory is 10000 bytes/);
    expect(store.refusedCounts.get('mallory')).toBe(13);
  });

  it('applies to a full set that replaces the previous one', () => {
    const { store, shares, put } = createLimitedStore();
    for (let at = 0; at < 8; at++) put(largeObject(`s${at}`));
    store.beginSet();
    for (let at = 8; at < 30; at++) store.collect(largeObject(`s${at}`));
    store.activateCollected();
    expect([...store.values()].filter(isKeptCompletely)).toHaveLength(7);
    expect(shares.bytesOf('mallory')).toBeGreaterThan(8_000);
    store.clear();
    expect(shares.bytesOf('mallory')).toBe(0);
  });

  it('admits rejected objects when others are deleted', () => {
    const { store, shares, put } = createLimitedStore();
    for (let at = 0; at < 20; at++) put(largeObject(`s${at}`));
    for (let at = 0; at < 20; at++) store.apply({ type: 'DELETED', object: largeObject(`s${at}`, '2') });
    expect([shares.bytesOf('mallory'), store.size, store.refusedCounts.size]).toEqual([0, 0, 0]);
  });

  it('includes the last valid version of a rejected object, because that version still applies', () => {
    const { store, shares, put } = createLimitedStore();
    put(largeObject('s0'));
    const previous = shares.bytesOf('mallory');
    store.apply({ type: 'MODIFIED', object: { ...largeObject('s0', '2'), spec: { text: 'x'.repeat(20_000) } } });
    expect(isKeptCompletely(store.get('mallory/s0'))).toBe(false);
    expect(shares.bytesOf('mallory')).toBe(previous);
  });

  it('also limits the stored names of rejected objects, and counts further objects without their names', () => {
    const { store, put } = createLimitedStore(100);
    for (let at = 0; at < 1_000; at++) put(largeObject(`s${at}`));
    expect(store.size).toBe(maxNamedRefusals);
    expect(store.refusedCounts.get('mallory')).toBe(1_000);
  });

  it('is separate for kinds that restrict access, so that other objects never displace policies', () => {
    const shares = new SharesOfKinds(10_000);
    expect(shares.sharesOfKind('AuthorizationPolicy')).not.toBe(shares.sharesOfKind('Pod'));
    expect(shares.sharesOfKind('PeerAuthentication')).toBe(shares.sharesOfKind('AuthorizationPolicy'));
    expect(shares.sharesOfKind('Pod')).toBe(shares.sharesOfKind('HTTPRoute'));
  });
});
