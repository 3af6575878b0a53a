import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type Server, type Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { buildResponse, type DnsQuery, failure, readQuery } from '../../runtime/dns/dns-message.ts';
import type { DnsNames } from '../../runtime/dns/dns-names.ts';
import { type DnsStreamLimits, serveDnsStream } from '../../runtime/dns/dns-stream.ts';
import { maxTcpBytes } from '../../runtime/dns/tcp-messages.ts';
import { isSystemError } from '../../runtime/errors.ts';
import { type KeptSocket, keepTcpServer, keepUdpSocket } from '../ports/kept-socket.ts';
import type { PassedTrafficReceiver } from '../ports/passed-on.ts';
import type { DnsTransport, DnsUpstream } from './dns-upstream.ts';

export interface DnsServerOptions {
  readonly addresses: readonly string[];
  readonly port: number;
  /** Whether another agent may open the port at the same time. */
  readonly isShared?: boolean;
  readonly names: () => DnsNames | undefined;
  /** If false, the server responds with SERVFAIL. */
  readonly forwardBeforeTable: boolean;
  readonly upstream: DnsUpstream;
  readonly counts: { requests: number };
  readonly onFailed: (error: Error) => void;
}

/** Kernel receive buffer, so that no query is lost while the event loop is busy. The kernel may limit it. */
const receiveBytes = 4 * 1024 * 1024;
const maxConnections = 256;
const maxPortsTried = 10;
const leavePollMs = 5;
const streamLimits: DnsStreamLimits = {
  maxPending: 64,
  maxUnreadBytes: 1024 * 1024,
  maxQueryBytes: maxTcpBytes,
  idleMs: 10_000,
};

export class DnsServer implements PassedTrafficReceiver {
  readonly #options: DnsServerOptions;
  readonly #udp: UdpSocket[] = [];
  readonly #tcp: Server[] = [];
  readonly #connections = new Set<Socket>();
  #pendingCount = 0;

  constructor(options: DnsServerOptions) {
    this.#options = options;
  }

  /**
   * Port 0 selects a free port. The system selects it for UDP only, so others are tried if it is in use for TCP.
   *
   * @returns the port, the same for all addresses and for UDP and TCP
   */
  async open(): Promise<number> {
    const maxAttempts = this.#options.port === 0 ? maxPortsTried : 1;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#openAll();
      } catch (error) {
        this.close();
        if (attempt === maxAttempts || !isSystemError(error, 'EADDRINUSE')) throw error;
      }
    }
  }

  async #openAll(): Promise<number> {
    let { port } = this.#options;
    for (const address of this.#options.addresses) {
      port = await this.#openUdp(address, port);
      await this.#openTcp(address, port);
    }
    return port;
  }

  get sockets(): KeptSocket[] {
    return [...this.#udp.map(keepUdpSocket), ...this.#tcp.map(keepTcpServer)];
  }

  /** A previous agent received the query at the same address. */
  takeQuestion(
    question: Buffer,
    peer: { readonly address: string; readonly port: number },
    localAddress: string,
  ): void {
    const socket = this.#udp.find((udpSocket) => udpSocket.address().address === localAddress);
    if (socket !== undefined) this.#takeDatagram(socket, question, peer);
  }

  takeConnection(connection: Socket): void {
    if (this.#connections.size >= maxConnections) connection.destroy();
    else this.#serve(connection);
  }

  /** Waits until no query is pending, or for `limitMs`. */
  async closeWhenIdle(limitMs: number): Promise<void> {
    const deadline = performance.now() + limitMs;
    do await sleep(leavePollMs);
    while (this.#pendingCount > 0 && performance.now() < deadline);
    // Wait until all queries that the kernel received are read.
    await nextTurn();
    this.close();
  }

  close(): void {
    for (const socket of this.#udp.splice(0)) socket.close();
    for (const server of this.#tcp.splice(0)) server.close();
    for (const connection of this.#connections) connection.destroy();
  }

  async #openUdp(address: string, port: number): Promise<number> {
    const reusePort = this.#options.isShared === true;
    const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', ipv6Only: isIPv6(address), reusePort });
    // The socket exists already, so `close` must include it even if listening fails.
    this.#udp.push(socket);
    socket.bind({ port, address });
    await once(socket, 'listening');
    try {
      socket.setRecvBufferSize(receiveBytes);
    } catch {
      // Keep the kernel's buffer size.
    }
    socket.on('error', (error) => this.#options.onFailed(error));
    socket.on('message', (message, peer) => this.#takeDatagram(socket, message, peer));
    return socket.address().port;
  }

  /** Ignores send errors, because clients repeat their queries. */
  #takeDatagram(socket: UdpSocket, message: Buffer, { port, address }: Pick<RemoteInfo, 'port' | 'address'>): void {
    this.#handleQuery(message, 'udp', (response) => {
      if (response !== undefined && this.#udp.includes(socket)) socket.send(response, port, address, () => {});
    });
  }

  async #openTcp(address: string, port: number): Promise<void> {
    // A client may end its side after its last query, and still expect responses (RFC 7766 §6.2.3).
    const server = createServer({ allowHalfOpen: true }, (connection) => this.#serve(connection));
    server.maxConnections = maxConnections;
    server.listen({ port, host: address, ipv6Only: isIPv6(address), reusePort: this.#options.isShared === true });
    await once(server, 'listening');
    this.#tcp.push(server);
    server.on('error', (error) => this.#options.onFailed(error));
  }

  #serve(connection: Socket): void {
    this.#connections.add(connection);
    connection.on('close', () => this.#connections.delete(connection));
    serveDnsStream(connection, streamLimits, {
      query: (message, respond) => this.#handleQuery(message, 'tcp', respond),
    });
  }

  /** @param reply called once, with `undefined` if the message needs no response */
  #handleQuery(message: Buffer, transport: DnsTransport, reply: (response: Buffer | undefined) => void): void {
    const parsedQuery = readQuery(message);
    if (parsedQuery.kind === 'drop') {
      reply(undefined);
      return;
    }
    this.#options.counts.requests++;
    if (parsedQuery.kind === 'failed') {
      reply(parsedQuery.response);
      return;
    }
    const { query } = parsedQuery;
    const names = this.#options.names();
    if (names === undefined && !this.#options.forwardBeforeTable) {
      reply(failure(query.message, 'SERVFAIL', query.questionEnd));
      return;
    }
    const records = query.addressType === undefined ? undefined : names?.find(query.name);
    if (records === undefined) void this.#forward(query, transport, reply);
    else reply(buildResponse(query, records, transport === 'udp' ? query.maxUdpBytes : maxTcpBytes));
  }

  async #forward(query: DnsQuery, transport: DnsTransport, reply: (response: Buffer) => void): Promise<void> {
    this.#pendingCount++;
    const response = await this.#options.upstream.forward(query, transport);
    this.#pendingCount--;
    reply(response ?? failure(query.message, 'SERVFAIL', query.questionEnd));
  }
}
