/** Every condition of a VirtualService's match, tested with requests. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { gateway, serviceEntry, virtualService } from './harness/objects.ts';
import type { RequestTo } from './harness/requests.ts';

const host = 'cart.shop.test';
let mesh: FeatureMesh;
let port: number;
let gatewayPort: number;

interface Condition {
  readonly match: object;
  readonly hits: readonly Partial<RequestTo>[];
  readonly misses: readonly Partial<RequestTo>[];
}

const headers = (values: Record<string, string>): Partial<RequestTo> => ({ headers: values });

/** Each condition has a separate path, `/NAME`, so that no route hides another one. */
const conditions: Readonly<Record<string, Condition>> = {
  'exact-path': {
    match: { uri: { exact: '/exact-path/a' } },
    hits: [{ path: '/exact-path/a' }, { path: '/exact-path/a?b=c' }],
    misses: [{ path: '/exact-path/a/' }, { path: '/exact-path/A' }],
  },
  prefix: {
    match: { uri: { prefix: '/prefix/a' } },
    hits: [{ path: '/prefix/a' }, { path: '/prefix/ab' }, { path: '/prefix/a/b' }],
    misses: [{ path: '/prefix/b' }],
  },
  regex: {
    match: { uri: { regex: '/regex/[a-c]+/\\d' } },
    hits: [{ path: '/regex/abc/1' }, { path: '/regex/a/2?x=y' }],
    misses: [{ path: '/regex/abd/1' }, { path: '/regex/abc/12' }],
  },
  'regex-of-re2': {
    match: {
      uri: { prefix: '/regex-of-re2' },
      headers: { 'x-user': { regex: '(?U)(?P<n>[[:alpha:]]+)(?P<n>\\Q.*\\E)(?i:x)\\C{2}' } },
    },
    hits: [headers({ 'x-user': 'ann.*X42' }), headers({ 'x-user': 'a.*x..' })],
    misses: [headers({ 'x-user': 'ann.*X4' }), headers({ 'x-user': 'ann..X42' }), headers({ 'x-user': '1.*x42' })],
  },
  'any-case': {
    match: { uri: { exact: '/any-case/a' }, ignoreUriCase: true },
    hits: [{ path: '/any-case/a' }, { path: '/ANY-case/A' }],
    misses: [{ path: '/any-case/b' }],
  },
  method: {
    match: { uri: { prefix: '/method' }, method: { regex: 'PUT|POST' } },
    hits: [{ method: 'PUT' }, { method: 'POST' }],
    misses: [{ method: 'GET' }, { method: 'DELETE' }],
  },
  authority: {
    match: { uri: { prefix: '/authority' }, authority: { prefix: 'cart.' } },
    hits: [{ host }],
    misses: [{ host: 'CARTS.other.test' }],
  },
  scheme: {
    match: { uri: { prefix: '/scheme' }, scheme: { exact: 'http' } },
    hits: [{}],
    misses: [],
  },
  'header-exact': {
    match: { uri: { prefix: '/header-exact' }, headers: { 'x-user': { exact: 'ann' } } },
    hits: [headers({ 'x-user': 'ann' }), headers({ 'X-User': 'ann' })],
    misses: [{}, headers({ 'x-user': 'Ann' }), headers({ 'x-user': 'anna' })],
  },
  'header-prefix': {
    match: { uri: { prefix: '/header-prefix' }, headers: { 'x-user': { prefix: 'ann' } } },
    hits: [headers({ 'x-user': 'anna' })],
    misses: [{}, headers({ 'x-user': 'an' })],
  },
  'header-regex': {
    match: { uri: { prefix: '/header-regex' }, headers: { 'x-user': { regex: 'a.*z' } } },
    hits: [headers({ 'x-user': 'abcz' })],
    misses: [{}, headers({ 'x-user': 'abczd' })],
  },
  'header-there': {
    match: { uri: { prefix: '/header-there' }, headers: { 'x-user': {} } },
    hits: [headers({ 'x-user': 'anybody' }), headers({ 'x-user': '' })],
    misses: [{}],
  },
  'header-not': {
    match: { uri: { prefix: '/header-not' }, withoutHeaders: { 'x-user': { exact: 'ann' }, 'x-bot': {} } },
    hits: [{}, headers({ 'x-user': 'bob' })],
    misses: [headers({ 'x-user': 'ann' }), headers({ 'x-bot': 'yes' })],
  },
  query: {
    match: { uri: { prefix: '/query' }, queryParams: { a: { exact: '1' }, b: {} } },
    hits: [{ path: '/query?a=1&b=2' }, { path: '/query?b&a=1' }],
    misses: [{ path: '/query?a=1' }, { path: '/query?a=2&b=1' }, { path: '/query' }],
  },
  'all-at-once': {
    match: {
      uri: { prefix: '/all-at-once' },
      method: { exact: 'POST' },
      headers: { 'x-user': { exact: 'ann' } },
      queryParams: { a: { regex: '\\d+' } },
    },
    hits: [{ path: '/all-at-once?a=12', method: 'POST', headers: { 'x-user': 'ann' } }],
    misses: [
      { path: '/all-at-once?a=12', method: 'POST' },
      { path: '/all-at-once?a=b', method: 'POST', headers: { 'x-user': 'ann' } },
      { path: '/all-at-once?a=12', headers: { 'x-user': 'ann' } },
    ],
  },
};

