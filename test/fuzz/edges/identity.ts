/**
 * Untrusted credentials: certificate requests, tokens, client certificates, and forwarded headers of gateways. Each
 * must be rejected with a documented error and without long computations, unless its identity was actually signed.
 */
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { exportJWK, SignJWT } from 'jose';
import type { ActiveAuthority } from '../../../src/discovery/ca/authority.ts';
import { buildAuthorityMaterial } from '../../../src/discovery/ca/authority-material.ts';
import { CertificateService, IssuanceRejection } from '../../../src/discovery/ca/issuing/certificate-service.ts';
import { authenticate, type CallPeer } from '../../../src/discovery/xds/access/authenticator.ts';
import { bearerToken } from '../../../src/discovery/xds/access/bearer-token.ts';
import { clientCertificate } from '../../../src/discovery/xds/access/client-certificate.ts';
import { forwardedCertificate } from '../../../src/discovery/xds/access/forwarded-certificate.ts';
import { localKeys } from '../../../src/discovery/xds/access/issuer-keys.ts';
import { workloadsOfMesh } from '../../../src/discovery/xds/access/workloads-of-mesh.ts';
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from '../../../src/gen/istio/v1/auth/ca_pb.ts';
import { readCertificate, readCertificates } from '../../../src/identity/certificate.ts';
import { findPath } from '../../../src/identity/certificate-path.ts';
import { CertificateError } from '../../../src/identity/certificate-problem.ts';
import { CertificateRequestError, createRequest, verifyRequest } from '../../../src/identity/certificate-request.ts';
import { issueLeaf, issueRoot } from '../../../src/identity/issue.ts';
import { pemOf } from '../../../src/identity/pem.ts';
import { TrustBundle } from '../../../src/identity/trust-bundle.ts';
import { svidOf, svidProblems } from '../../../src/identity/x509-svid.ts';
import { silentLogger } from '../../../src/runtime/output/log.ts';
import type { Draw } from '../../random-config/draw.ts';
import { abbreviate, type FuzzEdge, type FuzzSubject, type SubjectMaker } from '../edge.ts';
import { oddText } from '../grammar/breaking-words.ts';
import { mutatedBytes, randomBytes } from '../grammar/bytes.ts';
import { randomMessage } from '../grammar/protobuf.ts';
import { withinCpuLimit } from './thinking.ts';

export const identityMaker: SubjectMaker = {
  program: 'pilot-discovery',
  name: 'identity',
  edges: ['certificate-request', 'bearer-token', 'client-certificate', 'forwarded-certificate'],
  batch: 50,
  open: () => openIdentity(),
};

const trustDomain = 'cluster.local';
const ownIdentity = `spiffe://${trustDomain}/ns/shop/sa/cart`;
const controlPlaneIdentity = `spiffe://${trustDomain}/ns/istio-system/sa/istiod`;
const newKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

async function openIdentity(): Promise<FuzzSubject> {
  const edges = [certificateRequest(), await bearerTokens(), clientCertificates(), forwarded()];
  return { edges, findProblems: () => Promise.resolve([]), close: () => Promise.resolve() };
}

function authorityOf() {
  const privateKey = newKey();
  const now = Date.now();
  const life = { notBefore: new Date(now - 60_000), notAfter: new Date(now + 24 * 3_600_000) };
  const certificate = readCertificate(issueRoot(privateKey, { organization: trustDomain, commonName: 'fuzz' }, life));
  return { issuer: { certificate, privateKey }, life };
}

const anonymousPeer: CallPeer = { host: '10.0.0.1', address: '10.0.0.1:1', metadata: () => [], certificate: undefined };
const withHeader = (name: string, value: string): CallPeer => ({
  ...anonymousPeer,
  metadata: (headerName) => (headerName === name ? [value] : []),
});

// ---- certificate requests

/**
 * The certificate service without its threads: each issued certificate must have the caller's identity and the
 * requested key.
 */
