import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface SampleServiceOptions {
  /** Version in header `x-version` and in the body. */
  readonly version: string;
  /** Port; 0 selects a free one. */
  readonly port?: number;
  readonly host?: string;
}

export interface SampleService {
  readonly port: number;
  /** Stops listening and closes open connections. */
  close(): Promise<void>;
}

type Request = http.IncomingMessage | http2.Http2ServerRequest;
type Response = http.ServerResponse | http2.Http2ServerResponse;

/**
 * A small HTTP service behind a proxy. HTTP/1.1 and HTTP/2 (prior knowledge) share a port.
 *
 * - `/` responds immediately
 * - `/slow?ms=500` responds after a delay
 * - `/headers` returns the request's headers as JSON
 * - `/stream?seconds=3` sends a line every 100 ms for that long; the last line is `end`
 */
export async function startSampleService(options: SampleServiceOptions): Promise<SampleService> {
  const respond = (request: Request, response: Response): void => handle(request, response, options.version);
  // A service that closes idle connections races with its proxy's next request, and the proxy returns 503.
  const http1 = http.createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, respond);
  const h2c = http2.createServer(respond);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.once('data', (chunk) => {
      socket.pause();
      socket.unshift(chunk);
      if (isHttp2Preface(chunk)) {
        // The HTTP/2 server takes over the buffered bytes and the socket.
        h2c.emit('connection', socket);
        return;
      }
      http1.emit('connection', socket);
      socket.resume();
    });
  });
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closeEvent = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closeEvent;
    },
  };
}

/** Every HTTP/2 connection begins with `PRI * HTTP/2.0` (RFC 9113 §3.4); no HTTP/1.1 method is `PRI`. */
function isHttp2Preface(chunk: Buffer): boolean {
  return chunk.toString('latin1', 0, 3) === 'PRI';
}

function handle(request: Request, response: Response, version: string): void {
  const url = new URL(request.url ?? '/', 'http://sample');
  response.setHeader('x-version', version);
  response.setHeader('content-type', 'text/plain');
  switch (url.pathname) {
    case '/stream':
      stream(response, version, Number(url.searchParams.get('seconds') ?? 3));
      break;
    case '/slow':
      setTimeout(() => response.end(`hello from ${version}\n`), Number(url.searchParams.get('ms') ?? 1_000));
      break;
    case '/headers':
      response.end(JSON.stringify(request.headers));
      break;
    default:
      response.end(`hello from ${version}\n`);
  }
}

function stream(response: Response, version: string, seconds: number): void {
  const write = (text: string): void => void (response as http.ServerResponse).write(text);
  const startedAt = performance.now();
  write(`${version} streams for ${seconds} s\n`);
  const timer = setInterval(() => {
    const elapsedMs = performance.now() - startedAt;
    if (elapsedMs < seconds * 1_000) {
      write(`${version} ${elapsedMs.toFixed(0)} ms\n`);
      return;
    }
    clearInterval(timer);
    response.end('end\n');
  }, 100);
  response.on('close', () => clearInterval(timer));
}
