import { getHeapStatistics } from 'node:v8';
import { expect, test } from 'vitest';
import { collectGarbage } from '../../../test/harness/collect-garbage.ts';
import { createRedactor } from './redact.ts';

const mib = 1024 * 1024;

test('a truncated text retains only the memory of its remaining part', async () => {
  const redact = createRedactor();
  const retainedObjects: object[] = [];
  await collectGarbage();
  const usedBefore = getHeapStatistics().used_heap_size;
  for (let i = 0; i < 60; i++)
    retainedObjects.push(redact({ reason: `${i} ${'no such thing '.repeat(40_000)}`.toUpperCase() }));
  await collectGarbage();
  expect(retainedObjects).toHaveLength(60);
  // The original texts take 30 MiB.
  expect((getHeapStatistics().used_heap_size - usedBefore) / mib).toBeLessThan(10);
});
