/** AuthorizationPolicies, tested with requests and connections through real Envoys. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { HttpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { gateway, object, serviceEntry, virtualService } from './harness/objects.ts';

let mesh: FeatureMesh;
let backend: HttpBackend;
let port: number;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      edge: { type: 'router', labels: { istio: 'edge' } },
      cart: { labels: { app: 'cart' }, identity: 'spiffe://cluster.local/ns/shop/sa/cart' },
    },
    meshConfig: { trustDomain: 'cluster.local', trustDomainAliases: ['old.test'] },
  });
});

afterAll(() => mesh?.stop());

beforeEach(async () => {
  backend = await mesh.http('cart');
  port = await mesh.port();
});

const policy = (name: string, spec: object, namespace = 'shop'): string =>
  object('security.istio.io/v1', 'AuthorizationPolicy', namespace, name, spec);

/** A gateway in front of the application, with these policies. */
async function guarded(...policies: string[]): Promise<void> {
  const routes = { gateways: ['front'], http: [{ route: [{ destination: { host: 'cart.shop.test' } }] }] };
  await mesh.apply(
    [
      serviceEntry('cart.shop.test', { port: await mesh.port(), backends: [backend] }),
      gateway('front', { istio: 'edge' }, [{ port, protocol: 'HTTP', hosts: ['*'] }]),
      virtualService('*', { ...routes, hosts: ['*.shop.test', 'shop.test'] }, { name: 'cart' }),
      ...policies,
    ].join('\n---\n'),
  );
}

/** The status of a request through the gateway. */
async function status(path: string, to: { method?: string; headers?: Record<string, string>; host?: string } = {}) {
  return (await mesh.request('edge', { port, host: 'shop.test', path, ...to })).status;
}

describe('AuthorizationPolicies of a gateway', () => {
  test('allow every request if there is no policy, and only matching requests if there is an ALLOW policy', async () => {
    await guarded();
    expect(await status('/')).toBe(200);
    await guarded(
      policy('some', {
        selector: { matchLabels: { istio: 'edge' } },
        rules: [
          { to: [{ operation: { methods: ['GET'], paths: ['/books*', '*.html', '/x/{*}/y/{**}'] } }] },
          { to: [{ operation: { hosts: ['API.shop.test', '*.open.shop.test'] } }] },
        ],
      }),
    );
    expect(await status('/books/1?a=b')).toBe(200);
    expect(await status('/books/1', { method: 'POST' })).toBe(403);
    expect(await status('/index.html')).toBe(200);
    expect(await status('/x/1/y/2/3')).toBe(200);
    expect(await status('/x/1/2/y/3')).toBe(403);
    expect(await status('/')).toBe(403);
    expect(await status('/', { host: 'api.shop.test' })).toBe(200);
    expect(await status('/', { host: 'a.open.shop.test' })).toBe(200);
  });

  test('deny a request that one policy denies, even if another one allows it', async () => {
    await guarded(
      policy('all', { rules: [{}] }),
      policy(
        'no-deletes',
        { action: 'DENY', rules: [{ to: [{ operation: { methods: ['DELETE'], notPaths: ['/tmp/*'] } }] }] },
        'istio-system',
      ),
    );
    expect(await status('/')).toBe(200);
    expect(await status('/', { method: 'DELETE' })).toBe(403);
    expect(await status('/tmp/1', { method: 'DELETE' })).toBe(200);
  });

  test('match headers and addresses', async () => {
    await guarded(
      policy('known', {
        rules: [
          { when: [{ key: 'request.headers[x-team]', values: ['dev*'], notValues: ['devil'] }] },
          { from: [{ source: { remoteIpBlocks: ['203.0.113.0/24'] } }] },
        ],
      }),
    );
    expect(await status('/')).toBe(403);
    expect(await status('/', { headers: { 'x-team': 'developers' } })).toBe(200);
    expect(await status('/', { headers: { 'x-team': 'devil' } })).toBe(403);
    await guarded(policy('here', { action: 'DENY', rules: [{ from: [{ source: { ipBlocks: ['127.0.0.0/8'] } }] }] }));
    expect(await status('/')).toBe(403);
    await guarded(policy('there', { action: 'DENY', rules: [{ from: [{ source: { notIpBlocks: ['127.0.0.1'] } }] }] }));
    expect(await status('/')).toBe(200);
  });

  test('allow no request if an ALLOW policy is empty, and only count matching requests if the policy is a dry run', async () => {
    await guarded(policy('nobody', {}));
    expect(await status('/')).toBe(403);
    const tried = {
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      spec: { action: 'DENY', rules: [{}] },
    };
    const annotations = { 'istio.io/dry-run': 'true' };
    await guarded(JSON.stringify({ ...tried, metadata: { name: 'tried', namespace: 'shop', annotations } }));
    expect(await status('/')).toBe(200);
    const stats = await mesh.envoy('edge').admin('/stats?filter=istio_dry_run_deny_.*shadow_denied');
    expect(stats).toMatch(/istio_dry_run_deny_\.?shadow_denied: 1/);
  });

  test('apply changes while requests are served', async () => {
    await guarded(policy('a', { rules: [{ to: [{ operation: { paths: ['/a'] } }] }] }));
    expect([await status('/a'), await status('/b')]).toEqual([200, 403]);
    await guarded(policy('a', { rules: [{ to: [{ operation: { paths: ['/b'] } }] }] }));
    expect([await status('/a'), await status('/b')]).toEqual([403, 200]);
  });
});

