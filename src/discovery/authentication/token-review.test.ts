/** What an API server may answer that is not what it should: nobody is let in by it. */
import { expect, it } from 'vitest';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
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

it('many tokens at once are not all asked about: those beyond are told to come again', async () => {
  let asked = 0;
  const gate = Promise.withResolvers<void>();
  const one = reviewer(async () => {
    asked++;
    await gate.promise;
    return { metadata: { name: '' }, status: good };
  });
  const answers = Array.from({ length: 100 }, () => one.authenticate(peer));
  expect(asked).toBe(64);
  gate.resolve();
  const unavailable = (await Promise.all(answers)).filter((answer) => 'isUnavailable' in answer);
  expect(unavailable.length).toBe(36);
  expect(await one.authenticate(peer)).toMatchObject({ identities: [expect.any(String)] });
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
  expect(await one.authenticate(peerOf('c3'))).toEqual({ failure: 'cluster "c3" is not known here' });
  expect(await one.authenticate(peerOf('c2', 'c3'))).toEqual({ failure: 'cluster "c2,c3" is not known here' });
  servers.clear();
  expect(await one.authenticate(peerOf('c2'))).toEqual({ failure: 'cluster "c2" is not known here' });
});

it('a cluster that does not answer keeps nobody of another from being let in', async () => {
  const silent = { request: () => new Promise<never>(() => {}) };
  const one = tokenReview({
    server: { request: async () => ({ metadata: { name: '' }, status: good }) },
    ...{ clusters: ['Kubernetes'], audience: 'istio-ca', trustDomain: () => 'td', remoteServer: () => silent },
  });
  for (let index = 0; index < 64; index++) void one.authenticate(peerOf('c2'));
  expect(await one.authenticate(peerOf('c2'))).toMatchObject({ isUnavailable: true });
  expect(await one.authenticate(peer)).toEqual({ identities: ['spiffe://td/ns/shop/sa/cart'] });
});
