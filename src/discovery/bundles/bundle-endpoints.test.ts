/** Tests valid and hostile bundle endpoints over real TLS. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BundleResponse } from '../../../machines/discovery/bundles/trust-bundle.machine.ts';
import { readCertificate } from '../../identity/certificate.ts';
import { issueLeaf, issueRoot } from '../../identity/issue.ts';
import { pemOf } from '../../identity/pem.ts';
import type { MeshRoots } from '../../model/mesh/mesh-config.ts';
import { BundleEndpoints } from './bundle-endpoints.ts';

const day = 86_400_000;
const life = (from: number, untilMs: number) => ({
  notBefore: new Date(Date.now() + from * day),
  notAfter: new Date(Date.now() + untilMs * day),
});
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const rootOf = (commonName: string, privateKey = newKey(), lifetime = life(-1, 1)): Uint8Array =>
  issueRoot(privateKey, { organization: 'test', commonName }, lifetime);

/** Issuer of the endpoint's certificate, which must not be trusted for workloads. */
const webKey = newKey();
const web = rootOf('web', webKey);
const serverKey = newKey();
const serverNames = { uris: [], dns: [], ips: ['127.0.0.1'] };
const issuer = { certificate: readCertificate(web), privateKey: webKey };
const serverCertificate = issueLeaf(issuer, createPublicKey(serverKey), serverNames, life(-1, 1));

const one = rootOf('one');
const secondRoot = rootOf('two');
const bundleOf = (...roots: Uint8Array[]): string =>
  JSON.stringify({
    keys: roots.map((der) => ({ kty: 'EC', use: 'x509-svid', x5c: [Buffer.from(der).toString('base64')] })),
    spiffe_sequence: 1,
    spiffe_refresh_hint: 60,
  });

type Respond = (response: ServerResponse, request: IncomingMessage) => void;

let respond: Respond;
let requested: string[];
let server: Server;
let url: string;
let directory: string;
/** Timeout of a request. Some tests shorten it. */
let timeoutMs: number;

