/** Validates certificates with the real Envoy. */
import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { envoyBinary, temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { parentDeathGuard } from '../envoy/parent-death.ts';
import type { CertificateSet } from './certificate-problems.ts';
import { certificateValidator, type ValidatedSet } from './certificate-validation.ts';

const authority = createAuthority();
let guard: readonly string[];

beforeAll(async () => {
  guard = await parentDeathGuard();
});

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

function pair(directory: string, name: string, keys?: KeyPairKeyObjectResult): CertificateSet {
  const issuedPair = authority.issue([name], keys);
  const set = { certificate: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) };
  writeFileSync(set.certificate, issuedPair.certificate);
  writeFileSync(set.key, issuedPair.privateKey);
  return set;
}

const validateSets = (
  sets: readonly CertificateSet[],
  binary = envoyBinary(),
  limitMs = 30_000,
): Promise<ValidatedSet[]> => certificateValidator({ binary, guard, limitMs })(sets, new AbortController().signal);

test.each<[string, KeyPairKeyObjectResult]>([
  ['P-256', generateKeyPairSync('ec', { namedCurve: 'P-256' })],
  ['P-384', generateKeyPairSync('ec', { namedCurve: 'P-384' })],
  ['RSA 2048', generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ['Ed25519', generateKeyPairSync('ed25519')],
])('accepts a certificate with a key of type %s', async (_, keys) => {
  expect(await validateSets([pair(folder(), 'one', keys)])).toEqual([]);
});

test.each<[string, KeyPairKeyObjectResult]>([
  ['RSA of 1024 bits', generateKeyPairSync('rsa', { modulusLength: 1024 })],
  ['P-224', generateKeyPairSync('ec', { namedCurve: 'P-224' })],
  ['secp256k1', generateKeyPairSync('ec', { namedCurve: 'secp256k1' })],
])('rejects a certificate with a key of type %s, and names the file', async (_, keys) => {
  const set = pair(folder(), 'one', keys) as { certificate: string };
  expect(await validateSets([set as CertificateSet])).toEqual([
    { set, result: { is: 'refused', why: expect.stringContaining(set.certificate) } },
  ]);
});

test('reports each rejected set if there are several', async () => {
  const directory = folder();
  const p224 = generateKeyPairSync('ec', { namedCurve: 'P-224' });
  const roots = join(directory, 'roots.pem');
  writeFileSync(roots, '-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n');
  const sets = [pair(directory, 'good'), pair(directory, 'bad', p224), { roots }];
  const validatedSets = await validateSets(sets);
  expect(validatedSets.map(({ set }) => set)).toEqual([sets[1], sets[2]]);
  expect(validatedSets[1]!.result.why).toContain(`Failed to load trusted CA certificates from ${roots}`);
});

test('returns no result if Envoy hangs, exits or is missing', async () => {
  const directory = folder();
  const set = pair(directory, 'good');
  const script = (name: string, line: string): string => {
    const path = join(directory, name);
    writeFileSync(path, `#!/bin/sh\n${line}\n`, { mode: 0o700 });
    return path;
  };
  const whys = [
    await validateSets([set], script('hangs', 'exec sleep 1000'), 300),
    await validateSets([set], script('dies', 'kill -11 $$')),
    await validateSets([set], join(directory, 'missing')),
  ].map(([validatedSet]) => validatedSet!.result);
  expect(whys).toEqual([
    { is: 'not known', why: 'envoy --mode validate did not finish within 300 ms' },
    { is: 'not known', why: expect.stringContaining('SIGSEGV') },
    { is: 'not known', why: expect.anything() },
  ]);
});
