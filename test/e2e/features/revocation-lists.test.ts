/** CRLs of a MUTUAL server in a real Envoy: an unusable list does not block clients that the last usable one accepts. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readCertificate } from '../../../src/identity/certificate.ts';
import {
  type Issuer,
  issueIntermediate,
  issueLeaf,
  issueRevocationList,
  issueRoot,
} from '../../../src/identity/issue.ts';
import { eventually } from '../../harness/eventually.ts';
import { sized } from '../../harness/size-of-run.ts';
import type { HttpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { joinDocuments, routedHost, secret } from './harness/gateway-objects.ts';
import { destinationRule, gateway, serviceEntry } from './harness/objects.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: { edge: { type: 'router', labels: { istio: 'edge' } } },
    env: { PILOT_SECRETS_ON_PLAINTEXT: 'true' },
  });
});

afterAll(() => mesh?.stop());

const now = new Date(Math.floor(Date.now() / 1000) * 1000);
const hours = (count: number): Date => new Date(now.getTime() + count * 3_600_000);
const life = { notBefore: hours(-2), notAfter: hours(1_000) };

function rootOf(commonName: string): Issuer {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    privateKey,
    certificate: readCertificate(issueRoot(privateKey, { organization: 'test', commonName }, life)),
  };
}

function intermediateOf(issuer: Issuer): Issuer {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const der = issueIntermediate(issuer, publicKey, { organization: 'test', commonName: 'intermediate' }, life);
  return { privateKey, certificate: readCertificate(der) };
}

function clientOf(issuer: Issuer): { cert: string; key: string; serialNumber: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const leaf = readCertificate(issueLeaf(issuer, publicKey, { uris: [], dns: ['client.test'], ips: [] }, life));
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  return { cert: leaf.pem, key, serialNumber: leaf.serialNumber };
}

function listOf(issuer: Issuer, revokedSerials: readonly string[] = [], to = hours(900), from = hours(-1.5)): string {
  const entries = revokedSerials.map((serialNumber) => ({ serialNumber, at: hours(-1) }));
  return issueRevocationList(issuer, { number: 1, thisUpdate: from, nextUpdate: to, revoked: entries });
}

const root = rootOf('root one');
const intermediate = intermediateOf(root);
const authorities = `${intermediate.certificate.pem}${root.certificate.pem}`;
const [validClient, revokedClient, laterRevoked] = [
  clientOf(intermediate),
  clientOf(intermediate),
  clientOf(intermediate),
];
const usable = `${listOf(root)}${listOf(intermediate, [revokedClient.serialNumber])}`;

describe('revocation lists of a MUTUAL server', () => {
  let port: number;
  let backend: HttpBackend;
  let name = 'web';
  const apply = async (crl: string | undefined, ca = authorities): Promise<void> => {
    const roots = { 'ca.crt': ca, ...(crl !== undefined && { 'ca.crl': crl }) };
    const tls = { mode: 'MUTUAL', credentialName: name };
    const objects = [
      gateway('front', { istio: 'edge' }, [{ port, protocol: 'HTTPS', hosts: ['web.test'], tls }]),
      routedHost('web.test', backend, ['front']),
      secret(name, mesh.authority.issue(['web.test']), roots),
    ];
    await mesh.apply(joinDocuments(...objects));
  };
  const outcomeWith = async ({ cert, key }: { cert: string; key: string }): Promise<string> => {
    const tls = { servername: 'web.test', ca: mesh.authority.certificate, cert, key };
    return mesh.request('edge', { port, host: 'web.test', tls }).then(
      ({ status }) => `${status}`,
      () => 'refused',
    );
  };

  test.each([
    ['text', 'garbage', /ca\.crl: no PEM block/],
    ['an empty entry', '', /ca\.crl: no PEM block/],
    ['a certificate', root.certificate.pem, /must be .*X509 CRL/],
    ['the list of another authority', listOf(rootOf('another')), /is not issued by any of the CA certificates/],
    ['an expired list', `${listOf(root)}${listOf(intermediate, [], hours(-1))}`, /expired on/],
    [
      'the root’s list without the intermediate’s',
      listOf(root),
      /no usable certificate revocation list of CN=intermediate/,
    ],
  ])('keep the last usable list in use if they become %s', async (_, unusableList, reportedText) => {
    [port, backend] = [await mesh.port(), await mesh.http('web')];
    await apply(usable);
    expect([await outcomeWith(validClient), await outcomeWith(revokedClient)]).toEqual(['200', 'refused']);
    await apply(unusableList);
    expect([await outcomeWith(validClient), await outcomeWith(revokedClient)]).toEqual(['200', 'refused']);
    expect(await mesh.page('/debug/push_status')).toMatch(reportedText);
    expect(await mesh.page('/metrics')).toMatch(/^pilot_revocation_list_problems 1$/m);
    await apply(`${listOf(root)}${listOf(intermediate, [laterRevoked.serialNumber])}`);
    expect([await outcomeWith(revokedClient), await outcomeWith(laterRevoked)]).toEqual(['200', 'refused']);
  });

  test.runIf(sized({ short: false, full: true }))(
    'apply from their start date on if they are not valid yet, without a change of the Secret',
    async () => {
      [port, backend] = [await mesh.port(), await mesh.http('web')];
      name = 'later';
      await apply(usable);
      expect([await outcomeWith(validClient), await outcomeWith(revokedClient)]).toEqual(['200', 'refused']);
      const from = new Date(Math.ceil(Date.now() / 1000 + 15) * 1000);
      await apply(usable + listOf(intermediate, [laterRevoked.serialNumber], hours(900), from));
      expect(await outcomeWith(laterRevoked)).toBe('200');
      await eventually('the newer list is used', async () => (await outcomeWith(laterRevoked)) === 'refused');
      expect(Date.now()).toBeGreaterThanOrEqual(from.getTime());
      name = 'web';
    },
  );

  test.each([
    ['text', 'garbage'],
    ['the root’s list without the intermediate’s', listOf(root)],
  ])(
    'reject every client if they were never usable, but do not change an existing permission: %s',
    async (kind, unusableList) => {
      [port, backend] = [await mesh.port(), await mesh.http('web')];
      name = `never-${kind.length}`;
      await apply(unusableList);
      expect([await outcomeWith(validClient), await outcomeWith(revokedClient)]).toEqual(['refused', 'refused']);
      await apply(undefined);
      expect(await outcomeWith(validClient)).toBe('200');
      await apply(unusableList);
      expect(await outcomeWith(validClient)).toBe('200');
      await apply(usable);
      expect([await outcomeWith(validClient), await outcomeWith(revokedClient)]).toEqual(['200', 'refused']);
    },
  );

  test('reject every client if they are only of an intermediate authority, as in Envoy', async () => {
    [port, backend] = [await mesh.port(), await mesh.http('web')];
    name = 'intermediate';
    await apply(listOf(intermediate), intermediate.certificate.pem);
    expect(await outcomeWith(validClient)).toBe('refused');
    expect(await mesh.page('/debug/push_status')).toContain('issuer of CA certificate CN=intermediate is missing');
  });
});

async function clientMesh(): Promise<FeatureMesh & AsyncDisposable> {
  const startedMesh = await FeatureMesh.start({
    proxies: { web: { labels: { app: 'web' } } },
    env: { PILOT_SECRETS_ON_PLAINTEXT: 'true' },
  });
  return Object.assign(startedMesh, { [Symbol.asyncDispose]: () => startedMesh.stop() });
}

test('caCrl with credentialName in a DestinationRule rejects a revoked server, and a list in the Secret has precedence', async () => {
  // A sidecar would bind service ports that the gateway's tests need.
  await using mesh = await clientMesh();
  const host = 'cart.test';
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const leaf = readCertificate(issueLeaf(root, publicKey, { uris: [], dns: [host], ips: [] }, life));
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  const cart = await mesh.http('cart', { tls: { cert: leaf.pem, key } });
  const port = await mesh.port();
  const status = async (file: string | undefined, inSecret?: string): Promise<number> => {
    const caCrl = file === undefined ? {} : { caCrl: mesh.file(`${file.length}.crl`, file) };
    const tls = {
      mode: 'SIMPLE',
      credentialName: `server-${inSecret?.length ?? 0}-${file?.length ?? 0}`,
      sni: host,
      ...caCrl,
    };
    const roots = { 'ca.crt': root.certificate.pem, ...(inSecret !== undefined && { 'ca.crl': inSecret }) };
    await mesh.apply(
      joinDocuments(
        serviceEntry(host, { port, backends: [cart] }),
        destinationRule(host, { workloadSelector: { matchLabels: { app: 'web' } }, trafficPolicy: { tls } }),
        secret(tls.credentialName, mesh.authority.issue([host]), roots),
      ),
    );
    return (await mesh.request('web', { port, host })).status;
  };
  expect(await status(undefined)).toBe(200);
  expect(await status(listOf(root))).toBe(200);
  expect(await status(listOf(root, [leaf.serialNumber]))).toBe(503);
  expect(await status(listOf(root, [leaf.serialNumber]), listOf(root))).toBe(200);
});
