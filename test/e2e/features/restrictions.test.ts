/**
 * Effect of unusual restrictions in a real Envoy, row by row (test/restrictions/table.ts), and of client certificates without a trusted authority.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuthority } from '../../certs/authority.ts';
import { isFull, sized } from '../../harness/size-of-run.ts';
import { issuer, issuersKeys, type RestrictedRequest, type RestrictionRow, table } from '../../restrictions/table.ts';
import type { HttpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { joinDocuments, routedHost, secret } from './harness/gateway-objects.ts';
import { gateway, object, virtualService } from './harness/objects.ts';
import { bearer, TokenIssuer } from './harness/tokens.ts';

const [web, cart] = ['spiffe://cluster.local/ns/shop/sa/web', 'spiffe://cluster.local/ns/shop/sa/cart'];
const issuing = new TokenIssuer(issuer);
const foreignCertificate = createAuthority('of nobody').issue(['client.test']);

let mesh: FeatureMesh;
let backend: HttpBackend;
let ports: Record<'gateway' | 'sidecar' | 'tls', number>;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      edge: { type: 'router', labels: { istio: 'edge' }, delta: true },
      inner: { type: 'router', labels: { istio: 'inner' }, identity: web },
      cart: { labels: { app: 'cart' }, identity: cart },
      // Uses TLS of its Sidecar object, and has no mesh certificates.
      plain: { labels: { app: 'plain' } },
    },
    env: { PILOT_SECRETS_ON_PLAINTEXT: 'true' },
    explains: false,
  });
  backend = await mesh.http('cart');
  ports = await mesh.ports('gateway', 'sidecar', 'tls');
});

afterAll(() => mesh?.stop());

/** Sidecars on the same machine would otherwise bind the same outbound ports. */
const quietSidecar = object('networking.istio.io/v1', 'Sidecar', 'shop', 'quiet', { egress: [{ hosts: ['~/*'] }] });

/** A gateway and a sidecar in front of the same application. */
function commonObjects(): string {
  const ingress = {
    port: { number: ports.sidecar, name: 'http', protocol: 'HTTP' },
    bind: '127.0.0.1',
    defaultEndpoint: `127.0.0.1:${backend.port}`,
  };
  return joinDocuments(
    routedHost('shop.test', backend, ['front']),
    virtualService('*', {
      ...{ hosts: ['*.shop.test'], gateways: ['front'] },
      http: [{ route: [{ destination: { host: 'cart.backends.test' } }] }],
    }),
    gateway('front', { istio: 'edge' }, [{ port: ports.gateway, protocol: 'HTTP', hosts: ['*'] }]),
    object('networking.istio.io/v1', 'Sidecar', 'shop', 'cart', {
      workloadSelector: { labels: { app: 'cart' } },
      ingress: [ingress],
      egress: [{ hosts: ['~/*'] }],
    }),
    quietSidecar,
  );
}

async function isLetIn(
  kind: RestrictionRow['kind'],
  { token, headers, ...requested }: RestrictedRequest,
): Promise<boolean> {
  const authorization = token && bearer(issuing.token(token));
  const to = { host: 'shop.test', path: '/', ...requested, headers: { ...headers, ...authorization } };
  const response =
    kind === 'PeerAuthentication'
      ? mesh.request('cart', { port: ports.sidecar, ...to, inbound: true })
      : mesh.request('edge', { port: ports.gateway, ...to });
  return response.then(
    ({ status }) => status === 200,
    () => false,
  );
}

const acceptedRows = table.flatMap((row) => ('refused' in row.outcome ? [] : [{ ...row, outcome: row.outcome }]));

/** One in three of each kind; test/restrictions checks the generated filters of all. */
const appliedRows = acceptedRows.filter((_, index) => isFull || index % 3 === 0);