test('AuthorizationPolicies match the principal of a client’s certificate under each alias of the trust domain', async () => {
  const server = mesh.authority.issue(['shop.test']);
  const tls = {
    mode: 'MUTUAL',
    serverCertificate: mesh.file('tls.crt', server.certificate),
    privateKey: mesh.file('tls.key', server.privateKey),
    caCertificates: mesh.file('ca.crt', mesh.authority.certificate),
  };
  await mesh.apply(
    [
      serviceEntry('cart.shop.test', { port: await mesh.port(), backends: [backend] }),
      gateway('front', { istio: 'edge' }, [{ port, protocol: 'HTTPS', hosts: ['shop.test'], tls }]),
      virtualService('shop.test', {
        gateways: ['front'],
        http: [{ route: [{ destination: { host: 'cart.shop.test' } }] }],
      }),
      policy('cart', {
        rules: [
          { from: [{ source: { principals: ['cluster.local/ns/shop/sa/cart'] } }] },
          { from: [{ source: { namespaces: ['ops*'] } }] },
          { from: [{ source: { serviceAccounts: ['billing'] } }] },
        ],
      }),
    ].join('\n---\n'),
  );
  const statusAs = async (identity: string): Promise<number> => {
    const { certificate: cert, privateKey: key } = mesh.authority.issue([identity]);
    const client = { servername: 'shop.test', ca: mesh.authority.certificate, cert, key };
    return (await mesh.request('edge', { port, host: 'shop.test', tls: client })).status;
  };
  expect(await statusAs('spiffe://cluster.local/ns/shop/sa/cart')).toBe(200);
  expect(await statusAs('spiffe://old.test/ns/shop/sa/cart')).toBe(200);
  expect(await statusAs('spiffe://foreign.test/ns/shop/sa/cart')).toBe(403);
  expect(await statusAs('spiffe://cluster.local/ns/shop/sa/cart2')).toBe(403);
  expect(await statusAs('spiffe://cluster.local/ns/ops-1/sa/any')).toBe(200);
  expect(await statusAs('spiffe://cluster.local/ns/shop/sa/billing')).toBe(200);
  expect(await statusAs('spiffe://cluster.local/ns/other/sa/billing')).toBe(403);
});

test('AuthorizationPolicies deny TCP connections, and an ALLOW rule with HTTP attributes matches none', async () => {
  const echo = await mesh.tcp('echo');
  // Envoy decides when the client has sent data; by then, the client may have received the application's first bytes.
  const tcp = async (...policies: string[]): Promise<string> => {
    await mesh.apply(
      [
        serviceEntry('echo.shop.test', { port: await mesh.port(), protocol: 'TCP', backends: [echo] }),
        gateway('front', { istio: 'edge' }, [{ port, protocol: 'TCP', hosts: ['*'] }]),
        virtualService('*', {
          hosts: ['*'],
          gateways: ['front'],
          tcp: [{ route: [{ destination: { host: 'echo.shop.test' } }] }],
        }),
        ...policies,
      ].join('\n---\n'),
    );
    const connection = await mesh
      .connect('edge', { port, send: 'hello', until: /hello/ })
      .catch((error: Error) => ({ text: error.message }));
    return connection.text.trim();
  };
  expect(await tcp()).toMatch(/^echo/);
  const localSource = [{ source: { ipBlocks: ['127.0.0.1'] } }];
  expect(await tcp(policy('no', { action: 'DENY', rules: [{ from: localSource }] }))).toMatch(/^closed|ECONNRESET/);
  expect(
    await tcp(policy('yes', { rules: [{ from: localSource, to: [{ operation: { ports: [String(port)] } }] }] })),
  ).toMatch(/^echo/);
  expect(await tcp(policy('yes', { rules: [{ to: [{ operation: { paths: ['/'] } }] }] }))).toMatch(
    /^closed|ECONNRESET/,
  );
  expect(await tcp(policy('no', { action: 'DENY', rules: [{ to: [{ operation: { paths: ['/'] } }] }] }))).toMatch(
    /^closed|ECONNRESET/,
  );
});

test('an AuthorizationPolicy for a workload applies at its sidecar', async () => {
  const inbound = await mesh.port();
  const ingress = [
    {
      port: { number: inbound, name: 'http', protocol: 'HTTP' },
      bind: '127.0.0.1',
      defaultEndpoint: `127.0.0.1:${backend.port}`,
    },
  ];
  await mesh.apply(
    [
      object('networking.istio.io/v1', 'Sidecar', 'shop', 'cart', {
        workloadSelector: { labels: { app: 'cart' } },
        ingress,
        egress: [{ hosts: ['~/*'] }],
      }),
      policy('cart', {
        selector: { matchLabels: { app: 'cart' } },
        rules: [{ to: [{ operation: { paths: ['/open'], ports: [String(inbound)] } }] }],
      }),
    ].join('\n---\n'),
  );
  const statusOf = async (path: string) => (await mesh.request('cart', { port: inbound, path, inbound: true })).status;
  expect([await statusOf('/open'), await statusOf('/closed')]).toEqual([200, 403]);
});
