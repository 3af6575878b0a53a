import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SigningQueue } from './signing-queue.ts';

const one = (item: string, endsAt: number, client = item, identity = client) => ({ item, endsAt, client, identity });

it('hands out the certificate with the least life left first, equal ones in the order in which they came', () => {
  const queue = new SigningQueue<string>({ mostWaiting: 10, mostOfClient: 10, mostOfIdentity: 10 });
  for (const waiting of [one('day', 24), one('none', 0), one('hour', 1), one('also none', 0)]) queue.add(waiting);
  const order = Array.from({ length: 4 }, () => queue.next()?.item);
  expect(order).toEqual(['none', 'also none', 'hour', 'day']);
  expect(queue.next()).toBeUndefined();
});

it('refuses who can wait longest when it is full, and what one client has too much', () => {
  const queue = new SigningQueue<string>({ mostWaiting: 2, mostOfClient: 1, mostOfIdentity: 1 });
  expect(queue.add(one('day', 24))).toBeUndefined();
  expect(queue.add(one('hour', 1))).toBeUndefined();
  expect(queue.add(one('none', 0))?.item).toBe('day');
  expect(queue.add(one('week', 168))?.item).toBe('week');
  expect(queue.add(one('again', 0, 'none'))?.item).toBe('again');
  queue.remove('none');
  expect(queue.add(one('again', 0, 'none'))).toBeUndefined();
});

it('has room for others, however many connections one workload has, and whatever it says to be urgent', () => {
  const queue = new SigningQueue<string>({ mostWaiting: 4, mostOfClient: 1, mostOfIdentity: 2 });
  const greedy = (item: string) => one(item, 0, item, 'greedy');
  const answers = ['a', 'b', 'c', 'd', 'e'].map((item) => queue.add(greedy(item))?.item);
  expect(answers).toEqual([undefined, undefined, 'c', 'd', 'e']);
  expect(queue.add(one('renewal', 24))).toBeUndefined();
  expect(queue.next()?.item).toBe('a');
  expect(queue.add(greedy('f'))).toBeUndefined();
  queue.remove('b');
  expect([queue.next()?.item, queue.next()?.item, queue.next()]).toEqual(['f', 'renewal', undefined]);
});

it('does as a list that is sorted each time', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(5), { nil: undefined }), { maxLength: 50 }), (steps) => {
      const queue = new SigningQueue<number>({ mostWaiting: 8, mostOfClient: 100, mostOfIdentity: 100 });
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
