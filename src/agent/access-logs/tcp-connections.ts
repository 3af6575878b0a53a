/** Envoy's entries contain the bytes since the connection was opened, not since the previous entry. */
import { type AccessLogEntry, logTypes } from './log-entries.ts';

export interface ConnectionChange {
  readonly opened: 0 | 1;
  readonly closed: 0 | 1;
  readonly sent: number;
  readonly received: number;
}

interface Counted {
  sent: number;
  received: number;
}

export class TcpConnections {
  readonly #max: number;
  readonly #startedAtMs: number;
  readonly #openConnections = new Map<string, Counted>();

  /** @param startedAtMs since 1970; the previous agent has counted the earlier bytes of older connections */
  constructor(max: number, startedAtMs: number) {
    this.#max = max;
    this.#startedAtMs = startedAtMs;
  }

  get size(): number {
    return this.#openConnections.size;
  }

  take({ streamId, type, sent, received, startMs }: AccessLogEntry): ConnectionChange {
    const isEnd = type !== logTypes.tcpUpstreamConnected && type !== logTypes.tcpPeriodic;
    const previous = this.#openConnections.get(streamId);
    if (isEnd) this.#openConnections.delete(streamId);
    if (previous !== undefined) {
      const change = {
        sent: Math.max(0, sent - previous.sent),
        received: Math.max(0, received - previous.received),
      };
      previous.sent = Math.max(sent, previous.sent);
      previous.received = Math.max(received, previous.received);
      return { opened: 0, closed: isEnd ? 1 : 0, ...change };
    }
    if (startMs !== 0 && startMs < this.#startedAtMs) {
      if (!isEnd && this.#openConnections.size < this.#max) this.#openConnections.set(streamId, { sent, received });
      return { opened: 0, closed: isEnd ? 1 : 0, sent: 0, received: 0 };
    }
    if (isEnd) return { opened: 1, closed: 1, sent, received };
    if (this.#openConnections.size >= this.#max) return noChange;
    this.#openConnections.set(streamId, { sent, received });
    return { opened: 1, closed: 0, sent, received };
  }
}

const noChange: ConnectionChange = { opened: 0, closed: 0, sent: 0, received: 0 };
