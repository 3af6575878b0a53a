import { spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer as createHttpServer, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { EnvoyProbe, ReadinessRespond } from '../../../machines/agent/status-protocol.ts';
import { header } from '../../../test/fixtures/random-records.ts';
import { freePort, temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { authorizationFor, type ReceivedEvent, servingStatus } from '../../../test/harness/status-port.ts';
import { DnsNames } from '../../runtime/dns/dns-names.ts';
import type { NameInfo } from '../../runtime/dns/name-table.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { DebuggerAccess } from '../../runtime/trace/debugger-access.ts';
import { readDebuggerToken } from '../../runtime/trace/debugger-token.ts';
import { TraceEndpoint } from '../../runtime/trace/trace-endpoint.ts';
import { TraceRing } from '../../runtime/trace/trace-ring.ts';
import { runToEnd } from '../../runtime/turns.ts';
import { AgentMetrics } from './agent-metrics.ts';

const ready = (event: ReceivedEvent): ReadinessRespond => ({
  type: 'readiness.respond',
  request: event.request as number,
  ready: true,
  reason: '',
  heldMs: 0,
  listenersHeldMs: 0,
});

const onReadiness = (respond: (event: ReceivedEvent) => EnvoyProbe | ReadinessRespond) => (event: ReceivedEvent) =>
  event.type === 'readiness.requested' ? respond(event) : (undefined as never);

test('/healthz/ready returns the readiness reported by the status actor without a body (agent §6.2)', async () => {
  let isReady = true;
  const { url, log } = await servingStatus({
    respond: onReadiness((event) => ({ ...ready(event), ready: isReady, reason: isReady ? '' : 'no epoch serves' })),
  });
  const first = await fetch(`${url}/healthz/ready`);
  expect([first.status, await first.text()]).toEqual([200, '']);
  await fetch(`${url}/healthz/ready`);
  isReady = false;
  const last = await fetch(`${url}/healthz/ready`, { method: 'POST' });
  expect([last.status, await last.text()]).toEqual([503, '']);
  // Logs only the change to ready, and each loss of readiness with its reason.
  expect(linesOf(log, 'readiness.ready')).toHaveLength(1);
  expect(linesOf([log.at(-1)!], 'readiness.lost', { reason: /no epoch serves/ })).toHaveLength(1);
});

test("probes Envoy's admin interface on request, and reports a refused connection (agent §6.3)", async () => {
  const { url, receivedEvents } = await servingStatus({
    respond: (event) => {
      if (event.type === 'readiness.requested')
        return { type: 'envoy.probe', request: event.request as number, at: 'admin' };
      if (event.type !== 'envoy.responded') return undefined as never;
      return { ...ready(event), ready: event.live as boolean, reason: event.detail as string };
    },
  });
  expect((await fetch(`${url}/healthz/ready`)).status).toBe(503);
  expect(receivedEvents.find((event) => event.type === 'envoy.responded')).toMatchObject({
    live: false,
    detail: expect.stringContaining('connection refused'),
  });
});

test('caches a positive response until it expires or is invalidated, and extends it while Envoy confirms it (agent §6.3)', async () => {
  let state = 'LIVE';
  const requests: string[] = [];
  const envoy = createHttpServer((request, response) => {
    requests.push(request.url!.split('?', 1)[0]!);
    response.statusCode = state === 'LIVE' ? 200 : 503;
    response.end(request.url === '/ready' ? `${state}\n` : '{}');
  });
  envoy.listen(0, '127.0.0.1');
  onTestFinished(() => void envoy.close());
  await once(envoy, 'listening');
  let heldMs = 60_000;
  const child = spawn('sleep', ['60']);
  onTestFinished(() => void child.kill('SIGKILL'));
  const { port: adminPort } = envoy.address() as { port: number };
  const { url, receivedEvents, order } = await servingStatus({
    adminPort,
    respond: onReadiness((event) => ({ ...ready(event), ready: state === 'LIVE', heldMs })),
  });
  order({ type: 'admin.use', epoch: 0, baseId: 1, adminPort, pid: child.pid! });
  const status = async (): Promise<number> => (await fetch(`${url}/healthz/ready`)).status;
  const questions = (): number => receivedEvents.filter(({ type }) => type === 'readiness.requested').length;
  for (let i = 0; i < 5; i++) expect(await status()).toBe(200);
  expect(questions()).toBe(1);
  expect(requests.filter((path) => path === '/ready')).toEqual([]);
  order({ type: 'readiness.invalidate' });
  heldMs = 1;
  expect(await status()).toBe(200);
  expect(questions()).toBe(2);
  await sleep(5);
  expect(await Promise.all([status(), status()])).toEqual([200, 200]);
  expect(questions()).toBe(2);
  expect(requests.filter((path) => path === '/ready').length).toBeGreaterThan(0);
  state = 'DRAINING';
  await sleep(5);
  expect(await status()).toBe(503);
  expect(questions()).toBe(3);
  state = 'LIVE';
  heldMs = 60_000;
  expect([await status(), await status()]).toEqual([200, 200]);
  expect(questions()).toBe(4);
  // The process has exited, but no chart has received that yet.
  child.removeAllListeners('exit');
  child.kill('SIGKILL');
  await once(child, 'exit');
  state = 'gone';
  expect(await status()).toBe(503);
});

test('a scrape reports and logs once that the process of Envoy is stopped and that it continues, without any readiness request', async () => {
  let isStopped = true;
  // A stopped process does not respond, but the kernel accepts its connections.
  const stopped = createHttpServer((_request, response) => {
    if (!isStopped) response.end('LIVE\n');
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    stopped.closeAllConnections();
    stopped.close();
  });
  await once(stopped, 'listening');
  const { port: adminPort } = stopped.address() as { port: number };
  const metrics = new AgentMetrics();
  const { url, order, log } = await servingStatus({ adminPort, metrics });
  const event = { type: 'serving.began', name: 'epoch-0', epoch: 0, baseId: 1, adminPort, pid: process.pid };
  metrics.observe({ kind: 'event', from: 'supervisor', to: 'status', event, seq: 0, t: 0 });
  order({ type: 'admin.use', epoch: 0, baseId: 1, adminPort, pid: process.pid });
  await eventually('the metric is 0', async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes('istio_agent_envoy_serving{epoch="epoch-0"} 0'),
  );
  await fetch(`${url}/metrics`);
  expect(linesOf(log, 'envoy.unresponsive', { reason: /no response within/ })).toHaveLength(1);
  expect(linesOf(log, 'envoy.responsive')).toHaveLength(0);
  isStopped = false;
  await eventually('the metric is 1', async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes('istio_agent_envoy_serving{epoch="epoch-0"} 1'),
  );
  await fetch(`${url}/metrics`);
  expect(linesOf(log, 'envoy.responsive')).toHaveLength(1);
});

test('a scrape does not probe an admin port that a child may have taken over', async () => {
  let requests = 0;
  const child = createHttpServer((request, response) => {
    if (request.url === '/ready') requests++;
    response.end('{}');
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void child.close());
  await once(child, 'listening');
  const { port: adminPort } = child.address() as { port: number };
  let newest = 'epoch-0';
  const { url, order } = await servingStatus({ adminPort, newest: () => newest });
  order({ type: 'admin.use', epoch: 0, baseId: 1, adminPort, pid: process.pid });
  await fetch(`${url}/metrics`);
  await eventually('Envoy is probed', () => requests === 1);
  newest = 'epoch-1';
  await (await fetch(`${url}/metrics`)).text();
  expect(requests).toBe(1);
});

test('requests readiness again if the cached response is invalidated while Envoy is being probed', async () => {
  const heldReplies: (() => void)[] = [];
  const envoy = createHttpServer((request, response) => {
    if (request.url === '/ready') heldReplies.push(() => response.end('LIVE\n'));
    else response.end('{}');
  });
  envoy.listen(0, '127.0.0.1');
  onTestFinished(() => void envoy.close());
  await once(envoy, 'listening');
  const { port: adminPort } = envoy.address() as { port: number };
  const { url, receivedEvents, order } = await servingStatus({
    adminPort,
    respond: onReadiness((event) => ({ ...ready(event), ready: event.request === 1, heldMs: 1 })),
  });
  order({ type: 'admin.use', epoch: 0, baseId: 1, adminPort, pid: process.pid });
  const status = async (): Promise<number> => (await fetch(`${url}/healthz/ready`)).status;
  expect(await status()).toBe(200);
  await sleep(5);
  const response = status();
  await eventually('Envoy is asked', () => heldReplies.length === 1);
  order({ type: 'readiness.invalidate' });
  heldReplies[0]!();
  expect(await response).toBe(503);
  expect(receivedEvents.filter(({ type }) => type === 'readiness.requested')).toHaveLength(2);
});

test('responds to each request for the readiness if a check of it throws an error', async () => {
  const envoy = createHttpServer((request, response) => response.end(request.url === '/ready' ? 'LIVE\n' : '{}'));
  envoy.listen(0, '127.0.0.1');
  onTestFinished(() => void envoy.close());
  await once(envoy, 'listening');
  const { port: adminPort } = envoy.address() as { port: number };
  let isBroken = false;
  const { url, order } = await servingStatus({
    adminPort,
    certificateProblem: () => {
      if (isBroken) throw new Error('broken check');
      return undefined;
    },
    respond: (event) => {
      if (event.type === 'readiness.requested')
        return { type: 'envoy.probe', request: event.request as number, at: 'admin' };
      if (event.type !== 'envoy.responded') return undefined as never;
      return { ...ready(event), ready: event.live as boolean, reason: event.detail as string, heldMs: 1 };
    },
  });
  order({ type: 'admin.use', epoch: 0, baseId: 1, adminPort, pid: process.pid });
  const status = async (): Promise<number> =>
    (await fetch(`${url}/healthz/ready`, { signal: AbortSignal.timeout(30_000) })).status;
  expect(await status()).toBe(200);
  await sleep(5);
  isBroken = true;
  expect([await status(), await status()]).toEqual([503, 503]);
  isBroken = false;
  expect(await status()).toBe(200);
});

test('uses the admin interface of the first Envoy until another one is set (agent §6.3)', async () => {
  const envoys = await Promise.all(
    ['first', 'spare'].map(async (name) => {
      const server = createHttpServer((request, response) => {
        response.end(request.url === '/ready' ? 'LIVE\n' : `envoy_of_${name} 1\n`);
      });
      server.listen(0, '127.0.0.1');
      onTestFinished(() => void server.close());
      await once(server, 'listening');
      return (server.address() as { port: number }).port;
    }),
  );
  const [first, spare] = envoys as [number, number];
  const { url, order, log } = await servingStatus({ adminPort: first });
  const { pid } = process;
  const envoy = async (): Promise<string | undefined> =>
    /envoy_of_(\w+)/.exec(await (await fetch(`${url}/stats/prometheus`)).text())?.[1];
  expect(await envoy()).toBe('first');
  order({ type: 'admin.use', epoch: 0, baseId: 2, adminPort: spare, pid });
  expect(await envoy()).toBe('spare');
  for (const epoch of [0, 1]) order({ type: 'admin.use', epoch, baseId: 1, adminPort: first, pid });
  expect(await envoy()).toBe('first');
  // Each change is logged once.
  expect(linesOf(log, 'admin.moved').map((line) => /address=127\.0\.0\.1:(\d+)/.exec(line)?.[1])).toEqual(
    [envoys[1], envoys[0]].map(String),
  );
});

test('discards the probe of an Envoy that no longer serves, and probes the serving Envoy', async () => {
  const [former, latter] = await Promise.all(
    ['cut off', 'LIVE'].map(async (readyBody) => {
      const server = createHttpServer((request, response) => {
        if (readyBody === 'LIVE') response.end(request.url === '/ready' ? 'LIVE\n' : '{}');
        else if (request.url === '/ready') heldReplies.push(() => request.socket.destroy());
        else response.end('{}');
      });
      server.listen(0, '127.0.0.1');
      onTestFinished(() => void server.close());
      await once(server, 'listening');
      return (server.address() as { port: number }).port;
    }),
  );
  const heldReplies: (() => void)[] = [];
  const { pid } = process;
  const { url, order, receivedEvents } = await servingStatus({
    adminPort: former!,
    respond: (event) => {
      if (event.type === 'readiness.requested') return { type: 'envoy.probe', request: 1, at: 'admin' };
      if (event.type !== 'envoy.responded') return undefined as never;
      return { ...ready(event), ready: event.live as boolean, reason: event.detail as string };
    },
  });
  order({ type: 'admin.use', epoch: 1, baseId: 1, adminPort: former!, pid });
  const response = fetch(`${url}/healthz/ready`);
  await eventually('the one that serves is asked', () => heldReplies.length === 1);
  order({ type: 'admin.use', epoch: 0, baseId: 2, adminPort: latter!, pid });
  heldReplies[0]!();
  order({ type: 'envoy.probe', request: 1, at: 'admin' });
  expect((await response).status).toBe(200);
  expect(receivedEvents.filter(({ type }) => type === 'envoy.responded')).toMatchObject([
    { live: true, detail: 'LIVE' },
  ]);
});

test('reports rejected listeners when Envoy starts to serve and whenever they change (agent §6.3)', async () => {
  let refusedListeners = ['tls'];
  let at: EnvoyProbe['at'] = 'port';
  let dumps = 0;
  const envoy = createHttpServer((requests, response) => {
    if (requests.url !== '/ready') dumps++;
    const configs = refusedListeners.map((name) => ({ name, error_state: { details: 'no certificate' } }));
    response.end(requests.url === '/ready' ? 'LIVE\n' : JSON.stringify({ configs }));
  });
  envoy.listen(0, '127.0.0.1');
  onTestFinished(() => void envoy.close());
  await once(envoy, 'listening');
  const { port: adminPort } = envoy.address() as { port: number };
  let heldTimes = { heldMs: 0, listenersHeldMs: 0 };
  const { url, receivedEvents, order } = await servingStatus({
    adminPort,
    respond: (event) => {
      if (event.type === 'readiness.requested') return { type: 'envoy.probe', request: event.request as number, at };
      if (event.type !== 'envoy.responded') return undefined as never;
      return { ...ready(event), ...heldTimes };
    },
  });
  const requestReadiness = async (): Promise<string[]> => {
    const from = receivedEvents.length;
    await fetch(`${url}/healthz/ready`);
    return receivedEvents.slice(from).map(({ type }) => type);
  };
  const listeners = (): unknown[] =>
    receivedEvents.flatMap((event) => (event.type === 'listeners.checked' ? [event.listeners] : []));
  const tls = { name: 'tls', reason: 'no certificate' };
  order({ type: 'admin.use', epoch: 0, baseId: 1, adminPort, pid: process.pid });
  // A child has the admin port, and the listeners were not read before.
  expect(await requestReadiness()).toEqual(['readiness.requested', 'listeners.checked', 'envoy.responded']);
  at = 'admin';
  expect(await requestReadiness()).toEqual(['readiness.requested', 'envoy.responded']);
  expect(listeners()).toEqual([[tls]]);
  refusedListeners = [];
  expect(await requestReadiness()).toEqual(['readiness.requested', 'listeners.checked', 'envoy.responded']);
  // The cached response is valid while Envoy rejects the same listeners.
  heldTimes = { heldMs: 1, listenersHeldMs: 60_000 };
  await requestReadiness();
  const previous = dumps;
  await sleep(5);
  expect(await requestReadiness()).toEqual([]);
  expect(dumps).toBe(previous);
  order({ type: 'readiness.invalidate' });
  heldTimes = { heldMs: 1, listenersHeldMs: 1 };
  await requestReadiness();
  await sleep(5);
  expect(await requestReadiness()).toEqual([]);
  expect(dumps).toBe(previous + 2);
  refusedListeners = ['tls'];
  await sleep(5);
  expect(await requestReadiness()).toEqual(['listeners.checked', 'readiness.requested', 'envoy.responded']);
  expect(listeners()).toEqual([[tls], [], [tls]]);
  // The listeners of another Envoy are reported again.
  order({ type: 'admin.use', epoch: 1, baseId: 1, adminPort, pid: process.pid });
  await eventually('it is reported', () => listeners().length === 4);
});

test("returns the agent's own metrics if Envoy does not respond, and counts the failure (agent §6.4)", async () => {
  const { url } = await servingStatus({});
  await fetch(`${url}/metrics`);
  const response = await fetch(`${url}/stats/prometheus`);
  const body = await response.text();
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(body).toContain('istio_agent_scrapes_total 2\n');
  expect(body).toContain('istio_agent_scrape_failures_total{type="envoy"} 2\n');
  expect(body).toContain('process_resident_memory_bytes');
});

test('/quitquitquit requires POST (agent §6.2)', async () => {
  const { url, receivedEvents } = await servingStatus({});
  expect((await fetch(`${url}/quitquitquit`)).status).toBe(405);
  expect(receivedEvents.some((event) => event.type === 'quit.requested')).toBe(false);
  const response = await fetch(`${url}/quitquitquit`, { method: 'POST' });
  expect([response.status, await response.text()]).toEqual([200, 'OK']);
  expect(receivedEvents.some((event) => event.type === 'quit.requested')).toBe(true);
});

test('/drain requires POST, and drains the serving Envoy without stopping it (agent §6.2)', async () => {
  const orders: string[] = [];
  const envoy = createHttpServer((request, response) => {
    if (request.method === 'POST') orders.push(request.url!);
    response.writeHead(orders.length > 1 ? 500 : 200).end('OK');
  });
  envoy.listen(0, '127.0.0.1');
  onTestFinished(() => void envoy.close());
  await once(envoy, 'listening');
  const { port: adminPort } = envoy.address() as { port: number };
  const { url, receivedEvents, order } = await servingStatus({
    adminPort,
  });
  expect((await fetch(`${url}/drain`)).status).toBe(405);
  const response = await fetch(`${url}/drain`, { method: 'POST' });
  expect([response.status, await response.text()]).toEqual([200, 'OK']);
  expect(receivedEvents.filter(({ type }) => type === 'drain.requested')).toHaveLength(1);
  order({ type: 'envoy.drain' });
  await eventually('it is done', () => receivedEvents.some(({ type }) => type === 'drain.ordered'));
  expect(orders).toEqual(['/drain_listeners?inboundonly&graceful&skip_exit']);
  order({ type: 'envoy.drain' });
  await eventually('it is refused', () => receivedEvents.filter(({ type }) => type === 'drain.ordered').length === 2);
  expect(receivedEvents.at(-1)).toMatchObject({ reason: expect.stringContaining('500') });
});

test('local endpoints reject forwarded requests, foreign Host headers and foreign origins before any other check (agent §6.2)', async () => {
  const { url, receivedEvents } = await servingStatus({});
  const port = Number(new URL(url).port);
  const status = async (path: string, headers: Record<string, string>, host = '127.0.0.1'): Promise<number> => {
    const outgoing = request({ host, port, path, headers, agent: false, method: 'POST' }).end();
    const [response] = (await once(outgoing, 'response')) as [import('node:http').IncomingMessage];
    return response.resume().statusCode!;
  };
  for (const path of [
    '/quitquitquit',
    '/drain',
    '/upgrade',
    '/upgrade/agent',
    '/debug/ndsz',
    '/debug/pprof/',
    '/debug/pprof/heap',
  ]) {
    const headers: Record<string, string>[] = [
      { 'x-forwarded-for': '10.0.0.1' },
      { host: 'evil.example' },
      { origin: 'https://evil.example' },
    ];
    for (const header of headers) expect(await status(path, header), `${path} ${Object.keys(header)}`).toBe(403);
  }
  expect(receivedEvents.filter(({ type }) => type.endsWith('.requested'))).toEqual([]);
});

test('starts a newer agent on each POST /upgrade/agent, and responds with 409 if no launcher can start it', async () => {
  const orders: string[] = [];
  const { url } = await servingStatus({ orderSuccessor: () => orders.push('a newer one') });
  expect((await fetch(`${url}/upgrade/agent`)).status).toBe(405);
  expect(orders).toEqual([]);
  const response = await fetch(`${url}/upgrade/agent`, {
    method: 'POST',
    headers: { authorization: authorizationFor(url) },
  });
  expect([response.status, await response.text()]).toEqual([200, 'OK']);
  await eventually('it is ordered', () => orders.length === 1);
  const { url: otherUrl } = await servingStatus({});
  const headers = { authorization: authorizationFor(otherUrl) };
  const refusedResponse = await fetch(`${otherUrl}/upgrade/agent`, { method: 'POST', headers });
  expect([refusedResponse.status, await refusedResponse.text()]).toEqual([
    409,
    expect.stringContaining('LIVE_RESTORE=true'),
  ]);
});

test('/debug/ndsz returns the names of the DNS server including derived ones, and 404 if there is no name table (agent §6.2)', async () => {
  const info = (ips: string[], overrides: Partial<NameInfo> = {}): NameInfo => ({
    ...{ ips, registry: 'Kubernetes', shortname: '', namespace: '', altHosts: [] },
    ...overrides,
  });
  let names: DnsNames | undefined;
  const { url } = await servingStatus({ names: () => names });
  const headers = { authorization: authorizationFor(url) };
  const previous = await fetch(`${url}/debug/ndsz`, { headers });
  expect([previous.status, await previous.json()]).toEqual([404, {}]);
  const manyHosts = Object.fromEntries(
    Array.from({ length: 1_200 }, (_, i) => [`host-${i}.example`, info(['10.0.0.1'])]),
  );
  const web = info(['10.1.2.3', 'fd00::1:2'], { shortname: 'web', namespace: 'shop' });
  const hosts = { 'web.shop.svc.cluster.local': web, ...manyHosts };
  names = runToEnd(
    DnsNames.of(new Map(Object.entries(hosts)), {
      namespace: 'shop',
      domain: 'shop.svc.cluster.local',
      search: '',
    }),
  );
  const response = await fetch(`${url}/debug/ndsz`, { headers });
  const { table } = (await response.json()) as { table: Record<string, object> };
  expect(Object.keys(table)).toHaveLength(1_204);
  for (const name of ['web.', 'web.shop.', 'web.shop.svc.', 'web.shop.svc.cluster.local.']) {
    expect(table[name]).toEqual({ ips: ['10.1.2.3', 'fd00::1:2'] });
  }
  names = runToEnd(DnsNames.of(new Map(), { namespace: '', domain: '', search: '' }));
  expect(await (await fetch(`${url}/debug/ndsz`, { headers })).json()).toEqual({ table: {} });
  expect((await fetch(`${url}/debug/ndsz`, { headers, method: 'POST' })).status).toBe(405);
});

test('serves /debug/pprof profiles unless --profiling disables them (agent §1.2, §6.2)', async () => {
  const { url } = await servingStatus({});
  const headers = { authorization: authorizationFor(url) };
  expect(await (await fetch(`${url}/debug/pprof/goroutine`, { headers })).text()).toMatch(/open handles/);
  const off = await servingStatus({ profiling: false });
  expect((await fetch(`${off.url}/debug/pprof/goroutine`)).status).toBe(404);
});

test('accepts /quitquitquit from IPv4 loopback on a dual-stack port (agent §6.2)', async () => {
  const { receivedEvents } = await servingStatus({ host: '::' });
  const { port } = receivedEvents[0] as unknown as { port: number };
  const status = await new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path: '/quitquitquit', method: 'POST', agent: false });
    outgoing.on('response', (response) => resolve(response.resume().statusCode));
    outgoing.on('error', reject);
    outgoing.end();
  });
  expect(status).toBe(200);
});

