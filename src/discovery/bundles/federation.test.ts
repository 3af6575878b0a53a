/** Fetched roots determine which identities the control plane accepts, and which roots agents receive. */

import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { proxyConfigType } from '../../../machines/discovery/xds/ads-types.ts';
import { requestCertificateChain, serverName } from '../../../test/harness/certificate-caller.ts';
import { ControlPlane, sidecar } from '../../../test/harness/control-plane.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { givenAuthority } from '../../../test/harness/given-authority.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { ProxyConfigSchema } from '../../gen/istio/mesh/v1alpha1/proxy_pb.ts';
import { readCertificate, readCertificates } from '../../identity/certificate.ts';
import { createRequest } from '../../identity/certificate-request.ts';
import { type Issuer, issueIntermediate, issueLeaf, issueRoot } from '../../identity/issue.ts';

const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const key = newKey();

function rootOf(commonName: string): Issuer {
  const privateKey = newKey();
  return {
    privateKey,
    certificate: readCertificate(issueRoot(privateKey, { organization: 'elsewhere', commonName }, life)),
  };
}

function issuedBy(issuer: Issuer): Issuer {
  const privateKey = newKey();
  const subject = { organization: 'elsewhere', commonName: 'between' };
  return {
    privateKey,
    certificate: readCertificate(issueIntermediate(issuer, createPublicKey(privateKey), subject, life)),
  };
}

const [web, addedRoot, oldRoot] = ['web', 'added', 'old'].map(rootOf) as [Issuer, Issuer, Issuer];
const bundleOf = (...roots: Issuer[]): string =>
  JSON.stringify({
    keys: roots.map(({ certificate: { der } }) => ({
      kty: 'EC',
      use: 'x509-svid',
      x5c: [Buffer.from(der).toString('base64')],
    })),
  });

/** Bundles by path. */
let bundles: Record<string, string>;
let server: Server;
let origin: string;
const authority = givenAuthority();

