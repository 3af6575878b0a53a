import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  haveSameNames,
  intersection,
  namesWithout,
  noNames,
  readNames,
  union,
} from '../../machines/discovery/xds/name-lists.ts';

const list = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'));

describe('name lists', () => {
  test('are united, subtracted and compared like sets', () => {
    fc.assert(
      fc.property(list, list, (one, other) => {
        const sorted = (names: readonly string[]): string[] => names.toSorted();
        const [left, right] = [new Set(one), new Set(other)];
        expect(sorted(union(one, other))).toEqual(sorted([...new Set([...one, ...other])]));
        expect(sorted(namesWithout(one, other))).toEqual(sorted(one.filter((name) => !right.has(name))));
        expect(sorted(intersection(one, other))).toEqual(sorted(one.filter((name) => right.has(name))));
        const hasSameNames = left.size === right.size && one.every((name) => right.has(name));
        expect(haveSameNames(one, other)).toBe(hasSameNames);
      }),
    );
  });

  test('are returned unchanged if nothing differs, and results are cached', () => {
    const [one, other] = [
      ['a', 'b'],
      ['b', 'c'],
    ];
    expect(union(one, ['a'])).toBe(one);
    expect(union(noNames, one)).toBe(one);
    expect(namesWithout(one, ['c'])).toBe(one);
    expect(namesWithout(one, [...one])).toBe(noNames);
    expect(intersection(one, ['b', 'a'])).toBe(one);
    expect(union(one, other)).toBe(union(one, other));
    expect(namesWithout(one, other)).toBe(namesWithout(one, other));
  });

  test('have no duplicates, star or empty name after they are parsed from a client', () => {
    const plain = ['b', 'a'];
    expect(readNames(plain)).toEqual({ names: plain, hasStar: false });
    expect(readNames(plain).names).toBe(plain);
    expect(readNames(['', 'a', '*', 'a'])).toEqual({ names: ['a'], hasStar: true });
  });
});
