/** Invalid responses of an API server authenticate no client. */
import { expect, it } from 'vitest';
import type { KubernetesObject } from '../../kubernetes/api-server.ts';
import { tokenReview } from './token-review.ts';

const peer = {
  ...{ host: '127.0.0.1', address: '127.0.0.1:1', certificate: undefined },
  metadata: (name: string) => (name === 'authorization' ? ['Bearer a.b.c'] : []),
};

function reviewer(request: () => Promise<KubernetesObject>) {
  const options = { clusters: ['Kubernetes'], audience: 'istio-ca', trustDomain: () => 'td' };
  return tokenReview({ server: { request }, ...options });
}

const user = { username: 'system:serviceaccount:shop:cart', groups: ['system:serviceaccounts'] };
const goodReview = { authenticated: true, audiences: ['istio-ca'], user };

it('TokenReview accepts a complete response', async () => {
  const result = await reviewer(async () => ({ metadata: { name: '' }, status: goodReview })).authenticate(peer);
  expect(result).toEqual({ identities: ['spiffe://td/ns/shop/sa/cart'] });
});

it.each<[string, unknown]>([
  ['no status', undefined],
  ['the status null', null],
  ['a string instead of true', { ...goodReview, authenticated: 'true' }],
  ['no audiences, like that of a server without audience support', { ...goodReview, audiences: undefined }],
  ['other audiences', { ...goodReview, audiences: ['istio-ca-2'] }],
  ['a string instead of a list of audiences', { ...goodReview, audiences: 'istio-ca' }],
  ['no user', { ...goodReview, user: null }],
  ['a user whose name has the form of a service account', { ...goodReview, user: { ...user, groups: ['developers'] } }],
  [
    'a service account without a namespace',
    { ...goodReview, user: { ...user, username: 'system:serviceaccount::cart' } },
  ],
  [
    'a service account with a path',
    { ...goodReview, user: { ...user, username: 'system:serviceaccount:shop:cart/../root' } },
  ],
])('TokenReview rejects a response with %s', async (_, status) => {
  const result = await reviewer(async () => ({ metadata: { name: '' }, status })).authenticate(peer);
  expect(result).toEqual({ failure: expect.any(String) });
});

/** Reviews wait for `gate`. `reviewedTokens` contains the tokens in the order of their reviews. */
function slowReviewer() {
  const reviewedTokens: string[] = [];
  const reviewGate = Promise.withResolvers<void>();
  const options = { clusters: ['Kubernetes'], audience: 'istio-ca', trustDomain: () => 'td' };
  const one = tokenReview({
    server: {
      request: async ({ body }) => {
        reviewedTokens.push((body as { spec: { token: string } }).spec.token);
        await reviewGate.promise;
        return { metadata: { name: '' }, status: goodReview };
      },
    },
    ...options,
  });
  const from = (host: string, token: string) =>
    one.authenticate({
      ...{ host, address: `${host}:1`, certificate: undefined },
      metadata: (name) => (name === 'authorization' ? [`Bearer ${token}`] : []),
    });
  return { reviewedTokens, gate: reviewGate, from };
}

const tokenFor = (account: string, n: number): string =>
  ['{}', JSON.stringify({ sub: `system:serviceaccount:${account}`, n }), 'x']
    .map((segment) => Buffer.from(segment).toString('base64url'))
    .join('.');

it('TokenReview does not delay one address because of a flood of tokens from another', async () => {
  const { reviewedTokens, gate, from } = slowReviewer();
  // The flood claims the account of the other address.
  const flood = Array.from({ length: 2_000 }, (_, n) => from('10.0.0.66', tokenFor('bank:pay', n)));
  const ownToken = tokenFor('bank:pay', -1);
  const result = from('10.0.0.1', ownToken);
  expect([reviewedTokens.length, reviewedTokens.at(-1)]).toEqual([49, ownToken]);
  gate.resolve();
  expect(await result).toHaveProperty('identities');
  const unavailable = (await Promise.all(flood)).filter((one) => 'isUnavailable' in one);
  expect(unavailable.length).toBe(2_000 - 48 - 1_000);
  expect(await from('10.0.0.66', ownToken)).toHaveProperty('identities');
});

it('TokenReview delays an account by at most one review of a flood from another account at the same address', async () => {
  const { reviewedTokens, gate, from } = slowReviewer();
  const flood = Array.from({ length: 500 }, (_, n) => from('10.0.0.66', tokenFor('mallory:one', n)));
  const ownToken = tokenFor('bank:pay', 0);
  const result = from('10.0.0.66', ownToken);
  gate.resolve();
  expect(await result).toHaveProperty('identities');
  await Promise.all(flood);
  expect(reviewedTokens.indexOf(ownToken)).toBeLessThanOrEqual(48 + 1);
});

/** A client with these cluster IDs. */
const peerOf = (...clusters: readonly string[]) => ({
  ...peer,
  metadata: (name: string) => (name === 'clusterid' ? clusters : peer.metadata(name)),
});

const account = (namespace: string) => ({
  ...goodReview,
  user: { ...user, username: `system:serviceaccount:${namespace}:cart` },
});

it('TokenReview queries only the API server of the cluster that the client names', async () => {
  const serverFor = (namespace: string) => ({
    request: async () => ({ metadata: { name: '' }, status: account(namespace) }),
  });
  const servers = new Map([['c2', serverFor('remote')]]);
  const one = tokenReview({
    ...{ server: serverFor('own'), clusters: ['Kubernetes'], audience: 'istio-ca', trustDomain: () => 'td' },
    remoteServer: (cluster) => servers.get(cluster),
  });
  const ownToken = { identities: ['spiffe://td/ns/own/sa/cart'] };
  expect(await one.authenticate(peer)).toEqual(ownToken);
  expect(await one.authenticate(peerOf('Kubernetes'))).toEqual(ownToken);
  expect(await one.authenticate(peerOf('c2'))).toEqual({ identities: ['spiffe://td/ns/remote/sa/cart'] });
  expect(await one.authenticate(peerOf('c3'))).toEqual({ failure: 'unknown cluster "c3"' });
  expect(await one.authenticate(peerOf('c2', 'c3'))).toEqual({ failure: 'unknown cluster "c2,c3"' });
  servers.clear();
  expect(await one.authenticate(peerOf('c2'))).toEqual({ failure: 'unknown cluster "c2"' });
});

it('TokenReview does not wait for an unresponsive API server of another cluster', async () => {
  const silentServer = { request: () => new Promise<never>(() => {}) };
  const one = tokenReview({
    server: { request: async () => ({ metadata: { name: '' }, status: goodReview }) },
    ...{ clusters: ['Kubernetes'], audience: 'istio-ca', trustDomain: () => 'td', remoteServer: () => silentServer },
  });
  const waitingReviews = Array.from({ length: 1_100 }, () => one.authenticate(peerOf('c2')));
  expect(await waitingReviews.at(-1)).toMatchObject({ isUnavailable: true });
  expect(await one.authenticate(peer)).toEqual({ identities: ['spiffe://td/ns/shop/sa/cart'] });
});