beforeEach(async () => {
  respond = (response) => response.end(bundleOf(one));
  requested = [];
  timeoutMs = 10_000;
  const key = serverKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  server = createServer({ key, cert: pemOf('CERTIFICATE', serverCertificate) }, (request, response) => {
    requested.push(request.url ?? '');
    response.on('error', () => {});
    respond(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/bundle`;
  directory = mkdtempSync(join(tmpdir(), 'bundles-'));
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(directory, { recursive: true });
});

const stay = new AbortController().signal;

function endpointsOf(caCertificates: () => readonly MeshRoots[], options: { ca?: string } = {}) {
  const loggedEvents: string[] = [];
  const endpoints = new BundleEndpoints({
    mesh: () => ({ caCertificates: caCertificates(), trustDomain: 'shop.test', trustDomainAliases: ['old.test'] }),
    directory,
    logger: { warn: (event) => void loggedEvents.push(event) },
    now: () => new Date(),
    ca: pemOf('CERTIFICATE', web),
    get timeoutMs() {
      return timeoutMs;
    },
    ...options,
  });
  return { endpoints, logged: loggedEvents };
}

const meshRootsAt = (spiffeBundleUrl = url): MeshRoots => ({ spiffeBundleUrl, trustDomains: [] });

/** Fetches and adopts a bundle, like the chart. */
async function fetchBundle({ endpoints }: ReturnType<typeof endpointsOf>, signal = stay): Promise<BundleResponse> {
  const [input] = endpoints.find();
  const response = await endpoints.fetch(input!, signal);
  if (response.outcome === 'fetched') endpoints.setActive(input!.endpoint, response.version);
  return response;
}

const rootsOf = ({ endpoints }: ReturnType<typeof endpointsOf>, of = url): (string | undefined)[] =>
  endpoints.rootsOf(of).map(({ x509 }) => x509.subject?.split('\n').at(-1));

describe('a bundle endpoint', () => {
  it("is fetched if the mesh configuration specifies it for the mesh's trust domain or an alias", () => {
    const of = (...trustDomains: string[]): MeshRoots => ({
      spiffeBundleUrl: `https://${trustDomains[0]}/a`,
      trustDomains,
    });
    const { endpoints } = endpointsOf(() => [
      { pem: 'x', trustDomains: [] },
      of('old.test', 'bank.test'),
      of('bank.test'),
      { spiffeBundleUrl: 'https://old.test/a', trustDomains: ['shop.test'] },
      meshRootsAt('http://shop.test/plaintext'),
      meshRootsAt('https://me:secret@shop.test/a'),
      meshRootsAt('nonsense'),
      meshRootsAt('https://shop.test/a?token=secret'),
    ]);
    expect(endpoints.find()).toEqual([
      { endpoint: 'https://old.test/a', trustDomains: ['old.test', 'shop.test'] },
      { endpoint: expect.stringMatching(/^https:\/\/shop\.test\/a \([0-9a-f]{8}\)$/), trustDomains: ['shop.test'] },
    ]);
  });

  it('fails immediately if it switches protocols, without waiting for the timeout', async () => {
    respond = ({ socket }) => {
      socket?.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
    };
    timeoutMs = 5_000;
    const response = await fetchBundle(endpointsOf(() => [meshRootsAt()]));
    expect(response).toEqual({
      outcome: 'failed',
      reason: expect.stringMatching(/protocol.* \[TRUST_BUNDLE_UNAVAILABLE\]$/),
    });
  });

  it('returns a refresh interval and roots, which become trusted when the bundle is adopted', async () => {
    const bundles = endpointsOf(() => [meshRootsAt()]);
    const [input] = bundles.endpoints.find();
    const response = await bundles.endpoints.fetch(input!, stay);
    expect(response).toMatchObject({ outcome: 'fetched', sequence: 1, refreshMs: 60_000 });
    expect(rootsOf(bundles)).toEqual([]);
    bundles.endpoints.setActive(input!.endpoint, 'another version');
    expect(rootsOf(bundles)).toEqual([]);
    bundles.endpoints.setActive(input!.endpoint, (response as { version: string }).version);
    expect(rootsOf(bundles)).toEqual(['CN=one']);
  });

  it('has a version that depends on the set of its roots, not on their order', async () => {
    const bundles = endpointsOf(() => [meshRootsAt()]);
    respond = (response) => response.end(bundleOf(one, secondRoot));
    const previous = await fetchBundle(bundles);
    respond = (response) => response.end(bundleOf(secondRoot, one, secondRoot));
    expect(await fetchBundle(bundles)).toEqual(previous);
  });

  it('is requested again for each fetch, even if it redirected the previous one', async () => {
    const bundles = endpointsOf(() => [meshRootsAt()]);
    respond = (response, { url: path }) =>
      path === '/bundle'
        ? response.writeHead(307, { location: '/elsewhere' }).end()
        : response.end(bundleOf(secondRoot));
    expect(await fetchBundle(bundles)).toMatchObject({ outcome: 'fetched' });
    await fetchBundle(bundles);
    expect(requested).toEqual(['/bundle', '/elsewhere', '/bundle', '/elsewhere']);
  });
});

const silence = /within 300 ms \[TRUST_BUNDLE_UNAVAILABLE\]$/;

