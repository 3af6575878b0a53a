import { expect, it } from 'vitest';
import { parseSpiffeId, singleWorkloadOf, spiffeUriOf, uriInMesh, workloadIdentityOf } from './spiffe-id.ts';

it("the parser accepts an Istio workload's SPIFFE ID", () => {
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
])("the parser rejects %j as a workload's SPIFFE ID", (uri) => {
  expect(workloadIdentityOf(uri)).toBeUndefined();
});

it('the parser limits the length of SPIFFE IDs', () => {
  expect(parseSpiffeId(`spiffe://a/${'b'.repeat(2048)}`)).toEqual({ problem: 'must have at most 2048 bytes' });
  expect(parseSpiffeId(`spiffe://${'a'.repeat(256)}/b`)).toHaveProperty('problem');
});

it.each([
  { trustDomain: 'a', namespace: 'b/sa/c', serviceAccount: 'd' },
  { trustDomain: 'a', namespace: '', serviceAccount: 'd' },
  { trustDomain: 'a', namespace: 'b', serviceAccount: '..' },
  { trustDomain: 'a/ns/b/sa/c#', namespace: 'b', serviceAccount: 'c' },
  { trustDomain: '', namespace: 'b', serviceAccount: 'c' },
])('the builder of SPIFFE IDs rejects %j', (identity) => {
  expect(() => spiffeUriOf(identity)).toThrow(RangeError);
});

it("a workload in an alias trust domain has an ID in the mesh's trust domain", () => {
  const idIn = (trustDomain: string) =>
    uriInMesh({ trustDomain, namespace: 'n', serviceAccount: 's' }, ['own', 'alias']);
  expect([idIn('own'), idIn('alias'), idIn('other'), idIn('')]).toEqual([
    'spiffe://own/ns/n/sa/s',
    'spiffe://own/ns/n/sa/s',
    undefined,
    undefined,
  ]);
  expect(uriInMesh({ trustDomain: 'own', namespace: 'n', serviceAccount: 's' }, [])).toBeUndefined();
});

it('a caller with the IDs of two workloads has no workload identity', () => {
  const [one, two] = ['spiffe://a/ns/n/sa/s', 'spiffe://a/ns/n/sa/t'];
  expect(singleWorkloadOf([one, 'https://x'])).toEqual({ trustDomain: 'a', namespace: 'n', serviceAccount: 's' });
  expect(singleWorkloadOf([one, two])).toBeUndefined();
  expect(singleWorkloadOf([])).toBeUndefined();
});
