import { expect, test } from 'vitest';
import { Turn } from './turn.ts';

test('what is taken at our turn is taken at once where it is ours, and else as soon as it is', async () => {
  const taken: string[] = [];
  const first = new Turn(true);
  first.whenOurs(() => void taken.push('first'));
  const later = new Turn(false);
  later.whenOurs(() => void taken.push('later'));
  expect(taken).toEqual(['first']);
  await later.take();
  expect([taken, later.isOurs]).toEqual([['first', 'later'], true]);
});

test('what was given up is taken once more when it is taken back, unless nobody wants it any more', async () => {
  const taken: string[] = [];
  const turn = new Turn(true);
  turn.whenOurs(() => void taken.push('kept'));
  const forget = turn.whenOurs(() => void taken.push('forgotten'));
  turn.giveUp();
  expect(turn.isOurs).toBe(false);
  forget();
  await turn.take();
  expect(taken).toEqual(['kept', 'forgotten', 'kept']);
});

test('a turn is taken when all is taken, and fails with what cannot be', async () => {
  const turn = new Turn(false);
  let isOpen = false;
  turn.whenOurs(async () => {
    await Promise.resolve();
    isOpen = true;
  });
  await turn.take();
  expect(isOpen).toBe(true);
  const other = new Turn(false);
  other.whenOurs(() => {
    throw new Error('no room');
  });
  await expect(other.take()).rejects.toThrow('no room');
});
