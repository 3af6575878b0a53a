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

/** With another letter in the middle. */
const broken = (pem: string): string => {
  const middle = pem.length / 2;
  return `${pem.slice(0, middle)}!${pem.slice(middle + 1)}`;
};

const problemsOf = (files: Record<string, string>): string[] =>
  inspectCertificates(new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)]))).problems;

test('a certificate, its key and a root are fine, under either pair of names', () => {
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
    'tls.crt: holds neither a certificate nor a private key',
  ],
  [
    'a half-written certificate',
    { 'tls.crt': one.certificate.slice(0, 200), 'tls.key': one.privateKey },
    'tls.crt: block 1 (CERTIFICATE) cannot be read as PEM: it has no end',
  ],
  [
    'a half-written key',
    { 'tls.crt': one.certificate, 'tls.key': one.privateKey.slice(0, 60) },
    'tls.key: block 1 (PRIVATE KEY) cannot be read as PEM: it has no end',
  ],
  ['a certificate without its key', { 'tls.crt': one.certificate }, 'tls.crt is there without tls.key'],
  ['a key without its certificate', { 'key.pem': one.privateKey }, 'key.pem is there without cert-chain.pem'],
  [
    'the key of another certificate',
    { 'tls.crt': one.certificate, 'tls.key': other.privateKey },
    'tls.key is not the key of tls.crt',
  ],
  [
    'a private key where the certificate should be',
    { 'tls.crt': one.privateKey, 'tls.key': one.privateKey },
    'tls.crt holds a private key, not a certificate',
  ],
  [
    'a certificate where the key should be',
    { 'tls.crt': one.certificate, 'tls.key': one.certificate },
    'tls.key holds a certificate, not a private key',
  ],
  [
    'a broken second block',
    { 'tls.crt': one.certificate + broken(authority.certificate), 'tls.key': one.privateKey },
    'tls.crt: block 2 (CERTIFICATE) cannot be read as PEM',
  ],
  [
    'a chain in wrong order',
    { 'tls.crt': authority.certificate + one.certificate, 'tls.key': one.privateKey },
    'tls.key is not the key of tls.crt: it is the key of block 2, which should be the first',
  ],
  ['an empty file', { 'tls.crt': '', 'tls.key': one.privateKey }, 'tls.crt: is empty'],
  ['NUL bytes', { 'ca.crt': '\0'.repeat(100) }, 'ca.crt: holds neither a certificate nor a private key'],
  ['DER', { 'ca.crt': '\x30\x42\x01' }, 'ca.crt: holds neither a certificate nor a private key in PEM; is it DER?'],
  [
    'an encrypted key',
    { 'tls.crt': one.certificate, 'tls.key': encrypted },
    'tls.key: block 1 (ENCRYPTED PRIVATE KEY) is encrypted: Envoy has no passphrase for it',
  ],
])('%s is told with its file', (_, files, problem) => {
  const problems = problemsOf(files);
  expect(problems).toEqual([expect.stringContaining(problem)]);
  // Not a word of what a key holds.
  expect(problems.join()).not.toContain(one.privateKey.split('\n')[1]!.slice(0, 20));
});

test('both in each other’s place are told one by one', () => {
  expect(problemsOf({ 'tls.crt': one.privateKey, 'tls.key': one.certificate })).toEqual([
    'tls.crt holds a private key, not a certificate',
    'tls.key holds a certificate, not a private key',
  ]);
});

test('PEM that is neither certificate nor key, and words between blocks, are nobody’s mistake', () => {
  const parameters = '-----BEGIN DH PARAMETERS-----\nMEYCQQ==\n-----END DH PARAMETERS-----\n';
  const chain = `Bag Attributes\n${one.certificate}some words\n${authority.certificate}`;
  expect(problemsOf({ 'dhparam.pem': parameters, 'tls.crt': chain, 'tls.key': one.privateKey })).toEqual([]);
});

test('what Envoy is to be asked about: each key with its certificate, whatever their names, and what is left as roots', () => {
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

test('the keys of a chain are described, not shown', () => {
  const rsa = authority.issue(['rsa'], generateKeyPairSync('rsa', { modulusLength: 1024 }));
  expect(describeCertificates(Buffer.from(rsa.certificate + one.certificate))).toBe(
    'block 1: RSA 1024 bits, block 2: EC prime256v1',
  );
});
