import { Metadata } from '@grpc/grpc-js';
import { describe, expect, test, vi } from 'vitest';
import { peerOf } from '../stream/ads-transport.ts';
import { type Authenticator, authenticate, type Peer } from './authenticator.ts';

const peer: Peer = { host: '127.0.0.1', address: '127.0.0.1:1', metadata: () => [], certificate: undefined };
const answering = (name: string, answer: () => ReturnType<Authenticator['authenticate']>): Authenticator => ({
  name,
  authenticate: vi.fn(answer),
});

describe('authentication', () => {
  test('without anybody to ask accepts a client without an identity', async () => {
    expect(await authenticate([], peer)).toEqual({ identities: [] });
  });

  test('takes the first success, and asks no further', async () => {
    const last = answering('last', () => ({ identities: ['c'] }));
    const authenticators = [
      answering('first', () => ({ failure: 'no' })),
      answering('second', async () => ({ identities: ['b'] })),
      last,
    ];
    expect(await authenticate(authenticators, peer)).toEqual({ identities: ['b'] });
    expect(last.authenticate).not.toHaveBeenCalled();
  });

  test('fails with the reasons of all; one that throws has failed', async () => {
    const authenticators = [
      answering('token', () => {
        throw new Error('expired');
      }),
      answering('review', () => Promise.reject(new Error('no answer'))),
    ];
    expect(await authenticate(authenticators, peer)).toEqual({
      failure: 'token: expired; review: no answer',
    });
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
