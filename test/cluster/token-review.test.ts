/** Tokens of service accounts, by the word of the API server that signed them. */
import { expect, it } from 'vitest';
import { serviceAccounts } from '../../src/discovery/kubernetes/api-resource.ts';
import { type TokenReviewOptions, tokenReview } from '../../src/discovery/xds/access/token-review.ts';
import { givenCluster } from './given-cluster.ts';

const cluster = givenCluster();

async function answerTo(token: string, more: Partial<TokenReviewOptions> = {}, clusterId?: string) {
  const options = { clusters: ['Kubernetes', 'alias'], audience: 'istio-ca', trustDomain: () => 'example.org' };
  const headers = new Map([
    ['authorization', [`Bearer ${token}`]],
    ['clusterid', clusterId === undefined ? [] : [clusterId]],
  ]);
  return tokenReview({ server: cluster.client(), ...options, ...more }).authenticate({
    ...{ host: '127.0.0.1', address: '127.0.0.1:1', certificate: undefined },
    metadata: (name) => headers.get(name) ?? [],
  });
}

it('one for this audience is of its account, whatever name its cluster goes by', async () => {
  const account = await cluster.account();
  const token = await cluster.token(account, 'istio-ca');
  const identity = { identities: [`spiffe://example.org/ns/${cluster.namespace}/sa/${account}`] };
  expect(await answerTo(token)).toEqual(identity);
  expect(await answerTo(token, {}, 'alias')).toEqual(identity);
});

it('one for another audience, of another cluster, altered, or of no service account is of nobody', async () => {
  const account = await cluster.account();
  const token = await cluster.token(account, 'istio-ca');
  const refused = { failure: expect.any(String) };
  expect(await answerTo(await cluster.token(account))).toEqual(refused);
  expect(await answerTo(await cluster.token(account, 'vault'))).toEqual(refused);
  expect(await answerTo(token, {}, 'elsewhere')).toEqual({ failure: 'unknown cluster "elsewhere"' });
  expect(await answerTo(`${token.slice(0, -9)}AAAAAAAAA`)).toEqual(refused);
  expect(await answerTo(cluster.address.adminToken)).toEqual(refused);
  expect(await answerTo('a'.repeat(20_000))).toEqual(refused);
});

it('one whose account is gone, or that was taken back by its id, is of nobody', async () => {
  const account = await cluster.account();
  const token = await cluster.token(account, 'istio-ca');
  const { jti } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { jti: string };
  expect(await answerTo(token, { isRevoked: (id) => id === jti })).toEqual({ failure: 'the token is revoked' });
  // Of one that it has answered about the server remembers the answer for ten seconds.
  const other = await cluster.token(account, 'istio-ca');
  await cluster.delete(serviceAccounts, account);
  expect(await answerTo(other)).toEqual({ failure: 'the API server rejected the token (TokenReview)' });
});

it('who may not ask, or gets no answer, says that it could not be asked', async () => {
  const token = await cluster.token(await cluster.account(), 'istio-ca');
  expect(await answerTo(token, { server: await cluster.clientWith({}) })).toMatchObject({ isUnavailable: true });
  const server = cluster.client();
  server.close();
  expect(await answerTo(token, { server })).toMatchObject({ isUnavailable: true });
});