test('forwards /app-health/ and /app-lifecycle/ probes of any method to the application, and rejects unknown ones with 400 (agent §6.2)', async () => {
  const path = '/app-health/web/livez';
  const closedPort = await freePort();
  const { url } = await servingStatus({
    probes: new Map([[path, { kind: 'tcp', port: closedPort, timeoutMs: 1_000 }]]),
  });
  expect((await fetch(`${url}/nothing`)).status).toBe(404);
  expect((await fetch(`${url}/app-health`)).status).toBe(404);
  for (const unknownPath of ['/app-health/other/livez', `${path}/more`, '/app-lifecycle/web/prestopz']) {
    const response = await fetch(`${url}${unknownPath}`);
    expect([response.status, await response.text()], unknownPath).toEqual([
      400,
      `unknown application probe ${unknownPath}\n`,
    ]);
  }
  const application = createServer();
  application.listen(closedPort, '127.0.0.1');
  await once(application, 'listening');
  for (const method of ['GET', 'POST']) expect((await fetch(`${url}${path}?x`, { method })).status).toBe(200);
  application.close();
  await once(application, 'close');
  expect((await fetch(`${url}${path}`)).status).toBe(500);
});

test('reports a port in use with instructions (agent §6.1, §6.2)', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => void other.close());
  const { port } = other.address() as { port: number };
  const { receivedEvents } = await servingStatus({ port });
  expect(receivedEvents).toEqual([
    { type: 'http.failed', reason: expect.stringContaining(`status port ${port} is in use`) },
  ]);
});

