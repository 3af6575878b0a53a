import { Metadata } from '@grpc/grpc-js';
import { describe, expect, test, vi } from 'vitest';
import { type Authenticator, authenticate, clientCertificate, type Peer } from './authentication.ts';
import { peerOf } from './stream/ads-transport.ts';

const peerWith = (subjectaltname?: string): Peer => ({
  host: '127.0.0.1',
  address: '127.0.0.1:1',
  metadata: () => [],
  certificate: subjectaltname === undefined ? undefined : { subjectaltname },
});
const answering = (name: string, answer: () => ReturnType<Authenticator['authenticate']>): Authenticator => ({
  name,
  authenticate: vi.fn(answer),
});

describe('authentication', () => {
  test('without anybody to ask accepts a client without an identity', async () => {
    expect(await authenticate([], peerWith())).toEqual({ identities: [] });
  });

  test('takes the first success, and asks no further', async () => {
    const last = answering('last', () => ({ identities: ['c'] }));
    const authenticators = [
      answering('first', () => ({ failure: 'no' })),
      answering('second', async () => ({ identities: ['b'] })),
      last,
    ];
    expect(await authenticate(authenticators, peerWith())).toEqual({ identities: ['b'] });
    expect(last.authenticate).not.toHaveBeenCalled();
  });

  test('fails with the reasons of all; one that throws has failed', async () => {
    const authenticators = [
      answering('token', () => {
        throw new Error('expired');
      }),
      answering('review', () => Promise.reject(new Error('no answer'))),
      clientCertificate(),
    ];
    expect(await authenticate(authenticators, peerWith())).toEqual({
      failure: 'token: expired; review: no answer; client certificate: no verified certificate',
    });
  });
});

describe('a client certificate', () => {
  test.each([
    ['URI:spiffe://td/ns/a/sa/b', ['spiffe://td/ns/a/sa/b']],
    ['DNS:x.y, URI:spiffe://td/ns/a/sa/b, URI:other:z', ['spiffe://td/ns/a/sa/b', 'other:z']],
  ])('gives its URIs: %s', async (names, identities) => {
    expect(await clientCertificate().authenticate(peerWith(names))).toEqual({ identities });
  });

  test.each(['', 'DNS:x', 'DNS:"x, URI:spiffe://td/ns/a/sa/b"', 'DNS:"x\\", URI:spiffe://td/ns/a/sa/b"'])(
    'gives nothing that only looks like one: %s',
    async (names) => {
      expect(await clientCertificate().authenticate(peerWith(names))).toHaveProperty('failure');
    },
  );

  test('that has ended since the connection began is none', async () => {
    const end = Date.parse('2026-11-23T02:05:07Z');
    const ask = (now: number, valid_to = 'Nov 23 02:05:07 2026 GMT') => {
      const certificate = { subjectaltname: 'URI:spiffe://td/ns/a/sa/b', valid_to };
      return clientCertificate(undefined, () => now).authenticate({ ...peerWith(), certificate });
    };
    expect(await ask(end + 999)).toEqual({ identities: ['spiffe://td/ns/a/sa/b'] });
    expect(await ask(end + 1_000)).toEqual({ failure: 'the certificate has ended on Nov 23 02:05:07 2026 GMT' });
    expect(await ask(end, 'some day')).toHaveProperty('failure');
  });
});

test.each([
  ['10.0.0.1:4711', '10.0.0.1'],
  ['fd00::1:4711', 'fd00::1'],
  ['[fd00::1]:4711', 'fd00::1'],
  ['::ffff:10.0.0.1:4711', '::ffff:10.0.0.1'],
])('a call of %s is from %s', (peer, host) => {
  const call = { getPeer: () => peer, metadata: new Metadata(), getAuthContext: () => ({}) };
  expect(peerOf(call)).toMatchObject({ host, address: peer });
});
