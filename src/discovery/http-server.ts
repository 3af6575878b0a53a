/** The HTTP side of the control plane: one handler behind one or more ports (spec/discovery.md §1.3, §9.1). */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import { ChartpilotError, isSystemError, messageOf } from '../runtime/errors.ts';
import { formatAddress, type ListenAddress } from './listen-address.ts';
import { sharedPort } from './shared-port.ts';

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Whether the caller is on this host. */
  readonly local: boolean;
}

export interface HttpAnswer {
  readonly status: number;
  /** An object goes out as JSON. */
  readonly body: string | object;
  /** Of a text; `text/plain` unless given. */
  readonly contentType?: string;
}

export type HttpHandler = (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;

const idleMs = 90_000;
const readMs = 30_000;

export interface HttpServersOptions {
  /** The port of loopback to which gRPC connections go; without it there is only HTTP. */
  readonly grpcPort?: () => number | undefined;
}

/** Opens ports, all with the same handler. */
export class HttpServers {
  readonly #handler: HttpHandler;
  readonly #options: HttpServersOptions;
  readonly #http: Server[] = [];
  readonly #listeners: NetServer[] = [];
  readonly #sockets = new Set<Socket>();
  #isClosing = false;

  constructor(handler: HttpHandler, options: HttpServersOptions = {}) {
    this.#handler = handler;
    this.#options = options;
  }

  /**
   * Opens all addresses, or none.
   *
   * @returns what was opened, with the ports that the system chose
   * @throws ChartpilotError PORT_IN_USE or LISTEN_FAILED
   */
  async open(addresses: readonly ListenAddress[]): Promise<ListenAddress[]> {
    const opened: ListenAddress[] = [];
    try {
      for (const address of addresses) opened.push(await this.#open(address));
    } catch (error) {
      this.cut();
      throw error;
    }
    return opened;
  }

  /** Takes no more connections; resolves when the running requests are answered. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const closed = this.#listeners.splice(0).map((listener) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      listener.close(() => resolve());
      return promise;
    });
    for (const server of this.#http) server.closeIdleConnections();
    await Promise.all(closed);
  }

  /** Closes everything at once. */
  cut(): void {
    for (const listener of this.#listeners.splice(0)) listener.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #open(address: ListenAddress): Promise<ListenAddress> {
    const server = createServer((request, response) => void this.#answer(request, response));
    server.keepAliveTimeout = idleMs;
    server.requestTimeout = readMs;
    const { grpcPort } = this.#options;
    const listener = grpcPort === undefined ? server : sharedPort(server, grpcPort);
    listener.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    const { promise, resolve, reject } = Promise.withResolvers<ListenAddress>();
    listener.once('error', (error) => reject(listenError(address, error)));
    listener.listen({ port: address.port, ...(address.host !== '' && { host: address.host }) }, () => {
      this.#http.push(server);
      this.#listeners.push(listener);
      resolve({ host: address.host, port: (listener.address() as AddressInfo).port });
    });
    return promise;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    request.resume();
    let answer: HttpAnswer;
    try {
      answer = await this.#handler({
        method: request.method ?? 'GET',
        path: url.pathname,
        query: url.searchParams,
        local: isLoopback(request.socket.remoteAddress ?? ''),
      });
    } catch (error) {
      answer = { status: 500, body: `${messageOf(error)}\n` };
    }
    const { status, body } = answer;
    const [text, type] =
      typeof body === 'string'
        ? [body, answer.contentType ?? 'text/plain; charset=utf-8']
        : [`${JSON.stringify(body, undefined, url.searchParams.has('pretty') ? 2 : undefined)}\n`, 'application/json'];
    // Kept alive, the connection would keep the port from closing.
    if (this.#isClosing) response.setHeader('connection', 'close');
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
    response.end(request.method === 'HEAD' ? undefined : text);
  }
}

/** What a person can do about a port that does not open. */
export function listenError(address: ListenAddress, error: unknown): ChartpilotError {
  const where = formatAddress(address);
  if (isSystemError(error, 'EADDRINUSE')) {
    const remedy = 'stop what listens there, or choose another address';
    return new ChartpilotError('PORT_IN_USE', where, { cause: error, remedy });
  }
  return new ChartpilotError('LISTEN_FAILED', `${where}: ${messageOf(error)}`, { cause: error });
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address);
}
