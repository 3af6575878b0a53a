/** Each attack is rejected, but succeeds if the check that rejects it is disabled. So each check is necessary. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { exportJWK, SignJWT, UnsecuredJWT } from 'jose';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import type { CallPeer } from './authenticator.ts';
import { type BearerTokenOptions, bearerToken } from './bearer-token.ts';
import { forwardedCertificate } from './forwarded-certificate.ts';
import { FetchedKeys, localKeys } from './issuer-keys.ts';

const now = new Date('2026-11-23T12:00:00Z');
const seconds = now.getTime() / 1000;
const { privateKey: trustedKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const { privateKey: otherKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ownId = 'spiffe://cluster.local/ns/shop/sa/cart';

async function keysOf(...keys: KeyObject[]) {
  const set = await Promise.all(
    keys.map(async (key, i) => ({ ...(await exportJWK(createPublicKey(key))), kid: `k${i}` })),
  );
  return localKeys({ keys: set });
}

type Changes = Omit<Partial<BearerTokenOptions>, 'rule'> & { rule?: object };

async function optionsWith(changes: Changes = {}): Promise<BearerTokenOptions> {
  const { rule, ...otherOptions } = changes;
  return {
    name: 'test',
    rule: { issuer: 'https://issuer', audiences: ['istio-ca'], keys: await keysOf(trustedKey), ...rule },
    trustDomain: () => 'cluster.local',
    now: () => now,
    ...otherOptions,
  };
}

interface Claims {
  readonly sub?: string;
  readonly iss?: string;
  readonly aud?: string | string[];
  readonly exp?: number;
  readonly nbf?: number;
  readonly jti?: string;
}

const goodClaims: Claims = {
  sub: 'system:serviceaccount:shop:cart',
  iss: 'https://issuer',
  aud: 'istio-ca',
  exp: seconds + 600,
};

function signed(claims: Claims, key = trustedKey, header: object = {}): Promise<string> {
  return new SignJWT({ ...goodClaims, ...claims }).setProtectedHeader({ alg: 'ES256', kid: 'k0', ...header }).sign(key);
}

function peerWith(...tokens: string[]): CallPeer {
  const values = tokens.map((token) => `Bearer ${token}`);
  return {
    host: '10.0.0.1',
    address: '10.0.0.1:4711',
    metadata: (name) => (name === 'authorization' ? values : []),
    certificate: undefined,
  };
}

async function identify(token: string, changes?: Changes) {
  return bearerToken(await optionsWith(changes)).authenticate(peerWith(token));
}

describe('authentication by bearer token', () => {
  it("returns the service account as an identity in the mesh's trust domain", async () => {
    expect(await identify(await signed({}))).toEqual({ identities: [ownId] });
    expect(await identify(await signed({ aud: ['other', 'istio-ca'] }))).toEqual({ identities: [ownId] });
  });

  it('accepts a token without a key ID only if it is valid and signed with a key of the issuer', async () => {
    const rule = { keys: await keysOf(otherKey, trustedKey) };
    const unnamed = (claims: Claims, key = trustedKey) => signed(claims, key, { kid: undefined });
    expect(await identify(await unnamed({}), { rule })).toEqual({ identities: [ownId] });
    const unknownKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    expect(await identify(await unnamed({}, unknownKey), { rule })).toEqual({
      failure: 'signature verification failed',
    });
    expect(await identify(await unnamed({ exp: seconds - 60 }), { rule })).toHaveProperty('failure');
  });

  /** Name of the attack, token, reason of the rejection, and options that disable the check. */
  const forged: [string, () => Promise<string>, string, () => Promise<Changes>][] = [
    [
      'expired',
      () => signed({ exp: seconds - 60 }),
      'exp',
      async () => ({ now: () => new Date((seconds - 120) * 1000) }),
    ],
    [
      'not valid yet',
      () => signed({ nbf: seconds + 61 }),
      'nbf',
      async () => ({ now: () => new Date((seconds + 1) * 1000) }),
    ],
    [
      'for another audience',
      () => signed({ aud: 'kubernetes' }),
      'aud',
      async () => ({ rule: { audiences: ['kubernetes'] } }),
    ],
    [
      'of another issuer',
      () => signed({ iss: 'https://elsewhere' }),
      'iss',
      async () => ({ rule: { issuer: 'https://elsewhere' } }),
    ],
    [
      'signed by another key',
      () => signed({}, otherKey),
      'signature',
      async () => ({ rule: { keys: await keysOf(otherKey) } }),
    ],
    [
      'signed by an unknown key',
      () => signed({}, otherKey, { kid: 'k1' }),
      'no applicable key',
      async () => ({ rule: { keys: await keysOf(trustedKey, otherKey) } }),
    ],
    ['revoked', () => signed({ jti: 'x' }), 'is revoked', async () => ({ isRevoked: () => false })],
  ];

  it.each(forged)('rejects a token that is %s', async (_, token, reason, identifyWithoutCheck) => {
    const text = await token();
    const refusedResult = await identify(text, { isRevoked: (id) => id === 'x' });
    expect(refusedResult).toEqual({ failure: expect.stringContaining(reason) });
    expect(await identify(text, await identifyWithoutCheck())).toEqual({ identities: [ownId] });
  });

  it.each<[string, () => Promise<string> | string]>([
    ['unsigned', () => new UnsecuredJWT({ ...goodClaims }).encode()],
    [
      'signed with the public key as a shared secret',
      () => {
        const secret = new TextEncoder().encode(
          createPublicKey(trustedKey).export({ format: 'pem', type: 'spki' }) as string,
        );
        return new SignJWT({ ...goodClaims }).setProtectedHeader({ alg: 'HS256', kid: 'k0' }).sign(secret);
      },
    ],
    [
      'with its own key in its header',
      async () => signed({}, otherKey, { kid: 'x', jwk: await exportJWK(createPublicKey(otherKey)) }),
    ],
    ['without an expiry', () => signed({ exp: undefined as unknown as number })],
    ['without an audience', () => signed({ aud: undefined as unknown as string })],
    ['of a user that is not a service account', () => signed({ sub: 'admin' })],
    ['of a service account with too many parts', () => signed({ sub: 'system:serviceaccount:shop:cart:x' })],
    ['of a namespace that contains a path', () => signed({ sub: 'system:serviceaccount:shop/sa/x#:cart' })],
    ['of an empty namespace', () => signed({ sub: 'system:serviceaccount::cart' })],
    ['truncated', async () => (await signed({})).slice(0, -10)],
    ['not a JWT', () => 'x.y.z'],
    ['too long', () => 'x'.repeat(20_000)],
  ])('rejects an invalid token: %s', async (_, token) => {
    expect(await identify(await token())).toHaveProperty('failure');
  });

  it.each([0, 59, 60])('accepts a token that becomes valid in %i s, because clocks differ', async (ahead) => {
    const reportNotYetValid = vi.fn();
    expect(await identify(await signed({ nbf: seconds + ahead }), { reportNotYetValid })).toEqual({
      identities: [ownId],
    });
    expect(reportNotYetValid).not.toHaveBeenCalled();
  });

  it.each([61, 3600])('rejects a token that becomes valid in %i s, and reports it with a hint', async (ahead) => {
    const reportNotYetValid = vi.fn();
    expect(await identify(await signed({ nbf: seconds + ahead }), { reportNotYetValid })).toEqual({
      failure: `the token is valid in ${ahead} s (\`nbf\`), more than the leeway of 60 s: check the clocks of this host and of the issuer`,
    });
    expect(reportNotYetValid.mock.calls).toEqual([
      [{ authenticator: 'test', issuer: 'https://issuer', aheadSeconds: ahead }],
    ]);
  });

  it.each([
    [0, 'accepts'],
    [59, 'accepts'],
    [60, 'rejects'],
    [3600, 'rejects'],
  ])('$1 a token that expired $0 s ago', async (ago, verb) => {
    const reportNotYetValid = vi.fn();
    const respond = await identify(await signed({ exp: seconds - ago }), { reportNotYetValid });
    expect('identities' in respond).toBe(verb === 'accepts');
    expect(reportNotYetValid).not.toHaveBeenCalled();
  });

  it('does not report a forged token as a clock difference', async () => {
    const reportNotYetValid = vi.fn();
    expect(await identify(await signed({ nbf: seconds + 3600 }, otherKey), { reportNotYetValid })).toEqual({
      failure: 'signature verification failed',
    });
    expect(reportNotYetValid).not.toHaveBeenCalled();
  });

  it('rejects a token if no audience is configured, or if two headers or no header contain it', async () => {
    const token = await signed({});
    expect(await identify(token, { rule: { audiences: [] } })).toHaveProperty('failure');
    const authenticator = bearerToken(await optionsWith());
    expect(await authenticator.authenticate(peerWith(token, token))).toEqual({ failure: 'no bearer token' });
    expect(await authenticator.authenticate(peerWith())).toEqual({ failure: 'no bearer token' });
  });
});

