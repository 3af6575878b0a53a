/** Applications behind the mesh, in the test's process. */
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttp2Server, createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

/** A request as received by an application. */
export interface ReceivedRequest {
  /** Name of the backend that responded. */
  readonly backend: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Respond = (seen: ReceivedRequest, response: ServerResponse) => void | Promise<void>;

export interface HttpBackendOptions {
  /** Replaces the default response, a 200 with the received request as JSON. `respond` can change it later. */
  readonly respond?: Respond;
  /** Certificate and key (PEM) for TLS. */
  readonly tls?: TlsOptions;
  /** HTTP/2 instead of HTTP/1.1: with prior knowledge, or by ALPN with TLS. */
  readonly http2?: boolean;
  /** Default 127.0.0.1. */
  readonly address?: string;
}

/** Responds with the received request, and records it. */
export class HttpBackend {
  readonly name: string;
  readonly address: string;
  /** All requests so far, in order of arrival. */
  readonly seen: ReceivedRequest[] = [];
  respond: Respond;
  readonly #server: Server;

  private constructor(name: string, { respond, tls, http2, address = '127.0.0.1' }: HttpBackendOptions) {
    this.name = name;
    this.address = address;
    this.respond = respond ?? ((seenRequest, response) => void response.end(JSON.stringify(seenRequest)));
    const handle = (request: IncomingMessage, response: ServerResponse): void =>
      // A client that disconnects before its request is complete is ignored.
      void this.#respond(request, response).catch(() => response.destroy());
    if (http2)
      this.#server = (tls ? createSecureServer(tls, handle as never) : createHttp2Server(handle as never)) as never;
    else this.#server = (tls ? createHttpsServer(tls, handle) : createServer(handle)) as HttpServer;
    // Closing an idle connection would fail a request that Envoy sends on it at that moment.
    if ('keepAliveTimeout' in this.#server) this.#server.keepAliveTimeout = 0;
  }

  static async start(name: string, options: HttpBackendOptions = {}): Promise<HttpBackend> {
    const backend = new HttpBackend(name, options);
    await listening(backend.#server, backend.address);
    return backend;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    if ('closeAllConnections' in this.#server) (this.#server as HttpServer).closeAllConnections();
    this.#server.close();
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk as string;
    const headers = Object.fromEntries(Object.entries(request.headers).map(([key, value]) => [key, String(value)]));
    const { method = '', url = '' } = request;
    const seenRequest = { backend: this.name, method, url, headers, body };
    this.seen.push(seenRequest);
    response.setHeader('x-backend', this.name);
    await this.respond(seenRequest, response);
  }
}

/** Sends its name on connect, then echoes received data. */
export class TcpBackend {
  readonly name: string;
  readonly address: string;
  /** Bytes received on each connection, in the order of connections. */
  readonly received: Buffer[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(name: string, { tls, address = '127.0.0.1' }: TcpBackendOptions) {
    this.name = name;
    this.address = address;
    const serve = (socket: Socket): void => this.#serve(socket);
    this.#server = tls ? createTlsServer(tls, serve) : createTcpServer(serve);
  }

  static async start(name: string, options: TcpBackendOptions = {}): Promise<TcpBackend> {
    const backend = new TcpBackend(name, options);
    await listening(backend.#server, backend.address);
    return backend;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #serve(socket: Socket): void {
    const index = this.received.push(Buffer.alloc(0)) - 1;
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      this.received[index] = Buffer.concat([this.received[index]!, chunk]);
      socket.write(chunk);
    });
    socket.write(`${this.name}\n`);
  }
}

export interface TcpBackendOptions {
  readonly tls?: TlsOptions;
  readonly address?: string;
}

async function listening(server: Server, address: string): Promise<void> {
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, address, resolve));
}
