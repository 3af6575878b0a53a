/** Routing of a sidecar's outbound traffic: ServiceEntries, ExternalName services, outbound traffic policies. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { object, serviceEntry, virtualService } from './harness/objects.ts';
import { openConnection } from './harness/requests.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: { web: { labels: { app: 'web' } } },
    env: { PILOT_HTTP10: 'true', PILOT_ENABLE_REDIS_FILTER: 'true' },
  });
});

afterAll(() => mesh.stop());

function sidecar(spec: object): string {
  return object('networking.istio.io/v1', 'Sidecar', 'shop', 'default', spec);
}

function kubernetes(kind: string, apiVersion: string, name: string, fields: object, labels: object = {}): string {
  return JSON.stringify({ apiVersion, kind, metadata: { name, namespace: 'shop', labels }, ...fields });
}

test('a port without a declared protocol routes HTTP requests and forwards other bytes', async () => {
  const [http, raw] = [await mesh.http('http'), await mesh.tcp('raw')];
  const port = await mesh.port();
  const entryWithoutProtocol = (backend: { address: string; port: number }): string =>
    object('networking.istio.io/v1', 'ServiceEntry', 'shop', 'any', {
      hosts: ['any.shop.test'],
      resolution: 'STATIC',
      location: 'MESH_INTERNAL',
      ports: [{ number: port, name: 'main' }],
      endpoints: [{ address: backend.address, ports: { main: backend.port } }],
    });
  await mesh.apply(`${entryWithoutProtocol(http)}
---
${virtualService('any.shop.test', {
  http: [{ headers: { request: { set: { 'x-routed': 'yes' } } }, route: [{ destination: { host: 'any.shop.test' } }] }],
})}`);
  expect((await mesh.request('web', { port, host: 'any.shop.test' })).seen.headers['x-routed']).toBe('yes');
  await mesh.apply(entryWithoutProtocol(raw));
  const connection = await mesh.connect('web', { port, send: 'not HTTP at all\n', until: /at all/ });
  expect(connection.text).toBe('raw\nnot HTTP at all\n');
});

test('an ExternalName service is an alias of the service to which it refers', async () => {
  const backend = await mesh.http('concrete');
  const port = await mesh.port();
  const alias = { spec: { type: 'ExternalName', externalName: 'concrete.shop.test' } };
  await mesh.apply(`${serviceEntry('concrete.shop.test', { port, backends: [backend] })}
---
${kubernetes('Service', 'v1', 'alias', alias)}
---
${virtualService('concrete.shop.test', {
  http: [{ rewrite: { uri: '/routed' }, route: [{ destination: { host: 'alias.shop.svc.cluster.local' } }] }],
})}
---
${sidecar({ outboundTrafficPolicy: { mode: 'REGISTRY_ONLY' } })}`);
  for (const host of ['concrete.shop.test', 'alias.shop.svc.cluster.local', 'alias.shop', 'alias']) {
    expect((await mesh.request('web', { port, host })).seen.url).toBe('/routed');
  }
  expect((await mesh.request('web', { port, host: 'nobody.shop.test' })).status).toBe(502);
});

test('a wildcard host with resolution DYNAMIC_DNS routes to the address of the request’s host', async () => {
  const backend = await mesh.http('found');
  const port = await mesh.port();
  await mesh.apply(dynamicEntry(port, 'HTTP'));
  const response = await mesh.request('web', { port, host: `any.localhost:${backend.port}` });
  expect(response.seen.backend).toBe('found');
  expect(response.seen.headers.host).toBe(`any.localhost:${backend.port}`);
});

test('a wildcard host with resolution DYNAMIC_DNS routes TLS to the address of its SNI', async () => {
  const { certificate, privateKey } = mesh.authority.issue(['any.localhost']);
  const backend = await mesh.http('secure', { tls: { cert: certificate, key: privateKey } });
  // The application already uses the service's port, so the proxy listens at another address.
  const { port } = backend;
  const egress = [
    { port: { number: port, name: 'tls', protocol: 'TLS' }, bind: '127.0.3.1', captureMode: 'NONE', hosts: ['./*'] },
  ];
  await mesh.apply(`${dynamicEntry(port, 'TLS')}
---
${sidecar({ egress })}`);
  const client = { servername: 'any.localhost', ca: mesh.authority.certificate };
  const response = await mesh.request('web', { address: '127.0.3.1', port, host: 'any.localhost', tls: client });
  expect(response.seen.backend).toBe(backend.name);
});

test('the outbound traffic policy determines whether undeclared hosts are rejected or resolved', async () => {
  const [knownBackend, unknownBackend] = [await mesh.http('known'), await mesh.http('unknown')];
  const port = await mesh.port();
  const host = `localhost:${unknownBackend.port}`;
  const entry = serviceEntry('known.shop.test', { port, backends: [knownBackend] });
  await mesh.apply(`${entry}\n---\n${sidecar({ outboundTrafficPolicy: { mode: 'REGISTRY_ONLY' } })}`);
  expect((await mesh.request('web', { port, host })).status).toBe(502);
  await mesh.apply(`${entry}\n---\n${sidecar({ outboundTrafficPolicy: { mode: 'ALLOW_ANY_DYNAMIC_DNS' } })}`);
  expect((await mesh.request('web', { port, host })).seen.backend).toBe('unknown');
  expect((await mesh.request('web', { port, host: 'known.shop.test' })).seen.backend).toBe('known');
});

test('a sidecar without traffic redirection balances a headless service over its pods', async () => {
  const [one, two] = [await mesh.tcp('one', { address: '127.0.2.1' }), await mesh.tcp('two', { address: '127.0.2.2' })];
  const port = await mesh.port();
  const service = { spec: { clusterIP: 'None', ports: [{ name: 'tcp-main', port }] } };
  const slice = (name: string, backend: typeof one): string =>
    kubernetes(
      'EndpointSlice',
      'discovery.k8s.io/v1',
      name,
      {
        addressType: 'IPv4',
        ports: [{ name: 'tcp-main', port: backend.port }],
        endpoints: [{ addresses: [backend.address] }],
      },
      { 'kubernetes.io/service-name': 'headless' },
    );
  await mesh.apply(
    [kubernetes('Service', 'v1', 'headless', service), slice('a', one), slice('b', two)].join('\n---\n'),
  );
  const receivedTexts = new Set<string>();
  for (let i = 0; i < 40 && receivedTexts.size < 2; i++) receivedTexts.add((await mesh.connect('web', { port })).text);
  expect([...receivedTexts].sort()).toEqual(['one\n', 'two\n']);
});

test('an egress listener with its own address serves only its own hosts', async () => {
  const [shownBackend, hidden] = [await mesh.http('shown'), await mesh.http('hidden')];
  const port = await mesh.port();
  await mesh.apply(`${serviceEntry('shown.shop.test', { port, backends: [shownBackend] })}
---
${serviceEntry('hidden.shop.test', { port, backends: [hidden] })}
---
${sidecar({
  egress: [
    {
      port: { number: port, name: 'http', protocol: 'HTTP' },
      bind: '127.0.3.2',
      captureMode: 'NONE',
      hosts: ['./shown.shop.test'],
    },
  ],
  outboundTrafficPolicy: { mode: 'REGISTRY_ONLY' },
})}`);
  const to = { address: '127.0.3.2', port };
  expect((await mesh.request('web', { ...to, host: 'shown.shop.test' })).seen.backend).toBe('shown');
  expect((await mesh.request('web', { ...to, host: 'hidden.shop.test' })).status).toBe(502);
  const otherRequest = { port, host: 'shown.shop.test', patienceMs: 1_000 };
  await expect(mesh.request('web', otherRequest)).rejects.toThrow('ECONNREFUSED');
});

test('TLS services on one port are distinguished by SNI', async () => {
  const [a, b] = [await secureBackend('a'), await secureBackend('b')];
  const port = await mesh.port();
  const entry = (name: string, backend: { address: string; port: number }): string =>
    serviceEntry(`${name}.shop.test`, { port, protocol: 'TLS', backends: [backend] });
  await mesh.apply(`${entry('a', a)}\n---\n${entry('b', b)}`);
  for (const backend of [a, b]) {
    const servername = `${backend.name}.shop.test`;
    const tls = { servername, ca: mesh.authority.certificate };
    const response = await mesh.request('web', { port, host: servername, tls });
    expect(response.seen.backend).toBe(backend.name);
  }
});

test('PILOT_HTTP10 allows HTTP/1.0 clients', async () => {
  const backend = await mesh.http('old');
  const port = await mesh.port();
  await mesh.apply(serviceEntry('old.shop.test', { port, backends: [backend] }));
  const connection = await openConnection({
    port,
    send: 'GET / HTTP/1.0\r\nhost: old.shop.test\r\n\r\n',
    until: /"backend":"old"/,
  });
  expect(connection.text).toMatch(/^HTTP\/1\.[01] 200/);
});

test('PILOT_ENABLE_REDIS_FILTER adds the Redis filter', async () => {
  const backend = await mesh.tcp('redis');
  const port = await mesh.port();
  await mesh.apply(serviceEntry('redis.shop.test', { port, protocol: 'REDIS', backends: [backend] }));
  // The filter responds to pings itself; the application would send its name first.
  const connection = await openConnection({ port, send: '*1\r\n$4\r\nPING\r\n', until: /\n/ });
  expect(connection.text).toBe('+PONG\r\n');
});

async function secureBackend(name: string) {
  const { certificate, privateKey } = mesh.authority.issue([`${name}.shop.test`]);
  return mesh.http(name, { tls: { cert: certificate, key: privateKey } });
}

function dynamicEntry(port: number, protocol: string): string {
  return object('networking.istio.io/v1', 'ServiceEntry', 'shop', 'wild', {
    hosts: ['*.localhost'],
    resolution: 'DYNAMIC_DNS',
    ports: [{ number: port, name: 'main', protocol }],
  });
}
