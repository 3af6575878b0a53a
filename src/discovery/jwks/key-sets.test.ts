import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KeySource } from '../../../machines/discovery/jwks/jwks.machine.ts';
import { givenObject } from '../../../test/fixtures/given-world.ts';
import type { Config } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import type { JwtRule, RequestAuthentication } from '../../model/kinds/policies/request-authentication.ts';
import { BlockedAddresses } from '../../runtime/fences/blocked-addresses.ts';
import { guardedFetch } from '../../runtime/fences/guarded-fetch.ts';
import { KeySets } from './key-sets.ts';

const one = { kty: 'EC', kid: 'one' };
const secondKey = { kty: 'EC', kid: 'two' };

/** An issuer on loopback, which responds to each path with this text or status. */
let responses: Record<string, string | number> = {};
let server: Server;
let requested: (string | undefined)[] = [];
let origin = '';

beforeEach(async () => {
  responses = { '/keys': JSON.stringify({ keys: [one, secondKey] }) };
  requested = [];
  server = createServer((request, response) => {
    requested.push(request.url);
    const reply = responses[request.url ?? ''] ?? 404;
    // 0 means no response.
    if (reply === 0) return;
    if (typeof reply === 'number') response.statusCode = reply;
    response.end(typeof reply === 'string' ? reply : '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const stay = new AbortController().signal;
const newKeySets = (): KeySets => new KeySets(guardedFetch(new BlockedAddresses({ allowed: ['127.0.0.0/8'] })));

function policyWith(name: string, ...jwtRules: JwtRule[]): Config<RequestAuthentication> {
  return {
    kind: 'RequestAuthentication',
    apiVersion: 'security.istio.io/v1',
    ...{ name, namespace: 'shop', labels: {}, annotations: {}, resourceVersion: '1', creationTimestamp: 0 },
    spec: { jwtRules },
  };
}

describe('key sets to fetch', () => {
  it('are distinct, use the longest timeout of their users, and exclude inline keys', async () => {
    const sources = await newKeySets().sourcesOf([
      policyWith('a', { issuer: 'i', jwksUri: 'https://id.test/keys' }, { issuer: 'x', jwks: '{}' }),
      policyWith(
        'b',
        { issuer: 'i', jwksUri: 'https://id.test/keys', timeoutMs: 9_000 },
        { issuer: 'https://id.test' },
      ),
    ]);
    const [a, b] = ['RequestAuthentication/shop/a', 'RequestAuthentication/shop/b'];
    expect(sources).toEqual([
      { source: 'https://id.test/keys', timeoutMs: 9_000, users: [a, b] },
      { source: 'issuer https://id.test', timeoutMs: 5_000, users: [b] },
    ]);
  });

  it('have unique names that omit secret parts of their URLs', async () => {
    const urls = ['https://me:pass@id.test/keys', 'https://id.test/keys?token=1', 'https://id.test/keys?token=2'];
    const sources = await newKeySets().sourcesOf(urls.map((jwksUri) => policyWith('a', { issuer: '', jwksUri })));
    const names = sources.map(({ source }) => source);
    expect(names.join(' ')).not.toMatch(/pass|token/);
    expect(new Set(names).size).toBe(3);
  });
});

describe('RequestAuthentications with a jwksUri', () => {
  it('receive the fetched keys, and remain the same objects while the keys are unchanged', async () => {
    const keySets = newKeySets();
    const object = policyWith('a', { issuer: 'i', jwksUri: `${origin}/keys` }, { issuer: 'x', jwks: '{"keys":[]}' });
    const set = configSetOf([object]);
    const [{ source }] = (await keySets.sourcesOf([object])) as [KeySource];
    expect(keySets.resolve(set).RequestAuthentication).toEqual([object]);
    const first = await keySets.fetch(source, 1_000, stay);
    const resolved = keySets.resolve(set).RequestAuthentication[0]!;
    expect(resolved.spec.jwtRules.map(({ jwks }) => jwks)).toEqual([
      JSON.stringify({ keys: [one, secondKey] }),
      '{"keys":[]}',
    ]);
    responses['/keys'] = JSON.stringify({ keys: [secondKey, one] }, undefined, 2);
    expect(await keySets.fetch(source, 1_000, stay)).toEqual(first);
    expect(keySets.resolve(set).RequestAuthentication[0]).toBe(resolved);
    responses['/keys'] = JSON.stringify({ keys: [secondKey] });
    expect((await keySets.fetch(source, 1_000, stay)).version).not.toBe(first.version);
    expect(keySets.resolve(set).RequestAuthentication[0]!.spec.jwtRules[0]!.jwks).toBe(
      JSON.stringify({ keys: [secondKey] }),
    );
    expect(keySets.counts).toEqual({ success: 3, failure: 0 });
  });

  it('keep the last keys until no object uses these, whatever the issuer sends', async () => {
    const keySets = newKeySets();
    const object = policyWith('a', { issuer: 'i', jwksUri: `${origin}/keys` });
    const set = configSetOf([object]);
    const [{ source }] = (await keySets.sourcesOf([object])) as [KeySource];
    await keySets.fetch(source, 1_000, stay);
    const resolved = keySets.resolve(set).RequestAuthentication[0];
    responses['/keys'] = 500;
    await expect(keySets.fetch(source, 1_000, stay)).rejects.toThrow('HTTP status 500');
    expect(keySets.resolve(set).RequestAuthentication[0]).toBe(resolved);
    expect(keySets.counts).toEqual({ success: 1, failure: 1 });
    await keySets.sourcesOf([]);
    expect(keySets.resolve(set).RequestAuthentication[0]).toBe(object);
    await expect(keySets.fetch(source, 1_000, stay)).rejects.toThrow('no object uses this issuer');
  });
});

describe('an issuer', () => {
  const fetchKeys = async (rule: JwtRule, timeoutMs = 1_000): Promise<string | undefined> => {
    const keySets = newKeySets();
    const object = policyWith('a', rule);
    const [{ source }] = (await keySets.sourcesOf([object])) as [KeySource];
    await keySets.fetch(source, timeoutMs, stay);
    return keySets.resolve(configSetOf([object])).RequestAuthentication[0]!.spec.jwtRules[0]!.jwks;
  };

  it('can refer to the URL of its keys in its metadata', async () => {
    responses['/.well-known/openid-configuration'] = JSON.stringify({ jwks_uri: `${origin}/keys` });
    expect(await fetchKeys({ issuer: origin })).toContain('"two"');
    expect(await fetchKeys({ issuer: `${origin}/` })).toContain('"two"');
  });

  it.each([
    ['it is not a URL', () => ({ issuer: 'me@id.test' }), /not an http:.* \[KEY_SET_UNAVAILABLE\]$/],
    ['its metadata is missing', () => ({ issuer: `${origin}/keys/..` }), /^HTTP status 404 \[KEY_SET_UNAVAILABLE\]$/],
    ['it is unreachable', () => ({ issuer: '', jwksUri: 'http://127.0.0.1:1/keys' }), /ECONNREFUSED|bad port/],
  ] as const)('has no keys if %s', async (_, rule, reason) => {
    await expect(fetchKeys(rule())).rejects.toThrow(reason);
  });

  it.each([
    ['invalid JSON', '<html>', /^response must be JSON \[KEY_SET_UNAVAILABLE\]$/],
    ['JSON that is not a key set', '[]', /must be a JSON Web Key Set \[KEY_SET_UNAVAILABLE\]$/],
    ['an empty key set', '{"keys":[]}', /has no keys \[KEY_SET_UNAVAILABLE\]$/],
    ['keys without a type', '{"keys":[{"kid":"x"}]}', /has no keys \[KEY_SET_UNAVAILABLE\]$/],
    [
      'too many keys',
      JSON.stringify({ keys: Array.from({ length: 101 }, () => ({ kty: 'EC' })) }),
      /at most 100 keys, got 101 \[KEY_SET_UNAVAILABLE\]$/,
    ],
    ['a response above the size limit', JSON.stringify({ keys: [{ kty: 'x'.repeat(1_100_000) }] }), /response exceeds/],
    ['a response after the time limit', 0, /within 50 ms \[KEY_SET_UNAVAILABLE\]$/],
  ])('has no keys if it responds with %s', async (_, body, reason) => {
    responses['/keys'] = body;
    await expect(fetchKeys({ issuer: '', jwksUri: `${origin}/keys` }, body === 0 ? 50 : 5_000)).rejects.toThrow(reason);
  });
});

describe('key set addresses on this host', () => {
  it('are not fetched unless a setting permits it', async () => {
    const keySets = new KeySets();
    const [{ source }] = (await keySets.sourcesOf([policyWith('a', { issuer: 'i', jwksUri: `${origin}/keys` })])) as [
      KeySource,
    ];
    await expect(keySets.fetch(source, 1_000, stay)).rejects.toThrow(
      'host 127.0.0.1 is a loopback address and not in ALLOWED_CIDRS_IN_JWKS_URIS',
    );
    expect(requested).toEqual([]);
  });

  it("are not fetched if an issuer's metadata refers to them", async () => {
    responses['/.well-known/openid-configuration'] = JSON.stringify({
      jwks_uri: origin.replace('127.0.0.1', '127.0.0.2'),
    });
    const keySets = new KeySets(guardedFetch(new BlockedAddresses({ allowed: ['127.0.0.1'] })));
    const [{ source }] = (await keySets.sourcesOf([policyWith('a', { issuer: origin })])) as [KeySource];
    await expect(keySets.fetch(source, 1_000, stay)).rejects.toThrow('host 127.0.0.2 is a loopback address');
    expect(requested).toEqual(['/.well-known/openid-configuration']);
  });
});

it('an object whose issuers exceed the limit of its namespace is reported once, and again when they are within the limit', async () => {
  const object = (name: string, issuers: number): Config<RequestAuthentication> =>
    givenObject('RequestAuthentication', 'mallory', name, {
      jwtRules: Array.from({ length: issuers }, (_, index) => ({ issuer: `https://idp.test/${name}/${index}` })),
    }) as Config<RequestAuthentication>;
  const keys = new KeySets();
  const reportedLimits: string[] = [];
  keys.onLimited((key, limitedObject) => reportedLimits.push(`${key}: ${limitedObject?.problem.message}`));
  const objects = ['a', 'b', 'c'].map((name) => object(name, 100));
  await keys.sourcesOf(objects);
  await keys.sourcesOf([...objects]);
  expect(reportedLimits.splice(0)).toEqual([
    'RequestAuthentication/mallory/c: has issuers beyond the limit of 200 in its namespace, whose tokens are rejected (LIMIT_EXCEEDED): remove issuers that are not needed',
  ]);
  // The status of a new object version needs the condition too.
  await keys.sourcesOf([...objects.slice(0, 2), object('c', 100)]);
  expect(reportedLimits.splice(0)).toEqual([expect.stringMatching(/mallory\/c: .*LIMIT_EXCEEDED/)]);
  await keys.sourcesOf(objects.slice(1));
  expect(reportedLimits).toEqual(['RequestAuthentication/mallory/c: undefined']);
});
