/** A tenant's server and resolver attack a program with pages on its loopback address. */
import type { LookupAddress } from 'node:dns';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BlockedAddresses } from './blocked-addresses.ts';
import { boundedText } from './bounded-text.ts';
import { guardedFetch, type Lookup } from './guarded-fetch.ts';

/**
 * 127.0.0.2, the address of the tenant's server, represents an address of the network. The program's pages have
 * 127.0.0.1.
 */
const blocked = new BlockedAddresses({ allowed: ['127.0.0.2'] });
let server: Server;
let port = 0;
/** Host and path of every received request. */
let receivedRequests: string[] = [];
let respond: (path: string, response: ServerResponse) => void;

beforeEach(async () => {
  receivedRequests = [];
  respond = (_, response) => void response.end('keys');
  server = createServer((request, response) => {
    const { url = '', socket } = request;
    receivedRequests.push(`${socket.localAddress}${url}`);
    respond(url, response);
  });
  // All loopback addresses, so that the tenant's port equals the port of the program's pages.
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  port = (server.address() as AddressInfo).port;
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Resolves every name to these lists of addresses in order, then always to the last. */
function resolvingTo(...resolved: string[][]): Lookup & { count: number } {
  const lookup = (_name: string, _options: object, callback: (error: null, all: LookupAddress[]) => void): void => {
    const addresses = resolved[Math.min(countingLookup.count++, resolved.length - 1)]!;
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  const countingLookup = Object.assign(lookup, { count: 0 });
  return countingLookup;
}

const init = () => ({ signal: AbortSignal.timeout(10_000), headers: {} });

async function get(url: string, lookup?: Lookup, trustedHost?: string): Promise<string> {
  const options = { ...(lookup && { lookup }), ...(trustedHost && { trustedHost }) };
  const { body } = await guardedFetch(blocked, options)(url.replace('PORT', String(port)), init());
  return boundedText(body ?? [], 1_000);
}

describe("the fetch of a tenant's URL", () => {
  it('connects to an address of the network, by address or by name', async () => {
    expect(await get('http://127.0.0.2:PORT/keys')).toBe('keys');
    expect(await get('http://idp.tenant.test:PORT/keys', resolvingTo(['127.0.0.2']))).toBe('keys');
  });

  it.each([
    ...['http://127.0.0.1:PORT/', 'http://localhost:PORT/', 'http://0.0.0.0:PORT/', 'http://2130706433:PORT/'],
    ...[
      'http://0x7f.1:PORT/',
      'http://017700000001:PORT/',
      'http://127.1:PORT/',
      'http://[::1]:PORT/',
      'http://[::]:PORT/',
    ],
    ...['http://[::ffff:127.0.0.1]:PORT/', 'http://[64:ff9b::7f00:1]:PORT/', 'http://169.254.169.254/latest/meta-data'],
    ...['http://a@127.0.0.1:PORT/', 'http://127.0.0.1.:PORT/', 'http://\uff11\uff12\uff17.0.0.1:PORT/'],
  ])('does not connect to this host by %s', async (url) => {
    await expect(get(url)).rejects.toThrow(
      /is a (loopback|unspecified|link-local) address|which is a loopback address/,
    );
    expect(receivedRequests).toEqual([]);
  });

  it.each([
    ['an address of this host', ['127.0.0.1']],
    ['an IPv6 address of this host', ['::1']],
    ['a metadata service', ['169.254.169.254']],
    ['a permitted address that is resolved together with an address of this host', ['127.0.0.2', '127.0.0.1']],
  ])('does not connect to %s by a host name', async (_, addresses) => {
    await expect(get('http://idp.tenant.test:PORT/', resolvingTo(addresses))).rejects.toThrow(
      /^host idp\.tenant\.test resolves to \S+, which is a/,
    );
    expect(receivedRequests).toEqual([]);
  });

  it('connects to the address that was checked even if the name resolves to another one afterwards', async () => {
    const lookup = resolvingTo(['127.0.0.2'], ['127.0.0.1']);
    await get('http://rebinding.tenant.test:PORT/keys', lookup);
    expect(lookup.count).toBe(1);
    expect(receivedRequests).toEqual(['127.0.0.2/keys']);
  });
});

describe('the fetch of a redirected URL', () => {
  const redirectTo = (location: string) => {
    respond = (path, response) => {
      if (path === '/begin') response.writeHead(302, { location: location.replace('PORT', String(port)) }).end();
      else response.end('secret');
    };
  };

  it.each([
    ...[
      'http://127.0.0.1:PORT/debug/pprof/heap',
      'http://localhost:PORT/x',
      '//127.0.0.1:PORT/x',
      'http://[::1]:PORT/x',
    ],
    'http://169.254.169.254/x',
  ])('does not follow a redirect to %s', async (location) => {
    redirectTo(location);
    await expect(get('http://127.0.0.2:PORT/begin')).rejects.toThrow(/is a (loopback|link-local)|which is a loopback/);
    expect(receivedRequests).toEqual(['127.0.0.2/begin']);
  });

  it('resolves the host of the redirect again and checks the address', async () => {
    redirectTo('http://idp.tenant.test:PORT/x');
    const lookup = resolvingTo(['127.0.0.2'], ['127.0.0.1']);
    await expect(get('http://idp.tenant.test:PORT/begin', lookup)).rejects.toThrow('which is a loopback address');
    expect(receivedRequests).toEqual(['127.0.0.2/begin']);
  });

  it('checks a redirect of a host that the operator configured', async () => {
    redirectTo('http://127.0.0.3:PORT/x');
    await expect(get('http://127.0.0.1:PORT/begin', undefined, '127.0.0.1')).rejects.toThrow('loopback address');
    expect(receivedRequests).toEqual(['127.0.0.1/begin']);
  });

  it.each([
    ['file:///etc/passwd', /redirect must use https or http, got file$/],
    ['http://[', /redirect without a valid location/],
    ['/begin', /more than 3 redirects/],
  ])('fails at a redirect to %s', async (location, reason) => {
    redirectTo(location);
    await expect(get('http://127.0.0.2:PORT/begin')).rejects.toThrow(reason);
  });

  it('follows a redirect to the same host', async () => {
    redirectTo('/end');
    expect(await get('http://127.0.0.2:PORT/begin')).toBe('secret');
  });
});

it('the guarded fetch rejects a compressed response', async () => {
  respond = (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end('x');
  await expect(get('http://127.0.0.2:PORT/')).rejects.toThrow('compressed');
});
