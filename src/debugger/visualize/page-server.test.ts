import { once } from 'node:events';
import { get, type IncomingHttpHeaders, type RequestOptions, request } from 'node:http';
import { createServer } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { header, traceText } from '../../../test/fixtures/traces.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { memorySource } from './memory-source.ts';
import { type PageServer, type PageServerOptions, startPageServer } from './page-server.ts';
import type { PageSource } from './page-source.ts';

let server: PageServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function start(options: Partial<PageServerOptions> = {}): Promise<PageServer> {
  server = await startPageServer({ sources: [memorySource('agent.trace', traceText(3))], ...options });
  return server;
}

interface TestResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a raw request, because fetch does not allow setting Host and Origin. */
async function sendRaw(address: string, options: RequestOptions = {}): Promise<TestResponse> {
  const request = get(address, { agent: false, ...options });
  const [response] = await once(request, 'response');
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

describe('the page server', () => {
  test('listens on loopback and serves the page below a random path', async () => {
    const first = await start();
    expect(first.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{32}\/$/);
    expect((await sendRaw(first.address)).body).toContain('<script src="page.js">');
    expect((await sendRaw(`${first.address}page.js`)).headers['content-type']).toContain('text/javascript');
    expect((await sendRaw(`${first.address}page.css`)).headers['content-type']).toContain('text/css');
    await first.close();
    expect((await start()).address.split('/')[3]).not.toBe(first.address.split('/')[3]);
  });

  test('redirects to the page if its address lacks the trailing slash', async () => {
    const { address } = await start();
    const { pathname, origin } = new URL(address);
    const { status, headers } = await sendRaw(`${origin}${pathname.slice(0, -1)}`);
    expect([status, headers.location]).toEqual([308, pathname]);
  });

  test('opens the page by an address that works once and does not contain the token', async () => {
    const { address, openingAddress } = await start();
    const opening = openingAddress();
    expect(opening).not.toContain(new URL(address).pathname.slice(1, -1));
    const foreignResponse = await sendRaw(opening, { headers: { 'sec-fetch-site': 'cross-site' } });
    expect(foreignResponse.status).toBe(403);
    const { status, headers } = await sendRaw(opening);
    expect([status, headers.location]).toEqual([303, new URL(address).pathname]);
    expect((await sendRaw(opening)).status).toBe(404);
    const [olderPage, newer] = [openingAddress(), openingAddress()];
    expect([(await sendRaw(olderPage)).status, (await sendRaw(newer)).status]).toEqual([404, 303]);
  });

  test('rejects the opening address from a program of another user, and keeps it valid', async () => {
    const { openingAddress } = await start();
    const opening = openingAddress();
    // Changes the user of this process, so that the client has another one.
    const user = vi.spyOn(process, 'geteuid').mockReturnValue(process.geteuid!() + 1);
    onTestFinished(() => user.mockRestore());
    expect((await sendRaw(opening)).status).toBe(403);
    user.mockRestore();
    expect((await sendRaw(opening)).status).toBe(303);
  });

  test('serves the page without data to all clients, also at the root', async () => {
    const { address } = await start();
    const { origin, pathname } = new URL(address);
    for (const name of ['', 'page.js', 'page.css']) {
      const [ownResponse, openResponse] = [await sendRaw(address + name), await sendRaw(`${origin}/${name}`)];
      expect([openResponse.status, openResponse.body]).toEqual([200, ownResponse.body]);
      expect(`${openResponse.body}${JSON.stringify(openResponse.headers)}`).not.toContain(pathname.split('/')[1]);
      expect(openResponse.body).not.toContain('agent.trace');
    }
  });

  test.each(['none', 'same-origin', 'same-site', 'cross-site'])(
    'serves the page for a followed link: %s',
    async (site) => {
      const { origin } = new URL((await start()).address);
      const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
      expect((await sendRaw(`${origin}/`, { headers })).body).toContain('id="page"');
    },
  );

  test('sends the sources, the session and the trace', async () => {
    const { address } = await start();
    expect(JSON.parse((await sendRaw(`${address}sources.json`)).body)).toEqual([
      { name: 'agent.trace', kind: 'file', place: 'agent.trace' },
    ]);
    const session = JSON.parse((await sendRaw(`${address}session/0.json`)).body);
    expect(Object.keys(session.charts)).toEqual(['light']);
    expect(session.charts.light).toMatch(/^<svg[^>]* data-machine="light"/);
    const files = session.diagrams.map(({ file }: { file: string }) => file);
    expect(files).toContain('machines/agent/sequences/restart.mmd');
    expect((await sendRaw(`${address}trace/0`)).body).toBe(traceText(3));
  });

  test('sends the diagrams of other programs only if they are configured', async () => {
    const other = memorySource('other', traceText(1, { ...header, program: 'toString' }));
    const { address } = await start({ sources: [other] });
    expect(JSON.parse((await sendRaw(`${address}session/0.json`)).body).diagrams).toEqual([]);
    await server?.close();
    const diagramServer = await start({ sources: [other], diagrams: 'machines/discovery/sequences' });
    expect(JSON.parse((await sendRaw(`${diagramServer.address}session/0.json`)).body).diagrams.length).toBeGreaterThan(
      0,
    );
  });

  test.each([
    'trace/1',
    'trace/00x',
    'session/0',
    'session/7.json',
    'toString',
    '../package.json',
    '%2e%2e/package.json',
    'page.js/',
  ])('has no resource at %s', async (path) => {
    const { address } = await start();
    const at = new URL(address);
    expect((await sendRaw(address, { path: `${at.pathname}${path}` })).status).toBe(404);
  });

  test('sends the reason why a program cannot be read', async () => {
    const unavailable = async (): Promise<never> => {
      throw new ChartpilotError('REQUEST_FAILED', '127.0.0.1:15020: refused', { hint: 'Is it running?' });
    };
    const source: PageSource = {
      name: 'sidecar',
      kind: 'live',
      place: '127.0.0.1:15020',
      header: unavailable,
      read: unavailable,
    };
    const { address } = await start({ sources: [source] });
    for (const path of ['trace/0', 'session/0.json']) {
      const { status, body } = await sendRaw(`${address}${path}`);
      expect(status).toBe(502);
      expect(JSON.parse(body)).toEqual({
        reason: 'request failed: 127.0.0.1:15020: refused [REQUEST_FAILED]\n  → Is it running?',
      });
    }
  });

  test('reports an interrupted trace as an error instead of ending it normally', async () => {
    const breaking = { ...memorySource('x', traceText(1)), read: async () => Readable.from(halfATrace()) };
    const { address } = await start({ sources: [breaking] });
    await expect(sendRaw(`${address}trace/0`)).rejects.toThrow(/aborted/);
  });

  test('disconnects its readers when it closes', async () => {
    const endless = new Readable({ read: () => {} });
    const { address } = await start({ sources: [{ ...memorySource('x', traceText(1)), read: async () => endless }] });
    const request = get(`${address}trace/0`, { agent: false });
    await once(request, 'response');
    request.on('error', () => {});
    request.destroy();
    await expect.poll(() => endless.destroyed).toBe(true);
  });

  test('reports a port in use with instructions', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    await expect(start({ port })).rejects.toMatchObject({
      code: 'PORT_IN_USE',
      hint: expect.stringContaining('--port'),
      fields: { path: '--port', got: String(port) },
    });
    other.close();
  });
});

