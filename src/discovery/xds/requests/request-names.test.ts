import { expect, test } from 'vitest';
import { RequestNameLists } from './request-names.ts';

test('RequestNameLists shares a list between clients that request equal names in any order', () => {
  const lists = new RequestNameLists();
  expect(lists.intern(['b', 'a', 'b'])).toBe(lists.intern(['a', 'b']));
});

test.each([[['a\nb', 'c']], [['a', 'b\nc']], [['a","b', 'c']]])(
  'RequestNameLists returns the requested names %j, even if they contain separators',
  (names) => {
    const lists = new RequestNameLists();
    for (const similarNames of [
      ['a\nb', 'c'],
      ['a', 'b\nc'],
      ['a","b', 'c'],
    ])
      lists.intern(similarNames);
    expect(lists.intern(names)).toEqual(names);
  },
);
