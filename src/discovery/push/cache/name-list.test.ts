import fc from 'fast-check';
import { expect, test } from 'vitest';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { InternedNameLists, ModelLists } from './name-list.ts';

const subjectOf = (name: string): string => name.slice(name.lastIndexOf('|') + 1);
const name = fc.tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom('a', 'a.b', 'b', 'c', ''));

test('NameList returns exactly the names of a subject in alphabetical order', () => {
  fc.assert(
    fc.property(fc.array(name), fc.constantFrom('a', 'a.b', 'b', 'c', '', 'd'), (subjectParts, subject) => {
      const names = [...new Set(subjectParts.map(([port, host]) => `outbound|${port}||${host}`))];
      const expected = names.filter((one) => subjectOf(one) === subject).sort();
      expect(new InternedNameLists().intern(names).namesOf(subject, subjectOf)).toEqual(expected);
    }),
  );
});

test('InternedNameLists intern equal lists, regardless of the order of names', () => {
  const lists = new InternedNameLists();
  expect(lists.intern(['b', 'a'])).toBe(lists.intern(['a', 'b']));
  expect(lists.intern(['a'])).not.toBe(lists.intern(['a', 'b']));
});

test('ModelLists stores a list as differences from a similar one, with the same result each time', () => {
  const longList = fc.uniqueArray(fc.integer({ min: 0, max: 99 }), { minLength: 40 });
  fc.assert(
    fc.property(
      longList,
      fc.uniqueArray(fc.integer({ min: 0, max: 99 }), { maxLength: 3 }),
      (numbers, toggledNumbers) => {
        const [lists, models] = [new InternedNameLists(), new ModelLists()];
        const first = lists.intern(numbers.map(String));
        // Toggles the changed names: removes those that the list contains, and adds the others.
        const other = lists.intern(
          [...numbers, ...toggledNumbers]
            .filter((one) => numbers.includes(one) !== toggledNumbers.includes(one))
            .map(String),
        );
        expect(models.modelFor(first)).toEqual({ model: first, addedNames: [], missingNames: [] });
        const { model, addedNames, missingNames } = models.modelFor(other);
        expect(model).toBe(first);
        expect([...first.names.filter((one) => !missingNames.includes(one)), ...addedNames].sort()).toEqual(
          other.names,
        );
        expect(addedNames.length + missingNames.length).toBe(toggledNumbers.length);
        expect(models.modelFor(other)).toBe(models.modelFor(other));
      },
    ),
  );
});

test('ModelLists stores a list completely if there is no similar one, and releases unused lists', async () => {
  const [lists, models] = [new InternedNameLists(), new ModelLists()];
  const listFrom = (start: number) => lists.intern(Array.from({ length: 100 }, (_, index) => `name-${start + index}`));
  const keptList = listFrom(0);
  const unusedLists = Array.from({ length: 20 }, (_, index) => {
    const list = listFrom(1_000 * (index + 1));
    expect(models.modelFor(list).model).toBe(list);
    return new WeakRef(list);
  });
  // Although the search for a similar list no longer reaches this one, it is still its own model.
  expect(models.modelFor(keptList).model).toBe(keptList);
  await eventually('lists that nobody holds are gone', async () => {
    await collectGarbage();
    return unusedLists.every((list) => list.deref() === undefined);
  });
});
