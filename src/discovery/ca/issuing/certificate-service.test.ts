/** A workload gets its certificate from a whole control plane, over TLS, and nobody gets one that is not theirs. */

import { spawnSync } from 'node:child_process';
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, type ServiceError, status } from '@grpc/grpc-js';
import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { typeUrls } from '../../../../test/ads-client.ts';
import { codedError } from '../../../../test/fixtures/error-details.ts';
import {
  askForCertificate,
  type Asked as CertificateAsked,
  type OwnCertificate,
  serverName,
} from '../../../../test/harness/certificate-caller.ts';
import { ControlPlane, sidecar, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { givenAuthority, servingAuthority } from '../../../../test/harness/given-authority.ts';
import { type Certificate, readCertificate, readCertificates } from '../../../identity/certificate.ts';
import { findPath } from '../../../identity/certificate-path.ts';
import { makeRequest } from '../../../identity/certificate-request.ts';
import { issueLeaf, issueRoot } from '../../../identity/issue.ts';
import { svidProblems } from '../../../identity/x509-svid.ts';
import { localTokenKey } from '../../xds/access/local-tokens.ts';

const cart = { namespace: 'shop', serviceAccount: 'cart' };
const cartUri = 'spiffe://cluster.local/ns/shop/sa/cart';
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

const given = givenAuthority();
const serving = (env?: NodeJS.ProcessEnv): Promise<ControlPlane> => servingAuthority(given, env);

function token(account = cart, audience?: string): Promise<string> {
  return given.caller.token(account, audience);
}

type Asked = Partial<CertificateAsked>;

function clientOf(plane: ControlPlane, own?: OwnCertificate): Client {
  return given.caller.client(plane.port('ads.listening'), own);
}

/** @throws ServiceError */
function ask(client: Client, asked: Asked): Promise<string[]> {
  return askForCertificate(client, { csr: makeRequest(key, []), ...asked });
}

async function failure(asked: Promise<unknown>): Promise<ServiceError> {
  return asked.then(
    () => Promise.reject(new Error('it was answered')),
    (error: ServiceError) => error,
  );
}

/** By the authority's own root, as nobody but the authority can. */
function signedByRoot(uri: string, endsInMs = 60_000): Certificate {
  const [id] = readdirSync(given.directory).flatMap((name) => /^([0-9a-f]+)\.key$/.exec(name)?.[1] ?? []);
  const privateKey = createPrivateKey(readFileSync(join(given.directory, `${id}.key`)));
  const certificate = readCertificates(readFileSync(join(given.directory, `${id}.chain`), 'utf8'))[0]!;
  const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + endsInMs) };
  const names = { uris: [uri], dns: [], ips: [] };
  return readCertificate(issueLeaf({ certificate, privateKey }, createPublicKey(key), names, life));
}

function leafOf(chain: readonly string[]): Certificate {
  return readCertificates(chain.join(''))[0]!;
}

