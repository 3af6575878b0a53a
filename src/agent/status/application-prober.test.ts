import { once } from 'node:events';
import { Agent, createServer, get, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createH2c, createSecureServer, type Http2Server } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createTcp } from 'node:net';
import { createServer as createTls } from 'node:tls';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { freePort } from '../../../test/fixtures/real-envoy.ts';
import { switchingProtocols } from '../../../test/fixtures/switching-protocols.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { createFencedServer } from '../../runtime/fences/http-fence.ts';
import { createLogger } from '../../runtime/output/log.ts';
import { ApplicationProber } from './application-prober.ts';
import { parseProbes } from './application-probes.ts';
import type { ProbeTransport } from './probe-http.ts';

const path = '/app-health/web/readyz';

interface Listening {
  address(): unknown;
  listen(port: number, host: string): unknown;
  close(): unknown;
  on(event: string, listener: () => void): unknown;
}

async function listening<S extends Listening>(server: S, host = '127.0.0.1'): Promise<number> {
  server.listen(0, host);
  await once(server as never, 'listening');
  onTestFinished(() => {
    (server as unknown as Partial<Server>).closeAllConnections?.();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Sends the configured probe to a prober. */
async function prober(probe: object, transport: Partial<ProbeTransport> = {}) {
  const parsed = parseProbes(JSON.stringify({ [path]: probe }), 15020);
  if ('error' in parsed) throw new Error(parsed.error.field, { cause: parsed.error });
  const log: string[] = [];
  const applications = new ApplicationProber(
    parsed.probes,
    { destination: '127.0.0.1', source: '127.0.0.6', http2: true, ...transport },
    createLogger({ write: (line) => log.push(line.trimEnd()) }),
  );
  const server = createFencedServer((request, response) =>
    applications.serve(path, applications.probe(path)!, request, response),
  );
  const port = await listening(server);
  /** Sends a request from this client address. */
  const sendFrom = async (localAddress: string): Promise<number> => {
    const outgoing = get({ host: '127.0.0.1', port, path, localAddress, agent: false });
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return response.resume().statusCode ?? 0;
  };
  const send = async (init: RequestInit = {}): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    await response.text();
    return response.status;
  };
  return { send, sendFrom, log };
}

async function application(listener: RequestListener): Promise<number> {
  return listening(createServer(listener));
}

const certificate = await createAuthority().issue(['web']);

test('returns each status of the application without its body, and maps 3xx to 200 (agent §6.6)', async () => {
  const port = await application((request, response) => {
    response.writeHead(Number(request.headers['x-status'])).end(request.headers['x-status'] === '204' ? '' : 'body');
  });
  const { send } = await prober({ httpGet: { port } });
  for (const status of [200, 201, 204, 299, 400, 401, 404, 418, 429, 500, 503, 599]) {
    expect(await send({ headers: { 'x-status': String(status) } }), String(status)).toBe(status);
  }
  for (const status of [300, 301, 302, 304, 307, 399]) {
    expect(await send({ headers: { 'x-status': String(status) } }), String(status)).toBe(200);
  }
});

test("sends GET from an address without iptables redirection, with the caller's headers overridden by configured ones (agent §6.6)", async () => {
  const seenRequests: { method?: string; from?: string; headers: string[] }[] = [];
  const port = await application((request, response) => {
    const { method, rawHeaders: headers, socket } = request;
    seenRequests.push({
      ...(method && { method }),
      ...(socket.remoteAddress && { from: socket.remoteAddress }),
      headers,
    });
    response.end();
  });
  const httpHeaders = [
    { name: 'X-Both', value: 'own 1' },
    { name: 'x-both', value: 'own 2' },
  ];
  const plain = await prober({ httpGet: { port, httpHeaders } });
  expect(
    await plain.send({ method: 'POST', headers: { 'x-caller': 'c', 'X-BOTH': 'caller', host: 'evil.example' } }),
  ).toBe(200);
  const [{ method, from, headers } = { headers: [] as string[] }] = seenRequests;
  expect([method, from]).toEqual(['GET', '127.0.0.6']);
  const values = (name: string): string[] =>
    headers.flatMap((one, i) => (i % 2 === 0 && one.toLowerCase() === name ? [headers[i + 1]!] : []));
  expect(values('x-caller')).toEqual(['c']);
  expect(values('x-both')).toEqual(['own 1', 'own 2']);
  expect(values('host')).toEqual([`127.0.0.1:${port}`]);
  expect(values('content-length')).toEqual([]);
  const namedHostProber = await prober({ httpGet: { port, httpHeaders: [{ name: ':authority', value: 'web.shop' }] } });
  await namedHostProber.send();
  expect(seenRequests[1]!.headers).toContain('web.shop');
});

test('follows at most 10 redirects to the same origin, and returns 200 for redirects to other origins (agent §6.6)', async () => {
  let otherRequests = 0;
  const other = await application((_, response) => {
    otherRequests++;
    response.writeHead(500).end();
  });
  let requests = 0;
  const port = await application((request, response) => {
    requests++;
    const remainingRedirects = Number(/^\/left\/(\d+)/.exec(request.url!)?.[1]);
    if (request.url === '/other-port') response.writeHead(302, { location: `http://127.0.0.1:${other}/` });
    else if (request.url === '/other-host') response.writeHead(302, { location: 'http://10.255.255.1/' });
    else if (request.url === '/other-scheme') response.writeHead(302, { location: `https://127.0.0.1:${port}/` });
    else if (request.url === '/no-host') response.writeHead(302, { location: `//localhost:${other}/` });
    else if (request.url === '/no-address') response.writeHead(302, { location: 'http://[' });
    else if (request.url === '/to-a-failure') response.writeHead(302, { location: '/fails' });
    else if (remainingRedirects > 0) response.writeHead(307, { location: `/left/${remainingRedirects - 1}` });
    else response.writeHead(request.url === '/fails' ? 503 : 204);
    response.end();
  });
  const status = async (to: string): Promise<number> => (await prober({ httpGet: { port, path: to } })).send();
  for (const to of ['/other-port', '/other-host', '/other-scheme', '/no-host']) expect(await status(to), to).toBe(200);
  expect(otherRequests).toBe(0);
  expect(await status('/no-address')).toBe(500);
  expect(await status('/to-a-failure')).toBe(503);
  requests = 0;
  expect(await status('/left/10')).toBe(204);
  expect(requests).toBe(11);
  expect(await status('/left/11')).toBe(500);
});

test('probes HTTPS over HTTP/1 and HTTP/2 with any certificate, and fails for other ALPN protocols (agent §6.6)', async () => {
  const pems = { cert: certificate.certificate, key: certificate.privateKey };
  const versions: string[] = [];
  const listener = (request: { httpVersion: string }, response: { end(): unknown }): void => {
    versions.push(request.httpVersion);
    response.end();
  };
  const one = await listening(createHttps(pems, listener));
  const http2Server = await listening(createSecureServer(pems, listener as never) as unknown as Listening);
  const dualServer = await listening(
    createSecureServer({ ...pems, allowHTTP1: true }, listener as never) as unknown as Listening,
  );
  const reversed = createTls({ ...pems, ALPNProtocols: ['http/1.1', 'h2'] }, (socket) => {
    socket.on('error', () => {});
    socket.end('HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n');
  });
  const unknownServer = await listening(
    createTls({ ...pems, ALPNProtocols: ['spdy/9'] }, (socket) => socket.on('error', () => {})),
  );
  const status = async (port: number, http2 = true): Promise<number> =>
    (await prober({ httpGet: { port, scheme: 'HTTPS' } }, { http2 })).send();
  expect([await status(one), await status(http2Server), await status(dualServer)]).toEqual([200, 200, 200]);
  expect(versions).toEqual(['1.1', '2.0', '2.0']);
  expect(await status(dualServer, false)).toBe(200);
  expect(versions.at(-1)).toBe('1.1');
  expect(await status(await listening(reversed))).toBe(202);
  expect(await status(unknownServer)).toBe(500);
  // A plaintext server in place of TLS.
  expect(await status(await application((_, response) => void response.end()))).toBe(500);
});

test('considers a TCP port healthy if it accepts a connection over IPv4, IPv6 or localhost (agent §6.6)', async () => {
  const four = await listening(createTcp((socket) => socket.on('error', () => {})));
  const six = await listening(createTcp((socket) => socket.on('error', () => {})) as never, '::1');
  expect(await (await prober({ tcpSocket: { port: four } })).send()).toBe(200);
  expect(
    await (await prober({ tcpSocket: { port: four } }, { destination: '127.0.0.1', source: undefined })).send(),
  ).toBe(200);
  expect(await (await prober({ tcpSocket: { port: six } }, { destination: '::1', source: undefined })).send()).toBe(
    200,
  );
  expect(await (await prober({ httpGet: { port: six } }, { destination: '[[::1]]', source: undefined })).send()).toBe(
    500,
  );
  const { send, log } = await prober({ tcpSocket: { port: await freePort() } });
  expect([await send(), await send()]).toEqual([500, 500]);
  expect(linesOf(log, 'probe.applicationFailed', { reason: /ECONNREFUSED/ })).toHaveLength(1);
  expect(log).toHaveLength(1);
});

function health(listener: (path: string, message: Buffer, userAgent: string | undefined) => number | undefined) {
  const server: Http2Server = createH2c();
  server.on('stream', (stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      const status = listener(String(headers[':path']), Buffer.concat(chunks).subarray(5), headers['user-agent']);
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status === undefined ? '5' : '0' }));
      const message = new BinaryWriter()
        .uint32(8)
        .int32(status ?? 0)
        .finish();
      stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
    });
  });
  return listening(server as unknown as Listening);
}

