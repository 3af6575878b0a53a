import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuthority } from '../../certs/authority.ts';
import { eventually } from '../../harness/eventually.ts';
import type { HttpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { destinationRule, serviceEntry, virtualService } from './harness/objects.ts';

const host = 'cart.shop.test';
let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: { web: { labels: { app: 'web', 'istio-locality': 'eu.a' } } },
  });
});

afterAll(() => mesh.stop());

async function backends(...names: string[]): Promise<HttpBackend[]> {
  return Promise.all(names.map((name) => mesh.http(name)));
}

/** The cart service without retries: the client receives the response of the backend. */
const routeWithoutRetries = virtualService(host, {
  http: [{ route: [{ destination: { host } }], retries: { attempts: 0 } }],
});

/** The main thread ejects a backend; workers apply this later, so some requests may still reach the backend. */
async function appliedByWorkers(to: { port: number; host: string }, count: number, split: object): Promise<void> {
  await eventually('the workers have heard of it', async () => {
    return isDeepStrictEqual(await mesh.split('web', to, count), split);
  });
}

test('subsets select endpoints by their labels, each with its own policy', async () => {
  const [v1, v2] = await backends('v1', 'v2');
  const port = await mesh.port();
  const to = (subset: string): object[] => [{ destination: { host, subset } }];
  await mesh.apply(`
${serviceEntry(host, { port, backends: [v1!, v2!] })}
---
${destinationRule(host, {
  subsets: [
    { name: 'old', labels: { version: 'v1' } },
    { name: 'new', labels: { version: 'v2' }, trafficPolicy: { connectionPool: { http: { maxRetries: 7 } } } },
  ],
})}
---
${virtualService(host, {
  http: [{ match: [{ headers: { 'x-new': { exact: 'yes' } } }], route: to('new') }, { route: to('old') }],
})}`);
  const request = { port, host };
  expect(await mesh.split('web', request, 5)).toEqual({ v1: 5 });
  expect(await mesh.split('web', { ...request, headers: { 'x-new': 'yes' } }, 5)).toEqual({ v2: 5 });
  const limit = (subset: string) =>
    mesh.envoy('web').stat(`cluster.outbound|${port}|${subset}|${host};.circuit_breakers.default.remaining_retries`);
  expect([await limit('new'), await limit('old')]).toEqual([0, 0]);
  expect(await mesh.envoy('web').admin('/clusters')).toContain(
    `outbound|${port}|new|${host}::default_priority::max_retries::7`,
  );
});

test('a circuit breaker rejects only the requests beyond its limits', async () => {
  const [cart] = await backends('cart');
  const port = await mesh.port();
  const release: (() => void)[] = [];
  cart!.respond = async (seenRequest, response) => {
    await new Promise<void>((resolve) => release.push(resolve));
    response.end(JSON.stringify(seenRequest));
  };
  const pool = { tcp: { maxConnections: 1 }, http: { http1MaxPendingRequests: 1 } };
  await mesh.apply(`
${serviceEntry(host, { port, backends: [cart!] })}
---
${routeWithoutRetries}
---
${destinationRule(host, { trafficPolicy: { connectionPool: pool } })}`);
  const first = mesh.request('web', { port, host });
  await eventually('the first request is under way', () => release.length === 1);
  const secondResponse = mesh.request('web', { port, host });
  const pending = `cluster.outbound|${port}||${host};.upstream_rq_pending_active`;
  await eventually('the second one waits', async () => (await mesh.envoy('web').stat(pending)) === 1);
  const third = await mesh.request('web', { port, host });
  expect([third.status, third.headers['x-envoy-overloaded']]).toEqual([503, 'true']);
  release.shift()!();
  await eventually('the second request is under way', () => release.length === 1);
  release.shift()!();
  expect([(await first).status, (await secondResponse).status]).toEqual([200, 200]);
});

test('outlier detection ejects a failing backend', async () => {
  const [healthyBackend, failingBackend] = await backends('good', 'bad');
  const port = await mesh.port();
  failingBackend!.respond = (_, response) => void response.writeHead(500).end();
  const outlierDetection = { consecutive5xxErrors: 3, interval: '1h', baseEjectionTime: '1h', maxEjectionPercent: 100 };
  await mesh.apply(`
${serviceEntry(host, { port, backends: [healthyBackend!, failingBackend!] })}
---
${routeWithoutRetries}
---
${destinationRule(host, { trafficPolicy: { outlierDetection, loadBalancer: { simple: 'ROUND_ROBIN' } } })}`);
  let failures = 0;
  while (failures < 3) failures += (await mesh.split('web', { port, host }, 1)).bad ?? 0;
  // One thread of Envoy counts, another one ejects.
  const ejected = `cluster.outbound|${port}||${host};.outlier_detection.ejections_active`;
  await eventually('it is taken out', async () => (await mesh.envoy('web').stat(ejected)) === 1);
  await appliedByWorkers({ port, host }, 20, { good: 20 });
  expect(await mesh.split('web', { port, host }, 20)).toEqual({ good: 20 });
});

