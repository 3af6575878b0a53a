/** An application that accepts all traffic that a change may route to it: HTTP/1.1 and TCP lines, plaintext and TLS, on one port. */
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import type { IssuedCertificate } from '../../certs/authority.ts';
import { slowHealthPath } from './warming-kinds.ts';

/** Duration of a health check: much longer than Envoy needs to request endpoints. */
const slowHealthMs = 300;
const tlsHandshake = 0x16;

export class AnyBackend {
  /** Number of requests, by their `host` header. */
  readonly requests = new Map<string, number>();
  readonly #name: string;
  readonly #server: Server;
  readonly #http: HttpServer;
  readonly #context: SecureContext;
  readonly #sockets = new Set<Socket>();

  private constructor(name: string, { certificate, privateKey }: IssuedCertificate) {
    this.#name = name;
    this.#context = createSecureContext({ cert: certificate, key: privateKey });
    this.#http = createHttpServer({ keepAliveTimeout: 0 }, (request, response) => {
      const { host = '' } = request.headers;
      this.requests.set(host, (this.requests.get(host) ?? 0) + 1);
      request.resume();
      response.setHeader('x-version', name);
      if (request.url === slowHealthPath) setTimeout(() => response.end('ok\n'), slowHealthMs);
      else response.end('ok\n');
    });
    this.#server = createServer({ noDelay: true }, (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      this.#serve(socket);
    });
  }

  static async start(name: string, certificate: IssuedCertificate): Promise<AnyBackend> {
    const backend = new AnyBackend(name, certificate);
    await new Promise<void>((resolve, reject) => backend.#server.once('error', reject).listen(0, '127.0.0.1', resolve));
    return backend;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  /** The first byte decides between TLS and plaintext, then between HTTP (a method) and lines. */
  #serve(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    socket.once('data', (first: Buffer) => {
      socket.pause();
      socket.unshift(first);
      if (first[0] === tlsHandshake && !(socket instanceof TLSSocket)) {
        this.#serve(new TLSSocket(socket, { isServer: true, secureContext: this.#context }));
      } else if (/^[A-Z]/.test(first.toString('latin1', 0, 1))) {
        this.#http.emit('connection', socket);
        socket.resume();
      } else {
        socket.on('data', () => socket.write(`${this.#name}\n`));
        socket.resume();
      }
    });
  }
}
