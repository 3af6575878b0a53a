/**
 * The page and a program's stream are accessible only to one user of this host: not to other hosts, and not to other web sites in the same browser.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type RequestOptions, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { liveSource } from '../../src/debugger/visualize/live-source.ts';
import { type PageServer, startPageServer } from '../../src/debugger/visualize/page-server.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { readDebuggerToken } from '../../src/runtime/trace/debugger-token.ts';
import { launchBrowser } from '../browser/open-page.ts';
import { traceOf } from '../browser/written-trace.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Mesh } from '../harness/mesh.ts';
import { recordedLife } from '../simulation/recorded-life.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;
let server: PageServer;
let browser: Browser;
/** Port at which the control plane serves its trace. */
let port: number;

beforeAll(async () => {
  mesh = await Mesh.create();
  [port] = (await freePorts(1)) as [number];
  // Accessible to all hosts, as in a pod for probes and metrics. The trace is not.
  await mesh.startDiscovery(['--monitoringAddr', `0.0.0.0:${port}`]);
  server = await startPageServer({ sources: [liveSource({ host: '127.0.0.1', port })] });
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
  await conclude(mesh);
});

describe('an attacker on another host', () => {
  test('cannot connect to the port of the page', async () => {
    for (const address of otherAddresses()) {
      await expect(canConnect(address, Number(new URL(server.address).port)), address).resolves.toBe(false);
    }
  });

  test("cannot read the program's stream even with the right token", async () => {
    const reachable = otherAddresses().filter((address) => !address.includes(':'));
    expect(reachable.length).toBeGreaterThan(0);
    for (const address of reachable) {
      expect((await fetchPage(`http://${address}:${port}/metrics`)).status, address).toBe(200);
      // A forged host name must not help: the source address decides, because it cannot be forged.
      for (const headers of [authorized(), { ...authorized(), host: `127.0.0.1:${port}` }]) {
        const { status, body } = await fetchPage(`http://${address}:${port}/debug/trace`, { headers });
        expect([status, body.includes('"kind"')], address).toEqual([403, false]);
      }
    }
  });

  test('cannot use a name that resolves to this host (DNS rebinding) even with the right path and token', async () => {
    const host = `evil.example:${port}`;
    const page = await fetchPage(`${server.address}sources.json`, { headers: { host } });
    const root = await fetchPage(`${new URL(server.address).origin}/`, { headers: { host } });
    const stream = await fetchPage(streamAddress(), { headers: { host, ...authorized() } });
    expect([page.status, page.body, root.status, root.body, stream.status]).toEqual([403, '', 403, '', 403]);
  });
});

