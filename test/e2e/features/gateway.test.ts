/** Gateway objects for clients outside the mesh: ports, TCP, redirects, TLS passthrough. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { HttpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { frontAddress, joinDocuments, requestText, routedHost, secret, serial } from './harness/gateway-objects.ts';
import { gateway, object, serviceEntry, virtualService } from './harness/objects.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      edge: { type: 'router', labels: { istio: 'edge' } },
      front: { type: 'router', labels: { istio: 'ingressgateway' }, ip: frontAddress },
    },
    env: { PILOT_SECRETS_ON_PLAINTEXT: 'true' },
  });
});

afterAll(() => mesh?.stop());

describe('TLS passthrough at the gateway', () => {
  test('routes by SNI to the destination of the VirtualService', async () => {
    const certificates = [mesh.authority.issue(['a.test']), mesh.authority.issue(['b.test'])];
    const tls = certificates.map(({ certificate, privateKey }) => ({ cert: certificate, key: privateKey }));
    const [a, b] = [await mesh.http('a', { tls: tls[0]! }), await mesh.http('b', { tls: tls[1]! })];
    const port = await mesh.port();
    const passed = (name: string, backend: HttpBackend): string =>
      joinDocuments(
        serviceEntry(`${name}.backends.test`, { port: backend.port, protocol: 'TLS', backends: [backend] }),
        virtualService(`${name}.test`, {
          gateways: ['front'],
          tls: [
            { match: [{ sniHosts: [`${name}.test`] }], route: [{ destination: { host: `${name}.backends.test` } }] },
          ],
        }),
      );
    await mesh.apply(
      joinDocuments(
        gateway('front', { istio: 'edge' }, [
          { port, protocol: 'TLS', hosts: ['a.test', 'b.test'], tls: { mode: 'PASSTHROUGH' } },
        ]),
        ...[passed('a', a), passed('b', b)],
      ),
    );
    for (const [index, host] of ['a.test', 'b.test'].entries()) {
      const to = { port, tls: { servername: host, ca: mesh.authority.certificate }, send: requestText(host) };
      const connection = await mesh.connect('edge', { ...to, until: /"backend":"\w+"/ });
      expect(connection.text).toContain(`"backend":"${'ab'[index]}"`);
      expect(serial(connection)).toBe(certificates[index]!.serialNumber);
    }
    await expect(
      mesh.connect('edge', { port, tls: { servername: 'c.test' }, send: requestText('c.test') }),
    ).rejects.toThrow();
  });

  test("routes by the SNI of a cluster to the cluster's endpoints without a VirtualService", async () => {
    const ownCertificate = mesh.authority.issue(['a.backends.test']);
    const a = await mesh.http('a', { tls: { cert: ownCertificate.certificate, key: ownCertificate.privateKey } });
    const port = await mesh.port();
    const labels = { 'security.istio.io/tlsMode': 'istio' };
    await mesh.apply(
      joinDocuments(
        gateway('front', { istio: 'edge' }, [
          { port, protocol: 'TLS', hosts: ['*.backends.test'], tls: { mode: 'AUTO_PASSTHROUGH' } },
        ]),
        serviceEntry('a.backends.test', {
          port: 80,
          backends: [{ name: a.name, address: a.address, port: a.port, labels } as never],
        }),
      ),
    );
    const to = { port, send: requestText('a.backends.test') };
    const connection = await mesh.connect('edge', { ...to, tls: { servername: 'outbound_.80_._.a.backends.test' } });
    expect(serial(connection)).toBe(ownCertificate.serialNumber);
    await expect(
      mesh.connect('edge', { ...to, tls: { servername: 'outbound_.81_._.a.backends.test' } }),
    ).rejects.toThrow();
  });
});

test('a gateway routes plain TCP to the destination of the VirtualService', async () => {
  const [port, backend] = [await mesh.port(), await mesh.tcp('bytes')];
  await mesh.apply(
    joinDocuments(
      gateway('front', { istio: 'edge' }, [{ port, protocol: 'TCP', hosts: ['*'] }]),
      serviceEntry('bytes.backends.test', { port: backend.port, protocol: 'TCP', backends: [backend] }),
      virtualService('bytes.test', {
        gateways: ['front'],
        tcp: [{ match: [{ port }], route: [{ destination: { host: 'bytes.backends.test' } }] }],
      }),
    ),
  );
  const connection = await mesh.connect('edge', { port, send: 'hello', until: /hello/ });
  expect(connection.text).toBe('bytes\nhello');
});

test('a gateway redirects plain HTTP to HTTPS if its server specifies this, and serves HTTPS', async () => {
  const [{ http, https }, backend] = [await mesh.ports('http', 'https'), await mesh.http('web')];
  await mesh.apply(
    joinDocuments(
      gateway('front', { istio: 'edge' }, [
        { port: http, protocol: 'HTTP', hosts: ['web.test'], tls: { httpsRedirect: true } },
        {
          port: https,
          protocol: 'HTTPS',
          hosts: ['web.test'],
          tls: { mode: 'SIMPLE', credentialName: 'web', httpsRedirect: true },
        },
      ]),
      routedHost('web.test', backend, ['front']),
      secret('web', mesh.authority.issue(['web.test'])),
    ),
  );
  const response = await mesh.request('edge', { port: http, host: 'web.test', path: '/cart?item=1' });
  expect([response.status, response.headers.location]).toEqual([301, 'https://web.test/cart?item=1']);
  expect((await mesh.request('edge', { port: https, host: 'web.test', tls: { servername: 'web.test' } })).status).toBe(
    200,
  );
  expect((await mesh.request('edge', { port: http, host: 'other.test' })).status).toBe(404);
});

test('a gateway listens on the target ports of its Service', async () => {
  const [{ service, pod }, backend] = [await mesh.ports('service', 'pod'), await mesh.http('web')];
  const namedGateway = object('networking.istio.io/v1', 'Gateway', 'shop', 'front', {
    servers: [{ port: { number: service, name: 'http', protocol: 'HTTP' }, hosts: ['web.test'] }],
  }).replace('metadata:', 'metadata:\n  annotations: { internal.istio.io/gateway-service: front.test }');
  await mesh.apply(
    joinDocuments(
      namedGateway,
      serviceEntry('front.test', { port: service, backends: [{ address: frontAddress, port: pod }] }),
      routedHost('web.test', backend, ['front']),
    ),
  );
  expect((await mesh.request('front', { port: pod, host: 'web.test' })).seen.backend).toBe('web');
  const unserved = { port: service, host: 'web.test', patienceMs: 1_000 };
  await expect(mesh.request('front', unserved)).rejects.toThrow(/ECONNREFUSED/);
});
