import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NameLists } from './name-list.ts';

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
