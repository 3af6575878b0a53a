import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/harness/eventually.ts';
import { faultOwner } from './fault-owner.ts';
import { createFencedServer, defaultHttpLimits, type HttpFenceOptions, type HttpServe, urlOf } from './http-fence.ts';
import { catchUncaught } from './uncaught.ts';

const servers: Server[] = [];
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

const page: HttpServe = (_request, response, url) => void response.end(`page ${url.pathname}`);

async function serve(handler: HttpServe = page, options: HttpFenceOptions = {}): Promise<number> {
  const server = createFencedServer(handler, options);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function openConnection(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** All received text until the connection ends. */
async function receivedText(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  if (!socket.destroyed) await once(socket, 'close');
  return text;
}

async function responseTo(port: number, bytes: string): Promise<string> {
  const socket = await openConnection(port);
  const reply = receivedText(socket);
  socket.write(Buffer.from(bytes, 'latin1'));
  return (await reply).split('\r\n', 1)[0]!;
}

const close = 'host: x\r\nconnection: close\r\n\r\n';

describe('the HTTP server of createFencedServer', () => {
  it.each<[string, string, RegExp]>([
    ['two slashes', `GET // HTTP/1.1\r\n${close}`, / 200 /],
    ['two slashes and a host', `GET //[/ HTTP/1.1\r\n${close}`, / 200 /],
    ['an absolute target', `GET http://localhost/a HTTP/1.1\r\n${close}`, / 200 /],
    ['an invalid absolute target', `GET http://[/ HTTP/1.1\r\n${close}`, / 400 /],
    ['another scheme', `GET file:///etc/passwd HTTP/1.1\r\n${close}`, / 400 /],
    ['an asterisk', `OPTIONS * HTTP/1.1\r\n${close}`, / 400 /],
    ['an authority', `GET localhost:80 HTTP/1.1\r\n${close}`, / 400 /],
    ['bad percent escapes', `GET /%?a=%zz&%= HTTP/1.1\r\n${close}`, / 200 /],
    ['two tokens', `GET /a HTTP/1.1\r\nauthorization: Bearer a\r\nAuthorization: Bearer b\r\n${close}`, / 400 /],
    ['the same token twice', `GET /a HTTP/1.1\r\nauthorization: a\r\nauthorization: a\r\n${close}`, / 400 /],
    ['two hosts', `GET /a HTTP/1.1\r\nhost: localhost\r\n${close}`, / 400 /],
    ['two origins', `GET /a HTTP/1.1\r\norigin: http://a\r\norigin: http://b\r\n${close}`, / 400 /],
    [
      'two forwarded certificates',
      `GET /a HTTP/1.1\r\nx-forwarded-client-cert: a\r\nX-Forwarded-Client-Cert: b\r\n${close}`,
      / 400 /,
    ],
    ['two clusters', `GET /a HTTP/1.1\r\nClusterID: a\r\nclusterid: b\r\n${close}`, / 400 /],
    ['two other headers', `GET /a HTTP/1.1\r\naccept: a\r\naccept: b\r\n${close}`, / 200 /],
    ['a tunnel', 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n', / 405 /],
    ['an upgrade', `GET /a HTTP/1.1\r\nupgrade: websocket\r\nhost: x\r\nconnection: upgrade, close\r\n\r\n`, / 200 /],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /^(HTTP\/1\.1 4|$)/],
    ['an unknown method', `FROB / HTTP/1.1\r\n${close}`, / 400 /],
    ['no HTTP', '\u0016\u0003\u0001\u0002\u0000\u0001', / 400 /],
    ['huge headers', `GET / HTTP/1.1\r\na: ${'x'.repeat(20_000)}\r\n${close}`, / 431 /],
    ['a huge target', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n${close}`, / 431 /],
    ['two lengths', `GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n${close}`, / 400 /],
    ['an expectation', `GET / HTTP/1.1\r\nexpect: the unexpected\r\n${close}`, / 417 /],
  ])('responds to a request with %s and keeps serving', async (_, bytes, reply) => {
    const port = await serve();
    expect(await responseTo(port, bytes)).toMatch(reply);
    expect(await (await fetch(`http://127.0.0.1:${port}/after`)).text()).toBe('page /after');
  });

  it('keeps serving after any request target of an unauthenticated client', () => {
    let seed = 1;
    const random = (limit: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % limit;
    };
    const urlParts = [
      '/',
      '//',
      '[',
      ']',
      '@',
      ':',
      '%',
      '%zz',
      '?',
      '#',
      '\\',
      '..',
      'http:',
      'a',
      '\u00ff',
      '&',
      '=',
    ];
    for (let i = 0; i < 20_000; i++) {
      const target = Array.from({ length: 1 + random(8) }, () => urlParts[random(urlParts.length)]).join('');
      const url = urlOf(target);
      if (target.startsWith('/')) expect(url?.host, target).toBe('localhost');
      url?.searchParams.get('a');
    }
  });
});

describe('HTTP server with a failing handler', () => {
  it.each<[string, HttpServe]>([
    [
      'throws',
      () => {
        throw new Error('a bug');
      },
    ],
    ['rejects', () => Promise.reject(new Error('a bug'))],
    [
      'sets an invalid header',
      (_request, response) => {
        response.setHeader('kept', 'no');
        response.writeHead(200, { bad: 'a bug\n' });
      },
    ],
  ])('responds with 500 and reports the error if the handler %s', async (_, handler) => {
    const failures: string[] = [];
    const port = await serve(handler, { failed: (_error, { target }) => void failures.push(target) });
    const response = await fetch(`http://127.0.0.1:${port}/a?b`);
    expect(response.status).toBe(500);
    expect(await response.text()).toMatch(/a bug|Invalid character/);
    expect(response.headers.get('kept')).toBeNull();
    expect(failures).toEqual(['/a?b']);
  });

  it('ends the connection if the handler fails while sending a response', async () => {
    const port = await serve(async (_request, response) => {
      response.write('half');
      await sleep(10);
      throw new Error('a bug');
    });
    await expect(fetch(`http://127.0.0.1:${port}/`).then((response) => response.text())).rejects.toThrow();
  });

  it('reports an unhandled rejection with its owner, and fails the request', async () => {
    const owners: (string | undefined)[] = [];
    const previous = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    const undo = catchUncaught((error) => {
      owners.push(faultOwner()?.name);
      faultOwner()?.fail(error);
    });
    try {
      const port = await serve(() => {
        setTimeout(() => {
          throw new Error('a bug in a timer');
        });
      });
      const response = await fetch(`http://127.0.0.1:${port}/late`);
      expect([response.status, await response.text()]).toEqual([500, 'a bug in a timer\n']);
    } finally {
      undo();
      for (const listener of previous) process.on('uncaughtException', listener);
    }
    expect(owners).toEqual(['GET /late']);
  });
});

describe('the HTTP server with connection limits', () => {
  it.each<[string, string]>([
    ['sends no request', ''],
    ['sends its headers too slowly', 'GET / HTTP/1.1\r\nhost: x\r\n'],
    ['sends its body too slowly', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nab'],
    ['sends no further request', 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'],
  ])('closes a connection at its limit if the client %s', async (_, bytes) => {
    const limits = { headersMs: 100, requestMs: 100, idleMs: 100, checkMs: 20 };
    const port = await serve(
      (request, response) => {
        request.resume();
        request.on('end', () => response.end('page'));
      },
      { limits },
    );
    const socket = await openConnection(port);
    socket.write(bytes);
    const closing = receivedText(socket).then(() => 'closed');
    expect(await Promise.race([closing, sleep(5_000, 'still there')])).toBe('closed');
  });

  it('closes a connection after a few responses if the client pipelines requests without reading', async () => {
    let requested = 0;
    const port = await serve(async (_request, response) => {
      requested++;
      await sleep(50);
      response.end('page');
    });
    const socket = await openConnection(port);
    const reply = receivedText(socket);
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_000));
    await reply;
    expect(requested).toBe(defaultHttpLimits.maxPipelined);
  });

  it('accepts any number of consecutive requests on a connection', async () => {
    const port = await serve();
    const socket = await openConnection(port);
    for (let i = 0; i < 50; i++) {
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      await once(socket, 'data');
    }
    expect(socket.destroyed).toBe(false);
  });

  it('closes a connection at the limit of unread responses', async () => {
    let isClosed = false;
    const port = await serve(
      (_request, response) => {
        response.on('close', () => {
          isClosed = true;
        });
        response.end('x'.repeat(32 * 1024 * 1024));
      },
      { limits: { unreadMs: 100 } },
    );
    const socket = await openConnection(port);
    socket.pause();
    socket.write(`GET / HTTP/1.1\r\n${close}`);
    await eventually('it is closed', () => isClosed);
  });

  it('closes the longest idle connection of an address at its limit, but no busy one', async () => {
    const [requestStarted, responseAllowed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const port = await serve(
      async (_request, response) => {
        requestStarted.resolve();
        await responseAllowed.promise;
        response.end('page');
      },
      { limits: { maxPerAddress: 2 } },
    );
    const busyConnection = await openConnection(port);
    const reply = receivedText(busyConnection);
    busyConnection.write(`GET / HTTP/1.1\r\n${close}`);
    await requestStarted.promise;
    const idle = await openConnection(port);
    const closedAt = receivedText(idle);
    await openConnection(port);
    const first = [closedAt.then(() => 'the idle one'), reply.then(() => 'the one at work')];
    expect(await Promise.race(first)).toBe('the idle one');
    responseAllowed.resolve();
    expect(await closedAt).toBe('');
    expect(await reply).toMatch(/page$/);
  });
});