test('responds to pending readiness requests when the server closes (agent §6.3)', async () => {
  const { url, receivedEvents, stop } = await servingStatus({});
  const response = fetch(`${url}/healthz/ready`).then((response) => response.status);
  while (!receivedEvents.some((event) => event.type === 'readiness.requested')) await sleep(5);
  stop();
  expect(await response).toBe(503);
});

test('streams the trace to callers with the token until after the status port has closed', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const ring = new TraceRing(10);
  ring.write(header);
  const access = new DebuggerAccess({ runDir: folder.path });
  const trace = new TraceEndpoint({ ring, mode: 'on', access, log: silentLogger });
  const { url, stop } = await servingStatus({ trace, access });
  const refusedResponse = await fetch(`${url}/debug/trace`);
  expect([refusedResponse.status, await refusedResponse.text()]).toEqual([401, expect.stringContaining(folder.path)]);

  const token = readDebuggerToken(Number(new URL(url).port), { runDir: folder.path });
  const authorization = `Bearer ${token}`;
  const now = await fetch(`${url}/debug/trace?follow=false`, { headers: { authorization } });
  expect(await now.text()).toBe(`${JSON.stringify(header)}\n`);

  const live = (await fetch(`${url}/debug/trace`, { headers: { authorization } })).text();
  stop();
  await sleep(50);
  // Events during the shutdown are part of the trace.
  ring.write({ seq: 1, t: 0, kind: 'effect', actor: 'agent', effect: 'last' });
  access.removeTokenFiles();
  await trace.end();
  expect(await live).toContain('"last"');
  expect(readDebuggerToken(Number(new URL(url).port), { runDir: folder.path })).toBeUndefined();
});

