import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { formatTraceLine, type TraceBody, type TraceRecord } from '../../runtime/trace/trace.ts';
import { RecordedRun } from '../trace/record-list.ts';
import { collectorAddress, exportOtlp } from './otlp-command.ts';
import { spansOf } from './run-spans.ts';
import { sendOtlp } from './send-otlp.ts';
import type { OtlpSpan } from './span.ts';

const stored = join(import.meta.dirname, '../../../test/fixtures/traces-of-versions');
type TimedBody = TraceBody & { readonly t: number };

function runOf(bodies: readonly TimedBody[], isForeign = false) {
  const records = bodies.map((body, i) => ({ seq: i + 1, ...body }) as TraceRecord);
  return new RecordedRun(headerWith({ program: 'pilot-agent', ...(isForeign && { foreign: isForeign }) }), records);
}
const event = (
  t: number,
  from: string,
  to: string,
  type: string,
  extraFields: object = {},
  cause?: number,
): TimedBody => ({
  kind: 'event',
  from,
  to,
  event: { type, ...extraFields },
  t,
  ...(cause !== undefined && { cause }),
});
const spawn = (t: number, actor: string, cause?: number): TimedBody => ({
  kind: 'spawn',
  actor,
  t,
  ...(actor.includes('/') && { parent: actor.split('/')[0]! }),
  ...(cause !== undefined && { cause }),
});
const stop = (t: number, actor: string, error?: string): TimedBody => ({
  kind: 'stop',
  actor,
  status: error === undefined ? 'done' : 'error',
  t,
  ...(error !== undefined && { error }),
});
const summarize = (spans: readonly OtlpSpan[]): unknown[] =>
  spans.map(({ name, from, to, error }) => [name, from, to, ...(error === undefined ? [] : [error])]);

/** A certificate changed at 100, epoch 1 is live at 190, and epoch 0 has exited at 400. */
const restart: readonly TimedBody[] = [
  event(100, 'outside', 'supervisor', 'signal.received', { signal: 'SIGHUP' }),
  spawn(110, 'epoch-1', 1),
  spawn(111, 'epoch-1/prepare', 2),
  event(
    112,
    'supervisor',
    'agent',
    'restart.decided',
    { name: 'epoch-1', epoch: 1, how: 'hot restart', reason: 'SIGHUP', attempt: 1 },
    1,
  ),
  event(113, 'supervisor', 'status', 'handover.began', { name: 'epoch-1' }, 1),
  stop(130, 'epoch-1/prepare'),
  spawn(131, 'epoch-1/process', 6),
  event(140, 'epoch-1/process', 'epoch-1', 'process.spawned', { pid: 77 }),
  event(190, 'epoch-1', 'supervisor', 'epoch.live', { name: 'epoch-1' }),
  event(191, 'supervisor', 'epoch-0', 'epoch.supersede', {}, 9),
  event(192, 'supervisor', 'status', 'serving.began', { name: 'epoch-1' }, 9),
  event(400, 'epoch-0', 'supervisor', 'epoch.exited', { name: 'epoch-0' }),
];

describe('the export of a restart', () => {
  test('has a span for each phase, from its cause to the end of the old epoch', () => {
    expect(summarize(spansOf(runOf(restart)))).toEqual([
      ['hot restart', 100, 400],
      ['validate', 111, 130],
      ['hand-over', 113, 192],
      ['start', 131, 140],
      ['initialise', 140, 190],
      ['drain', 191, 400],
    ]);
  });

  test('marks a failed restart and its failed phase as errors', () => {
    const failedEvent = event(150, 'epoch-1', 'supervisor', 'epoch.failed', {
      name: 'epoch-1',
      during: 'initializing',
      reason: 'exit code 1',
    });
    const spans = spansOf(runOf([...restart.slice(0, 8), failedEvent]));
    expect(spans[0]).toMatchObject({ name: 'hot restart', error: 'initializing: exit code 1', to: 150 });
    expect(spans.find(({ name }) => name === 'initialise')).toMatchObject({
      from: 140,
      to: 150,
      error: 'initializing: exit code 1',
    });
  });

  test('marks a running restart as unfinished', () => {
    const spans = spansOf(runOf(restart.slice(0, 9)));
    expect(spans.find(({ name }) => name === 'hand-over')?.attributes).toEqual({ 'chartpilot.unfinished': true });
    expect(spans[0]?.attributes).toMatchObject({ 'chartpilot.unfinished': true, 'chartpilot.epoch.name': 'epoch-1' });
  });
});