function certificateRequest(): FuzzEdge {
  const { issuer, life } = authorityOf();
  const material = buildAuthorityMaterial(issuer, [], [issuer.certificate], new Date());
  const inForce: ActiveAuthority = {
    material,
    serverAuthority: material,
    authorities: [material],
    tainted: [],
    roots: [material.id],
    bundle: new TrustBundle(trustDomain, [material.root]),
  };
  const service = new CertificateService({
    authenticators: [{ name: 'test', authenticate: () => ({ identities: [ownIdentity] }) }],
    activeAuthority: () => inForce,
    signer: {
      async sign({ request, uri, notBefore, notAfter }) {
        try {
          const leaf = issueLeaf(
            issuer,
            verifyRequest(request),
            { uris: [uri], dns: [], ips: [] },
            { notBefore, notAfter },
          );
          return { leaf: pemOf('CERTIFICATE', leaf), serialNumber: readCertificate(leaf).serialNumber };
        } catch (error) {
          if (error instanceof CertificateRequestError) return { refused: error.message };
          throw error;
        }
      },
      verify: () => Promise.reject(new Error('no other signer is configured')),
    },
    trustDomains: () => [trustDomain],
    limits: { defaultMs: 3_600_000, maxMs: 7_200_000 },
    now: () => life.notBefore,
    logger: silentLogger,
  });
  const keys = [newKey(), generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey];
  const requests = keys.map((key) => createRequest(key, [controlPlaneIdentity]));
  const spkis = keys.map((key) => createPublicKey(key).export({ format: 'der', type: 'spki' }));
  return {
    name: 'certificate-request',
    program: 'pilot-discovery',
    async attack(draw) {
      const bytes = requestMessage(draw, requests);
      const outcome = await withinCpuLimit(abbreviate(bytes), () =>
        service.create(bytes, anonymousPeer).catch((error: unknown) => error),
      );
      if (outcome instanceof IssuanceRejection && outcome.code !== status.INTERNAL) return abbreviate(bytes);
      if (!Buffer.isBuffer(outcome)) throw new Error(`no refusal: ${String(outcome)}`, { cause: outcome });
      const [leaf] = readCertificates(fromBinary(IstioCertificateResponseSchema, outcome).certChain[0]!);
      const problems = svidProblems(leaf!);
      const uris = leaf!.alternativeNames?.uris.join();
      if (uris !== ownIdentity || problems.length > 0) throw new Error(`a certificate of ${uris}: ${problems.join()}`);
      const spki = leaf!.publicKey.export({ format: 'der', type: 'spki' });
      if (!spkis.some((requestKey) => requestKey.equals(spki)))
        throw new Error('a certificate for a key that signed nothing');
      return abbreviate(bytes);
    },
  };
}

function requestMessage(draw: Draw, requests: readonly string[]): Uint8Array {
  const pem = draw.pick(requests);
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64');
  const csr = draw.one(
    () => pemOf('CERTIFICATE REQUEST', mutatedBytes(draw, der)),
    () => pemOf('CERTIFICATE REQUEST', mutatedBytes(draw, der, 1)),
    () => pemOf(draw.pick(['CERTIFICATE REQUEST', 'CERTIFICATE', 'X']), randomBytes(draw, draw.int(0, 200))),
    () => mutatedBytes(draw, Buffer.from(pem)).toString('latin1'),
    () => `${draw.pick(requests)}${oddText(draw)}${draw.chance(0.5) ? pem : ''}`,
    () => oddText(draw),
  );
  if (draw.chance(0.2)) return randomMessage(draw, IstioCertificateRequestSchema, { csr: [csr, pem] });
  const validityDuration = draw.pick([0n, 60n, -1n, 2n ** 62n]);
  const bytes = toBinary(
    IstioCertificateRequestSchema,
    create(IstioCertificateRequestSchema, { csr, validityDuration }),
  );
  return draw.chance(0.1) ? mutatedBytes(draw, bytes) : bytes;
}

// ---- tokens

