import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readCertificate, readCertificates } from './certificate.ts';
import { issueLeaf, issueRoot } from './issue.ts';
import { readSpiffeBundle } from './spiffe-bundle.ts';

const day = 86_400_000;
const now = new Date();
const daysLater = (days: number): Date => new Date(now.getTime() + days * day);
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rootKey = newKey();
const subject = (commonName: string) => ({ organization: 'shop', commonName });
const rootOf = (name: string, from = -1, untilDay = 1, key = newKey()): Uint8Array =>
  issueRoot(key.privateKey, subject(name), { notBefore: daysLater(from), notAfter: daysLater(untilDay) });
const root = rootOf('one', -1, 1, rootKey);
const x5c = (der: Uint8Array): string => Buffer.from(der).toString('base64');
const entry = (der: Uint8Array, extraFields: object = {}): object => ({
  kty: 'EC',
  use: 'x509-svid',
  x5c: [x5c(der)],
  ...extraFields,
});
const bundle = (keys: unknown, extraFields: object = {}): string => JSON.stringify({ keys, ...extraFields });
/** Validity is checked slightly later, because OpenSSL's certificates become valid at their creation. */
const read = (text: string) => readSpiffeBundle(text, ['shop.test'], new Date(Date.now() + 2_000));

describe('a bundle', () => {
  it('contains the first certificate of each x509-svid entry', () => {
    const secondRoot = rootOf('two');
    const { roots, sequence, refreshHintSeconds } = read(
      bundle(
        [
          entry(root),
          { kty: 'EC', use: 'jwt-svid', kid: 'a', x: 'x', y: 'y' },
          { kty: 'EC', use: 'x509-svid' },
          { kty: 'EC', use: 'x509-svid', x5c: [] },
          entry(secondRoot, { x5c: [x5c(secondRoot), x5c(rootOf('three'))] }),
          entry(root),
        ],
        { spiffe_sequence: 12, spiffe_refresh_hint: 60, other: true },
      ),
    );
    expect(roots.map(({ x509 }) => x509.subject)).toEqual(['O=shop\nCN=one', 'O=shop\nCN=two']);
    expect([sequence, refreshHintSeconds]).toEqual([12, 60]);
  });

  it('ignores invalid roots if at least one is valid', () => {
    const { roots, ignoredEntries: passedOver } = read(
      bundle([entry(rootOf('ended', -2, -1)), entry(rootOf('to come', 1, 2)), entry(root)]),
    );
    expect(roots).toHaveLength(1);
    expect(passedOver).toEqual([
      expect.stringMatching(/^keys\[0\]: CN=ended expired on/),
      expect.stringMatching(/^keys\[1\]: CN=to come is not valid before/),
    ]);
  });

  it.each([
    ['a text that is not JSON', '<html>', /not JSON$/],
    ['an array in place of a key set', '[]', /not a JSON Web Key Set/],
    ['an object in place of keys', bundle({}), /not a JSON Web Key Set/],
    ['no entries', bundle([]), /no key with use x509-svid/],
    ['entries for tokens only', bundle([{ kty: 'EC', use: 'jwt-svid', kid: 'a' }]), /no key with use x509-svid/],
    ['an entry without a type', bundle([entry(root, { kty: undefined })]), /no key with use x509-svid/],
    ['a use in upper case', bundle([entry(root, { use: 'X509-SVID' })]), /no key with use x509-svid/],
    ['only expired roots', bundle([entry(rootOf('ended', -2, -1))]), /CN=ended expired on/],
    [
      'a certificate in URL-safe base64',
      bundle([entry(root, { x5c: [`-_${x5c(root)}`] })]),
      /keys\[0\]\.x5c\[0\] is not base64/,
    ],
    ['an invalid certificate', bundle([entry(Buffer.from('none'))]), /keys\[0\]\.x5c\[0\] is not an X.509 certificate/],
    ['a valid and a truncated certificate', bundle([entry(root), entry(root.subarray(0, -9))]), /keys\[1\]/],
    ['a number in place of a certificate', bundle([entry(root, { x5c: [1] })]), /is not base64/],
    ['too many entries', bundle(Array.from({ length: 101 }, () => entry(root))), /at most 100 entries, got 101/],
    [
      'a sequence that is a string',
      bundle([entry(root)], { spiffe_sequence: '1' }),
      /spiffe_sequence must be .*got "1"/,
    ],
    ['a negative sequence', bundle([entry(root)], { spiffe_sequence: -1 }), /spiffe_sequence must be .*got -1/],
    [
      'a refresh hint of half a second',
      bundle([entry(root)], { spiffe_refresh_hint: 0.5 }),
      /spiffe_refresh_hint must be .*got 0.5/,
    ],
  ])('is rejected if it is %s', (_, text, reason) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ code: 'TRUST_BUNDLE_INVALID', message: expect.stringMatching(reason) }),
    );
  });
});

describe('a root', () => {
  /** Creates a root with OpenSSL, because chartpilot's roots contain no URI. */
  const rootWithUri = (uri: string): Uint8Array => {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '/dev/null'];
    const args = ['req', '-x509', ...key, '-subj', '/CN=named', '-addext', `subjectAltName=URI:${uri}`];
    return readCertificates(execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' }))[0]!.der;
  };

  it('can contain the trust domain as a URI, or no URI', () => {
    expect(read(bundle([entry(rootWithUri('spiffe://shop.test')), entry(root)])).roots).toHaveLength(2);
  });

  it.each([
    ['that of another trust domain', 'spiffe://bank.test', /belongs to trust domain bank\.test/],
    ['not a SPIFFE ID', 'https://shop.test', /must start with spiffe/],
    ['that of a workload', 'spiffe://shop.test/ns/a/sa/b', /belongs to the workload/],
    ['a name that no trust domain can have', 'spiffe://Shop.test', /trust domain must contain only lower-case/],
  ])('is rejected if its URI is %s', (_, uri, reason) => {
    expect(() => read(bundle([entry(rootWithUri(uri))]))).toThrow(reason);
  });

  it('is rejected if it must not sign, like a workload certificate', () => {
    const issuer = { certificate: readCertificate(root), privateKey: rootKey.privateKey };
    const names = { uris: ['spiffe://shop.test/ns/a/sa/b'], dns: [], ips: [] };
    const leaf = issueLeaf(issuer, newKey().publicKey, names, { notBefore: daysLater(-1), notAfter: daysLater(1) });
    expect(() => read(bundle([entry(leaf)]))).toThrow(/is not a CA certificate/);
  });
});