/** Name, response and expected error. None of these cases may change roots or files. */
const hostile: readonly (readonly [string, Respond, RegExp])[] = [
  ['a response above the size limit', (response) => endless(response), /exceeds 1048576 bytes/],
  ['no response', () => {}, silence],
  ['an unfinished response', (response) => void response.write('{"keys":['), silence],
  ['a response that arrives one byte at a time', (response) => drop(response), silence],
  ['a truncated response', (response) => sendHalf(response), /aborted|socket hang up|ECONNRESET/],
  [
    'a content type other than JSON',
    (response) => response.setHeader('content-type', 'text/html').end('<html>'),
    /not JSON$/,
  ],
  ['a bundle without keys', (response) => response.end('{"keys":[]}'), /no key with use x509-svid/],
  [
    'a bundle that only contains keys for JWTs',
    (response) => response.end('{"keys":[{"kty":"EC","use":"jwt-svid"}]}'),
    /x509-svid/,
  ],
  ['an expired root', (response) => response.end(bundleOf(rootOf('old', newKey(), life(-2, -1)))), /CN=old expired on/],
  [
    'a certificate that is not a CA certificate',
    (response) => response.end(bundleOf(serverCertificate)),
    /is not a CA certificate/,
  ],
  ['status 500 and a valid body', (response) => response.writeHead(500).end(bundleOf(secondRoot)), /HTTP status 500/],
  ['status 304', (response) => response.writeHead(304).end(), /HTTP status 304/],
  ['a compressed response', (response) => response.setHeader('content-encoding', 'gzip').end('x'), /compressed/],
  [
    'a redirect to a plaintext URL',
    (response) => redirectTo(response, 'http://127.0.0.1:1/'),
    /redirect must begin with https:/,
  ],
  [
    'a redirect to a URL with credentials',
    (response) => redirectTo(response, 'https://a:b@127.0.0.1:1/'),
    /redirect must not have a user or password/,
  ],
  [
    'a redirect to a file URL',
    (response) => redirectTo(response, 'file:///etc/passwd'),
    /redirect must begin with https:/,
  ],
  ['a redirect loop', (response) => redirectTo(response, '/bundle'), /more than 3 redirects/],
  ['a redirect without location', (response) => response.writeHead(302).end(), /without a valid location/],
  ['a redirect to a port without listener', (response) => redirectTo(response, 'https://127.0.0.1:1/'), /ECONNREFUSED/],
  [
    'a redirect to a host name that resolves to loopback',
    (response) => redirectTo(response, url.replace('127.0.0.1', 'localhost')),
    /localhost resolves to \S+, which is a loopback address/,
  ],
];

