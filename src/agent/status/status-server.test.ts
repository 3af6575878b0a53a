import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter, once } from 'node:events';
import { createServer as createHttpServer, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createActor, type EventObject, setup } from 'xstate';
import type { AdminUse, EnvoyAsk, ReadinessAnswer } from '../../../machines/agent/protocol.ts';
import { header } from '../../../test/fixtures/random-records.ts';
import { adminInterfaces, freePort, temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { createLogger, silentLogger } from '../../runtime/log.ts';
import { readDebuggerToken } from '../../runtime/trace/debugger-access.ts';
import { TraceEndpoint } from '../../runtime/trace/trace-endpoint.ts';
import { TraceRing } from '../../runtime/trace/trace-ring.ts';
import type { AdminDirectory } from '../admin/admin-interfaces.ts';
import { ProcessTable } from '../envoy/process-table.ts';
import { AgentMetrics } from './agent-metrics.ts';
import { statusServer } from './status-server.ts';

type Told = EventObject & Record<string, unknown>;

/** The effect below a machine that answers readiness as the test wants, by way of Envoy or by itself. */
async function serving(options: {
  answer?: (event: Told) => EnvoyAsk | ReadinessAnswer;
  port?: number;
  host?: string;
  admins?: AdminDirectory;
  trace?: TraceEndpoint;
  table?: ProcessTable;
  metrics?: AgentMetrics;
}): Promise<{
  url: string;
  told: Told[];
  log: string[];
  order: (order: AdminUse | EnvoyAsk) => void;
  stop: () => void;
}> {
  const told: Told[] = [];
  const log: string[] = [];
  const { table = new ProcessTable() } = options;
  const http = statusServer({
    admins: options.admins ?? adminInterfaces(await freePort()),
    metrics: options.metrics ?? new AgentMetrics(),
    ports: { host: '127.0.0.1', port: undefined, table },
    table,
    log: createLogger({ write: (line) => log.push(line) }).scope('status'),
    host: options.host ?? '127.0.0.1',
    ...(options.trace && { trace: options.trace }),
  });
  const parent = setup({ actors: { http } }).createMachine({
    invoke: { id: 'http', src: 'http', input: { port: options.port ?? 0 } },
    on: {
      '*': {
        actions: ({ event, self }) => {
          told.push(event as Told);
          const answer = options.answer?.(event as Told);
          if (answer !== undefined) self.getSnapshot().children.http?.send(answer);
        },
      },
    },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  while (!told.some((event) => event.type.startsWith('http.'))) await sleep(5);
  const { port } = told[0] as { port?: number };
  return {
    url: `http://127.0.0.1:${port}`,
    told,
    log,
    order: (order) => actor.getSnapshot().children.http?.send(order),
    stop: () => void actor.stop(),
  };
}

const ready = (event: Told): ReadinessAnswer => ({
  type: 'readiness.answer',
  request: event.request as number,
  ready: true,
  reason: '',
});

const onReadiness = (answer: (event: Told) => EnvoyAsk | ReadinessAnswer) => (event: Told) =>
  event.type === 'readiness.asked' ? answer(event) : (undefined as never);

test('readiness is what the status actor answers, without a body', async () => {
  let isReady = true;
  const { url, log } = await serving({
    answer: onReadiness((event) => ({ ...ready(event), ready: isReady, reason: isReady ? '' : 'no epoch serves' })),
  });
  const first = await fetch(`${url}/healthz/ready`);
  expect([first.status, await first.text()]).toEqual([200, '']);
  await fetch(`${url}/healthz/ready`);
  isReady = false;
  const last = await fetch(`${url}/healthz/ready`, { method: 'POST' });
  expect([last.status, await last.text()]).toEqual([503, '']);
  // Success only on the change to ready, every failure with its reason.
  expect(log.filter((line) => line.includes('\tready'))).toHaveLength(1);
  expect(log.at(-1)).toContain('no epoch serves');
});

test('when told to, Envoy’s admin interface is asked, and its silence is an answer', async () => {
  const { url, told } = await serving({
    answer: (event) => {
      if (event.type === 'readiness.asked') return { type: 'envoy.ask', request: event.request as number, at: 'admin' };
      if (event.type !== 'envoy.answered') return undefined as never;
      return { ...ready(event), ready: event.live as boolean, reason: event.detail as string };
    },
  });
  expect((await fetch(`${url}/healthz/ready`)).status).toBe(503);
  expect(told.find((event) => event.type === 'envoy.answered')).toMatchObject({
    live: false,
    detail: expect.stringContaining('connection refused'),
  });
});

test('the admin interface that counts is the first one’s until another is named', async () => {
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
  const admins = adminInterfaces(envoys[0]!, envoys[1]);
  admins.spareIs(2);
  await admins.portFor({ epoch: 0, baseId: 2 });
  const { url, order, log } = await serving({ admins });
  const envoy = async (): Promise<string | undefined> =>
    /envoy_of_(\w+)/.exec(await (await fetch(`${url}/stats/prometheus`)).text())?.[1];
  expect(await envoy()).toBe('first');
  order({ type: 'admin.use', epoch: 0, baseId: 2 });
  expect(await envoy()).toBe('spare');
  for (const epoch of [0, 1]) order({ type: 'admin.use', epoch, baseId: 1 });
  expect(await envoy()).toBe('first');
  // Each move is told once.
  expect(log.flatMap((line) => /interface is at 127\.0\.0\.1:(\d+) now/.exec(line)?.[1] ?? [])).toEqual(
    [envoys[1], envoys[0]].map(String),
  );
});

test('what was asked of an Envoy that serves no more is not reported: who serves since is asked', async () => {
  const [former, latter] = await Promise.all(
    ['cut off', 'LIVE'].map(async (word) => {
      const server = createHttpServer((request, response) => {
        if (word === 'LIVE') response.end(request.url === '/ready' ? 'LIVE\n' : '{}');
        else if (request.url === '/ready') held.push(() => request.socket.destroy());
        else response.end('{}');
      });
      server.listen(0, '127.0.0.1');
      onTestFinished(() => void server.close());
      await once(server, 'listening');
      return (server.address() as { port: number }).port;
    }),
  );
  const held: (() => void)[] = [];
  const admins = adminInterfaces(former!, latter);
  admins.spareIs(2);
  await admins.portFor({ epoch: 0, baseId: 2 });
  const { url, order, told } = await serving({
    admins,
    answer: (event) => {
      if (event.type === 'readiness.asked') return { type: 'envoy.ask', request: 1, at: 'admin' };
      if (event.type !== 'envoy.answered') return undefined as never;
      return { ...ready(event), ready: event.live as boolean, reason: event.detail as string };
    },
  });
  order({ type: 'admin.use', epoch: 1, baseId: 1 });
  const answer = fetch(`${url}/healthz/ready`);
  await eventually('the one that serves is asked', () => held.length === 1);
  order({ type: 'admin.use', epoch: 0, baseId: 2 });
  held[0]!();
  order({ type: 'envoy.ask', request: 1, at: 'admin' });
  expect((await answer).status).toBe(200);
  expect(told.filter(({ type }) => type === 'envoy.answered')).toMatchObject([{ live: true, detail: 'LIVE' }]);
});

test('an Envoy that lives without a listener that it refused is not ready, with the reason, until it has it', async () => {
  let refused = ['tls'];
  let at: EnvoyAsk['at'] = 'port';
  const envoy = createHttpServer((asked, response) => {
    const configs = refused.map((name) => ({ name, error_state: { details: 'no certificate' } }));
    response.end(asked.url === '/ready' ? 'LIVE\n' : JSON.stringify({ configs }));
  });
  envoy.listen(0, '127.0.0.1');
  onTestFinished(() => void envoy.close());
  await once(envoy, 'listening');
  const { url, told, order } = await serving({
    admins: adminInterfaces((envoy.address() as { port: number }).port),
    answer: (event) => {
      const { request: asked, refused: lacking } = event as Told & { request: number; refused: string };
      if (event.type === 'readiness.asked') return { type: 'envoy.ask', request: asked, at };
      if (event.type !== 'envoy.answered') return undefined as never;
      return { type: 'readiness.answer', request: asked, ready: lacking === '', reason: lacking };
    },
  });
  const status = async (): Promise<number> => (await fetch(`${url}/healthz/ready`)).status;
  order({ type: 'admin.use', epoch: 0, baseId: 1 });
  // Its child has the admin port already, and nobody has asked before.
  expect(await status()).toBe(503);
  expect(told.at(-1)).toMatchObject({ by: 'port', refused: 'tls: no certificate' });
  at = 'admin';
  expect(await status()).toBe(503);
  expect(told.at(-1)).toMatchObject({ by: 'admin', live: true, refused: 'tls: no certificate' });
  refused = [];
  expect(await status()).toBe(200);
  // Refused when it served already: what it has serves on.
  refused = ['another'];
  expect(await status()).toBe(200);
});

test('metrics are the agent’s own when Envoy has none to give, and the failure is counted', async () => {
  const { url } = await serving({});
  await fetch(`${url}/metrics`);
  const response = await fetch(`${url}/stats/prometheus`);
  const body = await response.text();
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(body).toContain('istio_agent_scrapes_total 2\n');
  expect(body).toContain('istio_agent_scrape_failures_total{type="envoy"} 2\n');
  expect(body).toContain('process_resident_memory_bytes');
});

test('quitting is asked with POST', async () => {
  const { url, told } = await serving({});
  expect((await fetch(`${url}/quitquitquit`)).status).toBe(405);
  expect(told.some((event) => event.type === 'quit.requested')).toBe(false);
  const response = await fetch(`${url}/quitquitquit`, { method: 'POST' });
  expect([response.status, await response.text()]).toEqual([200, 'OK']);
  expect(told.some((event) => event.type === 'quit.requested')).toBe(true);
});

test('quitting from IPv4 loopback is allowed on a dual-stack port', async () => {
  const { told } = await serving({ host: '::' });
  const { port } = told[0] as unknown as { port: number };
  const status = await new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path: '/quitquitquit', method: 'POST', agent: false });
    outgoing.on('response', (response) => resolve(response.resume().statusCode));
    outgoing.on('error', reject);
    outgoing.end();
  });
  expect(status).toBe(200);
});