test('the export of a push has spans for waiting, building, and each group of proxies', () => {
  const spans = spansOf(
    runOf([
      event(10, 'config-controller', 'push', 'push.request'),
      event(15, 'service-registry', 'push', 'push.request'),
      spawn(110, 'push/context'),
      stop(120, 'push/context'),
      event(120, 'push', 'push-queue', 'clients.push', { version: '7', forced: false, configs: ['a', 'b'] }),
      event(121, 'push-queue', 'discovery/ads-server', 'proxies.serve', { connections: [1, 2], version: '7' }),
      event(122, 'push-queue', 'discovery/ads-server', 'proxies.serve', { connections: [3], version: '7' }),
      event(130, 'discovery/ads-server', 'push-queue', 'proxies.served', { connections: [1] }),
      event(150, 'discovery/ads-server', 'push-queue', 'proxies.served', { connections: [2, 3] }),
    ]),
  );
  expect(summarize(spans)).toEqual([
    ['push', 10, 150],
    ['debounce', 10, 110],
    ['build', 110, 120],
    ['serve proxies', 121, 150],
    ['serve proxies', 122, 150],
  ]);
  expect(spans[0]?.attributes).toMatchObject({
    'chartpilot.push.version': '7',
    'chartpilot.push.configs': 2,
    'chartpilot.push.proxies': 3,
  });
});

test('the export of a foreign program has a trace for each root actor, with a span for each state', () => {
  const to = (t: number, actor: string, state: string): TimedBody => ({
    kind: 'transition',
    actor,
    from: '',
    to: state,
    on: 'x',
    t,
  });
  const spans = spansOf(
    runOf([spawn(0, 'lock'), to(1, 'lock', 'locked'), to(5, 'lock', 'open'), stop(9, 'lock', 'broke')], true),
  );
  expect(summarize(spans)).toEqual([
    ['locked', 1, 5],
    ['open', 5, 9],
    ['lock', 0, 9, 'broke'],
  ]);
});

test('the export writes a recorded trace as a file with the IDs, parents and times of OTLP', async () => {
  const { path, output } = exporter();
  await exportOtlp(join(stored, 'version-2.trace'), path, output);
  const spans = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      const [{ resource, scopeSpans }] = JSON.parse(line).resourceSpans;
      expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'pilot-agent' } });
      return scopeSpans[0].spans;
    });
  expect(spans.map(({ name }) => name)).toEqual([
    ...['cold start', 'validate', 'start', 'initialise'],
    ...['hot restart', 'validate', 'hand-over', 'start', 'initialise', 'drain'],
  ]);
  const ids = new Set(spans.map(({ spanId }) => spanId));
  expect(ids.size).toBe(spans.length);
  for (const span of spans) {
    expect(span.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(span.spanId).toMatch(/^[0-9a-f]{16}$/);
    expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).toBe(true);
    if (span.parentSpanId !== undefined)
      expect(spans.find(({ spanId }) => spanId === span.parentSpanId).traceId).toBe(span.traceId);
  }
  const drain = spans.at(-1);
  expect(BigInt(drain.endTimeUnixNano) - BigInt(drain.startTimeUnixNano)).toBe(60_000_000_000n);
  const previousContent = readFileSync(path, 'utf8');
  await exportOtlp(join(stored, 'version-2.trace'), path, output);
  expect(readFileSync(path, 'utf8')).toBe(previousContent);
});

