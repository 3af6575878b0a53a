/** Kubernetes Gateway API: Gateways and routes, at the Envoys of a gateway and a sidecar. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { createAuthority } from '../../certs/authority.ts';
import type { HttpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import {
  grpcRoute,
  httpRoute,
  kubernetesGateway,
  serviceOf,
  tcpRoute,
  tlsRoute,
  to,
} from './harness/gateway-api-objects.ts';
import { frontAddress, joinDocuments, secret } from './harness/gateway-objects.ts';
import { object } from './harness/objects.ts';

let mesh: FeatureMesh;
let [v1, v2]: HttpBackend[] = [];
let services: string;

const label = { 'gateway.networking.k8s.io/gateway-name': 'front' };

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      edge: { type: 'router', labels: label },
      foreign: { type: 'router', labels: label, namespace: 'stage' },
      addressed: { type: 'router', labels: { istio: 'ingressgateway' }, ip: frontAddress },
      web: { labels: { app: 'web' } },
    },
    env: { PILOT_SECRETS_ON_PLAINTEXT: 'true' },
  });
  [v1, v2] = [await mesh.http('v1'), await mesh.http('v2')];
  services = joinDocuments(serviceOf(v1), serviceOf(v2));
});

afterAll(() => mesh?.stop());

/** A Gateway with one listener, its routes, and both Services. */
async function serve(rules: readonly object[], listener: object = {}): Promise<number> {
  const port = await mesh.port();
  await mesh.apply(joinDocuments(services, kubernetesGateway([{ port, ...listener }]), httpRoute(rules)));
  return port;
}

const grantToGateways = object('gateway.networking.k8s.io/v1', 'ReferenceGrant', 'certs', 'gateways', {
  from: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'shop' }],
  to: [{ group: '', kind: 'Secret', name: 'web' }],
});

const filters = (type: string, field: string, value: object): object => ({ filters: [{ type, [field]: value }] });

describe('matches of HTTPRoute rules', () => {
  test('select by path, method, headers and query parameters, the most specific rule first', async () => {
    const port = await serve([
      { backendRefs: [to('v1')] },
      { matches: [{ path: { value: '/items' } }], backendRefs: [to('v2')] },
      { matches: [{ path: { type: 'Exact', value: '/items/one' } }], backendRefs: [to('v1')] },
      { matches: [{ path: { value: '/items' }, method: 'POST' }], backendRefs: [to('v1')] },
      { matches: [{ headers: [{ name: 'X-Beta', value: 'yes' }] }], backendRefs: [to('v2')] },
      {
        matches: [{ queryParams: [{ name: 'v', type: 'RegularExpression', value: '[0-9]+' }] }],
        backendRefs: [to('v2')],
      },
      { matches: [{ path: { type: 'RegularExpression', value: '/[a-z]+[.]html' } }], backendRefs: [to('v2')] },
    ]);
    const backendFor = async (path: string, requestOptions: object = {}): Promise<string> =>
      (await mesh.request('edge', { port, host: 'shop.test', path, ...requestOptions })).seen.backend;
    expect(await backendFor('/')).toBe('v1');
    expect(await backendFor('/items')).toBe('v2');
    expect(await backendFor('/items/two?a=b')).toBe('v2');
    expect(await backendFor('/itemsx')).toBe('v1');
    expect(await backendFor('/items/one')).toBe('v1');
    expect(await backendFor('/items/two', { method: 'POST' })).toBe('v1');
    expect(await backendFor('/', { headers: { 'x-beta': 'yes' } })).toBe('v2');
    expect(await backendFor('/', { headers: { 'x-beta': 'no' } })).toBe('v1');
    expect(await backendFor('/?v=12')).toBe('v2');
    expect(await backendFor('/?v=a')).toBe('v1');
    // The Gateway API orders exact and prefix matches, including the rule for every path, before regular expressions.
    expect(await backendFor('/index.html')).toBe('v1');
  });

  test('evaluate regular expressions last if no rule matches every path', async () => {
    const port = await serve([
      { matches: [{ path: { type: 'RegularExpression', value: '/[a-z]+[.]html' } }], backendRefs: [to('v2')] },
      { matches: [{ method: 'POST' }, { path: { value: '/items' } }], backendRefs: [to('v1')] },
    ]);
    const backendFor = async (path: string, requestOptions: object = {}) =>
      (await mesh.request('edge', { port, host: 'shop.test', path, ...requestOptions })).headers['x-backend'];
    expect(await backendFor('/index.html')).toBe('v2');
    expect(await backendFor('/index.html', { method: 'POST' })).toBe('v1');
    expect(await backendFor('/items/x')).toBe('v1');
  });

  test('select from all routes for the host', async () => {
    const port = await mesh.port();
    await mesh.apply(
      joinDocuments(
        services,
        kubernetesGateway([{ port, hostname: '*.test', allowedRoutes: { namespaces: { from: 'All' } } }]),
        httpRoute([{ backendRefs: [to('v1')] }], { name: 'a', hostnames: ['shop.test'] }),
        httpRoute([{ matches: [{ path: { value: '/v2' } }], backendRefs: [to('v2')] }], { name: 'b' }),
        httpRoute([{ matches: [{ path: { value: '/v2' } }], backendRefs: [to('v2')] }], {
          name: 'c',
          hostnames: ['shop.test', 'other.test'],
        }),
      ),
    );
    const get = async (host: string, path: string) => (await mesh.request('edge', { port, host, path })).headers;
    expect((await get('shop.test', '/v2/x'))['x-backend']).toBe('v2');
    expect((await get('shop.test', '/'))['x-backend']).toBe('v1');
    expect((await get('any.test', '/v2'))['x-backend']).toBe('v2');
    expect((await mesh.request('edge', { port, host: 'other.test', path: '/' })).status).toBe(404);
    expect((await mesh.request('edge', { port, host: 'elsewhere.example', path: '/v2' })).status).toBe(404);
  });
});

