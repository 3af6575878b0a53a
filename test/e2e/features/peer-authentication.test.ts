/** PeerAuthentication between two sidecars with workload certificates, and for a sidecar without one. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthority } from '../../certs/authority.ts';
import { eventually } from '../../harness/eventually.ts';
import { loggedLine } from '../../harness/logged-line.ts';
import type { HttpBackend, TcpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { destinationRule, gateway, object, serviceEntry, virtualService } from './harness/objects.ts';
import type { ClientTls } from './harness/requests.ts';

const [web, cart] = ['spiffe://cluster.local/ns/shop/sa/web', 'spiffe://cluster.local/ns/shop/sa/cart'];
const host = 'cart.shop.test';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      web: { labels: { app: 'web' }, identity: web },
      cart: { labels: { app: 'cart' }, identity: cart },
      bare: { labels: { app: 'bare' } },
      edge: { type: 'router', labels: { istio: 'edge' } },
    },
    meshConfig: { trustDomainAliases: ['old.example'] },
  });
});

afterAll(() => mesh?.stop());

interface PortPair {
  /** Port of the service, on which `web` accepts connections for it. */
  readonly out: number;
  /** Port of the application's sidecar. */
  readonly sidecarPort: number;
}

interface GivenOptions {
  readonly protocol?: string;
  /** TLS of the service port through which the sidecar is called. */
  readonly tls?: object;
  readonly app?: string;
}

const all = (...documents: string[]): string => documents.join('\n---\n');

/** A service of one workload, whose sidecar forwards connections to the application. */
function applicationObjects(
  backend: HttpBackend | TcpBackend,
  { out, sidecarPort }: PortPair,
  options: GivenOptions = {},
): string {
  const { protocol = 'HTTP', app = 'cart', tls } = options;
  const endpoint = {
    address: '127.0.0.1',
    ports: { main: sidecarPort },
    labels: { app, 'security.istio.io/tlsMode': 'istio' },
    serviceAccount: app,
  };
  return all(
    serviceEntry(host, { port: out, protocol, spec: { endpoints: [endpoint] } }),
    object('networking.istio.io/v1', 'Sidecar', 'shop', app, {
      workloadSelector: { labels: { app } },
      egress: [{ hosts: ['~/*'] }],
      ingress: [
        {
          port: { number: sidecarPort, name: 'main', protocol },
          bind: '127.0.0.1',
          defaultEndpoint: `127.0.0.1:${backend.port}`,
          ...(tls && { tls }),
        },
      ],
    }),
    // Without this, the other server's sidecar would bind the client's ports.
    object('networking.istio.io/v1', 'Sidecar', 'shop', 'other', {
      workloadSelector: { labels: { app: app === 'cart' ? 'bare' : 'cart' } },
      egress: [{ hosts: ['~/*'] }],
    }),
  );
}

function peerAuthentication(spec: object, { name = 'all', app = '' } = {}): string {
  const selector = app === '' ? {} : { selector: { matchLabels: { app } } };
  return object('security.istio.io/v1', 'PeerAuthentication', 'shop', name, { ...selector, ...spec });
}

const mode = (name: string): string => peerAuthentication({ mtls: { mode: name } });

/** The client identity that the application received. */
async function identityThroughWeb({ out }: PortPair): Promise<string | undefined> {
  const { seen } = await mesh.request('web', { port: out, host });
  return /URI=([^;,]*)/.exec(seen.headers['x-forwarded-client-cert'] ?? '')?.[1];
}

/** A client outside the mesh with a certificate of this identity. */
function clientOf(identity: string, authority = mesh.authority): ClientTls {
  const { certificate, privateKey } = authority.issue([identity]);
  return { ca: mesh.authority.certificate, cert: certificate, key: privateKey, ALPNProtocols: ['istio'] };
}