test('serves the trace to at most four debuggers at a time', async () => {
  const ring = new TraceRing(10);
  ring.write(header);
  const access = new DebuggerAccess({ runDir: '/proc/nowhere' });
  const trace = new TraceEndpoint({ ring, mode: 'open', access, log: silentLogger });
  const { url } = await servingStatus({ trace, access });
  const abortController = new AbortController();
  const watch = () => fetch(`${url}/debug/trace`, { signal: abortController.signal });
  const responses = await Promise.all([watch(), watch(), watch(), watch()]);
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const fifth = await watch();
  expect([fifth.status, await fifth.text()]).toEqual([503, expect.stringContaining('detach one')]);
  abortController.abort();
  while ((await fetch(`${url}/debug/trace?follow=false`)).status !== 200) await sleep(10);
});

test('responds with 404 for the trace if tracing is disabled', async () => {
  const { url } = await servingStatus({});
  expect((await fetch(`${url}/debug/trace`)).status).toBe(404);
});

test('logs one line for concurrent readiness requests with the same result (agent §6.3)', async () => {
  const { url, log } = await servingStatus({
    respond: onReadiness((event) => ({ ...ready(event), ready: false, reason: 'no epoch serves' })),
  });
  const requestReadiness = async (): Promise<number> => (await fetch(`${url}/healthz/ready`)).status;
  for (let round = 0; round < 3; round++) {
    expect(new Set(await Promise.all(Array.from({ length: 40 }, requestReadiness)))).toEqual(new Set([503]));
  }
  expect(linesOf(log, 'readiness.pending')).toHaveLength(1);
  expect(linesOf(log, 'readiness.lost')).toEqual([]);
});

