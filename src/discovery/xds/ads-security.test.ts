/** Tests authentication and authorization on each port. */

import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { credentials } from '@grpc/grpc-js';
import { test as base, describe, expect, vi } from 'vitest';
import { clusterType, secretType } from '../../../machines/discovery/xds/ads-types.ts';
import { AdsTestClient } from '../../../test/ads-client.ts';
import { type CertificateAuthority, createAuthority } from '../../../test/certs/authority.ts';
import { eventuallyHolds } from '../../../test/harness/eventually.ts';
import { flags, frame, frameTypes, literal, RawHttp2, requestHeaders } from '../../../test/harness/raw-http2.ts';
import { ScriptedSource } from '../../../test/simulation/scripted-source.ts';
import { readCertificate } from '../../identity/certificate.ts';
import { type Issuer, issueIntermediate, issueLeaf, issueRoot } from '../../identity/issue.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import type { Authenticator } from './access/authenticator.ts';
import { clientCertificate } from './access/client-certificate.ts';
import { type AdsServerOptions, createAdsServer } from './ads-server.ts';
import { SecurePortCredentials } from './secure-port/server-certificates.ts';

const node = { id: 'sidecar~10.0.0.1~app.shop~shop.svc.cluster.local' };
const shop = 'spiffe://cluster.local/ns/shop/sa/default';
const code = { permissionDenied: 7, unavailable: 14, unauthenticated: 16 };

interface World {
  readonly source: ScriptedSource;
  readonly warnings: string[];
  readonly authority: CertificateAuthority;
  readonly securePort: number;
  plaintext(): AdsTestClient;
  /** Creates a client with a certificate for these names; without names, the client has no certificate. */
  createSecureClient(names?: readonly string[], authority?: Issues): AdsTestClient;
  identities(): readonly (string | undefined)[];
  /** Addresses of the connected clients. */
  addresses(): readonly string[];
  /** Replaces the trusted roots for client certificates. */
  trust(...authorities: readonly Root[]): void;
}

type Issues = Pick<CertificateAuthority, 'issue'>;
type Root = Pick<CertificateAuthority, 'certificate'>;

const test = base.extend<{ start: (options?: Partial<AdsServerOptions>) => Promise<World> }>({
  start: async ({ task: _ }, use) => {
    const endings: (() => void)[] = [];
    await use(async (options = {}) => {
      const authority = createAuthority();
      const source = new ScriptedSource();
      source.set(clusterType, 'a');
      source.set(secretType, 'key');
      const warnings: string[] = [];
      const logger = { ...silentLogger, warn: (event: string) => void warnings.push(event) };
      const server = createAdsServer({ source, logger, authenticators: [clientCertificate()], ...options });
      endings.push(() => server.close());
      const port = portOf(authority);
      const ports = {
        plaintext: (await server.listen('127.0.0.1:0')).port,
        secure: (await server.listen('127.0.0.1:0', port.credentials)).port,
      };
      const closeAtEnd = (client: AdsTestClient): AdsTestClient => {
        endings.unshift(() => client.close());
        return client;
      };
      return {
        source,
        warnings,
        authority,
        securePort: ports.secure,
        plaintext: () => closeAtEnd(new AdsTestClient(ports.plaintext)),
        createSecureClient(names = [], issuer = authority) {
          const ownKey = names.length === 0 ? undefined : issuer.issue(names);
          const [key, chain] =
            ownKey === undefined ? [null, null] : [ownKey.privateKey, ownKey.certificate].map(Buffer.from);
          const root = Buffer.from(authority.certificate);
          return closeAtEnd(new AdsTestClient(ports.secure, credentials.createSsl(root, key, chain)));
        },
        trust: (...authorities) => port.trust(authorities),
        addresses: () => server.connections().map(({ peer }) => peer),
        identities: () => server.connections().map(({ identity }) => identity.verifiedIdentity),
      };
    });
    for (const end of endings) end();
  },
});

function portOf(authority: CertificateAuthority) {
  const { certificate, privateKey, serialNumber } = authority.issue(['127.0.0.1']);
  const [chain, key] = [Buffer.from(certificate), Buffer.from(privateKey)];
  const certificateFields = { chain, key, serialNumber, notAfter: new Date() };
  const trusting = (authorities: readonly Root[]) => ({
    ...certificateFields,
    ca: Buffer.from(authorities.map((one) => one.certificate).join('\n')),
  });
  const choices = { cipherSuites: [], minVersion: 'TLSv1.2' } as const;
  const port = new SecurePortCredentials(choices, trusting([authority]));
  return {
    credentials: port,
    trust: (authorities: readonly Root[]) => port.replaceCertificate(choices, trusting(authorities)),
  };
}

