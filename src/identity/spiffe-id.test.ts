import { expect, it } from 'vitest';
import { parseSpiffeId, spiffeUriOf, workloadIdentityOf } from './spiffe-id.ts';

it('reads a workload of Istio', () => {
  const uri = 'spiffe://cluster.local/ns/shop/sa/cart.v1';
  const identity = { trustDomain: 'cluster.local', namespace: 'shop', serviceAccount: 'cart.v1' };
  expect(workloadIdentityOf(uri)).toEqual(identity);
  expect(spiffeUriOf(identity)).toBe(uri);
});

it.each([
  'spiffe://a',
  'spiffe://a/',
  'spiffe://a/ns/b',
  'spiffe://a/ns/b/sa/c/d',
  'spiffe://a/NS/b/sa/c',
  'a/ns/b/sa/c',
  '',
])('takes %j for no workload', (uri) => {
  expect(workloadIdentityOf(uri)).toBeUndefined();
});

it('bounds the length', () => {
  expect(parseSpiffeId(`spiffe://a/${'b'.repeat(2048)}`)).toEqual({ problem: 'has more than 2048 bytes' });
  expect(parseSpiffeId(`spiffe://${'a'.repeat(256)}/b`)).toHaveProperty('problem');
});

it.each([
  { trustDomain: 'a', namespace: 'b/sa/c', serviceAccount: 'd' },
  { trustDomain: 'a', namespace: '', serviceAccount: 'd' },
  { trustDomain: 'a', namespace: 'b', serviceAccount: '..' },
  { trustDomain: 'a/ns/b/sa/c#', namespace: 'b', serviceAccount: 'c' },
  { trustDomain: '', namespace: 'b', serviceAccount: 'c' },
])('makes no id of %j', (identity) => {
  expect(() => spiffeUriOf(identity)).toThrow(RangeError);
});
