import { describe, expect, it } from 'vitest';
import {
  emptyQueue,
  enqueueFetches,
  grantFetches,
  maxFetches,
  maxFetchesOfNamespace,
  removeFetches,
  type WaitingFetch,
} from '../../machines/discovery/jwks/fetch-queue.ts';

const fetchOf = (name: string, ...namespaces: string[]): WaitingFetch => ({ name, namespaces });
const queueOf = (...fetches: WaitingFetch[]) => enqueueFetches(emptyQueue, fetches);
const fetchesOf = (namespace: string, count: number) =>
  Array.from({ length: count }, (_, i) => fetchOf(`${namespace}-${i}`, namespace));

describe('slots for fetching key sets', () => {
  it('are limited per namespace and in total', () => {
    expect(grantFetches(queueOf(...fetchesOf('a', 9))).granted).toEqual(['a-0', 'a-1']);
    const { granted, queue } = grantFetches(queueOf(...'abcdefg'.split('').flatMap((name) => fetchesOf(name, 3))));
    expect(granted).toHaveLength(maxFetches);
    expect(queue.running).toHaveLength(maxFetches);
    for (const name of 'abcdefg') {
      const namespaceFetches = queue.running.filter(({ namespace }) => namespace === name);
      expect(namespaceFetches.length).toBeLessThanOrEqual(maxFetchesOfNamespace);
      expect(namespaceFetches.length).toBeGreaterThan(0);
    }
  });

  it('are granted to namespaces in rotation', () => {
    let { queue } = grantFetches(queueOf(...fetchesOf('a', 100), ...fetchesOf('b', 100), fetchOf('c-0', 'c')));
    const order: string[] = [];
    for (let i = 0; i < 60; i++) {
      const [first] = queue.running;
      order.push(first!.namespace);
      ({ queue } = grantFetches(removeFetches(queue, new Set([first!.name]))));
    }
    expect(order.indexOf('c')).toBeLessThan(6);
    const counts = order.filter((name) => name === 'a').length - order.filter((name) => name === 'b').length;
    expect(Math.abs(counts)).toBeLessThanOrEqual(2);
  });

  it('are granted to a shared key set with the first of its namespaces', () => {
    const { queue } = grantFetches(queueOf(...fetchesOf('mallory', 100)));
    expect(grantFetches(enqueueFetches(queue, [fetchOf('shared', 'mallory', 'bank')])).granted).toEqual(['shared']);
  });

  it('are granted once to a fetch even if it is requested twice', () => {
    const queue = enqueueFetches(grantFetches(queueOf(fetchOf('a', 'a'))).queue, [fetchOf('a', 'a')]);
    expect(grantFetches(queue).granted).toEqual([]);
  });

  it('leave no state after all fetches have ended', () => {
    const { queue, granted } = grantFetches(queueOf(...fetchesOf('a', 2), ...fetchesOf('b', 2)));
    expect(grantFetches(removeFetches(queue, new Set(granted))).queue).toEqual(emptyQueue);
  });
});