test('clients of the mesh use mutual TLS and others plaintext if there is no PeerAuthentication', async () => {
  const [backend, ports] = [await mesh.http('app'), await mesh.ports('out', 'sidecarPort')];
  await mesh.apply(applicationObjects(backend, ports));
  expect(await identityThroughWeb(ports)).toBe(web);
  const response = await mesh.request('cart', { inbound: true, port: ports.sidecarPort, host });
  expect(response.seen.headers).not.toHaveProperty('x-forwarded-client-cert');
});

test('the mode STRICT accepts only workloads of the trust domains', async () => {
  const [backend, ports] = [await mesh.http('app'), await mesh.ports('out', 'sidecarPort')];
  await mesh.apply(all(applicationObjects(backend, ports), mode('STRICT')));
  expect(await identityThroughWeb(ports)).toBe(web);
  const requestInbound = (tls?: ClientTls) =>
    mesh.request('cart', { inbound: true, port: ports.sidecarPort, host, ...(tls && { tls }) });

  await expect(requestInbound()).rejects.toThrow();
  await expect(requestInbound({ ca: mesh.authority.certificate })).rejects.toThrow();
  await expect(requestInbound(clientOf('spiffe://other.example/ns/shop/sa/web'))).rejects.toThrow();
  await expect(requestInbound(clientOf(web, createAuthority()))).rejects.toThrow();
  expect(backend.seen).toHaveLength(1);

  expect((await requestInbound(clientOf(web))).status).toBe(200);
  expect((await requestInbound(clientOf('spiffe://old.example/ns/shop/sa/web'))).status).toBe(200);
});

test('a changed mode applies to client and server at run time', async () => {
  const [backend, ports] = [await mesh.http('app'), await mesh.ports('out', 'sidecarPort')];
  const services = applicationObjects(backend, ports);
  for (const [name, identity] of [
    ['STRICT', web],
    ['DISABLE', undefined],
    ['PERMISSIVE', web],
  ] as const) {
    await mesh.apply(all(services, mode(name)));
    expect([name, await identityThroughWeb(ports)]).toEqual([name, identity]);
  }
});

test('clients learn the mode of a workload with its endpoints', async () => {
  const [backend, ports] = [await mesh.http('app'), await mesh.ports('out', 'sidecarPort')];
  const off = peerAuthentication({ mtls: { mode: 'DISABLE' } }, { name: 'cart', app: 'cart' });
  await mesh.apply(all(applicationObjects(backend, ports), mode('STRICT'), off));
  expect(await identityThroughWeb(ports)).toBeUndefined();
  expect((await mesh.request('cart', { inbound: true, port: ports.sidecarPort, host })).status).toBe(200);
});

test('a port uses its own mode instead of the mode of its workload', async () => {
  const [backend, ports] = [await mesh.http('app'), await mesh.ports('out', 'sidecarPort')];
  const portLevelMtls = { [ports.sidecarPort]: { mode: 'DISABLE' } };
  await mesh.apply(
    all(
      applicationObjects(backend, ports),
      peerAuthentication({ mtls: { mode: 'STRICT' }, portLevelMtls }, { name: 'cart', app: 'cart' }),
    ),
  );
  expect(await identityThroughWeb(ports)).toBeUndefined();
  expect((await mesh.request('cart', { inbound: true, port: ports.sidecarPort, host })).status).toBe(200);
});

