import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { http2Client } from './http2-client.ts';

/**
 * HTTP/2 server in a worker thread, so that it runs while the client's thread is blocked. It posts `waits` for a request to `/wait`. On `goaway` it
 * sends GOAWAY, and sets the shared flag while the frame is in transit. On `answer` it responds.
 */
const server = `
  const { createServer, constants } = require('node:http2');
  const { parentPort, workerData } = require('node:worker_threads');
  const everyStream = 2 ** 31 - 1;
  createServer((request, response) => {
    if (request.url === '/refuse') return response.stream.close(constants.NGHTTP2_REFUSED_STREAM);
    if (request.url !== '/wait') return response.end('end');
    parentPort.on('message', (order) => {
      if (order === 'answer') return response.end('end');
      response.stream.session.goaway(0, everyStream);
      // The frame is written before a timer is looked at again.
      setTimeout(() => {
        Atomics.store(workerData, 0, 1);
        Atomics.notify(workerData, 0);
      }, 20);
    });
    parentPort.postMessage('waits');
  }).listen(0, '127.0.0.1', function () { parentPort.postMessage(this.address().port); });
`;

async function startClient() {
  const goawayFlag = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(server, { eval: true, workerData: goawayFlag });
  onTestFinished(() => void worker.terminate());
  const [port] = (await once(worker, 'message')) as [number];
  const sessionCounts = { connections: 0, overtaken: 0 };
  const client = http2Client({
    host: '127.0.0.1',
    port,
    authority: 'sample.localhost',
    ca: undefined,
    onConnected: () => sessionCounts.connections++,
    onOvertaken: () => sessionCounts.overtaken++,
  });
  onTestFinished(() => client.close());
  const expectation = { timeoutMs: 5_000, bodyEndsWith: 'end', drainDeadline: new AbortController().signal };
  return {
    seen: sessionCounts,
    worker,
    saidGoaway: goawayFlag,
    send: (path: string) => client.send(path, expectation),
  };
}

test('a request that is not sent before GOAWAY is sent on a new session', async () => {
  const { seen, worker, saidGoaway, send } = await startClient();
  const arrival = once(worker, 'message');
  const inFlight = send('/wait');
  await arrival;
  // Node polls sockets after its timers, and writes frames after both.
  await sleep(10);
  const overtaken = send('/');
  worker.postMessage('goaway');
  expect(Atomics.wait(saidGoaway, 0, 0, 20_000)).not.toBe('timed-out');
  expect(await overtaken).toMatchObject({ ok: true });
  worker.postMessage('answer');
  expect(await inFlight).toMatchObject({ ok: true });
  expect(seen).toEqual({ connections: 2, overtaken: 1 });
});

test('a stream that the server refuses counts as a failure', async () => {
  const { seen, send } = await startClient();
  expect(await send('/refuse')).toMatchObject({
    ok: false,
    code: 'ERR_HTTP2_STREAM_ERROR',
    message: expect.stringContaining('REFUSED_STREAM'),
  });
  expect(seen).toEqual({ connections: 1, overtaken: 0 });
});