describe('a rule of an HTTPRoute', () => {
  test('splits requests by weight, with separate headers for each share', async () => {
    const canary = filters('RequestHeaderModifier', 'requestHeaderModifier', {
      set: [{ name: 'X-Canary', value: '1' }],
    });
    const port = await serve([{ backendRefs: [to('v1', { weight: 3 }), to('v2', { weight: 1, ...canary })] }]);
    const counts: Record<string, number> = {};
    for (let i = 0; i < 80; i++) {
      const { seen } = await mesh.request('edge', { port, host: 'shop.test' });
      expect(seen.headers['x-canary']).toBe(seen.backend === 'v2' ? '1' : undefined);
      counts[seen.backend] = (counts[seen.backend] ?? 0) + 1;
    }
    expect(counts.v1).toBeGreaterThan(40);
    expect(counts.v2).toBeGreaterThan(5);
  });

  test('responds with 500 to the share of a missing backend, and to all requests if it has no other backend', async () => {
    const halfPort = await serve([{ backendRefs: [to('v1'), to('gone')] }]);
    const counts = await mesh.split('edge', { port: halfPort, host: 'shop.test' }, 40);
    expect(Object.keys(counts).sort()).toEqual(['500', 'v1']);
    const none = await serve([{ backendRefs: [to('gone')] }]);
    expect((await mesh.request('edge', { port: none, host: 'shop.test' })).status).toBe(500);
    expect(mesh.pilot.lines.join('\n')).toContain('there is no Service shop/gone');
  });

  test('changes headers of requests and responses with literal values', async () => {
    const port = await serve([
      {
        filters: [
          {
            type: 'RequestHeaderModifier',
            requestHeaderModifier: {
              set: [{ name: 'X-Share', value: '100%' }],
              add: [{ name: 'X-List', value: 'b' }],
              remove: ['X-Secret'],
            },
          },
          {
            type: 'ResponseHeaderModifier',
            responseHeaderModifier: { add: [{ name: 'X-By', value: '%START_TIME%' }], remove: ['X-Backend'] },
          },
        ],
        backendRefs: [to('v1')],
      },
    ]);
    const headers = { 'x-share': '1', 'x-list': 'a', 'x-secret': 's' };
    const reply = await mesh.request('edge', { port, host: 'shop.test', headers });
    expect(reply.seen.headers).toMatchObject({ 'x-share': '100%', 'x-list': 'a, b' });
    expect(reply.seen.headers).not.toHaveProperty('x-secret');
    expect(reply.headers['x-by']).toBe('%START_TIME%');
    expect(reply.headers).not.toHaveProperty('x-backend');
  });

  test('redirects to https without a port number', async () => {
    const port = await mesh.port();
    const toHttps = filters('RequestRedirect', 'requestRedirect', { scheme: 'https', statusCode: 301 });
    const hostnames = ['a.test', 'b.test'];
    await mesh.apply(joinDocuments(services, kubernetesGateway([{ port }]), httpRoute([toHttps], { hostnames })));
    for (const host of ['a.test', `a.test:${port}`, 'b.test:80']) {
      const { status, headers } = await mesh.request('edge', { port, host, path: '/x?y=z' });
      expect(`${status} ${headers.location}`).toBe(`301 https://${host.split(':')[0]}/x?y=z`);
    }
  });

  test('redirects with the specified scheme, host, port, path and status', async () => {
    const redirect = (path: string, value: object): object => ({
      matches: [{ path: { value: path } }],
      ...filters('RequestRedirect', 'requestRedirect', value),
    });
    const port = await serve([
      redirect('/secure', { scheme: 'https', hostname: 'new.test', statusCode: 301 }),
      redirect('/port', { port: 8443 }),
      redirect('/same', { hostname: 'new.test' }),
      redirect('/kept', { scheme: 'https' }),
      redirect('/full', { path: { type: 'ReplaceFullPath', replaceFullPath: '/all' }, statusCode: 307 }),
      redirect('/old', { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/new' }, statusCode: 308 }),
      redirect('/cut', { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } }),
    ]);
    const location = async (path: string, host = `a.test:${port}`): Promise<string> => {
      const { status, headers } = await mesh.request('edge', { port, host, path });
      return `${status} ${headers.location}`;
    };
    expect(await location('/secure/a?b=c')).toBe('301 https://new.test/secure/a?b=c');
    expect(await location('/port')).toBe('302 http://a.test:8443/port');
    expect(await location('/same')).toBe(`302 http://new.test:${port}/same`);
    expect(await location('/kept', 'a.test')).toBe('302 https://a.test/kept');
    // Envoy keeps the request's port unless the redirect specifies one.
    expect(await location('/kept')).toBe('302 https://a.test:443/kept');
    expect(await location('/full/x?y=z')).toBe(`307 http://a.test:${port}/all?y=z`);
    expect(await location('/old/x')).toBe(`308 http://a.test:${port}/new/x`);
    expect(await location('/old')).toBe(`308 http://a.test:${port}/new`);
    expect(await location('/cut/x')).toBe(`302 http://a.test:${port}/x`);
    expect(await location('/cut')).toBe(`302 http://a.test:${port}/`);
  });

  test('rewrites the host and the path', async () => {
    const rewrite = (path: string, value: object): object => ({
      matches: [{ path: { value: path } }],
      ...filters('URLRewrite', 'urlRewrite', value),
      backendRefs: [to('v1')],
    });
    const prefix = (value: string): object => ({ path: { type: 'ReplacePrefixMatch', replacePrefixMatch: value } });
    const port = await serve([
      rewrite('/host', { hostname: 'inner.test' }),
      rewrite('/full', { path: { type: 'ReplaceFullPath', replaceFullPath: '/all' } }),
      rewrite('/a', prefix('/x')),
      rewrite('/b', prefix('/')),
      rewrite('/c.d', prefix('')),
      rewrite('/', prefix('/root')),
    ]);
    const seenRequest = async (path: string) => (await mesh.request('edge', { port, host: 'shop.test', path })).seen;
    expect((await seenRequest('/host')).headers.host).toBe('inner.test');
    expect((await seenRequest('/a')).headers.host).toBe('shop.test');
    const urls: Record<string, string> = {};
    for (const path of ['/full/x?q=1', '/a/y?q=1', '/a', '/b/y', '/b', '/b?q=1', '/c.d/y', '/z', '/']) {
      urls[path] = (await seenRequest(path)).url;
    }
    expect(urls).toEqual({
      '/full/x?q=1': '/all?q=1',
      '/a/y?q=1': '/x/y?q=1',
      '/a': '/x',
      '/b/y': '/y',
      '/b': '/',
      '/b?q=1': '/?q=1',
      '/c.d/y': '/y',
      '/z': '/root/z',
      '/': '/root/',
    });
  });

  test('mirrors requests to another backend', async () => {
    const mirror = (value: object): object => filters('RequestMirror', 'requestMirror', value);
    const port = await serve([
      { ...mirror({ backendRef: to('v2') }), backendRefs: [to('v1')] },
      {
        matches: [{ path: { value: '/never' } }],
        ...mirror({ backendRef: to('v2'), percent: 0 }),
        backendRefs: [to('v1')],
      },
    ]);
    const previousCount = v2!.seen.length;
    expect((await mesh.request('edge', { port, host: 'shop.test', path: '/never' })).seen.backend).toBe('v1');
    expect((await mesh.request('edge', { port, host: 'shop.test', path: '/both' })).seen.backend).toBe('v1');
    await expect.poll(() => v2!.seen.slice(previousCount).map(({ url }) => url)).toEqual(['/both']);
  });

  test('applies its timeout', async () => {
    const slowBackend = await mesh.http('slow', {
      respond: (_, response) => void setTimeout(() => response.end(), 1_000),
    });
    const port = await mesh.port();
    const rule = (path: string, timeouts: object): object => ({
      matches: [{ path: { value: path } }],
      timeouts,
      backendRefs: [to('slow')],
    });
    const rules = [
      rule('/request', { request: '150ms' }),
      rule('/backend', { backendRequest: '150ms' }),
      rule('/', {}),
    ];
    await mesh.apply(joinDocuments(serviceOf(slowBackend), kubernetesGateway([{ port }]), httpRoute(rules)));
    const sendTo = (path: string) => mesh.request('edge', { port, host: 'shop.test', path });
    expect((await sendTo('/request')).status).toBe(504);
    expect((await sendTo('/backend')).status).toBe(504);
    expect((await sendTo('/')).status).toBe(200);
  });
});

describe('a GRPCRoute', () => {
  const call = (port: number, path: string) =>
    mesh.request('edge', {
      ...{ port, host: 'shop.test', path, method: 'POST', http2: true },
      headers: { 'content-type': 'application/grpc', te: 'trailers' },
    });

  test('matches calls by service and method, along with an HTTPRoute for the same host', async () => {
    const port = await mesh.port();
    await mesh.apply(
      joinDocuments(
        services,
        kubernetesGateway([{ port }]),
        httpRoute([{ backendRefs: [to('v1')] }]),
        grpcRoute([
          { matches: [{ method: { service: 'shop.v1.Cart' } }], backendRefs: [to('v2')] },
          { matches: [{ method: { service: 'shop.v1.Cart', method: 'Get' } }], backendRefs: [to('v1')] },
        ]),
      ),
    );
    const backendFor = async (path: string): Promise<unknown> => (await call(port, path)).headers['x-backend'];
    expect(await backendFor('/shop.v1.Cart/Add')).toBe('v2');
    expect(await backendFor('/shop.v1.Cart/Get')).toBe('v1');
    expect(await backendFor('/other.Service/Get')).toBe('v1');
  });

  test('responds UNAVAILABLE if the backend is missing', async () => {
    const port = await mesh.port();
    await mesh.apply(
      joinDocuments(services, kubernetesGateway([{ port }]), grpcRoute([{ backendRefs: [to('gone')] }])),
    );
    const { status, headers } = await call(port, '/a.B/C');
    expect([status, headers['grpc-status']]).toEqual([200, '14']);
  });
});

describe('Layer 4 routes', () => {
  const passthrough = (port: number, hostname: string) => ({
    ...{ port, protocol: 'TLS', hostname, tls: { mode: 'Passthrough' } },
  });

  test('a TCPRoute splits the connections of its port, and closes those to a missing backend', async () => {
    const { both, half, none } = await mesh.ports('both', 'half', 'none');
    const [one, two] = [await mesh.tcp('one'), await mesh.tcp('two')];
    const at = (index: number, name: string) => ({ name, parentRefs: [{ name: 'front', sectionName: `l${index}` }] });
    await mesh.apply(
      joinDocuments(
        serviceOf(one),
        serviceOf(two),
        kubernetesGateway([both, half, none].map((port) => ({ port, protocol: 'TCP' }))),
        tcpRoute([{ backendRefs: [to('one'), to('two')] }], at(0, 'both')),
        tcpRoute([{ backendRefs: [to('one'), to('gone')] }], at(1, 'half')),
        tcpRoute([{ backendRefs: [to('gone')] }], at(2, 'none')),
      ),
    );
    const backendFor = async (port: number): Promise<string> => {
      try {
        return (await mesh.connect('edge', { port })).text.trim();
      } catch {
        return 'closed';
      }
    };
    const times = async (port: number, count: number): Promise<string[]> => {
      const receivedNames: string[] = [];
      for (let time = 0; time < count; time++) receivedNames.push(await backendFor(port));
      return [...new Set(receivedNames)].sort();
    };
    expect(await times(both, 30)).toEqual(['one', 'two']);
    expect(await times(half, 30)).toEqual(['closed', 'one']);
    expect(await times(none, 3)).toEqual(['closed']);
  });

  test('a TLSRoute passes TLS through by SNI, along with a listener on the same port that terminates TLS', async () => {
    const port = await mesh.port();
    const [ownCertificate, terminatedCertificate] = [
      mesh.authority.issue(['x.a.test']),
      mesh.authority.issue(['b.test']),
    ];
    const encrypted = await mesh.tcp('encrypted', {
      tls: { cert: ownCertificate.certificate, key: ownCertificate.privateKey },
    });
    await mesh.apply(
      joinDocuments(
        services,
        serviceOf(encrypted),
        kubernetesGateway([
          passthrough(port, '*.a.test'),
          { port, protocol: 'HTTPS', hostname: 'b.test', tls: { certificateRefs: [{ name: 'ended' }] } },
        ]),
        tlsRoute([{ backendRefs: [to('encrypted')] }], { name: 'through', hostnames: ['x.a.test'] }),
        httpRoute([{ backendRefs: [to('v1')] }]),
        secret('ended', terminatedCertificate),
      ),
    );
    const { certificate: ca } = mesh.authority;
    const connection = await mesh.connect('edge', { port, tls: { servername: 'x.a.test', ca } });
    expect([connection.text.trim(), connection.peer!.subjectaltname]).toEqual(['encrypted', 'DNS:x.a.test']);
    const reply = await mesh.request('edge', { port, host: 'b.test', tls: { servername: 'b.test', ca } });
    expect(reply.seen.backend).toBe('v1');
    await expect(mesh.connect('edge', { port, tls: { servername: 'y.a.test', ca } })).rejects.toThrow();
  });

  test('a TCPRoute on a listener that terminates TLS receives the plaintext', async () => {
    const port = await mesh.port();
    const plainText = await mesh.tcp('plain');
    const tls = { certificateRefs: [{ name: 'ended' }] };
    await mesh.apply(
      joinDocuments(
        serviceOf(plainText),
        kubernetesGateway([{ port, protocol: 'TLS', hostname: 'b.test', tls }]),
        tcpRoute([{ backendRefs: [to('plain')] }]),
        secret('ended', mesh.authority.issue(['b.test'])),
      ),
    );
    const connection = await mesh.connect('edge', {
      port,
      tls: { servername: 'b.test', ca: mesh.authority.certificate },
    });
    expect(connection.text.trim()).toBe('plain');
  });

  test('TLSRoutes on a listener that terminates TLS receive the plaintext by SNI, along with a passthrough listener', async () => {
    const port = await mesh.port();
    const [one, two] = [await mesh.tcp('one'), await mesh.tcp('two')];
    const ownCertificate = mesh.authority.issue(['x.a.test']);
    const encrypted = await mesh.tcp('encrypted', {
      tls: { cert: ownCertificate.certificate, key: ownCertificate.privateKey },
    });
    await mesh.apply(
      joinDocuments(
        ...[one, two, encrypted].map((backend) => serviceOf(backend)),
        kubernetesGateway([
          { port, protocol: 'TLS', hostname: '*.b.test', tls: { certificateRefs: [{ name: 'ended' }] } },
          { port, protocol: 'TLS', hostname: 'x.a.test', tls: { mode: 'Passthrough' } },
        ]),
        tlsRoute([{ backendRefs: [to('one')] }], { name: 'one', hostnames: ['one.b.test'] }),
        tlsRoute([{ backendRefs: [to('two')] }], { name: 'two', hostnames: ['two.b.test'] }),
        tlsRoute([{ backendRefs: [to('encrypted')] }], { name: 'through', hostnames: ['x.a.test'] }),
        secret('ended', mesh.authority.issue(['*.b.test'])),
      ),
    );
    const connect = (servername: string) =>
      mesh.connect('edge', { port, tls: { servername, ca: mesh.authority.certificate } });
    expect((await connect('one.b.test')).text.trim()).toBe('one');
    expect((await connect('two.b.test')).text.trim()).toBe('two');
    expect((await connect('x.a.test')).text.trim()).toBe('encrypted');
    await expect(connect('none.b.test')).rejects.toThrow();
  });

  test('a TCPRoute with a Service as parent applies to clients of the Service in the mesh', async () => {
    const port = await mesh.port();
    const [cart, other] = [await mesh.tcp('cart'), await mesh.tcp('other')];
    const objects = joinDocuments(serviceOf(cart, { port }), serviceOf(other));
    const parentRefs = [{ group: '', kind: 'Service', name: 'cart', namespace: 'shop' }];
    const backendFor = async (): Promise<string> => (await mesh.connect('web', { port })).text.trim();
    await mesh.apply(joinDocuments(objects, tcpRoute([{ backendRefs: [to('other')] }], { parentRefs })));
    expect(await backendFor()).toBe('other');
    await mesh.apply(objects);
    expect(await backendFor()).toBe('cart');
  });
});

describe('a Gateway', () => {
  test('connects to a Service as specified by its BackendTLSPolicy, and never in plaintext', async () => {
    const port = await mesh.port();
    const ownCertificate = mesh.authority.issue(['web.test']);
    const secured = await mesh.http('secured', {
      tls: { cert: ownCertificate.certificate, key: ownCertificate.privateKey },
    });
    const objects = joinDocuments(
      serviceOf(secured),
      kubernetesGateway([{ port }]),
      httpRoute([{ backendRefs: [to('secured')] }]),
    );
    const authorities = (certificate: string): string =>
      stringify({
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ca', namespace: 'shop' } },
        data: { 'ca.crt': certificate },
      });
    const policy = (hostname: string): string =>
      object('gateway.networking.k8s.io/v1', 'BackendTLSPolicy', 'shop', 'secured', {
        targetRefs: [{ group: '', kind: 'Service', name: 'secured' }],
        validation: { hostname, caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'ca' }] },
      });
    const status = async (...extraObjects: string[]): Promise<number> => {
      await mesh.apply(joinDocuments(objects, ...extraObjects));
      return (await mesh.request('edge', { port, host: 'shop.test' })).status;
    };
    const ca = authorities(mesh.authority.certificate);
    expect(await status(policy('web.test'), ca)).toBe(200);
    expect(await status(policy('other.test'), ca)).toBe(503);
    expect(await status(policy('web.test'), authorities(createAuthority('other').certificate))).toBe(503);
    expect(await status(policy('web.test'))).toBe(503);
    expect(await status(policy('web.test'), ca)).toBe(200);
  });

  test('responds with 503 for a Service whose BackendTLSPolicy is invalid', async () => {
    const port = await mesh.port();
    const objects = joinDocuments(services, kubernetesGateway([{ port }]), httpRoute([{ backendRefs: [to('v1')] }]));
    const policy = object('gateway.networking.k8s.io/v1', 'BackendTLSPolicy', 'shop', 'v1', {
      targetRefs: [{ group: '', kind: 'Service', name: 'v1' }],
      validation: { hostname: 'web.test', wellKnownCACertificates: 'System', crl: 'list' },
    });
    const status = async (): Promise<number> => (await mesh.request('edge', { port, host: 'shop.test' })).status;
    await mesh.apply(objects);
    expect(await status()).toBe(200);
    await mesh.apply({ 'objects.yaml': objects, 'policy.yaml': policy }, { invalid: true });
    expect(await status()).toBe(503);
  });

  test('terminates TLS with a Secret of another namespace while a ReferenceGrant allows it', async () => {
    const port = await mesh.port();
    const certificate = mesh.authority.issue(['a.test']);
    const tls = { certificateRefs: [{ name: 'web', namespace: 'certs' }] };
    const objects = joinDocuments(
      services,
      kubernetesGateway([{ port, protocol: 'HTTPS', tls }]),
      httpRoute([{ backendRefs: [to('v1')] }]),
    );
    const cert = secret('web', certificate).replace('shop', 'certs');
    const request = { port, host: 'a.test', tls: { servername: 'a.test', ca: mesh.authority.certificate } };
    await mesh.apply({ 'objects.yaml': objects, 'cert.yaml': cert, 'grant.yaml': grantToGateways });
    expect((await mesh.request('edge', request)).seen.backend).toBe('v1');
    await mesh.apply({ 'objects.yaml': objects, 'cert.yaml': cert });
    await expect(mesh.request('edge', request)).rejects.toThrow();
    await mesh.apply({ 'objects.yaml': objects, 'cert.yaml': cert, 'grant.yaml': grantToGateways });
    expect((await mesh.request('edge', request)).seen.backend).toBe('v1');
  });

  test('terminates TLS with the Secrets that its listeners name', async () => {
    const port = await mesh.port();
    const [certificateA, certificateB] = [mesh.authority.issue(['a.test']), mesh.authority.issue(['*.b.test'])];
    const https = (hostname: string, name: string) => ({
      ...{ port, protocol: 'HTTPS', hostname },
      tls: { certificateRefs: [{ name }] },
    });
    await mesh.apply(
      joinDocuments(
        services,
        kubernetesGateway([https('a.test', 'cert-a'), https('*.b.test', 'cert-b')]),
        httpRoute([{ backendRefs: [to('v1')] }], { hostnames: ['a.test'] }),
        httpRoute([{ backendRefs: [to('v2')] }], { name: 'b', hostnames: ['x.b.test'] }),
        secret('cert-a', certificateA),
        secret('cert-b', certificateB),
      ),
    );
    const sendTo = (host: string) =>
      mesh.request('edge', { port, host, tls: { servername: host, ca: mesh.authority.certificate } });
    expect((await sendTo('a.test')).seen.backend).toBe('v1');
    expect((await sendTo('x.b.test')).seen.backend).toBe('v2');
    expect((await sendTo('y.b.test')).status).toBe(404);
  });

  test('closes connections to an inactive listener even if an active listener has a wider host name', async () => {
    const port = await mesh.port();
    const https = (hostname: string, extraTls: object = {}) => ({
      ...{ port, protocol: 'HTTPS', hostname },
      tls: { certificateRefs: [{ name: 'cert' }], ...extraTls },
    });
    const route = httpRoute([{ backendRefs: [to('v1')] }]);
    const cert = secret('cert', mesh.authority.issue(['*.b.test']));
    const sendTo = (host: string) =>
      mesh.request('edge', { port, host, tls: { servername: host, ca: mesh.authority.certificate } });
    await mesh.apply(joinDocuments(services, kubernetesGateway([https('*.b.test')]), route, cert));
    expect((await sendTo('a.b.test')).seen.backend).toBe('v1');
    // Requires client certificates in an unsupported way.
    const unsupported = https('a.b.test', { frontendValidation: { caCertificateRefs: [] } });
    await mesh.apply(joinDocuments(services, kubernetesGateway([https('*.b.test'), unsupported]), route, cert));
    expect((await sendTo('x.b.test')).seen.backend).toBe('v1');
    await expect(sendTo('a.b.test')).rejects.toThrow();
  });

  test('accepts the routes that it allows, and reports the others', async () => {
    const [{ own: ownPort, any, labelled }, otherBackend] = [
      await mesh.ports('own', 'any', 'labelled'),
      await mesh.http('elsewhere'),
    ];
    const from = (namespaces: object) => ({ allowedRoutes: { namespaces } });
    const refs = (index: number) => ({
      namespace: 'stage',
      name: `r${index}`,
      parentRefs: [{ name: 'front', namespace: 'shop', sectionName: `l${index}` }],
    });
    const apply = (labels: object): Promise<void> =>
      mesh.apply(
        joinDocuments(
          serviceOf(otherBackend, { namespace: 'stage' }),
          JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'stage', labels } }),
          kubernetesGateway([
            { port: ownPort },
            { port: any, ...from({ from: 'All' }) },
            { port: labelled, ...from({ from: 'Selector', selector: { matchLabels: { team: 'web' } } }) },
          ]),
          ...[0, 1, 2].map((index) => httpRoute([{ backendRefs: [to('elsewhere')] }], refs(index))),
        ),
      );
    const statuses = async (): Promise<number[]> => {
      const replies = [ownPort, any, labelled].map((port) => mesh.request('edge', { port, host: 'shop.test' }));
      return (await Promise.all(replies)).map(({ status }) => status);
    };
    await apply({ team: 'web' });
    expect(await statuses()).toEqual([404, 200, 200]);
    expect(mesh.pilot.lines.join('\n')).toContain('allows HTTPRoutes of namespace stage (allowedRoutes)');
    await apply({ team: 'db' });
    expect(await statuses()).toEqual([404, 200, 404]);
  });

  test('is served by workloads of its own namespace, or by the Service that it names', async () => {
    const [port, target] = [await mesh.port(), await mesh.port()];
    const routes = joinDocuments(services, httpRoute([{ backendRefs: [to('v1')] }]));
    await mesh.apply(joinDocuments(routes, kubernetesGateway([{ port }])));
    expect((await mesh.request('edge', { port, host: 'shop.test' })).status).toBe(200);
    const listening = async (proxy: string): Promise<boolean> =>
      (await mesh.envoy(proxy).admin('/listeners')).includes(`:${port}`);
    expect([await listening('edge'), await listening('foreign'), await listening('addressed')]).toEqual([
      true,
      false,
      false,
    ]);
    const service = joinDocuments(
      `{apiVersion: v1, kind: Service, metadata: {name: entry, namespace: shop}, spec: {ports: [{name: http, port: 80, targetPort: ${target}}]}}`,
      `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: entry-1, namespace: shop, labels: {kubernetes.io/service-name: entry}}, addressType: IPv4, ports: [{name: http, port: ${target}}], endpoints: [{addresses: [${frontAddress}]}]}`,
    );
    const addresses = [{ type: 'Hostname', value: 'entry' }];
    await mesh.apply(joinDocuments(routes, service, kubernetesGateway([{ port: 80 }], { addresses })));
    expect((await mesh.request('addressed', { port: target, host: 'shop.test' })).seen.backend).toBe('v1');
  });

  test('serves the host of a listener only on that listener', async () => {
    const port = await mesh.port();
    await mesh.apply(
      joinDocuments(
        services,
        kubernetesGateway([{ port }, { port, hostname: '*.a.test' }, { port, hostname: 'one.a.test' }]),
        httpRoute([{ backendRefs: [to('v1')] }], { parentRefs: [{ name: 'front', sectionName: 'l0' }] }),
        httpRoute([{ backendRefs: [to('v2')] }], {
          name: 'x',
          hostnames: ['x.a.test', 'one.a.test'],
          parentRefs: [{ name: 'front', sectionName: 'l1' }],
        }),
      ),
    );
    const get = async (host: string) => (await mesh.request('edge', { port, host })).headers['x-backend'] ?? 'nobody';
    expect(await get('any.test')).toBe('v1');
    expect(await get('x.a.test')).toBe('v2');
    expect(await get('y.a.test')).toBe('nobody');
    expect(await get('one.a.test')).toBe('nobody');
  });

  test('changes at run time without failed requests', async () => {
    const port = await serve([{ backendRefs: [to('v1')] }]);
    const listeners = await mesh.envoy('edge').stat('listener_manager.listener_modified');
    const sendTo = () => mesh.request('edge', { port, host: 'shop.test' });
    expect((await sendTo()).seen.backend).toBe('v1');
    const gateway = kubernetesGateway([{ port }]);
    await mesh.apply(joinDocuments(services, gateway, httpRoute([{ backendRefs: [to('v2')] }])));
    expect((await sendTo()).seen.backend).toBe('v2');
    // Deletes the Service and creates it again.
    await mesh.apply(joinDocuments(serviceOf(v1!), gateway, httpRoute([{ backendRefs: [to('v2')] }])));
    expect((await sendTo()).status).toBe(500);
    await mesh.apply(joinDocuments(services, gateway, httpRoute([{ backendRefs: [to('v2')] }])));
    expect((await sendTo()).seen.backend).toBe('v2');
    await mesh.apply(joinDocuments(services, gateway));
    expect((await sendTo()).status).toBe(404);
    expect(await mesh.envoy('edge').stat('listener_manager.listener_modified')).toBe(listeners);
  });
});

