/** Estimated sizes of values match the growth of the heap. */
import { expect, it } from 'vitest';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { heapBytesOf } from './heap-size.ts';

const shapes: Record<string, (index: number) => unknown> = {
  'long strings': (index) => ({ data: { text: `${index}${'x'.repeat(10_000)}` } }),
  'two-byte strings': (index) => ({ data: { text: `${index}é…${'x'.repeat(10_000)}` } }),
  'many small fields': (index) => ({
    list: Array.from({ length: 200 }, (_, at) => ({ a: `${index}-${at}`, b: at, c: {} })),
  }),
  'lists of strings': (index) => ({ list: Array.from({ length: 500 }, (_, at) => `10.${index}.0.${at}`) }),
};

it.each(Object.keys(shapes))('the estimated size of %s is between 2/3 and 2 times the heap growth', async (shape) => {
  const texts = Array.from({ length: 300 }, (_, index) => Buffer.from(JSON.stringify(shapes[shape]!(index))));
  await collectGarbage();
  const previous = process.memoryUsage().heapUsed;
  const values = texts.map((text) => JSON.parse(text.toString('utf8')) as unknown);
  await collectGarbage();
  const heapGrowth = process.memoryUsage().heapUsed - previous;
  const estimated = values.reduce<number>((sum, value) => sum + heapBytesOf(value), 0);
  expect(estimated / heapGrowth).toBeGreaterThan(0.66);
  expect(estimated / heapGrowth).toBeLessThan(2);
});
