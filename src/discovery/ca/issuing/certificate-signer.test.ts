import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readCertificate } from '../../../identity/certificate.ts';
import { createRequest } from '../../../identity/certificate-request.ts';
import { issueRoot } from '../../../identity/issue.ts';
import { type AuthorityMaterial, buildAuthorityMaterial } from '../authority-material.ts';
import { CertificateSigner } from './certificate-signer.ts';

const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
let signer: CertificateSigner;
beforeEach(() => {
  signer = new CertificateSigner();
});
afterEach(() => signer.close());

function createMaterial(): AuthorityMaterial {
  const certificate = readCertificate(issueRoot(key, { organization: 'o', commonName: 'root' }, life));
  return buildAuthorityMaterial({ certificate, privateKey: key }, [], [certificate], new Date());
}

/** Niceness is field 19 (proc(5)). Field 2 may contain spaces. */
const nicenessOf = (task: string): number =>
  Number(readFileSync(`/proc/self/task/${task}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[16]);

function threads(niceness: number): number {
  return readdirSync('/proc/self/task').filter((task) => nicenessOf(task) === niceness).length;
}

test('CertificateSigner lowers the priority of its own threads only', async () => {
  const usualNiceness = nicenessOf(String(process.pid));
  const usualThreads = threads(usualNiceness + 10);
  signer.useAuthority(createMaterial());
  const uri = 'spiffe://cluster.local/ns/shop/sa/cart';
  const order = { request: createRequest(key, []), uri, ...life, endsAt: 0, client: 'one' };
  const result = await signer.sign(order);
  expect(result).toMatchObject({ leaf: expect.stringContaining('CERTIFICATE') });
  expect(threads(usualNiceness + 10)).toBe(usualThreads + 1);
  expect(nicenessOf(String(process.pid))).toBe(usualNiceness);
});

test("CertificateSigner delays a certificate during another account's RSA-4096 flood only by the requests in progress", async () => {
  signer.useAuthority(createMaterial());
  const flood = generateKeyPairSync('rsa', { modulusLength: 4_096 }).privateKey;
  const request = createRequest(flood, []);
  const settledNames: string[] = [];
  const mallory = { request, uri: 'spiffe://cluster.local/ns/mallory/sa/one', ...life, endsAt: 0 };
  const flooding = Array.from({ length: 40 }, (_, connection) =>
    Array.from({ length: 16 }, () =>
      signer.sign({ ...mallory, client: `connection ${connection}` }).then(() => settledNames.push('mallory')),
    ),
  );
  const bank = { request: createRequest(key, []), uri: 'spiffe://cluster.local/ns/bank/sa/pay', ...life };
  const result = await signer.sign({ ...bank, endsAt: Date.now() + 3_600_000, client: 'bank' });
  expect(result).toMatchObject({ leaf: expect.stringContaining('CERTIFICATE') });
  // Two threads process two requests each, and the flooding namespace may have one more.
  expect(settledNames.length).toBeLessThanOrEqual(5);
  signer.close();
  await Promise.all(flooding.flat());
});

test("CertificateSigner sends a CSR to an external signer only if the CSR contains no names other than the caller's", async () => {
  const uri = 'spiffe://cluster.local/ns/shop/sa/cart';
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey;
  const caller = { uri, endsAt: 0, client: 'one' };
  const verified = await signer.verify({ requestToVerify: createRequest(rsa, [uri]), ...caller });
  expect('key' in verified && verified.key.equals(createPublicKey(rsa))).toBe(true);
  const invalidRequests = [
    createRequest(rsa, []),
    createRequest(rsa, [uri, `${uri}x`]),
    createRequest(rsa, [uri]).replace(/[A-Z]{4}/, 'AAAA'),
  ];
  for (const requestToVerify of [...invalidRequests, 'nothing']) {
    expect(await signer.verify({ requestToVerify, ...caller })).toHaveProperty('refused');
  }
});