describe('CreateCertificate', () => {
  it('gives a workload the certificate of its token, whatever names it asks for', async () => {
    const plane = await serving();
    const bearer = await token();
    const csr = makeRequest(key, ['spiffe://cluster.local/ns/istio-system/sa/istiod']);
    const chain = await ask(clientOf(plane), { bearer, csr });
    const [leaf, root] = readCertificates(chain.join(''));
    expect(leaf!.alternativeNames?.uris).toEqual([cartUri]);
    expect(svidProblems(leaf!)).toEqual([]);
    expect(findPath({ certificate: leaf!, intermediates: [], roots: [root!], at: new Date() })).toHaveProperty('path');
    expect(leaf!.x509.checkPrivateKey(key)).toBe(true);
    for (const pem of chain) expect(pem).toMatch(/-----END CERTIFICATE-----\n$/);
    expect(plane.departures()).toEqual([]);
    expect(JSON.stringify(plane.records)).not.toContain('PRIVATE KEY');
  });

  it('renews by the certificate itself, which also opens xDS for its own namespace and no other', async () => {
    const plane = await serving();
    const chain = await ask(clientOf(plane), { bearer: await token() });
    const own = { chain: chain.slice(0, -1).join(''), key };
    const again = await ask(clientOf(plane, own), {});
    expect(leafOf(again).alternativeNames?.uris).toEqual([cartUri]);
    expect(leafOf(again).serialNumber).not.toBe(leafOf(chain).serialNumber);
    const xds = (node: object) => {
      const stream = plane.client(plane.port('ads.listening'), given.caller.channel(own), serverName).sotw();
      stream.send({ node, typeUrl: typeUrls.CDS });
      return stream;
    };
    expect((await xds(sidecar).next()).resources).not.toHaveLength(0);
    const other = { ...sidecar, metadata: { ...sidecar.metadata, NAMESPACE: 'bank' } };
    expect((await xds(other).ended).code).toBe(status.PERMISSION_DENIED);
  });

  it('is the same authority after a restart', async () => {
    const first = await serving();
    const before = await ask(clientOf(first), { bearer: await token() });
    await stopControlPlanes();
    const after = await ask(clientOf(await serving()), { bearer: await token() });
    expect(after.at(-1)).toBe(before.at(-1));
  });

  it('gives as much life as is asked for and may be had', async () => {
    const client = clientOf(await serving({ MAX_WORKLOAD_CERT_TTL: '2h', DEFAULT_WORKLOAD_CERT_TTL: '1h' }));
    const bearer = await token();
    const lifeOf = (chain: string[]): number => (leafOf(chain).notAfter.getTime() - Date.now()) / 60_000;
    expect(lifeOf(await ask(client, { bearer }))).toBeCloseTo(60, -1);
    expect(lifeOf(await ask(client, { bearer, seconds: 600n }))).toBeCloseTo(10, 0);
    const tooLong = await failure(ask(client, { bearer, seconds: 7_201n }));
    expect([tooLong.code, tooLong.details]).toEqual([
      status.INVALID_ARGUMENT,
      'the requested lifetime must be at most 7200 s (MAX_WORKLOAD_CERT_TTL), got 7201 s [CERTIFICATE_REQUEST_INVALID]',
    ]);
  });

  it.each<[string, () => Promise<Asked> | Asked, status]>([
    ['nobody says who it is', () => ({}), status.UNAUTHENTICATED],
    [
      'the token is for somebody else',
      async () => ({ bearer: await token(cart, 'kubernetes') }),
      status.UNAUTHENTICATED,
    ],
    ['the request is empty', async () => ({ bearer: await token(), csr: '' }), status.INVALID_ARGUMENT],
    [
      'the request was changed',
      async () => ({ bearer: await token(), csr: makeRequest(key, ['spiffe://a/b']).replace(/\n.{64}\n/, '\n') }),
      status.INVALID_ARGUMENT,
    ],
    [
      'the message is none',
      async () => ({ bearer: await token(), bytes: Buffer.alloc(1_000, 0x22) }),
      status.INVALID_ARGUMENT,
    ],
    ['the message is long', async () => ({ bearer: await token(), csr: 'x'.repeat(100_000) }), status.INVALID_ARGUMENT],
  ])('is refused when %s', async (_, asked, code) => {
    const plane = await serving();
    expect((await failure(ask(clientOf(plane), await asked()))).code).toBe(code);
  });

  it('breaks the connection of a certificate that is not good, whatever else it shows', async () => {
    const plane = await serving();
    const theirs = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    const life = { notBefore: new Date(Date.now() - 1_000), notAfter: new Date(Date.now() + 60_000) };
    const root = readCertificate(issueRoot(theirs, { organization: 'a', commonName: 'b' }, life));
    const own = { chain: root.pem, key: theirs };
    const refused = await failure(ask(clientOf(plane, own), { bearer: await token() }));
    expect(refused.code).toBe(status.UNAVAILABLE);
    // One of ours that has ended is no better.
    const ended = { chain: signedByRoot(cartUri, -1_000).pem, key };
    expect((await failure(ask(clientOf(plane, ended), { bearer: await token() }))).code).toBe(status.UNAVAILABLE);
    await ask(clientOf(plane, { chain: signedByRoot(cartUri).pem, key }), {});
    // The same caller without it.
    await ask(clientOf(plane), { bearer: await token() });
  });

  it('is for workloads of the mesh: one of an alias is the same, and one of another trust domain is nobody', async () => {
    const flags = { secureGRPCAddr: '127.0.0.1:0' };
    const prepare = ({ root }: { root: string }): void =>
      writeFileSync(join(root, 'mesh'), 'trustDomainAliases: [former.example]');
    const plane = ControlPlane.starting(flags, prepare, { SELF_SIGNED_CA_DIR: given.directory });
    await plane.ready();
    // Signed by the very root that signs for the mesh, so that it is the name alone that is looked at.
    const own = (uri: string): OwnCertificate => ({ chain: signedByRoot(uri).pem, key });
    const renewed = await ask(clientOf(plane, own('spiffe://former.example/ns/shop/sa/cart')), {});
    expect(leafOf(renewed).alternativeNames?.uris).toEqual([cartUri]);
    const refused = await failure(ask(clientOf(plane, own('spiffe://other.example/ns/shop/sa/cart')), {}));
    expect(refused.code).toBe(status.UNAUTHENTICATED);
  });

  it('takes a bounded number of one connection, and says when to come again', async () => {
    const client = clientOf(await serving());
    const bearer = await token();
    const csr = makeRequest(key, []);
    const all = await Promise.allSettled(Array.from({ length: 60 }, () => ask(client, { bearer, csr })));
    const refused = all.flatMap((one) => (one.status === 'rejected' ? [one.reason as ServiceError] : []));
    expect(all.length - refused.length).toBeGreaterThanOrEqual(16);
    for (const { code, metadata } of refused) {
      expect(code).toBe(status.RESOURCE_EXHAUSTED);
      expect(Number(metadata.get('grpc-retry-pushback-ms')[0])).toBeGreaterThanOrEqual(1_000);
    }
    await ask(client, { bearer, csr });
  });

  it('is there for nobody where XDS_AUTH is off: without an identity there is nothing to sign', async () => {
    const plane = await serving({ XDS_AUTH: 'false' });
    expect((await failure(ask(clientOf(plane), { bearer: 'x' }))).code).toBe(status.UNAUTHENTICATED);
  });
});