describe('a hostile bundle endpoint', () => {
  it.each(hostile)('keeps its last valid roots after a fetch fails because of %s', async (_, serve, reason) => {
    const bundles = endpointsOf(() => [meshRootsAt()]);
    expect(await fetchBundle(bundles)).toMatchObject({ outcome: 'fetched' });
    respond = serve;
    if (reason === silence) timeoutMs = 300;
    const response = await fetchBundle(bundles);
    expect(response).toMatchObject({ outcome: 'failed', reason: expect.stringMatching(reason) });
    expect(rootsOf(bundles)).toEqual(['CN=one']);
    const restarted = endpointsOf(() => [meshRootsAt()]);
    const [input] = restarted.endpoints.find();
    expect(await restarted.endpoints.restoreSavedBundle(input!)).toMatchObject({ outcome: 'fetched' });
  });

  it.each(hostile)('has no trusted roots if its first fetch fails because of %s', async (_, serve, reason) => {
    const bundles = endpointsOf(() => [meshRootsAt()]);
    respond = serve;
    if (reason === silence) timeoutMs = 300;
    expect(await fetchBundle(bundles)).toMatchObject({ outcome: 'failed' });
    expect(rootsOf(bundles)).toEqual([]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is rejected if its certificate is signed by an unknown CA', async () => {
    const bundles = endpointsOf(() => [meshRootsAt()], { ca: pemOf('CERTIFICATE', one) });
    expect(await fetchBundle(bundles)).toMatchObject({
      outcome: 'failed',
      reason: expect.stringMatching(/certificate/),
    });
    expect(requested).toEqual([]);
  });

  it('is disconnected when the fetch is aborted', async () => {
    const bundles = endpointsOf(() => [meshRootsAt()]);
    respond = () => {};
    const aborted = new AbortController();
    const pending = fetchBundle(bundles, aborted.signal);
    aborted.abort();
    expect(await pending).toMatchObject({ outcome: 'failed' });
    expect(rootsOf(bundles)).toEqual([]);
  });
});

describe('a fetched bundle', () => {
  it('remains trusted after a restart until the endpoint responds, from a file that only its owner can write', async () => {
    await fetchBundle(endpointsOf(() => [meshRootsAt()]));
    const [file] = readdirSync(directory);
    expect(statSync(join(directory, file!)).mode & 0o777).toBe(0o600);
    const restarted = endpointsOf(() => [meshRootsAt()]);
    const [input] = restarted.endpoints.find();
    const response = await restarted.endpoints.restoreSavedBundle(input!);
    restarted.endpoints.setActive(input!.endpoint, (response as { version: string }).version);
    expect(rootsOf(restarted)).toEqual(['CN=one']);
  });

  it.each([
    ['damaged', '{"keys":'],
    ['a bundle of expired roots', bundleOf(rootOf('old', newKey(), life(-2, -1)))],
    ['too large', ' '.repeat(1_100_000)],
  ])('is ignored if the saved file is %s', async (_, text) => {
    await fetchBundle(endpointsOf(() => [meshRootsAt()]));
    writeFileSync(join(directory, readdirSync(directory)[0]!), text);
    const { endpoints } = endpointsOf(() => [meshRootsAt()]);
    const [input] = endpoints.find();
    expect(await endpoints.restoreSavedBundle(input!)).toMatchObject({ outcome: 'failed' });
  });

  it('is removed together with its file when its endpoint is removed from the mesh configuration', async () => {
    let meshRoots: readonly MeshRoots[] = [meshRootsAt()];
    const bundles = endpointsOf(() => meshRoots);
    await fetchBundle(bundles);
    const [input] = bundles.endpoints.find();
    meshRoots = [];
    writeFileSync(join(directory, 'journal.json'), 'of the authority');
    expect(bundles.endpoints.find()).toEqual([]);
    expect(rootsOf(bundles)).toEqual([]);
    expect(readdirSync(directory)).toEqual(['journal.json']);
    expect(await bundles.endpoints.fetch(input!, stay)).toMatchObject({
      reason: 'the mesh configuration no longer has this endpoint',
    });
  });

  it('is taken from memory, not from an older file, when its trust domains change', async () => {
    let meshRoots: readonly MeshRoots[] = [meshRootsAt()];
    const bundles = endpointsOf(() => meshRoots);
    await fetchBundle(bundles);
    // A directory with the name of the temporary file prevents saving later bundles, so the file keeps the first one.
    mkdirSync(join(directory, `${readdirSync(directory)[0]}.new`));
    respond = (response) => response.end(bundleOf(secondRoot));
    await fetchBundle(bundles);
    meshRoots = [{ spiffeBundleUrl: url, trustDomains: ['old.test'] }];
    const [input] = bundles.endpoints.find();
    const recalled = await bundles.endpoints.restoreSavedBundle(input!);
    bundles.endpoints.setActive(input!.endpoint, (recalled as { version: string }).version);
    expect(rootsOf(bundles)).toEqual(['CN=two']);
  });

  it('applies even if it cannot be saved, and logs the failure', async () => {
    const bundles = endpointsOf(() => [meshRootsAt()]);
    rmSync(directory, { recursive: true });
    writeFileSync(directory, 'in the way');
    await fetchBundle(bundles);
    expect(rootsOf(bundles)).toEqual(['CN=one']);
    expect(bundles.logged).toEqual(['trust-bundle.notSaved']);
  });
});

function endless(response: ServerResponse): void {
  const chunk = Buffer.alloc(64 * 1024, ' ');
  const writeUntilFull = (): void => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on('drain', writeUntilFull);
  writeUntilFull();
}

function drop(response: ServerResponse): void {
  const timer = setInterval(() => response.write(' '), 20);
  response.on('close', () => clearInterval(timer));
}

function sendHalf(response: ServerResponse): void {
  response.setHeader('content-length', 1_000);
  response.write('{"keys":[');
  setTimeout(() => response.destroy(), 20);
}

function redirectTo(response: ServerResponse, location: string): void {
  response.writeHead(302, { location }).end();
}
