import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { servedHttp } from '../../../test/fixtures/served-http.ts';
import { event, header, traceText } from '../../../test/fixtures/traces.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { DebuggerAccess } from '../../runtime/trace/debugger-access.ts';
import { TraceEndpoint } from '../../runtime/trace/trace-endpoint.ts';
import { TraceRing } from '../../runtime/trace/trace-ring.ts';
import { liveSource } from './live-source.ts';

let runDir: string;
let program: LiveProgram | undefined;

beforeEach(() => {
  runDir = mkdtempSync(join(tmpdir(), 'chartpilot-live-'));
});
afterEach(async () => {
  await program?.end();
  program = undefined;
  rmSync(runDir, { recursive: true });
});

describe('liveSource', () => {
  test("reads a program's trace from the beginning of its ring buffer to its end", async () => {
    const { ring, source } = await start();
    ring.write(event(1));
    const trace = await source.read({ follow: true });
    const wholeText = text(trace);
    ring.write(event(2));
    ring.write(event(3));
    await program!.end();
    expect(await wholeText).toBe(traceText(3));
  });

  test('closes the connection after the header', async () => {
    const { source } = await start();
    for (let time = 0; time < 10; time++) expect(await source.header()).toEqual(header);
  });

  test('reads up to the current record on request', async () => {
    const { ring, source } = await start();
    ring.write(event(1));
    expect(await text(await source.read({ follow: false }))).toBe(traceText(1));
  });

  test('reports a killed program with an error instead of the end of its trace', async () => {
    const { ring, source } = await start();
    ring.write(event(1));
    const trace: Readable = await source.read({ follow: true });
    await once(trace, 'data');
    trace.resume();
    const abortError = once(trace, 'error').catch((error: unknown) => error);
    program!.kill();
    expect(String(await abortError)).toMatch(/aborted/);
  });

  test('reports a reset connection with an error, while other connections continue', async () => {
    const { ring, source } = await start();
    ring.write(event(1));
    const trace: Readable = await source.read({ follow: true });
    await once(trace, 'data');
    const abortError = once(trace, 'error').catch((error: unknown) => error);
    program!.reset();
    trace.resume();
    expect(String(await abortError)).toMatch(/aborted|ECONNRESET/);
  });

  test('finds the new token after each start of the program', async () => {
    const first = await start();
    const { port } = program!;
    await program!.end();
    await expect(first.source.header()).rejects.toThrow(/ECONNREFUSED/);
    await start({ port });
    expect(await first.source.header()).toEqual(header);
  });
});

describe('error message of liveSource', () => {
  test('explains what to do if the program is not running', async () => {
    const { source } = await start();
    await program!.end();
    await expect(source.header()).rejects.toMatchObject({
      code: 'REQUEST_FAILED',
      hint: expect.stringContaining('check that the program runs'),
    });
  });

  test('explains what to do if the token is invalid', async () => {
    const { address } = await start();
    const source = liveSource(address, { token: 'wrong', runDir });
    await expect(source.read({ follow: true })).rejects.toMatchObject({
      message: expect.stringContaining('responded with status 401'),
      hint: expect.stringContaining('rejects this token'),
    });
  });

  test('explains what to do if the current user cannot read the token', async () => {
    const { address } = await start();
    const source = liveSource(address, { runDir: join(runDir, 'nothing') });
    await expect(source.header()).rejects.toMatchObject({ hint: expect.stringContaining('use --token') });
  });

  test('explains what to do if another server responds', async () => {
    const port = await servedHttp((_, response) => response.end('<html>\n'));
    await expect(liveSource({ host: '127.0.0.1', port }, { runDir }).header()).rejects.toMatchObject({
      code: 'TRACE_INVALID',
    });
  });

  test('explains what to do if the server does not complete the first line', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const responseStarted = Promise.withResolvers<void>();
    const port = await servedHttp((_, response) => {
      response.write('{"kind":');
      responseStarted.resolve();
    });
    const rejection = expect(liveSource({ host: '127.0.0.1', port }, { runDir }).header()).rejects.toMatchObject({
      code: 'REQUEST_FAILED',
      message: expect.stringContaining('no complete line within 5000 ms'),
    });
    await responseStarted.promise;
    // The head of the response has been sent, and the time limit of its first line has begun.
    while (vi.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    for (let waited = 0; waited < 10; waited++) {
      vi.advanceTimersByTime(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await rejection;
  });

  test('explains what to do if the first line is endless', async () => {
    // On a busy machine 64 million characters took longer than the limit of 5 s for a first line.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const port = await servedHttp((_, response) => {
      const endless = Readable.from(
        (function* () {
          for (;;) yield 'x'.repeat(1024 * 1024);
        })(),
      );
      pipeline(endless, response, () => {});
    });
    await expect(liveSource({ host: '127.0.0.1', port }, { runDir }).header()).rejects.toMatchObject({
      code: 'TRACE_INVALID',
      message: expect.stringContaining('longer than 64 million characters'),
    });
  });
});

interface LiveProgram {
  readonly port: number;
  end(): Promise<void>;
  kill(): void;
  /** Resets connections, like a kernel after the exit of a program with unread data. */
  reset(): void;
}

/** A program with the trace endpoint of pilot-agent and pilot-discovery, on a separate port. */
async function start({ port = 0 } = {}) {
  const ring = new TraceRing(1_000);
  ring.write(header);
  const access = new DebuggerAccess({ runDir });
  const endpoint = new TraceEndpoint({ ring, mode: 'on', access, log: silentLogger });
  const server: Server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://program');
    const caller = { method: request.method ?? '', headers: request.headers, peer: request.socket };
    const traceResponse = url.pathname === '/debug/trace' ? endpoint.respond(caller, url.searchParams) : undefined;
    if (traceResponse === undefined) response.writeHead(404).end();
    else if ('stream' in traceResponse) traceResponse.stream(response);
    else response.writeHead(traceResponse.status, traceResponse.headers).end(traceResponse.body);
  });
  const connections: Socket[] = [];
  server.on('connection', (connection) => connections.push(connection));
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const bound = (server.address() as AddressInfo).port;
  access.onPortOpened(bound);
  endpoint.onPortOpened(bound);
  program = {
    port: bound,
    end: async () => {
      access.removeTokenFiles();
      await endpoint.end();
      server.close();
    },
    reset: () => {
      for (const connection of connections) connection.resetAndDestroy();
    },
    kill: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  const address = { host: '127.0.0.1', port: bound };
  return { ring, address, source: liveSource(address, { runDir }) };
}