describe('what an operator takes back', () => {
  const takeBack = (...lines: string[]): void => writeFileSync(join(given.directory, 'revoked'), lines.join('\n'));

  it('is rejected from the next call while it is revoked', async () => {
    const plane = await serving();
    const bearer = await token();
    const { jti } = decodeJwt(bearer);
    const chain = await ask(clientOf(plane), { bearer });
    const own = { chain: chain[0]!, key };
    takeBack(`token ${jti}`);
    expect((await failure(ask(clientOf(plane), { bearer }))).code).toBe(status.UNAUTHENTICATED);
    await ask(clientOf(plane), { bearer: await token() });
    await ask(clientOf(plane, own), {});
    takeBack(`certificate ${leafOf(chain).serialNumber}`);
    expect((await failure(ask(clientOf(plane, own), {}))).code).toBe(status.UNAUTHENTICATED);
    const stream = plane.client(plane.port('ads.listening'), given.caller.channel(own), serverName).sotw();
    stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
    expect((await stream.ended).code).toBe(status.UNAUTHENTICATED);
    // A client that has a token as well is known by that.
    await ask(clientOf(plane, own), { bearer });
    takeBack();
    await ask(clientOf(plane, own), {});
  });

  it('is in a list of each root, and there is one of the next root before anybody is told of it', async () => {
    const plane = await serving();
    const bearer = await token();
    const [stolen, good] = [await ask(clientOf(plane), { bearer }), await ask(clientOf(plane), { bearer })];
    const verified = (chain: readonly string[]): string => {
      const file = (name: string, text: string): string => {
        writeFileSync(join(given.directory, name), text);
        return join(given.directory, name);
      };
      const args = ['-crl_check', '-CAfile', file('trusted.pem', given.caller.roots().toString())];
      const lists = ['-CRLfile', join(given.directory, 'ca-crl.pem')];
      const run = spawnSync('openssl', ['verify', ...args, ...lists, file('leaf.pem', chain[0]!)]);
      return `${run.stdout}${run.stderr}`;
    };
    expect(verified(stolen)).toContain('OK');
    takeBack(`certificate ${leafOf(stolen).serialNumber}`);
    await eventually('it is in the list', () => Promise.resolve(verified(stolen).includes('certificate revoked')));
    expect(verified(good)).toContain('OK');
    const url = `http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz`;
    await fetch(`${url}?order=rotate`, { method: 'POST', headers: plane.operator });
    const lists = (): number =>
      readFileSync(join(given.directory, 'ca-crl.pem'), 'utf8').split('BEGIN X509 CRL').length - 1;
    await eventually('two roots are given out', async () => {
      const { roots } = (await (await fetch(url)).json()) as { roots: object[] };
      // A reader that sees two roots finds two lists.
      if (roots.length === 2) expect(lists()).toBe(2);
      return roots.length === 2;
    });
    expect(verified(stolen)).toContain('certificate revoked');
    expect(verified(good)).toContain('OK');
  });
});

