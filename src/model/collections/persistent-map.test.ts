import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hashOf, PersistentMap } from './persistent-map.ts';

describe('PersistentMap', () => {
  it('behaves like a Map after any edits, without modifying earlier versions', () => {
    const step = fc.record({ key: fc.integer({ min: 0, max: 60 }).map(String), value: fc.option(fc.nat(9)) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        let map = PersistentMap.empty<number>();
        const model = new Map<string, number>();
        const versions: [PersistentMap<number>, string][] = [];
        for (const { key, value } of steps) {
          versions.push([map, text(map)]);
          map = value === null ? map.withoutKey(key) : map.with(key, value);
          if (value === null) model.delete(key);
          else model.set(key, value);
          expect(map.size).toBe(model.size);
        }
        expect(text(map)).toBe(text(model));
        for (const key of model.keys()) expect(map.get(key)).toBe(model.get(key));
        for (const [version, expectedText] of versions) expect(text(version)).toBe(expectedText);
      }),
    );
  });

  it('adds many entries together with the same result as individually, without modifying earlier versions', () => {
    const entries = fc.array(fc.tuple(fc.integer({ min: 0, max: 99 }).map(String), fc.nat(9)));
    fc.assert(
      fc.property(entries, entries, entries, (first, second, third) => {
        const start = PersistentMap.of(first);
        const next = start.withAll(second);
        const textsBefore = [text(start), text(next)];
        const last = third.reduce((map, [key, value]) => map.with(key, value), next);
        next.withAll(third);
        expect([text(start), text(next)]).toEqual(textsBefore);
        expect([text(start), text(next), text(last)]).toEqual([
          text(new Map(first)),
          text(new Map([...first, ...second])),
          text(new Map([...first, ...second, ...third])),
        ]);
        expect(last.size).toBe(new Map([...first, ...second, ...third]).size);
      }),
    );
  });

  it('lists the keys that differ from another map, even if neither is derived from the other', () => {
    const step = fc.record({ key: fc.integer({ min: 0, max: 60 }).map(String), value: fc.option(fc.nat(2)) });
    const steps = fc.array(step, { maxLength: 80 });
    const edited = (start: PersistentMap<number>, edits: readonly { key: string; value: number | null }[]) =>
      edits.reduce((map, { key, value }) => (value === null ? map.withoutKey(key) : map.with(key, value)), start);
    fc.assert(
      fc.property(steps, steps, steps, (first, second, third) => {
        const start = edited(PersistentMap.empty(), first);
        for (const other of [start, edited(PersistentMap.empty(), third)]) {
          const map = edited(start, second);
          const keys = [...new Set([...map.keys(), ...other.keys()])];
          const expected = keys.filter((key) => map.get(key) !== other.get(key));
          expect([...map.differingKeys(other)].sort()).toEqual(expected.sort());
        }
      }),
    );
  });

  it('distinguishes keys with equal hashes', () => {
    const [a, b] = ['key-901258', 'key-1540052'] as const;
    expect(hashOf(a)).toBe(hashOf(b));
    const map = PersistentMap.of([[a, 1] as const, [b, 2] as const]);
    expect([map.get(a), map.get(b), map.size]).toEqual([1, 2, 2]);
    expect([map.withoutKey(a).get(a), map.withoutKey(a).get(b)]).toEqual([undefined, 2]);
  });

  it('returns itself when nothing changes', () => {
    const map = PersistentMap.of([['a', 1] as const]);
    expect(map.with('a', 1)).toBe(map);
    expect(map.withoutKey('b')).toBe(map);
  });
});

const text = (map: ReadonlyMap<string, number>): string => JSON.stringify([...map].sort());
