/** Serves the debugger's page to one user: on loopback, and to no other web site of the same browser. Data is below a path with a secret token. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { ChartpilotError, explainError, isSystemError, messageOf } from '../../runtime/errors.ts';
import { createFencedServer } from '../../runtime/fences/http-fence.ts';
import {
  foreignCallerReason,
  isFollowedLink,
  isSameSecret,
  isSentByOwnPage,
} from '../../runtime/trace/debugger-access.ts';
import { describePath, type Session, type Source, sourcesPath, type TraceDescription } from '../page-data.ts';
import { machinesForm } from '../trace/trace-form.ts';
import { type PageFiles, readPageFiles } from './page-files.ts';
import { Sessions } from './page-session.ts';
import type { PageSource } from './page-source.ts';
import { isFromOtherUser } from './peer-user.ts';

export interface PageServerOptions {
  readonly sources: readonly PageSource[];
  /** Default: a free port. */
  readonly port?: number;
  /** Default: the diagrams of each program. */
  readonly diagrams?: string;
}

export interface PageServer {
  /** The address `http://127.0.0.1:PORT/TOKEN/`. */
  readonly address: string;
  /** Every user of this host can read the command line of a browser. The address redirects once, and only for a program of this user. */
  openingAddress(): string;
  close(): Promise<void>;
}

