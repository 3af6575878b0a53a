import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../api-server.ts';
import { maxNamedRefusals, NamespaceShares, SharesOfKinds } from './namespace-shares.ts';
import { type ObjectChange, ObjectStore, refusalOf } from './object-store.ts';

const object = (name: string, resourceVersion: string, uid = `uid-${name}`): KubernetesObject => ({
  metadata: { name, namespace: 'shop', uid, resourceVersion },
});
const given = (...objects: KubernetesObject[]): ObjectStore => {
  const store = new ObjectStore();
  for (const one of objects) store.holdApart(one);
  store.replace();
  return store;
};
const told = (changes: readonly ObjectChange[]): string[] => changes.map(({ event, key }) => `${event} ${key}`);

describe('a whole set', () => {
  it('is not there before it is whole', () => {
    const store = given(object('a', '1'));
    store.beginSet();
    store.holdApart(object('b', '2'));
    expect([store.size, store.get('shop/b')]).toEqual([1, undefined]);
    expect(told(store.replace())).toEqual(['delete shop/a', 'add shop/b']);
  });

  it('that did not come to its end leaves nothing in the next one', () => {
    const store = new ObjectStore();
    store.beginSet();
    store.holdApart(object('a', '1'));
    store.beginSet();
    store.holdApart(object('b', '2'));
    expect(told(store.replace())).toEqual(['add shop/b']);
  });

  it('tells what differs, and not what is the same', () => {
    const store = given(object('a', '1'), object('b', '2'));
    store.holdApart(object('a', '1'));
    store.holdApart(object('b', '3'));
    expect(told(store.replace())).toEqual(['update shop/b']);
  });

  it('of a server that was restored counts, though it is older', () => {
    const store = given(object('a', '9'));
    store.holdApart(object('a', '3'));
    expect(told(store.replace())).toEqual(['update shop/a']);
    expect(store.get('shop/a')?.metadata.resourceVersion).toBe('3');
  });

  it('says of one that was made again that it is another', () => {
    const store = given(object('a', '1', 'old'));
    store.holdApart(object('a', '5', 'new'));
    expect(told(store.replace())).toEqual(['delete shop/a', 'add shop/a']);
  });

  it('of nothing empties it', () => {
    const store = given(object('a', '1'));
    expect(told(store.clear())).toEqual(['delete shop/a']);
    expect(store.size).toBe(0);
  });
});

describe('an event', () => {
  it('that is older than what is known of the object is no news, by numbers and not by text', () => {
    const store = given(object('a', '10'));
    expect(store.apply({ type: 'MODIFIED', object: object('a', '9') })).toEqual([]);
    expect(store.apply({ type: 'DELETED', object: object('a', '9') })).toEqual([]);
    expect(told(store.apply({ type: 'MODIFIED', object: object('a', '11') }))).toEqual(['update shop/a']);
  });

  it('that says a second time what is known is no news', () => {
    const store = given(object('a', '10'));
    expect(store.apply({ type: 'ADDED', object: object('a', '10') })).toEqual([]);
  });

  it('of one that was made again unseen is that of another', () => {
    const store = given(object('a', '10', 'old'));
    expect(told(store.apply({ type: 'MODIFIED', object: object('a', '12', 'new') }))).toEqual([
      'delete shop/a',
      'add shop/a',
    ]);
  });

  it('of the end of one that another has taken the place of costs the other nothing', () => {
    const store = given(object('a', '12', 'new'));
    expect(store.apply({ type: 'DELETED', object: object('a', '11', 'old') })).toEqual([]);
    expect(store.size).toBe(1);
  });

  it('of the end of one that nobody knows is no news', () => {
    expect(new ObjectStore().apply({ type: 'DELETED', object: object('a', '1') })).toEqual([]);
  });

  it('says what was known before', () => {
    const store = given(object('a', '1'));
    expect(store.apply({ type: 'DELETED', object: object('a', '2') })).toEqual([
      { event: 'delete', key: 'shop/a', previous: object('a', '1') },
    ]);
  });
});

