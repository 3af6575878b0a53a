/** Every action of a VirtualService's route except the choice of its destination, tested with requests. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bestOf } from '../../harness/best-of.ts';
import { eventually } from '../../harness/eventually.ts';
import type { HttpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { serviceEntry, virtualService } from './harness/objects.ts';
import type { RequestTo } from './harness/requests.ts';

const host = 'cart.shop.test';
let mesh: FeatureMesh;
let cart: HttpBackend;
let port: number;

beforeAll(async () => {
  mesh = await FeatureMesh.start({ proxies: { web: { labels: { app: 'web' } } } });
});

afterAll(() => mesh.stop());

/** The cart service with a route for each action. */
async function applyRoutes(...routes: object[]): Promise<void> {
  cart = await mesh.http('cart');
  port = await mesh.port();
  const route = [{ destination: { host } }];
  const http = routes.map((actions) =>
    'redirect' in actions || 'directResponse' in actions ? actions : { route, ...actions },
  );
  await mesh.apply(`
${serviceEntry(host, { port, backends: [cart] })}
---
${virtualService(host, { http })}`);
}

const requestCart = (to: Partial<RequestTo> = {}) => mesh.request('web', { port, host, ...to });

/** Envoy's timers start at its last event loop iteration, shortly before it read the request. */
const clockSkewMs = 10;

describe('fault injection of a route', () => {
  const forTests = [{ headers: { 'x-test': { exact: 'yes' } } }];
  const headers = { 'x-test': 'yes' };

  test('aborts requests within its match', async () => {
    await applyRoutes({ match: forTests, fault: { abort: { httpStatus: 418, percentage: { value: 100 } } } }, {});
    expect((await requestCart({ headers })).status).toBe(418);
    expect(cart.seen).toHaveLength(0);
    expect((await requestCart()).status).toBe(200);
  });

  test('aborts calls with a gRPC status', async () => {
    await applyRoutes({ fault: { abort: { grpcStatus: 'PERMISSION_DENIED', percentage: { value: 100 } } } });
    const reply = await requestCart({ http2: true, method: 'POST', headers: { 'content-type': 'application/grpc' } });
    expect([reply.status, reply.headers['grpc-status']]).toEqual([200, '7']);
  });

  test('delays requests that are then forwarded', async () => {
    await applyRoutes({ match: forTests, fault: { delay: { fixedDelay: '0.3s', percentage: { value: 100 } } } }, {});
    const delayed = await requestCart({ headers });
    expect(delayed.status).toBe(200);
    expect(delayed.durationMs).toBeGreaterThanOrEqual(300 - clockSkewMs);
    const otherMs = async (): Promise<number> => {
      const other = await requestCart();
      expect(other.status).toBe(200);
      return other.durationMs;
    };
    expect(await bestOf(5, 250, otherMs)).toBeLessThan(250);
  });

  test('applies to the specified share of requests', async () => {
    await applyRoutes(
      { match: [{ uri: { prefix: '/half' } }], fault: { abort: { httpStatus: 418, percentage: { value: 50 } } } },
      { fault: { abort: { httpStatus: 418, percentage: { value: 0 } } } },
    );
    const halfCounts = await mesh.split('web', { port, host, path: '/half' }, 60);
    // Fails for one of 10^9 correct runs.
    expect(halfCounts['418']).toBeGreaterThan(8);
    expect(halfCounts.cart).toBeGreaterThan(8);
    expect(await mesh.split('web', { port, host }, 10)).toEqual({ cart: 10 });
  });
});

describe('a mirror of a route', () => {
  test('receives a copy of each request, and its response is ignored', async () => {
    const shadow = await mesh.http('shadow', { respond: (_, response) => void response.writeHead(500).end() });
    const shadowPort = await mesh.port();
    cart = await mesh.http('cart');
    port = await mesh.port();
    const mirrors = [
      { destination: { host: 'shadow.shop.test', port: { number: shadowPort } } },
      { destination: { host: 'shadow.shop.test', port: { number: shadowPort } }, percentage: { value: 0 } },
    ];
    await mesh.apply(`
${serviceEntry(host, { port, backends: [cart] })}
---
${serviceEntry('shadow.shop.test', { port: shadowPort, backends: [shadow] })}
---
${virtualService(host, { http: [{ route: [{ destination: { host } }], mirrors }] })}`);
    const reply = await requestCart({ path: '/copy', method: 'POST', body: 'two pears' });
    expect(reply.seen.backend).toBe('cart');
    await eventually('the copy has come', () => shadow.seen.length > 0);
    expect(shadow.seen).toMatchObject([{ method: 'POST', url: '/copy', body: 'two pears' }]);
    expect(shadow.seen[0]!.headers.host).toMatch(/^cart\.shop\.test-shadow/);
  });
});

