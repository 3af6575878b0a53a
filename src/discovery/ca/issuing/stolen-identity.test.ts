/**
 * Tests known ways to obtain another workload's identity. Each fails on the real server, and succeeds on a server without the check that rejects it.
 * Token attacks are in src/discovery/xds/access/impostors.test.ts. The table is in docs/identity-reference.md.
 */
import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { CertificationRequest } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import { Extensions, SubjectAlternativeName } from '@peculiar/asn1-x509';
import { decodeJwt, exportJWK, SignJWT, UnsecuredJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { typeUrls } from '../../../../test/ads-client.ts';
import {
  type OwnCertificate,
  requestCertificateChain,
  serverName,
} from '../../../../test/harness/certificate-caller.ts';
import { sidecar } from '../../../../test/harness/control-plane.ts';
import { givenAuthority, servingAuthority } from '../../../../test/harness/given-authority.ts';
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from '../../../gen/istio/v1/auth/ca_pb.ts';
import { readCertificate, readCertificates } from '../../../identity/certificate.ts';
import { createRequest, verifyRequest } from '../../../identity/certificate-request.ts';
import { type Issuer, issueLeaf, issueRoot } from '../../../identity/issue.ts';
import { pemBlocks } from '../../../identity/pem.ts';
import { spiffeUriOf } from '../../../identity/spiffe-id.ts';
import { TrustBundle } from '../../../identity/trust-bundle.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import type { Authenticator, CallPeer } from '../../xds/access/authenticator.ts';
import { bearerToken } from '../../xds/access/bearer-token.ts';
import { clientCertificate } from '../../xds/access/client-certificate.ts';
import { localKeys } from '../../xds/access/issuer-keys.ts';
import { workloadsOfMesh } from '../../xds/access/workloads-of-mesh.ts';
import { buildAuthorityMaterial } from '../authority-material.ts';
import { CertificateService } from './certificate-service.ts';
import type { SigningRequest } from './certificate-signer.ts';

const ownId = 'spiffe://cluster.local/ns/shop/sa/cart';
const otherId = 'spiffe://cluster.local/ns/istio-system/sa/istiod';
const cart = { namespace: 'shop', serviceAccount: 'cart' };
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };

function rootOf(commonName: string): Issuer {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificate = readCertificate(issueRoot(privateKey, { organization: 'mesh', commonName }, life));
  return { certificate, privateKey };
}

const peerWith = (token: string): CallPeer => ({
  host: '10.0.0.1',
  address: '10.0.0.1:4711',
  metadata: (name) => (name === 'authorization' ? [`Bearer ${token}`] : []),
  certificate: undefined,
});

