import { expect, it } from 'vitest';
import { clientCertificate, type Peer } from '../ads/authentication.ts';
import { workloadsOfMesh } from './workloads-of-mesh.ts';

const domains = ['cluster.local', 'former.example'];
const peerWith = (subjectaltname: string): Peer => ({
  host: '10.0.0.1',
  address: '10.0.0.1:1',
  metadata: () => [],
  certificate: { subjectaltname },
});
const ask = (names: string) => workloadsOfMesh(clientCertificate(), () => domains).authenticate(peerWith(names));

it.each(domains)('a workload of %s is one of the mesh', async (domain) => {
  const uri = `spiffe://${domain}/ns/shop/sa/cart`;
  expect(await ask(`URI:${uri}`)).toEqual({ identities: [uri] });
  expect(await ask(`URI:https://x, URI:${uri}`)).toEqual({ identities: [uri] });
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
])('%s is nobody here, and somebody where it is not asked', async (uri) => {
  expect(await ask(`URI:${uri}`)).toEqual({ failure: 'no workload of cluster.local, former.example' });
  expect(await clientCertificate().authenticate(peerWith(`URI:${uri}`))).toEqual({ identities: [uri] });
});

it('whose authenticator cannot be asked is told so', async () => {
  const away = { name: 'x', authenticate: () => ({ failure: 'away', isUnavailable: true }) };
  expect(await workloadsOfMesh(away, () => domains).authenticate(peerWith(''))).toEqual({
    failure: 'away',
    isUnavailable: true,
  });
});