describe('another web site in the same browser', () => {
  test.each([
    ['knows the path of the page', () => server.address],
    ['knows only the port of the page', () => `${new URL(server.address).origin}/`],
    ["knows the address of the program's stream", () => streamAddress()],
  ])('reads nothing if it %s', async (_, target) => {
    await visiting(async (page) => {
      const paths = ['', 'trace/0', 'sources.json', 'session/0.json', 'page.js', 'page.css'];
      expect(
        await page.evaluate(
          attack,
          paths.map((path) => target() + path),
        ),
      ).toEqual([]);
      expect(await framed(page, target())).not.toContain('id="page"');
      expect(await submitted(page, target())).toBeGreaterThanOrEqual(400);
    });
  });

  test('opens only an empty window', async () => {
    await visiting(async (page) => {
      const [openedPopup] = await Promise.all([
        page.waitForEvent('popup'),
        page.evaluate((address) => void (globalThis as unknown as HostileSite).open(address), server.address),
      ]);
      await openedPopup.waitForLoadState();
      expect(await openedPopup.content()).not.toContain('id="page"');
    });
  });

  test('reads a server without protection, which shows that the attacks of this test work', async () => {
    const careless = createServer((request, response) => {
      const isScript = request.url?.endsWith('.js') === true;
      const isListenedTo = request.headers.accept === 'text/event-stream';
      response.setHeader('access-control-allow-origin', '*');
      response.setHeader(
        'content-type',
        isListenedTo ? 'text/event-stream' : isScript ? 'text/javascript' : 'text/html',
      );
      response.end(isListenedTo ? 'data: 1\n\n' : isScript ? '1;' : 'id="page"');
    });
    careless.on('upgrade', ({ headers }, socket) => {
      const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const acceptKey = createHash('sha1').update(key).digest('base64');
      socket.end(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptKey}\r\n\r\n`,
      );
    });
    const openServer = await listening(careless);
    await visiting(async (page) => {
      const reachedApis = await page.evaluate(attack, [openServer.address, `${openServer.address}page.js`]);
      expect(reachedApis).toEqual(
        expect.arrayContaining(
          ['fetch', 'script', 'EventSource', 'WebSocket'].map((api) => expect.stringContaining(api)),
        ),
      );
      const ownPage = page.url();
      expect(
        await page.evaluate((address) => (globalThis as unknown as HostileSite).readOpened(address), ownPage),
      ).toContain(ownPage);
      expect(await framed(page, openServer.address)).toContain('id="page"');
      expect(await submitted(page, openServer.address)).toBe(200);
    });
    openServer.server.close();
  });

  test('does not block the user that has the address', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(server.address);
    await page.locator('[data-actor="discovery"][data-state-name]').waitFor();
    await context.close();
  });
});

describe('a shared link to the page', () => {
  let server: PageServer;
  beforeAll(async () => {
    server = await startPageServer({
      sources: [traceOf(recordedLife([{ gap: { ms: 20_000 }, scheduledEvent: { kind: 'certificate' } }]))],
    });
  });
  afterAll(() => server.close());

  // A browser treats another port of the same host name as the same site, and another name as a different one.
  test.each(['127.0.0.1', 'localhost'])('opens at its record when followed from a page of %s', async (host) => {
    const context = await browser.newContext();
    const ownPage = await context.newPage();
    await ownPage.goto(`${server.address}#source=0&record=60&actor=supervisor`);
    await ownPage.locator('[data-actor="supervisor"][data-state-name]').waitFor();
    // The link contains no key.
    const link = ownPage.url();
    expect(link).not.toContain(new URL(server.address).pathname);
    await visiting(
      async (page) => {
        await page.setContent(`<a href="${link}" target="_blank" rel="noopener">the trace</a>`);
        const [openedPopup] = await Promise.all([page.waitForEvent('popup'), page.getByText('the trace').click()]);
        await openedPopup.locator('[data-actor="supervisor"][aria-pressed="true"]').waitFor();
        await page.getByText('the trace').evaluate((element) => element.removeAttribute('target'));
        await page.getByText('the trace').click();
        await page.locator('[data-actor="supervisor"][aria-pressed="true"]').waitFor();
        await page.reload();
        await page.locator('[data-actor="supervisor"][aria-pressed="true"]').waitFor();
      },
      { context, host },
    );
    await context.close();
  });

  test('shows no trace to a browser without access, and explains how to get access', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${new URL(server.address).origin}/#source=0&record=1`);
    await expectEventually(() => page.locator('.banner').innerText()).toMatch(/has no access: open the address/);
    expect(await page.locator('[data-actor]').count()).toBe(0);
    // A key that another server issued earlier on this port gives no access either.
    await page.evaluate(() => localStorage.setItem('chartpilot.path', 'A'.repeat(32)));
    await page.reload();
    await expectEventually(() => page.locator('.banner').innerText()).toMatch(/has no access: open the address/);
    await context.close();
  });

  test('shows its page if another site opens it, but that site can read nothing', async () => {
    const context = await browser.newContext();
    const ownPage = await context.newPage();
    await ownPage.goto(`${server.address}#record=60`);
    await ownPage.locator('[data-actor="supervisor"][data-state-name]').waitFor();
    for (const host of ['127.0.0.1', 'localhost']) {
      await visiting(
        async (page) => {
          const root = `${new URL(server.address).origin}/`;
          const pageHash = '#source=0&record=60';
          const [openedPopup, readValues] = await Promise.all([
            page.waitForEvent('popup'),
            page.evaluate((address) => (globalThis as unknown as HostileSite).readOpened(address), root + pageHash),
          ]);
          await openedPopup.locator('[data-actor="supervisor"][data-state-name]').waitFor();
          expect(readValues).toEqual([]);
          expect(await openedPopup.evaluate('window.opener')).toBeNull();
          // Tries every address of the page that this browser knows.
          expect(await page.evaluate(attack, [root, `${root}page.js`, `${root}sources.json`, server.address])).toEqual(
            [],
          );
          expect(await framed(page, root)).not.toContain('id="page"');
          expect(await submitted(page, root)).toBeGreaterThanOrEqual(400);
        },
        { context, host },
      );
    }
    await context.close();
  });
});

/** The parts of `test/browser/hostile-site.js` that this test calls. */
interface HostileSite {
  attack(targets: readonly string[]): Promise<string[]>;
  submit(target: string): void;
  frame(target: string): Promise<void>;
  open(address: string): unknown;
  readOpened(address: string): Promise<string[]>;
}

const attack = (targets: readonly string[]): Promise<string[]> =>
  (globalThis as unknown as HostileSite).attack(targets);

/** Visits a site on another port of this host, the closest to the page that a site can be. */
async function visiting(
  act: (page: Page) => Promise<void>,
  { context: givenContext, host = '127.0.0.1' }: { context?: BrowserContext; host?: string } = {},
): Promise<void> {
  const script = readFileSync(join(packageRoot(), 'test/browser/hostile-site.js'), 'utf8');
  const site = await listening(
    createServer((_, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(`<!doctype html><title>a site</title><body><script>${script}</script></body>`);
    }),
  );
  const context = givenContext ?? (await browser.newContext());
  try {
    const page = await context.newPage();
    await page.goto(site.address.replace('127.0.0.1', host));
    await act(page);
  } finally {
    if (givenContext === undefined) await context.close();
    site.server.closeAllConnections();
    site.server.close();
  }
}

/** The visible content of a frame with this address. */
async function framed(page: Page, target: string): Promise<string> {
  await page.evaluate((address) => (globalThis as unknown as HostileSite).frame(address), target);
  return page.frames().at(-1)!.content();
}

/** Status of the response to a form. */
async function submitted(page: Page, target: string): Promise<number> {
  const [response] = await Promise.all([
    page.waitForResponse((response) => response.request().method() === 'POST'),
    page.evaluate((address) => (globalThis as unknown as HostileSite).submit(address), target),
  ]);
  return response.status();
}

interface PageResponse {
  readonly status: number | undefined;
  readonly body: string;
}

async function fetchPage(address: string, options: RequestOptions = {}): Promise<PageResponse> {
  const [response] = (await once(get(address, { agent: false, ...options }), 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}

function streamAddress(): string {
  return `http://127.0.0.1:${port}/debug/trace`;
}

function authorized(): { authorization: string } {
  const token = readDebuggerToken(port);
  if (token === undefined) throw new Error(`no token for port ${port}`);
  return { authorization: `Bearer ${token}` };
}

/** Addresses by which other hosts reach this one. */
function otherAddresses(): string[] {
  const addresses = Object.entries(networkInterfaces()).flatMap(([name, interfaces]) =>
    (interfaces ?? []).flatMap(({ internal, address, family }) =>
      internal ? [] : [family === 'IPv6' && address.startsWith('fe80') ? `${address}%${name}` : address],
    ),
  );
  if (addresses.length === 0) throw new Error('this host has no address but loopback: nothing can be shown');
  return addresses;
}

async function canConnect(host: string, at: number): Promise<boolean> {
  const socket = connect({ host, port: at });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function listening(server: Server): Promise<{ server: Server; address: string }> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

/** Retries, because a busy machine draws late. */
function expectEventually<T>(read: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read);
}
