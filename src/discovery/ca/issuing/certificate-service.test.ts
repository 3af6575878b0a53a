/** Requests certificates from a complete control plane over TLS, also for other identities. */

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
  type CertificateCall,
  type OwnCertificate,
  requestCertificateChain,
  serverName,
} from '../../../../test/harness/certificate-caller.ts';
import { ControlPlane, sidecar, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { givenAuthority, servingAuthority } from '../../../../test/harness/given-authority.ts';
import { type Certificate, readCertificate, readCertificates } from '../../../identity/certificate.ts';
import { findPath } from '../../../identity/certificate-path.ts';
import { createRequest } from '../../../identity/certificate-request.ts';
import { issueLeaf, issueRoot } from '../../../identity/issue.ts';
import { svidProblems } from '../../../identity/x509-svid.ts';
import { localTokenKey } from '../../xds/access/local-tokens.ts';

const cart = { namespace: 'shop', serviceAccount: 'cart' };
const cartUri = 'spiffe://cluster.local/ns/shop/sa/cart';
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

const authority = givenAuthority();
const startPlane = (env?: NodeJS.ProcessEnv): Promise<ControlPlane> => servingAuthority(authority, env);

function token(account = cart, audience?: string): Promise<string> {
  return authority.caller.token(account, audience);
}

type CertificateRequest = Partial<CertificateCall>;

function clientOf(plane: ControlPlane, clientCertificate?: OwnCertificate): Client {
  return authority.caller.client(plane.port('ads.listening'), clientCertificate);
}

/** @throws ServiceError */
function requestCertificate(client: Client, fields: CertificateRequest): Promise<string[]> {
  return requestCertificateChain(client, { csr: createRequest(key, []), ...fields });
}

async function failure(pending: Promise<unknown>): Promise<ServiceError> {
  return pending.then(
    () => Promise.reject(new Error('it was answered')),
    (error: ServiceError) => error,
  );
}

/** A certificate signed directly by the root, which only the authority can issue. */
function signedByRoot(uri: string, endsInMs = 60_000): Certificate {
  const [id] = readdirSync(authority.directory).flatMap((name) => /^([0-9a-f]+)\.key$/.exec(name)?.[1] ?? []);
  const privateKey = createPrivateKey(readFileSync(join(authority.directory, `${id}.key`)));
  const certificate = readCertificates(readFileSync(join(authority.directory, `${id}.chain`), 'utf8'))[0]!;
  const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + endsInMs) };
  const names = { uris: [uri], dns: [], ips: [] };
  return readCertificate(issueLeaf({ certificate, privateKey }, createPublicKey(key), names, life));
}

function leafOf(chain: readonly string[]): Certificate {
  return readCertificates(chain.join(''))[0]!;
}

