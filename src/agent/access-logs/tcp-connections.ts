/** Envoy's entries contain the bytes since the connection was opened, not since the previous entry. */
import { type AccessLogEntry, logTypes } from './log-entries.ts';

export interface ConnectionChange {
  readonly opened: 0 | 1;
  readonly closed: 0 | 1;
  readonly sent: number;
  readonly received: number;
}

interface CountedBytes {
  sent: number;
  received: number;
}

export class TcpConnections {
  readonly #maxConnections: number;
  readonly #startedAtMs: number;
  readonly #openConnections = new Map<string, CountedBytes>();

  /** @param startedAtMs since 1970; the previous agent has counted the earlier bytes of older connections */
  constructor(maxConnections: number, startedAtMs: number) {
    this.#maxConnections = maxConnections;
    this.#startedAtMs = startedAtMs;
  }

  get size(): number {
    return this.#openConnections.size;
  }

  recordEntry({ streamId, type, sent, received, startMs }: AccessLogEntry): ConnectionChange {
    const isConnectionEnd = type !== logTypes.tcpUpstreamConnected && type !== logTypes.tcpPeriodic;
    const previousBytes = this.#openConnections.get(streamId);
    if (isConnectionEnd) this.#openConnections.delete(streamId);
    if (previousBytes !== undefined) {
      const change = {
        sent: Math.max(0, sent - previousBytes.sent),
        received: Math.max(0, received - previousBytes.received),
      };
      previousBytes.sent = Math.max(sent, previousBytes.sent);
      previousBytes.received = Math.max(received, previousBytes.received);
      return { opened: 0, closed: isConnectionEnd ? 1 : 0, ...change };
    }
    if (startMs !== 0 && startMs < this.#startedAtMs) {
      if (!isConnectionEnd && this.#openConnections.size < this.#maxConnections)
        this.#openConnections.set(streamId, { sent, received });
      return { opened: 0, closed: isConnectionEnd ? 1 : 0, sent: 0, received: 0 };
    }
    if (isConnectionEnd) return { opened: 1, closed: 1, sent, received };
    if (this.#openConnections.size >= this.#maxConnections) return noConnectionChange;
    this.#openConnections.set(streamId, { sent, received });
    return { opened: 1, closed: 0, sent, received };
  }
}

const noConnectionChange: ConnectionChange = { opened: 0, closed: 0, sent: 0, received: 0 };
