import { expect, test } from 'vitest';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import type { EncodedResource } from '../resource-source.ts';
import { SharedBodies } from './ads-response.ts';

test('bodies of many small resources count with what they were joined from', async () => {
  const bodies = new SharedBodies();
  const join = (): WeakRef<object> => {
    const frame = Buffer.from('small');
    const resources = Array.from(
      { length: 2_000 },
      () => ({ sotwFrame: frame, rest: [] }) as unknown as EncodedResource,
    );
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

test('large pieces are not copied when resources go out together, small ones are joined', () => {
  const [large, small] = [Buffer.alloc(10_000, 'l'), Buffer.from('small')];
  const resource = { deltaFrame: small, sotwFrame: small, rest: [small, large, small] } as unknown as EncodedResource;
  const resources = [resource, resource];
  const bodies = new SharedBodies();
  const pieces = bodies.framesOf(resources, true);
  expect(pieces.map(({ length }) => length)).toEqual([10, 10_000, 15, 10_000, 5]);
  expect([pieces[1], pieces[3]].every((piece) => piece === large)).toBe(true);
  expect(bodies.framesOf(resources, true)).toBe(pieces);
});
