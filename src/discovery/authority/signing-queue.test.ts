import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SigningQueue } from './signing-queue.ts';

const one = (item: string, endsAt: number, client = item, identity = client) => ({ item, endsAt, client, identity });

it('hands out the certificate with the least life left first, equal ones in the order in which they came', () => {
  const queue = new SigningQueue<string>({ mostWaiting: 10, mostOfClient: 10 });
  for (const waiting of [one('day', 24), one('none', 0), one('hour', 1), one('also none', 0)]) queue.add(waiting);
  const order = Array.from({ length: 4 }, () => queue.next()?.item);
  expect(order).toEqual(['none', 'also none', 'hour', 'day']);
  expect(queue.next()).toBeUndefined();
});

it('refuses who can wait longest when it is full, and what one client has too much', () => {
  const queue = new SigningQueue<string>({ mostWaiting: 2, mostOfClient: 1 });
  expect(queue.add(one('day', 24))).toBeUndefined();
  expect(queue.add(one('hour', 1))).toBeUndefined();
  expect(queue.add(one('none', 0))?.item).toBe('day');
  expect(queue.add(one('week', 168))?.item).toBe('week');
  expect(queue.add(one('again', 0, 'none'))?.item).toBe('again');
  queue.remove('none');
  expect(queue.add(one('again', 0, 'none'))).toBeUndefined();
});

const workload = (item: string, endsAt: number, namespace: string, account = 'default') =>
  one(item, endsAt, item, `spiffe://td/ns/${namespace}/sa/${account}`);

it('has room for others, however many connections and service accounts one namespace has, and whatever it says to be urgent', () => {
  const queue = new SigningQueue<string>({ mostWaiting: 4, mostOfClient: 1 });
  const greedy = ['a', 'b', 'c', 'd', 'e'].map((item) => workload(item, 0, 'greedy', item));
  // Nobody else needs the room.
  expect(greedy.map((waiting) => queue.add(waiting)?.item)).toEqual([undefined, undefined, undefined, undefined, 'e']);
  expect(queue.add(workload('renewal', 24, 'shop'))?.item).toBe('d');
  expect(queue.add(workload('another', 48, 'shop'))?.item).toBe('c');
  // As many as the other: who can wait longest makes room.
  expect(queue.add(workload('third', 12, 'shop'))?.item).toBe('another');
  expect(Array.from({ length: 5 }, () => queue.next()?.item)).toEqual(['a', 'b', 'third', 'renewal', undefined]);
});

it('refuses of a namespace that has the most who can wait longest, and not the newcomer', () => {
  const queue = new SigningQueue<string>({ mostWaiting: 2, mostOfClient: 1 });
  queue.add(workload('day', 24, 'shop', 'cart'));
  queue.add(workload('hour', 1, 'shop', 'cart'));
  expect(queue.add(workload('new pod', 0, 'shop', 'cart'))?.item).toBe('day');
});

it('does as a list that is sorted each time', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(5), { nil: undefined }), { maxLength: 50 }), (steps) => {
      const queue = new SigningQueue<number>({ mostWaiting: 8, mostOfClient: 100 });
      const model: { item: number; endsAt: number }[] = [];
      steps.forEach((endsAt, item) => {
        if (endsAt === undefined) expect(queue.next()?.item).toBe(model.shift()?.item);
        else {
          model.push({ item, endsAt });
          model.sort((a, b) => a.endsAt - b.endsAt || a.item - b.item);
          const refused = model.length > 8 ? model.pop()?.item : undefined;
          expect(queue.add({ item, endsAt, client: 'x', identity: 'x' })?.item).toBe(refused);
        }
        expect(queue.length).toBe(model.length);
      });
    }),
  );
});