describe('FetchedKeys', () => {
  const world = () => {
    const requestedUrls: string[] = [];
    let respond: () => Promise<Response> = async () => new Response('{}', { status: 500 });
    let time = 1_000_000;
    const keys = new FetchedKeys({
      address: { kind: 'keys', url: 'https://issuer/keys' },
      fetch: async (url) => {
        requestedUrls.push(url);
        return respond();
      },
      now: () => time,
    });
    return {
      requestedUrls,
      keys,
      setResponse: (next: typeof respond) => {
        respond = next;
      },
      pass: (ms: number) => {
        time += ms;
      },
    };
  };
  const keySet = async (kid: string, key: KeyObject) =>
    JSON.stringify({ keys: [{ ...(await exportJWK(createPublicKey(key))), kid }] });

  it('are fetched again after 30 s, even if the wall clock is set back', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: Date.UTC(2026, 1, 1, 12) });
    onTestFinished(() => void vi.useRealTimers());
    let isThere = false;
    const body = await keySet('k0', trustedKey);
    const keys = new FetchedKeys({
      address: { kind: 'keys', url: 'https://issuer/keys' },
      fetch: async () => (isThere ? new Response(body) : new Response('', { status: 500 })),
    });
    await expect(keys.get()).rejects.toThrow('HTTP status 500');
    isThere = true;
    vi.setSystemTime(Date.UTC(2026, 1, 1, 6));
    vi.advanceTimersByTime(31_000);
    expect(await keys.get()).toBeDefined();
  });

  it('are fetched at most once every 30 s, even if many tokens contain unknown key IDs', async () => {
    const { requestedUrls, keys, setResponse, pass } = world();
    setResponse(async () => new Response(await keySet('k0', trustedKey)));
    for (let i = 0; i < 50; i++) {
      expect(await identify(await signed({}, otherKey, { kid: `made-up-${i}` }), { rule: { keys } })).toHaveProperty(
        'failure',
      );
    }
    expect(requestedUrls).toHaveLength(1);
    pass(31_000);
    setResponse(async () => new Response(await keySet('k9', otherKey)));
    expect(await identify(await signed({}, otherKey, { kid: 'k9' }), { rule: { keys } })).toEqual({
      identities: [ownId],
    });
    expect(requestedUrls).toHaveLength(2);
  });

  it('remain in use while the issuer is unreachable, and verify no token before the first fetch', async () => {
    const { keys, setResponse, pass } = world();
    const token = await signed({});
    expect(await identify(token, { rule: { keys } })).toEqual({
      failure: expect.stringContaining('HTTP status 500'),
      isUnavailable: true,
    });
    pass(31_000);
    setResponse(async () => new Response(await keySet('k0', trustedKey)));
    expect(await identify(token, { rule: { keys } })).toEqual({ identities: [ownId] });
    pass(3_600_000);
    setResponse(() => Promise.reject(new Error('away')));
    expect(await identify(token, { rule: { keys } })).toEqual({ identities: [ownId] });
  });
});