describe('/debug/authorityz', () => {
  interface Page {
    readonly stage: string;
    readonly signer: { readonly id: string };
    readonly roots: readonly { readonly id: string }[];
    readonly waitsFor?: { readonly missing: number; readonly workloads: readonly string[] };
  }

  const page = async (plane: ControlPlane): Promise<Page> => (await plane.get('/debug/authorityz')).json();
  const order = async (plane: ControlPlane, what: string, method = 'POST') =>
    (
      await fetch(`http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz?order=${what}`, {
        method,
        headers: plane.operator,
      })
    ).status;

  it('has the root rotated, which goes through where nobody could be cut off', async () => {
    const plane = await serving();
    const before = await page(plane);
    const oldRoots = given.caller.roots();
    expect(before).toMatchObject({ stage: 'steady', roots: [before.signer] });
    expect(await order(plane, 'rotate')).toBe(202);
    await eventually('the new root alone', async () => {
      const now = await page(plane);
      return now.stage === 'steady' && now.signer.id !== before.signer.id && now.roots.length === 1;
    });
    expect(given.caller.roots()).not.toEqual(oldRoots);
    // The port shows what the new root has signed.
    const chain = await ask(clientOf(plane), { bearer: await token() });
    expect(leafOf(chain).authorityKeyId).toBe((await page(plane)).signer.id);
    expect(plane.departures()).toEqual([]);
  });

  it('names whom it waits for, signs by the old one meanwhile, and is taken back', async () => {
    const plane = await serving();
    const { signer } = await page(plane);
    const [, root] = await ask(clientOf(plane), { bearer: await token() });
    expect(await order(plane, 'rotate')).toBe(202);
    await eventually('somebody is missing', async () => (await page(plane)).waitsFor?.missing === 1);
    expect(await page(plane)).toMatchObject({
      stage: 'trusting',
      signer,
      waitsFor: { workloads: [expect.stringContaining(`${cartUri} (certificate expires `)] },
    });
    // A workload that renews is told of both roots, and goes on with the old one.
    const chain = await ask(clientOf(plane), { bearer: await token() });
    expect(leafOf(chain).authorityKeyId).toBe(signer.id);
    expect(readCertificates(chain.at(-1)!)).toHaveLength(2);
    expect(chain.at(-1)).toContain(root!);
    expect(await order(plane, 'revert')).toBe(202);
    await eventually('the old root alone', async () => (await page(plane)).roots.length === 1);
    expect(await page(plane)).toMatchObject({ stage: 'steady', signer });
  });

  it('renews everybody where the root is tainted, and leaves nobody behind unless it is told to', async () => {
    const plane = await serving();
    const { signer } = await page(plane);
    await ask(clientOf(plane), { bearer: await token() });
    expect(await order(plane, 'proceed')).toBe(409);
    expect(await order(plane, 'taint')).toBe(202);
    await eventually('somebody is missing', async () => (await page(plane)).waitsFor?.missing === 1);
    expect(await page(plane)).toMatchObject({ stage: 'trusting', signer, tainted: signer.id });
    const url = `http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz?order=proceed`;
    const refused = await fetch(url, { method: 'POST', headers: plane.operator });
    expect(refused.status).toBe(409);
    expect(await refused.text()).toContain(`1 workloads would lose their connections: ${cartUri}`);
    expect(await order(plane, 'proceed&force=true', 'GET')).toBe(405);
    expect((await page(plane)).stage).toBe('trusting');
    expect(await order(plane, 'proceed&force=true')).toBe(202);
    await eventually('the next one signs', async () => (await page(plane)).stage === 'signing');
    const chain = await ask(clientOf(plane), { bearer: await token() });
    expect(leafOf(chain).authorityKeyId).not.toBe(signer.id);
    expect(plane.departures()).toEqual([]);
  });

  it('changes nothing when it is looked at, or asked for something else', async () => {
    const plane = await serving();
    expect(await order(plane, 'rotate', 'GET')).toBe(405);
    expect(await order(plane, 'drop')).toBe(400);
    expect(await order(plane, '__proto__')).toBe(400);
    expect(await page(plane)).toMatchObject({ stage: 'steady' });
  });
});

it('a key that others can read is no key', () => {
  const file = join(given.directory, 'token.key');
  const made = localTokenKey(file);
  expect(localTokenKey(file).export({ format: 'jwk' })).toEqual(made.export({ format: 'jwk' }));
  chmodSync(file, 0o640);
  expect(() => localTokenKey(file)).toThrow(
    codedError('CONFIG_INVALID', { path: file, expected: '0600', got: '0640' }),
  );
});
