import { expect, test } from 'vitest';
import { createAuthority } from '../../test/certs/authority.ts';
import { certificateProblems } from './certificate-problems.ts';

const authority = createAuthority();
const one = authority.issue(['one.example']);
const other = authority.issue(['other.example']);

const problemsOf = (files: Record<string, string>): string[] =>
  certificateProblems(new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])));

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
    'tls.crt: cannot be read as PEM',
  ],
  [
    'a half-written key',
    { 'tls.crt': one.certificate, 'tls.key': one.privateKey.slice(0, 60) },
    'tls.key: cannot be read as PEM',
  ],
  ['a certificate without its key', { 'tls.crt': one.certificate }, 'tls.crt is there without tls.key'],
  ['a key without its certificate', { 'key.pem': one.privateKey }, 'key.pem is there without cert-chain.pem'],
  [
    'the key of another certificate',
    { 'tls.crt': one.certificate, 'tls.key': other.privateKey },
    'tls.key is not the key of tls.crt',
  ],
])('%s is told with its file', (_, files, problem) => {
  const problems = problemsOf(files);
  expect(problems).toEqual([expect.stringContaining(problem)]);
  // Not a word of what a key holds.
  expect(problems.join()).not.toContain(one.privateKey.split('\n')[1]!.slice(0, 20));
});