test.each(appliedRows)(
  'Envoy applies the field $field of $kind in the form "$written"',
  async ({ kind, spec, outcome }) => {
    const specText = JSON.stringify(spec).replaceAll(JSON.stringify(issuersKeys), JSON.stringify(issuing.keySet));
    await mesh.apply(
      joinDocuments(commonObjects(), object('security.istio.io/v1', kind, 'shop', 'odd', JSON.parse(specText))),
    );
    for (const requested of outcome.lets)
      expect([requested, await isLetIn(kind, requested)]).toEqual([requested, true]);
    for (const requested of outcome.keepsOut)
      expect([requested, await isLetIn(kind, requested)]).toEqual([requested, false]);
  },
);

describe('a restriction that is rejected when it is first read', () => {
  const refusedRows = table.flatMap((row) => ('refused' in row.outcome ? [row] : []));
  const selector = { matchLabels: { istio: 'edge' } };
  const oddPolicy = (kind: RestrictionRow['kind'], name: string, spec: object): string =>
    object('security.istio.io/v1', kind, 'shop', name, spec as never);
  const refusedFor = async (text: string): Promise<void> =>
    mesh.apply(joinDocuments(commonObjects(), text), { invalid: true });
  const closures = async (): Promise<string> => mesh.page('/debug/push_status');

  test('denies every request until it is repaired or removed, if it is an AuthorizationPolicy', async () => {
    const policy = (of: object): string => oddPolicy('AuthorizationPolicy', 'first', { selector, rules: [of] });
    const wrongPolicy = policy({ from: [{ source: { ipBlocks: ['localhost'] } }] });
    await refusedFor(wrongPolicy);
    expect(await isLetIn('AuthorizationPolicy', {})).toBe(false);
    // A policy of another kind is irrelevant.
    expect(await isLetIn('PeerAuthentication', {})).toBe(true);
    expect(await closures()).toContain('every request to the workloads of namespace shop with istio=edge is denied');
    expect(await mesh.page('/metrics')).toMatch(/^pilot_refused_restrictions 1$/m);
    await mesh.apply(joinDocuments(commonObjects(), policy({})));
    expect(await isLetIn('AuthorizationPolicy', {})).toBe(true);
    expect(await closures()).not.toContain('is denied');
    // The policy now has a previous valid version, which applies.
    await refusedFor(wrongPolicy);
    expect(await isLetIn('AuthorizationPolicy', {})).toBe(true);
    await mesh.apply(commonObjects());
    await refusedFor(wrongPolicy);
    expect(await isLetIn('AuthorizationPolicy', {})).toBe(false);
    await mesh.apply(commonObjects());
    expect(await isLetIn('AuthorizationPolicy', {})).toBe(true);
  });

  test('rejects every token in any location, if it is a RequestAuthentication', async () => {
    const jwt = (keyFields: object): string =>
      oddPolicy('RequestAuthentication', 'first', { selector, jwtRules: [{ issuer, ...keyFields }] });
    await refusedFor(jwt({ jwks: 'no keys' }));
    expect(await isLetIn('RequestAuthentication', {})).toBe(true);
    expect(await isLetIn('RequestAuthentication', { token: {} })).toBe(false);
    expect(await isLetIn('RequestAuthentication', { token: { iss: 'https://other.test' } })).toBe(false);
    expect(await isLetIn('RequestAuthentication', { path: `/?access_token=${issuing.token({})}` })).toBe(false);
    await refusedFor(jwt({ jwks: issuing.keySet, fromHeaders: [{ name: 'x-token' }, { name: 'no header' }] }));
    expect(await isLetIn('RequestAuthentication', { headers: { 'x-token': issuing.token({}) } })).toBe(false);
    expect(await isLetIn('RequestAuthentication', { token: {} })).toBe(false);
    await mesh.apply(joinDocuments(commonObjects(), jwt({ jwks: issuing.keySet })));
    expect(await isLetIn('RequestAuthentication', { token: {} })).toBe(true);
  });

  test('allows no plaintext, if it is a PeerAuthentication', async () => {
    const peers = (mode: string): string =>
      oddPolicy('PeerAuthentication', 'first', { selector: { matchLabels: { app: 'cart' } }, mtls: { mode } });
    await refusedFor(peers('permissive'));
    expect(await isLetIn('PeerAuthentication', {})).toBe(false);
    await mesh.apply(joinDocuments(commonObjects(), peers('PERMISSIVE')));
    expect(await isLetIn('PeerAuthentication', {})).toBe(true);
  });

  // One row for each reason of rejection; the result in Envoy is the same for all.
  test.each(refusedRows.filter((_, index) => index % sized({ short: 60, full: 20 }) === 0))(
    'closes the proxy if the field $field of $kind has the form "$written"',
    async ({ kind, spec }) => {
      await refusedFor(oddPolicy(kind, `odd-${refusedRows.findIndex((row) => row.spec === spec)}`, spec));
      expect(await isLetIn(kind, kind === 'RequestAuthentication' ? knownRequest : {})).toBe(false);
    },
  );
});

