/** DNS over TLS (RFC 7858) for clients that trust the control plane's certificate. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import type { DnsStreamEnd, DnsStreamLimits } from '../../runtime/dns/dns-stream.ts';
import { serveDnsStream } from '../../runtime/dns/dns-stream.ts';
import { ConnectionBounds } from '../../runtime/fences/connection-bounds.ts';
import { formatAddress, type ListenAddress } from '../listen-address.ts';
import type { MeshNames } from './mesh-names.ts';
import { type NameResult, respondToQuery } from './name-responses.ts';

export interface NameServerOptions {
  readonly address: ListenAddress;
  /** Calls back immediately and when the options change. */
  readonly followTls: (onChanged: (options: TlsOptions) => void) => () => void;
  /** `undefined` without a certificate. Throws if the certificate is not accepted. */
  readonly namespaceOf: (socket: TLSSocket) => string | undefined;
  readonly names: Pick<MeshNames, 'visibleTo' | 'isInZone'>;
  readonly counts: NameServerCounts;
  readonly onFailed: (error: Error) => void;
  readonly limits?: Partial<NameServerLimits>;
}

export interface NameServerLimits extends DnsStreamLimits {
  readonly maxConnections: number;
  /** All IPv6 addresses of a /64 share the limit of one address. */
  readonly maxConnectionsPerAddress: number;
  readonly handshakeMs: number;
}

type CloseReason = DnsStreamEnd | 'too many connections' | 'TLS' | 'certificate';

export class NameServerCounts {
  readonly queries = new Map<NameResult, number>();
  readonly closuresByReason = new Map<CloseReason, number>();
  connections = 0;

  query(result: NameResult): void {
    this.queries.set(result, (this.queries.get(result) ?? 0) + 1);
  }

  close(reason: CloseReason): void {
    this.closuresByReason.set(reason, (this.closuresByReason.get(reason) ?? 0) + 1);
  }
}

const defaultLimits: NameServerLimits = {
  maxConnections: 1_024,
  maxConnectionsPerAddress: 16,
  handshakeMs: 10_000,
  maxPending: 64,
  maxUnreadBytes: 256 * 1024,
  // A question takes at most 271 bytes. Options such as padding may follow.
  maxQueryBytes: 4_096,
  idleMs: 10_000,
  queriesPerSecond: 200,
};

export class NameServer {
  readonly #options: NameServerOptions;
  readonly #limits: NameServerLimits;
  readonly #connections = new Set<Socket>();
  readonly #bounds: ConnectionBounds<Socket>;
  #server: Server | undefined;
  #stopFollowing: (() => void) | undefined;
  #roots = '';

  constructor(options: NameServerOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    const { maxConnections, maxConnectionsPerAddress } = this.#limits;
    this.#bounds = new ConnectionBounds({
      ...{ maxPerAddress: maxConnectionsPerAddress, maxConnections, isIdleReplaced: true },
    });
  }

  /**
   * Rejects if the port cannot be opened.
   *
   * @returns address and port
   */
  async open(): Promise<string> {
    const { address, followTls, onFailed } = this.#options;
    this.#stopFollowing = followTls((tls) => this.#applyTls(tls));
    const server = this.#server!;
    try {
      server.listen({ port: address.port, ...(address.host !== '' && { host: address.host }) });
      await once(server, 'listening');
    } catch (error) {
      this.close();
      throw error;
    }
    server.on('error', onFailed);
    return formatAddress({ host: address.host, port: (server.address() as AddressInfo).port });
  }

  close(): void {
    this.#stopFollowing?.();
    this.#server?.close();
    for (const connection of this.#connections) connection.destroy();
  }

  #applyTls(tls: TlsOptions): void {
    const roots = String(tls.ca);
    if (this.#server === undefined) this.#server = this.#create(tls);
    else {
      this.#server.setSecureContext(tls);
      // Closes connections of clients whose root may no longer be trusted.
      if (roots !== this.#roots) for (const connection of this.#connections) connection.destroy();
    }
    this.#roots = roots;
  }

  #create(tls: TlsOptions): Server {
    const { counts } = this.#options;
    const server = createServer({
      ...tls,
      ...{ ALPNProtocols: ['dot'], allowHalfOpen: true, handshakeTimeout: this.#limits.handshakeMs },
    });
    server.on('connection', (socket: Socket) => {
      if (!this.#bounds.admit(socket, socket.remoteAddress)) {
        counts.close('too many connections');
        return;
      }
      this.#connections.add(socket);
      counts.connections++;
      socket.once('close', () => {
        this.#connections.delete(socket);
        counts.connections--;
      });
    });
    server.on('tlsClientError', (_, socket) => {
      counts.close('TLS');
      socket.destroy();
    });
    server.on('secureConnection', (socket) => this.#serve(socket));
    return server;
  }

  #serve(socket: TLSSocket): void {
    const { names, namespaceOf, counts } = this.#options;
    socket.on('error', () => socket.destroy());
    serveDnsStream(socket, this.#limits, {
      limited: (reason) => counts.close(reason),
      query: (message, respond) => {
        let namespace: string | undefined;
        try {
          // Checked for each query, because the certificate can expire or be revoked while the connection is open.
          namespace = namespaceOf(socket);
        } catch {
          counts.close('certificate');
          socket.destroy();
          return;
        }
        void respondToQuery(message, names, namespace).then(({ result, response }) => {
          counts.query(result);
          respond(response);
        });
      },
    });
  }
}
