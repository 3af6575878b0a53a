import { expect, test } from 'vitest';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import type { EncodedResource } from '../resource-source.ts';
import { SharedBodies } from './ads-response.ts';

test('SharedBodies release joined bodies depending on the number of their resources', async () => {
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

test('SharedBodies join small frames without copying large ones', () => {
  const [large, small] = [Buffer.alloc(10_000, 'l'), Buffer.from('small')];
  const resource = { deltaFrame: small, sotwFrame: small, rest: [small, large, small] } as unknown as EncodedResource;
  const resources = [resource, resource];
  const bodies = new SharedBodies();
  const pieces = bodies.framesOf(resources, true);
  expect(pieces.map(({ length }) => length)).toEqual([10, 10_000, 15, 10_000, 5]);
  expect([pieces[1], pieces[3]].every((piece) => piece === large)).toBe(true);
  expect(bodies.framesOf(resources, true)).toBe(pieces);
});

test('SharedBodies join a response for many streams while there is space, and otherwise share its pieces', () => {
  const rest = Array.from({ length: 50 }, (_, i) => Buffer.alloc(10_000, i));
  const resource = (): EncodedResource =>
    ({ deltaFrame: Buffer.from('delta'), sotwFrame: Buffer.from('sotw'), rest }) as unknown as EncodedResource;
  const bodies = new SharedBodies();
  const sendings = (resources: readonly EncodedResource[], times: number) =>
    Array.from({ length: times }, () => bodies.framesOf(resources, true));
  const one = resource();
  // Each stream has its own list with the same resource.
  const seen = Array.from({ length: 100 }, () => bodies.framesOf([one], true));
  const [whole] = seen.at(-1)!;
  expect(seen[0]!.slice(1)).toEqual(rest);
  expect(seen.at(-1)).toEqual([Buffer.concat([one.deltaFrame, ...rest])]);
  expect(seen.slice(20).every(([first]) => first === whole)).toBe(true);
  expect(bodies.framesOf([one], false)).toEqual([one.sotwFrame, ...rest]);
  const two = [resource(), resource()];
  const both = sendings(two, 100);
  expect(both.at(-1)).toEqual([Buffer.concat(both[0]!)]);
  // Each of many namespaces has its own resource with the same chunks.
  const few = Array.from({ length: 300 }, () => sendings([resource()], 3));
  expect(few.flat().every((pieces) => pieces.length === 51 && pieces[7] === rest[6])).toBe(true);
  expect(bodies.framesOf([one], true)[0]).toBe(whole);
  for (let i = 0; i < 30; i++) sendings([resource()], 100);
  expect(bodies.framesOf([one], true)).toHaveLength(51);
});
