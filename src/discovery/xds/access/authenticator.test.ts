import { Metadata } from '@grpc/grpc-js';
import { describe, expect, test, vi } from 'vitest';
import { peerOf } from '../stream/ads-transport.ts';
import { type Authenticator, authenticate, type CallPeer } from './authenticator.ts';

const peer: CallPeer = { host: '127.0.0.1', address: '127.0.0.1:1', metadata: () => [], certificate: undefined };
const authenticatorWith = (name: string, respond: () => ReturnType<Authenticator['authenticate']>): Authenticator => ({
  name,
  authenticate: vi.fn(respond),
});

describe('authentication of a client', () => {
  test('accepts every client without an identity if no authenticators are configured', async () => {
    expect(await authenticate([], peer)).toEqual({ identities: [] });
  });

  test('stops after the first successful authenticator', async () => {
    const last = authenticatorWith('last', () => ({ identities: ['c'] }));
    const authenticators = [
      authenticatorWith('first', () => ({ failure: 'no' })),
      authenticatorWith('second', async () => ({ identities: ['b'] })),
      last,
    ];
    expect(await authenticate(authenticators, peer)).toEqual({ identities: ['b'] });
    expect(last.authenticate).not.toHaveBeenCalled();
  });

  test('fails with the reasons of all authenticators, including thrown errors', async () => {
    const authenticators = [
      authenticatorWith('token', () => {
        throw new Error('expired');
      }),
      authenticatorWith('review', () => Promise.reject(new Error('no answer'))),
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
])('a call from peer %s has the host %s', (peer, host) => {
  const call = { getPeer: () => peer, metadata: new Metadata(), getAuthContext: () => ({}) };
  expect(peerOf(call)).toMatchObject({ host, address: peer });
});
