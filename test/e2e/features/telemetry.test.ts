/** Access logs and traces, read from log files and collectors. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { freePorts } from '../../harness/free-ports.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { gateway, object, serviceEntry, virtualService } from './harness/objects.ts';

let mesh: FeatureMesh;
const folder = mkdtempSync(join(tmpdir(), 'chartpilot-logs-'));
const meshLog = join(folder, 'mesh.log');
const secondLog = join(folder, 'second.log');
let collector: number;

beforeAll(async () => {
  [collector] = (await freePorts(1)) as [number];
  const at = { service: 'collector.shop.test', port: collector };
  mesh = await FeatureMesh.start({
    proxies: { web: { labels: { app: 'web' } }, edge: { type: 'router', labels: { istio: 'edge' } } },
    meshConfig: {
      accessLogFile: meshLog,
      accessLogFormat: '%REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE%',
      extensionProviders: [
        {
          name: 'second',
          envoyFileAccessLog: {
            path: secondLog,
            logFormat: {
              labels: { path: '%REQ_WITHOUT_QUERY(:PATH)%', code: '%RESPONSE_CODE%', to: '%UPSTREAM_CLUSTER_RAW%' },
            },
          },
        },
        { name: 'service', envoyHttpAls: { ...at, logName: 'mine' } },
        { name: 'connections', envoyTcpAls: at },
        { name: 'otel-logs', envoyOtelAls: { ...at, logFormat: { labels: { path: '%REQ(:PATH)%' } } } },
        { name: 'spans', zipkin: at },
        { name: 'otel', opentelemetry: { ...at, http: { path: '/v1/traces', timeout: '1s' } } },
        { name: 'otel-grpc', opentelemetry: { ...at, resourceDetectors: { environment: {} } } },
        { name: 'dog', datadog: at },
        { name: 'sky', skywalking: { ...at, accessToken: 'secret' } },
        { name: 'nowhere', zipkin: { service: 'nowhere.test', port: 9411 } },
      ],
    },
  });
});

afterAll(async () => {
  await mesh?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function telemetry(spec: object, name = 'telemetry'): string {
  return object('telemetry.istio.io/v1', 'Telemetry', 'shop', name, spec);
}

let lastPath = 0;
const newPath = (): string => `/p${++lastPath}`;

function lines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}

/** Sends one request at a time, because the log keeps the request order. */
async function waitForLine(file: string, path: string): Promise<string> {
  return eventually(`${path} is in ${file}`, () => lines(file).find((line) => line.includes(path)));
}

/** The services `cart.shop.test` behind the sidecar and `shop.test` behind the gateway. */
async function shop(extraYaml = ''): Promise<{ cart: number; front: number; yaml: string }> {
  const backend = await mesh.http('v1', {
    respond: ({ url }, response) => void response.writeHead(url.includes('missing') ? 404 : 200).end(),
  });
  const { cart, front } = await mesh.ports('cart', 'front');
  const yaml = `
${serviceEntry('cart.shop.test', { port: cart, backends: [backend] })}
---
${gateway('front', { istio: 'edge' }, [{ port: front, protocol: 'HTTP', hosts: ['shop.test'] }])}
---
${virtualService('shop.test', { gateways: ['front'], http: [{ route: [{ destination: { host: 'cart.shop.test' } }] }] })}
${extraYaml}`;
  return { cart, front, yaml };
}

test("requests are written to the mesh's access log in its format", async () => {
  const { cart, yaml } = await shop();
  await mesh.apply(yaml);
  const path = newPath();
  await mesh.request('web', { port: cart, host: 'cart.shop.test', path });
  expect(await waitForLine(meshLog, path)).toBe(`GET ${path} 200`);
});

test('a Telemetry object disables the access log of its workloads until it is removed', async () => {
  const { cart, front, yaml } = await shop();
  const quietTelemetry = telemetry({ selector: { matchLabels: { app: 'web' } }, accessLogging: [{ disabled: true }] });
  await mesh.apply(`${yaml}\n---\n${quietTelemetry}`);
  const [silentPath, other, laterPath] = [newPath(), newPath(), newPath()];
  await mesh.request('web', { port: cart, host: 'cart.shop.test', path: silentPath });
  await mesh.request('edge', { port: front, host: 'shop.test', path: other });
  expect(await waitForLine(meshLog, other)).toBe(`GET ${other} 200`);
  await mesh.apply(yaml);
  await mesh.request('web', { port: cart, host: 'cart.shop.test', path: laterPath });
  expect(await waitForLine(meshLog, laterPath)).toBe(`GET ${laterPath} 200`);
  // A later line of the same Envoy was written, so the earlier one is never written.
  expect(lines(meshLog).filter((line) => line.includes(`${silentPath} `))).toEqual([]);
});

test('only requests that match the filter of a Telemetry object are logged, by the named provider in its format', async () => {
  const { cart, yaml } = await shop();
  const rule = {
    providers: [{ name: 'second' }],
    filter: { expression: 'response.code >= 400 && request.path.startsWith("/p")' },
  };
  await mesh.apply(`${yaml}\n---\n${telemetry({ accessLogging: [rule] })}`);
  const [foundPath, missingPath] = [newPath(), `${newPath()}/missing`];
  await mesh.request('web', { port: cart, host: 'cart.shop.test', path: foundPath });
  await mesh.request('web', { port: cart, host: 'cart.shop.test', path: `${missingPath}?secret=1` });
  const entry = JSON.parse(await waitForLine(secondLog, missingPath)) as object;
  expect(entry).toEqual({ path: missingPath, code: 404, to: `outbound|${cart}||cart.shop.test` });
  expect(lines(secondLog).filter((line) => line.includes(`"${foundPath}"`))).toEqual([]);
  expect(lines(meshLog).filter((line) => line.includes(foundPath) || line.includes(missingPath))).toEqual([]);
});

