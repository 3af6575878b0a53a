import { once } from 'node:events';
import { get, type IncomingHttpHeaders, IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcp, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../test/fixtures/real-envoy.ts';
import { servedHttp } from '../../../test/fixtures/served-http.ts';
import { switchingProtocols } from '../../../test/fixtures/switching-protocols.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { msWithoutQueueing } from '../../../test/harness/without-queueing.ts';
import { createFencedServer } from '../../runtime/fences/http-fence.ts';
import { createLogger } from '../../runtime/output/log.ts';
import { AgentMetrics } from './agent-metrics.ts';
import { validLines } from './exposition-lines.ts';
import { MergedMetrics, type MetricsTarget } from './merged-metrics.ts';

const openMetrics = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

const respondWith =
  (body: string, type?: string): RequestListener =>
  (_, response) =>
    void response.writeHead(200, type === undefined ? {} : { 'content-type': type }).end(body);

interface MetricsResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Merged metrics of an agent with these responses of Envoy and application. */
async function merging(sources: {
  envoy?: RequestListener;
  applications?: readonly RequestListener[];
  targets?: readonly MetricsTarget[];
}) {
  const { envoy = respondWith('envoy_up 1\n'), applications = [], targets = [] } = sources;
  const log: string[] = [];
  const adminPort = await servedHttp(envoy);
  const ports = await Promise.all(applications.map(servedHttp));
  const metrics = new AgentMetrics();
  const mergedMetrics = new MergedMetrics({
    metrics,
    localhost: '127.0.0.1',
    adminPort: () => adminPort,
    targets: [...targets, ...ports.map((port) => ({ port, path: '/metrics' }))],
    log: createLogger({ write: (line) => log.push(line.trimEnd()) }),
  });
  const server = createFencedServer((request, response) => mergedMetrics.serve(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const scrapeOnce = async (
    headers: Record<string, string> = {},
    localAddress = '127.0.0.1',
  ): Promise<MetricsResponse> => {
    const outgoing = get({ host: '127.0.0.1', port, path: '/metrics', headers, localAddress, agent: false });
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
  };
  /**
   * Sends a request without reading the response.
   *
   * @returns function that disconnects
   */
  const leaveFrom = async (localAddress: string): Promise<() => void> => {
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    await once(socket, 'connect');
    socket.write('GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n');
    return () => void socket.destroy();
  };
  /** The part of the response after the agent's metrics. */
  const otherMetrics = async (headers: Record<string, string> = {}): Promise<string> => {
    const text = String((await scrapeOnce(headers)).body);
    const end = text.indexOf('envoy_up');
    return text.slice(end < 0 ? text.indexOf('application_') : end);
  };
  const failures = async (sourceType: string): Promise<number> =>
    Number(new RegExp(`failures_total{type="${sourceType}"} (\\d+)`).exec(await metrics.text())?.[1]);
  const droppedLines = async (): Promise<number> => Number(/dropped_lines_total (\d+)/.exec(await metrics.text())?.[1]);
  return { scrapeOnce, leaveFrom, otherMetrics, failures, dropped: droppedLines, log, merged: mergedMetrics };
}

test('merges agent, Envoy and application in this order, and terminates each last line (agent §6.4)', async () => {
  const { scrapeOnce } = await merging({
    envoy: respondWith('envoy_up 1'),
    applications: [respondWith('application_a 1'), respondWith('application_b 2\n', 'text/plain; version=0.0.4')],
  });
  const { headers, body } = await scrapeOnce();
  expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(String(body)).toMatch(/scrapes_total 1\n.*\nenvoy_up 1\napplication_a 1\napplication_b 2\n$/s);
});

test('responds with OpenMetrics if the application does, with a single end of body and no empty line (agent §6.4)', async () => {
  const { scrapeOnce } = await merging({
    envoy: respondWith('envoy_up 1\n\nenvoy_down 0\n'),
    applications: [
      respondWith('application_a 1\n# EOF\n', openMetrics),
      respondWith('application_b 1\n# EOF\n', openMetrics),
    ],
  });
  const { headers, body } = await scrapeOnce({ accept: openMetrics });
  expect(headers['content-type']).toBe(openMetrics);
  expect(String(body)).toMatch(/\nenvoy_up 1\nenvoy_down 0\napplication_a 1\napplication_b 1\n# EOF\n$/);
  expect(String(body)).not.toContain('\n\n');
});

test('converts text format to valid OpenMetrics if another part is OpenMetrics (agent §6.4)', async () => {
  const { otherMetrics, dropped } = await merging({
    envoy: respondWith('# TYPE envoy_up gauge\nenvoy_up{a="b"} 1\n'),
    applications: [
      respondWith('# TYPE application_a info\napplication_a_info{v="1"} 1\n# EOF\n', openMetrics),
      respondWith(
        '# made by hand\n# TYPE application_b untyped\n# TYPE application_c  gauge\r\napplication_c{ x = "y" }\t2 1500\n',
      ),
    ],
  });
  expect(await otherMetrics({ accept: openMetrics })).toBe(
    [
      'envoy_up gauge\nenvoy_up{a="b"} 1\n# TYPE application_a info\napplication_a_info{v="1"} 1\n',
      '# TYPE application_c gauge\napplication_c{x="y"} 2 1.5\n# EOF\n',
    ].join(''),
  );
  expect(await dropped()).toBe(0);
});

test('forwards scrape headers, and requests only text format from Envoy (agent §6.4)', async () => {
  const seenHeaders: IncomingHttpHeaders[] = [];
  const note: RequestListener = ({ headers }, response) => {
    seenHeaders.push(headers);
    response.end();
  };
  const { scrapeOnce } = await merging({ envoy: note, applications: [note] });
  const accept = `${openMetrics};q=0.9,application/vnd.google.protobuf;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`;
  const scrapeHeaders = {
    'user-agent': 'Prometheus/3',
    'x-prometheus-scrape-timeout-seconds': '7.5',
    authorization: 'secret',
  };
  await scrapeOnce({ accept, ...scrapeHeaders });
  seenHeaders.sort((a, b) => String(a.accept).length - String(b.accept).length);
  expect(seenHeaders.map(({ host: _, connection: __, ...otherHeaders }) => otherHeaders)).toEqual([
    {
      accept: 'text/plain;version=0.0.4;q=0.5',
      'user-agent': 'Prometheus/3',
      'x-prometheus-scrape-timeout-seconds': '7.5',
    },
    {
      accept: `${openMetrics};q=0.9,text/plain;version=0.0.4;q=0.5`,
      'user-agent': 'Prometheus/3',
      'x-prometheus-scrape-timeout-seconds': '7.5',
    },
  ]);
  seenHeaders.length = 0;
  await scrapeOnce({ accept: 'application/vnd.google.protobuf' });
  expect(seenHeaders.map(({ accept: acceptHeader }) => acceptHeader)).toEqual(['text/plain', 'text/plain']);
});

test('compresses the response with gzip if the client accepts it', async () => {
  const { scrapeOnce } = await merging({});
  const compressedResponse = await scrapeOnce({ 'accept-encoding': 'deflate, gzip;q=0.5' });
  expect(compressedResponse.headers['content-encoding']).toBe('gzip');
  expect(String(gunzipSync(compressedResponse.body))).toContain('\nenvoy_up 1\n');
  expect((await scrapeOnce({ 'accept-encoding': 'gzip;q=0' })).headers['content-encoding']).toBeUndefined();
});

test('omits and counts a part that fails, and returns the others (agent §6.4)', async () => {
  const closedPort = await freePort();
  const cases: [RequestListener, string][] = [
    [(_, response) => void response.writeHead(500).end('application_no 1\n'), 'response status 500'],
    [
      (_, response) => void response.writeHead(302, { location: `http://127.0.0.1:${closedPort}/` }).end(),
      'response status 302',
    ],
    [(_, response) => void response.writeHead(302, { location: '/metrics' }).end(), 'more than 5 redirects'],
    [respondWith('<html>', 'text/html'), 'content type must be text/plain or OpenMetrics, got text/html'],
    [
      respondWith('x', 'application/vnd.google.protobuf'),
      'content type must be text/plain or OpenMetrics, got application/vnd.google.protobuf',
    ],
    [(request) => void request.socket.destroy(), 'socket hang up'],
  ];
  for (const [application, reason] of cases) {
    const { otherMetrics, failures, log } = await merging({ applications: [application] });
    expect(await otherMetrics(), reason).toBe('envoy_up 1\n');
    expect([await failures('application'), await failures('envoy')], reason).toEqual([1, 0]);
    expect(linesOf(log, 'metrics.scrapeFailed', { part: 'application', reason }), reason).toHaveLength(1);
  }
  const metricsWithoutEnvoy = await merging({
    envoy: (request) => void request.socket.destroy(),
    applications: [respondWith('application_up 1\n')],
  });
  expect(await metricsWithoutEnvoy.otherMetrics()).toBe('application_up 1\n');
  expect([await metricsWithoutEnvoy.failures('envoy'), await metricsWithoutEnvoy.failures('application')]).toEqual([
    1, 0,
  ]);
});

test('follows a redirect of the application to another path of the same origin', async () => {
  const { otherMetrics } = await merging({
    applications: [
      (request, response) => {
        if (request.url === '/metrics') response.writeHead(307, { location: '/metrics/' }).end();
        else response.end('application_up 1\n');
      },
    ],
  });
  expect(await otherMetrics()).toBe('envoy_up 1\napplication_up 1\n');
});

test('omits and counts invalid lines, and returns valid ones', async () => {
  const { otherMetrics, dropped } = await merging({
    applications: [respondWith('application_a 1\nthis is no metric\n# TYPE a banana\napplication_b{l="ü"} 2\n')],
  });
  expect(await otherMetrics()).toBe('envoy_up 1\napplication_a 1\napplication_b{l="ü"} 2\n');
  expect(await dropped()).toBe(2);
});

/** Writes the text repeatedly until the connection closes. */
function endless(response: ServerResponse, text: string): void {
  const write = (): void => {
    if (!response.destroyed) response.write(text, () => setImmediate(write));
  };
  write();
}

test('reads at most 10 MiB from an endless application without buffering, and ends with a complete line', async () => {
  const line = `application_a{l="${'x'.repeat(200)}"} 1\n`;
  let closedCount = 0;
  const { otherMetrics, failures } = await merging({
    applications: [
      (_, response) => {
        response.on('close', () => closedCount++);
        endless(response, line.repeat(300));
      },
    ],
  });
  const text = await otherMetrics();
  expect(text.length).toBeGreaterThan(9 * 1024 * 1024);
  expect(text.length).toBeLessThan(10 * 1024 * 1024 + 1_000);
  expect(text.endsWith(line)).toBe(true);
  expect(await failures('application')).toBe(1);
  await eventually('the connection to the application is closed', () => closedCount === 1);
});

test('aborts at an endless line, and keeps earlier lines', async () => {
  const { otherMetrics, failures, log } = await merging({
    applications: [
      (_, response) => {
        response.write('application_a 1\n');
        endless(response, 'x'.repeat(10_000));
      },
    ],
  });
  expect(await otherMetrics()).toBe('envoy_up 1\napplication_a 1\n');
  expect(await failures('application')).toBe(1);
  expect(linesOf(log, 'metrics.scrapeFailed', { reason: /line exceeds 65536 bytes/ })).not.toEqual([]);
});

test("returns the other parts within the scraper's timeout if the application does not respond or finish (agent §6.4)", async () => {
  const silentMetrics = merging({ applications: [() => {}] });
  const halfway = merging({
    applications: [
      (_, response) => {
        response.write('application_a 1\napplication_b');
      },
    ],
  });
  for (const [{ otherMetrics, failures }, expected] of [
    [await silentMetrics, 'envoy_up 1\n'],
    [await halfway, 'envoy_up 1\napplication_a 1\n'],
  ] as const) {
    const spentMs = await msWithoutQueueing([process.pid], async () => {
      expect(await otherMetrics({ 'x-prometheus-scrape-timeout-seconds': '1' })).toBe(expected);
    });
    // Below the timeout after which the scraper discards all parts.
    expect(spentMs).toBeLessThan(1_000);
    expect(await failures('application')).toBe(1);
  }
});

test('limits a target that does not finish to its share of the time, and still returns later targets (agent §6.4)', async () => {
  const endsNever: RequestListener = (_, response) => {
    response.writeHead(200).write('application_a 1\n');
  };
  const { otherMetrics, failures } = await merging({
    applications: [endsNever, respondWith('application_b 1\n'), endsNever, respondWith('application_c 1\n')],
  });
  expect(await otherMetrics({ 'x-prometheus-scrape-timeout-seconds': '2' })).toBe(
    'envoy_up 1\napplication_a 1\napplication_b 1\napplication_a 1\napplication_c 1\n',
  );
  expect(await failures('application')).toBe(2);
});

test('warns once about an invalid scrape timeout, and uses the default (agent §6.4)', async () => {
  const { otherMetrics, log } = await merging({});
  for (const limit of ['soon', '-1', '0', '1e9', '']) {
    expect(await otherMetrics({ 'x-prometheus-scrape-timeout-seconds': limit }), limit).toBe('envoy_up 1\n');
  }
  expect(linesOf(log, 'metrics.timeoutInvalid')).toHaveLength(1);
});

test('accepts scrape timeouts with fractions of a millisecond (agent §6.4)', async () => {
  const { scrapeOnce } = await merging({ applications: [respondWith('application_a 1\n')] });
  for (const seconds of ['1.111', '3.001', '7.123456']) {
    const { status, body } = await scrapeOnce({ 'x-prometheus-scrape-timeout-seconds': seconds });
    expect(status, seconds).toBe(200);
    expect(String(body), seconds).toContain('application_a 1\n');
  }
  expect((await scrapeOnce({ 'x-prometheus-scrape-timeout-seconds': '0.000000001' })).status).toBe(200);
});

test('omits an application that switches protocols, and releases its slot', async () => {
  const { otherMetrics, failures } = await merging({
    targets: [{ port: await switchingProtocols(), path: '/metrics' }],
  });
  for (let count = 1; count <= 6; count++) expect(await otherMetrics(), `scrape ${count}`).toBe('envoy_up 1\n');
  expect(await failures('application')).toBe(6);
});

test('runs 4 scrapes, queues 32, and rejects further ones and more than 2 per address', async () => {
  const scrapes: ServerResponse[] = [];
  const { scrapeOnce, leaveFrom } = await merging({ envoy: (_, response) => void scrapes.push(response) });
  const leave = await leaveFrom('127.0.1.1');
  await eventually('Envoy is asked', () => scrapes.length === 1);
  const pending = Array.from({ length: 36 }, (_, i) => scrapeOnce({}, `127.0.0.${2 + Math.floor(i / 2)}`));
  const refusedScrape = await Promise.race(pending);
  expect(refusedScrape.status).toBe(503);
  expect(scrapes).toHaveLength(4);
  // This address has two scrapes already.
  expect((await scrapeOnce({}, '127.0.0.2')).status).toBe(503);
  leave();
  await eventually('the next one has its turn', () => scrapes.length === 5);
  const responder = setInterval(() => {
    for (const scrape of scrapes.splice(0)) if (!scrape.writableEnded) scrape.end('envoy_up 1\n');
  }, 5);
  onTestFinished(() => clearInterval(responder));
  const statuses = (await Promise.all(pending)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(35);
  expect((await scrapeOnce({}, '127.0.0.2')).status).toBe(200);
});

test('frees the queue slot of a client that disconnects while waiting', async () => {
  const scrapes: ServerResponse[] = [];
  const { scrapeOnce, leaveFrom } = await merging({ envoy: (_, response) => void scrapes.push(response) });
  for (let round = 0; round < 5; round++) {
    const underWay = [2, 2, 3, 3].map((last) => scrapeOnce({}, `127.0.0.${last}`));
    await eventually('four are under way', () => scrapes.length === 4);
    // No scrape waits, but this address is at its limit.
    expect((await scrapeOnce({}, '127.0.0.2')).status).toBe(503);
    const leave = await leaveFrom('127.0.0.4');
    // Requests are handled in order: this rejection implies that the previous request was received.
    await scrapeOnce({}, '127.0.0.3');
    leave();
    await sleep(50);
    for (const scrape of scrapes.splice(0)) scrape.end('envoy_up 1\n');
    expect((await Promise.all(underWay)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  }
});

test('pauses reading from the application while the client does not read', async () => {
  const line = `application_a{l="${'x'.repeat(1_000)}"} 1\n`.repeat(60);
  let isClosed = false;
  const { merged } = await merging({
    applications: [
      (_, response) => {
        response.on('close', () => {
          isClosed = true;
        });
        endless(response, line);
      },
    ],
  });
  // Without a connection, written data is never sent.
  const request = new IncomingMessage(new Socket());
  request.headers['x-prometheus-scrape-timeout-seconds'] = '1';
  const unreadResponse = new ServerResponse(request);
  await merged.serve(request, unreadResponse);
  expect(unreadResponse.writableLength).toBeGreaterThan(line.length);
  expect(unreadResponse.writableLength).toBeLessThan(256 * 1024);
  await eventually('the connection to the application is closed', () => isClosed);
});

test('returns the metrics of agent and Envoy and only valid application lines for any application response', async () => {
  let bytes = Buffer.alloc(0);
  const application = createTcp((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(bytes));
  });
  application.listen(0, '127.0.0.1');
  await once(application, 'listening');
  onTestFinished(() => void application.close());
  const { port } = application.address() as AddressInfo;
  const { scrapeOnce } = await merging({ targets: [{ port, path: '/metrics' }] });
  const fragment = fc.constantFrom(
    ...[
      'application_a 1\n',
      '\n',
      '# EOF\n',
      '# TYPE ',
      'a{b="',
      '"} ',
      '}',
      'NaN',
      ' 1\n',
      '\r\n',
      'ü',
      '\u0000',
      '5\r\n',
    ],
  );
  const head = fc.constantFrom(
    'HTTP/1.1 200 OK\r\n\r\n',
    `HTTP/1.1 200 OK\r\ncontent-type: ${openMetrics}\r\n\r\n`,
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n',
    'HTTP/1.1 302 \r\nlocation: ',
    '',
  );
  const body = fc.array(fragment, { maxLength: 30 }).map((fragments) => fragments.join(''));
  await fc.assert(
    fc.asyncProperty(head, body, async (first, followingBody) => {
      bytes = Buffer.from(`${first}${followingBody}`);
      const response = await scrapeOnce({ 'x-prometheus-scrape-timeout-seconds': '2' });
      const text = String(response.body);
      const isOpen = response.headers['content-type'] === openMetrics;
      expect(response.status).toBe(200);
      expect(text).toMatch(/scrapes_total \d+\n(.*\n)*envoy_up 1\n/);
      const [, otherMetrics = ''] = text.split('envoy_up 1\n');
      const result = validLines(Buffer.from(otherMetrics).toString('latin1'), isOpen ? 'OpenMetrics' : 'text');
      expect(result.dropped).toBe(0);
      expect(result.hasEnded).toBe(isOpen);
      expect(Buffer.from(result.text, 'latin1').toString()).toBe(otherMetrics.replace(/# EOF\n$/, ''));
    }),
    { numRuns: 150 },
  );
});