async function bearerTokens(): Promise<FuzzEdge> {
  const key = newKey();
  const publicKey = await exportJWK(createPublicKey(key));
  const keys = localKeys({ keys: [{ ...publicKey, kid: 'k0' }] });
  const rule = { issuer: 'https://issuer', audiences: ['istio-ca'], keys };
  const isRevoked = (id: string): boolean => id === 'revoked';
  const authenticator = bearerToken({ name: 'test', rule, trustDomain: () => trustDomain, isRevoked });
  const exp = Math.floor(Date.now() / 1_000) + 24 * 3_600;
  const sign = (account: string, claims: object, signingKey = key): Promise<string> =>
    new SignJWT({ sub: `system:serviceaccount:${account}`, iss: 'https://issuer', aud: 'istio-ca', exp, ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'k0' })
      .sign(signingKey);
  const validToken = await sign('shop:cart', {});
  const invalidTokens = await Promise.all([
    sign('istio-system:istiod', { exp: 1 }),
    sign('istio-system:istiod', { nbf: 9e9 }),
    sign('istio-system:istiod', { aud: 'other' }),
    sign('istio-system:istiod', { iss: 'https://other' }),
    sign('istio-system:istiod', { jti: 'revoked' }),
    sign('istio-system:istiod', {}, newKey()),
  ]);
  const spki = createPublicKey(key).export({ format: 'pem', type: 'spki' }) as string;
  const [goodHeader, goodClaims] = validToken.split('.') as [string, string, string];
  return {
    name: 'bearer-token',
    program: 'pilot-discovery',
    async attack(draw) {
      const token = oddToken(draw, validToken, invalidTokens, { spki, publicKey });
      const peer = withHeader('authorization', `Bearer ${token}`);
      const outcome = await withinCpuLimit(abbreviate(token), () => authenticate([authenticator], peer));
      if ('failure' in outcome) return abbreviate(token);
      // Different base64 texts can encode the same bytes, even of a signature, so the signed text is compared.
      if (!token.startsWith(`${goodHeader}.${goodClaims}.`) || outcome.identities.join() !== ownIdentity) {
        throw new Error(`${outcome.identities.join()} by an unsigned token: ${token}`);
      }
      return abbreviate(token);
    },
  };
}

const encodeJson = (value: unknown): string => Buffer.from(JSON.stringify(value) ?? '').toString('base64url');

function oddToken(
  draw: Draw,
  validToken: string,
  invalidTokens: readonly string[],
  knownKey: { readonly spki: string; readonly publicKey: object },
): string {
  const [header, claims, signature] = validToken.split('.') as [string, string, string];
  const read = (encodedPart: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(encodedPart, 'base64url').toString());
  const value = (): unknown => draw.pick([oddText(draw), 0, -1, 9e15, null, true, [], {}, ['istio-ca'], '__proto__']);
  const changePart = (encodedPart: string, names: readonly string[]): string =>
    encodeJson({ ...read(encodedPart), ...Object.fromEntries(draw.list(1, 3, () => [draw.pick(names), value()])) });
  const asOther = encodeJson({ ...read(claims), sub: 'system:serviceaccount:istio-system:istiod' });
  return draw.one(
    () => mutatedBytes(draw, Buffer.from(draw.pick([validToken, ...invalidTokens]))).toString('latin1'),
    () => mutatedBytes(draw, Buffer.from(validToken), 1).toString('latin1'),
    () => draw.pick(invalidTokens),
    () => `${header}.${changePart(claims, ['sub', 'iss', 'aud', 'exp', 'nbf', 'jti', oddText(draw)])}.${signature}`,
    () => `${changePart(header, ['alg', 'kid', 'crit', 'b64', 'typ', 'zip', 'x5c', 'jku'])}.${claims}.${signature}`,
    () => `${encodeJson({ alg: draw.pick(['none', 'None', 'HS256', '', 'ES256K', 'RS256']), kid: 'k0' })}.${asOther}.`,
    () => {
      const head = encodeJson({ alg: 'HS256', kid: 'k0' });
      const mac = createHmac('sha256', draw.pick([knownKey.spki, JSON.stringify(knownKey.publicKey), '']));
      return `${head}.${asOther}.${mac.update(`${head}.${asOther}`).digest('base64url')}`;
    },
    () => `${encodeJson({ alg: 'ES256', jwk: knownKey.publicKey, jku: 'http://127.0.0.1:1' })}.${asOther}.${signature}`,
    () =>
      draw
        .list(0, 5, () => draw.pick([header, claims, signature, ...invalidTokens.join('.').split('.'), '']))
        .join('.'),
    () => `${header}.${asOther}.${draw.pick(['', Buffer.alloc(64).toString('base64url'), signature])}`,
  );
}

// ---- client certificates

/**
 * A certificate that OpenSSL has verified is parsed twice: the identities that Node reports must equal those in the
 * certificate.
 */
