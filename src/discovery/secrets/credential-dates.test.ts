import { generateKeyPairSync } from 'node:crypto';
import { expect, it } from 'vitest';
import { givenMesh } from '../../../test/fixtures/given-mesh.ts';
import { readCertificate } from '../../identity/certificate.ts';
import { issueRevocationList, issueRoot } from '../../identity/issue.ts';
import type { Config } from '../../model/config/config.ts';
import type { Secret } from '../../model/kinds/kubernetes/secret.ts';
import { CredentialIndex } from '../../model/push-context/credential-index.ts';
import { compareDates } from './credential-dates.effects.ts';

const now = new Date(Math.floor(Date.now() / 1000) * 1000);
const minutes = (count: number): Date => new Date(now.getTime() + count * 60_000);
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const life = { notBefore: minutes(-60), notAfter: minutes(6_000) };
const certificate = readCertificate(issueRoot(privateKey, { organization: 'test', commonName: 'root' }, life));

function secret(name: string, from: number, to: number): Config<Secret> {
  const dates = { thisUpdate: minutes(from), nextUpdate: minutes(to) };
  const crl = issueRevocationList({ privateKey, certificate }, { number: 1, revoked: [], ...dates });
  const stringData = { 'ca.crt': certificate.pem, 'ca.crl': crl };
  return { kind: 'Secret', namespace: 'shop', name, spec: { data: {}, stringData } } as unknown as Config<Secret>;
}

it('a Secret is checked again when one of its revocation lists becomes valid or expires', () => {
  const secrets = [secret('later', 5, 60), secret('expiring', -5, 10), secret('lasting', -5, 600)];
  const objects = { Secret: secrets, ConfigMap: [] };
  const index = new CredentialIndex(objects, undefined, now);
  const isUsable = (of: CredentialIndex) => secrets.map((one) => of.revocationLists(one)!.usable.length > 0);
  expect(isUsable(index)).toEqual([false, true, true]);
  expect(compareDates(index, now)).toEqual({ due: [], nextInMs: 5 * 60_000 });
  expect(compareDates(index, minutes(5))).toEqual({ due: ['Secret/shop/later'], nextInMs: 5 * 60_000 });
  const valid = new CredentialIndex(objects, index, minutes(5));
  expect(isUsable(valid)).toEqual([true, true, true]);
  expect(compareDates(valid, minutes(5))).toEqual({ due: [], nextInMs: 5 * 60_000 });
  expect(compareDates(valid, minutes(10)).due).toEqual(['Secret/shop/expiring']);
  const expired = new CredentialIndex(objects, valid, minutes(10));
  expect(isUsable(expired)).toEqual([true, false, true]);
  expect(compareDates(expired, minutes(10))).toEqual({ due: [], nextInMs: 50 * 60_000 });
  const [problem] = expired.revocationLists(secrets[1]!)!.problems;
  expect(problem).toMatchObject({ code: 'REVOCATION_LIST_EXPIRED', message: expect.stringContaining('expired on') });
  // The result is unchanged until the next date.
  expect(expired.revocationLists(secrets[2]!)).toBe(index.revocationLists(secrets[2]!));
});

it('no Secret is due before the first push context or without revocation lists', () => {
  expect(compareDates(undefined, now)).toEqual({ due: [], nextInMs: null });
  expect(compareDates(givenMesh('').context.credentials, now)).toEqual({ due: [], nextInMs: null });
});
