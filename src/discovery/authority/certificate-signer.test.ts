import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { readCertificate } from '../../identity/certificate.ts';
import { makeRequest } from '../../identity/certificate-request.ts';
import { issueRoot } from '../../identity/issue.ts';
import { materialOf } from './authority-material.ts';
import { CertificateSigner } from './certificate-signer.ts';

const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
const signer = new CertificateSigner();
afterEach(() => signer.close());

/** proc(5): the 19th field, of which the second may have spaces. */
const nicenessOf = (task: string): number =>
  Number(readFileSync(`/proc/self/task/${task}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[16]);

function threads(niceness: number): number {
  return readdirSync('/proc/self/task').filter((task) => nicenessOf(task) === niceness).length;
}

test('what signs gives way to the rest of the program, and nothing else does', async () => {
  const usual = nicenessOf(String(process.pid));
  const before = threads(usual + 10);
  const privateKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const certificate = readCertificate(issueRoot(privateKey, { organization: 'o', commonName: 'root' }, life));
  signer.use(materialOf({ certificate, privateKey }, [], [certificate], new Date()));
  const uri = 'spiffe://cluster.local/ns/shop/sa/cart';
  const order = { request: makeRequest(privateKey, []), uri, ...life, endsAt: 0, client: 'one' };
  const answer = await signer.sign(order);
  expect(answer).toMatchObject({ leaf: expect.stringContaining('CERTIFICATE') });
  expect(threads(usual + 10)).toBe(before + 1);
  expect(nicenessOf(String(process.pid))).toBe(usual);
});
