/** One connection over TCP or TLS with pipelined queries (RFC 7766). */
import type { Socket } from 'node:net';
import { frameMessage, TcpMessages } from './tcp-messages.ts';

export interface DnsStreamLimits {
  readonly maxPending: number;
  readonly maxUnreadBytes: number;
  readonly maxQueryBytes: number;
  /** Maximum milliseconds without a complete query or a response. */
  readonly idleMs: number;
  /** Maximum queries read per second; further ones stay in the socket. No limit if absent. */
  readonly queriesPerSecond?: number;
}

export type DnsStreamEnd = 'idle' | 'too many pending queries' | 'query too long' | 'responses not read';

export interface DnsStreamHandlers {
  /**
   * `respond` is called once, also after the connection was closed; with `undefined` if the message needs no response.
   */
  readonly query: (message: Buffer, respond: (response: Buffer | undefined) => void) => void;
  readonly limited?: (reason: DnsStreamEnd) => void;
}

/** A client that has sent all its queries may half-close (RFC 7766 §6.2.3). */
export function serveDnsStream(
  connection: Socket,
  limits: DnsStreamLimits,
  { query, limited }: DnsStreamHandlers,
): void {
  const { maxPending, maxUnreadBytes, maxQueryBytes, idleMs, queriesPerSecond } = limits;
  const messages = new TcpMessages();
  let pendingQueries = 0;
  let queriesInSecond = 0;
  let pauseTimer: NodeJS.Timeout | undefined;
  const close = (reason: DnsStreamEnd): void => {
    if (connection.destroyed) return;
    limited?.(reason);
    connection.destroy();
  };
  const idleTimer = setTimeout(() => (pendingQueries > 0 ? idleTimer.refresh() : close('idle')), idleMs);
  const closeWhenDone = (): void => {
    if (pendingQueries === 0 && connection.readableEnded) connection.end();
  };
  const respond = (response: Buffer | undefined): void => {
    pendingQueries--;
    if (connection.destroyed) return;
    if (response !== undefined) {
      idleTimer.refresh();
      connection.write(frameMessage(response));
    }
    if (connection.writableLength > maxUnreadBytes) close('responses not read');
    else closeWhenDone();
  };
  /** Leaves queries that exceed the rate in the socket, so that the client waits. */
  const throttle = (count: number): void => {
    queriesInSecond += count;
    if (queriesPerSecond === undefined || queriesInSecond < queriesPerSecond || pauseTimer !== undefined) return;
    connection.pause();
    pauseTimer = setTimeout(() => {
      pauseTimer = undefined;
      queriesInSecond = Math.max(0, queriesInSecond - queriesPerSecond);
      connection.resume();
    }, 1_000);
  };
  connection.on('error', () => connection.destroy());
  connection.on('end', closeWhenDone);
  connection.on('close', () => {
    clearTimeout(idleTimer);
    clearTimeout(pauseTimer);
  });
  connection.on('data', (chunk) => {
    const receivedMessages = messages.push(chunk);
    if (receivedMessages.length > 0) idleTimer.refresh();
    for (const message of receivedMessages) {
      if (connection.destroyed) return;
      if (message.length > maxQueryBytes) {
        close('query too long');
        return;
      }
      if (++pendingQueries > maxPending) {
        close('too many pending queries');
        return;
      }
      query(message, respond);
    }
    if (messages.announcedBytes > maxQueryBytes) {
      close('query too long');
      return;
    }
    throttle(receivedMessages.length);
  });
}
