/** Tests each possible deviation of a leaf from its request. */
import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readCertificate, readCertificates } from './certificate.ts';
import { type Issuer, issueIntermediate, issueLeaf, issueRoot } from './issue.ts';
import { LeafCheck } from './leaf-check.ts';

const directory = mkdtempSync(join(tmpdir(), 'leaf-check-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const lifetime = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
const uri = 'spiffe://cluster.local/ns/shop/sa/cart';
const newKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

function rootOf(commonName: string): Issuer {
  const privateKey = newKey();
  const der = issueRoot(privateKey, { organization: 'shop', commonName }, lifetime);
  return { privateKey, certificate: readCertificate(der) };
}

const issuer = rootOf('one');
const privateKey = newKey();
const key = createPublicKey(privateKey);
const expectedLeaf = { key, uri, lifetime };
const names = (...uris: string[]) => ({ uris, dns: [], ips: [] });
const createGoodLeaf = (): Uint8Array => issueLeaf(issuer, key, names(uri), lifetime);
const plusOneSecond = (date: Date): Date => new Date(date.getTime() + 1_000);

/** Returns a check that has already parsed a leaf of this key type completely, so that it next checks only OpenSSL's fields. */
function checkAfterFirstLeaf(): LeafCheck {
  const check = new LeafCheck(issuer);
  check.serialNumberOf(createGoodLeaf(), expectedLeaf);
  return check;
}

it('a leaf check returns the serial number of a matching certificate', () => {
  const der = createGoodLeaf();
  expect(checkAfterFirstLeaf().serialNumberOf(der, expectedLeaf)).toBe(readCertificate(der).serialNumber);
});

describe('a leaf', () => {
  it.each<readonly [string, () => Uint8Array, RegExp]>([
    ['with another name', () => issueLeaf(issuer, key, names(`${uri}s`), lifetime), /subject alternative names differ/],
    [
      'with two names',
      () => issueLeaf(issuer, key, names(uri, `${uri}s`), lifetime),
      /subject alternative names differ/,
    ],
    [
      'with an additional host name',
      () => issueLeaf(issuer, key, { uris: [uri], dns: ['a.b'], ips: [] }, lifetime),
      /subject alternative names differ/,
    ],
    ['without a name', () => issueLeaf(issuer, key, names(), lifetime), /subject alternative names differ/],
    ['for another key', () => issueLeaf(issuer, createPublicKey(newKey()), names(uri), lifetime), /public key differs/],
    [
      'that is valid from a later time',
      () => issueLeaf(issuer, key, names(uri), { ...lifetime, notBefore: plusOneSecond(lifetime.notBefore) }),
      /notBefore differs/,
    ],
    [
      'that expires later',
      () => issueLeaf(issuer, key, names(uri), { ...lifetime, notAfter: plusOneSecond(lifetime.notAfter) }),
      /notAfter differs/,
    ],
    ['of another issuer', () => issueLeaf(rootOf('two'), key, names(uri), lifetime), /issuer differs/],
    [
      'of another issuer with the same name',
      () => issueLeaf(rootOf('one'), key, names(uri), lifetime),
      /issuer differs/,
    ],
    [
      'that may sign certificates',
      () => issueIntermediate(issuer, key, { organization: 'a', commonName: 'b' }, lifetime),
      /CA certificate/,
    ],
    [
      'with trailing bytes',
      () => Buffer.concat([createGoodLeaf(), Buffer.of(0)]),
      /trailing data after the certificate/,
    ],
  ])('is rejected by the first check and later checks: %s', (_, createLeaf, reason) => {
    expect(() => checkAfterFirstLeaf().serialNumberOf(createLeaf(), expectedLeaf)).toThrow(reason);
    expect(() => new LeafCheck(issuer).serialNumberOf(createLeaf(), expectedLeaf)).toThrow(reason);
  });

  it('is rejected if it is damaged', () => {
    expect(() => checkAfterFirstLeaf().serialNumberOf(createGoodLeaf().subarray(0, -20), expectedLeaf)).toThrow();
  });
});

describe('a property that OpenSSL does not expose', () => {
  /** Creates a leaf with OpenSSL, which checks nothing; it is self-signed, so it is its own issuer. */
  function createLeaf(
    changes: Record<string, string>,
    subject = '/',
  ): { der: Uint8Array; request: typeof expectedLeaf; check: LeafCheck } {
    const extensions = {
      subjectAltName: `critical,URI:${uri}`,
      keyUsage: 'critical,digitalSignature',
      extendedKeyUsage: 'serverAuth,clientAuth',
      basicConstraints: 'critical,CA:FALSE',
      ...changes,
    };
    const lines = Object.entries(extensions).map(([name, value]) => `${name}=${value}`);
    const [config, keyFile] = [join(directory, 'config'), join(directory, 'key')];
    writeFileSync(config, ['[req]', 'distinguished_name=dn', 'x509_extensions=x', '[dn]', '[x]', ...lines].join('\n'));
    writeFileSync(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const args = ['req', '-x509', '-config', config, '-key', keyFile, '-subj', subject];
    const [certificate] = readCertificates(execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' }));
    const { der, notBefore, notAfter } = certificate!;
    const selfIssuer = { ...issuer, certificate: certificate! };
    return { der, request: { ...expectedLeaf, lifetime: { notBefore, notAfter } }, check: new LeafCheck(selfIssuer) };
  }
  it('is checked by a second parser', () => {
    const { der, request: expectedRequest, check } = createLeaf({ extendedKeyUsage: 'serverAuth' });
    expect(() => check.serialNumberOf(der, expectedRequest)).toThrow(
      /extended key usage must be .*extendedKeyUsage must be/,
    );
    const namedLeaf = createLeaf({}, '/CN=cart');
    expect(() => namedLeaf.check.serialNumberOf(namedLeaf.der, namedLeaf.request)).toThrow(/subject is not empty/);
  });

  const issuerDiffers = /issuer differs$/;

  it.each([
    ['a subjectAltName that is not critical', { subjectAltName: `URI:${uri}` }, /subjectAltName must be critical/],
    ['a keyUsage that is not critical', { keyUsage: 'digitalSignature' }, /keyUsage must be critical/],
    [
      'a keyUsage that no leaf may have',
      { keyUsage: 'critical,digitalSignature,cRLSign' },
      /keyUsage must be without cRLSign/,
    ],
  ])('is checked in the first leaf of each key type: %s', (_, changes, reason) => {
    const { der, request: expectedRequest, check } = createLeaf(changes);
    expect(() => check.serialNumberOf(der, expectedRequest)).toThrow(reason);
    // Every leaf is parsed completely until one is valid.
    expect(() => check.serialNumberOf(der, expectedRequest)).toThrow(reason);
    // This leaf is valid, except that a leaf cannot be its own issuer.
    const { der: fine, request: sameRequest, check: other } = createLeaf({});
    expect(() => other.serialNumberOf(fine, sameRequest)).toThrow(issuerDiffers);
  });
});
