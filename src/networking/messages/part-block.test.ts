import { create, fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { VirtualHostSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { type NamedPart, type PartBlock, sharedList, splitIntoBlocks } from './part-block.ts';
import { Encodable, ResourceOfParts } from './resource.ts';

const field = 2;
let lastNumber = 0;

function buildPart(index: number): NamedPart {
  const name = `svc-${index}.shop.svc.cluster.local:80`;
  const virtualHost = new Encodable(VirtualHostSchema, create(VirtualHostSchema, { name }));
  return Object.assign(virtualHost, { name, number: ++lastNumber });
}

const parts = Array.from({ length: 400 }, (_, index) => buildPart(index));
const notIn = (blocks: readonly PartBlock[], otherParts: readonly PartBlock[]) =>
  blocks.filter((block) => !otherParts.includes(block));

describe('blocks of parts', () => {
  it('blocks are large enough to be written separately, and small enough to be shared', () => {
    const sizes = splitIntoBlocks(field, parts).map((block) => block.parts.length);
    expect(sizes.reduce((a, b) => a + b)).toBe(parts.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64);
    expect(sizes.length).toBeGreaterThan(10);
    expect(sizes.length).toBeLessThan(50);
  });

  it('blocks have a maximum size even if no name is a boundary', () => {
    const equalParts = Array.from({ length: 1_000 }, () => parts[0]!);
    expect(splitIntoBlocks(field, equalParts).every((block) => block.parts.length <= 64)).toBe(true);
  });

  it('lists that differ in one part share all but a few blocks', () => {
    const initialBlocks = splitIntoBlocks(field, parts);
    fc.assert(
      fc.property(fc.nat({ max: parts.length - 1 }), fc.constantFrom('other', 'gone', 'new'), (partIndex, change) => {
        const changedParts = [...parts];
        if (change === 'other')
          changedParts[partIndex] = Object.assign(buildPart(partIndex), { name: parts[partIndex]!.name });
        else if (change === 'gone') changedParts.splice(partIndex, 1);
        else changedParts.splice(partIndex, 0, buildPart(1_000));
        const changedBlocks = splitIntoBlocks(field, changedParts);
        expect(changedBlocks.flatMap((block) => block.parts)).toEqual(changedParts);
        expect(notIn(changedBlocks, initialBlocks).length).toBeLessThanOrEqual(4);
      }),
    );
  });

  it('equal blocks are the same object, as are equal lists of blocks', () => {
    const [one, other] = [splitIntoBlocks(field, parts), splitIntoBlocks(field, [...parts])];
    expect(notIn(one, other)).toEqual([]);
    expect(sharedList([...other])).toBe(sharedList(one));
    expect(sharedList(other.slice(1))).not.toBe(sharedList(one));
  });

  it('a message of blocks has the same bytes and content before and after its blocks are encoded', () => {
    const message = create(RouteConfigurationSchema, { name: '80' });
    const wholeResource = { name: '80', schema: RouteConfigurationSchema, message, dependsOn: [] };
    const resource = new ResourceOfParts(wholeResource, splitIntoBlocks(field, parts));
    const names = parts.map(({ name }) => name);
    const namesIn = ({ virtualHosts }: { virtualHosts: readonly { readonly name: string }[] }) =>
      virtualHosts.map(({ name }) => name);
    expect(namesIn(resource.message as never)).toEqual(names);
    const decoded = fromBinary(RouteConfigurationSchema, resource.bytes);
    expect([decoded.name, namesIn(decoded)]).toEqual(['80', names]);
    expect(namesIn(resource.message as never)).toEqual(names);
    expect(Buffer.concat(resource.chunks).equals(resource.bytes)).toBe(true);
  });
});