test('logs not ready as info during start and stop, and as a warning otherwise (agent §6.3)', async () => {
  const responses = [
    { ready: false, reason: 'no epoch serves' },
    { ready: true, reason: '' },
    { ready: false, reason: 'no epoch serves' },
    { ready: false, reason: 'agent is stopping' },
  ];
  const { url, log } = await servingStatus({
    respond: onReadiness((event) => ({ ...ready(event), ...responses.shift()! })),
  });
  while (responses.length > 0) await fetch(`${url}/healthz/ready`);
  const events = ['readiness.pending', 'readiness.ready', 'readiness.lost', 'readiness.stopping'] as const;
  expect(log).toEqual(events.flatMap((event) => linesOf(log, event)));
  expect(log).toHaveLength(events.length);
});

test('sends one event for concurrent readiness requests (agent §6.3)', async () => {
  const waitingEvents: ReceivedEvent[] = [];
  const { url, receivedEvents, order } = await servingStatus({
    respond: onReadiness((event) => void waitingEvents.push(event) as never),
  });
  let arrivedCount = 0;
  const count = (): void => void arrivedCount++;
  subscribe('http.server.request.start', count);
  onTestFinished(() => void unsubscribe('http.server.request.start', count));
  const requests = Array.from({ length: 20 }, async () => (await fetch(`${url}/healthz/ready`)).status);
  await eventually('all have asked', () => arrivedCount === 20);
  expect(receivedEvents.filter(({ type }) => type === 'readiness.requested')).toHaveLength(1);
  order(ready(waitingEvents[0]!) as never);
  expect(new Set(await Promise.all(requests))).toEqual(new Set([200]));
});