describe('consistent hash', () => {
  const hashes: [string, object, (user: string) => object][] = [
    ['a header', { httpHeaderName: 'x-user' }, (user) => ({ headers: { 'x-user': user } })],
    ['a query parameter', { httpQueryParameterName: 'user' }, (user) => ({ path: `/?user=${user}` })],
    ['a cookie', { httpCookie: { name: 'user' } }, (user) => ({ headers: { cookie: `user=${user}` } })],
    [
      'a header, with Maglev',
      { httpHeaderName: 'x-user', maglev: { tableSize: 251 } },
      (user) => ({ headers: { 'x-user': user } }),
    ],
  ];

  test.each(hashes)('sends a client to the same backend by %s', async (_, consistentHash, requestOfUser) => {
    const all = await backends('a', 'b', 'c');
    const port = await mesh.port();
    await mesh.apply(`
${serviceEntry(host, { port, backends: all })}
---
${destinationRule(host, { trafficPolicy: { loadBalancer: { consistentHash } } })}`);
    const chosenBackends = new Set<string>();
    for (let user = 0; user < 12; user++) {
      const counts = await mesh.split('web', { port, host, ...requestOfUser(`user-${user}`) }, 4);
      expect(Object.values(counts)).toEqual([4]);
      chosenBackends.add(Object.keys(counts)[0]!);
    }
    expect(chosenBackends.size).toBeGreaterThan(1);
  });

  test('sends a client to the same backend by a cookie that Envoy sets, even on a VirtualService route', async () => {
    const all = await backends('a', 'b', 'c');
    const port = await mesh.port();
    const consistentHash = { httpCookie: { name: 'sticky', ttl: '60s', path: '/' } };
    await mesh.apply(`
${serviceEntry(host, { port, backends: all })}
---
${virtualService(host, { http: [{ route: [{ destination: { host } }] }] })}
---
${destinationRule(host, { trafficPolicy: { loadBalancer: { consistentHash } } })}`);
    const first = await mesh.request('web', { port, host });
    const [cookie] = first.headers['set-cookie'] ?? [];
    expect(cookie).toMatch(/^sticky="?\w+"?; Max-Age=60; Path=\/; HttpOnly$/);
    const repeatedRequest = { port, host, headers: { cookie: cookie!.split(';')[0]! } };
    expect(await mesh.split('web', repeatedRequest, 10)).toEqual({ [first.seen.backend]: 10 });
  });
});

test("locality load balancing keeps requests in the client's locality while it has endpoints", async () => {
  const [nearBackend, farBackend] = await backends('near', 'far');
  const port = await mesh.port();
  const entry = serviceEntry(host, {
    port,
    spec: {
      endpoints: [
        { address: nearBackend!.address, ports: { main: nearBackend!.port }, locality: 'eu/a' },
        { address: farBackend!.address, ports: { main: farBackend!.port }, locality: 'us/a' },
      ],
    },
  });
  const outlierDetection = { consecutive5xxErrors: 1, interval: '1h', baseEjectionTime: '1h', maxEjectionPercent: 100 };
  await mesh.apply(`
${entry}
---
${routeWithoutRetries}
---
${destinationRule(host, { trafficPolicy: { outlierDetection } })}`);
  expect(await mesh.split('web', { port, host }, 10)).toEqual({ near: 10 });
  nearBackend!.respond = (_, response) => void response.writeHead(503).end();
  expect((await mesh.request('web', { port, host })).status).toBe(503);
  await appliedByWorkers({ port, host }, 10, { far: 10 });
  expect(await mesh.split('web', { port, host }, 10)).toEqual({ far: 10 });
});

test('Envoy knows unhealthy endpoints and sends them no requests', async () => {
  const [well, ill] = await backends('well', 'ill');
  const port = await mesh.port();
  const selectingEntry = serviceEntry(host, {
    port,
    spec: { endpoints: undefined, workloadSelector: { labels: { app: 'cart' } } },
  }).replace(/ {2}endpoints: \[\]\n/, '');
  const entry = (backend: HttpBackend, healthy: string): string => `---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: ${backend.name}, namespace: shop }
spec: { address: ${backend.address}, ports: { main: ${backend.port} }, labels: { app: cart } }
status: { conditions: [{ type: Healthy, status: "${healthy}" }] }
`;
  await mesh.apply(`${selectingEntry}${entry(well!, 'True')}${entry(ill!, 'False')}`);
  expect(await mesh.split('web', { port, host }, 10)).toEqual({ well: 10 });
  const flags = `${ill!.address}:${ill!.port}::health_flags::/failed_eds_health`;
  expect(await mesh.envoy('web').admin('/clusters')).toContain(flags);
  await mesh.apply(`${selectingEntry}${entry(well!, 'False')}${entry(ill!, 'False')}`);
  expect(await mesh.split('web', { port, host }, 3)).toEqual({ 503: 3 });
  await mesh.apply(`${selectingEntry}${entry(well!, 'False')}${entry(ill!, 'True')}`);
  expect(await mesh.split('web', { port, host }, 5)).toEqual({ ill: 5 });
});

