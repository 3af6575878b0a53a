/** External authorization services for requests and connections (AuthorizationPolicy, action CUSTOM). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import type { HttpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { GrpcAuthorizer } from './harness/grpc-authorizer.ts';
import { destinationRule, gateway, object, serviceEntry, virtualService } from './harness/objects.ts';
import { sendRequest } from './harness/requests.ts';

const extensionProviders = [
  {
    name: 'by-http',
    envoyExtAuthzHttp: {
      service: 'authz-http.shop.test',
      port: 8000,
      // The test process responds, and may be busy.
      timeout: '20s',
      pathPrefix: '/check',
      includeRequestHeadersInCheck: ['x-user'],
      includeAdditionalHeadersInCheck: { 'x-mesh': 'mine' },
      headersToUpstreamOnAllow: ['x-checked'],
      headersToDownstreamOnDeny: ['x-why'],
      statusOnError: '503',
    },
  },
  { name: 'open', envoyExtAuthzHttp: { service: 'authz-down.shop.test', port: 8000, timeout: '1s', failOpen: true } },
  { name: 'by-grpc', envoyExtAuthzGrpc: { service: 'authz-grpc.shop.test', port: 9000, timeout: '20s' } },
  { name: 'elsewhere', envoyExtAuthzGrpc: { service: 'nobody.test', port: 9000 } },
];

let mesh: FeatureMesh;
let authorizer: HttpBackend;
let grpcAuthorizer: GrpcAuthorizer;

beforeAll(async () => {
  grpcAuthorizer = await GrpcAuthorizer.start();
  mesh = await FeatureMesh.start({
    proxies: { edge: { type: 'router', labels: { istio: 'edge' } } },
    meshConfig: { extensionProviders },
  });
});

afterAll(async () => {
  await mesh?.stop();
  await grpcAuthorizer?.close();
});

beforeEach(async () => {
  grpcAuthorizer.requests.length = 0;
  grpcAuthorizer.allows = true;
  authorizer = await mesh.http('authz', {
    respond: ({ headers }, response) => {
      const allows = headers['x-user'] === 'ada';
      response.statusCode = allows ? 200 : 401;
      response.setHeader(allows ? 'x-checked' : 'x-why', allows ? 'yes' : 'nobody');
      response.end();
    },
  });
});

const custom = (name: string, provider: string, rules: object[]): string =>
  object('security.istio.io/v1', 'AuthorizationPolicy', 'shop', name, {
    action: 'CUSTOM',
    provider: { name: provider },
    rules,
  });

const paths = (...of: string[]) => ({ to: [{ operation: { paths: of } }] });

const authorizers = (): string[] => [
  serviceEntry('authz-http.shop.test', { port: 8000, backends: [authorizer] }),
  serviceEntry('authz-down.shop.test', { port: 8000, backends: [{ address: '127.0.0.1', port: 1 }] }),
  serviceEntry('authz-grpc.shop.test', { port: 9000, protocol: 'GRPC', backends: [grpcAuthorizer] }),
];

async function guarded(port: number, ...policies: string[]): Promise<void> {
  const cart = await mesh.http('cart');
  await mesh.apply(
    [
      serviceEntry('cart.shop.test', { port: await mesh.port(), backends: [cart] }),
      gateway('front', { istio: 'edge' }, [{ port, protocol: 'HTTP', hosts: ['*'] }]),
      virtualService('shop.test', {
        gateways: ['front'],
        http: [{ route: [{ destination: { host: 'cart.shop.test' } }] }],
      }),
      ...authorizers(),
      ...policies,
    ].join('\n---\n'),
  );
}

// Envoy's authorization clients lose pending checks when their cluster is replaced: docs/changes-without-loss.md, "Not guaranteed".
test('a pending authorization check survives a change of endpoints, but fails when the cluster changes', async () => {
  const heldResponses: (() => void)[] = [];
  const slowAuthorizer = await mesh.http('authz', {
    respond: (_request, response) => void heldResponses.push(() => response.end()),
  });
  const [cart, other, port, portOfCart] = [
    ...(await Promise.all([mesh.http('cart'), mesh.http('authz')])),
    ...(await mesh.ports('front', 'cart').then(({ front, cart: of }) => [front, of])),
  ] as const;
  const configOf = (backends: readonly HttpBackend[], ...extraObjects: string[]): string =>
    [
      serviceEntry('cart.shop.test', { port: portOfCart!, backends: [cart] }),
      gateway('front', { istio: 'edge' }, [{ port: port!, protocol: 'HTTP', hosts: ['*'] }]),
      virtualService('shop.test', {
        gateways: ['front'],
        http: [{ route: [{ destination: { host: 'cart.shop.test' } }] }],
      }),
      serviceEntry('authz-http.shop.test', { port: 8000, backends }),
      custom('all', 'by-http', [{}]),
      ...extraObjects,
    ].join('\n---\n');
  const statusAcross = async (change: string): Promise<number> => {
    const pendingResponse = sendRequest({ port: port!, host: 'shop.test' });
    await eventually('the service is asked', () => heldResponses.length > 0);
    await mesh.apply(change);
    heldResponses.shift()!();
    return (await pendingResponse).status;
  };

  await mesh.apply(configOf([slowAuthorizer]));
  expect(await statusAcross(configOf([slowAuthorizer, other]))).toBe(200);
  await mesh.apply(configOf([slowAuthorizer]));
  const connectTimeout = destinationRule('authz-http.shop.test', {
    trafficPolicy: { connectionPool: { tcp: { connectTimeout: '5s' } } },
  });
  expect(await statusAcross(configOf([slowAuthorizer], connectTimeout))).toBe(503);
});

test('an HTTP authorization service checks only the requests that the policy matches', async () => {
  const port = await mesh.port();
  await guarded(port, custom('admin', 'by-http', [paths('/admin*')]));
  const requestPath = (path: string, headers = {}) => mesh.request('edge', { port, host: 'shop.test', path, headers });
  expect((await requestPath('/')).status).toBe(200);
  expect(authorizer.seen).toEqual([]);
  const refusedResponse = await requestPath('/admin/1', { 'x-user': 'bob' });
  expect([refusedResponse.status, refusedResponse.headers['x-why']]).toEqual([401, 'nobody']);
  const passed = await requestPath('/admin/1', { 'x-user': 'ada', 'x-other': 'unseen' });
  expect([passed.status, passed.seen.headers['x-checked']]).toEqual([200, 'yes']);
  const { url, headers } = authorizer.seen.at(-1)!;
  expect([url, headers['x-user'], headers['x-mesh'], headers['x-other']]).toEqual([
    '/check/admin/1',
    'ada',
    'mine',
    undefined,
  ]);
});

test('each of several authorization services checks only its requests', async () => {
  const port = await mesh.port();
  await guarded(port, custom('admin', 'by-http', [paths('/admin')]), custom('grpc', 'by-grpc', [paths('/grpc')]));
  const requestPath = async (path: string, headers = {}) =>
    (await mesh.request('edge', { port, host: 'shop.test', path, headers })).status;
  expect(await requestPath('/grpc')).toBe(200);
  expect(grpcAuthorizer.requests.map((bytes) => bytes.includes('/grpc'))).toEqual([true]);
  expect(authorizer.seen).toEqual([]);
  grpcAuthorizer.allows = false;
  expect(await requestPath('/grpc')).toBe(403);
  expect(await requestPath('/admin', { 'x-user': 'ada' })).toBe(200);
  expect(grpcAuthorizer.requests).toHaveLength(2);
});

test('requests are allowed with failOpen if the authorization service does not respond, but never if it does not exist', async () => {
  const port = await mesh.port();
  await guarded(
    port,
    custom('open', 'open', [paths('/open')]),
    custom('lost', 'elsewhere', [paths('/lost')]),
    custom('none', 'unknown', [paths('/none')]),
  );
  const requestPath = async (path: string) => (await mesh.request('edge', { port, host: 'shop.test', path })).status;
  expect([
    await requestPath('/'),
    await requestPath('/open'),
    await requestPath('/lost'),
    await requestPath('/none'),
  ]).toEqual([200, 200, 403, 403]);
  authorizer.respond = (_, response) => void response.destroy();
  await guarded(port, custom('closed', 'by-http', [paths('/closed')]));
  expect(await requestPath('/closed')).toBe(503);
});

test('a gRPC authorization service checks connections', async () => {
  const port = await mesh.port();
  const echo = await mesh.tcp('echo');
  await mesh.apply(
    [
      serviceEntry('echo.shop.test', { port: await mesh.port(), protocol: 'TCP', backends: [echo] }),
      gateway('front', { istio: 'edge' }, [{ port, protocol: 'TCP', hosts: ['*'] }]),
      virtualService('*', {
        hosts: ['*'],
        gateways: ['front'],
        tcp: [{ route: [{ destination: { host: 'echo.shop.test' } }] }],
      }),
      ...authorizers(),
      custom('all', 'by-grpc', [{}]),
      // HTTP services support requests only.
      custom('http', 'by-http', [{}]),
    ].join('\n---\n'),
  );
  const connect = () =>
    mesh.connect('edge', { port, send: 'hello', until: /hello/ }).then(
      ({ text }) => text.trim(),
      (error: Error) => error.message,
    );
  expect(await connect()).toMatch(/^echo/);
  grpcAuthorizer.allows = false;
  expect(await connect()).toMatch(/^closed|ECONNRESET/);
  expect(grpcAuthorizer.requests).toHaveLength(2);
  expect(authorizer.seen).toEqual([]);
});
