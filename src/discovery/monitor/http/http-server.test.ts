import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpHandler, type HttpRequest, HttpServers } from './http-server.ts';

const anyPort = { host: '127.0.0.1', port: 0 };
const openedServers: HttpServers[] = [];

afterEach(() => {
  for (const servers of openedServers.splice(0)) servers.closeConnections();
});

async function serve(handler: HttpHandler, count = 1): Promise<{ servers: HttpServers; urls: string[] }> {
  const servers = new HttpServers(handler);
  openedServers.push(servers);
  const addresses = await servers.open(Array.from({ length: count }, () => anyPort));
  return { servers, urls: addresses.map(({ port }) => `http://127.0.0.1:${port}`) };
}

describe('HttpServers', () => {
  it('respond identically on every port, with objects as JSON', async () => {
    const requests: HttpRequest[] = [];
    const { urls } = await serve((request) => {
      requests.push(request);
      return { status: 200, body: { a: 1 } };
    }, 2);
    for (const url of urls) {
      const response = await fetch(`${url}/x?y=z`);
      expect(response.headers.get('content-type')).toBe('application/json');
      expect(await response.json()).toEqual({ a: 1 });
    }
    expect(requests).toHaveLength(2);
    expect(requests[0]).toMatchObject({ method: 'GET', path: '/x', isLocal: true });
    expect(await (await fetch(`${urls[0]}/?pretty`)).text()).toBe('{\n  "a": 1\n}\n');
  });

  it('respond with 500 and the reason if the handler throws', async () => {
    const { urls } = await serve(() => {
      throw new Error('a bug');
    });
    const response = await fetch(urls[0]!);
    expect([response.status, await response.text()]).toEqual([500, 'a bug\n']);
  });

  it.each(['//', '//[', 'http://[/', '*'])('keep running after a request for %s', async (target) => {
    const { urls } = await serve(() => ({ status: 200, body: 'still here' }));
    const socket = connect(Number(new URL(urls[0]!).port), '127.0.0.1');
    const [reply] = await Promise.all([
      once(socket, 'data') as Promise<[Buffer]>,
      socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`),
    ]);
    socket.destroy();
    expect(String(reply[0])).toMatch(/^HTTP\/1.1 (200|400) /);
    expect(await (await fetch(urls[0]!)).text()).toBe('still here');
  });

  it('finish active requests when they close, and accept no new ones', async () => {
    const [requestStarted, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { servers, urls } = await serve(async () => {
      requestStarted.resolve();
      await released.promise;
      return { status: 200, body: 'late' };
    });
    const activeRequest = fetch(urls[0]!).then((response) => response.text());
    await requestStarted.promise;
    const closing = servers.close();
    await expect(fetch(urls[0]!)).rejects.toThrow();
    released.resolve();
    expect(await activeRequest).toBe('late');
    await closing;
  });

  it('do not wait for an open stream when they close, and leave it open', async () => {
    let response: ServerResponse | undefined;
    const { servers, urls } = await serve(({ path }) =>
      path === '/stream'
        ? {
            stream: (streamResponse) => {
              response = streamResponse;
              streamResponse.write('a');
            },
          }
        : { status: 200, body: '' },
    );
    await (await fetch(`${urls[0]}/`)).text();
    const streamed = (await fetch(`${urls[0]}/stream`)).text();
    await servers.close();
    servers.closeConnections();
    response!.end('b');
    expect(await streamed).toBe('ab');
  });

  it('open no ports if one is in use, and name that port', async () => {
    const { urls } = await serve(() => ({ status: 200, body: '' }));
    const takenPort = Number(new URL(urls[0]!).port);
    const servers = new HttpServers(() => ({ status: 200, body: '' }));
    await expect(servers.open([anyPort, { host: '127.0.0.1', port: takenPort }])).rejects.toMatchObject({
      code: 'PORT_IN_USE',
      fields: { path: `127.0.0.1:${takenPort}` },
      hint: expect.stringContaining('choose another address'),
    });
  });

  it('report an address that is not on this host', async () => {
    const servers = new HttpServers(() => ({ status: 200, body: '' }));
    await expect(servers.open([{ host: '192.0.2.1', port: 15080 }])).rejects.toMatchObject({
      code: 'LISTEN_FAILED',
      message: expect.stringContaining('EADDRNOTAVAIL'),
      fields: { path: '192.0.2.1:15080' },
    });
  });

  it('close idle connections', async () => {
    const { servers, urls } = await serve(() => ({ status: 200, body: '' }));
    const socket = connect(Number(new URL(urls[0]!).port), '127.0.0.1');
    await once(socket, 'connect');
    await sleep(20);
    servers.closeConnections();
    await once(socket, 'close');
  });
});