describe('a certificate request', () => {
  const issuer = rootOf('own');
  type Sign = (order: SigningRequest) => string[];
  const namesOfCaller: Sign = ({ uri }) => [uri];

  /** @param namesOf selects the names in the certificate */
  async function requestChain(request: object, namesOf: Sign = namesOfCaller): Promise<string[]> {
    const material = buildAuthorityMaterial(issuer, [], [issuer.certificate], new Date());
    const bundle = new TrustBundle('cluster.local', [material.root]);
    const service = new CertificateService({
      authenticators: [{ name: 'test', authenticate: () => ({ identities: [ownId] }) }],
      activeAuthority: () => ({
        ...{ material, bundle, serverAuthority: material, authorities: [material], tainted: [], roots: [material.id] },
      }),
      signer: {
        async sign(order) {
          const names = { uris: namesOf(order), dns: [], ips: [] };
          const leaf = readCertificate(issueLeaf(issuer, verifyRequest(order.request), names, order));
          return { leaf: leaf.pem, serialNumber: leaf.serialNumber };
        },
        verify: () => Promise.reject(new Error('no other signer is configured')),
      },
      trustDomains: () => ['cluster.local'],
      limits: { defaultMs: 60_000, maxMs: 60_000 },
      now: () => new Date(),
      logger: silentLogger,
    });
    const message = create(IstioCertificateRequestSchema, { csr: createRequest(key, []), ...request });
    const bytes = await service.create(toBinary(IstioCertificateRequestSchema, message), peerWith(''));
    const [leaf] = fromBinary(IstioCertificateResponseSchema, bytes).certChain;
    return [...(readCertificates(leaf!)[0]!.alternativeNames?.uris ?? [])];
  }

  const namesInRequest: Sign = ({ request }) => {
    const { der } = pemBlocks(request)[0]!;
    const { attributes } = AsnConvert.parse(der, CertificationRequest).certificationRequestInfo;
    const extensions = AsnConvert.parse(attributes[0]!.values[0]!, Extensions);
    const names = AsnConvert.parse(extensions[0]!.extnValue.buffer, SubjectAlternativeName);
    return names.flatMap(({ uniformResourceIdentifier: uri }) => uri ?? []);
  };

  it('is signed for the identity of the caller, even if it contains names of another workload', async () => {
    const request = { csr: createRequest(key, [otherId]) };
    expect(await requestChain(request)).toEqual([ownId]);
    expect(await requestChain(request, namesInRequest)).toEqual([otherId]);
  });

  it('is signed for the identity of the caller, even if its node is in another namespace', async () => {
    const metadata = { NodeID: `sidecar~1.2.3.4~a.istio-system~istio-system.svc.cluster.local` };
    const request = { csr: createRequest(key, [otherId]), metadata };
    expect(await requestChain(request)).toEqual([ownId]);
    expect(await requestChain(request, () => [otherId])).toEqual([otherId]);
  });

  it('is rejected if it contains ImpersonatedIdentity', async () => {
    const impersonate = (ImpersonatedIdentity: unknown) => requestChain({ metadata: { ImpersonatedIdentity } });
    const refusal = { code: status.UNAUTHENTICATED, message: expect.stringContaining('[CLIENT_FORBIDDEN]') };
    for (const claimedId of [otherId, ownId, 'x', 1])
      await expect(impersonate(claimedId)).rejects.toMatchObject(refusal);
    expect(await impersonate('')).toEqual([ownId]);
  });
});

describe('a token', () => {
  const claims = {
    ...{ sub: 'system:serviceaccount:istio-system:istiod', iss: 'https://issuer', aud: 'istio-ca' },
    exp: Math.floor(Date.now() / 1_000) + 600,
  };
  const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  /** Reads claims without verifying the signature. */
  const unverified: Authenticator = {
    name: 'unverified',
    authenticate(peer) {
      const { sub = '' } = decodeJwt(peer.metadata('authorization')[0]!.slice('Bearer '.length));
      const [, , namespace = '', serviceAccount = ''] = sub.split(':');
      return { identities: [spiffeUriOf({ trustDomain: 'cluster.local', namespace, serviceAccount })] };
    },
  };
  const spki = createPublicKey(key).export({ format: 'pem', type: 'spki' }) as string;

  it.each<[string, () => Promise<string> | string]>([
    ['that is unsigned (alg: none)', () => new UnsecuredJWT(claims).encode()],
    ['that is unsigned (alg: NONE)', () => `${base64({ alg: 'NONE' })}.${base64(claims)}.`],
    [
      'that is signed with the public key as a shared secret',
      () => {
        const text = `${base64({ alg: 'HS256', kid: 'k0' })}.${base64(claims)}`;
        return `${text}.${createHmac('sha256', spki).update(text).digest('base64url')}`;
      },
    ],
    [
      'with a modified namespace',
      async () => {
        const cartClaims = { ...claims, sub: 'system:serviceaccount:shop:cart' };
        const token = await new SignJWT(cartClaims).setProtectedHeader({ alg: 'ES256', kid: 'k0' }).sign(key);
        const [header, , signature] = token.split('.');
        return `${header}.${base64(claims)}.${signature}`;
      },
    ],
  ])('%s authenticates as the claimed identity only if signatures are not verified', async (_, createToken) => {
    const keys = localKeys({ keys: [{ ...(await exportJWK(createPublicKey(key))), kid: 'k0' }] });
    const rule = { issuer: 'https://issuer', audiences: ['istio-ca'], keys };
    const peer = peerWith(await createToken());
    const verified = bearerToken({ name: 'test', rule, trustDomain: () => 'cluster.local' });
    expect(await verified.authenticate(peer)).toHaveProperty('failure');
    expect(await unverified.authenticate(peer)).toEqual({ identities: [otherId] });
  });
});

