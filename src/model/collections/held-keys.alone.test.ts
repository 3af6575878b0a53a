import { getHeapStatistics } from 'node:v8';
import { expect, test } from 'vitest';
import { collectGarbage } from '../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { HeldKeys } from './held-keys.ts';

class Holder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

test('HeldKeys reports a key when any of its holders is garbage-collected, and removes the key from the other holders', async () => {
  const collected: string[] = [];
  const keys = new HeldKeys((key) => void collected.push(key));
  const shape = new Holder('shape');
  const stays = new Holder('stays');
  (() => {
    const shortLived = new Holder('goes');
    keys.add('both', [shape, shortLived]);
    keys.add('again', [shape, shortLived]);
    keys.add('stays', [shape, stays]);
    // Adds the same key with another client.
    keys.add('again', [shape, stays]);
  })();
  await eventually('both keys of the holder that went are told of', async () => {
    await collectGarbage();
    return collected.length === 2;
  });
  expect(collected.toSorted()).toEqual(['again', 'both']);
  expect([keys.countOf(shape), keys.countOf(stays)]).toEqual([2, 2]);
});

test('HeldKeys does not accumulate memory on a long-lived holder for keys of short-lived holders', async () => {
  const keys = new HeldKeys(() => {});
  const shape = new Holder('shape');
  const rounds = async (times: number): Promise<number> => {
    for (let round = 0; round < times; round++) {
      for (let at = 0; at < 1_000; at++) keys.add(`${'key '.repeat(50)}${round} ${at}`, [shape, new Holder('names')]);
      await collectGarbage();
    }
    await eventually('all that went are forgotten', async () => {
      await collectGarbage();
      return keys.countOf(shape) === 0;
    });
    return getHeapStatistics().used_heap_size / 1e6;
  };
  const baseline = await rounds(5);
  // A leak of the keys would take 6 MB.
  expect((await rounds(30)) - baseline).toBeLessThan(2);
});