test('unknown paths are 404', async () => {
  const { url } = await serving({});
  expect((await fetch(`${url}/nothing`)).status).toBe(404);
});

test('a port that is in use is told with what to do', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => void other.close());
  const { port } = other.address() as { port: number };
  const { told } = await serving({ port });
  expect(told).toEqual([{ type: 'http.failed', reason: expect.stringContaining(`status port ${port} is in use`) }]);
});

test('a readiness call that nobody answers is answered when the server ends', async () => {
  const { url, told, stop } = await serving({});
  const answer = fetch(`${url}/healthz/ready`).then((response) => response.status);
  while (!told.some((event) => event.type === 'readiness.asked')) await sleep(5);
  stop();
  expect(await answer).toBe(503);
});

test('the trace is streamed to who has the token, beyond the end of the status port', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const ring = new TraceRing(10);
  ring.write(header);
  const trace = new TraceEndpoint({ ring, mode: 'on', runDir: folder.path, log: silentLogger });
  const { url, stop } = await serving({ trace });
  const refused = await fetch(`${url}/debug/trace`);
  expect([refused.status, await refused.text()]).toEqual([401, expect.stringContaining(folder.path)]);

  const token = readDebuggerToken(Number(new URL(url).port), { runDir: folder.path });
  const authorization = `Bearer ${token}`;
  const now = await fetch(`${url}/debug/trace?follow=false`, { headers: { authorization } });
  expect(await now.text()).toBe(`${JSON.stringify(header)}\n`);

  const live = (await fetch(`${url}/debug/trace`, { headers: { authorization } })).text();
  stop();
  await sleep(50);
  // What happens while the agent goes down is what one wants to see.
  ring.write({ seq: 1, t: 0, kind: 'effect', actor: 'agent', effect: 'last' });
  await trace.end();
  expect(await live).toContain('"last"');
  expect(readDebuggerToken(Number(new URL(url).port), { runDir: folder.path })).toBeUndefined();
});