test('considers gRPC healthy only with status SERVING, and forwards service and user agent (agent §6.6)', async () => {
  const requests: unknown[] = [];
  const port = await health((...question) => {
    requests.push(question.map(String));
    const [, message] = question;
    return message.includes('shop.Cart') ? 1 : message.length === 0 ? 2 : undefined;
  });
  const servingProber = await prober({ grpc: { port, service: 'shop.Cart' } });
  expect(await servingProber.send({ headers: { 'user-agent': 'kube-probe/1.30' } })).toBe(200);
  expect(requests).toEqual([['/grpc.health.v1.Health/Check', '\n\tshop.Cart', 'kube-probe/1.30']]);
  expect(await (await prober({ grpc: { port } })).send()).toBe(500);
  expect(await (await prober({ grpc: { port, service: 'unknown' } })).send()).toBe(500);
  const noGrpc = await application((_, response) => void response.end());
  expect(await (await prober({ grpc: { port: noGrpc } })).send()).toBe(500);
});

test('fails any kind of probe if the application does not respond within the limit', async () => {
  const silentServer = await listening(createTcp((socket) => socket.on('error', () => {})));
  const kinds = [
    { httpGet: { port: silentServer }, timeoutSeconds: 1 },
    { httpGet: { port: silentServer, scheme: 'HTTPS' }, timeoutSeconds: 1 },
    { grpc: { port: silentServer } },
  ];
  const startMs = performance.now();
  await Promise.all(
    kinds.map(async (kind) => {
      const { send, log } = await prober(kind);
      expect(await send()).toBe(500);
      expect(performance.now() - startMs).toBeGreaterThan(990);
      expect(linesOf([log[0]!], 'probe.applicationFailed', { reason: 'no response within 1000 ms' })).toHaveLength(1);
    }),
  );
});

