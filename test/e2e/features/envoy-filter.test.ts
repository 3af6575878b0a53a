/** Changes of generated configuration by EnvoyFilters, tested with requests. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { gateway, object, serviceEntry, virtualService } from './harness/objects.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      web: { labels: { app: 'web' }, metadata: { TEAM: 'blue' } },
      edge: { type: 'router', labels: { istio: 'edge' } },
    },
  });
});

afterAll(() => mesh?.stop());

const manager = 'envoy.filters.network.http_connection_manager';
const filters = 'type.googleapis.com/envoy.extensions.filters';

function envoyFilter(name: string, configPatches: readonly object[], spec: object = {}, namespace = 'shop'): string {
  return object('networking.istio.io/v1alpha3', 'EnvoyFilter', namespace, name, { configPatches, ...spec });
}

/** A Lua script before the router filter. */
function script(context: string, code: string, extraMatch: object = {}): object {
  const subFilter = { name: 'envoy.filters.http.router' };
  return {
    applyTo: 'HTTP_FILTER',
    match: { context, listener: { filterChain: { filter: { name: manager, subFilter } }, ...extraMatch } },
    patch: {
      operation: 'INSERT_BEFORE',
      value: {
        name: 'script',
        typed_config: { '@type': `${filters}.http.lua.v3.Lua`, default_source_code: { inline_string: code } },
      },
    },
  };
}

const onResponse = (key: string, value: string): string =>
  `function envoy_on_response(handle) handle:headers():add('${key}', '${value}') end`;

async function echo(): Promise<{ readonly entry: string; readonly to: { port: number; host: string } }> {
  const [backend, port] = [await mesh.http('echo'), await mesh.port()];
  const host = 'echo.shop.test';
  return { entry: serviceEntry(host, { port, backends: [backend] }), to: { port, host } };
}

test('a Lua filter is inserted before the router, changed at run time, and removed', async () => {
  const { entry, to } = await echo();
  const withScript = (value: string) =>
    `${entry}\n---\n${envoyFilter('script', [script('SIDECAR_OUTBOUND', onResponse('x-lua', value))])}`;
  await mesh.apply(withScript('one'));
  expect((await mesh.request('web', to)).headers['x-lua']).toBe('one');
  await mesh.apply(withScript('two'));
  expect((await mesh.request('web', to)).headers['x-lua']).toBe('two');
  await mesh.apply(entry);
  const response = await mesh.request('web', to);
  expect([response.status, response.headers['x-lua']]).toEqual([200, undefined]);
});

test('a patch applies only to the port, metadata, labels and namespace in its match', async () => {
  const { entry, to } = await echo();
  const responseWithPatch = async (match: object, proxy: object, spec: object, namespace = 'shop') => {
    const patch = script('SIDECAR_OUTBOUND', onResponse('x-lua', 'yes'), match) as { match: object };
    const filter = envoyFilter('script', [{ ...patch, match: { ...patch.match, proxy } }], spec, namespace);
    await mesh.apply(`${entry}\n---\n${filter}`);
    return (await mesh.request('web', to)).headers['x-lua'] === 'yes';
  };
  expect(await responseWithPatch({ portNumber: to.port }, { metadata: { TEAM: 'blue' } }, {})).toBe(true);
  expect(await responseWithPatch({ portNumber: to.port + 1 }, {}, {})).toBe(false);
  expect(await responseWithPatch({}, { metadata: { TEAM: 'red' } }, {})).toBe(false);
  expect(await responseWithPatch({}, {}, { workloadSelector: { labels: { app: 'web' } } })).toBe(true);
  expect(await responseWithPatch({}, {}, { workloadSelector: { labels: { app: 'api' } } })).toBe(false);
  expect(await responseWithPatch({}, {}, {}, 'istio-system')).toBe(true);
  expect(await responseWithPatch({}, {}, {}, 'other')).toBe(false);
});

test('a cluster accepts no requests if a patch sets its request limit to zero', async () => {
  const { entry, to } = await echo();
  const limit = envoyFilter('limit', [
    {
      applyTo: 'CLUSTER',
      match: { context: 'SIDECAR_OUTBOUND', cluster: { service: to.host } },
      patch: {
        operation: 'MERGE_AND_REPLACE_LIST',
        value: { circuit_breakers: { thresholds: [{ max_requests: 0 }] } },
      },
    },
  ]);
  await mesh.apply(`${entry}\n---\n${limit}`);
  const response = await mesh.request('web', to);
  expect([response.status, response.headers['x-envoy-overloaded']]).toEqual([503, 'true']);
  await mesh.apply(entry);
  expect((await mesh.request('web', to)).status).toBe(200);
});

