import { expect, it } from 'vitest';
import { UnreadObjects } from './unread-objects.ts';

const keysOf = (entries: Iterable<readonly [string, string]>): string[] => [...entries].map(([, key]) => key);

function unreadWith(...keys: string[]): UnreadObjects {
  const unreadObjects = new UnreadObjects();
  for (const key of keys) unreadObjects.add('VirtualService', key);
  return unreadObjects;
}

it('unread objects are taken in rounds of one object per namespace, in the order of changes', () => {
  const unreadObjects = unreadWith('mallory/a', 'mallory/b', 'mallory/c', 'bank/web', 'shop/x', 'shop/y', 'mallory/a');
  expect(unreadObjects.size).toBe(6);
  const rounds = [
    unreadObjects.drainRound(),
    unreadObjects.drainRound(),
    unreadObjects.drainRound(),
    unreadObjects.drainRound(),
  ].map(keysOf);
  expect(rounds).toEqual([['mallory/a', 'bank/web', 'shop/x'], ['mallory/b', 'shop/y'], ['mallory/c'], []]);
  expect([unreadObjects.size, [...unreadObjects.kinds()]]).toEqual([0, []]);
});

it('unread objects that change again are taken by the next read, not twice by the same one', () => {
  const unreadObjects = unreadWith('bank/web');
  expect(keysOf(unreadObjects.drainRound())).toEqual(['bank/web']);
  unreadObjects.add('VirtualService', 'bank/web');
  expect([unreadObjects.size, keysOf(unreadObjects.drainRound())]).toEqual([0, []]);
  unreadObjects.endReading();
  expect(keysOf(unreadObjects.drainRound())).toEqual(['bank/web']);
  unreadObjects.endReading();
  expect(unreadObjects.size).toBe(0);
});

it('unread objects with the same name are distinguished by kind, and cluster-scoped objects count as one namespace', () => {
  const unreadObjects = unreadWith('/class', 'bank/web');
  unreadObjects.add('Service', 'bank/web');
  expect(keysOf(unreadObjects.drainRound())).toEqual(['/class', 'bank/web']);
  expect([...unreadObjects.drainRound()]).toEqual([['Service', 'bank/web']]);
});