beforeEach(async () => {
  bundles = { '/own': bundleOf(addedRoot), '/old': bundleOf(oldRoot) };
  const serverKey = newKey();
  const names = { uris: [], dns: [], ips: ['127.0.0.1'] };
  const cert = readCertificate(issueLeaf(web, createPublicKey(serverKey), names, life)).pem;
  const options = { key: serverKey.export({ format: 'pem', type: 'pkcs8' }) as string, cert };
  server = createServer(options, ({ url = '' }, response) => {
    const text = bundles[url];
    if (text === undefined) response.writeHead(503).end();
    else response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const federated = () => ({
  trustDomainAliases: ['old.test', 'older.test'],
  caCertificates: [
    { spiffeBundleUrl: `${origin}/own` },
    { spiffeBundleUrl: `${origin}/old`, trustDomains: ['old.test'] },
  ],
});

function starting(mesh: object): ControlPlane {
  return new ControlPlane(
    { secureGRPCAddr: '127.0.0.1:0' },
    undefined,
    ({ root }) => writeFileSync(join(root, 'mesh'), JSON.stringify(mesh)),
    { SELF_SIGNED_CA_DIR: authority.directory },
    { bundleAuthorities: web.certificate.pem },
  );
}

async function startPlane(mesh: object = federated()): Promise<ControlPlane> {
  const plane = starting(mesh);
  await plane.ready();
  return plane;
}

interface Page {
  readonly bundles: readonly { readonly endpoint: string; readonly roots: number }[];
}
const waitForBundles = (plane: ControlPlane, roots: readonly number[]) =>
  eventually('the bundles are there', async () => {
    const { bundles: all } = (await plane.get('/debug/authorityz')).json() as Page;
    return JSON.stringify(all.map((one) => one.roots)) === JSON.stringify(roots);
  });

/**
 * Connects with a workload certificate that contains this URI.
 *
 * @returns the accepted identity
 */
async function acceptedIdentity(
  plane: ControlPlane,
  uri: string,
  issuer: Issuer,
  intermediate?: Issuer,
): Promise<string | undefined> {
  const names = { uris: [uri], dns: [], ips: [] };
  const leaf = readCertificate(issueLeaf(intermediate ?? issuer, createPublicKey(key), names, life)).pem;
  const keyPair = { chain: `${leaf}${intermediate?.certificate.pem ?? ''}`, key };
  const client = authority.caller.client(plane.port('ads.listening'), keyPair);
  try {
    const [first] = await requestCertificateChain(client, { csr: createRequest(key, []) });
    return readCertificates(first!)[0]!.alternativeNames?.uris[0];
  } catch {
    return undefined;
  }
}

/** Common names of the roots that agents receive. */
async function rootsOfAgents(plane: ControlPlane): Promise<(string | undefined)[]> {
  const cart = { namespace: 'shop', serviceAccount: 'cart' };
  const [leaf] = await requestCertificateChain(authority.caller.client(plane.port('ads.listening')), {
    csr: createRequest(key, []),
    bearer: await authority.caller.token(cart),
  });
  const credentials = authority.caller.channel({ chain: leaf!, key });
  const stream = plane.client(plane.port('ads.listening'), credentials, serverName).sotw();
  stream.send({ node: sidecar, typeUrl: proxyConfigType });
  const { resources } = await stream.next();
  stream.cancel();
  return resources
    .flatMap(({ value }) => fromBinary(ProxyConfigSchema, value).caCertificatesPem)
    .map((pem) => /CN=(added|old|web)/.exec(readCertificates(pem)[0]!.x509.subject)?.[1] ?? 'authority')
    .sort();
}

const cart = (trustDomain: string): string => `spiffe://${trustDomain}/ns/shop/sa/cart`;
const ownCart = cart('cluster.local');

it('each root verifies only identities of its own trust domain', async () => {
  const plane = await startPlane();
  await waitForBundles(plane, [1, 1]);
  expect(await rootsOfAgents(plane)).toEqual(['added', 'authority']);
  expect(await acceptedIdentity(plane, ownCart, addedRoot)).toBe(ownCart);
  expect(await acceptedIdentity(plane, cart('old.test'), oldRoot)).toBe(ownCart);
  // Roots of an alias must not sign for the mesh, another alias or an unknown trust domain.
  expect(await acceptedIdentity(plane, ownCart, oldRoot)).toBeUndefined();
  expect(await acceptedIdentity(plane, ownCart, oldRoot, issuedBy(oldRoot))).toBeUndefined();
  expect(await acceptedIdentity(plane, cart('older.test'), oldRoot)).toBeUndefined();
  expect(await acceptedIdentity(plane, cart('bank.test'), oldRoot)).toBeUndefined();
  // The issuer of the endpoint's certificate is not trusted for workloads.
  expect(await acceptedIdentity(plane, ownCart, web)).toBeUndefined();
  expect(plane.deviations()).toEqual([]);
});

it('the control plane starts without waiting for bundles, and rejects identities whose roots are missing', async () => {
  bundles = {};
  const plane = await startPlane();
  const logged503 = (): string[] => linesOf(plane.lines, 'trust-bundle.failed.none', { reason: /status 503/ });
  await eventually('it is reported', async () => logged503().length === 2);
  expect(await rootsOfAgents(plane)).toEqual(['authority']);
  expect(await acceptedIdentity(plane, ownCart, addedRoot)).toBeUndefined();
  expect(await acceptedIdentity(plane, cart('old.test'), oldRoot)).toBeUndefined();
});

it('clients keep working if a bundle endpoint is unreachable during a restart', async () => {
  const previous = await startPlane();
  await waitForBundles(previous, [1, 1]);
  await previous.stop();
  bundles = {};
  const plane = await startPlane();
  await waitForBundles(plane, [1, 1]);
  expect(await rootsOfAgents(plane)).toEqual(['added', 'authority']);
  expect(await acceptedIdentity(plane, cart('old.test'), oldRoot)).toBe(ownCart);
});

it('roots are distrusted without a restart when their endpoint is removed from the mesh configuration', async () => {
  const plane = await startPlane();
  await waitForBundles(plane, [1, 1]);
  writeFileSync(join(plane.root, 'mesh'), JSON.stringify({ trustDomainAliases: ['old.test'] }));
  await waitForBundles(plane, []);
  await eventually(
    'they are not trusted',
    async () => (await acceptedIdentity(plane, ownCart, addedRoot)) === undefined,
  );
  expect(await acceptedIdentity(plane, cart('old.test'), oldRoot)).toBeUndefined();
  expect(await rootsOfAgents(plane)).toEqual(['authority']);
});