test('patches insert a route at the beginning, change another route, and change a virtual host', async () => {
  const { entry, to } = await echo();
  const at = (route?: object) => ({
    context: 'SIDECAR_OUTBOUND',
    routeConfiguration: { portNumber: to.port, vhost: { domainName: to.host, ...(route && { route }) } },
  });
  const header = (key: string) => ({ response_headers_to_add: [{ header: { key, value: 'yes' } }] });
  const closedRoute = { name: 'closed', match: { path: '/closed' }, direct_response: { status: 418 } };
  const routes = virtualService(to.host, {
    http: [
      { name: 'a', match: [{ uri: { prefix: '/a' } }], route: [{ destination: { host: to.host } }] },
      { name: 'rest', route: [{ destination: { host: to.host } }] },
    ],
  });
  const filter = envoyFilter('routes', [
    { applyTo: 'HTTP_ROUTE', match: at(), patch: { operation: 'INSERT_FIRST', value: closedRoute } },
    { applyTo: 'HTTP_ROUTE', match: at({ name: 'a' }), patch: { operation: 'MERGE', value: header('x-route') } },
    { applyTo: 'VIRTUAL_HOST', match: at(), patch: { operation: 'MERGE', value: header('x-host') } },
  ]);
  await mesh.apply(`${entry}\n---\n${routes}\n---\n${filter}`);
  const get = (path: string) => mesh.request('web', { ...to, path });
  expect((await get('/closed')).status).toBe(418);
  expect((await get('/a')).headers).toMatchObject({ 'x-route': 'yes', 'x-host': 'yes' });
  const otherResponse = await get('/other');
  expect([otherResponse.headers['x-route'], otherResponse.headers['x-host']]).toEqual([undefined, 'yes']);
});

test('patches with the context GATEWAY or SIDECAR_INBOUND change listeners of that context', async () => {
  const backend = await mesh.http('echo');
  const { door, own } = await mesh.ports('door', 'own');
  const host = 'echo.shop.test';
  const sidecar = object('networking.istio.io/v1', 'Sidecar', 'shop', 'default', {
    workloadSelector: { labels: { app: 'web' } },
    ingress: [
      {
        port: { number: own, name: 'http', protocol: 'HTTP' },
        bind: '127.0.0.1',
        defaultEndpoint: `127.0.0.1:${backend.port}`,
      },
    ],
    egress: [{ hosts: ['~/*'] }],
  });
  const header = (key: string) => ({ response_headers_to_add: [{ header: { key, value: 'yes' } }] });
  await mesh.apply(
    [
      serviceEntry(host, { port: await mesh.port(), backends: [backend] }),
      sidecar,
      gateway('front', { istio: 'edge' }, [{ port: door, protocol: 'HTTP', hosts: [host] }]),
      virtualService(host, { gateways: ['front'], http: [{ route: [{ destination: { host } }] }] }),
      envoyFilter('contexts', [
        script('SIDECAR_INBOUND', onResponse('x-inbound', 'yes'), { portNumber: own }),
        script('GATEWAY', onResponse('x-gateway', 'yes')),
        {
          applyTo: 'VIRTUAL_HOST',
          match: { context: 'SIDECAR_INBOUND' },
          patch: { operation: 'MERGE', value: header('x-inbound-host') },
        },
        {
          applyTo: 'ROUTE_CONFIGURATION',
          match: { context: 'GATEWAY', routeConfiguration: { gateway: 'shop/front' } },
          patch: { operation: 'MERGE', value: header('x-front') },
        },
      ]),
    ].join('\n---\n'),
  );
  const keys = ['x-inbound', 'x-gateway', 'x-inbound-host', 'x-front'];
  const patchedHeaders = (headers: NodeJS.Dict<unknown>) => keys.filter((key) => headers[key] !== undefined);
  expect(patchedHeaders((await mesh.request('edge', { port: door, host })).headers)).toEqual(['x-gateway', 'x-front']);
  expect(patchedHeaders((await mesh.request('web', { port: own, host, inbound: true })).headers)).toEqual([
    'x-inbound',
    'x-inbound-host',
  ]);
});

