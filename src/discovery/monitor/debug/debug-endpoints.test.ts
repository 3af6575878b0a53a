import { describe, expect, it } from 'vitest';
import { type GivenPlane, givenPlane, sentAt } from '../../../../test/fixtures/given-plane.ts';
import { clusterType, endpointType, routeType } from '../../../networking/index.ts';
import type { Authenticator } from '../../xds/access/authenticator.ts';
import type { HttpReply } from '../http/http-server.ts';
import { type DebugAccess, debugPages, respondToDebugRequest } from './debug-endpoints.ts';
import { callerNamespace } from './known-caller.ts';

const hidden = 'c2VjcmV0LXZhbHVl';
const web = 'sidecar~10.9.9.9~web-0.shop~shop.svc.cluster.local';

const mesh = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  resolution: STATIC
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: tcp, protocol: TCP}]
  endpoints: [{address: 10.0.0.1, ports: {http: 8080, tcp: 8081}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside, namespace: shop}
spec:
  hosts: [outside.example.com]
  resolution: DNS
  location: MESH_EXTERNAL
  ports: [{number: 443, name: tls, protocol: TLS}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec: {host: cart.example.com, subsets: [{name: v1, labels: {version: v1}}]}
---
apiVersion: v1
kind: Secret
metadata:
  name: key
  namespace: shop
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"tls.key":"${hidden}"}}'}
type: kubernetes.io/tls
data: {tls.key: ${hidden}, tls.crt: ${hidden}}
`;

function plane(extraYaml = ''): GivenPlane {
  const connectedPlane = givenPlane(mesh + extraYaml);
  const identity = {
    id: web,
    cluster: 'web',
    metadata: { NAMESPACE: 'shop', CLUSTER_ID: 'Kubernetes', ISTIO_VERSION: '1.30.0', LABELS: { app: 'web' } },
  };
  connectedPlane.connect(identity, [
    {
      typeUrl: clusterType,
      wildcard: true,
      nonceSent: 'n1',
      nonceAcked: 'n1',
      versionSent: 'v1',
      versionAcked: 'v1',
      sentAt,
    },
    { typeUrl: endpointType, names: ['outbound|80||cart.example.com'], nonceSent: 'n2', versionSent: 'v1', sentAt },
    { typeUrl: routeType, names: ['80'], nonceSent: 'n4', nonceAcked: 'n3', lastError: 'no <such> cluster', sentAt },
  ]);
  return connectedPlane;
}

const operator = { headers: { authorization: 'Bearer of-this-run' } };

const operatorAccess: DebugAccess = {
  token: { hasToken: ({ headers }) => headers.authorization === operator.headers.authorization },
  localNeedsToken: false,
  checksNamespace: true,
  rootNamespace: () => 'istio-system',
  allowedNamespaces: ['ops'],
};

const fromHere = { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' };

async function request(
  sources: GivenPlane,
  path: string,
  options: { peer?: object; headers?: Record<string, string>; access?: DebugAccess; method?: string } = {},
): Promise<HttpReply> {
  const url = new URL(path, 'http://localhost');
  const reply = await respondToDebugRequest(sources, options.access ?? operatorAccess, {
    method: options.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    isLocal: true,
    headers: { host: 'localhost:15014', ...options.headers },
    readBody: async () => '',
    peer: options.peer ?? fromHere,
  });
  if (reply === undefined) throw new Error(`no page ${path}`);
  return reply;
}

async function body<T = never>(sources: GivenPlane, path: string): Promise<T> {
  const reply = await request(sources, path);
  expect(reply.status, path).toBe(200);
  return reply.body as T;
}

describe('debug pages', () => {
  it('report sent and acknowledged versions in the format that istioctl proxy-status expects', async () => {
    expect(await body(plane(), '/debug/syncz')).toEqual([
      {
        cluster_id: 'Kubernetes',
        proxy: 'web-0.shop',
        proxy_type: 'sidecar',
        proxy_version: '1.30.0',
        istio_version: '1.30.0',
        cluster_sent: 'n1',
        cluster_acked: 'n1',
        listener_sent: '',
        listener_acked: '',
        route_sent: 'n4',
        route_acked: 'n3',
        endpoint_sent: 'n2',
        endpoint_acked: '',
        endpoint_percent: 0,
        extensionconfig_sent: '',
        extensionconfig_acked: '',
        resources: {
          [clusterType]: { sent: 'n1', acked: 'n1', sentTime: sentAt, lastError: '' },
          [endpointType]: { sent: 'n2', acked: '', sentTime: sentAt, lastError: '' },
          [routeType]: { sent: 'n4', acked: 'n3', sentTime: sentAt, lastError: 'no <such> cluster' },
        },
      },
    ]);
    expect(await body(plane(), '/debug/syncz?namespace=other')).toEqual([]);
  });

  it('find a proxy by its node ID, its workload, or a prefix of its connection ID', async () => {
    for (const name of [web, 'web-0.shop', `${web}-1`, 'sidecar~10.9.9.9']) {
      expect((await request(plane(), `/debug/edsz?proxyID=${name}`)).status, name).toBe(200);
    }
  });

  it.each(['config_dump', 'edsz', 'ecdsz', 'cdsz', 'ndsz', 'sidecarz', 'authorizationz', 'telemetryz'])(
    'require the ID of a connected proxy: /debug/%s',
    async (page) => {
      expect(await request(plane(), `/debug/${page}`)).toMatchObject({
        status: 400,
        body: expect.stringMatching('proxyID'),
      });
      expect(await request(plane(), `/debug/${page}?proxyID=nobody`)).toEqual({
        status: 404,
        body: 'Proxy not connected to this Pilot instance. It may be connected to another instance.\n',
      });
    },
  );

  it('show objects in Kubernetes format, and only the key names of Secrets', async () => {
    const sources = plane();
    const objects = await body<{ kind: string; spec?: object; data?: object }[]>(sources, '/debug/configz');
    expect(objects.map(({ kind }) => kind)).toEqual(['ServiceEntry', 'ServiceEntry', 'DestinationRule', 'Secret']);
    expect(objects[0]).toMatchObject({ apiVersion: 'networking.istio.io/v1', spec: { hosts: ['cart.example.com'] } });
    expect(objects[3]).toMatchObject({ data: { 'tls.key': '[redacted]', 'tls.crt': '[redacted]' } });
    expect(JSON.stringify(objects)).not.toContain(hidden);
  });

  it('explain which objects caused the configuration of a proxy', async () => {
    const scope = await body<Record<string, never>>(plane(), '/debug/sidecarz?proxyID=web-0.shop');
    expect(scope).toMatchObject({
      name: 'default-sidecar',
      namespace: 'shop',
      services: ['shop/cart.example.com', 'shop/outside.example.com'],
      servicesByHostname: { 'cart.example.com': 'shop/cart.example.com' },
      destinationRules: { 'shop/cart.example.com': { config: { spec: { subsets: [{ name: 'v1' }] } } } },
    });
  });

  it('list the policies that select a proxy by its namespace and labels', async () => {
    const policy = (name: string, namespace: string, spec: string): string =>
      `---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {${spec}}\n`;
    const selectsWeb = 'selector: {matchLabels: {app: web}}, rules: [{}]';
    const sources = plane(
      [
        policy('everywhere', 'istio-system', 'rules: [{}]'),
        policy('web', 'shop', selectsWeb),
        policy('cart', 'shop', selectsWeb.replace('web', 'cart')),
        policy('elsewhere', 'other', selectsWeb),
        policy(
          'gateway',
          'shop',
          'targetRefs: [{kind: Gateway, group: gateway.networking.k8s.io, name: g}], rules: [{}]',
        ),
      ].join(''),
    );
    const { policies } = await body<{ policies: { metadata: { name: string } }[] }>(
      sources,
      '/debug/authorizationz?proxyID=web-0.shop',
    );
    expect(policies.map(({ metadata }) => metadata.name)).toEqual(['everywhere', 'web']);
    expect(await body(sources, '/debug/telemetryz?proxyID=web-0.shop')).toMatchObject({ policies: [] });
  });

  it('list services and their hosts in the registration format of early Pilot versions, without external services', async () => {
    const { body: text, contentType } = await request(plane(), '/v1/registration');
    expect(contentType).toBe('application/json');
    expect(JSON.parse(String(text))).toEqual([
      { 'service-key': 'cart.example.com|http', hosts: [{ ip_address: '10.0.0.1', port: 8080 }] },
      { 'service-key': 'cart.example.com|tcp', hosts: [{ ip_address: '10.0.0.1', port: 8081 }] },
    ]);
  });

  it('list endpoints by registry and cluster, or as text lines', async () => {
    const shards = await body<Record<string, never>>(plane(), '/debug/endpointShardz');
    expect(shards).toMatchObject({
      'cart.example.com': { shop: { Shards: new Map([['External/Kubernetes', [{ port: 8080 }, { port: 8081 }]]]) } },
    });
    expect(await body(plane(), '/debug/endpointz?brief=1')).toContain('cart.example.com|http shop 10.0.0.1:8080');
  });

  it('push, clear the cache and, if unsafe actions are enabled, close a stream on request of an operator', async () => {
    const sources = plane();
    const post = async (path: string, at = sources) => await request(at, path, { method: 'POST', ...operator });
    expect(await post('/debug/adsz?push=true')).toMatchObject({ body: 'Pushed to 1 servers\n' });
    expect(await post('/debug/cachez?clear=true')).toMatchObject({ body: 'Cache cleared\n' });
    const disconnectPath = '/debug/force_disconnect?proxyID=web-0.shop';
    expect((await post(disconnectPath)).status).toBe(404);
    expect(sources.actions).toEqual(['push']);
    const unsafe = { ...sources, unsafeAdmin: true };
    expect(await post(disconnectPath, unsafe)).toMatchObject({ status: 200, body: 'OK\n' });
    expect(sources.actions).toEqual(['push', `disconnect ${web}-1`]);
  });

  // See issue 33, item 4.
  it('change no state for GET or HEAD, regardless of the query', async () => {
    const sources = { ...plane(), unsafeAdmin: true };
    await request(sources, '/debug/config_dump?proxyID=web-0.shop');
    const { size } = sources.cache;
    for (const method of ['GET', 'HEAD', 'OPTIONS'])
      for (const page of ['adsz?push=true', 'cachez?clear=true', 'cachez?clear', 'force_disconnect?proxyID=web-0.shop'])
        expect(await request(sources, `/debug/${page}`, { method }), page).toMatchObject({
          status: 405,
          headers: { allow: 'POST' },
        });
    const actions = ['push', 'clear', 'order', 'force', 'reset', 'level', 'drain']
      .map((action) => `${action}=true`)
      .join('&');
    for (const { path } of debugPages) await request(sources, `/debug/${path}?proxyID=web-0.shop&${actions}`);
    expect(sources.actions).toEqual([]);
    expect(sources.cache.size).toBe(size);
  });

  it('exist for each listed name, and return 404 for other names', async () => {
    const sources = plane();
    for (const page of await body<string[]>(sources, '/debug/list')) {
      const method = page === 'force_disconnect' ? 'POST' : 'GET';
      const { status } = await request(sources, `/debug/${page}?proxyID=web-0.shop`, { method, ...operator });
      expect([200, 404], page).toContain(status);
    }
    await expect(request(sources, '/debug/nothing')).rejects.toThrow('no page');
  });
});

describe('the connection view', () => {
  it('shows sent, acknowledged, rejected and pending resources of a proxy, with the reasons', async () => {
    const [proxy] = await body<{ worst: string; slow: boolean; types: object[] }[]>(plane(), '/debug/proxyz');
    expect(proxy).toMatchObject({
      proxy: 'web-0.shop',
      protocol: 'delta',
      connectedAt: sentAt,
      worst: 'ERROR',
      slow: false,
    });
    expect(proxy!.types).toMatchObject([
      { state: 'ERROR', rejected: 'no <such> cluster' },
      { type: 'cluster.v3.Cluster', state: 'SYNCED', watches: '*', acknowledged: { version: 'v1', nonce: 'n1' } },
      { state: 'STALE', watches: 1, pending: 'the ACK of the last response' },
    ]);
  });

  it('shows the Envoy version of a proxy and the features that this version lacks', async () => {
    const envoys = [undefined, { version: [1, 40, 0], hasV8: true }, { version: [1, 35, 2], hasV8: false }];
    const envoyViews = await Promise.all(
      envoys.map(async (envoy) => {
        const sources = givenPlane(mesh);
        sources.connect(
          { id: web, cluster: 'web', metadata: { NAMESPACE: 'shop' }, ...(envoy && { envoy }) } as never,
          [],
        );
        return (await body<Record<string, unknown>[]>(sources, '/debug/proxyz'))[0]!;
      }),
    );
    expect(envoyViews.map(({ envoy }) => envoy)).toEqual([undefined, '1.40.0', '1.35.2']);
    expect(envoyViews.map(({ envoyProblem }) => envoyProblem)).toEqual([
      undefined,
      undefined,
      expect.stringMatching(/^Envoy 1\.35\.2 is older than .* built without envoy\.wasm\.runtime\.v8/),
    ]);
  });

  it('shows which configuration a proxyless gRPC client ignores', async () => {
    const route = `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: echo, namespace: shop }
