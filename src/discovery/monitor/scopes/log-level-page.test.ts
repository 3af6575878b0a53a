/** Sends ControlZ requests to `/scopej` of a running control plane. */
import { afterEach, expect, it } from 'vitest';
import { ControlPlane, sidecar, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';

afterEach(stopControlPlanes);

type Caller = 'operator' | 'local user';

async function startPlane(env: NodeJS.ProcessEnv = {}) {
  const plane = ControlPlane.starting({}, undefined, env);
  await plane.ready();
  const put = async (
    path: string,
    settings: unknown,
    caller: Caller = 'operator',
    headers: Record<string, string> = {},
  ) => {
    const response = await fetch(`http://127.0.0.1:${plane.port('http.listening')}${path}`, {
      ...{ method: 'PUT', body: typeof settings === 'string' ? settings : JSON.stringify(settings) },
      headers: { ...(caller === 'operator' && plane.operator), ...headers },
    });
    return { status: response.status, text: await response.text() };
  };
  const levelOf = async (scope: string): Promise<string> =>
    ((await plane.get(`/scopej/${scope}`)).json() as { output_level: string }).output_level;
  return { plane, put, levelOf };
}

const debugLines = (plane: ControlPlane): string[] => plane.lines.filter((line) => /\tdebug\tads\t/.test(line));

it("the log level page lists scopes with their levels, and changes a scope's level with a log line", async () => {
  const { plane, put, levelOf } = await startPlane();
  const scopes = (await plane.get('/scopej/')).json() as { name: string }[];
  expect(scopes.find(({ name }) => name === 'ads')).toEqual({
    name: 'ads',
    description: expect.stringContaining('xDS streams'),
    ...{ output_level: 'info', stack_trace_level: 'none', log_callers: false },
  });
  // The control plane does not use scopes of the agent.
  expect(scopes.map(({ name }) => name)).not.toContain('cert-watcher');
  expect(await put('/scopej/ads', { output_level: 'debug', stack_trace_level: 'error' })).toEqual({
    ...{ status: 202, text: '' },
  });
  expect([await levelOf('ads'), await levelOf('push')]).toEqual(['debug', 'info']);
  expect(plane.lines.at(-1)).toMatch(/log level changed {2}scope=ads {2}outputLevel=debug {2}stackTraceLevel=error$/);
  expect(await put('/scopej/discovery/http', { output_level: 'error' })).toMatchObject({ status: 202 });
  expect(await levelOf('discovery/http')).toBe('error');
  await put('/scopej/all', { output_level: 'warn' });
  expect([await levelOf('ads'), await levelOf('push')]).toEqual(['warn', 'warn']);
});

it('the log level page enables logs about the requests and responses of only one proxy', async () => {
  const { plane, put } = await startPlane();
  const { id } = sidecar;
  expect(await put(`/scopej/ads?proxyID=${id}`, { output_level: 'debug' })).toMatchObject({ status: 202 });
  expect((await plane.get('/scopej/ads')).json()).toMatchObject({
    ...{ output_level: 'info', proxies: { 'web-0.shop': 'debug' } },
  });
  const other = plane.client('ads.listening').sotw();
  other.send({
    node: { ...sidecar, id: id.replace('web-0', 'other-0') },
    typeUrl: 'type.googleapis.com/envoy.config.cluster.v3.Cluster',
  });
  await other.next();
  expect(debugLines(plane)).toEqual([]);
  await plane.subscribe();
  await eventually('the response is logged', () => debugLines(plane).some((line) => line.includes('response sent')));
  for (const line of debugLines(plane)) expect(line).toContain('web-0.shop');
  expect(debugLines(plane)[0]).toMatch(/request received .*typeUrl=type\.googleapis\.com\/envoy\.config\.cluster/);
  expect(await put('/scopej/ads?proxyID=web-0.shop', { output_level: 'none' })).toMatchObject({ status: 202 });
  expect((await plane.get('/scopej/ads')).json()).not.toHaveProperty('proxies');
});

it("the log level page requires the debugger's token for a change unless local callers are permitted", async () => {
  const { plane, put, levelOf } = await startPlane();
  expect(await put('/scopej/ads', { output_level: 'debug' }, 'local user')).toMatchObject({ status: 401 });
  expect((await plane.get('/scopej/ads', { headers: {} })).status).toBe(200);
  expect(await levelOf('ads')).toBe('info');
  const openPlane = await startPlane({ PILOT_LOG_LEVELS_FROM_LOCALHOST: 'true' });
  expect(await openPlane.put('/scopej/ads', { output_level: 'debug' }, 'local user')).toMatchObject({ status: 202 });
  // A request of a web site in a local browser does not count as local.
  const site = { 'sec-fetch-site': 'cross-site' };
  expect(await openPlane.put('/scopej/ads', { output_level: 'none' }, 'local user', site)).toMatchObject({
    status: 401,
  });
  expect(await openPlane.levelOf('ads')).toBe('debug');
});

it('the log level page rejects an invalid request without changes, and returns the reason', async () => {
  const { plane, put, levelOf } = await startPlane();
  const debug = { output_level: 'debug' };
  for (const [status, reason, path, settings] of [
    [404, 'unknown scope "adz"; scopes: ads, ', '/scopej/adz', debug],
    [404, 'unknown scope "xds"', '/scopej/xds', debug],
    [400, 'output_level must be one of none, fatal, ', '/scopej/ads', { output_level: 'loud' }],
    [400, 'log_callers must be true or false', '/scopej/ads', { ...debug, log_callers: 1 }],
    [400, 'the body has none of output_level', '/scopej/ads', { level: 'debug' }],
    [400, 'the body must be a JSON object', '/scopej/ads', '['],
    [400, 'the body must be a JSON object', '/scopej/ads', []],
    [400, 'has more than 4096 bytes', '/scopej/ads', { ...debug, padding: 'x'.repeat(5_000) }],
    [400, 'scope "push" has no lines about single proxies', '/scopej/push?proxyID=web-0.shop', debug],
    [400, 'a proxy has only an output_level', '/scopej/ads?proxyID=web-0.shop', { ...debug, log_callers: true }],
    [400, 'proxyID must be NAME.NAMESPACE', '/scopej/ads?proxyID=web-0', debug],
    [405, 'method not allowed', '/scopej/', debug],
  ] as const) {
    const response = await put(path, settings);
    expect([response.status, response.text]).toEqual([status, expect.stringContaining(reason)]);
  }
  expect((await plane.get('/scopej/adz')).status).toBe(404);
  expect([await levelOf('ads'), await levelOf('push')]).toEqual(['info', 'info']);
});
