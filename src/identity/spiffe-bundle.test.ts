import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readCertificate, readCertificates } from './certificate.ts';
import { issueLeaf, issueRoot } from './issue.ts';
import { readSpiffeBundle } from './spiffe-bundle.ts';

const day = 86_400_000;
const now = new Date();
const later = (days: number): Date => new Date(now.getTime() + days * day);
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rootKey = newKey();
const subject = (commonName: string) => ({ organization: 'shop', commonName });
const rootOf = (name: string, from = -1, until = 1, key = newKey()): Uint8Array =>
  issueRoot(key.privateKey, subject(name), { notBefore: later(from), notAfter: later(until) });
const root = rootOf('one', -1, 1, rootKey);
const x5c = (der: Uint8Array): string => Buffer.from(der).toString('base64');
const entry = (der: Uint8Array, more: object = {}): object => ({
  kty: 'EC',
  use: 'x509-svid',
  x5c: [x5c(der)],
  ...more,
});
const bundle = (keys: unknown, more: object = {}): string => JSON.stringify({ keys, ...more });
/** Slightly later, because OpenSSL's certificates start at their creation. */
const read = (text: string) => readSpiffeBundle(text, ['shop.test'], new Date(Date.now() + 2_000));

describe('a bundle', () => {
  it('is the certificates of its x509-svid entries, the first of each entry', () => {
    const two = rootOf('two');
    const { roots, sequence, refreshHintSeconds } = read(
      bundle(
        [
          entry(root),
          { kty: 'EC', use: 'jwt-svid', kid: 'a', x: 'x', y: 'y' },
          { kty: 'EC', use: 'x509-svid' },
          { kty: 'EC', use: 'x509-svid', x5c: [] },
          entry(two, { x5c: [x5c(two), x5c(rootOf('three'))] }),
          entry(root),
        ],
        { spiffe_sequence: 12, spiffe_refresh_hint: 60, other: true },
      ),
    );
    expect(roots.map(({ x509 }) => x509.subject)).toEqual(['O=shop\nCN=one', 'O=shop\nCN=two']);
    expect([sequence, refreshHintSeconds]).toEqual([12, 60]);
  });

  it('ignores invalid roots as long as one is valid', () => {
    const { roots, passedOver } = read(
      bundle([entry(rootOf('ended', -2, -1)), entry(rootOf('to come', 1, 2)), entry(root)]),
    );
    expect(roots).toHaveLength(1);
    expect(passedOver).toEqual([
      expect.stringMatching(/^keys\[0\]: CN=ended expired on/),
      expect.stringMatching(/^keys\[1\]: CN=to come is not valid before/),
    ]);
  });

  it.each([
    ['no JSON', '<html>', /not JSON$/],
    ['no key set', '[]', /not a JSON Web Key Set/],
    ['keys of another kind', bundle({}), /not a JSON Web Key Set/],
    ['no entry', bundle([]), /no key with use x509-svid/],
    ['entries for tokens only', bundle([{ kty: 'EC', use: 'jwt-svid', kid: 'a' }]), /no key with use x509-svid/],
    ['an entry without a type', bundle([entry(root, { kty: undefined })]), /no key with use x509-svid/],
    [
      'an entry for another use, written alike',
      bundle([entry(root, { use: 'X509-SVID' })]),
      /no key with use x509-svid/,
    ],
    ['nothing but roots that ended', bundle([entry(rootOf('ended', -2, -1))]), /CN=ended expired on/],
    [
      'a certificate in URL-safe base64',
      bundle([entry(root, { x5c: [`-_${x5c(root)}`] })]),
      /keys\[0\]\.x5c\[0\] is not base64/,
    ],
    [
      'a certificate that is none',
      bundle([entry(Buffer.from('none'))]),
      /keys\[0\]\.x5c\[0\] is not an X.509 certificate/,
    ],
    ['one that cannot be read beside one that can', bundle([entry(root), entry(root.subarray(0, -9))]), /keys\[1\]/],
    ['a number in place of a certificate', bundle([entry(root, { x5c: [1] })]), /is not base64/],
    ['too many entries', bundle(Array.from({ length: 101 }, () => entry(root))), /at most 100 entries, got 101/],
    ['a sequence that is text', bundle([entry(root)], { spiffe_sequence: '1' }), /spiffe_sequence must be .*got "1"/],
    ['a sequence below zero', bundle([entry(root)], { spiffe_sequence: -1 }), /spiffe_sequence must be .*got -1/],
    [
      'half a second as a hint',
      bundle([entry(root)], { spiffe_refresh_hint: 0.5 }),
      /spiffe_refresh_hint must be .*got 0.5/,
    ],
  ])('with %s is rejected', (_, text, reason) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ code: 'TRUST_BUNDLE_INVALID', message: expect.stringMatching(reason) }),
    );
  });
});

describe('a root', () => {
  /** By OpenSSL, because chartpilot's roots contain no URI. */
  const named = (uri: string): Uint8Array => {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '/dev/null'];
    const parts = ['req', '-x509', ...key, '-subj', '/CN=named', '-addext', `subjectAltName=URI:${uri}`];
    return readCertificates(execFileSync('openssl', parts, { encoding: 'utf8', stdio: 'pipe' }))[0]!.der;
  };

  it('may name the trust domain, or none', () => {
    expect(read(bundle([entry(named('spiffe://shop.test')), entry(root)])).roots).toHaveLength(2);
  });

  it.each([
    ['of another trust domain', 'spiffe://bank.test', /belongs to trust domain bank\.test/],
    ['with another scheme', 'https://shop.test', /must start with spiffe/],
    ['of a workload', 'spiffe://shop.test/ns/a/sa/b', /belongs to the workload/],
    ['of a name that no trust domain has', 'spiffe://Shop.test', /trust domain must contain only lower-case/],
  ])('is rejected if it names %s', (_, uri, reason) => {
    expect(() => read(bundle([entry(named(uri))]))).toThrow(reason);
  });

  it('is rejected if it may not sign, as for a workload', () => {
    const issuer = { certificate: readCertificate(root), privateKey: rootKey.privateKey };
    const names = { uris: ['spiffe://shop.test/ns/a/sa/b'], dns: [], ips: [] };
    const leaf = issueLeaf(issuer, newKey().publicKey, names, { notBefore: later(-1), notAfter: later(1) });
    expect(() => read(bundle([entry(leaf)]))).toThrow(/is not a CA certificate/);
  });
});