it('an object in no namespace has a key of its own', () => {
  const store = new ObjectStore();
  store.apply({ type: 'ADDED', object: { metadata: { name: 'node-1' } } });
  expect([...store.entries()].map(([key]) => key)).toEqual(['/node-1']);
});

describe('what one namespace may take', () => {
  const large = (name: string, version = '1', namespace = 'mallory'): KubernetesObject => ({
    ...{ apiVersion: 'v1', kind: 'Service', spec: { text: 'x'.repeat(1_000) } },
    metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: version },
  });
  const limited = (maxBytes = 10_000) => {
    const refused: string[] = [];
    const shares = new NamespaceShares(maxBytes);
    const store = new ObjectStore({ shares, refused: (key, reason) => void refused.push(`${key} ${reason}`) });
    return { store, shares, refused, put: (object: KubernetesObject) => store.apply({ type: 'ADDED', object }) };
  };
  const isKept = (object: KubernetesObject | undefined): boolean =>
    object !== undefined && refusalOf(object) === undefined;

  it('is limited: an object beyond it is kept by its name alone, and other namespaces are kept as before', () => {
    const { store, refused, put } = limited();
    for (let at = 0; at < 20; at++) put(large(`s${at}`));
    put(large('web', '1', 'bank'));
    const kept = [...store.values()].filter(isKept).map(({ metadata }) => metadata.name);
    expect(kept).toHaveLength(7 + 1);
    expect(isKept(store.get('bank/web'))).toBe(true);
    expect(store.get('mallory/s19')).toMatchObject({ kind: 'Service', metadata: { name: 's19' } });
    expect(store.get('mallory/s19')).not.toHaveProperty('spec');
    expect(refused).toHaveLength(13);
    expect(refused[0]).toMatch(/^mallory\/s7 is too large \(\d+ bytes.* namespace mallory is 10000 bytes/);
    expect(store.refused.get('mallory')).toBe(13);
  });

  it('is the same in a whole set, which takes the place of the one before', () => {
    const { store, shares, put } = limited();
    for (let at = 0; at < 8; at++) put(large(`s${at}`));
    store.beginSet();
    for (let at = 8; at < 30; at++) store.holdApart(large(`s${at}`));
    store.replace();
    expect([...store.values()].filter(isKept)).toHaveLength(7);
    expect(shares.bytesOf('mallory')).toBeGreaterThan(8_000);
    store.clear();
    expect(shares.bytesOf('mallory')).toBe(0);
  });

  it('is free again when objects are deleted', () => {
    const { store, shares, put } = limited();
    for (let at = 0; at < 20; at++) put(large(`s${at}`));
    for (let at = 0; at < 20; at++) store.apply({ type: 'DELETED', object: large(`s${at}`, '2') });
    expect([shares.bytesOf('mallory'), store.size, store.refused.size]).toEqual([0, 0, 0]);
  });

  it('counts what an object took before it was refused, because its last good version stays in force', () => {
    const { store, shares, put } = limited();
    put(large('s0'));
    const before = shares.bytesOf('mallory');
    store.apply({ type: 'MODIFIED', object: { ...large('s0', '2'), spec: { text: 'x'.repeat(20_000) } } });
    expect(isKept(store.get('mallory/s0'))).toBe(false);
    expect(shares.bytesOf('mallory')).toBe(before);
  });

  it('bounds the names of refused objects as well: further ones are only counted', () => {
    const { store, put } = limited(100);
    for (let at = 0; at < 1_000; at++) put(large(`s${at}`));
    expect(store.size).toBe(maxNamedRefusals);
    expect(store.refused.get('mallory')).toBe(1_000);
  });

  it('is another limit for kinds that restrict, so that other objects never push out a policy', () => {
    const shares = new SharesOfKinds(10_000);
    expect(shares.of('AuthorizationPolicy')).not.toBe(shares.of('Pod'));
    expect(shares.of('PeerAuthentication')).toBe(shares.of('AuthorizationPolicy'));
    expect(shares.of('Pod')).toBe(shares.of('HTTPRoute'));
  });
});
