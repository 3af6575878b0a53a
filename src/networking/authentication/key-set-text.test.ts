import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { keySetText } from './key-set-text.ts';
import { unknownKey } from './unknown-key.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });

const keysOf = (...keys: unknown[]): unknown =>
  (JSON.parse(keySetText({ issuer: 'i', jwks: JSON.stringify({ keys }) })) as { keys: unknown }).keys;

it('a rule without known keys has a key that matches no token', () => {
  expect(JSON.parse(keySetText({ issuer: 'i' }))).toEqual({ keys: [unknownKey] });
});

describe('key set of a JWT rule', () => {
  it.each([
    ['RSA', rsa],
    ['RSA with an unknown algorithm', { ...rsa, alg: 'RS999' }],
    ['an elliptic curve', ec],
    ['an elliptic curve with its algorithm', { ...ec, alg: 'ES256' }],
  ])('the key set is unchanged if it contains one usable key: %s', (_, key) => {
    expect(keysOf(key, { kty: 'other' })).toEqual([key, { kty: 'other' }]);
  });

  it.each([
    ['no key', []],
    ['an unknown key type', [{ kty: 'other' }]],
    ['RSA without an exponent', [{ kty: 'RSA', n: rsa.n }]],
    ['RSA in the standard base64 alphabet', [{ ...rsa, n: `+/${rsa.n!.slice(2)}` }]],
    ['RSA with a few bits', [{ ...rsa, n: 'AQ' }]],
    ['a curve with the algorithm of another one', [{ ...ec, alg: 'ES384' }]],
    ['a point that is not on the curve', [{ ...ec, x: ec.y }]],
    ['a curve without a name', [{ kty: 'EC', x: ec.x, y: ec.y }]],
  ])('the key set gets an additional key if none is certainly usable: %s', (_, keys) => {
    expect(keysOf(...keys)).toEqual([...keys, unknownKey]);
  });

  it('the key set contains only members that Envoy reads, and no key with an oversized member', () => {
    const key = { ...rsa, kid: 'a', use: 'sig' };
    expect(keysOf({ ...key, note: 'x'.repeat(100_000) })).toEqual([key]);
    const longText = 'A'.repeat(8_193);
    expect(keysOf({ ...key, n: longText }, { ...key, kid: longText }, key)).toEqual([key]);
    expect(keysOf({ ...key, n: longText })).toEqual([unknownKey]);
  });

  it('the key set contains only objects with string members', () => {
    expect(keysOf({ ...rsa, x5c: ['certificate'], n2: 5, bad: '\ud800' }, 'text', null)).toEqual([rsa]);
  });
});