test('reads at most 64 KiB of an endless body, and fails if headers are endless', async () => {
  let closedCount = 0;
  const port = await application((request, response) => {
    response.on('close', () => closedCount++);
    if (request.url === '/headers') {
      for (let i = 0; i < 40; i++) response.setHeader(`x-${i}`, 'x'.repeat(1_000));
      response.end();
      return;
    }
    const write = (): void => {
      if (!response.destroyed) response.write('x'.repeat(16_384), () => setImmediate(write));
    };
    write();
  });
  expect(await (await prober({ httpGet: { port } })).send()).toBe(200);
  await eventually('the connection to the application is closed', () => closedCount === 1);
  expect(await (await prober({ httpGet: { port, path: '/headers' } })).send()).toBe(500);
});

test("fails each probe of an application that switches protocols, and releases the probe's slot", async () => {
  const { send, log } = await prober({ httpGet: { port: await switchingProtocols() } });
  for (let count = 1; count <= 20; count++) expect(await send(), `probe ${count}`).toBe(500);
  expect(linesOf(log, 'probe.applicationFailed', { reason: /switches to another protocol/ })).not.toEqual([]);
});

test('aborts a probe when its caller disconnects, and rejects more than 16 concurrent probes per address', async () => {
  let openCount = 0;
  const port = await application((_, response) => {
    openCount++;
    response.on('close', () => openCount--);
  });
  const { send } = await prober({ httpGet: { port }, timeoutSeconds: 60 });
  const abortController = new AbortController();
  const requests = Array.from({ length: 16 }, () => send({ signal: abortController.signal }).catch(() => 'left'));
  await eventually('all are under way', () => openCount === 16);
  expect(await send()).toBe(503);
  abortController.abort();
  expect(new Set(await Promise.all(requests))).toEqual(new Set(['left']));
  await eventually('none is under way', () => openCount === 0);
});