describe('timeouts and retries of a route', () => {
  test('a request fails after its timeout', async () => {
    await applyRoutes({ timeout: '0.2s' });
    cart.respond = () => {};
    const reply = await requestCart();
    expect(reply.status).toBe(504);
    expect(reply.durationMs).toBeGreaterThanOrEqual(200 - clockSkewMs);
    // Without a timeout, Envoy waits longer than this client does.
    expect(reply.durationMs).toBeLessThan(10_000);
  });

  test('a failed request is retried as often as the route specifies', async () => {
    await applyRoutes({ retries: { attempts: 3, retryOn: '5xx' } });
    cart.respond = (seenRequest, response) => {
      const hasEnoughRequests = cart.seen.length >= 3;
      response.writeHead(hasEnoughRequests ? 200 : 503).end(hasEnoughRequests ? JSON.stringify(seenRequest) : 'again');
    };
    const reply = await requestCart();
    expect([reply.status, cart.seen.length]).toEqual([200, 3]);
    expect(cart.seen.map(({ headers }) => headers['x-envoy-attempt-count'])).toEqual(['1', '2', '3']);
  });

  test('a request is retried only for the specified reasons, and never with zero attempts', async () => {
    await applyRoutes(
      { match: [{ uri: { prefix: '/never' } }], retries: { attempts: 0 } },
      { retries: { attempts: 3, retryOn: '501,reset' } },
    );
    cart.respond = ({ url }, response) => void response.writeHead(url === '/other' ? 501 : 503).end();
    const times = async (path: string): Promise<number> => {
      const previousCount = cart.seen.length;
      await requestCart({ path });
      return cart.seen.length - previousCount;
    };
    expect([await times('/never'), await times('/'), await times('/other')]).toEqual([1, 1, 4]);
  });

  test('an attempt is canceled after the timeout per attempt and then retried', async () => {
    // The test process responds to the second attempt, and may be busy.
    await applyRoutes({ timeout: '20s', retries: { attempts: 2, perTryTimeout: '2s', retryOn: 'gateway-error' } });
    cart.respond = (seenRequest, response) => {
      if (cart.seen.length > 1) response.end(JSON.stringify(seenRequest));
    };
    const reply = await requestCart();
    expect([reply.status, cart.seen.length]).toEqual([200, 2]);
    expect(reply.durationMs).toBeGreaterThanOrEqual(2_000 - clockSkewMs);
  });

  test('a retry avoids the unreachable backend', async () => {
    const [reachable, unreachable] = [await mesh.http('here'), await mesh.http('gone')];
    port = await mesh.port();
    const backends = [reachable, { address: unreachable.address, port: unreachable.port, name: 'gone' }];
    await unreachable.close();
    // Without a retry policy, Envoy retries failed connections.
    await mesh.apply(serviceEntry(host, { port, backends }));
    expect(await mesh.split('web', { port, host }, 20)).toEqual({ here: 20 });
  });
});

describe('a redirect of a route', () => {
  test.each([
    [{ uri: '/new' }, 301, 'http://cart.shop.test/new?b=c'],
    [{ authority: 'new.test' }, 301, 'http://new.test/old/a?b=c'],
    [{ scheme: 'https', redirectCode: 308 }, 308, 'https://cart.shop.test/old/a?b=c'],
    [{ scheme: 'https', authority: 'new.test', port: 8443, redirectCode: 302 }, 302, 'https://new.test:8443/old/a?b=c'],
    [{ uri: '%PREFIX()%/new', redirectCode: 307 }, 307, 'http://cart.shop.test/new/a?b=c'],
    [
      { authority: 'new.test', derivePort: 'FROM_PROTOCOL_DEFAULT', redirectCode: 303 },
      303,
      'http://new.test/old/a?b=c',
    ],
  ])('with the settings %j responds with status %i and location %s', async (redirect, status, location) => {
    await applyRoutes({ match: [{ uri: { prefix: '/old' } }], redirect });
    const reply = await requestCart({ path: '/old/a?b=c' });
    expect([reply.status, reply.headers.location]).toEqual([status, location]);
    expect(cart.seen).toHaveLength(0);
  });
});

describe('a rewrite of a route', () => {
  test.each([
    [{ prefix: '/old' }, { uri: '/new' }, '/old/a?b=c', '/new/a?b=c', host],
    [{ exact: '/old' }, { uri: '/new' }, '/old?b=c', '/new?b=c', host],
    [{ prefix: '/old' }, { uri: '/new', authority: 'new.test' }, '/old/a', '/new/a', 'new.test'],
    [{ prefix: '/' }, { uriRegexRewrite: { match: '^/(\\w+)/(\\w+)', rewrite: '/\\2/\\1' } }, '/a/b/c', '/b/a/c', host],
  ])('with the match %j and the settings %j changes %s to %s', async (uri, rewrite, path, seenPath, authority) => {
    await applyRoutes({ match: [{ uri }], rewrite });
    expect((await requestCart({ path })).seen).toMatchObject({ url: seenPath, headers: { host: authority } });
  });
});

