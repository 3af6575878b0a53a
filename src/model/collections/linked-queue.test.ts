import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type LinkedItem, LinkedQueue } from './linked-queue.ts';

class Item implements LinkedItem<Item> {
  older: Item | undefined;
  newer: Item | undefined;
}

function itemsIn(queue: LinkedQueue<Item>): readonly Item[] {
  const items: Item[] = [];
  for (let item = queue.oldest; item !== undefined; item = item.newer) items.push(item);
  return items;
}

test('LinkedQueue keeps insertion order when items are removed and added again', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(7)), (steps) => {
      const queue = new LinkedQueue<Item>();
      const items = Array.from({ length: 8 }, () => new Item());
      let model: Item[] = [];
      for (const item of steps.map((index) => items[index]!)) {
        if (model.includes(item)) {
          queue.remove(item);
          model = model.filter((one) => one !== item);
          expect([item.older, item.newer]).toEqual([undefined, undefined]);
        } else {
          queue.add(item);
          model.push(item);
        }
        expect(queue.oldest).toBe(model[0]);
        expect(itemsIn(queue).map((one) => items.indexOf(one))).toEqual(model.map((one) => items.indexOf(one)));
        expect(model.every((one, at) => one.older === model[at - 1])).toBe(true);
      }
    }),
  );
});

test('LinkedQueue equals a new queue after it is cleared', () => {
  const queue = new LinkedQueue<Item>();
  queue.add(new Item());
  queue.clear();
  const item = new Item();
  queue.add(item);
  expect(itemsIn(queue)).toEqual([item]);
  queue.remove(item);
  expect(queue.oldest).toBeUndefined();
});