describe('the client of an OTLP receiver', () => {
  test('sends spans by OTLP over HTTP in JSON, with the headers of the environment', async () => {
    const requests: { url: string | undefined; headers: IncomingMessage['headers']; body: string }[] = [];
    const url = await receiver(async (request, response) => {
      requests.push({ url: request.url, headers: request.headers, body: await text(request) });
      response.end('{}');
    });
    const { output, said } = exporter();
    await exportOtlp(join(stored, 'version-2.trace'), url, output, { headers: 'x-key=a%20b,other=1' });
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({
      url: '/v1/traces',
      headers: { 'content-type': 'application/json', 'x-key': 'a b', other: '1' },
    });
    expect(JSON.parse(requests[0]!.body).resourceSpans[0].scopeSpans[0].spans).toHaveLength(10);
    expect(said()).toContain('otlp: 2 traces, 10 spans');
  });

  test('retries a request to an overloaded receiver', async () => {
    let requestCount = 0;
    const url = await receiver((_, response) => {
      response.statusCode = ++requestCount < 3 ? 503 : 200;
      response.end();
    });
    expect(await sendOtlp(new URL(url), {}, { pauseMs: 1 })).toBeUndefined();
    expect(requestCount).toBe(3);
  });

  test('reports a receiver that accepts only some of the spans', async () => {
    const url = await receiver(
      (_, response) => void response.end('{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}'),
    );
    expect(await sendOtlp(new URL(url), {})).toBe('the collector rejected 3 spans: too old');
  });

  test.each<[string, (request: IncomingMessage, response: ServerResponse) => void, RegExp]>([
    ['hangs', () => {}, /no response within 200 ms \(3 attempts\)/],
    [
      'hangs in the middle of its response',
      (_, response) => void response.write('{'),
      /no response within 200 ms|aborted|terminated/,
    ],
    [
      'sends control characters',
      (_, response) => void response.writeHead(500).end('\u001b[2Jbro\u0007ken'),
      /status 500: \\x1b\[2Jbro\\x07ken/,
    ],
    ['fails', (_, response) => void response.writeHead(500).end('broken'), /status 500: broken/],
    [
      'redirects',
      (_, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
      /status 307/,
    ],
    ['closes the connection', (request) => void request.socket.destroy(), /\(3 attempts\)/],
  ])('reports within its limits a receiver that %s', async (_, behave, expectedError) => {
    const url = await receiver(behave);
    await expect(sendOtlp(new URL(url), {}, { timeoutMs: 200, pauseMs: 1 })).rejects.toThrow(expectedError);
  });

  test('reads at most 64 KiB of an endless response', async () => {
    let sentChars = 0;
    const url = await receiver((_, response) => {
      const block = 'x'.repeat(16 * 1024);
      const writeUntilFull = (): void => {
        while (!response.destroyed && response.write(block)) sentChars += block.length;
      };
      response.on('drain', writeUntilFull);
      writeUntilFull();
    });
    expect(await sendOtlp(new URL(url), {}, { timeoutMs: 5_000, pauseMs: 1 })).toBeUndefined();
    expect(sentChars).toBeLessThan(16 * 1024 * 1024);
  });

  test('sends user name and password in the address as a header', async () => {
    let authorization: string | undefined;
    const url = await receiver((request, response) => {
      ({ authorization } = request.headers);
      response.end();
    });
    await sendOtlp(new URL(url.replace('//', '//user:k%20ey@')), {});
    expect(authorization).toBe(`Basic ${Buffer.from('user:k ey').toString('base64')}`);
  });

  test('omits a key in the address from reported errors', async () => {
    const error = await sendOtlp(new URL('http://user:key@127.0.0.1:1/v1/traces?token=abc'), {}, { pauseMs: 1 }).catch(
      (reason: Error) => reason,
    );
    expect(String(error)).not.toMatch(/key@|abc/);
  });
});

test('chartpilot trace --otlp reports that there are no spans to send for a trace without restarts and pushes', async () => {
  const { path, output, said } = exporter();
  const source = `${path}.trace`;
  writeFileSync(source, formatTraceLine(headerWith()));
  await exportOtlp(source, 'http://127.0.0.1:1', output);
  expect(said()).toContain('0 traces, 0 spans');
});

function exporter() {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-otlp-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const texts: string[] = [];
  const print = (message: string): void => void texts.push(message);
  return { path: join(folder, 'spans.jsonl'), output: { out: print, error: print }, said: () => texts.join('') };
}

async function receiver(behave: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(behave);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([
  ['127.0.0.1:4318', 'http://127.0.0.1:4318'],
  ['localhost:4318/v1/traces', 'http://localhost:4318/v1/traces'],
  ['[::1]:4318', 'http://[::1]:4318'],
  ['ftp://collector:4318', 'http://collector:4318'],
])(
  'chartpilot trace --otlp rejects %s, because the scheme of the address is missing or unsupported',
  (to, suggestedAddress) => {
    expect(() => collectorAddress(to)).toThrow(ChartpilotError);
    expect(refusalOf(() => collectorAddress(to)).hint).toContain(suggestedAddress);
  },
);

test.each(['spans.jsonl', './127.0.0.1:4318', 'C/spans', 'spans'])(
  'chartpilot trace --otlp reads %s as a file name',
  (to) => {
    expect(collectorAddress(to)).toBeUndefined();
  },
);

function refusalOf(run: () => unknown): ChartpilotError {
  try {
    run();
  } catch (error) {
    return error as ChartpilotError;
  }
  throw new Error('it was taken');
}