describe('the secure xDS port', () => {
  test('serves a client whose certificate matches its node', async ({ start }) => {
    const world = await start();
    const stream = world.createSecureClient([shop]).delta();
    stream.send({ node, typeUrl: clusterType });
    expect((await stream.next()).resources).toHaveLength(1);
    expect(world.identities()).toEqual([shop]);
  });

  test.for([
    ['presents no certificate', []],
    ['presents a certificate without a URI', ['shop.example']],
    ['presents a certificate of two workloads', [shop, 'spiffe://cluster.local/ns/bank/sa/default']],
  ] as const)('rejects a client with UNAUTHENTICATED if it %s', async ([, names], { start }) => {
    const world = await start();
    const stream = world.createSecureClient(names).sotw();
    stream.send({ node, typeUrl: clusterType });
    expect(await stream.ended).toMatchObject({
      code: code.unauthenticated,
      details: expect.stringContaining('[CLIENT_UNAUTHENTICATED]'),
    });
    expect(world.warnings).toEqual(['peer.unauthenticated']);
  });

  test('rejects a client with UNAUTHENTICATED if its certificate is from an untrusted CA', async ({ start }) => {
    const world = await start();
    const stream = world.createSecureClient([shop], createAuthority('another')).sotw();
    stream.send({ node, typeUrl: clusterType });
    expect([code.unauthenticated, code.unavailable]).toContain((await stream.ended).code);
    expect(world.identities()).toEqual([]);
  });

  test('rejects a client with PERMISSION_DENIED if its node is in another namespace (row 23)', async ({ start }) => {
    const world = await start();
    const stream = world.createSecureClient([shop]).sotw();
    stream.send({ node: { ...node, metadata: { NAMESPACE: 'b' } }, typeUrl: clusterType });
    expect(await stream.ended).toMatchObject({
      code: code.permissionDenied,
      details: expect.stringMatching(/namespace b, got spiffe:.* \[NODE_FORBIDDEN\]$/),
    });
  });

  test.for([123, true])(
    'rejects a node with PERMISSION_DENIED if its NAMESPACE is %s',
    async (NAMESPACE, { start }) => {
      const world = await start();
      const stream = world.createSecureClient([shop]).sotw();
      stream.send({ node: { ...node, metadata: { NAMESPACE } }, typeUrl: clusterType });
      expect(await stream.ended).toMatchObject({
        code: code.permissionDenied,
        details: `authorization failed: metadata NAMESPACE must be a string, got ${NAMESPACE} [NODE_FORBIDDEN]`,
      });
    },
  );

  test('does not compare identity and node if the check is disabled', async ({ start }) => {
    const stream = (await start({ checksIdentity: false })).createSecureClient([shop]).sotw();
    stream.send({ node: { ...node, metadata: { NAMESPACE: 'b' } }, typeUrl: clusterType });
    await stream.next();
  });

  // See issue 33, item 9: Node keeps the first of two authorization headers, but a proxy in front of the server may have checked the second.
  test.for([['authorization'], ['clusterid'], ['x-forwarded-client-cert']])(
    'rejects a stream with two %s headers before authentication',
    async ([name], { start, onTestFinished }) => {
      const seenValues: (readonly string[])[] = [];
      const authenticate: Authenticator['authenticate'] = ({ metadata }) => {
        seenValues.push(metadata(name!));
        return { failure: 'unknown' };
      };
      const world = await start({ authenticators: [{ name: 'token', authenticate }] });
      const raw = new RawHttp2(world.securePort, { tls: true });
      onTestFinished(() => raw.close());
      await raw.begin();
      const openStream = (stream: number, ...values: string[]) =>
        raw.send(
          frame(
            'headers',
            flags.endHeaders,
            stream,
            requestHeaders(
              undefined,
              values.map((value) => literal(name!, value)),
            ),
          ),
        );
      openStream(1, 'Bearer one', 'Bearer two');
      await eventuallyHolds(() => expect(raw.got.get(frameTypes.headers)).toBe(1));
      expect(seenValues).toEqual([]);
      openStream(3, 'Bearer one');
      await eventuallyHolds(() => expect(raw.got.get(frameTypes.headers)).toBe(2));
      expect(seenValues).toEqual([['Bearer one']]);
    },
  );

  test('reads no request before authentication', async ({ start }) => {
    const pendingAuthentication = Promise.withResolvers<{ identities: string[] }>();
    const token: Authenticator = { name: 'token', authenticate: () => pendingAuthentication.promise };
    const world = await start({ authenticators: [token] });
    const stream = world.createSecureClient().sotw();
    stream.send({ node, typeUrl: clusterType });
    expect(await stream.unexpected()).toEqual([]);
    expect(world.source.nodes).toEqual([]);
    pendingAuthentication.resolve({ identities: [shop] });
    await stream.next();
  });

  test('passes headers and the peer address to authenticators', async ({ start }) => {
    const authenticate = vi.fn<Authenticator['authenticate']>(() => ({ identities: [shop] }));
    const world = await start({ authenticators: [{ name: 'headers', authenticate }] });
    const stream = world.createSecureClient().sotw();
    stream.send({ node, typeUrl: clusterType });
    await stream.next();
    const [peer] = authenticate.mock.calls[0]!;
    expect(peer.address).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(peer.metadata('user-agent')).toEqual([expect.stringContaining('grpc')]);
    expect(peer.metadata('authorization')).toEqual([]);
  });

  test('serves Secrets', async ({ start }) => {
    const stream = (await start()).createSecureClient([shop]).sotw();
    stream.send({ node, typeUrl: secretType, resourceNames: ['key'] });
    expect((await stream.next()).resources).toHaveLength(1);
  });
});