async function* halfATrace() {
  yield traceText(1);
  throw new Error('the program was killed');
}

describe('an unauthorized client of the page server', () => {
  test.each([
    ['with a wrong token', (path: string) => path.replace(/[\w-]{32}/, 'A'.repeat(32))],
    ['with half of the token', (path: string) => path.replace(/([\w-]{16})[\w-]{16}/, '$1')],
    ['without a token', () => '/sources.json'],
    ['with a file name of the page below another path', () => '/x/page.js'],
  ])('receives no data %s', async (_, change) => {
    const { address } = await start();
    const { port, pathname } = new URL(`${address}sources.json`);
    const { status, body, headers } = await sendRaw(`http://127.0.0.1:${port}`, { path: change(pathname) });
    expect([status, body]).toEqual([404, '']);
    expect(JSON.stringify(headers)).not.toContain(pathname.split('/')[1]);
  });

  test.each<[string, Record<string, string>]>([
    ['a DNS name that resolves to this host', { host: 'evil.example' }],
    ['a DNS name that begins like a local one', { host: 'localhost.evil.example' }],
    ['an origin of its own', { origin: 'https://evil.example' }],
    ['the origin of another port of this host', { origin: 'http://127.0.0.1:9999' }],
    ['the origin null', { origin: 'null' }],
    ['a script, picture or frame of its own', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
    ['a page of another port', { 'sec-fetch-site': 'same-site' }],
    ['a proxy', { 'x-forwarded-for': '10.0.0.1' }],
  ])('is rejected even with the secret path: %s', async (_, headers) => {
    const { address } = await start();
    for (const path of ['', 'sources.json', 'trace/0', 'session/0.json']) {
      const response = await sendRaw(`${address}${path}`, { headers });
      expect([response.status, response.body]).toEqual([403, '']);
    }
  });

  test.each(['POST', 'PUT', 'OPTIONS', 'HEAD'])('cannot use the method %s', async (method) => {
    const { address } = await start();
    for (const at of [address, `${new URL(address).origin}/`]) expect((await sendRaw(at, { method })).status).toBe(405);
  });

  describe('that sends a trace header to be described', () => {
    const body = JSON.stringify({ program: header.program, machines: header.machines });
    const send = async (address: string, headers: Record<string, string>, sending = body): Promise<TestResponse> => {
      const clientRequest = request(`${address}describe`, { method: 'POST', agent: false, headers });
      clientRequest.on('error', () => {});
      clientRequest.end(sending);
      const [response] = await once(clientRequest, 'response');
      return { status: response.statusCode, headers: response.headers, body: await text(response) };
    };

    test('receives a response only for the page itself, and only below its path', async () => {
      const { address } = await start();
      const { origin } = new URL(address);
      const response = await send(address, { origin, 'sec-fetch-site': 'same-origin' });
      expect(response.status).toBe(200);
      expect(JSON.parse(response.body).charts.light).toMatch(/^<svg/);
      expect((await send(address.replace(/[\w-]{32}/, 'A'.repeat(32)), { origin })).status).toBe(404);
      expect((await send(`${origin}/`, { origin })).status).toBe(404);
    });

    test.each<[string, Record<string, string>]>([
      ['without an origin', {}],
      ['with another origin', { origin: 'http://127.0.0.1:1' }],
      ['with the origin null', { origin: 'null' }],
      ['with the origin of the page, across sites', { origin: 'OWN', 'sec-fetch-site': 'cross-site' }],
      ['with the origin of the page, from another port', { origin: 'OWN', 'sec-fetch-site': 'same-site' }],
      ['by a DNS name that resolves to this host', { origin: 'http://evil.example', host: 'evil.example' }],
      ['through a proxy', { origin: 'OWN', via: '1.1 somewhere' }],
    ])('is rejected %s', async (_, headers) => {
      const { address } = await start();
      const ownResponse = { ...headers, ...(headers.origin === 'OWN' && { origin: new URL(address).origin }) };
      const { status, body } = await send(address, ownResponse);
      expect([403, 405]).toContain(status);
      expect(body).toBe('');
    });

    test.each([
      '',
      'null',
      '[]',
      '{"program":1,"machines":[]}',
      '{"program":"x"}',
      '{"program":"x","machines":[{}]}',
      '{"program":"x","machines":[{"id":"m","states":[{"path":"","type":"atomic","parent":0}],"transitions":[]}]}',
      '{',
      'x'.repeat(17 * 1024 * 1024),
    ])('receives status 400 if the header is invalid: %.20s', async (sending) => {
      const { address } = await start();
      const { status } = await send(address, { origin: new URL(address).origin }, sending);
      expect(status).toBe(400);
    });
  });

  const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
  test.each<[string, string, RequestOptions]>([
    ['to the path of the traces', 'PATH', {}],
    ['to the list of the traces', 'PATHsources.json', {}],
    ['to a trace', 'PATHtrace/0', {}],
    ['to a part of the page', '/page.js', {}],
    ['into a frame', '/', { headers: { 'sec-fetch-dest': 'iframe' } }],
    ['into an object', '/', { headers: { 'sec-fetch-dest': 'object' } }],
    ['as a script', '/', { headers: { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' } }],
    ['as a fetch', '/', { headers: { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' } }],
    ['as a socket', '/', { headers: { 'sec-fetch-mode': 'websocket', 'sec-fetch-dest': 'websocket' } }],
    ['with an origin', '/', { headers: { origin: 'https://evil.example' } }],
    ['as a form', '/', { method: 'POST' }],
    ['by a DNS name that resolves to this host', '/', { headers: { host: 'evil.example' } }],
    ['through a proxy', '/', { headers: { via: '1.1 somewhere' } }],
  ])('on another web site is rejected %s', async (_, path, { method = 'GET', headers }) => {
    const { origin, pathname } = new URL((await start()).address);
    const response = await sendRaw(`${origin}${path.replace('PATH', pathname)}`, {
      method,
      headers: { ...link, ...(headers as Record<string, string>) },
    });
    expect([response.status, response.body]).toEqual([403, '']);
  });

  test('receives headers that forbid framing, sniffing, caching and referrers', async () => {
    const { address } = await start();
    for (const path of ['', 'trace/0', 'nothing']) {
      expect((await sendRaw(`${address}${path}`)).headers).toMatchObject({
        'content-security-policy': expect.stringMatching(
          /^default-src 'none'; script-src 'self';.*frame-ancestors 'none'/,
        ),
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
      });
    }
  });
});
