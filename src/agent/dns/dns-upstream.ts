import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { type DnsQuery, forwardedResponse, isResponseTo, withId } from '../../runtime/dns/dns-message.ts';
import { frameMessage, TcpMessages } from '../../runtime/dns/tcp-messages.ts';

export type DnsTransport = 'udp' | 'tcp';

export interface UpstreamOptions {
  readonly servers: readonly string[];
  readonly serverPort?: number;
  readonly timeoutMs: number;
  /** Queries all servers at once and uses the first response. */
  readonly parallel: boolean;
  readonly maxInFlight?: number;
  readonly random?: () => number;
}

export interface UpstreamCounts {
  requests: number;
  failures: number;
  refused: number;
  recordDuration: (seconds: number) => void;
}

/** Each pending query uses a socket and a port. */
const defaultMaxInFlight = 512;
const dnsPort = 53;

export class DnsUpstream {
  readonly #options: UpstreamOptions;
  readonly #counts: UpstreamCounts;
  readonly #stop = new AbortController();
  #inFlightCount = 0;

  constructor(options: UpstreamOptions, counts: UpstreamCounts) {
    this.#options = options;
    this.#counts = counts;
  }

  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  /** Never rejects; resolves with `undefined` without a response. */
  async forward(query: DnsQuery, transport: DnsTransport): Promise<Buffer | undefined> {
    const { servers, parallel, maxInFlight: inFlightLimit = defaultMaxInFlight } = this.#options;
    const slots = parallel ? servers.length : 1;
    if (this.#inFlightCount + slots > inFlightLimit || this.#stop.signal.aborted) {
      this.#counts.refused++;
      return undefined;
    }
    this.#inFlightCount += slots;
    this.#counts.requests++;
    const startedAt = performance.now();
    try {
      const response = parallel
        ? await this.#queryAllServers(query, transport)
        : await this.#queryInTurn(query, transport);
      this.#counts.recordDuration((performance.now() - startedAt) / 1000);
      return forwardedResponse(response, query);
    } catch {
      this.#counts.failures++;
      return undefined;
    } finally {
      this.#inFlightCount -= slots;
    }
  }

  close(): void {
    this.#stop.abort();
  }

  /** Starts with a random server, so that a slow one does not delay all queries. */
  async #queryInTurn(query: DnsQuery, transport: DnsTransport): Promise<Buffer> {
    const { servers, random = Math.random } = this.#options;
    const firstIndex = Math.floor(random() * servers.length);
    for (let i = 0; i < servers.length; i++) {
      try {
        return await this.#queryServer(
          servers[(firstIndex + i) % servers.length]!,
          query,
          transport,
          this.#stop.signal,
        );
      } catch (error) {
        if (this.#stop.signal.aborted) throw error;
      }
    }
    throw new Error('no name server responded');
  }

  async #queryAllServers(query: DnsQuery, transport: DnsTransport): Promise<Buffer> {
    const cancellation = new AbortController();
    const signal = AbortSignal.any([cancellation.signal, this.#stop.signal]);
    try {
      return await Promise.any(
        this.#options.servers.map((server) => this.#queryServer(server, query, transport, signal)),
      );
    } finally {
      cancellation.abort();
    }
  }

  #queryServer(server: string, query: DnsQuery, transport: DnsTransport, signal: AbortSignal): Promise<Buffer> {
    const { serverPort = dnsPort, timeoutMs } = this.#options;
    const upstreamQuery = { server, port: serverPort, query, id: randomInt(0x1_0000), timeoutMs, signal };
    return exchangeQuery(upstreamQuery, transport === 'udp' ? exchangeOverUdp : exchangeOverTcp);
  }
}

interface UpstreamQuery {
  readonly server: string;
  readonly port: number;
  readonly query: DnsQuery;
  readonly id: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

type ExchangeFunction = (
  upstreamQuery: UpstreamQuery,
  onMessage: (message: Buffer) => void,
  onFailed: (error: Error) => void,
) => () => void;

/** Ignores messages with another ID or question, which may be spoofed. */
function exchangeQuery(upstreamQuery: UpstreamQuery, exchange: ExchangeFunction): Promise<Buffer> {
  const { query, id, timeoutMs, signal } = upstreamQuery;
  return new Promise((resolve, reject) => {
    const finishOnce = (finish: () => void): void => {
      clearTimeout(timeoutTimer);
      signal.removeEventListener('abort', onStopped);
      closeSocket();
      finish();
    };
    const fail = (error: Error): void => finishOnce(() => reject(error));
    const onStopped = (): void => fail(new Error('query canceled'));
    const timeoutTimer = setTimeout(() => fail(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
    signal.addEventListener('abort', onStopped, { once: true });
    const accept = (message: Buffer): void => {
      if (isResponseTo(message, id, query)) finishOnce(() => resolve(message));
    };
    const closeSocket = exchange(upstreamQuery, accept, fail);
  });
}

/** A connected socket receives only from its server. */
const exchangeOverUdp: ExchangeFunction = ({ server, port, query, id }, onMessage, onFailed) => {
  const socket = createSocket(isIPv6(server) ? 'udp6' : 'udp4');
  socket.on('error', onFailed);
  socket.on('message', onMessage);
  // A callback passed to `connect` would receive the error of an unreachable server, and the `error` handler would not.
  socket.on('connect', () => socket.send(withId(query.message, id)));
  socket.connect(port, server);
  return () => {
    socket.removeAllListeners().on('error', () => {});
    socket.close();
  };
};

const exchangeOverTcp: ExchangeFunction = ({ server, port, query, id }, onMessage, onFailed) => {
  const socket = connect({ host: server, port });
  const reader = new TcpMessages();
  socket.on('error', onFailed);
  socket.on('close', () => onFailed(new Error('name server closed the connection')));
  socket.on('data', (chunk) => {
    for (const message of reader.push(chunk)) onMessage(message);
  });
  socket.write(frameMessage(withId(query.message, id)));
  return () => socket.destroy();
};
