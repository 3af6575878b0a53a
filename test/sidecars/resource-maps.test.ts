import { describe, expect, test } from 'vitest';
import type { ResourceFacts } from './resource-batches.ts';
import {
  areEqual,
  changeOf,
  coversNames,
  namesIn,
  type ResourceMap,
  sameList,
  withBatch,
  withoutNames,
} from './resource-maps.ts';

const facts = (name: string, digest: string, refersTo: readonly string[] = []): ResourceFacts => ({
  name,
  version: '',
  digest,
  bytes: 1,
  refersTo,
});
const mapOf = (...all: ResourceFacts[]): ResourceMap => new Map(all.map((fact) => [fact.name, fact]));

describe('the resource map of a proxy', () => {
  const previousMap = mapOf(facts('a', '1'), facts('b', '1'));

  test('gets new resources, once for all proxies with the same map', () => {
    const batch = mapOf(facts('b', '2'), facts('c', '1'));
    const nextMap = withBatch(previousMap, batch);
    expect([...nextMap.values()].map(({ name, digest }) => name + digest)).toEqual(['a1', 'b2', 'c1']);
    expect(withBatch(previousMap, batch)).toBe(nextMap);
    expect(previousMap.get('b')?.digest).toBe('1');
  });

  test('stays the same object if it already contains all resources of a response', () => {
    expect(withBatch(previousMap, mapOf(facts('a', '1')))).toBe(previousMap);
    expect(areEqual(previousMap, mapOf(facts('b', '1'), facts('a', '1')))).toBe(true);
    expect(areEqual(previousMap, mapOf(facts('b', '2'), facts('a', '1')))).toBe(false);
    expect(areEqual(previousMap, mapOf(facts('a', '1')))).toBe(false);
  });

  test('loses removed resources', () => {
    expect([...withoutNames(previousMap, sameList(['a', 'unknown'])).keys()]).toEqual(['b']);
    expect(withoutNames(previousMap, sameList(['unknown']))).toBe(previousMap);
    expect(withoutNames(previousMap, sameList(['a']))).toBe(withoutNames(previousMap, sameList(['a'])));
  });
});

test('a proxy subscribes to the names to which its clusters refer, and unsubscribes from others', () => {
  const previous = namesIn(mapOf(facts('a', '1', ['ea']), facts('b', '1', ['eb']), facts('c', '1')));
  const next = namesIn(mapOf(facts('a', '1', ['ea']), facts('d', '1', ['ed', 'ea'])));
  expect(previous.sorted).toEqual(['ea', 'eb']);
  expect(changeOf(previous, next)).toEqual({ added: ['ed'], removed: ['eb'] });
  expect(coversNames(mapOf(facts('ea', '1')), next)).toBe(false);
  expect(coversNames(mapOf(facts('ea', '1'), facts('ed', '1')), next)).toBe(true);
});