const keyOf = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

/** A root with an intermediate that issues client certificates. */
function deepAuthority(key = keyOf()): Root & Issues {
  const lifetime = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  const subject = { organization: 'cluster.local', commonName: 'deep' };
  const root: Issuer = { certificate: readCertificate(issueRoot(key, subject, lifetime)), privateKey: key };
  const privateKey = keyOf();
  const name = { ...subject, commonName: 'between' };
  const intermediate = readCertificate(issueIntermediate(root, createPublicKey(privateKey), name, lifetime));
  return {
    certificate: root.certificate.pem,
    issue(uris) {
      const ownKey = keyOf();
      const names = { uris, dns: [], ips: [] };
      const leaf = readCertificate(
        issueLeaf({ certificate: intermediate, privateKey }, createPublicKey(ownKey), names, lifetime),
      );
      return {
        certificate: leaf.pem + intermediate.pem,
        privateKey: ownKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
        serialNumber: leaf.serialNumber,
      };
    },
  };
}

function subscribe(client: AdsTestClient) {
  const stream = client.sotw();
  stream.send({ node, typeUrl: clusterType });
  return stream;
}

describe('the secure xDS port for a root that is no longer trusted', () => {
  test('rejects requests on existing connections until the root is trusted again', async ({ start }) => {
    const world = await start();
    const next = createAuthority('next');
    const [oldClient, newClient] = [world.createSecureClient([shop]), world.createSecureClient([shop], next)];
    const first = subscribe(oldClient);
    await first.next();
    world.trust(world.authority, next);
    await subscribe(oldClient).next();
    await subscribe(newClient).next();
    world.trust(next);
    expect(await subscribe(oldClient).ended).toMatchObject({ code: code.unavailable });
    await subscribe(newClient).next();
    // Existing streams stay open, as in Istio.
    first.send({ typeUrl: secretType, resourceNames: ['key'] });
    await first.next();
    world.trust(next, world.authority);
    await subscribe(world.createSecureClient([shop])).next();
  });

  test('accepts clients with an intermediate of another root', async ({ start }) => {
    const world = await start();
    const next = deepAuthority();
    world.trust(world.authority, next);
    const client = world.createSecureClient([shop], next);
    const first = subscribe(client);
    await first.next();
    world.trust(next);
    await subscribe(client).next();
    first.send({ typeUrl: secretType, resourceNames: ['key'] });
    await first.next();
    expect(world.identities()).toEqual([shop, shop]);
    world.trust(world.authority);
    expect(await subscribe(client).ended).toMatchObject({ code: code.unavailable });
  });

  test('keeps connections if the root is renewed with the same key', async ({ start }) => {
    const world = await start();
    const key = keyOf();
    world.trust(deepAuthority(key));
    const client = world.createSecureClient([shop], deepAuthority(key));
    await subscribe(client).next();
    world.trust(deepAuthority(key));
    await subscribe(client).next();
    expect(new Set(world.addresses()).size).toBe(1);
  });
});

describe('the plaintext xDS port', () => {
  test('does not authenticate clients', async ({ start }) => {
    const world = await start();
    const stream = world.plaintext().sotw();
    stream.send({ node, typeUrl: clusterType });
    await stream.next();
    expect(world.identities()).toEqual([undefined]);
  });

  test('serves Secrets to all clients if it is configured to', async ({ start }) => {
    const world = await start({ secretsOnPlaintext: true });
    const stream = world.plaintext().sotw();
    stream.send({ node, typeUrl: secretType, resourceNames: ['key'] });
    expect((await stream.next()).resources).toHaveLength(1);
    expect(world.source.nodes).toEqual([expect.objectContaining({ id: node.id, secretsUnverified: true })]);
    expect(world.warnings).toEqual([]);
  });

  test('does not affect the verification of clients on the TLS port', async ({ start }) => {
    const world = await start({ secretsOnPlaintext: true, authenticators: [] });
    const stream = world.createSecureClient().sotw();
    stream.send({ node, typeUrl: secretType, resourceNames: ['key'] });
    await eventuallyHolds(() => expect(world.warnings).toEqual(['secrets.withheld']));
    expect(await stream.unexpected()).toEqual([]);
  });

  test('does not respond to a request for Secrets, and logs one warning (row 24)', async ({ start }) => {
    const world = await start();
    const stream = world.plaintext().delta();
    stream.send({ node, typeUrl: secretType, resourceNamesSubscribe: ['key'] });
    stream.send({ typeUrl: secretType, resourceNamesSubscribe: ['other'] });
    expect(await stream.unexpected()).toEqual([]);
    await eventuallyHolds(() => expect(world.warnings).toEqual(['secrets.withheld']));
    stream.send({ typeUrl: clusterType });
    await stream.next();
  });
});
