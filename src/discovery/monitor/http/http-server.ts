import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import { isLoopback } from '../../../runtime/addresses/loopback.ts';
import { ChartpilotError, isSystemError, messageOf } from '../../../runtime/errors.ts';
import { createFencedServer, type HttpFenceOptions } from '../../../runtime/fences/http-fence.ts';
import type { StreamResponse } from '../../../runtime/trace/trace-endpoint.ts';
import { visibleText } from '../../../runtime/visible-text.ts';
import { formatAddress, type ListenAddress } from '../../listen-address.ts';
import { jsonText } from '../debug/json-text.ts';
import { sharedPort } from './shared-port.ts';

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly isLocal: boolean;
  readonly headers: IncomingHttpHeaders;
  /** @returns `undefined` if the body is longer or the client aborts */
  readonly readBody: (maxBytes: number) => Promise<string | undefined>;
  readonly peer: { readonly remoteAddress?: string | undefined; readonly localAddress?: string | undefined };
}

export interface HttpReply {
  readonly status: number;
  /** Objects are sent as JSON. */
  readonly body: string | object;
  /** Content type of a text body. Default: `text/plain`. */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A {@link StreamResponse} owns its connection: the servers neither close it nor wait for it. */
export type HttpHandler = (request: HttpRequest) => HttpReply | StreamResponse | Promise<HttpReply | StreamResponse>;

export interface HttpServersOptions extends Pick<HttpFenceOptions, 'failed'> {
  /** Maximum per port. The default depends on the limit of open files. */
  readonly connections?: number;
  /** Accepts a gRPC connection, or returns `false` if that is not possible yet. Absent if the port serves only HTTP. */
  readonly grpc?: (socket: Socket) => boolean;
}

export class HttpServers {
  readonly #handler: HttpHandler;
  readonly #options: HttpServersOptions;
  readonly #http: Server[] = [];
  readonly #listeners: NetServer[] = [];
  /** Connections that are idle or have a running request, but no stream. */
  readonly #sockets = new Set<Socket>();
  #pendingClose: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(handler: HttpHandler, options: HttpServersOptions = {}) {
    this.#handler = handler;
    this.#options = options;
  }

  /**
   * Opens all addresses or none.
   *
   * @returns addresses with the ports that the system chose
   * @throws ChartpilotError PORT_IN_USE or LISTEN_FAILED
   */
  async open(addresses: readonly ListenAddress[]): Promise<ListenAddress[]> {
    const openedAddresses: ListenAddress[] = [];
    try {
      for (const address of addresses) openedAddresses.push(await this.#openPort(address));
    } catch (error) {
      this.closeConnections();
      throw error;
    }
    return openedAddresses;
  }

  async close(): Promise<void> {
    this.#pendingClose ??= Promise.withResolvers<void>();
    for (const listener of this.#listeners.splice(0)) listener.close();
    for (const server of this.#http) server.closeIdleConnections();
    if (this.#sockets.size === 0) this.#pendingClose.resolve();
    await this.#pendingClose.promise;
  }

  closeConnections(): void {
    for (const listener of this.#listeners.splice(0)) listener.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #openPort(address: ListenAddress): Promise<ListenAddress> {
    const { grpc, connections, ...fence } = this.#options;
    const limits = connections === undefined ? {} : { limits: { maxConnections: connections } };
    const server = createFencedServer((...exchange) => this.#respond(...exchange), { ...fence, ...limits });
    const claim = (socket: Socket): boolean => {
      this.#release(socket);
      return grpc?.(socket) ?? false;
    };
    const listener = grpc === undefined ? server : sharedPort(server, claim);
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
    if (this.#sockets.size === 0) this.#pendingClose?.resolve();
  }

  async #respond(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const { method = 'GET', headers, socket } = request;
    const reply = await this.#handler({
      method,
      // Removes double slashes: Istio's tools append a path to a base URL with a trailing slash.
      path: url.pathname.replace(/\/{2,}/g, '/'),
      query: url.searchParams,
      isLocal: isLoopback(socket.remoteAddress),
      headers,
      readBody: (maxBytes) => bodyOf(request, maxBytes),
      peer: socket,
    });
    request.resume();
    if ('stream' in reply) {
      this.#release(request.socket);
      reply.stream(response);
      return;
    }
    const { status, body } = reply;
    const [raw, type] =
      typeof body === 'string'
        ? [body, reply.contentType ?? 'text/plain; charset=utf-8']
        : [`${jsonText(body, url.searchParams.has('pretty'))}\n`, 'application/json'];
    // A keep-alive connection would keep the port open.
    if (this.#pendingClose !== undefined) response.setHeader('connection', 'close');
    const text = visibleText(raw);
    const length = Buffer.byteLength(text);
    response.writeHead(status, { ...reply.headers, 'content-type': type, 'content-length': length });
    response.end(request.method === 'HEAD' ? undefined : text);
  }
}

function listenError(address: ListenAddress, error: unknown): ChartpilotError {
  const addressText = formatAddress(address);
  if (isSystemError(error, 'EADDRINUSE')) {
    const hint = 'stop the process that uses the port, or choose another address';
    return new ChartpilotError('PORT_IN_USE', addressText, { cause: error, hint, fields: { path: addressText } });
  }
  return new ChartpilotError('LISTEN_FAILED', `${addressText}: ${messageOf(error)}`, {
    cause: error,
    fields: { path: addressText },
  });
}

async function bodyOf(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // By default, returning from the loop would destroy the connection and thus the response.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString('utf8');
}
