/** Bundles of endpoints that serve what they should, and of such as mean harm: over real TLS. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BundleAnswer } from '../../../machines/discovery/bundles/trust-bundle.machine.ts';
import { readCertificate } from '../../identity/certificate.ts';
import { issueLeaf, issueRoot } from '../../identity/issue.ts';
import { pemOf } from '../../identity/pem.ts';
import type { MeshRoots } from '../../model/mesh/mesh-config.ts';
import { BundleEndpoints } from './bundle-endpoints.ts';

const day = 86_400_000;
const life = (from: number, until: number) => ({
  notBefore: new Date(Date.now() + from * day),
  notAfter: new Date(Date.now() + until * day),
});
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const rootOf = (commonName: string, privateKey = newKey(), lifetime = life(-1, 1)): Uint8Array =>
  issueRoot(privateKey, { organization: 'test', commonName }, lifetime);

/** The name in the endpoint's own certificate; nothing of it may count for workloads. */
const webKey = newKey();
const web = rootOf('web', webKey);
const serverKey = newKey();
const serverNames = { uris: [], dns: [], ips: ['127.0.0.1'] };
const issuer = { certificate: readCertificate(web), privateKey: webKey };
const serverCertificate = issueLeaf(issuer, createPublicKey(serverKey), serverNames, life(-1, 1));

const one = rootOf('one');
const two = rootOf('two');
const bundleOf = (...roots: Uint8Array[]): string =>
  JSON.stringify({
    keys: roots.map((der) => ({ kty: 'EC', use: 'x509-svid', x5c: [Buffer.from(der).toString('base64')] })),
    spiffe_sequence: 1,
    spiffe_refresh_hint: 60,
  });

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

let answer: Answer;
let asked: string[];
let server: Server;
let url: string;
let directory: string;
/** Of a question; shorter where a test wants it to pass. */
let timeoutMs: number;

