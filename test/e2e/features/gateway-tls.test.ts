/** TLS termination at a gateway, with certificates from the control plane (by name) or from the agent. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { createAuthority } from '../../certs/authority.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { frontAddress, joinDocuments, requestText, routedHost, secret, serial } from './harness/gateway-objects.ts';
import { gateway, object, serviceEntry, virtualService } from './harness/objects.ts';
import { openConnection } from './harness/requests.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      edge: { type: 'router', labels: { istio: 'edge' } },
      delta: { type: 'router', labels: { istio: 'delta' }, delta: true },
      inner: { type: 'router', labels: { istio: 'inner' }, identity: 'spiffe://cluster.local/ns/shop/sa/inner' },
      front: { type: 'router', labels: { istio: 'ingressgateway' }, ip: frontAddress },
    },
    env: { PILOT_SECRETS_ON_PLAINTEXT: 'true' },
  });
});

afterAll(() => mesh?.stop());

/** The serial number of the certificate that a server presents for a host. `explain` does not cover it. */
async function shownSerial(port: number, host: string): Promise<string | undefined> {
  const tls = { servername: host, ca: mesh.authority.certificate };
  return serial(await openConnection({ port, tls, send: requestText(host) }));
}

describe('TLS termination at the gateway', () => {
  const one = (selector: string, port: number, tls: object): string =>
    gateway('front', { istio: selector }, [{ port, protocol: 'HTTPS', hosts: ['web.test'], tls }]);

  test.each(['edge', 'delta'])(
    'uses the certificate of its Secret, and replaces it without closing connections (%s)',
    async (proxy) => {
      const [port, backend] = [await mesh.port(), await mesh.http('web')];
      const [first, second] = [mesh.authority.issue(['web.test']), mesh.authority.issue(['web.test'])];
      const objects = joinDocuments(
        one(proxy, port, { mode: 'SIMPLE', credentialName: 'web' }),
        routedHost('web.test', backend, ['front']),
      );
      const tls = { servername: 'web.test', ca: mesh.authority.certificate };
      await mesh.apply({ 'objects.yaml': objects, 'secret.yaml': secret('web', first) });
      expect((await mesh.request(proxy, { port, host: 'web.test', tls })).seen.backend).toBe('web');
      expect((await mesh.request(proxy, { port, host: 'web.test', tls, http2: true })).seen.backend).toBe('web');
      expect(await shownSerial(port, 'web.test')).toBe(first.serialNumber);
      const listeners = await mesh.envoy(proxy).stat('listener_manager.listener_modified');
      await mesh.apply({ 'objects.yaml': objects, 'secret.yaml': secret('web', second) });
      expect(await shownSerial(port, 'web.test')).toBe(second.serialNumber);
      // The listener did not change, so its connections stay open.
      expect(await mesh.envoy(proxy).stat('listener_manager.listener_modified')).toBe(listeners);
    },
  );

  test('keeps its certificate if the Secret becomes invalid', async () => {
    const [port, backend] = [await mesh.port(), await mesh.http('web')];
    const [matchingCertificate, other] = [mesh.authority.issue(['web.test']), mesh.authority.issue(['other.test'])];
    const objects = joinDocuments(
      one('edge', port, { mode: 'SIMPLE', credentialName: 'web' }),
      routedHost('web.test', backend, ['front']),
    );
    await mesh.apply({ 'objects.yaml': objects, 'secret.yaml': secret('web', matchingCertificate) });
    await mesh.apply({
      'objects.yaml': objects,
      'secret.yaml': secret('web', { ...matchingCertificate, privateKey: other.privateKey }),
    });
    expect(await shownSerial(port, 'web.test')).toBe(matchingCertificate.serialNumber);
    expect(await mesh.page('/debug/push_status')).toContain('the private key does not match the certificate');
  });

  test.each([
    ['MUTUAL', 'requires a client certificate'],
    ['OPTIONAL_MUTUAL', 'verifies the certificate of a client that has one'],
  ])('with mode %s %s', async (mode) => {
    const [port, backend] = [await mesh.port(), await mesh.http('web')];
    const roots = { 'ca.crt': mesh.authority.certificate };
    await mesh.apply(
      joinDocuments(
        one('edge', port, { mode, credentialName: 'web' }),
        routedHost('web.test', backend, ['front']),
        secret('web', mesh.authority.issue(['web.test']), roots),
      ),
    );
    const to = { port, host: 'web.test' };
    const tls = { servername: 'web.test', ca: mesh.authority.certificate };
    const client = mesh.authority.issue(['client.test']);
    const clientTls = { ...tls, cert: client.certificate, key: client.privateKey };
    expect((await mesh.request('edge', { ...to, tls: clientTls })).seen.backend).toBe('web');
    const bareRequest = mesh.request('edge', { ...to, tls });
    if (mode === 'MUTUAL') await expect(bareRequest).rejects.toThrow();
    else expect((await bareRequest).status).toBe(200);
    const foreignCertificate = createAuthority('another').issue(['client.test']);
    const foreignTls = { ...tls, cert: foreignCertificate.certificate, key: foreignCertificate.privateKey };
    await expect(mesh.request('edge', { ...to, tls: foreignTls })).rejects.toThrow();
  });

  test.each([
    ['edge', 'which Envoy reads itself'],
    ['inner', 'which the agent serves'],
  ])('uses certificate files at the proxy %s, %s', async (proxy) => {
    const [port, backend] = [await mesh.port(), await mesh.http('web')];
    const ownCertificate = mesh.authority.issue(['web.test']);
    const files = {
      serverCertificate: mesh.file(`${proxy}.crt`, ownCertificate.certificate),
      privateKey: mesh.file(`${proxy}.key`, ownCertificate.privateKey),
      caCertificates: mesh.file(`${proxy}.ca`, mesh.authority.certificate),
    };
    await mesh.apply(
      joinDocuments(one(proxy, port, { mode: 'MUTUAL', ...files }), routedHost('web.test', backend, ['front'])),
    );
    const { certificate, privateKey } = mesh.authority.issue(['client.test']);
    const tls = { servername: 'web.test', ca: mesh.authority.certificate };
    const clientTls = { ...tls, cert: certificate, key: privateKey };
    expect((await mesh.request(proxy, { port, host: 'web.test', tls: clientTls })).seen.backend).toBe('web');
    await expect(mesh.request(proxy, { port, host: 'web.test', tls })).rejects.toThrow();
  });

  test('selects the certificate and the routes by SNI', async () => {
    const [port, a, b] = [await mesh.port(), await mesh.http('a'), await mesh.http('b')];
    const [certificateA, certificateB] = [mesh.authority.issue(['a.test']), mesh.authority.issue(['*.b.test'])];
    await mesh.apply(
      joinDocuments(
        gateway('front', { istio: 'edge' }, [
          { port, protocol: 'HTTPS', hosts: ['a.test'], tls: { mode: 'SIMPLE', credentialName: 'a' } },
          { port, protocol: 'HTTPS', hosts: ['*.b.test'], tls: { mode: 'SIMPLE', credentialName: 'b' } },
        ]),
        ...[routedHost('a.test', a, ['front']), routedHost('*.b.test', b, ['front'])],
        ...[secret('a', certificateA), secret('b', certificateB)],
      ),
    );
    expect(await shownSerial(port, 'a.test')).toBe(certificateA.serialNumber);
    expect(await shownSerial(port, 'x.b.test')).toBe(certificateB.serialNumber);
    const requestHost = (host: string) => mesh.request('edge', { port, host, tls: { servername: host } });
    expect((await requestHost('a.test')).seen.backend).toBe('a');
    expect((await requestHost('x.b.test')).seen.backend).toBe('b');
    // This server does not serve a host of another server.
    expect((await mesh.request('edge', { port, host: 'a.test', tls: { servername: 'x.b.test' } })).status).toBe(404);
    await expect(requestHost('c.test')).rejects.toThrow();
  });

  test('serves the other hosts while a Secret is missing, and uses the Secret as soon as it exists', async () => {
    const [port, a, b] = [await mesh.port(), await mesh.http('a'), await mesh.http('b')];
    const server = (name: string): { port: number; protocol: string; hosts: string[]; tls: object } => {
      return { port, protocol: 'HTTPS', hosts: [`${name}.test`], tls: { mode: 'SIMPLE', credentialName: name } };
    };
    const objects = joinDocuments(
      gateway('front', { istio: 'edge' }, [server('present'), server('late')]),
      ...[routedHost('present.test', a, ['front']), routedHost('late.test', b, ['front'])],
      secret('present', mesh.authority.issue(['present.test'])),
    );
    const requestHost = (host: string) => mesh.request('edge', { port, host, tls: { servername: host } });
    // Envoy waits 15 seconds for the Secret.
    await mesh.apply(objects);
    expect((await requestHost('present.test')).seen.backend).toBe('a');
    await expect(requestHost('late.test')).rejects.toThrow();
    await mesh.apply(joinDocuments(objects, secret('late', mesh.authority.issue(['late.test']))));
    expect((await requestHost('late.test')).seen.backend).toBe('b');
  });

  test('forwards plain TCP to the destination of the virtual service', async () => {
    const [port, backend] = [await mesh.port(), await mesh.tcp('bytes')];
    const ownCertificate = mesh.authority.issue(['bytes.test']);
    await mesh.apply(
      joinDocuments(
        gateway('front', { istio: 'edge' }, [
          { port, protocol: 'TLS', hosts: ['bytes.test'], tls: { mode: 'SIMPLE', credentialName: 'bytes' } },
        ]),
        serviceEntry('bytes.backends.test', { port: backend.port, protocol: 'TCP', backends: [backend] }),
        virtualService('bytes.test', {
          gateways: ['front'],
          tcp: [{ route: [{ destination: { host: 'bytes.backends.test' } }] }],
        }),
        secret('bytes', ownCertificate),
      ),
    );
    const connection = await mesh.connect('edge', {
      port,
      tls: { servername: 'bytes.test' },
      send: 'hello',
      until: /hello/,
    });
    expect([connection.text, serial(connection)]).toEqual(['bytes\nhello', ownCertificate.serialNumber]);
  });

  test('accepts only workloads of the mesh’s trust domain in ISTIO_MUTUAL mode', async () => {
    const [port, backend] = [await mesh.port(), await mesh.http('web')];
    await mesh.apply(
      joinDocuments(one('inner', port, { mode: 'ISTIO_MUTUAL' }), routedHost('web.test', backend, ['front'])),
    );
    const of = (identity: string): object => {
      const { certificate, privateKey } = mesh.authority.issue([identity]);
      return { servername: 'web.test', cert: certificate, key: privateKey };
    };
    const to = { port, host: 'web.test' };
    const ownCertificate = of('spiffe://cluster.local/ns/other/sa/web');
    expect((await mesh.request('inner', { ...to, tls: ownCertificate })).seen.backend).toBe('web');
    await expect(mesh.request('inner', { ...to, tls: of('spiffe://elsewhere/ns/other/sa/web') })).rejects.toThrow();
    await expect(mesh.request('inner', { ...to, tls: { servername: 'web.test' } })).rejects.toThrow();
  });

  test("is configured by an Ingress on the ports of the gateway's service", async () => {
    const [{ http, https }, backend] = [await mesh.ports('http', 'https'), await mesh.http('web')];
    const path = {
      path: '/',
      pathType: 'Prefix',
      backend: { service: { name: 'web', port: { number: backend.port } } },
    };
    const ingress = stringify({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name: 'web', namespace: 'shop', annotations: { 'kubernetes.io/ingress.class': 'istio' } },
      spec: {
        tls: [{ hosts: ['web.test'], secretName: 'web' }],
        rules: [{ host: 'web.test', http: { paths: [path] } }],
      },
    });
    const ownCertificate = mesh.authority.issue(['web.test']);
    await mesh.apply(
      joinDocuments(
        ingress,
        serviceEntry('web.shop.svc.cluster.local', { port: backend.port, backends: [backend] }),
        object('networking.istio.io/v1', 'ServiceEntry', 'shop', 'front', {
          hosts: ['front.test'],
          location: 'MESH_INTERNAL',
          resolution: 'STATIC',
          ports: [
            { number: 80, targetPort: http, name: 'http', protocol: 'HTTP' },
            { number: 443, targetPort: https, name: 'https', protocol: 'HTTPS' },
          ],
          endpoints: [{ address: frontAddress }],
        }),
        secret('web', ownCertificate),
      ),
    );
    const tls = { servername: 'web.test', ca: mesh.authority.certificate };
    expect((await mesh.request('front', { port: http, host: 'web.test' })).seen.backend).toBe('web');
    expect((await mesh.request('front', { port: https, host: 'web.test', tls })).seen.backend).toBe('web');
    expect(await shownSerial(https, 'web.test')).toBe(ownCertificate.serialNumber);
  });
});
