/** Asks the name servers of resolv.conf what the table does not know (spec/agent.md §9). */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { answers, passedOn, type Query, withId } from '../../runtime/dns/dns-message.ts';
import { framed, TcpMessages } from '../../runtime/dns/tcp-messages.ts';

export type Transport = 'udp' | 'tcp';

export interface UpstreamOptions {
  /** `10.96.0.10`; in order. */
  readonly servers: readonly string[];
  /** Port of the servers, 53 but for tests: not the one that this agent listens at. */
  readonly serverPort?: number;
  /** How long each server has for its answer. */
  readonly timeoutMs: number;
  /** All at once: the first answer counts. */
  readonly parallel: boolean;
  /** How many questions may wait for answers at once. */
  readonly mostInFlight?: number;
  readonly random?: () => number;
}

export interface UpstreamCounts {
  requests: number;
  failures: number;
  /** Not asked: too many wait already. */
  refused: number;
  /** Told how long each answered one took. */
  took: (seconds: number) => void;
}

/** Each has a socket of its own, with a port of its own. */
const mostInFlightDefault = 512;
const dnsPort = 53;

export class DnsUpstream {
  readonly #options: UpstreamOptions;
  readonly #counts: UpstreamCounts;
  readonly #stop = new AbortController();
  #inFlight = 0;

  constructor(options: UpstreamOptions, counts: UpstreamCounts) {
    this.#options = options;
    this.#counts = counts;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** What a server answers, with the id of who asked; undefined: none does. Never rejects. */
  async ask(query: Query, transport: Transport): Promise<Buffer | undefined> {
    const { servers, parallel, mostInFlight = mostInFlightDefault } = this.#options;
    const places = parallel ? servers.length : 1;
    if (this.#inFlight + places > mostInFlight || this.#stop.signal.aborted) {
      this.#counts.refused++;
      return undefined;
    }
    this.#inFlight += places;
    this.#counts.requests++;
    const begin = performance.now();
    try {
      const found = parallel ? await this.#askAll(query, transport) : await this.#askInTurn(query, transport);
      this.#counts.took((performance.now() - begin) / 1000);
      return passedOn(found, query);
    } catch {
      this.#counts.failures++;
      return undefined;
    } finally {
      this.#inFlight -= places;
    }
  }

  /** Ends it: whoever waits for an answer gets a failure. */
  close(): void {
    this.#stop.abort();
  }

  /** Each time another one first: one that is slow is not everybody's. */
  async #askInTurn(query: Query, transport: Transport): Promise<Buffer> {
    const { servers, random = Math.random } = this.#options;
    const first = Math.floor(random() * servers.length);
    for (let i = 0; i < servers.length; i++) {
      try {
        return await this.#askOne(servers[(first + i) % servers.length]!, query, transport, this.#stop.signal);
      } catch (error) {
        if (this.#stop.signal.aborted) throw error;
      }
    }
    throw new Error('no name server responded');
  }

  async #askAll(query: Query, transport: Transport): Promise<Buffer> {
    const found = new AbortController();
    const signal = AbortSignal.any([found.signal, this.#stop.signal]);
    try {
      return await Promise.any(this.#options.servers.map((server) => this.#askOne(server, query, transport, signal)));
    } finally {
      found.abort();
    }
  }

  #askOne(server: string, query: Query, transport: Transport, signal: AbortSignal): Promise<Buffer> {
    const { serverPort = dnsPort, timeoutMs } = this.#options;
    const question = { server, port: serverPort, query, id: randomInt(0x1_0000), timeoutMs, signal };
    return ask(question, transport === 'udp' ? overUdp : overTcp);
  }
}

interface Asked {
  readonly server: string;
  readonly port: number;
  readonly query: Query;
  readonly id: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** One way to ask: it says what it hears, or that nothing more is to be heard. @returns how its socket is closed */
type Exchange = (asked: Asked, heard: (message: Buffer) => void, failed: (error: Error) => void) => () => void;

/** The answer to this very question: what has another id or question is somebody's guess, and is passed over. */
function ask(asked: Asked, exchange: Exchange): Promise<Buffer> {
  const { query, id, timeoutMs, signal } = asked;
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void): void => {
      clearTimeout(limit);
      signal.removeEventListener('abort', stopped);
      close();
      finish();
    };
    const fail = (error: Error): void => settle(() => reject(error));
    const stopped = (): void => fail(new Error('query canceled'));
    const limit = setTimeout(() => fail(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
    signal.addEventListener('abort', stopped, { once: true });
    const hear = (message: Buffer): void => {
      if (answers(message, id, query)) settle(() => resolve(message));
    };
    const close = exchange(asked, hear, fail);
  });
}

/** A connected socket hears of its server alone. */
const overUdp: Exchange = ({ server, port, query, id }, heard, failed) => {
  const socket = createSocket(isIPv6(server) ? 'udp6' : 'udp4');
  socket.on('error', failed);
  socket.on('message', heard);
  // No callback of `connect`: where there is one, it is given the error of a server that cannot be reached, and nobody else hears of it.
  socket.on('connect', () => socket.send(withId(query.message, id)));
  socket.connect(port, server);
  return () => {
    socket.removeAllListeners().on('error', () => {});
    socket.close();
  };
};

const overTcp: Exchange = ({ server, port, query, id }, heard, failed) => {
  const socket = connect({ host: server, port });
  const reader = new TcpMessages();
  socket.on('error', failed);
  socket.on('close', () => failed(new Error('name server closed the connection')));
  socket.on('data', (chunk) => {
    for (const message of reader.push(chunk)) heard(message);
  });
  socket.write(framed(withId(query.message, id)));
  return () => socket.destroy();
};
