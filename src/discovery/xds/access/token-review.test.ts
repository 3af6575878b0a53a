/** What an API server may answer that is not what it should: nobody is let in by it. */
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
const good = { authenticated: true, audiences: ['istio-ca'], user };

it('what says all that it should lets its account in', async () => {
  const answer = await reviewer(async () => ({ metadata: { name: '' }, status: good })).authenticate(peer);
  expect(answer).toEqual({ identities: ['spiffe://td/ns/shop/sa/cart'] });
});

it.each<[string, unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['a text for true', { ...good, authenticated: 'true' }],
  ['no audiences, as a server that does not know of them', { ...good, audiences: undefined }],
  ['other audiences', { ...good, audiences: ['istio-ca-2'] }],
  ['a text that holds the audience', { ...good, audiences: 'istio-ca' }],
  ['no user', { ...good, user: null }],
  ['a person whose name looks like an account', { ...good, user: { ...user, groups: ['developers'] } }],
  ['an account without a namespace', { ...good, user: { ...user, username: 'system:serviceaccount::cart' } }],
  ['an account with a path', { ...good, user: { ...user, username: 'system:serviceaccount:shop:cart/../root' } }],
])('%s lets nobody in', async (_, status) => {
  const answer = await reviewer(async () => ({ metadata: { name: '' }, status })).authenticate(peer);
  expect(answer).toEqual({ failure: expect.any(String) });
});

/** Reviews that end when `gate` does; `asked`: tokens in the order of their reviews. */
function slowReviewer() {
  const asked: string[] = [];
  const gate = Promise.withResolvers<void>();
  const options = { clusters: ['Kubernetes'], audience: 'istio-ca', trustDomain: () => 'td' };
  const one = tokenReview({
    server: {
      request: async ({ body }) => {
        asked.push((body as { spec: { token: string } }).spec.token);
        await gate.promise;
        return { metadata: { name: '' }, status: good };
      },
    },
    ...options,
  });
  const from = (host: string, token: string) =>
    one.authenticate({
      ...{ host, address: `${host}:1`, certificate: undefined },
      metadata: (name) => (name === 'authorization' ? [`Bearer ${token}`] : []),
    });
  return { asked, gate, from };
}

const tokenFor = (account: string, n: number): string =>
  ['{}', JSON.stringify({ sub: `system:serviceaccount:${account}`, n }), 'x']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');

it('a flood of tokens from one address delays a review for another address by no other review', async () => {
  const { asked, gate, from } = slowReviewer();
  // It may claim to be of the other one's account.
  const flood = Array.from({ length: 2_000 }, (_, n) => from('10.0.0.66', tokenFor('bank:pay', n)));
  const own = tokenFor('bank:pay', -1);
  const answer = from('10.0.0.1', own);
  expect([asked.length, asked.at(-1)]).toEqual([49, own]);
  gate.resolve();
  expect(await answer).toHaveProperty('identities');
  const unavailable = (await Promise.all(flood)).filter((one) => 'isUnavailable' in one);
  expect(unavailable.length).toBe(2_000 - 48 - 1_000);
  expect(await from('10.0.0.66', own)).toHaveProperty('identities');
});

it('a flood of tokens that claim one account delays a review for another one behind the same address by one turn', async () => {
  const { asked, gate, from } = slowReviewer();
  const flood = Array.from({ length: 500 }, (_, n) => from('10.0.0.66', tokenFor('mallory:one', n)));
  const own = tokenFor('bank:pay', 0);
  const answer = from('10.0.0.66', own);
  gate.resolve();
  expect(await answer).toHaveProperty('identities');
  await Promise.all(flood);
  expect(asked.indexOf(own)).toBeLessThanOrEqual(48 + 1);
});

/** Of a client that says of which clusters it is. */
const peerOf = (...clusters: readonly string[]) => ({
  ...peer,
  metadata: (name: string) => (name === 'clusterid' ? clusters : peer.metadata(name)),
});

const account = (namespace: string) => ({
  ...good,
  user: { ...user, username: `system:serviceaccount:${namespace}:cart` },
});

it('a token is reviewed by the cluster that its client says it is of, and by no other', async () => {
  const answering = (namespace: string) => ({
    request: async () => ({ metadata: { name: '' }, status: account(namespace) }),
  });
  const servers = new Map([['c2', answering('remote')]]);
  const one = tokenReview({
    ...{ server: answering('own'), clusters: ['Kubernetes'], audience: 'istio-ca', trustDomain: () => 'td' },
    remoteServer: (cluster) => servers.get(cluster),
  });
  const own = { identities: ['spiffe://td/ns/own/sa/cart'] };
  expect(await one.authenticate(peer)).toEqual(own);
  expect(await one.authenticate(peerOf('Kubernetes'))).toEqual(own);
  expect(await one.authenticate(peerOf('c2'))).toEqual({ identities: ['spiffe://td/ns/remote/sa/cart'] });
  expect(await one.authenticate(peerOf('c3'))).toEqual({ failure: 'unknown cluster "c3"' });
  expect(await one.authenticate(peerOf('c2', 'c3'))).toEqual({ failure: 'unknown cluster "c2,c3"' });
  servers.clear();
  expect(await one.authenticate(peerOf('c2'))).toEqual({ failure: 'unknown cluster "c2"' });
});

it('a cluster that does not answer keeps nobody of another from being let in', async () => {
  const silent = { request: () => new Promise<never>(() => {}) };
  const one = tokenReview({
    server: { request: async () => ({ metadata: { name: '' }, status: good }) },
    ...{ clusters: ['Kubernetes'], audience: 'istio-ca', trustDomain: () => 'td', remoteServer: () => silent },
  });
  const waiting = Array.from({ length: 1_100 }, () => one.authenticate(peerOf('c2')));
  expect(await waiting.at(-1)).toMatchObject({ isUnavailable: true });
  expect(await one.authenticate(peer)).toEqual({ identities: ['spiffe://td/ns/shop/sa/cart'] });
});
