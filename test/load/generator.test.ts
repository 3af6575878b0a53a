import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { generateLoad } from './generator.ts';
import { type ClientKind, type ClientPlan, clientKinds } from './plan.ts';

type Request = http.IncomingMessage | http2.Http2ServerRequest;
type Response = http.ServerResponse | http2.Http2ServerResponse;
type Break = (response: Response) => void;

type HttpKind = Exclude<ClientKind, 'tcp'>;
const httpKinds = clientKinds.filter((kind): kind is HttpKind => kind !== 'tcp');

/** Plans of each kind with the same behaviour but without pauses. */
const quickPlans: Record<HttpKind, ClientPlan> = {
  ka: { kind: 'ka', count: 2 },
  slow: { kind: 'slow', count: 2, pauseMs: 10 },
  new: { kind: 'new', count: 2 },
  h2: { kind: 'h2', count: 1, streams: 2 },
  stream: { kind: 'stream', count: 2, path: '/stream' },
};

/** Responds successfully except for the fifth request, which `breakOne` handles. */
async function startServer(kind: HttpKind, breakOne: Break = respondOk): Promise<number> {
  let requests = 0;
  const handler = (_: Request, response: Response): void => {
    if (++requests === 5) breakOne(response);
    else respondOk(response);
  };
  return listen(kind === 'h2' ? http2.createServer(handler) : http.createServer(handler));
}

async function listen(server: Server | http.Server | http2.Http2Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function respondOk(response: Response): void {
  response.setHeader('x-version', 'v1');
  (response as http.ServerResponse).write('first chunk\n');
  setTimeout(() => response.end('end\n'), 5);
}

function respond503(response: Response): void {
  response.statusCode = 503;
  response.end('no healthy upstream');
}

function resetMidBody(response: Response): void {
  if ('stream' in response) {
    response.write('first');
    setTimeout(() => response.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR), 20);
    return;
  }
  response.write('first');
  setTimeout(() => response.socket?.resetAndDestroy(), 20);
}

function endTooEarly(response: Response): void {
  if ('stream' in response) response.stream.close(http2.constants.NGHTTP2_NO_ERROR);
  else response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nfirst');
}

function run(kind: HttpKind, port: number, maxRequests = 12) {
  return generateLoad({
    target: { host: '127.0.0.1', port, authority: 'sample.localhost' },
    clients: [quickPlans[kind]],
    maxDurationMs: 5_000,
    maxRequests,
  }).finished;
}

describe.each(httpKinds)('%s clients', (kind) => {
  test('report no failure for a healthy server', async () => {
    const report = await run(kind, await startServer(kind));
    expect(report).toMatchObject({ total: 12, failed: 0, versions: { v1: 12 } });
    expect(report.kinds[kind]!.latencyMs.p50).toBeGreaterThan(1);
    expect(report.timeline.reduce((sum, slice) => sum + slice.total, 0)).toBe(12);
  });

  test('report exactly one failure for one response with status 503', async () => {
    const report = await run(kind, await startServer(kind, respond503));
    expect(report).toMatchObject({ total: 12, failed: 1 });
    expect(report.kinds[kind]!.failures).toMatchObject([
      { kind, code: 'HTTP_503', phase: 'response', message: 'no healthy upstream' },
    ]);
  });

  test('report exactly one failure for one response that is reset in the middle of its body', async () => {
    const report = await run(kind, await startServer(kind, resetMidBody));
    expect(report).toMatchObject({ total: 12, failed: 1 });
    expect(report.kinds[kind]!.failures).toMatchObject([{ kind, phase: 'body', bytes: 5 }]);
    expect(report.kinds[kind]!.failures[0]!.code).toBe(kind === 'h2' ? 'ERR_HTTP2_STREAM_ERROR' : 'ECONNRESET');
  });

  test('report exactly one failure for one response that ends before it is complete', async () => {
    const report = await run(kind, await startServer(kind, endTooEarly));
    expect(report).toMatchObject({ total: 12, failed: 1 });
  });

  test('report exactly one failure for a refused connection', async () => {
    const server = createServer();
    const port = await listen(server);
    server.close();
    await once(server, 'close');
    const report = await run(kind, port, 1);
    expect(report).toMatchObject({ total: 1, failed: 1, versions: {} });
    expect(report.kinds[kind]!.failures).toMatchObject([{ code: 'ECONNREFUSED', phase: 'connect', bytes: 0 }]);
  });
});

