import { expect, it } from 'vitest';
import { FairQueue } from '../../../model/collections/fair-queue.ts';
import { type SigningLimits, signingKey, signingShares } from './signing-shares.ts';

interface Waiting {
  readonly name: string;
  readonly endsAt: number;
}

function createShares(limits: SigningLimits = { maxWaiting: 10_000, maxOfConnection: 16 }) {
  const queue = new FairQueue<Waiting>(signingShares(limits));
  const add = (account: string, name: string, endsAt: number, connection = name): string | undefined =>
    queue.add({ name, endsAt }, signingKey(`spiffe://td/ns/${account.replace('/', '/sa/')}`, connection))?.name;
  return { queue, add, order: () => Array.from({ length: queue.size }, () => queue.takeNext()?.name) };
}

it('signingShares prefers certificates that expire soonest only within a connection', () => {
  const { add, order } = createShares();
  for (const [name, endsAt] of [
    ['day', 24],
    ['none', 0],
    ['hour', 1],
  ] as const)
    add('shop/cart', name, endsAt, 'one connection');
  add('bank/pay', 'renewal', 48);
  expect(order()).toEqual(['none', 'renewal', 'hour', 'day']);
});

it('signingShares serves another namespace second while one namespace floods the queue with many accounts and connections', () => {
  const { add, order } = createShares();
  for (let i = 0; i < 2_000; i++) add(`mallory/account-${i % 50}`, `flood ${i}`, 0);
  add('bank/pay', 'renewal', 24);
  expect(order().indexOf('renewal')).toBeLessThanOrEqual(1);
});

it('signingShares serves another account of a namespace second while one account floods the queue with many connections', () => {
  const { add, order } = createShares();
  for (let i = 0; i < 2_000; i++) add('shop/crawler', `flood ${i}`, 0);
  add('shop/cart', 'renewal', 24);
  expect(order().indexOf('renewal')).toBeLessThanOrEqual(1);
});

it('signingShares rejects requests of the largest namespace if the queue is full, and of a connection above its limit', () => {
  const { add, queue } = createShares({ maxWaiting: 4, maxOfConnection: 2 });
  for (const name of ['a', 'b', 'c', 'd']) add(`greedy/${name}`, name, 0);
  expect(add('shop/cart', 'renewal', 24)).not.toBe('renewal');
  expect(add('shop/cart', 'another', 48, 'renewal')).not.toBe('another');
  expect(add('shop/cart', 'third', 1, 'renewal')).toBe('third');
  expect(queue.sizeOf(['greedy'])).toBe(2);
});