test('an extension configuration is fetched by name (ECDS), and changes without a new listener', async () => {
  const { entry, to } = await echo();
  const source = { ads: {}, resource_api_version: 'V3' };
  const discovered = {
    ...script('SIDECAR_OUTBOUND', ''),
    patch: {
      operation: 'INSERT_FIRST',
      value: {
        name: 'later',
        config_discovery: { config_source: source, type_urls: [`${filters}.http.lua.v3.Lua`] },
      },
    },
  };
  const withExtension = (value: string) => {
    const typed = {
      '@type': `${filters}.http.lua.v3.Lua`,
      default_source_code: { inline_string: onResponse('x-ext', value) },
    };
    const extension = {
      applyTo: 'EXTENSION_CONFIG',
      patch: { operation: 'ADD', value: { name: 'later', typed_config: typed } },
    };
    return `${entry}\n---\n${envoyFilter('extension', [discovered, extension])}`;
  };
  await mesh.apply(withExtension('one'));
  expect((await mesh.request('web', to)).headers['x-ext']).toBe('one');
  const updates = () => mesh.envoy('web').stat('listener_manager.listener_modified');
  const updatesBefore = await updates();
  await mesh.apply(withExtension('two'));
  expect((await mesh.request('web', to)).headers['x-ext']).toBe('two');
  expect(await updates()).toBe(updatesBefore);
});

test('a filter whose type only Envoy knows is sent unchanged', async () => {
  const { entry, to } = await echo();
  const keys = {
    name: 'keys',
    typed_config: {
      '@type': `${filters}.http.api_key_auth.v3.ApiKeyAuth`,
      credentials: [{ key: 'secret', client: 'web' }],
      key_sources: [{ header: 'x-key' }],
    },
  };
  const patch = { ...script('SIDECAR_OUTBOUND', ''), patch: { operation: 'INSERT_BEFORE', value: keys } };
  await mesh.apply(`${entry}\n---\n${envoyFilter('keys', [patch])}`);
  expect((await mesh.request('web', to)).status).toBe(401);
  expect((await mesh.request('web', { ...to, headers: { 'x-key': 'secret' } })).status).toBe(200);
});

test('a patch that cannot be applied is omitted and counted, while the others apply', async () => {
  const { entry, to } = await echo();
  const wrongType = {
    applyTo: 'NETWORK_FILTER',
    match: { context: 'SIDECAR_OUTBOUND', listener: { filterChain: { filter: { name: manager } } } },
    patch: {
      operation: 'MERGE',
      value: { typed_config: { '@type': `${filters}.network.tcp_proxy.v3.TcpProxy`, stat_prefix: 'x' } },
    },
  };
  const filterAfterRouter = { ...script('SIDECAR_OUTBOUND', onResponse('x', 'y')) };
  const patches = [
    wrongType,
    { ...filterAfterRouter, patch: { ...(filterAfterRouter as { patch: object }).patch, operation: 'ADD' } },
    script('SIDECAR_OUTBOUND', onResponse('x-lua', 'yes')),
  ];
  await mesh.apply(`${entry}\n---\n${envoyFilter('mixed', patches)}`);
  expect((await mesh.request('web', to)).headers['x-lua']).toBe('yes');
  const metrics = await mesh.page('/metrics');
  const statusMetrics = metrics.split('\n').filter((line) => line.startsWith('pilot_envoy_filter_status{'));
  expect(statusMetrics.sort()).toEqual([
    'pilot_envoy_filter_status{name="shop/mixed",patch="HTTP_FILTER",result="applied"} 1',
    'pilot_envoy_filter_status{name="shop/mixed",patch="HTTP_FILTER",result="errored"} 1',
    'pilot_envoy_filter_status{name="shop/mixed",patch="NETWORK_FILTER",result="errored"} 1',
  ]);
  expect(await mesh.page('/debug/push_status')).toContain('TcpProxy cannot be merged into');
});

test.each(['VIRTUAL_HOST', 'CLUSTER'] as const)(
  'Envoy’s rejection of a %s patch is reported, but not again for later responses',
  async (applyTo) => {
    const { entry, to } = await echo();
    const value =
      applyTo === 'CLUSTER'
        ? { connect_timeout: '-1s' }
        : { request_headers_to_add: [{ header: { key: 'x', value: '%' } }] };
    const refusedPatch = { applyTo, match: { context: 'SIDECAR_OUTBOUND' }, patch: { operation: 'MERGE', value } };
    await expect(mesh.apply(`${entry}\n---\n${envoyFilter('refused', [refusedPatch])}`)).rejects.toThrow(
      'web.shop rejected',
    );
    await mesh.apply(entry);
    expect((await mesh.request('web', to)).status).toBe(200);
  },
);