describe('an HTTPRoute with a Service as parent', () => {
  const serviceParents = [{ group: '', kind: 'Service', name: 'cart', namespace: 'shop' }];

  test('applies to clients of the Service in the mesh', async () => {
    const [port, cart] = [await mesh.port(), await mesh.http('cart')];
    const rules = [
      { matches: [{ path: { value: '/new' } }], backendRefs: [to('v2')] },
      { matches: [{ path: { value: '/gone' } }], backendRefs: [to('gone')] },
      { backendRefs: [{ name: 'cart', port }] },
    ];
    await mesh.apply(
      joinDocuments(services, serviceOf(cart, { port }), httpRoute(rules, { parentRefs: serviceParents })),
    );
    const sendTo = (path: string) => mesh.request('web', { port, host: 'cart.shop', path });
    expect((await sendTo('/')).seen.backend).toBe('cart');
    expect((await sendTo('/new')).seen.backend).toBe('v2');
    expect((await sendTo('/gone')).status).toBe(500);
    await mesh.apply(joinDocuments(services, serviceOf(cart, { port })));
    expect((await sendTo('/new')).seen.backend).toBe('cart');
  });

  test('sends to a Service of another namespace even without a ReferenceGrant', async () => {
    const [port, cart] = [await mesh.port(), await mesh.http('cart')];
    const route = httpRoute([{ backendRefs: [to('v2', { namespace: 'stage' })] }], { parentRefs: serviceParents });
    await mesh.apply(joinDocuments(serviceOf(cart, { port }), serviceOf(v2!, { namespace: 'stage' }), route));
    expect((await mesh.request('web', { port, host: 'cart.shop' })).seen.backend).toBe('v2');
  });

  test('applies only to clients of its own namespace if it is in another namespace than the Service', async () => {
    const [port, cart] = [await mesh.port(), await mesh.http('cart')];
    // Clients of a Service need no ReferenceGrant of its namespace.
    const stageRoute = httpRoute([{ backendRefs: [to('v2', { namespace: 'shop' })] }], {
      namespace: 'stage',
      parentRefs: serviceParents,
    });
    await mesh.apply(joinDocuments(services, serviceOf(cart, { port }), stageRoute));
    expect((await mesh.request('web', { port, host: 'cart.shop' })).seen.backend).toBe('cart');
    await mesh.apply(
      joinDocuments(
        services,
        serviceOf(cart, { port }),
        httpRoute([{ backendRefs: [to('v1')] }], { parentRefs: serviceParents }),
        stageRoute,
      ),
    );
    expect((await mesh.request('web', { port, host: 'cart.shop' })).seen.backend).toBe('v1');
  });
});
