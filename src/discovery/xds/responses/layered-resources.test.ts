import fc from 'fast-check';
import { expect, it } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import type { EncodedResource } from '../resource-source.ts';
import { SentResources } from './ads-sent.ts';
import { LayeredResources } from './layered-resources.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

const bytes = new Uint8Array();
const resourceOf = (name: string, version: string): EncodedResource => ({
  ...{ name, version },
  ...{ sotwFrame: bytes, deltaFrame: bytes, rest: [] },
});
const versions = fc.array(fc.tuple(fc.constantFrom(...'abcdef'), fc.constantFrom('1', '2')), { maxLength: 8 });
const resources = versions.map((pairs) => new Map(pairs.map(([name, version]) => [name, resourceOf(name, version)])));
const without = fc.subarray([...'abcdef']);

interface Layers {
  readonly own: ResourceMap;
  readonly without: readonly string[];
}
const layers = fc.record({ own: resources, without }).map(({ own, without: left }): Layers => {
  return { own, without: left.filter((name) => !own.has(name)) };
});

function layered(base: ResourceMap, { own, without: left }: Layers): ResourceMap {
  return LayeredResources.over(base, own.values(), left);
}

/** What the layers mean. */
function plain(base: ResourceMap, { own, without: left }: Layers): ResourceMap {
  const map = new Map([...base, ...own]);
  for (const name of left) map.delete(name);
  return map;
}

it('a layered map answers as a map of the same would', () => {
  fc.assert(
    fc.property(resources, layers, layers, (base, one, other) => {
      for (const [map, model] of [
        [layered(base, one), plain(base, one)],
        [layered(layered(base, one), other), plain(plain(base, one), other)],
      ] as const) {
        expect([...map]).toEqual([...model]);
        expect([...map.keys()]).toEqual([...model.keys()]);
        expect([...map.values()]).toEqual([...model.values()]);
        expect(map.size).toBe(model.size);
        for (const name of 'abcdef') expect([map.get(name), map.has(name)]).toEqual([model.get(name), model.has(name)]);
      }
    }),
  );
});

it('it is the base where nothing is other, and the map before where that was the same', () => {
  const base = new Map([['a', resourceOf('a', '1')]]);
  expect(LayeredResources.over(base, base.values(), ['b'])).toBe(base);
  const before = LayeredResources.over(base, [resourceOf('b', '1')], ['a']);
  const own = [...before.values()];
  expect(LayeredResources.over(base, own, ['a'], before)).toBe(before);
  expect(LayeredResources.over(base, own, [], before)).not.toBe(before);
  expect(LayeredResources.over(base, [resourceOf('b', '1')], ['a'], before)).not.toBe(before);
});

it('what is sent from one to the next is what would be sent of whole maps', () => {
  const order = { typeUrl: clusterType, names: '*' as const, all: false, changed: true, asked: [] };
  const sentOf = (delta: boolean, ...maps: readonly ResourceMap[]) => {
    const sent = new SentResources(delta);
    return maps.map((map) => {
      const selection = sent.take(order, { version: '1', resources: map });
      const names = selection && [...selection.resources.values()].map(({ name, version }) => `${name} ${version}`);
      return selection && { removed: selection.removed, names: names!.sort() };
    });
  };
  fc.assert(
    fc.property(resources, resources, layers, layers, fc.boolean(), (first, second, one, other, delta) => {
      const expected = sentOf(delta, plain(first, one), plain(second, other), plain(second, one));
      expect(sentOf(delta, layered(first, one), layered(second, other), layered(second, one))).toEqual(expected);
      expect(sentOf(delta, layered(first, one), plain(second, other), layered(second, one))).toEqual(expected);
    }),
  );
});

it('many that differ a little from one are compared with the next at the cost of what they do not share', () => {
  let looks = 0;
  class Counted extends Map<string, EncodedResource> {
    override [Symbol.iterator](): MapIterator<[string, EncodedResource]> {
      looks += this.size;
      return super[Symbol.iterator]();
    }
    override keys(): MapIterator<string> {
      looks += this.size;
      return super.keys();
    }
  }
  const names = Array.from({ length: 1_000 }, (_, index) => `cluster-${index}`);
  const before = new Counted(names.map((name) => [name, resourceOf(name, '1')]));
  const after = new Counted([...before, ['cluster-7', resourceOf('cluster-7', '2')]]);
  const order = { typeUrl: clusterType, names: '*' as const, all: false, changed: true, asked: [] };
  const streams = Array.from({ length: 50 }, (_, index) => {
    const own = [resourceOf(`inbound-${index}`, '1')];
    const sent = new SentResources(true);
    sent.take({ ...order, all: true }, { version: '1', resources: LayeredResources.over(before, own, []) });
    return { sent, now: LayeredResources.over(after, own, []) };
  });
  looks = 0;
  for (const { sent, now } of streams) {
    expect(sent.take(order, { version: '2', resources: now })?.changed).toEqual(['cluster-7']);
  }
  expect(looks).toBeLessThanOrEqual(2 * 1_000);
});
