/** What an API server may answer that is not what it should: nobody is let in by it. */
import { expect, it } from 'vitest';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { tokenReview } from './token-review.ts';

const peer = {
  ...{ address: '127.0.0.1:1', certificate: undefined },
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
