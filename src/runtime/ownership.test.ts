import { expect, test } from 'vitest';
import { Ownership } from './ownership.ts';

test('Ownership acquires a resource immediately if this program is the owner, otherwise when it becomes the owner', async () => {
  const acquired: string[] = [];
  const first = new Ownership(true);
  first.onAcquired(() => void acquired.push('first'));
  const laterOwnership = new Ownership(false);
  laterOwnership.onAcquired(() => void acquired.push('later'));
  expect(acquired).toEqual(['first']);
  await laterOwnership.acquireAll();
  expect([acquired, laterOwnership.isOurs]).toEqual([['first', 'later'], true]);
});

test('Ownership reacquires a released resource when this program becomes the owner again, unless it was unregistered', async () => {
  const acquired: string[] = [];
  const ownership = new Ownership(true);
  ownership.onAcquired(() => void acquired.push('kept'));
  const forget = ownership.onAcquired(() => void acquired.push('forgotten'));
  ownership.relinquish();
  expect(ownership.isOurs).toBe(false);
  forget();
  await ownership.acquireAll();
  expect(acquired).toEqual(['kept', 'forgotten', 'kept']);
});

test('Ownership is complete when all resources are acquired, and otherwise fails with the error of the first unavailable one', async () => {
  const ownership = new Ownership(false);
  let isOpen = false;
  ownership.onAcquired(async () => {
    await Promise.resolve();
    isOpen = true;
  });
  await ownership.acquireAll();
  expect(isOpen).toBe(true);
  const other = new Ownership(false);
  other.onAcquired(() => {
    throw new Error('no room');
  });
  await expect(other.acquireAll()).rejects.toThrow('no room');
});