test("a TCP port in permissive mode forwards the application's TLS, but terminates the mesh's mutual TLS", async () => {
  const issuedCertificate = mesh.authority.issue([host]);
  const [backend, ports] = [
    await mesh.tcp('app', { tls: { cert: issuedCertificate.certificate, key: issuedCertificate.privateKey } }),
    await mesh.ports('out', 'sidecarPort'),
  ];
  await mesh.apply(applicationObjects(backend, ports, { protocol: 'TCP' }));
  const clientTls = { ca: mesh.authority.certificate, servername: host };
  const direct = await mesh.connect('cart', {
    inbound: true,
    port: ports.sidecarPort,
    tls: clientTls,
    send: 'x',
    until: /app\nx/,
  });
  expect(direct.peer?.serialNumber).toBe(issuedCertificate.serialNumber);
  const connection = await mesh.connect('web', { port: ports.out, tls: clientTls, send: 'x', until: /app\nx/ });
  expect(connection.peer?.serialNumber).toBe(issuedCertificate.serialNumber);
  expect(await mesh.envoy('web').stat(`cluster.outbound|${ports.out}||${host};.ssl.handshake`)).toBeGreaterThan(0);

  await mesh.apply(all(applicationObjects(backend, ports, { protocol: 'TCP' }), mode('STRICT')));
  await expect(
    mesh.connect('cart', { inbound: true, port: ports.sidecarPort, tls: clientTls, send: 'x', until: /app/ }),
  ).rejects.toThrow();
  await mesh.connect('web', { port: ports.out, tls: clientTls, send: 'x', until: /app\nx/ });
});

test('a Sidecar object without mutual TLS terminates TLS with files that the agent serves', async () => {
  const [backend, ports] = [await mesh.http('app'), await mesh.ports('out', 'sidecarPort')];
  const issuedCertificate = mesh.authority.issue([host]);
  const tls = {
    mode: 'MUTUAL',
    serverCertificate: mesh.file('tls.crt', issuedCertificate.certificate),
    privateKey: mesh.file('tls.key', issuedCertificate.privateKey),
    caCertificates: mesh.file('ca.crt', mesh.authority.certificate),
  };
  const portLevelMtls = { [ports.sidecarPort]: { mode: 'DISABLE' } };
  const services = applicationObjects(backend, ports, { protocol: 'HTTPS', tls });
  await mesh.apply(all(services, peerAuthentication({ portLevelMtls }, { name: 'cart', app: 'cart' })));
  const client = { ...clientOf('client.test'), ALPNProtocols: [], servername: host };
  const response = await mesh.request('cart', { inbound: true, port: ports.sidecarPort, host, tls: client });
  expect(response.seen.headers['x-forwarded-client-cert']).toContain('DNS=client.test');
  await expect(
    mesh.request('cart', { inbound: true, port: ports.sidecarPort, host, tls: { ca: mesh.authority.certificate } }),
  ).rejects.toThrow();
  await expect(mesh.request('cart', { inbound: true, port: ports.sidecarPort, host })).rejects.toThrow();
});

test('a proxy without certificates accepts plaintext despite STRICT, and the log reports this', async () => {
  const [backend, ports] = [await mesh.http('app'), await mesh.ports('out', 'sidecarPort')];
  await mesh.apply(all(applicationObjects(backend, ports, { app: 'bare' }), mode('STRICT')));
  expect((await mesh.request('bare', { inbound: true, port: ports.sidecarPort, host })).status).toBe(200);
  const degradedLine = loggedLine('proxy.degraded', {
    reason: /PeerAuthentication shop\/all requires mutual TLS, but the proxy has no workload certificates/,
  });
  await eventually('the log says so', () => mesh.pilot.lines.some((line) => degradedLine.test(line)));
});

test('a proxy without certificates sends nothing if a DestinationRule requires mutual TLS', async () => {
  const [backend, { out, front }] = [await mesh.http('app'), await mesh.ports('out', 'front')];
  const routed = all(
    serviceEntry(host, { port: out, backends: [backend] }),
    gateway('front', { istio: 'edge' }, [{ port: front, protocol: 'HTTP', hosts: [host] }]),
    virtualService(host, {
      gateways: ['front'],
      http: [{ route: [{ destination: { host, port: { number: out } } }] }],
    }),
  );
  await mesh.apply(routed);
  expect((await mesh.request('edge', { port: front, host })).status).toBe(200);
  await mesh.apply(all(routed, destinationRule(host, { trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } })));
  expect((await mesh.request('edge', { port: front, host })).status).toBe(503);
  expect(backend.seen).toHaveLength(1);
});