const respondWith = (string: string): object => ({ directResponse: { status: 200, body: { string } } });

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: { web: { labels: { app: 'web' } }, edge: { type: 'router', labels: { istio: 'edge' } } },
  });
  ({ port, atGateway: gatewayPort } = await mesh.ports('port', 'atGateway'));
  const routes = Object.entries(conditions).map(([name, { match }]) => ({
    name,
    match: [match],
    ...respondWith(name),
  }));
  const source = (name: string, match: object): object => ({
    match: [{ uri: { prefix: `/${name}` }, ...match }],
    ...respondWith(name),
  });
  await mesh.apply(`
${serviceEntry(host, { port, backends: [] })}
---
${serviceEntry('carts.other.test', { port, backends: [] })}
---
${gateway('front', { istio: 'edge' }, [{ port: gatewayPort, protocol: 'HTTP', hosts: ['*'] }])}
---
${virtualService(host, {
  hosts: [host, 'carts.other.test'],
  gateways: ['mesh', 'front'],
  http: [
    ...routes,
    source('own-labels', { sourceLabels: { app: 'web' } }),
    source('other-labels', { sourceLabels: { app: 'other' } }),
    source('own-namespace', { sourceNamespace: 'shop' }),
    source('other-namespace', { sourceNamespace: 'bank' }),
    source('this-port', { port }),
    source('other-port', { port: 1 }),
    source('in-mesh', { gateways: ['mesh'] }),
    source('at-gateway', { gateways: ['front'] }),
    respondWith('nothing'),
  ],
})}`);
});

afterAll(() => mesh.stop());

const takenRoute = async (proxy: string, to: Partial<RequestTo>): Promise<string> =>
  (await mesh.request(proxy, { port: proxy === 'edge' ? gatewayPort : port, host, ...to })).body;

describe.each(['web', 'edge'])('a match at the proxy %s', (proxy) => {
  test.each(Object.keys(conditions))('accepts only matching requests with the condition "%s"', async (name) => {
    const { hits, misses } = conditions[name]!;
    for (const hit of hits) expect([hit, await takenRoute(proxy, { path: `/${name}`, ...hit })]).toEqual([hit, name]);
    for (const miss of misses) {
      expect([miss, await takenRoute(proxy, { path: `/${name}`, ...miss })]).toEqual([miss, 'nothing']);
    }
  });
});

test('a match selects clients by labels or namespace', async () => {
  const responses = await Promise.all(
    ['own-labels', 'other-labels', 'own-namespace', 'other-namespace'].map((name) =>
      takenRoute('web', { path: `/${name}` }),
    ),
  );
  expect(responses).toEqual(['own-labels', 'nothing', 'own-namespace', 'nothing']);
});

test('a match selects a port, the mesh, or a gateway', async () => {
  const paths = ['/this-port', '/other-port', '/in-mesh', '/at-gateway'];
  const responses = (proxy: string) => Promise.all(paths.map((path) => takenRoute(proxy, { path })));
  expect(await responses('web')).toEqual(['this-port', 'nothing', 'in-mesh', 'nothing']);
  expect(await responses('edge')).toEqual(['nothing', 'nothing', 'nothing', 'at-gateway']);
});
