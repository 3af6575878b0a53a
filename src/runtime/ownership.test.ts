import { expect, test } from 'vitest';
import { Ownership } from './ownership.ts';

test('a resource is taken at once by the owner, and otherwise when ownership is acquired', async () => {
  const taken: string[] = [];
  const first = new Ownership(true);
  first.whenOurs(() => void taken.push('first'));
  const later = new Ownership(false);
  later.whenOurs(() => void taken.push('later'));
  expect(taken).toEqual(['first']);
  await later.take();
  expect([taken, later.isOurs]).toEqual([['first', 'later'], true]);
});

test('a resource that was given up is taken again when ownership returns, unless it was unregistered', async () => {
  const taken: string[] = [];
  const ownership = new Ownership(true);
  ownership.whenOurs(() => void taken.push('kept'));
  const forget = ownership.whenOurs(() => void taken.push('forgotten'));
  ownership.giveUp();
  expect(ownership.isOurs).toBe(false);
  forget();
  await ownership.take();
  expect(taken).toEqual(['kept', 'forgotten', 'kept']);
});

test('acquiring ownership succeeds when all resources are taken, and fails with the error of the first that cannot be', async () => {
  const ownership = new Ownership(false);
  let isOpen = false;
  ownership.whenOurs(async () => {
    await Promise.resolve();
    isOpen = true;
  });
  await ownership.take();
  expect(isOpen).toBe(true);
  const other = new Ownership(false);
  other.whenOurs(() => {
    throw new Error('no room');
  });
  await expect(other.take()).rejects.toThrow('no room');
});
