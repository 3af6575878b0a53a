/**
 * TCP connections by which nobody has said yet who is there: they are closed after a while, and bounded by address and in
 * whole (see ConnectionBounds). A connection that never speaks, a TLS handshake that is never finished, an HTTP/2 session
 * without settings or without a stream are all the same here.
 *
 * What they use up is counted for their address over all of its connections (see AddressPace). While an address is held
 * off, its new connections are refused before anything is set up for them, and connections by which too many streams began
 * that came to nothing are told to calm down and ended. Where nodes live that were served, new connections wait in a line
 * instead, and those that are let in may open a few streams until a node has said by them who it is.
 */
import type { Socket } from 'node:net';
import { addressGroup, type ConnectionBounds } from '../../../runtime/fences/connection-bounds.ts';
import { AcceptLine, acceptLineLimits } from './accept-line.ts';
import type { AddressPace } from './address-pace.ts';
import { ConnectionQueue, type ConnectionQueueOptions } from './connection-queue.ts';
import type { KnownNodes } from './known-nodes.ts';
import { endBusy, keepPace, type PacedSession, StreamAllowance } from './session-pace.ts';

export interface StrangerLimits {
  /** How long a connection may live until a stream has said who is there, and after the last such stream is gone. Default 30 s. */
  readonly silentMs: number;
  /** What may be sent meanwhile. Default 16 MiB. */
  readonly maxSilentBytes: number;
  /** Default 512 and 4096. */
  readonly maxIdlePerAddress: number;
  readonly maxIdleInWhole: number;
  /** Connections of an address, and of all, those of clients that are served among them. Default 10 000 and 60 000. */
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
/** Time in which the status of a stream that is rejected at shutdown reaches its client. */
const statusLingerMs = 1_000;
/** What a connection costs its address until it is introduced, in streams: a TLS handshake is a millisecond's work. */
const connectionCosts = { plaintext: 2, tls: 8 } as const;
/** Bytes that cost as much as a stream: of headers that are refused for what they unpack to, the dearest frames there are. */
const bytesPerUnit = 4 * 1024;
/** What a session costs that was ended for its pings or settings. */
const busySessionCost = 400;
/** Streams that may come to nothing on a connection whose address is held off. */
const mostWasted = 20;
/** What it may have cost by then: a large node takes half a MiB to say who it is. */
const mostPaid = 160;
/** How much of what was wasted counts a second later. */
const wasteKept = 0.9;

/** Connections that wait for their handshake or session: a socket costs a few KiB. */
const maxQueuedConnections = 8_192;

/** Why a connection was refused or ended. */
export type Refusal = 'address held off' | 'too many connections' | 'too busy' | 'waited too long';

export interface ConnectionSetUp extends Pick<ConnectionQueueOptions, 'isOpen' | 'onQueued' | 'onEmptied'> {
  /** Initial number of TLS handshakes at a time. */
  readonly slots: number;
}

export interface StrangersOptions {
  readonly limits: StrangerLimits;
  /** Bounds of the connections of all ports. */
  readonly bounds: ConnectionBounds<Socket>;
  readonly pace: AddressPace;
  readonly known: KnownNodes;
  /** Whether the port has TLS. */
  readonly isSecure: boolean;
  /** Streams that one connection may have at the same time, once nodes have said by it who they are. */
  readonly maxStreams: number;
  /** Limits of connections that are set up at a time. */
  readonly setUp: ConnectionSetUp;
  readonly refused: (why: Refusal) => void;
  /** An address is held off from now on. */
  readonly heldOff: (group: string, forMs: number) => void;
}

interface Held {
  readonly socket: Socket;
  readonly group: string;
  /** Streams by which a node has said who it is. */
  streams: number;
  wasIntroduced: boolean;
  /** When it was one of a stranger last, and what it had sent then. */
  since: number;
  bytes: number;
  /** Streams of the connection that are kept waiting here, and since when there has been one. */
  kept: number;
  keptSince: number;
  /** What it cost its address until it was introduced, and the bytes that this is for. */
  paid: number;
  paidBytes: number;
  session: PacedSession | undefined;
  allowance: StreamAllowance | undefined;
  /** Streams that have come to nothing, or not yet to anything; those of long ago count less. */
  wasted: number;
}

export class Strangers {
  readonly #options: StrangersOptions;
  readonly #line = new AcceptLine<Socket>(acceptLineLimits, Math.random);
  /** Connections of addresses that are not held off, until they are set up. */
  readonly queue: ConnectionQueue;
  /** Connections by `host:port`, as a stream tells its peer. */
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;
  #emptied: PromiseWithResolvers<void> | undefined;

