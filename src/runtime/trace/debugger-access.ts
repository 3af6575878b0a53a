/**
 * Access to debug pages that contain secrets or configuration, or that change the program's behaviour: for callers on this host that can read a file
 * of the program's user. Any local user can connect to loopback.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../addresses/loopback.ts';
import { messageOf } from '../errors.ts';
import { replaceFileSync } from '../files/replace-file.ts';
import { ensureRunDir } from '../files/run-dir.ts';
import type { Logger } from '../output/log.ts';
import { readDebuggerToken, tokenFile } from './debugger-token.ts';

/** `on` permits callers with the token, and `open` any local user. */
export const debuggerModes = ['on', 'open', 'off'] as const;
export type DebuggerMode = (typeof debuggerModes)[number];

export interface Caller {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly peer: { readonly remoteAddress?: string | undefined; readonly localAddress?: string | undefined };
}

export interface AccessRefusal {
  readonly status: 401 | 403 | 405 | 503;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface AccessRule {
  readonly methods?: readonly string[];
  /** False if any local user may use the page (default true). */
  readonly needsToken?: boolean;
}

export const tokenChallenge = 'Bearer realm="chartpilot debugger"';

export class DebuggerAccess {
  readonly #runDir: string;
  readonly #log: Logger | undefined;
  readonly #token = randomBytes(32).toString('base64url');
  readonly #files = new Map<number, string>();

  constructor({ runDir, log }: { runDir: string; log?: Logger }) {
    this.#runDir = runDir;
    this.#log = log;
  }

  /**
   * Must be called when a port with pages under this access is open. If its token file cannot be written, the pages stay closed and the reason is
   * logged.
   */
  onPortOpened(port: number): void {
    try {
      this.#announce(port);
    } catch (error) {
      this.#log?.warn('debugger.tokenUnwritable', {
        port,
        reason: messageOf(error),
      });
    }
  }

  hasTokenFile(port: number): boolean {
    return this.#files.has(port);
  }

  /** A renamed file is never partial and never has the mode of an existing file or link. */
  #announce(port: number): void {
    const file = tokenFile(this.#runDir, port);
    ensureRunDir(this.#runDir);
    replaceFileSync(file, `${this.#token}\n`, { draft: 'unique' });
    this.#files.set(port, file);
  }

  /** Removes the token files, except those that another program has replaced. */
  removeTokenFiles(): void {
    for (const [port, file] of this.#files)
      if (readDebuggerToken(port, { runDir: this.#runDir }) === this.#token) rmSync(file, { force: true });
    this.#files.clear();
  }

  refusalOf(caller: Caller, { methods = ['GET'], needsToken = true }: AccessRule = {}): AccessRefusal | undefined {
    const reason = foreignCallerReason(caller);
    if (reason !== undefined) return { status: 403, body: `refused: ${reason}\n` };
    if (!methods.includes(caller.method))
      return { status: 405, body: `method must be ${methods.join(' or ')}\n`, headers: { allow: methods.join(', ') } };
    if (!needsToken || this.hasToken(caller)) return undefined;
    const fileNames = [...this.#files.values()].join(' or ') || 'a file that could not be written (see the log)';
    return {
      status: 401,
      body: `refused: send "Authorization: Bearer TOKEN" with the token in ${fileNames}\n`,
      headers: { 'www-authenticate': tokenChallenge },
    };
  }

  hasToken({ headers }: Pick<Caller, 'headers'>): boolean {
    return isToken(this.#token, headers.authorization);
  }
}

/** Checks that the caller itself sent the request from this host. */
export function foreignCallerReason(caller: Pick<Caller, 'headers' | 'peer'>): string | undefined {
  const reason = outsideCallerReason(caller);
  if (reason !== undefined) return reason;
  const { headers } = caller;
  const site = headers['sec-fetch-site'];
  const isFromBrowser =
    headers.origin !== undefined || (site !== undefined && site !== 'none' && site !== 'same-origin');
  return isFromBrowser ? 'not from a page of another web site' : undefined;
}

/** Why a request is not from this host; `undefined` if it is. Does not check which page caused it. */
function outsideCallerReason({ headers, peer }: Pick<Caller, 'headers' | 'peer'>): string | undefined {
  // The local address is checked, too: Envoy forwards requests from outside, from a loopback address to the host's own
  // address.
  if (!isLoopback(peer.remoteAddress) || !isLoopback(peer.localAddress))
    return 'reachable from this host only, at a loopback address';
  if (proxyHeaders.some((name) => headers[name] !== undefined)) return 'not through a proxy';
  // A web site whose name resolves to this host (DNS rebinding) is detected by its name.
  if (!/^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(headers.host ?? '')) {
    return 'only by the names localhost, 127.0.0.1 and [::1]';
  }
  return undefined;
}

/**
 * True for a top-level navigation of the browser, from any page, but not for a frame, form or script of that page. The page at the target must show
 * nothing that is of value to the linking page.
 */
export function isFollowedLink(caller: Caller): boolean {
  const { method, headers } = caller;
  return (
    outsideCallerReason(caller) === undefined &&
    method === 'GET' &&
    headers.origin === undefined &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document'
  );
}

/**
 * Whether a page sends a request to the server that it was loaded from. Forms and scripts of other pages do not
 * qualify.
 */
export function isSentByOwnPage(caller: Caller): boolean {
  const { method, headers } = caller;
  const site = headers['sec-fetch-site'];
  return (
    outsideCallerReason(caller) === undefined &&
    method === 'POST' &&
    headers.origin === `http://${headers.host}` &&
    (site === undefined || site === 'same-origin')
  );
}

const proxyHeaders = ['x-forwarded-for', 'x-forwarded-host', 'forwarded', 'via', 'x-envoy-external-address'] as const;

function isToken(token: string, authorization: string | undefined): boolean {
  const bearerToken = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  return bearerToken !== undefined && isSameSecret(bearerToken, token);
}

/** Constant time, so that the duration reveals nothing about the secret. */
export function isSameSecret(candidate: string, secret: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(candidate), digest(secret));
}