/** @throws ChartpilotError PORT_IN_USE, LISTEN_FAILED, or FILE_UNREADABLE if the page was not built */
export async function startPageServer({ sources, port = 0, diagrams }: PageServerOptions): Promise<PageServer> {
  const token = randomBytes(24).toString('base64url');
  const pages = new Pages(token, readPageFiles(), sources, new Sessions(diagrams));
  const server = createFencedServer((request, response) => pages.serve(request, response));
  await listen(server, port);
  const boundPort = (server.address() as AddressInfo).port;
  return {
    address: `http://127.0.0.1:${boundPort}/${token}/`,
    openingAddress: () => `http://127.0.0.1:${boundPort}/${pages.newOpening()}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    if (isSystemError(error, 'EADDRINUSE')) {
      throw new ChartpilotError('PORT_IN_USE', `127.0.0.1:${port}`, {
        fields: { path: '--port', got: String(port) },
        hint: 'choose another port with --port, or omit --port for a free one',
        cause: error,
      });
    }
    throw new ChartpilotError('LISTEN_FAILED', `127.0.0.1:${port}: ${messageOf(error)}`, {
      hint: 'choose another port with --port, or omit --port for a free one',
      cause: error,
    });
  }
}

const contentTypes: Readonly<Record<keyof PageFiles, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
};

function isPublicPath(name: string): boolean {
  return name === '' || isPageFile(name);
}

function isPageFile(name: string): name is keyof PageFiles {
  return Object.hasOwn(contentTypes, name);
}

const safety = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

class Pages {
  readonly #token: string;
  readonly #files: PageFiles;
  readonly #sources: readonly PageSource[];
  readonly #sessions: Sessions;
  #openingToken: string | undefined;

  constructor(token: string, files: PageFiles, sources: readonly PageSource[], sessions: Sessions) {
    this.#token = token;
    this.#files = files;
    this.#sources = sources;
    this.#sessions = sessions;
  }

  /** Invalidates the previous opening address. */
  newOpening(): string {
    this.#openingToken = randomBytes(24).toString('base64url');
    return this.#openingToken;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(safety)) response.setHeader(name, value);
    const { method = '', headers, socket: peer } = request;
    const [path = '/'] = (request.url ?? '/').split('?', 1);
    const caller = { method, headers, peer };
    const isOwnRequest = isSentByOwnPage(caller);
    if (!isOwnRequest && foreignCallerReason(caller) !== undefined && !(path === '/' && isFollowedLink(caller))) {
      endResponse(response, 403);
      return;
    }
    const [, firstSegment = '', ...otherSegments] = path.split('/');
    if (
      otherSegments.length === 0 &&
      method === 'GET' &&
      this.#openingToken !== undefined &&
      isSameSecret(firstSegment, this.#openingToken)
    ) {
      this.#acceptStream(peer, response);
      return;
    }
    const hasOwnToken = isSameSecret(firstSegment, this.#token);
    if (!hasOwnToken && (otherSegments.length > 0 || !isPublicPath(firstSegment))) {
      endResponse(response, 404);
      return;
    }
    if (hasOwnToken && otherSegments.length === 0) {
      // The user omitted the trailing slash; the browser keeps the fragment.
      response.setHeader('location', `/${firstSegment}/`);
      endResponse(response, 308);
      return;
    }
    if (isOwnRequest && hasOwnToken && otherSegments.join('/') === describePath) {
      await this.#describe(request, response);
      return;
    }
    if (request.method !== 'GET') {
      response.setHeader('allow', 'GET');
      endResponse(response, 405);
      return;
    }
    try {
      await this.#respond(hasOwnToken ? otherSegments.join('/') : firstSegment, response);
    } catch (error) {
      respondUnavailable(response, error);
    }
  }

  #acceptStream(peer: Socket, response: ServerResponse): void {
    if (isFromOtherUser(peer)) {
      endResponse(response, 403);
      return;
    }
    this.#openingToken = undefined;
    response.setHeader('location', `/${this.#token}/`);
    endResponse(response, 303);
  }

  async #respond(path: string, response: ServerResponse): Promise<void> {
    const file = path === '' ? 'index.html' : path;
    if (isPageFile(file)) endResponse(response, 200, contentTypes[file], Buffer.from(this.#files[file]));
    else if (path === sourcesPath) json(response, 200, this.#sources.map(describeSource));
    else await this.#respondWithSource(path, response);
  }

  async #respondWithSource(path: string, response: ServerResponse): Promise<void> {
    const [, kind, number] = /^(session(?=\/\d+\.json$)|trace(?=\/\d+$))\/(\d+)/.exec(path) ?? [];
    const source = this.#sources[Number(number)];
    if (source === undefined) endResponse(response, 404);
    else if (kind === 'session') await this.#respondWithSession(source, response);
    else await sendTrace(source, response);
  }

  async #describe(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await bodyOf(request);
    const describedData = text === undefined ? undefined : parseDescription(text);
    if (describedData === undefined) json(response, 400, { reason: 'Invalid trace header.' });
    else json(response, 200, await this.#sessions.sessionOf(describedData));
  }

  async #respondWithSession(source: PageSource, response: ServerResponse): Promise<void> {
    const session: Session = { ...(await this.#sessions.sessionOf(await source.header())), now: Date.now() };
    json(response, 200, session);
  }
}

/** The definitions of both programs' machines take 200 KB. */
const maxDescribedBytes = 16 * 1024 * 1024;

/** `undefined` if the body is too long or interrupted. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxDescribedBytes) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseDescription(text: string): TraceDescription | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const { program, machines } = (value ?? {}) as Partial<TraceDescription>;
    return typeof program === 'string' && machinesForm(machines) && machines !== undefined
      ? { program, machines }
      : undefined;
  } catch {
    return undefined;
  }
}

function describeSource({ name, kind, place }: PageSource): Source {
  return { name, kind, place };
}

async function sendTrace(source: PageSource, response: ServerResponse): Promise<void> {
  const trace = await source.read({ follow: true });
  response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' });
  // A live program may have no events yet, and the page must be notified of the connection.
  response.flushHeaders();
  // Reads at the speed of the page.
  await pipeline(trace, response).catch(() => response.destroy());
}

/** The page shows the reason and retries, because the program may restart. */
function respondUnavailable(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else if (error instanceof ChartpilotError) json(response, 502, { reason: explainError(error) });
  else json(response, 500, { reason: messageOf(error) });
}

function json(response: ServerResponse, status: number, value: unknown): void {
  endResponse(response, status, 'application/json; charset=utf-8', JSON.stringify(value));
}

function endResponse(response: ServerResponse, status: number, contentType?: string, body: string | Buffer = ''): void {
  response.writeHead(status, contentType === undefined ? {} : { 'content-type': contentType });
  response.end(body);
}
