import { expect, it } from 'vitest';
import { Shares } from './shares.ts';

it('who has none is forgotten, and who has most is known', () => {
  const shares = new Shares();
  expect([shares.most, shares.of('a')]).toEqual([0, 0]);
  shares.add('a', 2);
  shares.add('b', 3);
  shares.add('b', -2);
  expect([shares.most, shares.of('a'), shares.of('b')]).toEqual([2, 2, 1]);
  shares.add('a', -2);
  expect([shares.most, shares.of('a')]).toEqual([1, 0]);
});