describe('header rules of a route', () => {
  test('set, add and remove headers of requests and responses, for the route and for its destination', async () => {
    await applyRoutes({
      headers: {
        request: { set: { 'x-set': 'route' }, add: { 'x-add': 'route' }, remove: ['x-gone'] },
        response: { set: { 'x-back': 'route' }, remove: ['x-backend'] },
      },
      route: [{ destination: { host }, headers: { request: { add: { 'x-add': 'destination' } } } }],
    });
    const reply = await requestCart({ headers: { 'x-set': 'mine', 'x-add': 'mine', 'x-gone': 'mine' } });
    expect(reply.seen.headers).toMatchObject({ 'x-set': 'route', 'x-add': 'mine, route, destination' });
    expect(reply.seen.headers).not.toHaveProperty('x-gone');
    expect([reply.headers['x-back'], reply.headers['x-backend']]).toEqual(['route', undefined]);
  });

  test('rewrite Host', async () => {
    await applyRoutes({ headers: { request: { set: { Host: 'inner.test' } } } });
    expect((await requestCart()).seen.headers.host).toBe('inner.test');
  });

  test('apply separately to each of several destinations', async () => {
    const [a, b] = [await mesh.http('a'), await mesh.http('b')];
    const other = await mesh.port();
    port = await mesh.port();
    const headers = (value: string) => ({
      request: { set: { 'x-to': value } },
      response: { set: { 'x-from': value } },
    });
    const route = [
      { destination: { host }, weight: 50, headers: headers('a') },
      { destination: { host: 'b.shop.test', port: { number: other } }, weight: 50, headers: headers('b') },
      { destination: { host: 'nowhere.shop.test' }, weight: 0 },
    ];
    await mesh.apply(`
${serviceEntry(host, { port, backends: [a] })}
---
${serviceEntry('b.shop.test', { port: other, backends: [b] })}
---
${virtualService(host, { http: [{ route }] })}`);
    const seenBackends = new Set<string>();
    for (let i = 0; i < 40 && seenBackends.size < 2; i++) {
      const reply = await requestCart();
      seenBackends.add(reply.seen.backend);
      expect([reply.seen.headers['x-to'], reply.headers['x-from']]).toEqual([reply.seen.backend, reply.seen.backend]);
    }
    expect(seenBackends).toEqual(new Set(['a', 'b']));
  });
});

test('a direct response of a route is sent without a backend', async () => {
  const bytes = Buffer.from('\u{1f600}').toString('base64');
  await applyRoutes(
    { match: [{ uri: { prefix: '/bytes' } }], directResponse: { status: 200, body: { bytes } } },
    { directResponse: { status: 503, body: { string: 'closed for today' } } },
  );
  expect(await requestCart()).toMatchObject({ status: 503, body: 'closed for today' });
  expect(await requestCart({ path: '/bytes' })).toMatchObject({ status: 200, body: '\u{1f600}' });
});

describe('the CORS policy of a route', () => {
  const corsPolicy = {
    allowOrigins: [{ exact: 'https://shop.test' }, { regex: 'https://[a-z]+\\.shop\\.test' }],
    allowMethods: ['GET', 'PUT'],
    allowHeaders: ['x-user'],
    exposeHeaders: ['x-backend'],
    maxAge: '600s',
    allowCredentials: true,
  };
  const preflight = (origin: string): Partial<RequestTo> => ({
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'PUT' },
  });

  test('responds to the preflight for allowed origins', async () => {
    await applyRoutes({ corsPolicy });
    const { status, headers } = await requestCart(preflight('https://a.shop.test'));
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'access-control-allow-origin': 'https://a.shop.test',
      'access-control-allow-methods': 'GET,PUT',
      'access-control-allow-headers': 'x-user',
      'access-control-allow-credentials': 'true',
      'access-control-max-age': '600',
    });
    expect(cart.seen).toHaveLength(0);
    const reply = await requestCart({ headers: { origin: 'https://shop.test' } });
    expect(reply.headers).toMatchObject({
      'access-control-allow-origin': 'https://shop.test',
      'access-control-expose-headers': 'x-backend',
    });
    expect((await requestCart({ headers: { origin: 'https://evil.test' } })).headers).not.toHaveProperty(
      'access-control-allow-origin',
    );
  });

  test.each([
    ['FORWARD', 1],
    ['IGNORE', 0],
  ])(
    'with unmatchedPreflights %s forwards %i of 1 preflight requests from other origins to the application',
    async (unmatchedPreflights, reach) => {
      await applyRoutes({ corsPolicy: { ...corsPolicy, unmatchedPreflights } });
      const { headers } = await requestCart(preflight('https://evil.test'));
      expect(headers).not.toHaveProperty('access-control-allow-origin');
      expect(cart.seen).toHaveLength(reach);
    },
  );
});
