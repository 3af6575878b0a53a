import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { explainCommand } from './explain.ts';

const mesh = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.test]
  resolution: STATIC
  ports: [{number: 8080, name: http, protocol: HTTP}, {number: 9000, name: tcp, protocol: TCP}]
  endpoints:
    - {address: 10.1.1.1, labels: {version: v1}}
    - {address: 10.1.1.2, labels: {version: v2}}
---
apiVersion: v1
kind: List
items:
  - apiVersion: networking.istio.io/v1
    kind: DestinationRule
    metadata: {name: cart, namespace: shop}
    spec:
      host: cart.test
      subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
  - apiVersion: networking.istio.io/v1
    kind: VirtualService
    metadata: {name: cart, namespace: shop}
    spec:
      hosts: [cart.test]
      http:
        - match: [{uri: {prefix: /old}}]
          redirect: {uri: /new}
        - match: [{headers: {x-user: {exact: anna}}}]
          route: [{destination: {host: cart.test, subset: v2}}]
        - route:
            - {destination: {host: cart.test, subset: v1}, weight: 90}
            - {destination: {host: cart.test, subset: v2}, weight: 10}
`;
let root: string;
let file: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-explain-'));
  file = join(root, 'mesh.yaml');
  writeFileSync(file, mesh);
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

async function explained(...args: string[]): Promise<string> {
  let text = '';
  await explainCommand((chunk) => {
    text += chunk;
  }).parseAsync(args, { from: 'user' });
  return text.replaceAll(file, 'mesh.yaml');
}

const node = ['--node', 'sidecar~10.9.9.9~web-0.shop~shop.svc.cluster.local'];
const offline = (): string[] => ['--registries=', '--configDir', root, '--meshConfig', join(root, 'none'), ...node];

test('pilot-discovery explain follows a request to its cluster, and shows at each step the configuration lines that caused it', async () => {
  const text = await explained(...offline(), '--url', 'http://cart.test:8080/items', '--header', 'x-user=anna');
  expect(text).toContain('listener      0.0.0.0_8080  (handed over by virtualOutbound)');
  expect(text).toContain('virtual host  cart.test:8080');
  expect(text).toContain('← VirtualService shop/cart spec.http[1] at mesh.yaml:29:11');
  expect(text).toContain('cluster       outbound|8080|v2|cart.test  (endpoints 10.1.1.2:8080)');
  expect(text).toContain('← DestinationRule shop/cart spec.subsets[1] at mesh.yaml:20:');
  expect(text).toContain('outcome       sent to the cluster');
});

test('pilot-discovery explain handles weights, redirects, TCP and unknown names', async () => {
  const url = (text: string): Promise<string> => explained(...offline(), '--url', text);
  expect(await url('http://cart.test:8080/')).toMatch(
    /v1\|cart\.test {2}\(90 % of the requests; endpoints 10\.1\.1\.1:8080\).*10 % of/s,
  );
  expect(await url('http://cart.test:8080/old/1')).toContain('redirected with 301 to http://cart.test:8080/new');
  expect(await url('tcp://cart.test:9000')).toContain('cluster       outbound|9000||cart.test');
  expect(await url('http://other.test:8080/')).toContain('cluster       PassthroughCluster');
});

test('pilot-discovery explain lists all listeners if no URL is given', async () => {
  const text = await explained(...offline());
  expect(text).toMatch(/listener {6}0\.0\.0\.0_9000.*→ cluster outbound\|9000\|\|cart\.test/s);
  expect(text).toContain('listener      virtualInbound');
});

test('pilot-discovery explain uses the address that the mesh has allocated to a name', async () => {
  const dnsMetadata = ['--metadata', 'DNS_CAPTURE=true', '--metadata', 'DNS_AUTO_ALLOCATE=true'];
  const text = await explained(...offline(), ...dnsMetadata, '--url', 'tcp://cart.test:9000');
  expect(text).toMatch(/listener {6}240\.240\.\d+\.\d+_9000 /);
});

test('pilot-discovery explain prints JSON', async () => {
  const explanation = JSON.parse(
    await explained(...offline(), '--url', 'http://cart.test:8080/old', '--format', 'json'),
  ) as object;
  expect(explanation).toMatchObject({
    outcome: { kind: 'redirected', status: 301 },
    steps: [
      { what: 'listener' },
      { what: 'filter chain' },
      { what: 'virtual host' },
      { what: 'route', from: [{ field: 'spec.http[0]', place: 'mesh.yaml:27:11' }] },
    ],
  });
});

test('pilot-discovery explain lists all listeners as JSON', async () => {
  const overview = JSON.parse(await explained(...offline(), '--format', 'json')) as { listeners: object[] };
  expect(overview.listeners).toContainEqual({
    name: '0.0.0.0_9000',
    isBound: false,
    chains: [
      expect.objectContaining({
        leadsTo: 'cluster outbound|9000||cart.test',
        from: expect.arrayContaining([{ object: 'ServiceEntry shop/cart', place: 'mesh.yaml:1:1' }]),
      }),
    ],
  });
});

test('pilot-discovery explain requests the configuration of a running proxy and reads the object lines from files', async () => {
  const requestedPaths: string[] = [];
  const dump = await dumpOf();
  const types = [
    {
      type: 'cluster.v3.Cluster',
      waits: [{ kind: 'kept', name: 'outbound|8080|v0|cart.test', why: 'not configured' }],
    },
    { type: 'route.v3.RouteConfiguration', pending: 'outbound|8080|v2|cart.test, which the client cannot use yet' },
  ];
  const server: Server = createServer((request, response) => {
    requestedPaths.push(request.url ?? '');
    response.end(request.url?.startsWith('/debug/proxyz') ? JSON.stringify([{ types }]) : dump);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const from = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const request = ['--url', 'http://cart.test:8080/items', '--address', '10.0.0.1'];
  try {
    expect(await explained('--from', from, ...request)).toContain(
      'cluster       outbound|8080|v1|cart.test  (endpoints 10.1.1.1:8080)',
    );
    const text = await explained('--from', from, ...offline(), ...request);
    expect(text).toContain('← VirtualService shop/cart at mesh.yaml:21:5');
    expect(text).toContain(
      '\npending       route.v3.RouteConfiguration: waits for outbound|8080|v2|cart.test, which the client cannot use yet\n',
    );
    expect(text).toContain('\nkept          outbound|8080|v0|cart.test: not configured\n');
    expect(requestedPaths).toEqual([
      '/config_dump?include_eds',
      expect.stringContaining('/debug/config_dump?include_eds&proxyID=sidecar~'),
      expect.stringContaining('/debug/proxyz?proxyID=sidecar~'),
    ]);
    const json = JSON.parse(await explained('--from', from, ...offline(), ...request, '--format', 'json')) as object;
    expect(json).toMatchObject({
      pending: [{ type: 'route.v3.RouteConfiguration' }],
      waits: [{ type: 'cluster.v3.Cluster', kind: 'kept', name: 'outbound|8080|v0|cart.test' }],
    });
  } finally {
    server.close();
  }
});

test('pilot-discovery explain reports errors', async () => {
  await expect(explained('--url', 'http://a/')).rejects.toThrow(/--configDir/);
  await expect(explained('--registries=', '--configDir', join(root, 'missing'), ...node)).rejects.toThrow(/missing/);
  await expect(explained(...offline(), '--url', 'cart.test')).rejects.toThrow(/--url: must be .*cart\.test/);
  await expect(explained('--from', 'http://127.0.0.1:1')).rejects.toThrow(/GET http:\/\/127\.0\.0\.1:1/);
});

describe('pilot-discovery explain for a proxyless gRPC program', () => {
  const grpc = (...args: string[]): Promise<string> => explained(...offline(), '--metadata', 'GENERATOR=grpc', ...args);

  test('follows a request from its target to the clusters, with the lines of the objects', async () => {
    const text = await grpc('--url', 'xds:///cart.test:8080/shop.Cart/Get', '--header', 'x-user=anna');
    expect(text).toContain('listener      cart.test:8080');
    expect(text).toContain('virtual host  cart.test:8080');
    expect(text).toContain('← VirtualService shop/cart spec.http[1] at mesh.yaml:29:11');
    expect(text).toContain('cluster       outbound|8080|v2|cart.test  (endpoints 10.1.1.2:8080)');
    expect(text).toContain('← DestinationRule shop/cart spec.subsets[1] at mesh.yaml:20:');
    expect(text).toContain('setting       outbound|8080|v2|cart.test: load balancing by');
    expect(text).toContain(
      'no support    calls fail: gRPC has no redirect\n              ← VirtualService shop/cart spec.http[0] at',
    );
    expect(text).toContain('outcome       sent to the cluster');
  });

  test('fails with the gRPC status code and the reason', async () => {
    expect(await grpc('--url', 'xds:///cart.test:8080/old/1')).toContain(
      'outcome       the call fails with UNAVAILABLE: the route',
    );
    expect(await grpc('--url', 'xds:///other.test:8080/a/b')).toMatch(/UNAVAILABLE: .*no service other\.test .*15 s/);
    const explanation = JSON.parse(await grpc('--url', 'xds:///cart.test:1/a/b', '--format', 'json')) as object;
    expect(explanation).toMatchObject({ outcome: { kind: 'no listener', grpcStatus: 14 }, limitations: [] });
  });

  test('lists the ports that the program can serve if no URL is given', async () => {
    const at = ['--node', 'sidecar~10.1.1.1~cart-0.shop~shop.svc.cluster.local'];
    expect(await grpc(...at)).toMatch(/server {8}port 8080 of cart\.test: the server accepts plaintext only/);
  });

  test.each([
    [['--url', 'http://cart.test:8080/'], '--url: must be xds:///'],
    [['--url', 'xds:///cart.test:8080/a/b', '--http2'], '--http2'],
    [['--url', 'xds:///cart.test:8080/a/b', '--from', '127.0.0.1:1'], 'from files'],
  ])('rejects the flags %s', async (args, message) => {
    await expect(grpc(...args)).rejects.toMatchObject({
      code: 'FLAG_INVALID',
      message: expect.stringContaining(message),
    });
  });
});

/** In the format of Envoy's admin interface: a listener, its routes, a cluster and its endpoints. */
async function dumpOf(): Promise<string> {
  const type = (name: string): { '@type': string } => ({ '@type': `type.googleapis.com/envoy.${name}` });
  const manager = {
    ...type('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'),
    rds: { route_config_name: '8080', config_source: { ads: {} } },
    http_filters: [{ name: 'private', typed_config: { '@type': 'type.googleapis.com/private.Filter', secret: 1 } }],
  };
  const listener = {
    ...type('config.listener.v3.Listener'),
    name: '0.0.0.0_8080',
    traffic_direction: 'OUTBOUND',
    address: { socket_address: { address: '0.0.0.0', port_value: 8080 } },
    filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }],
  };
  const config = '/apis/networking.istio.io/v1/namespaces/shop/virtual-service/cart';
  const route = {
    match: { prefix: '/' },
    route: { cluster: 'outbound|8080|v1|cart.test' },
    metadata: { filter_metadata: { istio: { config } } },
  };
  const routes = {
    ...type('config.route.v3.RouteConfiguration'),
    name: '8080',
    virtual_hosts: [{ name: 'cart.test:8080', domains: ['cart.test', 'cart.test:8080'], routes: [route] }],
  };
  const cluster = { ...type('config.cluster.v3.Cluster'), name: 'outbound|8080|v1|cart.test', type: 'EDS' };
  const address = { socket_address: { address: '10.1.1.1', port_value: 8080 } };
  const endpoints = {
    ...type('config.endpoint.v3.ClusterLoadAssignment'),
    cluster_name: 'outbound|8080|v1|cart.test',
    endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
  };
  return JSON.stringify({
    configs: [
      {
        ...type('admin.v3.ListenersConfigDump'),
        dynamic_listeners: [
          { name: 'x', active_state: { listener }, warming_state: { listener: { ...listener, address: {} } } },
        ],
      },
      { ...type('admin.v3.RoutesConfigDump'), dynamic_route_configs: [{ route_config: routes }] },
      { ...type('admin.v3.ClustersConfigDump'), dynamic_active_clusters: [{ cluster }] },
      { ...type('admin.v3.EndpointsConfigDump'), dynamic_endpoint_configs: [{ endpoint_config: endpoints }] },
    ],
  });
}
