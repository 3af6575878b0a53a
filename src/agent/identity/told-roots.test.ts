/** A control plane whose root is rotated stays known to agents whose file of roots does not follow. */
import { expect, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { certificatesIn } from './root-set.ts';
import { ToldRoots } from './told-roots.ts';

const [first, second, third, foreign] = ['first', 'second', 'third', 'foreign'].map(
  (name) => certificatesIn(Buffer.from(createAuthority(name).certificate))[0]!,
) as [string, string, string, string];

const known = (told: ToldRoots, file: string): string[] => certificatesIn(Buffer.from(told.beside(file)));

test('roots that were told follow those of the file, from rotation to rotation', () => {
  const told = new ToldRoots();
  expect(told.beside(first)).toBe(first);
  told.tell([first]);
  told.tell([first, second]);
  expect(known(told, first)).toEqual(expect.arrayContaining([first, second]));
  told.tell([second]);
  told.tell([second, third]);
  told.tell([third]);
  expect(known(told, first)).toHaveLength(2);
  expect(known(told, first)).toEqual(expect.arrayContaining([first, third]));
  // The file has followed meanwhile.
  expect(known(told, third)).toEqual([third]);
});

test('a control plane that is known by a root outside the mesh stays so: what the mesh trusts is not asked', () => {
  const told = new ToldRoots();
  told.tell([first]);
  told.tell([first, second]);
  expect(told.beside(foreign)).toBe(foreign);
});

test('roots that have nothing in common with those before begin anew', () => {
  const told = new ToldRoots();
  told.tell([first]);
  told.tell([foreign]);
  expect(told.beside(first)).toBe(first);
  expect(known(told, foreign)).toEqual([foreign]);
});

test('however often a root is rotated, a bounded number of them is remembered', () => {
  const told = new ToldRoots();
  const all = Array.from(
    { length: 40 },
    () => certificatesIn(Buffer.from(createAuthority('one of many').certificate))[0]!,
  );
  for (const [index, root] of all.entries()) told.tell(index === 0 ? [root] : [all[index - 1]!, root]);
  expect(known(told, all.at(-9)!)).toHaveLength(3);
  expect(told.beside(all[0]!)).toBe(all[0]);
});