beforeEach(async () => {
  answer = (response) => response.end(bundleOf(one));
  asked = [];
  timeoutMs = 10_000;
  const key = serverKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  server = createServer({ key, cert: pemOf('CERTIFICATE', serverCertificate) }, (request, response) => {
    asked.push(request.url ?? '');
    response.on('error', () => {});
    answer(response, request);
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

function endpointsOf(caCertificates: () => readonly MeshRoots[], more: { ca?: string } = {}) {
  const told: string[] = [];
  const endpoints = new BundleEndpoints({
    mesh: () => ({ caCertificates: caCertificates(), trustDomain: 'shop.test', trustDomainAliases: ['old.test'] }),
    directory,
    logger: { warn: (event) => void told.push(event) },
    now: () => new Date(),
    ca: pemOf('CERTIFICATE', web),
    get timeoutMs() {
      return timeoutMs;
    },
    ...more,
  });
  return { endpoints, told };
}

const own = (spiffeBundleUrl = url): MeshRoots => ({ spiffeBundleUrl, trustDomains: [] });

/** As the chart does with what is new. */
async function fetched({ endpoints }: ReturnType<typeof endpointsOf>, signal = stay): Promise<BundleAnswer> {
  const [input] = endpoints.find();
  const got = await endpoints.fetch(input!, signal);
  if (got.outcome === 'fetched') endpoints.adopt(input!.endpoint, got.version);
  return got;
}

const rootsOf = ({ endpoints }: ReturnType<typeof endpointsOf>, of = url): (string | undefined)[] =>
  endpoints.rootsOf(of).map(({ x509 }) => x509.subject?.split('\n').at(-1));

describe('an endpoint', () => {
  it('is one that the mesh configuration names, for the mesh’s own trust domain or an alias of it', () => {
    const of = (...trustDomains: string[]): MeshRoots => ({
      spiffeBundleUrl: `https://${trustDomains[0]}/a`,
      trustDomains,
    });
    const { endpoints } = endpointsOf(() => [
      { pem: 'x', trustDomains: [] },
      of('old.test', 'bank.test'),
      of('bank.test'),
      { spiffeBundleUrl: 'https://old.test/a', trustDomains: ['shop.test'] },
      own('http://shop.test/plaintext'),
      own('https://me:secret@shop.test/a'),
      own('nonsense'),
      own('https://shop.test/a?token=secret'),
    ]);
    expect(endpoints.find()).toEqual([
      { endpoint: 'https://old.test/a', trustDomains: ['old.test', 'shop.test'] },
      { endpoint: expect.stringMatching(/^https:\/\/shop\.test\/a \([0-9a-f]{8}\)$/), trustDomains: ['shop.test'] },
    ]);
  });

  it('that answers with another protocol has failed, and is not waited for', async () => {
    answer = ({ socket }) => {
      socket?.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
    };
    timeoutMs = 5_000;
    const got = await fetched(endpointsOf(() => [own()]));
    expect(got).toEqual({
      outcome: 'failed',
      reason: expect.stringMatching(/protocol.* \[TRUST_BUNDLE_UNAVAILABLE\]$/),
    });
  });

  it('has its roots trusted once they are adopted, and says when it would be asked again', async () => {
    const given = endpointsOf(() => [own()]);
    const [input] = given.endpoints.find();
    const got = await given.endpoints.fetch(input!, stay);
    expect(got).toMatchObject({ outcome: 'fetched', sequence: 1, refreshMs: 60_000 });
    expect(rootsOf(given)).toEqual([]);
    given.endpoints.adopt(input!.endpoint, 'another version');
    expect(rootsOf(given)).toEqual([]);
    given.endpoints.adopt(input!.endpoint, (got as { version: string }).version);
    expect(rootsOf(given)).toEqual(['CN=one']);
  });

  it('is known by the set of its roots: in another order they are no other version', async () => {
    const given = endpointsOf(() => [own()]);
    answer = (response) => response.end(bundleOf(one, two));
    const before = await fetched(given);
    answer = (response) => response.end(bundleOf(two, one, two));
    expect(await fetched(given)).toEqual(before);
  });

  it('may say that its bundle is at another address, which counts for this one answer', async () => {
    const given = endpointsOf(() => [own()]);
    answer = (response, { url: path }) =>
      path === '/bundle' ? response.writeHead(307, { location: '/elsewhere' }).end() : response.end(bundleOf(two));
    expect(await fetched(given)).toMatchObject({ outcome: 'fetched' });
    await fetched(given);
    expect(asked).toEqual(['/bundle', '/elsewhere', '/bundle', '/elsewhere']);
  });
});

const silence = /within 300 ms \[TRUST_BUNDLE_UNAVAILABLE\]$/;

/** What is served, and what is said of it. In none of the cases anything changes, on the disk neither. */
const hostile: readonly (readonly [string, Answer, RegExp])[] = [
  ['a huge answer', (response) => endless(response), /exceeds 1048576 bytes/],
  ['an answer that never begins', () => {}, silence],
  ['an answer that never ends', (response) => void response.write('{"keys":['), silence],
  ['a byte now and then', (response) => drop(response), silence],
  ['half of an answer', (response) => half(response), /aborted|socket hang up|ECONNRESET/],
  ['another type', (response) => response.setHeader('content-type', 'text/html').end('<html>'), /not JSON$/],
  ['no keys', (response) => response.end('{"keys":[]}'), /no key with use x509-svid/],
  ['keys for tokens alone', (response) => response.end('{"keys":[{"kty":"EC","use":"jwt-svid"}]}'), /x509-svid/],
  [
    'roots that ended',
    (response) => response.end(bundleOf(rootOf('old', newKey(), life(-2, -1)))),
    /CN=old expired on/,
  ],
  ['a certificate of no authority', (response) => response.end(bundleOf(serverCertificate)), /is not a CA certificate/],
  ['a status of its own', (response) => response.writeHead(500).end(bundleOf(two)), /HTTP status 500/],
  ['nothing new', (response) => response.writeHead(304).end(), /HTTP status 304/],
  ['what unpacks to more', (response) => response.setHeader('content-encoding', 'gzip').end('x'), /compressed/],
  [
    'another place, in the clear',
    (response) => moved(response, 'http://127.0.0.1:1/'),
    /redirect must begin with https:/,
  ],
  [
    'another place, with a password',
    (response) => moved(response, 'https://a:b@127.0.0.1:1/'),
    /redirect must not have a user or password/,
  ],
  ['a file', (response) => moved(response, 'file:///etc/passwd'), /redirect must begin with https:/],
  ['itself, again and again', (response) => moved(response, '/bundle'), /more than 3 redirects/],
  ['nowhere', (response) => response.writeHead(302).end(), /without a valid location/],
  ['somebody who is not there', (response) => moved(response, 'https://127.0.0.1:1/'), /ECONNREFUSED/],
  [
    'another host, which is a name of this one',
    (response) => moved(response, url.replace('127.0.0.1', 'localhost')),
    /localhost resolves to \S+, which is a loopback address/,
  ],
];

describe('an endpoint that means harm', () => {
  it.each(hostile)('serves %s: the last good roots stay', async (_, serve, reason) => {
    const given = endpointsOf(() => [own()]);
    expect(await fetched(given)).toMatchObject({ outcome: 'fetched' });
    answer = serve;
    if (reason === silence) timeoutMs = 300;
    const got = await fetched(given);
    expect(got).toMatchObject({ outcome: 'failed', reason: expect.stringMatching(reason) });
    expect(rootsOf(given)).toEqual(['CN=one']);
    const after = endpointsOf(() => [own()]);
    const [input] = after.endpoints.find();
    expect(await after.endpoints.recall(input!)).toMatchObject({ outcome: 'fetched' });
  });

  it.each(hostile)('serves %s from the beginning: nothing is trusted', async (_, serve, reason) => {
    const given = endpointsOf(() => [own()]);
    answer = serve;
    if (reason === silence) timeoutMs = 300;
    expect(await fetched(given)).toMatchObject({ outcome: 'failed' });
    expect(rootsOf(given)).toEqual([]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is nobody when its certificate is not one that is known: the mesh’s own roots are no proof of a host', async () => {
    const given = endpointsOf(() => [own()], { ca: pemOf('CERTIFICATE', one) });
    expect(await fetched(given)).toMatchObject({ outcome: 'failed', reason: expect.stringMatching(/certificate/) });
    expect(asked).toEqual([]);
  });

  it('is not asked on when nobody asks any more', async () => {
    const given = endpointsOf(() => [own()]);
    answer = () => {};
    const gone = new AbortController();
    const pending = fetched(given, gone.signal);
    gone.abort();
    expect(await pending).toMatchObject({ outcome: 'failed' });
    expect(rootsOf(given)).toEqual([]);
  });
});

describe('what was fetched', () => {
  it('counts after a restart until the endpoint answers, in a file that nobody else may write', async () => {
    await fetched(endpointsOf(() => [own()]));
    const [file] = readdirSync(directory);
    expect(statSync(join(directory, file!)).mode & 0o777).toBe(0o600);
    const after = endpointsOf(() => [own()]);
    const [input] = after.endpoints.find();
    const got = await after.endpoints.recall(input!);
    after.endpoints.adopt(input!.endpoint, (got as { version: string }).version);
    expect(rootsOf(after)).toEqual(['CN=one']);
  });

  it.each([
    ['damaged', '{"keys":'],
    ['of roots that have ended since', bundleOf(rootOf('old', newKey(), life(-2, -1)))],
    ['too long', ' '.repeat(1_100_000)],
  ])('counts no more when what was kept is %s', async (_, text) => {
    await fetched(endpointsOf(() => [own()]));
    writeFileSync(join(directory, readdirSync(directory)[0]!), text);
    const { endpoints } = endpointsOf(() => [own()]);
    const [input] = endpoints.find();
    expect(await endpoints.recall(input!)).toMatchObject({ outcome: 'failed' });
  });

  it('is forgotten when the mesh configuration names it no more, on the disk as well', async () => {
    let named: readonly MeshRoots[] = [own()];
    const given = endpointsOf(() => named);
    await fetched(given);
    const [input] = given.endpoints.find();
    named = [];
    writeFileSync(join(directory, 'journal.json'), 'of the authority');
    expect(given.endpoints.find()).toEqual([]);
    expect(rootsOf(given)).toEqual([]);
    expect(readdirSync(directory)).toEqual(['journal.json']);
    expect(await given.endpoints.fetch(input!, stay)).toMatchObject({
      reason: 'the mesh configuration no longer has this endpoint',
    });
  });

  it('is what is in force, and not an older one that was kept, when its roots are to count for others', async () => {
    let named: readonly MeshRoots[] = [own()];
    const given = endpointsOf(() => named);
    await fetched(given);
    // From now on nothing can be kept: what is on the disk stays the first one.
    mkdirSync(join(directory, `${readdirSync(directory)[0]}.new`));
    answer = (response) => response.end(bundleOf(two));
    await fetched(given);
    named = [{ spiffeBundleUrl: url, trustDomains: ['old.test'] }];
    const [input] = given.endpoints.find();
    const recalled = await given.endpoints.recall(input!);
    given.endpoints.adopt(input!.endpoint, (recalled as { version: string }).version);
    expect(rootsOf(given)).toEqual(['CN=two']);
  });

  it('is in force also where it cannot be kept, and that is told', async () => {
    const given = endpointsOf(() => [own()]);
    rmSync(directory, { recursive: true });
    writeFileSync(directory, 'in the way');
    await fetched(given);
    expect(rootsOf(given)).toEqual(['CN=one']);
    expect(given.told).toEqual(['trust-bundle.notSaved']);
  });
});

function endless(response: ServerResponse): void {
  const piece = Buffer.alloc(64 * 1024, ' ');
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', more);
  more();
}

function drop(response: ServerResponse): void {
  const timer = setInterval(() => response.write(' '), 20);
  response.on('close', () => clearInterval(timer));
}

function half(response: ServerResponse): void {
  response.setHeader('content-length', 1_000);
  response.write('{"keys":[');
  setTimeout(() => response.destroy(), 20);
}

function moved(response: ServerResponse, location: string): void {
  response.writeHead(302, { location }).end();
}
