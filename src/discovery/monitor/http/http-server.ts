/** The HTTP side of the control plane: one handler behind one or more ports (spec/discovery.md §1.3, §9.1). */
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import { isLoopback } from '../../../runtime/addresses/loopback.ts';
import { ChartpilotError, isSystemError, messageOf } from '../../../runtime/errors.ts';
import { createFencedServer, type HttpFenceOptions } from '../../../runtime/fences/http-fence.ts';
import type { StreamAnswer } from '../../../runtime/trace/trace-endpoint.ts';
import { visibleText } from '../../../runtime/visible-text.ts';
import { formatAddress, type ListenAddress } from '../../listen-address.ts';
import { jsonText } from '../debug/json-text.ts';
import { sharedPort } from './shared-port.ts';

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Whether the caller is on this host. */
  readonly local: boolean;
  readonly headers: IncomingHttpHeaders;
  /** Reads the body. @returns `undefined` if it is longer, or the client breaks off */
  readonly body: (maxBytes: number) => Promise<string | undefined>;
  /** Both ends of the connection. */
  readonly peer: { readonly remoteAddress?: string | undefined; readonly localAddress?: string | undefined };
}

export interface HttpAnswer {
  readonly status: number;
  /** An object goes out as JSON. */
  readonly body: string | object;
  /** Content type of a text; `text/plain` unless given. */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The connection of a {@link StreamAnswer} is the stream's: closing or cutting the servers neither ends nor awaits it. */
export type HttpHandler = (request: HttpRequest) => HttpAnswer | StreamAnswer | Promise<HttpAnswer | StreamAnswer>;

export interface HttpServersOptions extends Pick<HttpFenceOptions, 'failed'> {
  /** Connections of each port; absent: as many as go with the files that may be open. */
  readonly connections?: number;
  /** Takes gRPC connections, or says that it cannot yet; without it there is only HTTP. */
  readonly grpc?: (socket: Socket) => boolean;
}

/** Opens ports, all with the same handler. */
export class HttpServers {
  readonly #handler: HttpHandler;
  readonly #options: HttpServersOptions;
  readonly #http: Server[] = [];
  readonly #listeners: NetServer[] = [];
  /** Connections of requests that are answered at once, or idle. */
  readonly #sockets = new Set<Socket>();
  /** Set while the servers close: resolved when the last connection is gone. */
  #closing: { promise: Promise<void>; resolve: () => void } | undefined;

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
    this.#closing ??= Promise.withResolvers<void>();
    for (const listener of this.#listeners.splice(0)) listener.close();
    for (const server of this.#http) server.closeIdleConnections();
    if (this.#sockets.size === 0) this.#closing.resolve();
    await this.#closing.promise;
  }

  /** Closes everything at once. */
  cut(): void {
    for (const listener of this.#listeners.splice(0)) listener.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #open(address: ListenAddress): Promise<ListenAddress> {
    const { grpc, connections, ...fence } = this.#options;
    const limits = connections === undefined ? {} : { limits: { maxInWhole: connections } };
    const server = createFencedServer((...asked) => this.#answer(...asked), { ...fence, ...limits });
    const take = (socket: Socket): boolean => {
      this.#release(socket);
      return grpc?.(socket) ?? false;
    };
    const listener = grpc === undefined ? server : sharedPort(server, take);
    listener.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#release(socket));
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

  #release(socket: Socket): void {
    this.#sockets.delete(socket);
    if (this.#sockets.size === 0) this.#closing?.resolve();
  }

  /** What it throws, the fence answers. */
  async #answer(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const { method = 'GET', headers, socket } = request;
    const answer = await this.#handler({
      method,
      // Istio's tools append paths to a base that ends with a slash.
      path: url.pathname.replace(/\/{2,}/g, '/'),
      query: url.searchParams,
      local: isLoopback(socket.remoteAddress),
      headers,
      body: (maxBytes) => bodyOf(request, maxBytes),
      peer: socket,
    });
    request.resume();
    if ('stream' in answer) {
      this.#release(request.socket);
      answer.stream(response);
      return;
    }
    const { status, body } = answer;
    const [raw, type] =
      typeof body === 'string'
        ? [body, answer.contentType ?? 'text/plain; charset=utf-8']
        : [`${jsonText(body, url.searchParams.has('pretty'))}\n`, 'application/json'];
    // Kept alive, the connection would keep the port from closing.
    if (this.#closing !== undefined) response.setHeader('connection', 'close');
    const text = visibleText(raw);
    const length = Buffer.byteLength(text);
    response.writeHead(status, { ...answer.headers, 'content-type': type, 'content-length': length });
    response.end(request.method === 'HEAD' ? undefined : text);
  }
}

/** What a person can do about a port that does not open. */
function listenError(address: ListenAddress, error: unknown): ChartpilotError {
  const where = formatAddress(address);
  if (isSystemError(error, 'EADDRINUSE')) {
    const hint = 'stop the process that uses the port, or choose another address';
    return new ChartpilotError('PORT_IN_USE', where, { cause: error, hint, fields: { path: where } });
  }
  return new ChartpilotError('LISTEN_FAILED', `${where}: ${messageOf(error)}`, {
    cause: error,
    fields: { path: where },
  });
}

async function bodyOf(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    // Leaving the loop would destroy the connection, and the response with it.
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > maxBytes) return undefined;
      pieces.push(piece);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(pieces).toString('utf8');
}
