/** Agents with an outdated root file survive a root rotation of the control plane. */
import { expect, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { DistributedRoots } from './distributed-roots.ts';
import { parseCertificates } from './root-set.ts';

const [first, secondRoot, third, foreignRoot] = ['first', 'second', 'third', 'foreign'].map(
  (name) => parseCertificates(Buffer.from(createAuthority(name).certificate))[0]!,
) as [string, string, string, string];

const trustedRoots = (distributed: DistributedRoots, file: string): string[] =>
  parseCertificates(Buffer.from(distributed.addTo(file)));

test('trusts distributed roots that follow those of the file over several rotations', () => {
  const distributed = new DistributedRoots();
  expect(distributed.addTo(first)).toBe(first);
  distributed.update([first]);
  distributed.update([first, secondRoot]);
  expect(trustedRoots(distributed, first)).toEqual(expect.arrayContaining([first, secondRoot]));
  distributed.update([secondRoot]);
  distributed.update([secondRoot, third]);
  distributed.update([third]);
  expect(trustedRoots(distributed, first)).toHaveLength(2);
  expect(trustedRoots(distributed, first)).toEqual(expect.arrayContaining([first, third]));
  // The file has been updated.
  expect(trustedRoots(distributed, third)).toEqual([third]);
});

test('does not verify a control plane by mesh roots if its own root is outside of the mesh', () => {
  const distributed = new DistributedRoots();
  distributed.update([first]);
  distributed.update([first, secondRoot]);
  expect(distributed.addTo(foreignRoot)).toBe(foreignRoot);
});

test('restarts the lineage when new roots share no root with the previous ones', () => {
  const distributed = new DistributedRoots();
  distributed.update([first]);
  distributed.update([foreignRoot]);
  expect(distributed.addTo(first)).toBe(first);
  expect(trustedRoots(distributed, foreignRoot)).toEqual([foreignRoot]);
});

test('limits the number of remembered roots', () => {
  const distributed = new DistributedRoots();
  const all = Array.from(
    { length: 40 },
    () => parseCertificates(Buffer.from(createAuthority('one of many').certificate))[0]!,
  );
  for (const [index, root] of all.entries()) distributed.update(index === 0 ? [root] : [all[index - 1]!, root]);
  expect(trustedRoots(distributed, all.at(-9)!)).toHaveLength(3);
  expect(distributed.addTo(all[0]!)).toBe(all[0]);
});
