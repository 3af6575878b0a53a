import { afterAll, beforeAll, expect, test } from 'vitest';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { gateway, serviceEntry, virtualService } from './harness/objects.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: { web: { labels: { app: 'web' } }, edge: { type: 'router', labels: { istio: 'edge' } } },
  });
});

afterAll(() => mesh?.stop());

test('a sidecar routes a request by the first matching route of a VirtualService', async () => {
  const [v1, v2] = [await mesh.http('v1'), await mesh.http('v2')];
  const { cart, canary } = await mesh.ports('cart', 'canary');
  await mesh.apply(`
${serviceEntry('cart.shop.test', { port: cart, backends: [v1] })}
---
${serviceEntry('canary.shop.test', { port: canary, backends: [v2] })}
---
${virtualService('cart.shop.test', {
  http: [
    {
      match: [{ uri: { prefix: '/new' } }, { headers: { 'x-canary': { exact: 'yes' } } }],
      route: [{ destination: { host: 'canary.shop.test', port: { number: canary } } }],
    },
    { route: [{ destination: { host: 'cart.shop.test' } }] },
  ],
})}`);
  const to = { port: cart, host: 'cart.shop.test' };
  expect((await mesh.request('web', { ...to, path: '/' })).seen.backend).toBe('v1');
  expect((await mesh.request('web', { ...to, path: '/new/1' })).seen.backend).toBe('v2');
  expect((await mesh.request('web', { ...to, headers: { 'x-canary': 'yes' } })).seen.backend).toBe('v2');
});

test('a gateway redirects by a VirtualService, and responds 404 if no route matches', async () => {
  const port = await mesh.port();
  await mesh.apply(`
${gateway('front', { istio: 'edge' }, [{ port, protocol: 'HTTP', hosts: ['shop.test'] }])}
---
${virtualService('shop.test', {
  gateways: ['front'],
  http: [
    { match: [{ uri: { exact: '/old' } }], redirect: { uri: '/new', redirectCode: 308 } },
    { match: [{ uri: { prefix: '/moved/' } }], redirect: { prefixRewrite: '/to/', authority: 'new.test' } },
  ],
})}`);
  const response = await mesh.request('edge', { port, host: 'shop.test', path: '/old' });
  expect([response.status, response.headers.location]).toEqual([308, 'http://shop.test/new']);
  const redirect = await mesh.request('edge', { port, host: 'shop.test', path: '/moved/a/b?c=d' });
  expect([redirect.status, redirect.headers.location]).toEqual([301, 'http://new.test/to/a/b?c=d']);
  expect((await mesh.request('edge', { port, host: 'shop.test', path: '/other' })).status).toBe(404);
  expect((await mesh.request('edge', { port, host: 'other.test', path: '/old' })).status).toBe(404);
});
