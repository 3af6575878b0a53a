import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { http2Client } from './http2-client.ts';

/** In a thread of its own, so that it goes on while the client's thread is busy. Each path does what it says. */
const server = `
  const { createServer, constants } = require('node:http2');
  const { parentPort } = require('node:worker_threads');
  const everyStream = 2 ** 31 - 1;
  createServer((request, response) => {
    if (request.url === '/refuse') return response.stream.close(constants.NGHTTP2_REFUSED_STREAM);
    if (request.url !== '/goaway-soon') return response.end('end');
    setTimeout(() => response.stream.session.goaway(0, everyStream), 30);
    setTimeout(() => response.end('end'), 300);
  }).listen(0, '127.0.0.1', function () { parentPort.postMessage(this.address().port); });
`;

async function startClient() {
  const worker = new Worker(server, { eval: true });
  onTestFinished(() => void worker.terminate());
  const [port] = (await once(worker, 'message')) as [number];
  const seen = { connections: 0, overtaken: 0 };
  const client = http2Client({
    host: '127.0.0.1',
    port,
    authority: 'sample.localhost',
    ca: undefined,
    onConnected: () => seen.connections++,
    onOvertaken: () => seen.overtaken++,
  });
  onTestFinished(() => client.close());
  const expectation = { timeoutMs: 5_000, bodyEndsWith: 'end', drainDeadline: new AbortController().signal };
  return { seen, send: (path: string) => client.send(path, expectation) };
}

function blockThread(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}

test('a request that a GOAWAY overtakes before it is sent goes out on a new session', async () => {
  const { seen, send } = await startClient();
  const inFlight = send('/goaway-soon');
  await sleep(10);
  const overtaken = send('/');
  // The request's frame is written when this thread next comes round to it; the GOAWAY is there first.
  blockThread(100);
  expect(await overtaken).toMatchObject({ ok: true });
  expect(await inFlight).toMatchObject({ ok: true });
  expect(seen).toEqual({ connections: 2, overtaken: 1 });
});

test('a stream that the server refuses is a failure', async () => {
  const { seen, send } = await startClient();
  expect(await send('/refuse')).toMatchObject({
    ok: false,
    code: 'ERR_HTTP2_STREAM_ERROR',
    message: expect.stringContaining('REFUSED_STREAM'),
  });
  expect(seen).toEqual({ connections: 1, overtaken: 0 });
});
