/** Tests each rule of an X.509-SVID with a certificate that violates only this rule. */
import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { type Certificate, readCertificate, readCertificates } from './certificate.ts';
import type { CertificateProblem } from './certificate-problem.ts';
import { issueLeaf, issueRoot } from './issue.ts';
import { svidProblems } from './x509-svid.ts';

const directory = mkdtempSync(join(tmpdir(), 'svid-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const goodExtensions = {
  subjectAltName: 'critical,URI:spiffe://cluster.local/ns/a/sa/b',
  keyUsage: 'critical,digitalSignature',
  extendedKeyUsage: 'serverAuth,clientAuth',
  basicConstraints: 'critical,CA:FALSE',
};

/** Creates a leaf with OpenSSL, which checks nothing. */
function createLeaf(
  changes: Partial<Record<keyof typeof goodExtensions, string>> & { more?: string; key?: string[] },
): Certificate {
  const { more = '', key = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], ...extensions } = changes;
  const lines = Object.entries({ ...goodExtensions, ...extensions }).flatMap(([name, value]) =>
    value ? `${name}=${value}` : [],
  );
  const config = join(directory, 'config');
  writeFileSync(
    config,
    ['[req]', 'distinguished_name=dn', 'x509_extensions=x', '[dn]', '[x]', ...lines, more].join('\n'),
  );
  const args = ['req', '-x509', '-config', config, '-newkey', ...key, '-nodes', '-keyout', '/dev/null', '-subj', '/'];
  return readCertificates(execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' }))[0]!;
}

it('a certificate is an X.509-SVID if it satisfies all rules', () => {
  expect(svidProblems(createLeaf({}))).toEqual([]);
});

it.each<[string, Parameters<typeof createLeaf>[0], Partial<CertificateProblem>]>([
  [
    'no alternative name',
    { subjectAltName: '' },
    { path: 'subjectAltName', message: expect.stringContaining('one URI SAN, got 0') },
  ],
  [
    'two URIs',
    { subjectAltName: 'critical,URI:spiffe://a/ns/a/sa/b,URI:spiffe://a/ns/a/sa/c' },
    { path: 'subjectAltName', message: expect.stringContaining('one URI SAN, got 2') },
  ],
  [
    'only a host name',
    { subjectAltName: 'critical,DNS:a.b' },
    { path: 'subjectAltName', message: expect.stringContaining('one URI SAN, got 0') },
  ],
  [
    'another scheme',
    { subjectAltName: 'critical,URI:https://cluster.local/ns/a/sa/b' },
    { path: 'subjectAltName', message: expect.stringContaining('start with spiffe://') },
  ],
  [
    'an upper-case scheme',
    { subjectAltName: 'critical,URI:SPIFFE://cluster.local/ns/a/sa/b' },
    { path: 'subjectAltName', message: expect.stringContaining('start with spiffe://') },
  ],
  [
    'no trust domain',
    { subjectAltName: 'critical,URI:spiffe:///ns/a/sa/b' },
    { path: 'subjectAltName', message: expect.stringContaining('trust domain must not be empty') },
  ],
  [
    'a port',
    { subjectAltName: 'critical,URI:spiffe://cluster.local:1/ns/a/sa/b' },
    { path: 'subjectAltName', message: expect.stringContaining('trust domain must contain only') },
  ],
  [
    'a user',
    { subjectAltName: 'critical,URI:spiffe://a@cluster.local/ns/a/sa/b' },
    { path: 'subjectAltName', message: expect.stringContaining('trust domain must contain only') },
  ],
  [
    'an upper-case trust domain',
    { subjectAltName: 'critical,URI:spiffe://Cluster/ns/a/sa/b' },
    { path: 'subjectAltName', message: expect.stringContaining('trust domain must contain only') },
  ],
  [
    'no path',
    { subjectAltName: 'critical,URI:spiffe://cluster.local' },
    { path: 'subjectAltName', got: 'spiffe://cluster.local' },
  ],
  [
    'a trailing slash',
    { subjectAltName: 'critical,URI:spiffe://cluster.local/ns/a/' },
    { path: 'subjectAltName', message: expect.stringContaining('an empty segment') },
  ],
  [
    'an empty segment',
    { subjectAltName: 'critical,URI:spiffe://cluster.local/ns//sa/b' },
    { path: 'subjectAltName', message: expect.stringContaining('an empty segment') },
  ],
  [
    'dot segments',
    { subjectAltName: 'critical,URI:spiffe://cluster.local/ns/../sa/b' },
    { path: 'subjectAltName', message: expect.stringContaining('segment . or ..') },
  ],
  [
    'a percent sign',
    { subjectAltName: 'critical,URI:spiffe://cluster.local/ns/a%2fb' },
    { path: 'subjectAltName', message: expect.stringContaining('path must contain only') },
  ],
  [
    'a query',
    { subjectAltName: 'critical,URI:spiffe://cluster.local/ns/a?x=y' },
    { path: 'subjectAltName', message: expect.stringContaining('path must contain only') },
  ],
  [
    'basic constraints of an authority',
    { basicConstraints: 'critical,CA:TRUE' },
    { path: 'basicConstraints', got: 'CA:TRUE' },
  ],
  ['no key usage', { keyUsage: '' }, { path: 'keyUsage', got: 'none' }],
  ['a key usage that is not critical', { keyUsage: 'digitalSignature' }, { path: 'keyUsage', expected: 'critical' }],
  [
    'no digital signature',
    { keyUsage: 'critical,keyAgreement' },
    { path: 'keyUsage', expected: 'digitalSignature', got: 'keyAgreement' },
  ],
  [
    'certificate signing',
    { keyUsage: 'critical,digitalSignature,keyCertSign' },
    { path: 'keyUsage', got: 'keyCertSign' },
  ],
  ['CRL signing', { keyUsage: 'critical,digitalSignature,cRLSign' }, { path: 'keyUsage', got: 'cRLSign' }],
  [
    'key encipherment for P-256',
    { keyUsage: 'critical,digitalSignature,keyEncipherment' },
    { path: 'keyUsage', got: 'keyEncipherment' },
  ],
  ['only server authentication', { extendedKeyUsage: 'serverAuth' }, { path: 'extendedKeyUsage', got: 'serverAuth' }],
  ['only client authentication', { extendedKeyUsage: 'clientAuth' }, { path: 'extendedKeyUsage', got: 'clientAuth' }],
  [
    'a subjectAltName that is not critical',
    { subjectAltName: 'URI:spiffe://cluster.local/ns/a/sa/b' },
    { path: 'subjectAltName', got: 'not critical' },
  ],
  [
    'an unknown critical extension',
    { more: '1.2.3.4=critical,ASN1:UTF8String:x' },
    { path: 'extensions', got: '1.2.3.4' },
  ],
])('a certificate with %s is not an X.509-SVID', (_, changes, problem) => {
  expect(svidProblems(createLeaf(changes))).toEqual([
    expect.objectContaining({ code: 'CERTIFICATE_PROFILE_INVALID', ...problem }),
  ]);
});

it('an X.509-SVID can have key encipherment for RSA, and does not require an extended key usage', () => {
  expect(
    svidProblems(createLeaf({ keyUsage: 'critical,digitalSignature,keyEncipherment', key: ['rsa:2048'] })),
  ).toEqual([]);
  expect(svidProblems(createLeaf({ extendedKeyUsage: '' }))).toEqual([]);
});

it('a certificate with trailing bytes or repeated extensions is rejected', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const lifetime = { notBefore: new Date(0), notAfter: new Date(2e12) };
  const der = issueRoot(privateKey, { organization: 'a', commonName: 'b' }, lifetime);
  expect(() => readCertificate(new Uint8Array([...der, 0]))).toThrow(
    expect.objectContaining({ code: 'CERTIFICATE_INVALID', message: expect.stringContaining('trailing data') }),
  );
  const issuer = { privateKey, certificate: readCertificate(der) };
  const leaf = issueLeaf(issuer, createPublicKey(privateKey), { uris: ['spiffe://a/b'], dns: [], ips: [] }, lifetime);
  // Changes basicConstraints (2.5.29.19) to a second key usage (2.5.29.15).
  const at = Buffer.from(leaf).indexOf(Buffer.from([0x06, 0x03, 0x55, 0x1d, 0x13]));
  const corrupted = new Uint8Array(leaf);
  corrupted[at + 4] = 0x0f;
  expect(() => readCertificate(corrupted)).toThrow(
    expect.objectContaining({ code: 'CERTIFICATE_INVALID', message: expect.stringContaining('2.5.29.15') }),
  );
});
