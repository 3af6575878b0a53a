import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { isLeft, isRight } from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { readCertificate } from '../../../identity/certificate.ts';
import { issueRevocationList } from '../../../identity/issue.ts';
import { credentialWarnings, serverCertificateOf, trustedRootsOf, trustedRootsOfConfigMap } from './credential.ts';
import type { Secret } from './secret.ts';

const authority = createAuthority();
const web = authority.issue(['web.test']);
const other = authority.issue(['other.test']);

function secret(stringData: Secret['stringData']): Secret {
  return { data: {}, stringData };
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe('a certificate and key', () => {
  it.each([
    ['a TLS Secret', { 'tls.crt': web.certificate, 'tls.key': web.privateKey }],
    ['a generic Secret', { cert: web.certificate, key: web.privateKey }],
    [
      'a Secret with both, by the generic names',
      { cert: web.certificate, key: web.privateKey, 'tls.crt': other.certificate, 'tls.key': other.privateKey },
    ],
    [
      'a TLS Secret with half of a generic pair',
      { cert: other.certificate, 'tls.crt': web.certificate, 'tls.key': web.privateKey },
    ],
  ])('are read from %s', (_, entries: Record<string, string>) => {
    const read = serverCertificateOf(secret(entries));
    if (isLeft(read)) throw new Error(read.left);
    expect([text(read.right.chain), text(read.right.privateKey)]).toEqual([web.certificate, web.privateKey]);
  });

  it('are read with the complete chain and OCSP response', () => {
    const chain = `${web.certificate}\n${authority.certificate}`;
    const read = serverCertificateOf(
      secret({ 'tls.crt': chain, 'tls.key': web.privateKey, 'tls.ocsp-staple': 'signed' }),
    );
    if (isLeft(read)) throw new Error(read.left);
    expect(text(read.right.chain)).toBe(chain);
    expect(text(read.right.ocspStaple!)).toBe('signed');
  });

  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  const ed25519 = generateKeyPairSync('ed25519').privateKey;
  const pem = (key: typeof rsa): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

  it.each([
    ['there are no entries', {}, 'has no entries tls.crt and tls.key (or cert and key)'],
    ['the key is missing', { 'tls.crt': web.certificate }, 'has no entries tls.crt and tls.key (or cert and key)'],
    [
      'the certificate is invalid',
      { 'tls.crt': 'x', 'tls.key': web.privateKey },
      'tls.crt and tls.key: no valid PEM certificate',
    ],
    [
      'one certificate of the chain is invalid',
      {
        'tls.crt': `${web.certificate}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----`,
        'tls.key': web.privateKey,
      },
      'tls.crt and tls.key: no valid PEM certificate',
    ],
    [
      'the key is invalid',
      { 'tls.crt': web.certificate, 'tls.key': 'x' },
      'tls.crt and tls.key: no valid PEM private key',
    ],
    [
      'the key belongs to another certificate',
      { cert: web.certificate, key: other.privateKey },
      'cert and key: the private key does not match the certificate',
    ],
    ['the key is too short', { cert: web.certificate, key: pem(rsa) }, /2048 bits/],
    ['the key has a type that Envoy does not accept', { cert: web.certificate, key: pem(ed25519) }, /RSA or ECDSA/],
  ])('are rejected without repeating their content if %s', (_, entries: Record<string, string>, reason) => {
    const read = serverCertificateOf(secret(entries));
    expect(isLeft(read) && read.left).toMatch(reason);
  });
});

describe('CA certificates', () => {
  const roots = authority.certificate;

  it.each([
    ['ca.crt', { 'ca.crt': roots }],
    ['cacert', { cacert: roots }],
    ['both entries (the generic name applies)', { cacert: roots, 'ca.crt': other.certificate }],
  ])('are read from a Secret: %s', (_, entries: Record<string, string>) => {
    const read = trustedRootsOf(secret(entries));
    expect(isRight(read) && text(read.right.certificates)).toBe(roots);
    expect(isRight(read) && read.right.crl).toBeUndefined();
  });

  it.each([
    ['ca.crt', 'ca.crl'],
    ['cacert', 'crl'],
  ])('include revocation lists in the entries %s and %s', (rootsKey, listKey) => {
    const certificate = readCertificate(new X509Certificate(roots).raw);
    const issuer = { certificate, privateKey: createPrivateKey(authority.privateKey) };
    const life = { thisUpdate: new Date(Date.now() - 60_000), nextUpdate: new Date(Date.now() + 86_400_000) };
    const list = issueRevocationList(issuer, { ...life, number: 1, revoked: [] });
    const rootsSecret = secret({ [rootsKey]: roots, [listKey]: list });
    const read = trustedRootsOf(rootsSecret);
    expect(isRight(read) && text(read.right.crl!)).toBe(list);
    expect(credentialWarnings(rootsSecret)).toEqual([
      {
        ...{ path: 'stringData', code: 'FIELD_DOUBTFUL' },
        message: expect.stringContaining(`${listKey}: certificate revocation list expires on `),
      },
    ]);
  });

  it('are not read if the revocation list of a generic Secret (`crl`) is unusable', () => {
    const secretWithList = secret({ cacert: roots, crl: 'list' });
    const read = trustedRootsOf(secretWithList);
    expect(isLeft(read) && read.left).toMatch(/^crl: no PEM block/);
  });

  it.each(['list', ''])('are not read if the revocation list is unusable: %j', (list) => {
    const secretWithList = secret({ 'ca.crt': roots, 'ca.crl': list });
    const read = trustedRootsOf(secretWithList);
    expect(isLeft(read) && read.left).toMatch(/^ca\.crl: no PEM block "X509 CRL"/);
    expect(credentialWarnings(secretWithList)).toMatchObject([
      { message: expect.stringContaining('ca.crl: no PEM block') },
    ]);
  });

  it('are read from a ConfigMap, as text or bytes', () => {
    const asText = trustedRootsOfConfigMap({ data: { 'ca.crt': roots }, binaryData: {} });
    const asBytes = trustedRootsOfConfigMap({
      data: {},
      binaryData: { cacert: Buffer.from(roots).toString('base64') },
    });
    for (const read of [asText, asBytes]) expect(isRight(read) && text(read.right.certificates)).toBe(roots);
    expect(isLeft(trustedRootsOfConfigMap({ data: { 'ca.crt': 'x' }, binaryData: {} }))).toBe(true);
  });
});

describe('a Secret that resembles a credential', () => {
  it.each([
    ['a valid credential', secret({ cert: web.certificate, key: web.privateKey, cacert: authority.certificate }), []],
    ['unrelated content', secret({ password: 'x' }), []],
    ['a key of another certificate', secret({ 'tls.crt': web.certificate, 'tls.key': other.privateKey }), ['tls.key']],
    ['two errors', secret({ cert: 'x', key: 'y', 'ca.crt': 'z' }), ['cert and key', 'ca.crt']],
  ])('is reported only if it is unusable: %s', (_, credentialSecret, expected) => {
    const warnings = credentialWarnings(credentialSecret);
    expect(warnings).toHaveLength(expected.length);
    for (const [index, expectedText] of expected.entries()) expect(warnings[index]!.message).toContain(expectedText);
  });
});