test('serves a client without running probes even while other clients run 64 probes', async () => {
  const heldResponses: (() => void)[] = [];
  const port = await application((_, response) => void heldResponses.push(() => response.end()));
  const { sendFrom } = await prober({ httpGet: { port }, timeoutSeconds: 60 });
  const otherProbes = [2, 3, 4, 5].flatMap((last) => Array.from({ length: 16 }, () => sendFrom(`127.0.0.${last}`)));
  await eventually('all are under way', () => heldResponses.length === 64);
  const kubelet = sendFrom('127.0.0.9');
  await eventually('the kubelet’s, too', () => heldResponses.length === 65);
  expect(await sendFrom('127.0.0.9')).toBe(503);
  for (const respond of heldResponses) respond();
  expect(new Set(await Promise.all([...otherProbes, kubelet]))).toEqual(new Set([200]));
  const next = sendFrom('127.0.0.9');
  await eventually('it is over for all', () => heldResponses.length === 66);
  heldResponses[65]!();
  expect(await next).toBe(200);
});

test('reuses idle connections, and retries if the application has closed one', async () => {
  const server = createServer((_, response) => void response.end('ok'));
  let connections = 0;
  server.on('connection', () => connections++);
  const port = await listening(server);
  const keepAliveAgent = new Agent({ keepAlive: true });
  onTestFinished(() => keepAliveAgent.destroy());
  const { send } = await prober({ httpGet: { port } }, { keepAliveAgent });
  expect([await send(), await send(), await send()]).toEqual([200, 200, 200]);
  expect(connections).toBe(1);
  const singleProber = await prober({ httpGet: { port } });
  await singleProber.send();
  await singleProber.send();
  expect(connections).toBe(3);
  const singleUseServer = createTcp((socket) => {
    socket.on('error', () => {});
    let requests = 0;
    // The server closes the connection at its second request.
    socket.on('data', () => {
      if (++requests === 1) socket.write('HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n');
      else socket.destroy();
    });
  });
  const brief = await prober({ httpGet: { port: await listening(singleUseServer) } }, { keepAliveAgent });
  expect([await brief.send(), await brief.send()]).toEqual([200, 200]);
});
