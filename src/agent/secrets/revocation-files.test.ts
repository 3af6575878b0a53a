/** Tests authorities with revocation lists in files, as received by Envoy. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/harness/eventually.ts';
import { givenSecrets, secretsOf, stopSecrets } from '../../../test/harness/given-secrets.ts';
import { readCertificate } from '../../identity/certificate.ts';
import { type Issuer, issueRevocationList, issueRoot } from '../../identity/issue.ts';
import { SecretCounts } from './secret-counts.ts';
import { SecretVault } from './secret-vault.ts';

const now = new Date(Math.floor(Date.now() / 1000) * 1000);
const hours = (count: number): Date => new Date(now.getTime() + count * 3_600_000);

function rootOf(commonName: string): Issuer {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const life = { notBefore: hours(-2), notAfter: hours(10_000) };
  return {
    privateKey,
    certificate: readCertificate(issueRoot(privateKey, { organization: 'test', commonName }, life)),
  };
}

function listOf(issuer: Issuer, number = 1, from = hours(-1), to = hours(1_000)): string {
  return issueRevocationList(issuer, { number, thisUpdate: from, nextUpdate: to, revoked: [] });
}

const root = rootOf('root');
const other = rootOf('other');
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'crl-'));
  mkdirSync(join(directory, 'ca'));
  write('ca/ca.pem', root.certificate.pem);
});

afterEach(async () => {
  await stopSecrets();
  rmSync(directory, { recursive: true });
});

function write(file: string, content: string): void {
  mkdirSync(join(directory, file, '..'), { recursive: true });
  writeFileSync(join(directory, `${file}.new`), content);
  renameSync(join(directory, `${file}.new`), join(directory, file));
}

async function start(at: () => number = Date.now) {
  const vault = new SecretVault();
  const counts = new SecretCounts(vault, at);
  const { identity } = secretsOf({ env: {} });
  const settings = {
    ...identity.settings,
    source: 'files' as const,
    reason: 'mounted',
    socket: join(directory, 'uds/socket'),
    certificateDirectory: join(directory, 'own'),
    rootDirectory: join(directory, 'own'),
  };
  const secrets = await givenSecrets({ identity: { ...identity, settings }, env: {}, vault, counts, now: at });
  const name = `file-root-crl:${directory}/ca/ca.pem~${directory}/crl/ca.crl`;
  const envoy = await secrets.client();
  envoy.request(name);
  const unavailableEvents = () => secrets.events('secret.unavailable').filter((event) => event.name === name);
  return { envoy, name, counts, lacking: unavailableEvents };
}

describe('authorities with revocation lists', () => {
  test('are sent as one secret that is updated when the lists change', async () => {
    write('crl/ca.crl', listOf(root));
    const { envoy, name, counts } = await start();
    const first = await envoy.next();
    expect(first).toMatchObject({ name, roots: root.certificate.pem, crl: expect.stringContaining('X509 CRL') });
    expect(counts.text()).toMatch(
      /istio_agent_revocation_list_expiry_seconds\{resource_name="file-root-crl:.*"\} 35\d{5}\n/,
    );
    envoy.acknowledge(first, name);
    write('crl/ca.crl', listOf(root, 2));
    expect((await envoy.next(2)).crl).not.toBe(first.crl);
  });

  test.each([
    ['text', () => 'garbage', 'REVOCATION_LIST_INVALID', /no PEM block "X509 CRL" found/],
    ['an empty file', () => '', 'REVOCATION_LIST_INVALID', /no PEM block "X509 CRL" found/],
    ['a certificate', () => root.certificate.pem, 'REVOCATION_LIST_INVALID', /must be "X509 CRL", got "CERTIFICATE"/],
    ['the list of another authority', () => listOf(other), 'REVOCATION_LIST_INVALID', /not issued by any/],
    ['an expired list', () => listOf(root, 2, hours(-2), hours(-1)), 'REVOCATION_LIST_EXPIRED', /expired on/],
    [
      'a list that is not valid yet',
      () => listOf(root, 2, hours(1)),
      'REVOCATION_LIST_NOT_YET_VALID',
      /not valid before/,
    ],
  ])('keep the last usable lists if the new ones are %s, and report the reason', async (_, badLists, code, reason) => {
    write('crl/ca.crl', listOf(root));
    const { envoy, name, lacking, counts } = await start();
    const first = await envoy.next();
    envoy.acknowledge(first, name);
    write('crl/ca.crl', badLists());
    await eventually('it is reported', () => lacking().length > 0);
    expect(lacking()[0]).toMatchObject({ code, reason: expect.stringMatching(reason) });
    expect(lacking()[0]?.reason).toContain(`${directory}/crl/ca.crl: `);
    expect(counts.text()).toMatch(/num_file_secret_failures_total [1-9]/);
    write('crl/ca.crl', listOf(root, 3));
    expect((await envoy.next(2)).crl).not.toBe(first.crl);
    expect(envoy.responses.map(({ crl }) => crl)).toEqual([first.crl, envoy.responses[1]!.crl]);
  });

  test('are not sent if they were never usable', async () => {
    write('crl/ca.crl', listOf(other));
    const { envoy, lacking } = await start();
    await eventually('it is reported', () => lacking().length > 1);
    expect(envoy.responses).toEqual([]);
  });

  test('keep the previous list of an authority whose list is missing, and use new lists of others', async () => {
    write('ca/ca.pem', `${root.certificate.pem}${other.certificate.pem}`);
    write('crl/ca.crl', `${listOf(root)}${listOf(other)}`);
    const { envoy, name } = await start();
    const first = await envoy.next();
    envoy.acknowledge(first, name);
    const renewed = listOf(root, 2);
    write('crl/ca.crl', renewed);
    const { crl } = await envoy.next(2);
    expect(crl).toContain(renewed);
    expect(crl.match(/BEGIN X509 CRL/g)).toHaveLength(2);
  });

  test('are sent as soon as they become valid', async () => {
    let clock = Date.now();
    write('crl/ca.crl', listOf(root, 2, hours(1)));
    const { envoy, lacking } = await start(() => clock);
    await eventually('it is reported', () => lacking().length > 0);
    clock = hours(1.1).getTime();
    expect((await envoy.next()).crl).toContain('X509 CRL');
  });
});