describe('CreateCertificate', () => {
  it('issues a certificate for the identity of the token, regardless of the names in the CSR', async () => {
    const plane = await startPlane();
    const bearer = await token();
    const csr = createRequest(key, ['spiffe://cluster.local/ns/istio-system/sa/istiod']);
    const chain = await requestCertificate(clientOf(plane), { bearer, csr });
    const [leaf, root] = readCertificates(chain.join(''));
    expect(leaf!.alternativeNames?.uris).toEqual([cartUri]);
    expect(svidProblems(leaf!)).toEqual([]);
    expect(findPath({ certificate: leaf!, intermediates: [], roots: [root!], at: new Date() })).toHaveProperty('path');
    expect(leaf!.x509.checkPrivateKey(key)).toBe(true);
    for (const pem of chain) expect(pem).toMatch(/-----END CERTIFICATE-----\n$/);
    expect(plane.deviations()).toEqual([]);
    expect(JSON.stringify(plane.records)).not.toContain('PRIVATE KEY');
  });

  it('accepts a client certificate for renewal, and for xDS only in the namespace of the certificate', async () => {
    const plane = await startPlane();
    const chain = await requestCertificate(clientOf(plane), { bearer: await token() });
    const clientCertificate = { chain: chain.slice(0, -1).join(''), key };
    const renewedChain = await requestCertificate(clientOf(plane, clientCertificate), {});
    expect(leafOf(renewedChain).alternativeNames?.uris).toEqual([cartUri]);
    expect(leafOf(renewedChain).serialNumber).not.toBe(leafOf(chain).serialNumber);
    const xds = (node: object) => {
      const stream = plane
        .client(plane.port('ads.listening'), authority.caller.channel(clientCertificate), serverName)
        .sotw();
      stream.send({ node, typeUrl: typeUrls.CDS });
      return stream;
    };
    expect((await xds(sidecar).next()).resources).not.toHaveLength(0);
    const other = { ...sidecar, metadata: { ...sidecar.metadata, NAMESPACE: 'bank' } };
    expect((await xds(other).ended).code).toBe(status.PERMISSION_DENIED);
  });

  it('signs with the same root after a restart', async () => {
    const first = await startPlane();
    const issuedBefore = await requestCertificate(clientOf(first), { bearer: await token() });
    await stopControlPlanes();
    const chainAfterRestart = await requestCertificate(clientOf(await startPlane()), { bearer: await token() });
    expect(chainAfterRestart.at(-1)).toBe(issuedBefore.at(-1));
  });

  it('issues the requested lifetime up to the maximum', async () => {
    const client = clientOf(await startPlane({ MAX_WORKLOAD_CERT_TTL: '2h', DEFAULT_WORKLOAD_CERT_TTL: '1h' }));
    const bearer = await token();
    const lifeOf = (chain: string[]): number => (leafOf(chain).notAfter.getTime() - Date.now()) / 60_000;
    expect(lifeOf(await requestCertificate(client, { bearer }))).toBeCloseTo(60, -1);
    expect(lifeOf(await requestCertificate(client, { bearer, seconds: 600n }))).toBeCloseTo(10, 0);
    const tooLong = await failure(requestCertificate(client, { bearer, seconds: 7_201n }));
    expect([tooLong.code, tooLong.details]).toEqual([
      status.INVALID_ARGUMENT,
      'the requested lifetime must be at most 7200 s (MAX_WORKLOAD_CERT_TTL), got 7201 s [CERTIFICATE_REQUEST_INVALID]',
    ]);
  });

  it.each<[string, () => Promise<CertificateRequest> | CertificateRequest, status]>([
    ['the caller has no credentials', () => ({}), status.UNAUTHENTICATED],
    [
      'the token has another audience',
      async () => ({ bearer: await token(cart, 'kubernetes') }),
      status.UNAUTHENTICATED,
    ],
    ['the CSR is empty', async () => ({ bearer: await token(), csr: '' }), status.INVALID_ARGUMENT],
    [
      'the CSR was modified',
      async () => ({ bearer: await token(), csr: createRequest(key, ['spiffe://a/b']).replace(/\n.{64}\n/, '\n') }),
      status.INVALID_ARGUMENT,
    ],
    [
      'the message cannot be decoded',
      async () => ({ bearer: await token(), bytes: Buffer.alloc(1_000, 0x22) }),
      status.INVALID_ARGUMENT,
    ],
    [
      'the message is too long',
      async () => ({ bearer: await token(), csr: 'x'.repeat(100_000) }),
      status.INVALID_ARGUMENT,
    ],
  ])('rejects a request if %s', async (_, fieldsOf, code) => {
    const plane = await startPlane();
    expect((await failure(requestCertificate(clientOf(plane), await fieldsOf()))).code).toBe(code);
  });

  it('closes a connection with an invalid client certificate, even if the request has other valid credentials', async () => {
    const plane = await startPlane();
    const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    const life = { notBefore: new Date(Date.now() - 1_000), notAfter: new Date(Date.now() + 60_000) };
    const root = readCertificate(issueRoot(otherKey, { organization: 'a', commonName: 'b' }, life));
    const clientCertificate = { chain: root.pem, key: otherKey };
    const refusal = await failure(requestCertificate(clientOf(plane, clientCertificate), { bearer: await token() }));
    expect(refusal.code).toBe(status.UNAVAILABLE);
    // An expired certificate of the same root is rejected too.
    const expired = { chain: signedByRoot(cartUri, -1_000).pem, key };
    expect((await failure(requestCertificate(clientOf(plane, expired), { bearer: await token() }))).code).toBe(
      status.UNAVAILABLE,
    );
    await requestCertificate(clientOf(plane, { chain: signedByRoot(cartUri).pem, key }), {});
    // The same caller is accepted without the client certificate.
    await requestCertificate(clientOf(plane), { bearer: await token() });
  });

  it("accepts only identities of the mesh's trust domain and its aliases", async () => {
    const flags = { secureGRPCAddr: '127.0.0.1:0' };
    const prepare = ({ root }: { root: string }): void =>
      writeFileSync(join(root, 'mesh'), 'trustDomainAliases: [former.example]');
    const plane = ControlPlane.starting(flags, prepare, { SELF_SIGNED_CA_DIR: authority.directory });
    await plane.ready();
    // All certificates are signed by the mesh's own root.
    const certificateFor = (uri: string): OwnCertificate => ({ chain: signedByRoot(uri).pem, key });
    const renewed = await requestCertificate(
      clientOf(plane, certificateFor('spiffe://former.example/ns/shop/sa/cart')),
      {},
    );
    expect(leafOf(renewed).alternativeNames?.uris).toEqual([cartUri]);
    const refusal = await failure(
      requestCertificate(clientOf(plane, certificateFor('spiffe://other.example/ns/shop/sa/cart')), {}),
    );
    expect(refusal.code).toBe(status.UNAUTHENTICATED);
  });

  it('limits the requests of a connection, and returns a retry delay', async () => {
    const client = clientOf(await startPlane());
    const bearer = await token();
    const csr = createRequest(key, []);
    const all = await Promise.allSettled(Array.from({ length: 60 }, () => requestCertificate(client, { bearer, csr })));
    const refusals = all.flatMap((one) => (one.status === 'rejected' ? [one.reason as ServiceError] : []));
    expect(all.length - refusals.length).toBeGreaterThanOrEqual(16);
    for (const { code, metadata } of refusals) {
      expect(code).toBe(status.RESOURCE_EXHAUSTED);
      expect(Number(metadata.get('grpc-retry-pushback-ms')[0])).toBeGreaterThanOrEqual(1_000);
    }
    await requestCertificate(client, { bearer, csr });
  });

  it('rejects all requests if XDS_AUTH is disabled, because callers have no identity', async () => {
    const plane = await startPlane({ XDS_AUTH: 'false' });
    expect((await failure(requestCertificate(clientOf(plane), { bearer: 'x' }))).code).toBe(status.UNAUTHENTICATED);
  });
});

