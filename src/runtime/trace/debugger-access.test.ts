import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { recordingLog } from '../../../test/harness/recording-log.ts';
import { type Caller, DebuggerAccess } from './debugger-access.ts';
import { readDebuggerToken } from './debugger-token.ts';

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-access-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const port = 15_020;

/** An access whose port is open, and its token. */
function openAccess(runDir = temporaryFolder()): { access: DebuggerAccess; token: string; file: string } {
  const access = new DebuggerAccess({ runDir });
  access.onPortOpened(port);
  const file = join(runDir, `debugger-${port}.token`);
  return { access, token: readFileSync(file, 'utf8').trim(), file };
}

/** A process on this host, unless the test overrides it. */
function caller(headers: Caller['headers'] = {}, peer: Caller['peer'] = {}): Caller {
  return {
    method: 'GET',
    headers: { host: 'localhost:15020', ...headers },
    peer: { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1', ...peer },
  };
}

describe('the access to a debug page without a token', () => {
  const access = new DebuggerAccess({ runDir: '/proc/nowhere' });
  const noTokenOptions = { needsToken: false };

  test.each([
    ['by name', { host: 'localhost' }, {}],
    ['by name, whatever its case', { host: 'LocalHost:1' }, {}],
    ['by IPv4 address', { host: '127.0.0.1:15020' }, {}],
    ['by IPv6 address', { host: '[::1]:15020' }, { remoteAddress: '::1', localAddress: '::1' }],
    ['at a socket for both families', {}, { remoteAddress: '::ffff:127.0.0.1', localAddress: '::ffff:127.0.0.1' }],
    ['from the address bar of a browser', { 'sec-fetch-site': 'none' }, {}],
    ['from a page of the same origin', { 'sec-fetch-site': 'same-origin' }, {}],
  ])('is granted to a caller on this host: %s', (_, headers, peer) => {
    expect(access.refusalOf(caller(headers, peer), noTokenOptions)).toBeUndefined();
  });

  test.each([
    ['another host', {}, { remoteAddress: '192.0.2.7', localAddress: '192.0.2.1' }, /from this host only/],
    ['this host by its outer address', {}, { remoteAddress: '192.0.2.1', localAddress: '192.0.2.1' }, /loopback/],
    ['a request from outside through Envoy', {}, { remoteAddress: '127.0.0.6', localAddress: '10.0.0.1' }, /loopback/],
    ['an address that only begins like loopback', {}, { remoteAddress: '::ffff:1271.0.0.1' }, /loopback/],
    ['a closed connection', {}, { remoteAddress: undefined }, /loopback/],
    ['a foreign name', { host: 'evil.example:15020' }, {}, /names localhost/],
    ['a foreign name that begins with localhost', { host: 'localhost.evil.example' }, {}, /names localhost/],
    ['a name with user information', { host: 'localhost:1@evil.example' }, {}, /names localhost/],
    ['no name', { host: undefined }, {}, /names localhost/],
    ['a page of another web site', { origin: 'https://evil.example' }, {}, /web site/],
    ['a page of another port', { origin: 'http://localhost:3000' }, {}, /web site/],
    ['a page that hides its origin', { origin: 'null' }, {}, /web site/],
    ['an image on another web site', { 'sec-fetch-site': 'cross-site' }, {}, /web site/],
    ['a page of a sibling site', { 'sec-fetch-site': 'same-site' }, {}, /web site/],
    ['a proxy', { 'x-forwarded-for': '192.0.2.7' }, {}, /proxy/],
  ])('is refused with the reason for %s', (_, headers, peer, reason) => {
    const refusal = access.refusalOf(caller(headers as Caller['headers'], peer), noTokenOptions);
    expect(refusal).toMatchObject({ status: 403, body: expect.stringMatching(reason) });
    expect(refusal?.body.trimEnd()).not.toContain('\n');
  });

  test('is refused for methods that are not read-only', () => {
    expect(access.refusalOf({ ...caller(), method: 'POST' }, noTokenOptions)).toMatchObject({ status: 405 });
  });
});

describe('the access to a debug page with a token', () => {
  test('is granted to a caller with the token, while other callers receive only the path of the token file', () => {
    const { access, token, file } = openAccess();
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(access.refusalOf(caller({ authorization: `Bearer ${token}` }))).toBeUndefined();
    const wrongHeaders = ['', `Bearer ${token.slice(1)}`, `Bearer ${token}x`, `Basic ${token}`, token, 'Bearer '];
    for (const authorization of [undefined, ...wrongHeaders]) {
      const refusal = access.refusalOf(caller({ authorization }));
      expect(refusal, authorization).toMatchObject({ status: 401, headers: { 'www-authenticate': /^Bearer/ } });
      expect(refusal?.body).toContain(file);
      expect(refusal?.body).not.toContain(token);
    }
  });

  test('is refused for a caller from another host even with the token', () => {
    const { access, token } = openAccess();
    const authorization = `Bearer ${token}`;
    expect(access.refusalOf(caller({ authorization, host: 'evil.example' }))).toMatchObject({ status: 403 });
    expect(access.refusalOf(caller({ authorization, origin: 'https://evil.example' }))?.status).toBe(403);
    expect(access.refusalOf(caller({ authorization }, { remoteAddress: '192.0.2.7' }))?.status).toBe(403);
  });

  test('needs a different token for each run', () => {
    expect(openAccess().token).not.toBe(openAccess().token);
  });
});

describe('the token file of debug pages', () => {
  test('is readable only by its owner, even if a crashed program left a file at its path', () => {
    const runDir = temporaryFolder();
    const linkTarget = join(temporaryFolder(), 'stolen');
    writeFileSync(linkTarget, '');
    const staleTokenFile = join(runDir, `debugger-${port}.token`);
    symlinkSync(linkTarget, staleTokenFile);
    symlinkSync(linkTarget, `${staleTokenFile}.${process.pid}`);
    const { token, file } = openAccess(runDir);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(linkTarget, 'utf8')).toBe('');
    expect(readDebuggerToken(port, { runDir })).toBe(token);
  });

  test('is removed at the end, unless it already belongs to the next program', () => {
    const runDir = temporaryFolder();
    const first = openAccess(runDir);
    const secondAccess = openAccess(runDir);
    first.access.removeTokenFiles();
    expect(readDebuggerToken(port, { runDir })).toBe(secondAccess.token);
    secondAccess.access.removeTokenFiles();
    expect(readDebuggerToken(port, { runDir })).toBeUndefined();
  });

  test('is written for every port', () => {
    const runDir = temporaryFolder();
    const { access, token } = openAccess(runDir);
    access.onPortOpened(8_080);
    expect(readDebuggerToken(8_080, { runDir })).toBe(token);
    access.removeTokenFiles();
    expect(readDebuggerToken(8_080, { runDir })).toBeUndefined();
  });

  test('is required for pages that need the token, and a failed write is logged', () => {
    const { log, lines } = recordingLog();
    const access = new DebuggerAccess({ runDir: '/proc/nowhere', log });
    access.onPortOpened(port);
    expect(access.refusalOf(caller())).toMatchObject({ status: 401, body: expect.stringContaining('see the log') });
    expect(lines).toMatchObject([{ event: 'debugger.tokenUnwritable', level: 'warn', port }]);
  });

  test('is found without a directory as the newest file that the current user can read', () => {
    const unused = 1;
    const ownDirectory = join(tmpdir(), `chartpilot-${process.getuid!()}`);
    mkdirSync(ownDirectory, { recursive: true, mode: 0o700 });
    const { access, token } = openAccess(ownDirectory);
    access.onPortOpened(unused);
    onTestFinished(() => access.removeTokenFiles());
    const other = join(tmpdir(), 'chartpilot-4294967294');
    mkdirSync(other);
    onTestFinished(() => rmSync(other, { recursive: true }));
    writeFileSync(join(other, `debugger-${unused}.token`), 'of-a-dead-program\n');
    utimesSync(join(other, `debugger-${unused}.token`), 1, 1);
    expect(readDebuggerToken(unused)).toBe(token);
  });
});
