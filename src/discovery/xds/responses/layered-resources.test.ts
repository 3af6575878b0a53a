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
  ...{ sotwFrame: bytes, deltaFrame: bytes, tailChunks: [] },
});
const versions = fc.array(fc.tuple(fc.constantFrom(...'abcdef'), fc.constantFrom('1', '2')), { maxLength: 8 });
const resources = versions.map((pairs) => new Map(pairs.map(([name, version]) => [name, resourceOf(name, version)])));
const nameSubset = fc.subarray([...'abcdef']);

interface Layers {
  readonly overrides: ResourceMap;
  readonly omittedNames: readonly string[];
}
const layers = fc
  .record({ overrides: resources, without: nameSubset })
  .map(({ overrides, without: removedNames }): Layers => {
    return { overrides, omittedNames: removedNames.filter((name) => !overrides.has(name)) };
  });

function layered(base: ResourceMap, { overrides, omittedNames: removedNames }: Layers): ResourceMap {
  return LayeredResources.createLayerOver(base, overrides.values(), removedNames);
}

/** Plain map with the same content. */
function plain(base: ResourceMap, { overrides, omittedNames: removedNames }: Layers): ResourceMap {
  const map = new Map([...base, ...overrides]);
  for (const name of removedNames) map.delete(name);
  return map;
}

it('LayeredResources behave like a plain map with equal content', () => {
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

it('LayeredResources.over returns the base map or the previous map if the result is equal', () => {
  const base = new Map([['a', resourceOf('a', '1')]]);
  expect(LayeredResources.createLayerOver(base, base.values(), ['b'])).toBe(base);
  const previousMap = LayeredResources.createLayerOver(base, [resourceOf('b', '1')], ['a']);
  const overrides = [...previousMap.values()];
  expect(LayeredResources.createLayerOver(base, overrides, ['a'], previousMap)).toBe(previousMap);
  expect(LayeredResources.createLayerOver(base, overrides, [], previousMap)).not.toBe(previousMap);
  expect(LayeredResources.createLayerOver(base, [resourceOf('b', '1')], ['a'], previousMap)).not.toBe(previousMap);
});

it('LayeredResources cause the same responses as plain maps', () => {
  const order = { typeUrl: clusterType, names: '*' as const, all: false, changed: true, requested: [] };
  const sentOf = (delta: boolean, ...maps: readonly ResourceMap[]) => {
    const sentResources = new SentResources(delta);
    return maps.map((map) => {
      const selection = sentResources.selectResources(order, { version: '1', resources: map });
      const names = selection && [...selection.resources.values()].map(({ name, version }) => `${name} ${version}`);
      return selection && { removed: selection.removedNames, names: names!.sort() };
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

it('LayeredResources with the same base are compared at the cost of their differences', () => {
  let visits = 0;
  class Counted extends Map<string, EncodedResource> {
    override [Symbol.iterator](): MapIterator<[string, EncodedResource]> {
      visits += this.size;
      return super[Symbol.iterator]();
    }
    override keys(): MapIterator<string> {
      visits += this.size;
      return super.keys();
    }
  }
  const names = Array.from({ length: 1_000 }, (_, index) => `cluster-${index}`);
  const previousMap = new Counted(names.map((name) => [name, resourceOf(name, '1')]));
  const changedMap = new Counted([...previousMap, ['cluster-7', resourceOf('cluster-7', '2')]]);
  const order = { typeUrl: clusterType, names: '*' as const, all: false, changed: true, requested: [] };
  const streams = Array.from({ length: 50 }, (_, index) => {
    const overrides = [resourceOf(`inbound-${index}`, '1')];
    const sentResources = new SentResources(true);
    sentResources.selectResources(
      { ...order, all: true },
      { version: '1', resources: LayeredResources.createLayerOver(previousMap, overrides, []) },
    );
    return { sent: sentResources, now: LayeredResources.createLayerOver(changedMap, overrides, []) };
  });
  visits = 0;
  for (const { sent, now } of streams) {
    expect(sent.selectResources(order, { version: '2', resources: now })?.changedNames).toEqual(['cluster-7']);
  }
  expect(visits).toBeLessThanOrEqual(2 * 1_000);
});