describe('authentication by forwarded certificate', () => {
  const authenticateHeader = (value: string | string[], host = '10.1.2.3', networks = ['10.0.0.0/8', 'fd00::/8']) =>
    forwardedCertificate(networks, () => 'cluster.local').authenticate({
      ...{ host, address: host },
      metadata: (name) => (name === 'x-forwarded-client-cert' ? [value].flat() : []),
      certificate: undefined,
    });

  it('accepts the last certificate in the header from configured networks', () => {
    expect(authenticateHeader(`By=x;URI=${ownId}`)).toEqual({ identities: [ownId] });
    expect(authenticateHeader(`URI=spiffe://cluster.local/ns/evil/sa/x,By=y;Hash=z;URI="${ownId}"`)).toEqual({
      identities: [ownId],
    });
    expect(authenticateHeader(`URI=${ownId}`, 'fd00::1')).toEqual({ identities: [ownId] });
    expect(authenticateHeader(`URI=${ownId}`, '::ffff:10.1.2.3')).toEqual({ identities: [ownId] });
  });

  it('requires an X.509-SVID with the URI if the proxy forwards the certificate itself', () => {
    const authority = createAuthority();
    const cert = (pem: string): string => `URI=${ownId};Cert="${encodeURIComponent(pem)}"`;
    const issuedCertificate = authority.issue([ownId]).certificate;
    expect(authenticateHeader(cert(issuedCertificate))).toEqual({ identities: [ownId] });
    for (const [value, reason] of [
      [cert(authority.certificate), 'CA:FALSE, got CA:TRUE'],
      [cert(authority.issue([ownId, 'spiffe://cluster.local/ns/a/sa/b']).certificate), 'one URI SAN, got 2'],
      [cert(authority.issue(['spiffe://cluster.local/ns/a/sa/b']).certificate), 'different URI'],
      [`${cert(issuedCertificate)};Cert="${encodeURIComponent(issuedCertificate)}"`, 'more than once'],
      [cert('x'), 'no PEM block "CERTIFICATE"'],
      [`URI=${ownId};Cert="%"`, 'URI malformed'],
    ] as const) {
      expect(authenticateHeader(value)).toEqual({ failure: expect.stringContaining(reason) });
    }
  });

  it.each<[string, string | string[], string?]>([
    ['in two headers', [`URI=spiffe://cluster.local/ns/evil/sa/x`, `URI=${ownId}`]],
    ['in the same header twice', [`URI=${ownId}`, `URI=${ownId}`]],
    ['with a second URI of another mesh', `URI=${ownId};URI=spiffe://other/ns/shop/sa/cart`],
    ['with a second URI that is not a SPIFFE ID', `URI=https://x;URI=${ownId}`],
    ['with the same workload twice', `URI=${ownId};URI=${ownId}`],
    ['with a query', `URI=${ownId}?x`],
    ['from an untrusted address', `URI=${ownId}`, '192.168.0.1'],
    ['from this host', `URI=${ownId}`, '127.0.0.1'],
    ['from this host over IPv6', `URI=${ownId}`, '::1'],
    ['of another trust domain', 'URI=spiffe://other/ns/shop/sa/cart'],
    ['with a DNS name', 'DNS=cluster.local'],
    ['with a subject', 'Subject="URI=spiffe://cluster.local/ns/shop/sa/cart"'],
    ['with two workloads', `URI=${ownId};URI=spiffe://cluster.local/ns/shop/sa/other`],
    ['with an unclosed quote', `Subject="x;URI=${ownId}`],
    ['with a URI in a quoted value of another field', `Subject="a\\";URI=${ownId}"`],
    ['if it is empty', ''],
    ['if it is too long', `URI=${ownId};${'x'.repeat(20_000)}`],
  ])('rejects a header %s', (_, value, host) => {
    expect(authenticateHeader(value, host)).toHaveProperty('failure');
  });

  it.each(['', 'x', '10.0.0.0/33', '10.0.0.0/x', 'fd00::/129', '10.0.0/8'])(
    'rejects the invalid network %j in its configuration',
    (network) => {
      expect(() => forwardedCertificate([network], () => 'a')).toThrow('TRUSTED_GATEWAY_CIDR');
    },
  );
});
