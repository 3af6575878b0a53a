/** Destinations of requests: weights, delegates, external hosts, a sidecar's egress hosts, and their changes at run time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { destinationRule, object, serviceEntry, virtualService } from './harness/objects.ts';
import { sendRequest } from './harness/requests.ts';

const host = 'cart.shop.test';
let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    env: { PILOT_DNS_JITTER_DURATION: '100ms' },
    proxies: { web: { labels: { app: 'web' } }, other: { namespace: 'bank', type: 'router' } },
  });
});

afterAll(() => mesh.stop());

const subsets = destinationRule(host, {
  subsets: ['v1', 'v2', 'v3'].map((version) => ({ name: version, labels: { version } })),
});
const to = (subset: string, weight?: number): object => ({
  destination: { host, subset },
  ...(weight !== undefined && { weight }),
});

test('weights of a VirtualService split requests', async () => {
  const backends = [await mesh.http('v1'), await mesh.http('v2'), await mesh.http('v3')];
  const port = await mesh.port();
  await mesh.apply(`
${serviceEntry(host, { port, backends })}
---
${subsets}
---
${virtualService(host, { http: [{ route: [to('v1', 75), to('v2', 25), to('v3', 0)] }] })}`);
  const requests = 200;
  const counts = await mesh.split('web', { port, host }, requests);
  expect(Object.keys(counts).sort()).toEqual(['v1', 'v2']);
  // Four standard deviations of a binomial at this number of requests.
  expect(Math.abs(counts.v2! / requests - 0.25)).toBeLessThan(4 * Math.sqrt((0.25 * 0.75) / requests));
});

test('a changed route applies under load without a failed request', async () => {
  const backends = [await mesh.http('v1'), await mesh.http('v2')];
  const port = await mesh.port();
  const objectsFor = (subset: string): string => `
${serviceEntry(host, { port, backends })}
---
${subsets}
---
${virtualService(host, { http: [{ route: [to(subset)] }] })}`;
  await mesh.apply(objectsFor('v1'));
  const responses: string[] = [];
  let isRunning = true;
  const client = (async () => {
    while (isRunning) {
      // Bypasses the harness, which would run explain during the change.
      const { status, headers } = await sendRequest({ port, host });
      responses.push(status === 200 ? String(headers['x-backend']) : String(status));
      await sleep(2);
    }
  })();
  for (const subset of ['v2', 'v1', 'v2']) await mesh.apply(objectsFor(subset));
  const settledAt = responses.length + 1;
  await eventually('it is asked on', () => responses.length > settledAt + 5);
  isRunning = false;
  await client;
  expect(new Set(responses)).toEqual(new Set(['v1', 'v2']));
  expect(new Set(responses.slice(settledAt))).toEqual(new Set(['v2']));
});

test('an update that Envoy or the control plane rejects keeps the active configuration', async () => {
  const cart = await mesh.http('v1');
  const port = await mesh.port();
  const entry = serviceEntry(host, { port, backends: [cart] });
  await mesh.apply({
    'entry.yaml': entry,
    'route.yaml': virtualService(host, { http: [{ route: [{ destination: { host } }] }] }),
  });
  const brokenRoute = virtualService(host, { http: [{ route: [{ destination: { host } }], timeout: 'soon' }] });
  await mesh.apply({ 'entry.yaml': entry, 'route.yaml': brokenRoute }, { invalid: true });
  expect((await mesh.request('web', { port, host })).status).toBe(200);
});

test('a delegate VirtualService provides routes under a path of the root, and inherits the actions of the root', async () => {
  const backends = [await mesh.http('v1'), await mesh.http('v2'), await mesh.http('v3')];
  const port = await mesh.port();
  const delegate = object('networking.istio.io/v1', 'VirtualService', 'team', 'checkout', {
    http: [
      { match: [{ uri: { prefix: '/checkout/pay' } }], route: [to('v2')] },
      { match: [{ uri: { prefix: '/elsewhere' } }], route: [to('v3')] },
      { route: [to('v3')], headers: { request: { set: { 'x-by': 'delegate' } } } },
    ],
  });
  await mesh.apply(`
${serviceEntry(host, { port, backends })}
---
${subsets}
---
${virtualService(host, {
  http: [
    {
      match: [{ uri: { prefix: '/checkout' } }],
      delegate: { name: 'checkout', namespace: 'team' },
      headers: { request: { set: { 'x-by': 'root' } } },
    },
    { route: [to('v1')] },
  ],
})}
---
${delegate}`);
  const routedTo = async (path: string): Promise<string[]> => {
    const { backend, headers } = (await mesh.request('web', { port, host, path })).seen;
    return [backend, headers['x-by'] ?? ''];
  };
  expect(await routedTo('/checkout/pay/1')).toEqual(['v2', 'root']);
  expect(await routedTo('/checkout/other')).toEqual(['v3', 'delegate']);
  expect(await routedTo('/elsewhere')).toEqual(['v1', '']);
});

describe('servers outside the mesh', () => {
  test('are found by the hosts of a ServiceEntry, and resolved by DNS', async () => {
    const outside = await mesh.http('outside');
    const port = await mesh.port();
    await mesh.apply(
      serviceEntry('api.outside.test', {
        port,
        spec: {
          location: 'MESH_EXTERNAL',
          resolution: 'DNS',
          endpoints: [{ address: 'localhost', ports: { main: outside.port } }],
        },
      }),
    );
    expect((await mesh.request('web', { port, host: 'api.outside.test', path: '/v1' })).seen).toMatchObject({
      backend: 'outside',
      url: '/v1',
      headers: { host: 'api.outside.test' },
    });
    // Fields unknown to this project's API also reach Envoy.
    const clusters = await mesh.envoy('web').admin('/config_dump?resource=dynamic_active_clusters');
    expect(clusters).toMatch(/"dns_jitter": "0\.100s"/);
    expect(clusters).toMatch(/CaresDnsResolverConfig",\s+"udp_max_queries": 100/);
  });

  test('are called with TLS that the proxy originates', async () => {
    const issuedCertificate = mesh.authority.issue(['api.outside.test']);
    const outside = await mesh.http('outside', {
      tls: { cert: issuedCertificate.certificate, key: issuedCertificate.privateKey },
    });
    const port = await mesh.port();
    const tls = { mode: 'SIMPLE', caCertificates: mesh.file('ca.pem', mesh.authority.certificate) };
    await mesh.apply(`
${serviceEntry('api.outside.test', { port, backends: [outside], spec: { location: 'MESH_EXTERNAL' } })}
---
${destinationRule('api.outside.test', { trafficPolicy: { tls } })}`);
    expect((await mesh.request('web', { port, host: 'api.outside.test' })).seen.backend).toBe('outside');
  });
});

test('a Sidecar object limits the hosts that its workloads can reach to the imported ones', async () => {
  const [nearBackend, farBackend, ownBackend] = [
    await mesh.http('near'),
    await mesh.http('far'),
    await mesh.http('own'),
  ];
  const ports = await mesh.ports('near', 'far', 'own');
  const all = `
${serviceEntry('near.bank.test', { port: ports.near, backends: [nearBackend], namespace: 'bank' })}
---
${serviceEntry('far.bank.test', { port: ports.far, backends: [farBackend], namespace: 'bank' })}
---
${serviceEntry('own.shop.test', { port: ports.own, backends: [ownBackend] })}`;
  await mesh.apply(all);
  const reach = async (name: 'near' | 'far' | 'own', of = 'bank', retryForMs = 10_000): Promise<string> =>
    (await mesh.request('web', { port: ports[name], host: `${name}.${of}.test`, retryForMs })).seen.backend;
  expect([await reach('near'), await reach('far'), await reach('own', 'shop')]).toEqual(['near', 'far', 'own']);
  const sidecar = object('networking.istio.io/v1', 'Sidecar', 'shop', 'default', {
    egress: [{ hosts: ['./*', 'bank/near.bank.test'] }],
  });
  await mesh.apply(`${all}\n---\n${sidecar}`);
  expect([await reach('near'), await reach('own', 'shop')]).toEqual(['near', 'own']);
  await expect(reach('far', 'bank', 1_000)).rejects.toThrow(/ECONNREFUSED|hang up/);
  // Routes and clusters stay while connections of the removed listener drain.
  expect(await mesh.envoy('web').admin('/listeners')).not.toContain(`:${ports.far}`);
});