describe('a revoked credential', () => {
  const revoke = (...lines: string[]): void => writeFileSync(join(authority.directory, 'revoked'), lines.join('\n'));

  it('is rejected from the next request on, until its revocation is removed', async () => {
    const plane = await startPlane();
    const bearer = await token();
    const { jti } = decodeJwt(bearer);
    const chain = await requestCertificate(clientOf(plane), { bearer });
    const clientCertificate = { chain: chain[0]!, key };
    revoke(`token ${jti}`);
    expect((await failure(requestCertificate(clientOf(plane), { bearer }))).code).toBe(status.UNAUTHENTICATED);
    await requestCertificate(clientOf(plane), { bearer: await token() });
    await requestCertificate(clientOf(plane, clientCertificate), {});
    revoke(`certificate ${leafOf(chain).serialNumber}`);
    expect((await failure(requestCertificate(clientOf(plane, clientCertificate), {}))).code).toBe(
      status.UNAUTHENTICATED,
    );
    const stream = plane
      .client(plane.port('ads.listening'), authority.caller.channel(clientCertificate), serverName)
      .sotw();
    stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
    expect((await stream.ended).code).toBe(status.UNAUTHENTICATED);
    // A token takes precedence over the client certificate.
    await requestCertificate(clientOf(plane, clientCertificate), { bearer });
    revoke();
    await requestCertificate(clientOf(plane, clientCertificate), {});
  });

  it('is listed in a CRL for each root, including the next root before clients receive it', async () => {
    const plane = await startPlane();
    const bearer = await token();
    const [stolen, validChain] = [
      await requestCertificate(clientOf(plane), { bearer }),
      await requestCertificate(clientOf(plane), { bearer }),
    ];
    const verified = (chain: readonly string[]): string => {
      const file = (name: string, text: string): string => {
        writeFileSync(join(authority.directory, name), text);
        return join(authority.directory, name);
      };
      const args = ['-crl_check', '-CAfile', file('trusted.pem', authority.caller.roots().toString())];
      const lists = ['-CRLfile', join(authority.directory, 'ca-crl.pem')];
      const run = spawnSync('openssl', ['verify', ...args, ...lists, file('leaf.pem', chain[0]!)]);
      return `${run.stdout}${run.stderr}`;
    };
    expect(verified(stolen)).toContain('OK');
    revoke(`certificate ${leafOf(stolen).serialNumber}`);
    await eventually('it is in the list', () => Promise.resolve(verified(stolen).includes('certificate revoked')));
    expect(verified(validChain)).toContain('OK');
    const url = `http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz`;
    await fetch(`${url}?order=rotate`, { method: 'POST', headers: plane.operator });
    const lists = (): number =>
      readFileSync(join(authority.directory, 'ca-crl.pem'), 'utf8').split('BEGIN X509 CRL').length - 1;
    await eventually('two roots are given out', async () => {
      const { roots } = (await (await fetch(url)).json()) as { roots: object[] };
      // Each distributed root has a CRL.
      if (roots.length === 2) expect(lists()).toBe(2);
      return roots.length === 2;
    });
    expect(verified(stolen)).toContain('certificate revoked');
    expect(verified(validChain)).toContain('OK');
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
  const order = async (plane: ControlPlane, action: string, method = 'POST') =>
    (
      await fetch(`http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz?order=${action}`, {
        method,
        headers: plane.operator,
      })
    ).status;

  it('rotates the root on request if no client would lose access', async () => {
    const plane = await startPlane();
    const pageBefore = await page(plane);
    const oldRoots = authority.caller.roots();
    expect(pageBefore).toMatchObject({ stage: 'steady', roots: [pageBefore.signer] });
    expect(await order(plane, 'rotate')).toBe(202);
    await eventually('the new root alone', async () => {
      const now = await page(plane);
      return now.stage === 'steady' && now.signer.id !== pageBefore.signer.id && now.roots.length === 1;
    });
    expect(authority.caller.roots()).not.toEqual(oldRoots);
    // The port presents a certificate of the new root.
    const chain = await requestCertificate(clientOf(plane), { bearer: await token() });
    expect(leafOf(chain).authorityKeyId).toBe((await page(plane)).signer.id);
    expect(plane.deviations()).toEqual([]);
  });

  it('lists the workloads that a rotation waits for, keeps signing with the old root, and can revert the rotation', async () => {
    const plane = await startPlane();
    const { signer } = await page(plane);
    const [, root] = await requestCertificate(clientOf(plane), { bearer: await token() });
    expect(await order(plane, 'rotate')).toBe(202);
    await eventually('somebody is missing', async () => (await page(plane)).waitsFor?.missing === 1);
    expect(await page(plane)).toMatchObject({
      stage: 'trusting',
      signer,
      waitsFor: { workloads: [expect.stringContaining(`${cartUri} (certificate expires `)] },
    });
    // A workload that renews receives both roots, but the old one signs.
    const chain = await requestCertificate(clientOf(plane), { bearer: await token() });
    expect(leafOf(chain).authorityKeyId).toBe(signer.id);
    expect(readCertificates(chain.at(-1)!)).toHaveLength(2);
    expect(chain.at(-1)).toContain(root!);
    expect(await order(plane, 'revert')).toBe(202);
    await eventually('the old root alone', async () => (await page(plane)).roots.length === 1);
    expect(await page(plane)).toMatchObject({ stage: 'steady', signer });
  });

  it('renews all workloads when the root is tainted, and skips unresponsive workloads only on request', async () => {
    const plane = await startPlane();
    const { signer } = await page(plane);
    await requestCertificate(clientOf(plane), { bearer: await token() });
    expect(await order(plane, 'proceed')).toBe(409);
    expect(await order(plane, 'taint')).toBe(202);
    await eventually('somebody is missing', async () => (await page(plane)).waitsFor?.missing === 1);
    expect(await page(plane)).toMatchObject({ stage: 'trusting', signer, tainted: signer.id });
    const url = `http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz?order=proceed`;
    const refusedResponse = await fetch(url, { method: 'POST', headers: plane.operator });
    expect(refusedResponse.status).toBe(409);
    expect(await refusedResponse.text()).toContain(`1 workloads would lose their connections: ${cartUri}`);
    expect(await order(plane, 'proceed&force=true', 'GET')).toBe(405);
    expect((await page(plane)).stage).toBe('trusting');
    expect(await order(plane, 'proceed&force=true')).toBe(202);
    await eventually('the next one signs', async () => (await page(plane)).stage === 'signing');
    const chain = await requestCertificate(clientOf(plane), { bearer: await token() });
    expect(leafOf(chain).authorityKeyId).not.toBe(signer.id);
    expect(plane.deviations()).toEqual([]);
  });

  it('rejects an order that the current stage cannot execute, with the reason', async () => {
    const plane = await startPlane();
    expect(await order(plane, 'revert')).toBe(409);
    await requestCertificate(clientOf(plane), { bearer: await token() });
    expect(await order(plane, 'rotate')).toBe(202);
    await eventually('a workload is missing', async () => (await page(plane)).waitsFor?.missing === 1);
    const url = `http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz?order=rotate`;
    const rejectedResponse = await fetch(url, { method: 'POST', headers: plane.operator });
    expect(rejectedResponse.status).toBe(409);
    expect(await rejectedResponse.text()).toBe(
      'rejected: A rotation is in progress: wait for its end, or revert it.\n',
    );
  });

  it('ignores GET requests and unknown actions', async () => {
    const plane = await startPlane();
    expect(await order(plane, 'rotate', 'GET')).toBe(405);
    expect(await order(plane, 'drop')).toBe(400);
    expect(await order(plane, '__proto__')).toBe(400);
    expect(await page(plane)).toMatchObject({ stage: 'steady' });
  });
});

it('the control plane does not start with a CA key that other users can read', () => {
  const file = join(authority.directory, 'token.key');
  const loading = localTokenKey(file);
  expect(localTokenKey(file).export({ format: 'jwk' })).toEqual(loading.export({ format: 'jwk' }));
  chmodSync(file, 0o640);
  expect(() => localTokenKey(file)).toThrow(
    codedError('CONFIG_INVALID', { path: file, expected: '0600', got: '0640' }),
  );
});
