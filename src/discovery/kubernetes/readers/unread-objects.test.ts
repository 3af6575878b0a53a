import { expect, it } from 'vitest';
import { UnreadObjects } from './unread-objects.ts';

const keysOf = (round: Iterable<readonly [string, string]>): string[] => [...round].map(([, key]) => key);

function given(...keys: string[]): UnreadObjects {
  const unread = new UnreadObjects();
  for (const key of keys) unread.add('VirtualService', key);
  return unread;
}

it('unread objects are taken in rounds of one object per namespace, in the order of changes', () => {
  const unread = given('mallory/a', 'mallory/b', 'mallory/c', 'bank/web', 'shop/x', 'shop/y', 'mallory/a');
  expect(unread.size).toBe(6);
  const rounds = [unread.takeRound(), unread.takeRound(), unread.takeRound(), unread.takeRound()].map(keysOf);
  expect(rounds).toEqual([['mallory/a', 'bank/web', 'shop/x'], ['mallory/b', 'shop/y'], ['mallory/c'], []]);
  expect([unread.size, [...unread.kinds()]]).toEqual([0, []]);
});

it('unread objects that change again are taken by the next read, not twice by the same one', () => {
  const unread = given('bank/web');
  expect(keysOf(unread.takeRound())).toEqual(['bank/web']);
  unread.add('VirtualService', 'bank/web');
  expect([unread.size, keysOf(unread.takeRound())]).toEqual([0, []]);
  unread.endReading();
  expect(keysOf(unread.takeRound())).toEqual(['bank/web']);
  unread.endReading();
  expect(unread.size).toBe(0);
});

it('unread objects with the same name are distinguished by kind, and cluster-scoped objects count as one namespace', () => {
  const unread = given('/class', 'bank/web');
  unread.add('Service', 'bank/web');
  expect(keysOf(unread.takeRound())).toEqual(['/class', 'bank/web']);
  expect([...unread.takeRound()]).toEqual([['Service', 'bank/web']]);
});