  constructor(options: StrangersOptions) {
    this.#options = options;
    const { limits, isSecure, known, setUp, refused } = options;
    this.queue = new ConnectionQueue(
      {
        ...{
          isSecure,
          maxWaitMs: limits.silentMs,
          maxPerAddress: limits.maxIdlePerAddress,
          maxTotal: maxQueuedConnections,
        },
        ...{ ...setUp, isKnown: (group) => known.hasAny(group), onExpired: () => refused('waited too long') },
      },
      setUp.slots,
    );
  }

  /**
   * Takes in a new connection, at once or when it is its turn, or closes it.
   *
   * @param begin sets it up. `isSuspect`: its address is held off
   */
  admit(socket: Socket, begin: (isSuspect: boolean) => void): void {
    // What breaks is somebody's connection, and nobody's failure.
    socket.on('error', () => socket.destroy());
    const { pace, known, refused } = this.#options;
    const group = addressGroup(socket.remoteAddress);
    if (!pace.isHeldOff(group)) {
      this.#enter(socket, group, () => {
        if (this.#take(socket, group)) begin(false);
      });
    } else if (known.hasAny(group)) {
      const turn = (): void => {
        if (this.#take(socket, group)) begin(true);
      };
      if (!this.#line.add(group, socket, turn)) refused('address held off');
    } else {
      // Not destroy(): a connection that is closed from here is remembered by the system for a minute.
      socket.resetAndDestroy();
      refused('address held off');
    }
  }

  /** The HTTP/2 session of a connection is there. */
  sessionBegan(session: PacedSession, peer: string): void {
    const held = this.#held.get(peer);
    if (held === undefined) return;
    this.queue.handshakeCompleted(held.socket);
    held.session = session;
    held.allowance = new StreamAllowance(session, this.#options.maxStreams);
    keepPace(session, undefined, () => {
      this.#options.refused('too busy');
      this.#line.slowDown(held.group);
      this.#spend(held.group, busySessionCost);
    });
  }

  /** A stream was begun by it, whatever it is for. */
  streamBegan(peer: string): void {
    const held = this.#held.get(peer);
    if (held === undefined) return;
    held.wasted++;
    this.#spend(held.group, 1);
    this.#calmIfBusy(held);
  }

  /**
   * A stream of it waits for its turn here: that time does not count as the client's silence.
   *
   * @returns to be called when it does not wait any more: again is as good as once
   */
  keepWaiting(peer: string): () => void {
    const held = this.#held.get(peer);
    if (held === undefined) return () => {};
    if (held.kept++ === 0) held.keptSince = performance.now();
    let isWaiting = true;
    return () => {
      if (isWaiting && --held.kept === 0) held.since += performance.now() - held.keptSince;
      isWaiting = false;
    };
  }

  /** A stream came to nothing for reasons of ours. */
  excuse(peer: string): void {
    const held = this.#held.get(peer);
    if (held === undefined) return;
    held.wasted = Math.max(0, held.wasted - 1);
    this.#options.pace.giveBack(held.group, 1);
  }

  /** A node has said who it is by a stream from there. */
  introduced(peer: string): void {
    const held = this.#held.get(peer);
    if (held === undefined) return;
    this.excuse(peer);
    this.#options.pace.giveBack(held.group, held.paid);
    held.paid = 0;
    held.streams++;
    held.allowance?.grow(held.streams);
    held.wasIntroduced = true;
    this.#options.bounds.busy(held.socket);
  }

  /** A stream that had said who is there is gone. */
  left(peer: string): void {
    const held = this.#held.get(peer);
    if (held === undefined || --held.streams > 0) return;
    held.since = performance.now();
    held.bytes = held.socket.bytesRead;
    held.paidBytes = held.bytes;
    this.#options.bounds.idle(held.socket);
  }

  /**
   * Closes connections without a served node: at once without an HTTP/2 session; else when the status of a rejected stream can have
   * arrived.
   *
   * @returns when all connections are closed
   */
  whenEmpty(): Promise<void> {
    this.#line.clear();
    this.queue.clear();
    for (const { socket, wasIntroduced, session } of this.#held.values()) {
      if (wasIntroduced) continue;
      if (session === undefined) socket.destroy();
      else setTimeout(() => socket.destroy(), statusLingerMs).unref();
    }
    this.#emptied ??= Promise.withResolvers<void>();
    if (this.#held.size === 0) this.#emptied.resolve();
    return this.#emptied.promise;
  }

  /** Closes all that there are. */
  cut(): void {
    this.#stop();
    this.#line.clear();
    this.queue.clear();
    for (const { socket } of this.#held.values()) socket.destroy();
  }

  /** An address is held off: what it is too busy with ends. */
  calm(group: string): void {
    for (const held of this.#held.values()) if (held.group === group) this.#calmIfBusy(held);
  }

  #enter(socket: Socket, group: string, take: () => void): void {
    const { bounds, limits, refused } = this.#options;
    // At the limit, a connection makes room for it, or it is refused.
    if (bounds.size + this.queue.size >= limits.maxInWhole) take();
    else if (!this.queue.add(group, socket, take)) refused('too many connections');
  }

  #take(socket: Socket, group: string): boolean {
    if (!this.#options.bounds.admit(socket, socket.remoteAddress)) {
      this.#options.refused('too many connections');
      return false;
    }
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    const since = performance.now();
    const held: Held = {
      ...{ socket, group, streams: 0, wasIntroduced: false, since, bytes: 0, kept: 0, keptSince: 0 },
      ...{ paid: 0, paidBytes: 0, session: undefined, allowance: undefined, wasted: 0 },
    };
    this.#held.set(peer, held);
    socket.once('close', () => this.#forget(peer, held));
    this.#timer ??= setInterval(() => this.#sweep(), Math.min(sweepMs, this.#options.limits.silentMs / 4)).unref();
    this.#pay(held, connectionCosts[this.#options.isSecure ? 'tls' : 'plaintext']);
    return true;
  }

  #pay(held: Held, units: number): void {
    held.paid += units;
    this.#spend(held.group, units);
  }

  /** Charges a stranger's address for what it has sent since the last time. */
  #payForBytes(held: Held): void {
    const units = Math.floor((held.socket.bytesRead - held.paidBytes) / bytesPerUnit);
    if (held.streams > 0 || units <= 0) return;
    held.paidBytes += units * bytesPerUnit;
    this.#pay(held, units);
    this.#calmIfBusy(held);
  }

  #spend(group: string, units: number): void {
    const forMs = this.#options.pace.spend(group, units);
    if (forMs > 0) this.#options.heldOff(group, forMs);
  }

  /** One by which nodes are served goes on with them, unless it is one that is too busy. */
  #calmIfBusy(held: Held): void {
    if (held.wasted <= mostWasted && held.paid <= mostPaid) return;
    if (!this.#options.pace.isHeldOff(held.group)) return;
    held.wasted = 0;
    held.paid = 0;
    this.#options.refused('too busy');
    this.#line.slowDown(held.group);
    if (held.session === undefined) held.socket.destroy();
    else endBusy(held.session);
  }

  #forget(peer: string, held: Held): void {
    this.#payForBytes(held);
    if (this.#held.get(peer) === held) this.#held.delete(peer);
    if (this.#held.size > 0) return;
    this.#stop();
    this.#emptied?.resolve();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #sweep(): void {
    const { silentMs, maxSilentBytes } = this.#options.limits;
    const latest = performance.now() - silentMs;
    for (const held of this.#held.values()) {
      held.wasted = Math.floor(held.wasted * wasteKept);
      const { socket, streams, since, bytes, kept } = held;
      if (streams > 0) continue;
      this.#payForBytes(held);
      if ((since <= latest && kept === 0) || socket.bytesRead - bytes > maxSilentBytes) socket.destroy();
    }
  }
}
