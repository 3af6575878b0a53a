import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CertificateRequestError, createRequest, verifyRequest } from './certificate-request.ts';
import { pemBlocks, pemOf } from './pem.ts';

const uri = 'spiffe://cluster.local/ns/shop/sa/cart';
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

function openssl(input: string, ...args: string[]): string {
  return execFileSync('openssl', args, { input, encoding: 'utf8', stdio: 'pipe' });
}

const spki = (key: KeyObject): string => createPublicKey(key).export({ format: 'pem', type: 'spki' }) as string;

describe('createRequest', () => {
  it.each([
    ['P-256', ec],
    ['RSA', rsa],
  ])('creates a request with a %s key, an empty subject and the given name, which OpenSSL verifies', (_, key) => {
    const text = openssl(createRequest(key, [uri]), 'req', '-verify', '-text', '-noout');
    expect(text).toMatch(/Subject: *\n/);
    expect(text).toContain(`URI:${uri}`);
    expect(text).toMatch(/Subject Alternative Name: critical/);
  });

  it('creates a request that verifyRequest accepts', () => {
    for (const key of [ec, rsa]) {
      const verified = verifyRequest(createRequest(key, [uri]));
      expect(verified.export({ format: 'pem', type: 'spki' })).toBe(spki(key));
    }
  });
});

describe('verifyRequest', () => {
  it('accepts a request from OpenSSL, even with the older PEM label', () => {
    const request = makeUnchecked('rsa:2048');
    const opensslKey = openssl(request, 'req', '-pubkey', '-noout');
    expect(verifyRequest(request).export({ format: 'pem', type: 'spki' })).toBe(opensslKey);
    expect(() => verifyRequest(request.replaceAll('CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST'))).not.toThrow();
  });

  const goodRequest = createRequest(ec, [uri]);
  const der = pemBlocks(goodRequest)[0]!.der;

  it.each<[string, string, string, string?]>([
    ['an empty text', '', 'got 0'],
    ['a text with two requests', goodRequest + goodRequest, 'got 2'],
    ['a request with trailing bytes', pemOf('CERTIFICATE REQUEST', new Uint8Array([...der, 0])), 'trailing data'],
    ['a request of a megabyte', pemOf('CERTIFICATE REQUEST', new Uint8Array(1_000_000)), 'at most'],
    ['a short RSA key', makeUnchecked('rsa:1024'), '1024 bits', 'KEY_UNSUPPORTED'],
    ['a long RSA key', makeUnchecked('rsa:8192'), '8192 bits', 'KEY_UNSUPPORTED'],
    [
      'a key on another curve',
      makeUnchecked('ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1'),
      'secp256k1',
      'KEY_UNSUPPORTED',
    ],
    ['an Ed25519 key', makeUnchecked('ed25519'), 'ed25519', 'KEY_UNSUPPORTED'],
  ])('rejects %s', (_, request, problem, code = 'CERTIFICATE_REQUEST_INVALID') => {
    expect(() => verifyRequest(request)).toThrow(
      expect.objectContaining({ name: 'CertificateRequestError', code, message: expect.stringContaining(problem) }),
    );
  });

  // Only the signed bytes matter; unused bits outside them are ignored.
  it('never returns another key for a request with a changed byte, and does not throw', () => {
    const results = { same: 0, refused: 0 };
    fc.assert(
      fc.property(fc.nat(der.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const corrupted = new Uint8Array(der);
        corrupted[at]! ^= flip;
        try {
          expect(verifyRequest(pemOf('CERTIFICATE REQUEST', corrupted)).export({ format: 'pem', type: 'spki' })).toBe(
            spki(ec),
          );
          results.same++;
        } catch (error) {
          expect(error).toBeInstanceOf(CertificateRequestError);
          results.refused++;
        }
      }),
      { numRuns: 1500 },
    );
    expect(results.refused).toBeGreaterThan(20 * results.same);
  });
});

/** Creates a request that `createRequest` would not create. */
function makeUnchecked(kind: string, ...options: string[]): string {
  return openssl('', 'req', '-new', '-newkey', kind, ...options, '-nodes', '-keyout', '/dev/null', '-subj', '/');
}
