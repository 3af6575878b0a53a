/**
 * Who may read the trace of a running program: somebody on this host who may read a file of the program's user. No other
 * host, no web site in a browser of this host, nobody who comes through a proxy.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureRunDir, sharedRunDir } from '../files/run-dir.ts';
import { isLoopback } from '../loopback.ts';

/** `on`: with a token. `open`: without one, from this host all the same. `off`: nobody. */
export const debuggerModes = ['on', 'open', 'off'] as const;
export type DebuggerMode = (typeof debuggerModes)[number];

/** What is known of a request before it is answered. */
export interface Caller {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** Both ends of its connection. */
  readonly peer: { readonly remoteAddress?: string | undefined; readonly localAddress?: string | undefined };
}

/** An answer that says no, and why, in one line. */
export interface Refusal {
  readonly status: 401 | 403 | 405 | 503;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export class DebuggerAccess {
  readonly #runDir: string;
  readonly #token: string | undefined;
  readonly #files = new Set<string>();

  /** @param runDir directory of the token files */
  constructor({ mode, runDir }: { mode: Exclude<DebuggerMode, 'off'>; runDir: string }) {
    this.#runDir = runDir;
    this.#token = mode === 'open' ? undefined : randomBytes(32).toString('base64url');
  }

  /** A port at which this access holds is open: whoever may read its token finds it. Throws what the file system throws. */
  announce(port: number): void {
    if (this.#token === undefined) return;
    const file = tokenFile(this.#runDir, port);
    const draft = `${file}.${process.pid}`;
    ensureRunDir(this.#runDir);
    // Beside and then in its place: never half written, never with the rights of a file or link that was there.
    rmSync(draft, { force: true });
    writeFileSync(draft, `${this.#token}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(draft, file);
    this.#files.add(file);
  }

  /** Removes the token files, but for those that another program has put in their place. */
  withdraw(): void {
    for (const file of this.#files) if (readToken(file) === this.#token) rmSync(file, { force: true });
    this.#files.clear();
  }

  /** Why a caller is not answered; undefined: it may read. */
  refusalOf(caller: Caller): Refusal | undefined {
    const reason = foreignness(caller);
    if (reason !== undefined) return { status: 403, body: `refused: ${reason}\n` };
    if (caller.method !== 'GET') return { status: 405, body: 'GET only\n', headers: { allow: 'GET' } };
    if (this.#token === undefined || isToken(this.#token, caller.headers.authorization)) return undefined;
    const where = [...this.#files].join(' or ') || 'a file that could not be written (see the log)';
    return {
      status: 401,
      body: `refused: send "Authorization: Bearer TOKEN" with the token in ${where}; chartpilot visualize --attach does\n`,
      headers: { 'www-authenticate': 'Bearer realm="chartpilot debugger"' },
    };
  }
}

/** Why a request does not come from this host and for itself; undefined when it does. */
export function foreignness(caller: Pick<Caller, 'headers' | 'peer'>): string | undefined {
  const reason = outsideness(caller);
  if (reason !== undefined) return reason;
  const { headers } = caller;
  const site = headers['sec-fetch-site'];
  const isOfBrowser = headers.origin !== undefined || (site !== undefined && site !== 'none' && site !== 'same-origin');
  return isOfBrowser ? 'not from a page of another web site' : undefined;
}

/** Why a request does not come from this host, whoever wrote it there; undefined when it does. */
function outsideness({ headers, peer }: Pick<Caller, 'headers' | 'peer'>): string | undefined {
  // The own address too: Envoy passes on what came from outside, from an address of loopback to that of the host.
  if (!isLoopback(peer.remoteAddress) || !isLoopback(peer.localAddress)) return 'only from this host, by loopback';
  if (proxyHeaders.some((name) => headers[name] !== undefined)) return 'not through a proxy';
  // A web site whose name was made to point to this host (DNS rebinding) is given away by its name.
  if (!/^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(headers.host ?? '')) {
    return 'only by the names localhost, 127.0.0.1 and [::1]';
  }
  return undefined;
}

/**
 * Whether a person on this host follows a link, from whatever page: a window of the browser goes there, no frame, no form
 * and no script of that page. What it shows there must hold nothing that is worth anything to the page.
 */
export function isFollowedLink(caller: Caller): boolean {
  const { method, headers } = caller;
  return (
    outsideness(caller) === undefined &&
    method === 'GET' &&
    headers.origin === undefined &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document'
  );
}

/** Whether a page sends something to the server that it came from itself: no other page's form or script does. */
export function isSentByOwnPage(caller: Caller): boolean {
  const { method, headers } = caller;
  const site = headers['sec-fetch-site'];
  return (
    outsideness(caller) === undefined &&
    method === 'POST' &&
    headers.origin === `http://${headers.host}` &&
    (site === undefined || site === 'same-origin')
  );
}

const proxyHeaders = ['x-forwarded-for', 'x-forwarded-host', 'forwarded', 'via', 'x-envoy-external-address'] as const;

function isToken(token: string, authorization: string | undefined): boolean {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  return given !== undefined && isSameSecret(given, token);
}

/** Compares in a time that tells nothing of the secret. */
export function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}

function tokenFile(runDir: string, port: number): string {
  return join(runDir, `debugger-${port}.token`);
}

/**
 * The token for the program of this host whose port this is; undefined when there is none that this user may read: the
 * program does not run, wants none, or is another user's. Without `runDir` it is looked for wherever
 * {@link chooseRunDir} may have sent the program, whoever it runs as.
 */
export function readDebuggerToken(port: number, { runDir }: { runDir?: string } = {}): string | undefined {
  const directories = runDir === undefined ? [sharedRunDir, ...runDirsOfUsers()] : [runDir];
  const found = directories.flatMap((directory) => {
    const file = tokenFile(directory, port);
    const token = readToken(file);
    return token === undefined ? [] : [{ token, writtenAt: statSync(file).mtimeMs }];
  });
  // One of a program that was killed may lie where another user's runs now.
  return found.sort((a, b) => b.writtenAt - a.writtenAt)[0]?.token;
}

/** Below the temporary directory, where everybody may write: only those of this user, or any for root. */
function runDirsOfUsers(): string[] {
  const self = process.getuid?.() ?? 0;
  return readdirSync(tmpdir())
    .filter((name) => /^chartpilot-\d+$/.test(name))
    .map((name) => join(tmpdir(), name))
    .filter((directory) => self === 0 || statSync(directory, { throwIfNoEntry: false })?.uid === self);
}

function readToken(file: string): string | undefined {
  try {
    const token = readFileSync(file, 'utf8').trim();
    return token === '' ? undefined : token;
  } catch {
    return undefined;
  }
}
