import { expect, it } from 'vitest';
import type { CallPeer } from './authenticator.ts';
import { workloadsOfMesh } from './workloads-of-mesh.ts';

const domains = ['cluster.local', 'former.example'];
const peer: CallPeer = { host: '10.0.0.1', address: '10.0.0.1:1', metadata: () => [], certificate: undefined };
const authenticateIdentities = (...identities: string[]) =>
  workloadsOfMesh({ name: 'x', authenticate: () => ({ identities }) }, () => domains).authenticate(peer);

it.each(domains)('workloadsOfMesh accepts a workload in trust domain %s', async (domain) => {
  const uri = `spiffe://${domain}/ns/shop/sa/cart`;
  expect(await authenticateIdentities(uri)).toEqual({ identities: [uri] });
});

it.each([
  'spiffe://other/ns/shop/sa/cart',
  'spiffe://cluster.local.other/ns/shop/sa/cart',
  'spiffe://CLUSTER.LOCAL/ns/shop/sa/cart',
  'spiffe://cluster.local:80/ns/shop/sa/cart',
  'spiffe://a@cluster.local/ns/shop/sa/cart',
  'spiffe://cluster.local/ns/sh%6Fp/sa/cart',
  'spiffe://cluster.local/ns/shop/sa/cart/',
  'spiffe://cluster.local/ns/shop/sa/cart?x',
  'spiffe://cluster.local/ns/../sa/cart',
  'spiffe://cluster.local/workload',
  'https://cluster.local/ns/shop/sa/cart',
])('workloadsOfMesh rejects the identity %s', async (uri) => {
  expect(await authenticateIdentities(uri)).toEqual({
    failure: 'the identity must be of trust domain cluster.local or former.example',
  });
});

it('workloadsOfMesh keeps the result of an unavailable authenticator', async () => {
  const unavailable = { name: 'x', authenticate: () => ({ failure: 'away', isUnavailable: true }) };
  expect(await workloadsOfMesh(unavailable, () => domains).authenticate(peer)).toEqual({
    failure: 'away',
    isUnavailable: true,
  });
});