test('/stats/prometheus and /metrics require GET, and return the metrics of the serving Envoy, then of the application (agent §6.2, §6.4)', async () => {
  const bodies = ['envoy_up 1\n', 'application_up 1\n'];
  const [envoy, application] = await Promise.all(
    bodies.map(async (body) => {
      const server = createHttpServer((_, response) => void response.end(body));
      server.listen(0, '127.0.0.1');
      onTestFinished(() => void server.close());
      await once(server, 'listening');
      return (server.address() as { port: number }).port;
    }),
  );
  const { url } = await servingStatus({
    adminPort: envoy!,
    applicationMetrics: [{ port: application!, path: '/metrics' }],
  });
  expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405);
  const text = await (await fetch(`${url}/stats/prometheus`)).text();
  expect(text).toMatch(/^# HELP .*\nistio_agent_scrapes_total 1\n.*\nenvoy_up 1\napplication_up 1\n$/s);
});

test('responds to malformed requests with an error and continues to serve', async () => {
  const { url } = await servingStatus({ respond: onReadiness(ready) });
  for (const target of ['//', 'http://a:99999999/', '*', '/%', 'x']) {
    const output = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
        socket.write(`GET ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`),
      );
      let text = '';
      socket.on('data', (chunk) => {
        text += String(chunk);
      });
      socket.on('error', () => {});
      socket.once('close', () => resolve(text));
    });
    expect(output, target).toMatch(/^HTTP\/1.1 (400|404) /);
  }
  expect((await fetch(`${url}/healthz/ready`)).status).toBe(200);
});