test('new clients open a connection for each request, while each keep-alive client opens a single one', async () => {
  const newReport = await run('new', await startServer('new'));
  const keepAliveReport = await run('ka', await startServer('ka'));
  expect(newReport.kinds.new!.connections).toBe(12);
  expect(keepAliveReport.kinds.ka!.connections).toBe(2);
});

test('requests in flight on a session that receives GOAWAY complete, and later requests open a new session', async () => {
  const everyStream = 2 ** 31 - 1;
  const server = http2.createServer((_, response) => {
    // Drain notice as Envoy sends it: streams up to the highest number are still served.
    response.stream.session?.goaway(http2.constants.NGHTTP2_NO_ERROR, everyStream);
    setTimeout(() => respondOk(response), 20);
  });
  const report = await run('h2', await listen(server), 10);
  expect(report).toMatchObject({ total: 10, failed: 0 });
  expect(report.kinds.h2!.connections).toBeGreaterThanOrEqual(5);
});

test('a body without its expected end counts as truncated even if its framing is complete', async () => {
  const server = http.createServer((_, response) => response.end('first chunk\n'));
  const report = await run('stream', await listen(server), 1);
  expect(report.kinds.stream!.failures).toMatchObject([{ code: 'TRUNCATED', phase: 'body', bytes: 12 }]);
});

test('an idle connection that the server closes causes no failed request', async () => {
  const server = createServer((socket) => {
    socket.on('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nend\n');
      setTimeout(() => socket.end(), 10);
    });
  });
  const load = generateLoad({
    target: { host: '127.0.0.1', port: await listen(server), authority: 'sample.localhost' },
    // Both ends are in this process: after a 50 ms event loop iteration the client would continue before receiving the end.
    clients: [{ kind: 'slow', count: 1, pauseMs: 500 }],
    maxDurationMs: 30_000,
    maxRequests: 3,
  });
  const report = await load.finished;
  expect(report).toMatchObject({ total: 3, failed: 0 });
  expect(report.kinds.slow!.connections).toBe(3);
});

test('a stopped client completes requests in flight and starts no new ones', async () => {
  let requestCount = 0;
  const server = http.createServer((_, response) => {
    requestCount++;
    setTimeout(() => respondOk(response), 100);
  });
  const load = generateLoad({
    target: { host: '127.0.0.1', port: await listen(server), authority: 'sample.localhost' },
    clients: [quickPlans.ka],
    maxDurationMs: 5_000,
  });
  await once(server, 'request');
  const report = await load.stop();
  expect(report).toMatchObject({ total: requestCount, failed: 0 });
});

test('a request that is still in flight when the drain time ends counts as failed', async () => {
  const server = http.createServer(() => {});
  const load = generateLoad({
    target: { host: '127.0.0.1', port: await listen(server), authority: 'sample.localhost' },
    clients: [{ kind: 'ka', count: 1 }],
    maxDurationMs: 50,
    drainTimeoutMs: 50,
  });
  const report = await load.finished;
  expect(report.kinds.ka!.failures).toMatchObject([{ code: 'DRAIN_TIMEOUT', phase: 'response' }]);
});

test('a response that takes longer than allowed counts as failed', async () => {
  const server = http.createServer(() => {});
  const load = generateLoad({
    target: { host: '127.0.0.1', port: await listen(server), authority: 'sample.localhost' },
    clients: [{ kind: 'ka', count: 1 }],
    maxDurationMs: 5_000,
    maxRequests: 1,
    requestTimeoutMs: 50,
  });
  expect((await load.finished).kinds.ka!.failures).toMatchObject([{ code: 'REQUEST_TIMEOUT' }]);
});
