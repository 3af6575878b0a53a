import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairQueue, type ShareKey } from './fair-queue.ts';

function takeItems(queue: FairQueue<string>, count = Number.POSITIVE_INFINITY): string[] {
  const items: string[] = [];
  while (items.length < count) {
    const item = queue.takeNext();
    if (item === undefined) break;
    items.push(item);
  }
  return items;
}

describe('FairQueue', () => {
  it('serves namespaces round-robin, and accounts within a namespace', () => {
    const queue = new FairQueue<string>({ maxItems: 100 });
    for (const item of ['m/a/1', 'm/a/2', 'm/a/3', 'm/b/1', 'm/b/2', 'bank/pay/1', 'bank/pay/2', 'shop/x/1']) {
      queue.add(item, item.split('/').slice(0, 2));
    }
    expect(takeItems(queue)).toEqual([
      ...['m/a/1', 'bank/pay/1', 'shop/x/1'],
      ...['m/b/1', 'bank/pay/2', 'm/a/2', 'm/b/2', 'm/a/3'],
    ]);
  });

  it('serves a new namespace after one item of each other namespace, however long their queues are', () => {
    const queue = new FairQueue<string>({ maxItems: 10_000 });
    for (let i = 0; i < 5_000; i++) queue.add(`mallory ${i}`, ['mallory', `account-${i}`]);
    takeItems(queue, 3);
    queue.add('bank', ['bank', 'default']);
    expect(takeItems(queue, 2)).toContain('bank');
  });

  it('rejects an item of the largest account in the largest namespace when full', () => {
    const queue = new FairQueue<string>({ maxItems: 4 });
    for (const item of ['a1', 'a2', 'a3', 'b1']) queue.add(item, ['mallory', item[0]!]);
    expect(queue.add('bank 1', ['bank', 'pay'])).toBe('a3');
    expect(queue.add('bank 2', ['bank', 'pay'])).toBe('a2');
    expect(queue.add('bank 3', ['bank', 'pay'])).toBe('bank 3');
    expect([queue.size, queue.sizeOf(['mallory']), queue.sizeOf(['bank'])]).toEqual([4, 2, 2]);
    expect(queue.add('shop', ['shop', 'cart'])).toBe('a1');
    expect(queue.add('zoo', ['zoo', 'keeper'])).toBe('bank 2');
    // Each key has one item, so none has more than the new key.
    expect(queue.add('farm', ['farm', 'cow'])).toBe('farm');
    expect(queue.sizeOf(['farm'])).toBe(0);
  });

  it('rejects a new item above the limit of its key, and accepts it after an item of that key is removed', () => {
    const queue = new FairQueue<string>({ maxItems: 10, maxOfKey: [undefined, 2] });
    queue.add('1', ['n', 'a']);
    queue.add('2', ['n', 'a']);
    expect([queue.add('3', ['n', 'a']), queue.add('other', ['n', 'b'])]).toEqual(['3', undefined]);
    queue.remove('1');
    expect(queue.add('3', ['n', 'a'])).toBeUndefined();
  });

  it('orders items by precedence only within one key', () => {
    const queue = new FairQueue<{ name: string; due: number }>({ maxItems: 10, precedes: (a, b) => a.due < b.due });
    for (const [name, due, account] of [
      ['late', 9, 'bank'],
      ['soon', 1, 'bank'],
      ['also soon', 1, 'bank'],
      ['now', 0, 'mallory'],
      ['now, too', 0, 'mallory'],
    ] as const)
      queue.add({ name, due }, [account]);
    expect(Array.from({ length: 5 }, () => queue.takeNext()?.name)).toEqual([
      ...['soon', 'now', 'also soon', 'now, too', 'late'],
    ]);
  });

  it('skips items that are not ready, and keeps their order', () => {
    const queue = new FairQueue<string>({ maxItems: 10 });
    for (const item of ['a1', 'a2', 'b1']) queue.add(item, [item[0]!]);
    expect([queue.takeNext((item) => item !== 'a1'), queue.takeNext((item) => item !== 'a1')]).toEqual(['a2', 'b1']);
    expect(queue.takeNext((item) => item !== 'a1')).toBeUndefined();
    expect(takeItems(queue)).toEqual(['a1']);
  });
});

describe('FairQueue after any sequence of additions and removals', () => {
  const arrival = fc.record({ namespace: fc.constantFrom('a', 'b', 'c'), account: fc.constantFrom('x', 'y') });
  const step = fc.option(arrival, { nil: undefined });

  it('never rejects an item of a namespace that has fewer items than another', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 12 }), (steps, maxItems) => {
        const queue = new FairQueue<number>({ maxItems });
        const keys = new Map<number, ShareKey>();
        const countOf = (namespace: string) => [...keys.values()].filter(([owner]) => owner === namespace).length;
        steps.forEach((arrival, item) => {
          if (arrival === undefined) {
            const next = queue.takeNext();
            expect(keys.delete(next!)).toBe(next !== undefined);
          } else {
            keys.set(item, [arrival.namespace, arrival.account]);
            const isAccepted = queue.canAdd([arrival.namespace, arrival.account]);
            const rejectedItem = queue.add(item, [arrival.namespace, arrival.account]);
            expect(rejectedItem !== item).toBe(isAccepted);
            if (rejectedItem !== undefined) {
              const maxCount = Math.max(...['a', 'b', 'c'].map(countOf));
              expect(countOf(keys.get(rejectedItem)![0]!)).toBe(maxCount);
              keys.delete(rejectedItem);
            }
          }
          expect([...queue.items()].toSorted()).toEqual([...keys.keys()].toSorted());
          for (const namespace of ['a', 'b', 'c']) expect(queue.sizeOf([namespace])).toBe(countOf(namespace));
          expect(queue.size).toBeLessThanOrEqual(maxItems);
        });
      }),
    );
  });

  it('serves every waiting namespace once before it serves any namespace twice', () => {
    fc.assert(
      fc.property(fc.array(arrival, { minLength: 1, maxLength: 60 }), (arrivals) => {
        const queue = new FairQueue<number>({ maxItems: 100 });
        arrivals.forEach(({ namespace, account }, item) => void queue.add(item, [namespace, account]));
        const servedNamespaces: string[] = [];
        for (let item = queue.takeNext(); item !== undefined; item = queue.takeNext())
          servedNamespaces.push(arrivals[item]!.namespace);
        for (const namespace of new Set(servedNamespaces)) {
          const last = servedNamespaces.lastIndexOf(namespace);
          for (const other of new Set(servedNamespaces)) {
            const servedPrefix = servedNamespaces.slice(0, last + 1);
            const [servedOfNamespace, servedOfOther] = [namespace, other].map(
              (one) => servedPrefix.filter((name) => name === one).length,
            );
            expect(servedOfOther!).toBeLessThanOrEqual(servedOfNamespace! + 1);
          }
        }
      }),
    );
  });
});
