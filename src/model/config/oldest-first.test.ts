import { expect, it } from 'vitest';
import { givenObject } from '../../../test/fixtures/given-world.ts';
import { itemsBeyondLimit } from './oldest-first.ts';

const item = (name: string, age: number, cost: number, kind: 'ServiceEntry' | 'Service' = 'ServiceEntry') => ({
  config: givenObject(kind, 'shop', name, {}, age),
  cost,
});
const namesOf = (items: ReturnType<typeof item>[], max: number): string[] =>
  itemsBeyondLimit(items, max).map(({ config }) => `${config.kind} ${config.name}`);

it('a shared limit admits the oldest objects, regardless of their order', () => {
  const items = [item('c', 3, 4), item('a', 1, 4), item('b', 2, 4)];
  expect([namesOf(items, 8), namesOf(items.toReversed(), 8), namesOf(items, 12)]).toEqual([
    ['ServiceEntry c'],
    ['ServiceEntry c'],
    [],
  ]);
});

it('a shared limit admits a small object after a larger one that exceeds the limit', () => {
  expect(namesOf([item('large', 1, 100), item('small', 2, 3)], 8)).toEqual(['ServiceEntry large']);
});

it('a shared limit orders objects with equal age and name by kind', () => {
  const items = [item('a', 1, 4, 'ServiceEntry'), item('a', 1, 4, 'Service')];
  expect([namesOf(items, 4), namesOf(items.toReversed(), 4)]).toEqual([['ServiceEntry a'], ['ServiceEntry a']]);
});

it('a shared limit admits several parts of one object in their order', () => {
  const { config } = item('a', 1, 0);
  const costParts = [5, 4, 1].map((cost) => ({ config, cost }));
  expect(itemsBeyondLimit(costParts, 6).map(({ cost }) => cost)).toEqual([4]);
});
