import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from './api-server.ts';
import { type ObjectChange, ObjectStore } from './object-store.ts';

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
