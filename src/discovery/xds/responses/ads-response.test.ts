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
      () => ({ sotwFrame: frame, tailChunks: [] }) as unknown as EncodedResource,
    );
    bodies.framesOf(resources, false);
    return new WeakRef(resources);
  };
  const joinedFrames = Array.from({ length: 100 }, join);
  await eventually('most of them are given back', async () => {
    await collectGarbage();
    return joinedFrames.filter((one) => one.deref() !== undefined).length < 20;
  });
  expect(joinedFrames.at(-1)?.deref()).toBeDefined();
});

test('SharedBodies join small frames without copying large ones', () => {
  const [largeChunk, smallChunk] = [Buffer.alloc(10_000, 'l'), Buffer.from('small')];
  const resource = {
    deltaFrame: smallChunk,
    sotwFrame: smallChunk,
    tailChunks: [smallChunk, largeChunk, smallChunk],
  } as unknown as EncodedResource;
  const resources = [resource, resource];
  const bodies = new SharedBodies();
  const frames = bodies.framesOf(resources, true);
  expect(frames.map(({ length }) => length)).toEqual([10, 10_000, 15, 10_000, 5]);
  expect([frames[1], frames[3]].every((sharedFrame) => sharedFrame === largeChunk)).toBe(true);
  expect(bodies.framesOf(resources, true)).toBe(frames);
});

test('SharedBodies join a response for many streams while there is space, and otherwise share its pieces', () => {
  const otherChunks = Array.from({ length: 50 }, (_, i) => Buffer.alloc(10_000, i));
  const resource = (): EncodedResource =>
    ({
      deltaFrame: Buffer.from('delta'),
      sotwFrame: Buffer.from('sotw'),
      tailChunks: otherChunks,
    }) as unknown as EncodedResource;
  const bodies = new SharedBodies();
  const sendings = (resources: readonly EncodedResource[], times: number) =>
    Array.from({ length: times }, () => bodies.framesOf(resources, true));
  const one = resource();
  // Each stream has its own list with the same resource.
  const frameLists = Array.from({ length: 100 }, () => bodies.framesOf([one], true));
  const [joinedFrame] = frameLists.at(-1)!;
  expect(frameLists[0]!.slice(1)).toEqual(otherChunks);
  expect(frameLists.at(-1)).toEqual([Buffer.concat([one.deltaFrame, ...otherChunks])]);
  expect(frameLists.slice(20).every(([first]) => first === joinedFrame)).toBe(true);
  expect(bodies.framesOf([one], false)).toEqual([one.sotwFrame, ...otherChunks]);
  const twoResources = [resource(), resource()];
  const pairSendings = sendings(twoResources, 100);
  expect(pairSendings.at(-1)).toEqual([Buffer.concat(pairSendings[0]!)]);
  // Each of many namespaces has its own resource with the same chunks.
  const singleSendings = Array.from({ length: 300 }, () => sendings([resource()], 3));
  expect(singleSendings.flat().every((frames) => frames.length === 51 && frames[7] === otherChunks[6])).toBe(true);
  expect(bodies.framesOf([one], true)[0]).toBe(joinedFrame);
  for (let i = 0; i < 30; i++) sendings([resource()], 100);
  expect(bodies.framesOf([one], true)).toHaveLength(51);
});
