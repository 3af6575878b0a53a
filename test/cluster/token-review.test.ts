/** Service account tokens, reviewed by the API server that signed them. */
import { expect, it } from 'vitest';
import { serviceAccounts } from '../../src/discovery/kubernetes/api-resource.ts';
import { type TokenReviewOptions, tokenReview } from '../../src/discovery/xds/access/token-review.ts';
import { givenCluster } from './given-cluster.ts';

const cluster = givenCluster();

async function reviewOf(token: string, overrides: Partial<TokenReviewOptions> = {}, clusterId?: string) {
  const options = { clusters: ['Kubernetes', 'alias'], audience: 'istio-ca', trustDomain: () => 'example.org' };
  const headers = new Map([
    ['authorization', [`Bearer ${token}`]],
    ['clusterid', clusterId === undefined ? [] : [clusterId]],
  ]);
  return tokenReview({ server: cluster.client(), ...options, ...overrides }).authenticate({
    ...{ host: '127.0.0.1', address: '127.0.0.1:1', certificate: undefined },
    metadata: (name) => headers.get(name) ?? [],
  });
}

it('a service account token for this audience identifies its account, under each name of its cluster', async () => {
  const account = await cluster.account();
  const token = await cluster.token(account, 'istio-ca');
  const identity = { identities: [`spiffe://example.org/ns/${cluster.namespace}/sa/${account}`] };
  expect(await reviewOf(token)).toEqual(identity);
  expect(await reviewOf(token, {}, 'alias')).toEqual(identity);
});

it('a token identifies no account if it is for another audience or cluster, is altered, or is of no service account', async () => {
  const account = await cluster.account();
  const token = await cluster.token(account, 'istio-ca');
  const refusedReview = { failure: expect.any(String) };
  expect(await reviewOf(await cluster.token(account))).toEqual(refusedReview);
  expect(await reviewOf(await cluster.token(account, 'vault'))).toEqual(refusedReview);
  expect(await reviewOf(token, {}, 'elsewhere')).toEqual({ failure: 'unknown cluster "elsewhere"' });
  expect(await reviewOf(`${token.slice(0, -9)}AAAAAAAAA`)).toEqual(refusedReview);
  expect(await reviewOf(cluster.address.adminToken)).toEqual(refusedReview);
  expect(await reviewOf('a'.repeat(20_000))).toEqual(refusedReview);
});

it('a token identifies no account if the account was deleted or the token was revoked by its ID', async () => {
  const account = await cluster.account();
  const token = await cluster.token(account, 'istio-ca');
  const { jti } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { jti: string };
  expect(await reviewOf(token, { isRevoked: (id) => id === jti })).toEqual({ failure: 'the token is revoked' });
  // The server caches the result of a review for ten seconds.
  const other = await cluster.token(account, 'istio-ca');
  await cluster.delete(serviceAccounts, account);
  expect(await reviewOf(other)).toEqual({ failure: 'the API server rejected the token (TokenReview)' });
});

it('a token review fails if it is forbidden or gets no response', async () => {
  const token = await cluster.token(await cluster.account(), 'istio-ca');
  expect(await reviewOf(token, { server: await cluster.clientWith({}) })).toMatchObject({ isUnavailable: true });
  const server = cluster.client();
  server.close();
  expect(await reviewOf(token, { server })).toMatchObject({ isUnavailable: true });
});