const knownRequest: RestrictedRequest = { token: {} };

describe('a client with a self-signed certificate', () => {
  const roots = (): object => ({ 'ca.crt': mesh.authority.certificate });
  const client = (): object => mesh.authority.issue(['client.test']);

  /** Whether the server admits clients with a certificate of the authority, of an unknown authority, and without a certificate. */
  async function letIn(
    proxy: string,
    { host = 'web.test', retryForMs }: { host?: string; retryForMs?: number } = {},
  ): Promise<[known: boolean, strange: boolean, none: boolean]> {
    const { certificate, privateKey } = client() as typeof foreignCertificate;
    const isAccepted = (shownTls: object): Promise<boolean> =>
      mesh
        .request(proxy, {
          port: ports.tls,
          host,
          inbound: proxy === 'plain',
          ...(retryForMs !== undefined && { retryForMs }),
          tls: { servername: host, ca: mesh.authority.certificate, ...shownTls },
        })
        .then(
          ({ status }) => status === 200,
          () => false,
        );
    return [
      await isAccepted({ cert: certificate, key: privateKey }),
      await isAccepted({ cert: foreignCertificate.certificate, key: foreignCertificate.privateKey }),
      await isAccepted({}),
    ];
  }

  const server = (
    tls: object,
    host = 'web.test',
  ): { port: number; protocol: string; hosts: string[]; tls: object } => ({
    ...{ port: ports.tls, protocol: 'HTTPS', hosts: [host] },
    tls,
  });

  const pair = (): { serverCertificate: string; privateKey: string } => {
    const ownCertificate = mesh.authority.issue(['web.test']);
    return {
      serverCertificate: mesh.file('own.crt', ownCertificate.certificate),
      privateKey: mesh.file('own.key', ownCertificate.privateKey),
    };
  };

  const at = (proxy: string, tls: object, ...extraObjects: string[]): Promise<void> =>
    mesh.apply(
      joinDocuments(
        gateway('front', { istio: proxy }, [server(tls)]),
        routedHost('web.test', backend, ['front']),
        quietSidecar,
        ...extraObjects,
      ),
    );

  test.each(['edge', 'inner'])(
    'is rejected in MUTUAL mode for each form of the CA certificate (proxy %s)',
    async (proxy) => {
      const caCertificates = mesh.file('ca.crt', mesh.authority.certificate);
      const ownCertificate = mesh.authority.issue(['web.test']);
      await at(proxy, { mode: 'MUTUAL', tlsCertificates: [{ ...pair(), caCertificates }] });
      expect(await letIn(proxy)).toEqual([true, false, false]);
      await at(proxy, { mode: 'MUTUAL', tlsCertificates: [pair()], caCertificates });
      expect(await letIn(proxy)).toEqual([true, false, false]);
      await at(proxy, { mode: 'MUTUAL', credentialName: 'web' }, secret('web', ownCertificate, roots()));
      expect(await letIn(proxy)).toEqual([true, false, false]);
      await at(proxy, { mode: 'OPTIONAL_MUTUAL', credentialName: 'web' }, secret('web', ownCertificate, roots()));
      expect(await letIn(proxy)).toEqual([true, false, true]);
      await at(
        proxy,
        { mode: 'MUTUAL', credentialName: 'web', subjectAltNames: ['other.test'] },
        secret('web', ownCertificate, roots()),
      );
      expect(await letIn(proxy)).toEqual([false, false, false]);
    },
  );

  test.each(['MUTUAL', 'OPTIONAL_MUTUAL'])(
    'is rejected in %s mode if the CA certificate is missing, which makes the object invalid',
    async (mode) => {
      const refusedObjects = joinDocuments(
        gateway('front', { istio: 'edge' }, [server({ mode, tlsCertificates: [pair()] })]),
        quietSidecar,
        routedHost('web.test', backend, ['front']),
      );
      await mesh.apply(quietSidecar);
      await mesh.apply(refusedObjects, { invalid: true });
      expect(await mesh.envoy('edge').admin('/listeners')).not.toContain(`:${ports.tls}`);
      expect(await letIn('edge', { retryForMs: 0 })).toEqual([false, false, false]);
    },
  );

  test('is rejected if the Secret has no CA certificate or loses it', async () => {
    const ownCertificate = mesh.authority.issue(['web.test']);
    const objects = (extraTls: object): Parameters<typeof at> => [
      'edge',
      { mode: 'MUTUAL', credentialName: 'late' },
      secret('late', ownCertificate, extraTls),
    ];
    await at(...objects({}));
    expect(await letIn('edge')).toEqual([false, false, false]);
    expect(await mesh.page('/debug/push_status')).toContain(
      'late-cacert: Secret shop/late has no entry ca.crt (or cacert)',
    );
    await at(...objects(roots()));
    expect(await letIn('edge')).toEqual([true, false, false]);
    await at(...objects({}));
    // Envoy keeps the previous CA certificate.
    expect(await letIn('edge')).toEqual([true, false, false]);
    expect(await mesh.page('/debug/push_status')).toContain('late-cacert: Secret shop/late has no entry ca.crt');
  });

  test('is not served by a less strict server on the same port', async () => {
    await mesh.apply(
      joinDocuments(
        gateway('front', { istio: 'edge' }, [
          server({ mode: 'ISTIO_MUTUAL' }),
          server({ mode: 'SIMPLE', credentialName: 'web' }, '*'),
        ]),
        quietSidecar,
        secret('web', mesh.authority.issue(['web.test'])),
        routedHost('web.test', backend, ['front']),
        virtualService('other.test', {
          gateways: ['front'],
          http: [{ route: [{ destination: { host: 'cart.backends.test' } }] }],
        }),
      ),
    );
    expect(await letIn('edge')).toEqual([false, false, false]);
    expect(await letIn('edge', { host: 'other.test' })).toEqual([true, true, true]);
    expect(await mesh.page('/debug/push_status')).toContain('ISTIO_MUTUAL requires workload certificates');
  });

  test('is rejected by a Sidecar object in MUTUAL mode', async () => {
    const caCertificates = mesh.file('ca.crt', mesh.authority.certificate);
    await mesh.apply(
      joinDocuments(
        object('networking.istio.io/v1', 'Sidecar', 'shop', 'plain', {
          workloadSelector: { labels: { app: 'plain' } },
          egress: [{ hosts: ['~/*'] }],
          ingress: [
            {
              port: { number: ports.tls, name: 'https', protocol: 'HTTPS' },
              bind: '127.0.0.1',
              defaultEndpoint: `127.0.0.1:${backend.port}`,
              tls: { mode: 'MUTUAL', tlsCertificates: [pair()], caCertificates },
            },
          ],
        }),
      ),
    );
    expect(await letIn('plain')).toEqual([true, false, false]);
  });
});
