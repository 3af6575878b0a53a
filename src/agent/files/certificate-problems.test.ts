import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { describeCertificates, inspectCertificates } from './certificate-problems.ts';

const authority = createAuthority();
const one = authority.issue(['one.example']);
const other = authority.issue(['other.example']);

const encrypted = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
  .toString();

/** Changes a letter in the middle. */
const corrupt = (pem: string): string => {
  const middle = pem.length / 2;
  return `${pem.slice(0, middle)}!${pem.slice(middle + 1)}`;
};

const inspected = (files: Record<string, string>) =>
  inspectCertificates(new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)]))).problems;
/** Problems such as `tls.key: PRIVATE_KEY_MISMATCH`. */
const problemsOf = (files: Record<string, string>): string[] =>
  inspected(files).map(({ path, code, got }) => [path, code, ...(got === undefined ? [] : [`got ${got}`])].join(' '));

test('accepts a certificate, its key and a root under both naming schemes', () => {
  expect(
    problemsOf({ 'tls.crt': one.certificate, 'tls.key': one.privateKey, 'ca.crt': authority.certificate }),
  ).toEqual([]);
  expect(problemsOf({ 'cert-chain.pem': one.certificate, 'key.pem': one.privateKey })).toEqual([]);
  expect(problemsOf({ 'root-cert.pem': authority.certificate })).toEqual([]);
  expect(problemsOf({})).toEqual([]);
});

test.each([
  [
    'garbage',
    { 'tls.crt': 'garbage', 'tls.key': one.privateKey },
    'tls.crt PEM_INVALID',
    /: no PEM certificate or private key found$/,
  ],
  [
    'a half-written certificate',
    { 'tls.crt': one.certificate.slice(0, 200), 'tls.key': one.privateKey },
    'tls.crt PEM_INVALID',
    /block 1 \(CERTIFICATE\) is not terminated/,
  ],
  [
    'a half-written key',
    { 'tls.crt': one.certificate, 'tls.key': one.privateKey.slice(0, 60) },
    'tls.key PEM_INVALID',
    /block 1 \(PRIVATE KEY\) is not terminated/,
  ],
  [
    'a certificate without its key',
    { 'tls.crt': one.certificate },
    'tls.key PRIVATE_KEY_INVALID',
    /missing beside tls\.crt/,
  ],
  [
    'a key without its certificate',
    { 'key.pem': one.privateKey },
    'cert-chain.pem CERTIFICATE_MISSING',
    /beside key\.pem/,
  ],
  [
    'the key of another certificate',
    { 'tls.crt': one.certificate, 'tls.key': other.privateKey },
    'tls.key PRIVATE_KEY_MISMATCH',
    /private key of tls\.crt$/,
  ],
  [
    'a private key where the certificate should be',
    { 'tls.crt': one.privateKey, 'tls.key': one.privateKey },
    'tls.crt CERTIFICATE_MISSING got a private key',
    /must contain a certificate/,
  ],
  [
    'a certificate where the key should be',
    { 'tls.crt': one.certificate, 'tls.key': one.certificate },
    'tls.key PRIVATE_KEY_INVALID got a certificate',
    /must contain a private key/,
  ],
  [
    'a broken second block',
    { 'tls.crt': one.certificate + corrupt(authority.certificate), 'tls.key': one.privateKey },
    'tls.crt CERTIFICATE_INVALID',
    /block 2 \(CERTIFICATE\)/,
  ],
  [
    'a chain in wrong order',
    { 'tls.crt': authority.certificate + one.certificate, 'tls.key': one.privateKey },
    'tls.key PRIVATE_KEY_MISMATCH',
    /private key of tls\.crt but of the certificate in block 2, which must come first$/,
  ],
  ['an empty file', { 'tls.crt': '', 'tls.key': one.privateKey }, 'tls.crt PEM_INVALID', /empty/],
  ['NUL bytes', { 'ca.crt': '\0'.repeat(100) }, 'ca.crt PEM_INVALID', /: no PEM certificate or private key found$/],
  ['DER', { 'ca.crt': '\x30\x42\x01' }, 'ca.crt PEM_INVALID', /the file is DER/],
  [
    'an encrypted key',
    { 'tls.crt': one.certificate, 'tls.key': encrypted },
    'tls.key PRIVATE_KEY_INVALID',
    /block 1 \(ENCRYPTED PRIVATE KEY\) is encrypted/,
  ],
])('reports the file with a problem: %s', (_, files, problem, reason) => {
  expect(problemsOf(files)).toEqual([problem]);
  expect(inspected(files)[0]?.message).toMatch(reason);
  // Messages contain no part of a key.
  expect(JSON.stringify(inspected(files))).not.toContain(one.privateKey.split('\n')[1]!.slice(0, 20));
});

test('reports swapped certificate and key separately', () => {
  expect(problemsOf({ 'tls.crt': one.privateKey, 'tls.key': one.certificate })).toEqual([
    'tls.crt CERTIFICATE_MISSING got a private key',
    'tls.key PRIVATE_KEY_INVALID got a certificate',
  ]);
  expect(inspected({ 'tls.crt': one.certificate, 'tls.key': other.privateKey })[0]?.message).toBe(
    'tls.key is not the private key of tls.crt',
  );
});

test('ignores other PEM blocks and text between blocks', () => {
  const parameters = '-----BEGIN DH PARAMETERS-----\nMEYCQQ==\n-----END DH PARAMETERS-----\n';
  const chain = `Bag Attributes\n${one.certificate}some words\n${authority.certificate}`;
  expect(problemsOf({ 'dhparam.pem': parameters, 'tls.crt': chain, 'tls.key': one.privateKey })).toEqual([]);
});

test('has Envoy validate each key with its certificate regardless of file names, and other certificates as roots', () => {
  const files = {
    'server.pem': other.certificate + other.privateKey,
    'tls.crt': one.certificate,
    'tls.key': one.privateKey,
    'ca.crt': authority.certificate,
    'lonely.key': createAuthority().privateKey,
  };
  const contents = new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)]));
  expect(inspectCertificates(contents).sets).toEqual([
    { certificate: 'server.pem', key: 'server.pem' },
    { certificate: 'tls.crt', key: 'tls.key' },
    { roots: 'ca.crt' },
  ]);
});

test('describes the keys of a chain without revealing them', () => {
  const rsa = authority.issue(['rsa'], generateKeyPairSync('rsa', { modulusLength: 1024 }));
  expect(describeCertificates(Buffer.from(rsa.certificate + one.certificate))).toBe(
    'block 1: RSA 1024 bits, block 2: EC prime256v1',
  );
});
