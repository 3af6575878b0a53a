import fc from 'fast-check';
import { expect, test } from 'vitest';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { ModelLists, NameLists } from './name-list.ts';

const subjectOf = (name: string): string => name.slice(name.lastIndexOf('|') + 1);
const name = fc.tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom('a', 'a.b', 'b', 'c', ''));

test('the names of a subject are all of it, and no others, in alphabetical order', () => {
  fc.assert(
    fc.property(fc.array(name), fc.constantFrom('a', 'a.b', 'b', 'c', '', 'd'), (parts, subject) => {
      const names = [...new Set(parts.map(([port, host]) => `outbound|${port}||${host}`))];
      const wanted = names.filter((one) => subjectOf(one) === subject).sort();
      expect(new NameLists().of(names).namesOf(subject, subjectOf)).toEqual(wanted);
    }),
  );
});

test('equal names are one list, whatever order they come in', () => {
  const lists = new NameLists();
  expect(lists.of(['b', 'a'])).toBe(lists.of(['a', 'b']));
  expect(lists.of(['a'])).not.toBe(lists.of(['a', 'b']));
});

test('a list that is like one of those before is that one with a few differences, and the same each time', () => {
  const longList = fc.uniqueArray(fc.integer({ min: 0, max: 99 }), { minLength: 40 });
  fc.assert(
    fc.property(longList, fc.uniqueArray(fc.integer({ min: 0, max: 99 }), { maxLength: 3 }), (numbers, changed) => {
      const [lists, models] = [new NameLists(), new ModelLists()];
      const first = lists.of(numbers.map(String));
      // What is in it goes, what is not comes.
      const other = lists.of(
        [...numbers, ...changed].filter((one) => numbers.includes(one) !== changed.includes(one)).map(String),
      );
      expect(models.of(first)).toEqual({ model: first, added: [], missing: [] });
      const { model, added, missing } = models.of(other);
      expect(model).toBe(first);
      expect([...first.names.filter((one) => !missing.includes(one)), ...added].sort()).toEqual(other.names);
      expect(added.length + missing.length).toBe(changed.length);
      expect(models.of(other)).toBe(models.of(other));
    }),
  );
});

test('a list that is like none is its own model, and no model is kept for those who may come', async () => {
  const [lists, models] = [new NameLists(), new ModelLists()];
  const listFrom = (start: number) => lists.of(Array.from({ length: 100 }, (_, index) => `name-${start + index}`));
  const kept = listFrom(0);
  const made = Array.from({ length: 20 }, (_, index) => {
    const list = listFrom(1_000 * (index + 1));
    expect(models.of(list).model).toBe(list);
    return new WeakRef(list);
  });
  // Too many came since for it to be compared with: no model of others, and its own still.
  expect(models.of(kept).model).toBe(kept);
  await eventually('lists that nobody holds are gone', async () => {
    await collectGarbage();
    return made.every((list) => list.deref() === undefined);
  });
});
