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
const mapOf = (...all: ResourceFacts[]): ResourceMap => new Map(all.map((each) => [each.name, each]));

describe('the resource map of a proxy', () => {
  const had = mapOf(facts('a', '1'), facts('b', '1'));

  test('gets new resources, once for all proxies with the same map', () => {
    const batch = mapOf(facts('b', '2'), facts('c', '1'));
    const has = withBatch(had, batch);
    expect([...has.values()].map(({ name, digest }) => name + digest)).toEqual(['a1', 'b2', 'c1']);
    expect(withBatch(had, batch)).toBe(has);
    expect(had.get('b')?.digest).toBe('1');
  });

  test('stays the same object if it already contains all resources of a response', () => {
    expect(withBatch(had, mapOf(facts('a', '1')))).toBe(had);
    expect(areEqual(had, mapOf(facts('b', '1'), facts('a', '1')))).toBe(true);
    expect(areEqual(had, mapOf(facts('b', '2'), facts('a', '1')))).toBe(false);
    expect(areEqual(had, mapOf(facts('a', '1')))).toBe(false);
  });

  test('loses removed resources', () => {
    expect([...withoutNames(had, sameList(['a', 'unknown'])).keys()]).toEqual(['b']);
    expect(withoutNames(had, sameList(['unknown']))).toBe(had);
    expect(withoutNames(had, sameList(['a']))).toBe(withoutNames(had, sameList(['a'])));
  });
});

test('a proxy subscribes to the names to which its clusters refer, and unsubscribes from others', () => {
  const previous = namesIn(mapOf(facts('a', '1', ['ea']), facts('b', '1', ['eb']), facts('c', '1')));
  const after = namesIn(mapOf(facts('a', '1', ['ea']), facts('d', '1', ['ed', 'ea'])));
  expect(previous.sorted).toEqual(['ea', 'eb']);
  expect(changeOf(previous, after)).toEqual({ added: ['ed'], removed: ['eb'] });
  expect(coversNames(mapOf(facts('ea', '1')), after)).toBe(false);
  expect(coversNames(mapOf(facts('ea', '1'), facts('ed', '1')), after)).toBe(true);
});