test('access log services of all types receive the log entries', async () => {
  const service = await grpcCollector();
  const { cart, yaml } = await shop(
    `---\n${serviceEntry('collector.shop.test', { port: collector, protocol: 'GRPC', backends: [service] })}`,
  );
  const providers = ['service', 'connections', 'otel-logs'].map((name) => ({ name }));
  await mesh.apply(`${yaml}\n---\n${telemetry({ accessLogging: [{ providers }] })}`);
  const path = newPath();
  await mesh.request('web', { port: cart, host: 'cart.shop.test', path });
  const [als, otel] = [
    '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs',
    '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
  ];
  const hasReceived = (method: string, text: string) =>
    eventually(`${method} hears ${text}`, () =>
      service.calls.some((call) => call.method === method && call.text.includes(text)),
    );
  await hasReceived(als, path);
  await hasReceived(als, 'mine');
  await hasReceived(als, 'tcp_envoy_accesslog');
  await hasReceived(otel, path);
  await service.close();
});

test('spans are reported to the named tracer with the tags of the mesh and of the Telemetry object', async () => {
  const zipkin = await mesh.http('zipkin', { respond: (_, response) => void response.writeHead(202).end() });
  const { cart, yaml } = await shop(
    `---\n${serviceEntry('collector.shop.test', { port: collector, backends: [zipkin] })}`,
  );
  const rule = {
    providers: [{ name: 'spans' }],
    randomSamplingPercentage: 100,
    customTags: {
      flavour: { header: { name: 'x-flavour', defaultValue: 'plain' } },
      place: { literal: { value: 'here' } },
    },
  };
  await mesh.apply(`${yaml}\n---\n${telemetry({ tracing: [rule] })}`);
  const path = newPath();
  await mesh.request('web', { port: cart, host: 'cart.shop.test', path, headers: { 'x-flavour': 'sweet' } });
  const span = await eventually('the span of the request is reported', () =>
    zipkin.seen
      .filter(({ url }) => url === '/api/v2/spans')
      .flatMap(({ body }) => JSON.parse(body) as Span[])
      .find(({ tags }) => tags?.['http.url']?.endsWith(path)),
  );
  expect(span.tags).toMatchObject({
    flavour: 'sweet',
    place: 'here',
    'istio.namespace': 'shop',
    'istio.canonical_revision': 'latest',
    'upstream_cluster.name': `outbound|${cart}||cart.shop.test;`,
  });
});

/** Names of the tracers in Envoy's active listeners, without draining ones. */
async function tracersInForce(proxy: string): Promise<string[]> {
  const dump = JSON.parse(await mesh.envoy(proxy).admin('/config_dump?resource=dynamic_listeners')) as {
    configs: { active_state?: object }[];
  };
  const text = JSON.stringify(dump.configs.map(({ active_state }) => active_state));
  return [...new Set(text.match(/envoy\.tracers\.\w+/g))];
}

interface GrpcCall {
  readonly method: string;
  /** Data received so far. */
  text: string;
}

/** A collector that receives streams and never responds. */
async function grpcCollector() {
  const calls: GrpcCall[] = [];
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    const call: GrpcCall = { method: String(headers[':path']), text: '' };
    calls.push(call);
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => {
      call.text += chunk.toString();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async (): Promise<void> => {
    for (const session of sessions) session.destroy();
    server.close();
  };
  return { calls, close, address: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

interface Span {
  readonly tags?: Readonly<Record<string, string>>;
}

test('Envoy accepts every tracer, and is sent none if the collector is unreachable', async () => {
  const service = await mesh.http('collector', { http2: true });
  const { cart, yaml } = await shop(
    `---\n${serviceEntry('collector.shop.test', { port: collector, protocol: 'GRPC', backends: [service] })}`,
  );
  for (const [name, expected] of [
    ['otel-grpc', 'envoy.tracers.opentelemetry'],
    ['dog', 'envoy.tracers.datadog'],
    ['sky', 'envoy.tracers.skywalking'],
    ['nowhere', ''],
  ] as const) {
    await mesh.apply(
      `${yaml}\n---\n${telemetry({ tracing: [{ providers: [{ name }], randomSamplingPercentage: 100 }] })}`,
    );
    expect((await mesh.request('web', { port: cart, host: 'cart.shop.test', path: newPath() })).status).toBe(200);
    expect(await tracersInForce('web')).toEqual(name === 'nowhere' ? [] : [expected]);
  }
});

test('spans are sent to an OpenTelemetry collector over HTTP', async () => {
  const otel = await mesh.http('otel');
  const { cart, yaml } = await shop(
    `---\n${serviceEntry('collector.shop.test', { port: collector, backends: [otel] })}`,
  );
  await mesh.apply(
    `${yaml}\n---\n${telemetry({ tracing: [{ providers: [{ name: 'otel' }], randomSamplingPercentage: 100 }] })}`,
  );
  await mesh.request('web', { port: cart, host: 'cart.shop.test', path: newPath() });
  const report = await eventually('a report has come', () => otel.seen.find(({ url }) => url === '/v1/traces'));
  expect(report.headers['content-type']).toBe('application/x-protobuf');
  // The workload's service name in traces.
  expect(report.body).toContain('web.shop');
});
