/**
 * TCP connections by which nobody has said yet who is there: they are closed after a while, and bounded by address and in
 * whole (see ConnectionBounds). A connection that never speaks, a TLS handshake that is never finished, an HTTP/2 session
 * without settings or without a stream are all the same here.
 */
import type { Socket } from 'node:net';
import { ConnectionBounds } from '../../runtime/connection-bounds.ts';

export interface StrangerLimits {
  /** Until a stream has said who is there; and after the last such stream is gone. Default 30 s. */
  readonly silentMs: number;
  /** What may be sent meanwhile. Default 16 MiB. */
  readonly maxSilentBytes: number;
  /** Default 512 and 4096. */
  readonly maxIdlePerAddress: number;
  readonly maxIdleInWhole: number;
  /** With those of clients that are being served. Default 10 000 and 60 000. */
  readonly maxPerAddress: number;
  readonly maxInWhole: number;
}

export const strangerLimits: StrangerLimits = {
  silentMs: 30_000,
  maxSilentBytes: 16 * 1024 * 1024,
  maxIdlePerAddress: 512,
  maxIdleInWhole: 4_096,
  maxPerAddress: 10_000,
  maxInWhole: 60_000,
};

const sweepMs = 1_000;

interface Held {
  readonly socket: Socket;
  /** Streams by which a node has said who it is. */
  streams: number;
  wasIntroduced: boolean;
  /** When it was one of a stranger last, and what it had sent then. */
  since: number;
  bytes: number;
}

export class Strangers {
  readonly #limits: StrangerLimits;
  readonly #bounds: ConnectionBounds<Socket>;
  /** By `host:port`, as a stream tells its peer. */
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;
  #emptied: PromiseWithResolvers<void> | undefined;

  constructor(limits: StrangerLimits) {
    this.#limits = limits;
    this.#bounds = new ConnectionBounds(limits);
  }

  /** @returns whether the connection may stay; else it is closed */
  admit(socket: Socket): boolean {
    // What breaks is somebody's connection, and nobody's failure.
    socket.on('error', () => socket.destroy());
    if (!this.#bounds.admit(socket, socket.remoteAddress)) return false;
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    this.#held.set(peer, { socket, streams: 0, wasIntroduced: false, since: performance.now(), bytes: 0 });
    socket.once('close', () => {
      if (this.#held.get(peer)?.socket === socket) this.#held.delete(peer);
      if (this.#held.size > 0) return;
      this.#stop();
      this.#emptied?.resolve();
    });
    this.#timer ??= setInterval(() => this.#sweep(), Math.min(sweepMs, this.#limits.silentMs / 4)).unref();
    return true;
  }

  /** A node has said who it is by a stream from there. */
  introduced(peer: string): void {
    const held = this.#held.get(peer);
    if (held === undefined) return;
    held.streams++;
    held.wasIntroduced = true;
    this.#bounds.busy(held.socket);
  }

  /** Such a stream is gone. */
  left(peer: string): void {
    const held = this.#held.get(peer);
    if (held === undefined || --held.streams > 0) return;
    held.since = performance.now();
    held.bytes = held.socket.bytesRead;
    this.#bounds.idle(held.socket);
  }

  /** Closes those by which nobody has ever said who is there. @returns when all others are gone */
  whenEmpty(): Promise<void> {
    for (const { socket, wasIntroduced } of this.#held.values()) if (!wasIntroduced) socket.destroy();
    this.#emptied ??= Promise.withResolvers<void>();
    if (this.#held.size === 0) this.#emptied.resolve();
    return this.#emptied.promise;
  }

  /** Closes all that there are. */
  cut(): void {
    this.#stop();
    for (const { socket } of this.#held.values()) socket.destroy();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #sweep(): void {
    const { silentMs, maxSilentBytes } = this.#limits;
    const latest = performance.now() - silentMs;
    for (const { socket, streams, since, bytes } of this.#held.values()) {
      if (streams > 0) continue;
      if (since <= latest || socket.bytesRead - bytes > maxSilentBytes) socket.destroy();
    }
  }
}
