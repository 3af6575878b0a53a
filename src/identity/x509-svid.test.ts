/** Each rule of an X.509-SVID by a certificate that breaks this one alone. */
import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { type Certificate, readCertificate, readCertificates } from './certificate.ts';
import { issueLeaf, issueRoot } from './issue.ts';
import { svidProblems } from './x509-svid.ts';

const directory = mkdtempSync(join(tmpdir(), 'svid-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const good = {
  subjectAltName: 'critical,URI:spiffe://cluster.local/ns/a/sa/b',
  keyUsage: 'critical,digitalSignature',
  extendedKeyUsage: 'serverAuth,clientAuth',
  basicConstraints: 'critical,CA:FALSE',
};

/** By OpenSSL, which makes what it is told. */
function made(changes: Partial<Record<keyof typeof good, string>> & { more?: string; key?: string[] }): Certificate {
  const { more = '', key = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], ...extensions } = changes;
  const lines = Object.entries({ ...good, ...extensions }).flatMap(([name, value]) =>
    value ? `${name}=${value}` : [],
  );
  const config = join(directory, 'config');
  writeFileSync(
    config,
    ['[req]', 'distinguished_name=dn', 'x509_extensions=x', '[dn]', '[x]', ...lines, more].join('\n'),
  );
  const parts = ['req', '-x509', '-config', config, '-newkey', ...key, '-nodes', '-keyout', '/dev/null', '-subj', '/'];
  return readCertificates(execFileSync('openssl', parts, { encoding: 'utf8', stdio: 'pipe' }))[0]!;
}

it('takes one that keeps all rules', () => {
  expect(svidProblems(made({}))).toEqual([]);
});

it.each<[string, Parameters<typeof made>[0], string]>([
  ['no alternative name', { subjectAltName: '' }, 'has 0 URIs'],
  ['two URIs', { subjectAltName: 'critical,URI:spiffe://a/ns/a/sa/b,URI:spiffe://a/ns/a/sa/c' }, 'has 2 URIs'],
  ['a name of a host only', { subjectAltName: 'critical,DNS:a.b' }, 'has 0 URIs'],
  ['another scheme', { subjectAltName: 'critical,URI:https://cluster.local/ns/a/sa/b' }, 'begin with spiffe://'],
  ['an upper-case scheme', { subjectAltName: 'critical,URI:SPIFFE://cluster.local/ns/a/sa/b' }, 'begin with spiffe://'],
  ['no trust domain', { subjectAltName: 'critical,URI:spiffe:///ns/a/sa/b' }, 'empty trust domain'],
  ['a port', { subjectAltName: 'critical,URI:spiffe://cluster.local:1/ns/a/sa/b' }, 'trust domain with something else'],
  ['a user', { subjectAltName: 'critical,URI:spiffe://a@cluster.local/ns/a/sa/b' }, 'trust domain with something else'],
  ['an upper-case trust domain', { subjectAltName: 'critical,URI:spiffe://Cluster/ns/a/sa/b' }, 'trust domain with'],
  ['no path', { subjectAltName: 'critical,URI:spiffe://cluster.local' }, 'names a trust domain'],
  ['a trailing slash', { subjectAltName: 'critical,URI:spiffe://cluster.local/ns/a/' }, 'an empty segment'],
  ['an empty segment', { subjectAltName: 'critical,URI:spiffe://cluster.local/ns//sa/b' }, 'an empty segment'],
  ['dots', { subjectAltName: 'critical,URI:spiffe://cluster.local/ns/../sa/b' }, 'a relative segment'],
  ['a percent', { subjectAltName: 'critical,URI:spiffe://cluster.local/ns/a%2fb' }, 'in its path'],
  ['a query', { subjectAltName: 'critical,URI:spiffe://cluster.local/ns/a?x=y' }, 'in its path'],
  ['an authority', { basicConstraints: 'critical,CA:TRUE' }, 'certificate of an authority'],
  ['no key usage', { keyUsage: '' }, 'says no key usage'],
  ['a key usage that is not critical', { keyUsage: 'digitalSignature' }, 'not critical'],
  ['no digital signature', { keyUsage: 'critical,keyAgreement' }, 'not for digital signatures'],
  ['the signing of certificates', { keyUsage: 'critical,digitalSignature,keyCertSign' }, 'is for keyCertSign'],
  ['the signing of lists', { keyUsage: 'critical,digitalSignature,cRLSign' }, 'is for cRLSign'],
  ['encipherment with P-256', { keyUsage: 'critical,digitalSignature,keyEncipherment' }, 'only an RSA key'],
  ['servers only', { extendedKeyUsage: 'serverAuth' }, 'servers and clients both'],
  ['clients only', { extendedKeyUsage: 'clientAuth' }, 'servers and clients both'],
  ['names that are not critical', { subjectAltName: 'URI:spiffe://cluster.local/ns/a/sa/b' }, 'not critical beside'],
  ['an unknown critical extension', { more: '1.2.3.4=critical,ASN1:UTF8String:x' }, 'critical extension 1.2.3.4'],
])('refuses one with %s', (_, changes, problem) => {
  expect(svidProblems(made(changes))).toEqual([expect.stringContaining(problem)]);
});

it('lets RSA encipher keys, and extended usages be absent', () => {
  expect(svidProblems(made({ keyUsage: 'critical,digitalSignature,keyEncipherment', key: ['rsa:2048'] }))).toEqual([]);
  expect(svidProblems(made({ extendedKeyUsage: '' }))).toEqual([]);
});

it('reads no bytes after the end of a certificate, and no extension twice', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const lifetime = { notBefore: new Date(0), notAfter: new Date(2e12) };
  const der = issueRoot(privateKey, { organization: 'a', commonName: 'b' }, lifetime);
  expect(() => readCertificate(new Uint8Array([...der, 0]))).toThrow('bytes after its end');
  const issuer = { privateKey, certificate: readCertificate(der) };
  const leaf = issueLeaf(issuer, createPublicKey(privateKey), { uris: ['spiffe://a/b'], dns: [], ips: [] }, lifetime);
  // basicConstraints (2.5.29.19) → a second key usage (2.5.29.15)
  const at = Buffer.from(leaf).indexOf(Buffer.from([0x06, 0x03, 0x55, 0x1d, 0x13]));
  const twice = new Uint8Array(leaf);
  twice[at + 4] = 0x0f;
  expect(() => readCertificate(twice)).toThrow('has extension 2.5.29.15 twice');
});