test('reports whether an Envoy is starting before the first one serves (agent §6.3)', async () => {
  let newest: string | undefined;
  const { url, log } = await servingStatus({
    newest: () => newest,
    respond: onReadiness((event) => ({ ...ready(event), ready: false, reason: 'no Envoy has served yet' })),
  });
  await fetch(`${url}/healthz/ready`);
  expect(linesOf(log, 'readiness.pending', { reason: 'no Envoy has served yet: no Envoy is running' })).toHaveLength(1);
  newest = 'epoch-0';
  await fetch(`${url}/healthz/ready`);
  const initializing = 'no Envoy has served yet: epoch-0 is initializing';
  expect(linesOf(log, 'readiness.pending', { reason: initializing })).toHaveLength(1);
});

test('serves metrics only to this host with METRICS_LOCALHOST_ACCESS_ONLY, and readiness to every host (agent §6.2)', async () => {
  const outside = Object.values(networkInterfaces()).flatMap((all) => all?.filter(({ internal }) => !internal) ?? []);
  const address = outside.find(({ family }) => family === 'IPv4')?.address ?? '127.0.0.1';
  const { url } = await servingStatus({ metricsForThisHost: true, host: '0.0.0.0', respond: onReadiness(ready) });
  const { port } = new URL(url);
  expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
  if (address === '127.0.0.1') return;
  for (const path of ['/metrics', '/stats/prometheus']) {
    expect((await fetch(`http://${address}:${port}${path}`)).status, path).toBe(403);
  }
  expect((await fetch(`http://${address}:${port}/healthz/ready`)).status).toBe(200);
});