spec: { hosts: [echo.test], resolution: STATIC, ports: [{ number: 7070, name: grpc, protocol: GRPC }], endpoints: [{ address: 10.0.0.1 }] }
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: echo, namespace: shop }
spec: { hosts: [echo.test], http: [{ mirror: { host: echo.test }, route: [{ destination: { host: echo.test } }] }] }
`;
    const proxylessView = async (extraYaml: string) => {
      const sources = givenPlane(mesh + extraYaml);
      sources.connect({ id: web, cluster: 'web', metadata: { NAMESPACE: 'shop', GENERATOR: 'grpc' } } as never, []);
      const [client] = sources.resources.nodesOf(web);
      client!.get(routeType, ['outbound|7070||echo.test']);
      return (await body<{ limitations?: string[] }[]>(sources, '/debug/proxyz'))[0]!.limitations;
    };
    expect(await proxylessView(route)).toEqual(['VirtualService shop/echo spec.http[0]: mirroring is ignored']);
    expect(await proxylessView(route.replace('mirror: { host: echo.test }, ', ''))).toBeUndefined();
  });

  it('distinguishes a rejected latest response from an earlier one', async () => {
    const last = { typeUrl: 'route', nonceSent: 'n2', nonceAcked: 'n1', nonceRejected: 'n2', lastError: 'bad' };
    const acknowledgedBefore = { ...last, nonceSent: 'n3' };
    const sources = givenPlane(mesh);
    sources.connect({ id: web, cluster: 'web', metadata: { NAMESPACE: 'shop' } } as never, [last, acknowledgedBefore]);
    const [proxy] = await body<{ types: object[] }[]>(sources, '/debug/proxyz');
    expect(proxy!.types).toMatchObject([
      { state: 'ERROR', rejected: 'bad' },
      { state: 'ERROR', rejected: 'bad', pending: 'the ACK of the last response' },
    ]);
    expect(proxy!.types[0]).not.toHaveProperty('pending');
  });

  it('is an HTML page with escaped values', async () => {
    const html = { headers: { accept: 'text/html,*/*' } };
    const overview = await request(plane(), '/debug/proxyz', html);
    expect(overview.contentType).toContain('text/html');
    expect(overview.body).toContain('web-0.shop');
    const detail = await request(plane(), '/debug/proxyz?proxyID=web-0.shop', html);
    expect(detail.body).toContain('no &lt;such&gt; cluster');
    expect(detail.body).not.toContain('<such>');
  });
});

describe('access to debug pages', () => {
  it('is limited to read-only requests for a local user without the token', async () => {
    const sources = { ...plane(), unsafeAdmin: true };
    const changes = ['adsz?push=true', 'cachez?clear=true', 'force_disconnect?proxyID=web-0.shop'];
    for (const page of changes)
      expect(await request(sources, `/debug/${page}`, { method: 'POST' })).toMatchObject({ status: 401 });
    expect(sources.actions).toEqual([]);
    expect((await request(sources, '/debug/configz')).status).toBe(200);
  });

  it('is rejected on each page for a local user without the token if DEBUG_ENDPOINT_AUTH_LOCALHOST is set', async () => {
    const access = { ...operatorAccess, localNeedsToken: true };
    for (const page of ['/debug/configz', '/debug/syncz', '/debug', '/v1/registration']) {
      expect((await request(plane(), page, { access })).status).toBe(401);
      expect((await request(plane(), page, { access, ...operator })).status).toBe(200);
    }
  });

  const remotePeer = { remoteAddress: '10.0.0.7', localAddress: '10.0.0.1' };
  const accessOf = (namespace: string | undefined): DebugAccess => ({
    ...operatorAccess,
    namespaceOf: async () => namespace,
  });
  const statusOf = async (page: string, access: DebugAccess): Promise<number> =>
    (await request(plane(), page, { peer: remotePeer, access })).status;

  it('is allowed from this host, but not from pages of web sites or through HTTP proxies', async () => {
    expect((await request(plane(), '/debug/configz')).status).toBe(200);
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { host: 'evil.example' },
      { 'x-forwarded-for': '10.0.0.7' },
    ]) {
      expect((await request(plane(), '/debug/adsz?push=true', { headers })).status).toBe(401);
    }
  });

  it('is rejected from other hosts without authentication', async () => {
    expect(await statusOf('/debug/configz', operatorAccess)).toBe(401);
    expect(await statusOf('/debug/configz', accessOf(undefined))).toBe(401);
    expect(await statusOf('/v1/registration', operatorAccess)).toBe(401);
  });

  it('is authenticated from other hosts like xDS streams', async () => {
    const tokenAuthenticator: Authenticator = {
      name: 'token',
      authenticate: ({ metadata }) => {
        const [token] = metadata('authorization');
        if (token === undefined) throw new Error('no token');
        return { identities: ['not a workload', `spiffe://cluster.local/ns/${token.split(' ')[1]}/sa/default`] };
      },
    };
    const access = { ...operatorAccess, namespaceOf: callerNamespace([tokenAuthenticator]) };
    const statusWith = async (headers: Record<string, string>): Promise<number> =>
      (await request(plane(), '/debug/configz', { peer: remotePeer, access, headers })).status;
    expect(await statusWith({ authorization: 'Bearer istio-system' })).toBe(200);
    expect(await statusWith({ authorization: 'Bearer shop' })).toBe(403);
    expect(await statusWith({})).toBe(401);
    expect(await statusOf('/debug/configz', { ...operatorAccess, namespaceOf: callerNamespace([]) })).toBe(401);
  });

  it('is unlimited from the root namespace and allowed namespaces', async () => {
    for (const namespace of ['istio-system', 'ops'])
      expect(await statusOf('/debug/configz', accessOf(namespace))).toBe(200);
    expect(await statusOf('/debug/configz', { ...accessOf('shop'), checksNamespace: false })).toBe(200);
  });

  it('is limited from other namespaces to three pages about their own proxies', async () => {
    for (const page of ['configz', 'syncz', 'proxyz', 'cachez?clear=true', 'adsz?push=true']) {
      expect(await statusOf(`/debug/${page}`, accessOf('shop')), page).toBe(403);
    }
    expect(await statusOf('/v1/registration', accessOf('shop'))).toBe(403);
    expect(await statusOf('/debug/config_dump?proxyID=web-0.shop', accessOf('shop'))).toBe(200);
    expect(await statusOf('/debug/edsz?proxyID=web-0.shop', accessOf('shop'))).toBe(200);
    expect(await statusOf('/debug/config_dump?proxyID=web-0.shop', accessOf('other'))).toBe(403);
  });
});