function clientCertificates(): FuzzEdge {
  const { issuer, life } = authorityOf();
  const otherAuthority = authorityOf();
  const key = createPublicKey(newKey());
  const leaf = (uris: readonly string[], dns: readonly string[] = [], leafIssuer = issuer): Buffer =>
    Buffer.from(issueLeaf(leafIssuer, key, { uris: [...uris], dns: [...dns], ips: [] }, life));
  const ownLeaf = leaf([ownIdentity]);
  const foreignLeaf = leaf([controlPlaneIdentity], [], otherAuthority.issuer);
  const originalBody = bodyOf(ownLeaf);
  const authenticator = workloadsOfMesh(clientCertificate(), () => [trustDomain]);
  return {
    name: 'client-certificate',
    program: 'pilot-discovery',
    async attack(draw) {
      const isHonest = draw.chance(0.4);
      const der = isHonest
        ? namedOddly(draw, leaf)
        : mutatedBytes(draw, draw.pick([ownLeaf, ownLeaf, foreignLeaf]), draw.int(1, 4));
      await withinCpuLimit(abbreviate(der), async () => {
        let certificate: ReturnType<typeof readCertificate>;
        try {
          certificate = readCertificate(der);
        } catch (error) {
          if (error instanceof CertificateError) return;
          throw error;
        }
        const path = findPath({ certificate, intermediates: [], roots: [issuer.certificate], at: new Date() });
        const id = svidOf(certificate);
        if (!isHonest && 'path' in path && !bodyOf(der)?.equals(originalBody!)) {
          throw new Error(`an unsigned certificate is accepted as ${JSON.stringify(id)}`);
        }
        const peer = {
          ...anonymousPeer,
          certificate: { raw: Buffer.from(der), serialNumber: certificate.serialNumber },
        };
        const outcome = await authenticate([authenticator], peer);
        if ('failure' in outcome) return;
        const uris = certificate.alternativeNames?.uris ?? [];
        const invented = outcome.identities.filter((identity) => !uris.includes(identity));
        if (invented.length > 0) throw new Error(`${invented.join()} out of ${uris.join()}`);
      });
      return abbreviate(der);
    },
  };
}

/** The signed part; `undefined` without one. */
function bodyOf(der: Uint8Array): Buffer | undefined {
  const bytes = Buffer.from(der);
  // A SEQUENCE with a two-byte length that begins with another such SEQUENCE.
  if (bytes[0] !== 0x30 || bytes[1] !== 0x82 || bytes[4] !== 0x30 || bytes[5] !== 0x82) return undefined;
  return bytes.subarray(4, 8 + bytes.readUInt16BE(6));
}

function namedOddly(draw: Draw, leaf: (uris: readonly string[], dns: readonly string[]) => Buffer): Buffer {
  const ascii = (text: string): string => Buffer.from(text.slice(0, 500)).toString('ascii');
  const oddHeader = (): string =>
    ascii(
      draw.one(
        () => oddText(draw),
        () => `${oddText(draw)}, URI:${controlPlaneIdentity}`,
        () => `", URI:${controlPlaneIdentity}`,
        () => `x, URI:${controlPlaneIdentity}, y`,
        () => `x\\", URI:${controlPlaneIdentity}, "`,
        () => `${ownIdentity}\u0000${oddText(draw)}`,
        () => `${ownIdentity}${draw.pick(['/', '?', '#x', '/..', '%2f', ' ', '\n'])}`,
        () => draw.pick([ownIdentity, 'spiffe://other/ns/shop/sa/cart', `URI:${controlPlaneIdentity}`]),
      ),
    );
  return leaf(draw.list(0, 3, oddHeader), draw.list(0, 3, oddHeader));
}

// ---- headers of gateways

function forwarded(): FuzzEdge {
  const authenticator = workloadsOfMesh(
    forwardedCertificate(['10.0.0.0/8'], () => trustDomain),
    () => [trustDomain],
  );
  const header = 'x-forwarded-client-cert';
  return {
    name: 'forwarded-certificate',
    program: 'pilot-discovery',
    async attack(draw) {
      const headerPart = (): string =>
        draw.pick([
          `URI=${ownIdentity}`,
          `URI="${controlPlaneIdentity}"`,
          'By=x',
          'Hash=1',
          `Subject="CN=a;URI=${controlPlaneIdentity}"`,
          oddText(draw),
        ]);
      const text = draw.list(0, 5, () => `${headerPart()}${draw.pick([';', ',', '"', '\\', '', '\\"'])}`).join('');
      const otherRequest = {
        ...withHeader(header, text),
        host: draw.pick(['127.0.0.1', '::1', '11.0.0.1', '', ':']),
      };
      const peers = [otherRequest, withHeader(header, text)];
      const outcomes = await withinCpuLimit(abbreviate(text), () =>
        Promise.all(peers.map((peer) => authenticate([authenticator], peer))),
      );
      if ('identities' in outcomes[0]!) throw new Error(`an identity by a header of an untrusted peer: ${text}`);
      const [, fromGateway] = outcomes;
      if ('identities' in fromGateway! && fromGateway.identities.length !== 1)
        throw new Error(`two by one header: ${text}`);
      return abbreviate(text);
    },
  };
}