test('at most four debuggers watch', async () => {
  const ring = new TraceRing(10);
  ring.write(header);
  const trace = new TraceEndpoint({ ring, mode: 'open', runDir: '/nonexistent', log: silentLogger });
  const { url } = await serving({ trace });
  const stopped = new AbortController();
  const watch = () => fetch(`${url}/debug/trace`, { signal: stopped.signal });
  const answers = await Promise.all([watch(), watch(), watch(), watch()]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const fifth = await watch();
  expect([fifth.status, await fifth.text()]).toEqual([503, expect.stringContaining('detach one')]);
  stopped.abort();
  while ((await fetch(`${url}/debug/trace?follow=false`)).status !== 200) await sleep(10);
});

test('without the debugger there is no such path', async () => {
  const { url } = await serving({});
  expect((await fetch(`${url}/debug/trace`)).status).toBe(404);
});

test('the log has one line for all who hear the same of readiness', async () => {
  const { url, log } = await serving({
    answer: onReadiness((event) => ({ ...ready(event), ready: false, reason: 'no epoch serves' })),
  });
  const ask = async (): Promise<number> => (await fetch(`${url}/healthz/ready`)).status;
  for (let round = 0; round < 3; round++) {
    expect(new Set(await Promise.all(Array.from({ length: 40 }, ask)))).toEqual(new Set([503]));
  }
  expect(log.filter((line) => line.includes('not ready'))).toHaveLength(1);
});

test('many who ask at once for readiness are one question', async () => {
  const waiting: Told[] = [];
  const { url, told, order } = await serving({
    answer: onReadiness((event) => void waiting.push(event) as never),
  });
  let arrived = 0;
  const count = (): void => void arrived++;
  subscribe('http.server.request.start', count);
  onTestFinished(() => void unsubscribe('http.server.request.start', count));
  const asked = Array.from({ length: 20 }, async () => (await fetch(`${url}/healthz/ready`)).status);
  await eventually('all have asked', () => arrived === 20);
  expect(told.filter(({ type }) => type === 'readiness.asked')).toHaveLength(1);
  order(ready(waiting[0]!) as never);
  expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
});

test('many who scrape at once cost Envoy one scrape', async () => {
  const scrapes: (() => void)[] = [];
  const admin = createHttpServer((_, response) => {
    scrapes.push(() => response.end('envoy_up 1\n'));
  });
  await new Promise<void>((resolve) => admin.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void admin.close());
  const { port } = admin.address() as { port: number };
  const metrics = new AgentMetrics();
  const scraped = vi.spyOn(metrics, 'scraped');
  const { url } = await serving({ admins: adminInterfaces(port), metrics });
  const scrape = async (): Promise<string> => (await fetch(`${url}/stats/prometheus`)).text();
  const texts = Promise.all(Array.from({ length: 30 }, scrape));
  await eventually('all have asked, and Envoy too', () => scraped.mock.calls.length === 30 && scrapes.length > 0);
  for (const answer of scrapes) answer();
  expect((await texts).every((text) => text.endsWith('envoy_up 1\n'))).toBe(true);
  expect(scrapes).toHaveLength(1);
});

test('what is no request is answered or cut off, and the port goes on', async () => {
  const { url } = await serving({ answer: onReadiness(ready) });
  for (const target of ['//', 'http://a:99999999/', '*', '/%', 'x']) {
    const said = await new Promise<string>((resolve) => {
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
    expect(said, target).toMatch(/^HTTP\/1.1 (400|404) /);
  }
  expect((await fetch(`${url}/healthz/ready`)).status).toBe(200);
});

test('before an Envoy has served it says whether one is on its way', async () => {
  const table = new ProcessTable();
  const { url, log } = await serving({
    table,
    answer: onReadiness((event) => ({ ...ready(event), ready: false, reason: 'no Envoy has served yet' })),
  });
  await fetch(`${url}/healthz/ready`);
  expect(log.join('')).toContain('not ready  reason="no Envoy has served yet: none runs"');
  table.add(Object.assign(new EventEmitter(), { pid: 7, kill: () => true }) as never, { epoch: 0, baseId: 3 });
  await fetch(`${url}/healthz/ready`);
  expect(log.join('')).toContain('not ready  reason="no Envoy has served yet: epoch-0 is initializing"');
});