describe('a client', () => {
  const authority = givenAuthority();

  function ownAuthority(): Issuer {
    const [id] = readdirSync(authority.directory).flatMap((name) => /^([0-9a-f]+)\.key$/.exec(name)?.[1] ?? []);
    const privateKey = createPrivateKey(readFileSync(join(authority.directory, `${id}.key`)));
    return {
      certificate: readCertificates(readFileSync(join(authority.directory, `${id}.chain`), 'utf8'))[0]!,
      privateKey,
    };
  }

  const signedBy = (issuer: Issuer, uri: string, notAfter = life.notAfter): OwnCertificate => {
    const der = issueLeaf(issuer, createPublicKey(key), { uris: [uri], dns: [], ips: [] }, { ...life, notAfter });
    return { chain: readCertificate(der).pem, key };
  };

  /** Accepts the certificate without checking its expiry. */
  const unverified = ({ chain }: OwnCertificate, trustDomains: readonly string[]) =>
    workloadsOfMesh(
      clientCertificate(undefined, () => 0),
      () => trustDomains,
    ).authenticate({
      ...peerWith(''),
      certificate: new X509Certificate(chain).toLegacyObject(),
    });

  it.each<[string, () => OwnCertificate, string, status]>([
    ['a self-signed certificate', () => signedBy(rootOf('self-made'), ownId), ownId, status.UNAVAILABLE],
    [
      'an expired certificate',
      () => signedBy(ownAuthority(), ownId, new Date(Date.now() - 1_000)),
      ownId,
      status.UNAVAILABLE,
    ],
    [
      'a certificate of another trust domain',
      () => signedBy(ownAuthority(), 'spiffe://other.example/ns/shop/sa/cart'),
      'spiffe://other.example/ns/shop/sa/cart',
      status.UNAUTHENTICATED,
    ],
  ])(
    'authenticates with %s as the claimed identity only if certificates are not verified',
    async (_, createCertificate, name, code) => {
      const plane = await servingAuthority(authority);
      const clientCertificate = createCertificate();
      const pending = requestCertificateChain(authority.caller.client(plane.port('ads.listening'), clientCertificate), {
        csr: createRequest(key, []),
      });
      await expect(pending).rejects.toMatchObject({ code });
      const domains = ['cluster.local', 'other.example'];
      expect(await unverified(clientCertificate, domains)).toEqual({ identities: [name] });
    },
  );

  it.each([
    ['by default', {}, false],
    ['with the check disabled', { PILOT_ENABLE_XDS_IDENTITY_CHECK: 'false' }, true],
  ])('can report a node of another namespace only if the identity check is disabled: %s', async (_, env, isServed) => {
    const plane = await servingAuthority(authority, env);
    const bearer = await authority.caller.token(cart);
    const port = plane.port('ads.listening');
    const chain = await requestCertificateChain(authority.caller.client(port), { csr: createRequest(key, []), bearer });
    const credentials = authority.caller.channel({ chain: chain[0]!, key });
    const stream = plane.client(port, credentials, serverName).sotw();
    const node = { ...sidecar, metadata: { ...sidecar.metadata, NAMESPACE: 'bank' } };
    stream.send({ node, typeUrl: typeUrls.CDS });
    if (isServed) expect((await stream.next()).typeUrl).toBe(typeUrls.CDS);
    else expect((await stream.ended).code).toBe(status.PERMISSION_DENIED);
  });
});
