/** One connection over TCP or TLS with pipelined queries (RFC 7766). */
import type { Socket } from 'node:net';
import { framed, TcpMessages } from './tcp-messages.ts';

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
  readonly limited?: (why: DnsStreamEnd) => void;
}

/** A client that has sent all its queries may half-close (RFC 7766 §6.2.3). */
export function serveDnsStream(
  connection: Socket,
  limits: DnsStreamLimits,
  { query, limited }: DnsStreamHandlers,
): void {
  const { maxPending, maxUnreadBytes, maxQueryBytes, idleMs, queriesPerSecond } = limits;
  const messages = new TcpMessages();
  let pending = 0;
  let readInSecond = 0;
  let pause: NodeJS.Timeout | undefined;
  const close = (reason: DnsStreamEnd): void => {
    if (connection.destroyed) return;
    limited?.(reason);
    connection.destroy();
  };
  const idle = setTimeout(() => (pending > 0 ? idle.refresh() : close('idle')), idleMs);
  const endWhenDone = (): void => {
    if (pending === 0 && connection.readableEnded) connection.end();
  };
  const respond = (response: Buffer | undefined): void => {
    pending--;
    if (connection.destroyed) return;
    if (response !== undefined) {
      idle.refresh();
      connection.write(framed(response));
    }
    if (connection.writableLength > maxUnreadBytes) close('responses not read');
    else endWhenDone();
  };
  /** Leaves queries that exceed the rate in the socket, so that the client waits. */
  const throttle = (count: number): void => {
    readInSecond += count;
    if (queriesPerSecond === undefined || readInSecond < queriesPerSecond || pause !== undefined) return;
    connection.pause();
    pause = setTimeout(() => {
      pause = undefined;
      readInSecond = Math.max(0, readInSecond - queriesPerSecond);
      connection.resume();
    }, 1_000);
  };
  connection.on('error', () => connection.destroy());
  connection.on('end', endWhenDone);
  connection.on('close', () => {
    clearTimeout(idle);
    clearTimeout(pause);
  });
  connection.on('data', (chunk) => {
    const receivedMessages = messages.push(chunk);
    if (receivedMessages.length > 0) idle.refresh();
    for (const message of receivedMessages) {
      if (connection.destroyed) return;
      if (message.length > maxQueryBytes) {
        close('query too long');
        return;
      }
      if (++pending > maxPending) {
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
