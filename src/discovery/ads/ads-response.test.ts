import { expect, test } from 'vitest';
import { collectGarbage } from '../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { SharedBodies } from './ads-response.ts';
import type { EncodedResource } from './resource-source.ts';

test('bodies of many small resources count with what they were joined from', async () => {
  const bodies = new SharedBodies();
  const join = (): WeakRef<object> => {
    const frame = Buffer.from('small');
    const resources = Array.from({ length: 2_000 }, () => ({ sotwFrame: frame }) as unknown as EncodedResource);
    bodies.framesOf(resources, false);
    return new WeakRef(resources);
  };
  const joined = Array.from({ length: 100 }, join);
  await eventually('most of them are given back', async () => {
    await collectGarbage();
    return joined.filter((one) => one.deref() !== undefined).length < 20;
  });
  expect(joined.at(-1)?.deref()).toBeDefined();
});