/** An admin interface with these responses by path. */
async function adminThat(responseTo: (path: string) => unknown): Promise<number> {
  const server = createHttpServer((request, response) => {
    const body = responseTo(request.url ?? '');
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
}

test.each<[what: string, listeners: unknown, inbound: unknown, isReady: boolean]>([
  ['no listeners', {}, {}, false],
  ['invalid JSON', 'x', 'x', false],
  ['invalid list items', { listener_statuses: [null, 1, {}] }, { configs: [null, {}] }, false],
  [
    "a listener at the pod's address",
    { listener_statuses: [{ local_address: { socket_address: { address: '10.0.0.1', port_value: 80 } } }] },
    {},
    true,
  ],
  [
    'an outbound listener',
    { listener_statuses: [{ local_address: { socket_address: { address: '0.0.0.0', port_value: 80 } } }] },
    {},
    false,
  ],
  [
    'a filter chain of the inbound listener',
    {},
    {
      configs: [
        { active_state: { listener: { filter_chains: [{}, { filter_chain_match: { destination_port: 81 } }] } } },
      ],
    },
    true,
  ],
])(
  '--applicationPorts makes the agent ready only if Envoy serves a port, with %s (agent §6.3)',
  async (_, listeners, inbound, isReady) => {
    const adminPort = await adminThat((path) => {
      if (path.startsWith('/ready')) return 'LIVE';
      if (path.startsWith('/listeners')) return listeners;
      return path.includes('virtualInbound') ? inbound : {};
    });
    const application = { ports: [80, 81], addresses: ['10.0.0.1'] };
    const { url, receivedEvents } = await servingStatus({
      adminPort,
      application,
      respond: (event) => {
        if (event.type === 'readiness.requested') {
          return { type: 'envoy.probe', request: event.request, at: 'admin' } as EnvoyProbe;
        }
        if (event.type !== 'envoy.responded') return undefined as never;
        return { ...ready(event), ready: event.unserved === '', reason: String(event.unserved) };
      },
    });
    expect((await fetch(`${url}/healthz/ready`)).status).toBe(isReady ? 200 : 503);
    const unserved = isReady ? '' : 'no inbound listener for any application port (80, 81)';
    expect(receivedEvents.find(({ type }) => type === 'envoy.responded')).toMatchObject({
      by: 'admin',
      live: true,
      unserved,
    });
  },
);

test('serves the metrics of agent and application with DISABLE_ENVOY, and counts no Envoy failure (agent §1.3)', async () => {
  const { url } = await servingStatus({ runsEnvoy: false });
  const text = await (await fetch(`${url}/metrics`)).text();
  expect(text).toContain('istio_agent_scrapes_total 1');
  expect(text).toContain('istio_agent_scrape_failures_total{type="envoy"} 0');
});