describe('TLS to a server', () => {
  const names = ['cart.shop.test'];

  test('verifies the authority and the names given in the rule', async () => {
    const issuedCertificate = mesh.authority.issue(names);
    const cart = await mesh.http('cart', {
      tls: { cert: issuedCertificate.certificate, key: issuedCertificate.privateKey },
    });
    const port = await mesh.port();
    const caCertificates = mesh.file('ca.pem', mesh.authority.certificate);
    const status = async (tls: object): Promise<number> => {
      await mesh.apply(`
${serviceEntry(host, { port, backends: [cart] })}
---
${destinationRule(host, { trafficPolicy: { tls: { mode: 'SIMPLE', caCertificates, ...tls } } })}`);
      return (await mesh.request('web', { port, host })).status;
    };
    expect(await status({ sni: host, subjectAltNames: names })).toBe(200);
    expect(await status({ sni: host, subjectAltNames: ['other.test'] })).toBe(503);
    // Without names in the rule, the certificate must match the host of the request.
    expect(await status({})).toBe(200);
    expect(await status({ caCertificates: mesh.file('other.pem', createAuthority('another').certificate) })).toBe(503);
  });

  test('presents a client certificate', async () => {
    const server = mesh.authority.issue(names);
    const client = mesh.authority.issue(['client.test']);
    const tls = { cert: server.certificate, key: server.privateKey, ca: mesh.authority.certificate, requestCert: true };
    const cart = await mesh.http('cart', { tls: { ...tls, rejectUnauthorized: true } });
    const port = await mesh.port();
    const caCertificates = mesh.file('ca.pem', mesh.authority.certificate);
    const files = {
      clientCertificate: mesh.file('client.pem', client.certificate),
      privateKey: mesh.file('client.key', client.privateKey),
    };
    const status = async (tlsSettings: object): Promise<number> => {
      await mesh.apply(`
${serviceEntry(host, { port, backends: [cart] })}
---
${destinationRule(host, { trafficPolicy: { tls: { caCertificates, sni: host, ...tlsSettings } } })}`);
      return (await mesh.request('web', { port, host })).status;
    };
    expect(await status({ mode: 'MUTUAL', ...files })).toBe(200);
    expect(await status({ mode: 'SIMPLE' })).toBe(503);
  });
});

test('a DestinationRule with a workload selector has precedence over one without', async () => {
  const [v1, v2] = await backends('v1', 'v2');
  const port = await mesh.port();
  const subset = (version: string): object => ({ subsets: [{ name: 'chosen', labels: { version } }] });
  const splitFor = async (app: string): Promise<object> => {
    await mesh.apply(`
${serviceEntry(host, { port, backends: [v1!, v2!] })}
---
${virtualService(host, { http: [{ route: [{ destination: { host, subset: 'chosen' } }] }] })}
---
${destinationRule(host, subset('v1'), { name: 'for-all' })}
---
${destinationRule(host, { ...subset('v2'), workloadSelector: { matchLabels: { app } } }, { name: 'for-some' })}`);
    return mesh.split('web', { port, host }, 5);
  };
  expect(await splitFor('web')).toEqual({ v2: 5 });
  expect(await splitFor('other')).toEqual({ v1: 5 });
});

test('Envoy uses HTTP/2 to a server if the DestinationRule requires it', async () => {
  const cart = await mesh.http('cart', { http2: true });
  const port = await mesh.port();
  const status = async (h2UpgradePolicy: string): Promise<number> => {
    await mesh.apply(`
${serviceEntry(host, { port, backends: [cart] })}
---
${destinationRule(host, { trafficPolicy: { connectionPool: { http: { h2UpgradePolicy } } } })}`);
    return (await mesh.request('web', { port, host })).status;
  };
  expect(await status('UPGRADE')).toBe(200);
  expect(await status('DO_NOT_UPGRADE')).toBeGreaterThanOrEqual(500);
});

test('the server receives the client address in the PROXY protocol', async () => {
  const db = await mesh.tcp('db');
  const port = await mesh.port();
  await mesh.apply(`
${serviceEntry('db.shop.test', { port, protocol: 'TCP', backends: [db], spec: { addresses: ['127.0.1.9'] } })}
---
${destinationRule('db.shop.test', { trafficPolicy: { proxyProtocol: { version: 'V1' } } })}`);
  await mesh.connect('web', { port, address: '127.0.1.9', send: 'hello', until: /hello/ });
  // The data may arrive in two parts.
  await expect
    .poll(() => db.received.at(-1)?.toString())
    .toMatch(/^PROXY TCP4 127\.0\.0\.1 127\.0\.1\.9 \d+ \d+\r\nhello$/);
});
