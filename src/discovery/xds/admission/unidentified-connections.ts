/**
 * Limits TCP connections without an identified node in duration, by address and in total (see ConnectionBounds). This includes silent connections,
 * unfinished TLS handshakes, and HTTP/2 sessions without settings or streams.
 *
 * While an address is throttled (see AddressPace), its new connections are reset, and connections with too many useless streams receive
 * ENHANCE_YOUR_CALM. At addresses with known nodes, new connections are queued instead, and may open a few streams until a node is identified.
 */
import type { Socket } from 'node:net';
import { addressGroup, type ConnectionBounds } from '../../../runtime/fences/connection-bounds.ts';
import { AcceptQueue, acceptQueueLimits } from './accept-queue.ts';
import type { AddressPace } from './address-pace.ts';
import { ConnectionQueue, type ConnectionQueueOptions } from './connection-queue.ts';
import type { KnownNodes } from './known-nodes.ts';
import { closeBusySession, limitFrames, type PacedSession, StreamAllowance } from './session-pace.ts';

export interface UnidentifiedLimits {
  /** Timeout for identifying a node, which also starts after the last stream of an identified node. */
  readonly silentMs: number;
  /** Maximum data received in this time. */
  readonly maxSilentBytes: number;
  readonly maxIdlePerAddress: number;
  readonly maxIdleConnections: number;
  /** Includes connections of served clients. */
  readonly maxPerAddress: number;
  readonly maxConnections: number;
}

export const unidentifiedLimits: UnidentifiedLimits = {
  silentMs: 30_000,
  maxSilentBytes: 16 * 1024 * 1024,
  maxIdlePerAddress: 512,
  maxIdleConnections: 4_096,
  maxPerAddress: 10_000,
  maxConnections: 60_000,
};

const sweepIntervalMs = 1_000;
/** Time in which a client can read the status of a stream that is rejected at shutdown. */
const statusLingerMs = 1_000;
/** Costs are in streams, and are refunded when a node is identified. A TLS handshake takes one millisecond of CPU time. */
const connectionCosts = { plaintext: 2, tls: 8 } as const;
/** Received bytes that cost as much as a stream. Rejected compressed headers are the most expensive frames. */
const bytesPerUnit = 4 * 1024;
/** Cost of a session that is closed because of pings or settings, in streams. */
const busySessionCost = 400;
/** Useless streams per connection at a throttled address. */
const maxWastedStreams = 20;
/** Maximum cost of a connection before identification, in streams. A large node has half a MiB. */
const maxChargedStreams = 160;
/** Factor by which {@link TrackedConnection.wasted} decays each second. */
const wasteDecay = 0.9;

/** A socket before its handshake or session costs a few KiB. */
const maxQueuedConnections = 8_192;
const maxQueuedBytes = 64 * 1024 * 1024;

export type ConnectionRefusal = 'address held off' | 'too many connections' | 'too busy' | 'waited too long';

export interface ConnectionSetUp extends Pick<ConnectionQueueOptions, 'isOpen' | 'onChange'> {
  readonly slots: number;
}

export interface UnidentifiedOptions {
  readonly limits: UnidentifiedLimits;
  readonly bounds: ConnectionBounds<Socket>;
  readonly pace: AddressPace;
  readonly known: KnownNodes;
  readonly isSecure: boolean;
  /** Concurrent streams of a connection with identified nodes. */
  readonly maxStreams: number;
  readonly setUp: ConnectionSetUp;
  readonly reportRefusal: (reason: ConnectionRefusal) => void;
  readonly onThrottled: (group: string, durationMs: number) => void;
}

interface TrackedConnection {
  readonly socket: Socket;
  readonly group: string;
  /** Current streams with an identified node. */
  streams: number;
  wasIdentified: boolean;
  /** Time since which there is no identified node, and the number of bytes received before. */
  since: number;
  bytes: number;
  /** Streams in the admission queue, and the time since which there is at least one. */
  waitingStreams: number;
  waitingSince: number;
  chargedUnits: number;
  chargedBytes: number;
  session: PacedSession | undefined;
  allowance: StreamAllowance | undefined;
  /** Useless or unidentified streams, which decay over time. */
  wasted: number;
}

export class UnidentifiedConnections {
  readonly #options: UnidentifiedOptions;
  readonly #acceptQueue = new AcceptQueue<Socket>(acceptQueueLimits, Math.random);
  /** Excludes connections of throttled addresses. */
  readonly queue: ConnectionQueue;
  /** Connections by `host:port`, which is the peer of their streams. */
  readonly #trackedConnections = new Map<string, TrackedConnection>();
  #timer: NodeJS.Timeout | undefined;
  #emptyWaiter: PromiseWithResolvers<void> | undefined;

  constructor(options: UnidentifiedOptions) {
    this.#options = options;
    const { limits, known, setUp, reportRefusal: refused } = options;
    this.queue = new ConnectionQueue(
      {
        ...{
          maxWaitMs: limits.silentMs,
          maxPerAddress: limits.maxIdlePerAddress,
          maxTotal: maxQueuedConnections,
          maxTotalBytes: maxQueuedBytes,
        },
        ...{ ...setUp, isKnown: (group) => known.hasKnownNodes(group), onExpired: () => refused('waited too long') },
      },
      setUp.slots,
    );
  }

  /** @param onAdmitted sets the connection up; `isSuspect` is true if its address is throttled */
  admit(socket: Socket, onAdmitted: (isSuspect: boolean) => void): void {
    // Socket errors need no handling here, because `close` follows.
    socket.on('error', () => socket.destroy());
    const { pace, known, reportRefusal: refused } = this.#options;
    const group = addressGroup(socket.remoteAddress);
    if (!pace.isThrottled(group)) {
      this.#enqueue(socket, group, () => {
        if (this.#track(socket, group)) onAdmitted(false);
      });
    } else if (known.hasKnownNodes(group)) {
      const onTurn = (): void => {
        if (this.#track(socket, group)) onAdmitted(true);
      };
      if (!this.#acceptQueue.add(group, socket, onTurn)) refused('address held off');
    } else {
      // After destroy(), the system would keep the connection for a minute.
      socket.resetAndDestroy();
      refused('address held off');
    }
  }

  onSessionStarted(session: PacedSession, peer: string): void {
    const connection = this.#trackedConnections.get(peer);
    if (connection === undefined) return;
    connection.session = session;
    connection.allowance = new StreamAllowance(session, this.#options.maxStreams);
    limitFrames(session, undefined, () => {
      this.#options.reportRefusal('too busy');
      this.#acceptQueue.throttle(connection.group);
      this.#chargeAddress(connection.group, busySessionCost);
    });
  }

  onStreamStarted(peer: string): void {
    const connection = this.#trackedConnections.get(peer);
    if (connection === undefined) return;
    this.queue.setUpCompleted(connection.socket);
    connection.wasted++;
    this.#chargeAddress(connection.group, 1);
    this.#closeIfBusy(connection);
  }

  /**
   * Excludes the time in the admission queue from the client's silence.
   *
   * @returns a function that ends the wait; idempotent
   */
  beginWait(peer: string): () => void {
    const connection = this.#trackedConnections.get(peer);
    if (connection === undefined) return () => {};
    if (connection.waitingStreams++ === 0) connection.waitingSince = performance.now();
    let isAdmissionPending = true;
    return () => {
      if (isAdmissionPending && --connection.waitingStreams === 0)
        connection.since += performance.now() - connection.waitingSince;
      isAdmissionPending = false;
    };
  }

  refundStream(peer: string): void {
    const connection = this.#trackedConnections.get(peer);
    if (connection === undefined) return;
    connection.wasted = Math.max(0, connection.wasted - 1);
    this.#options.pace.refund(connection.group, 1);
  }

  identified(peer: string): void {
    const connection = this.#trackedConnections.get(peer);
    if (connection === undefined) return;
    this.refundStream(peer);
    this.#options.pace.refund(connection.group, connection.chargedUnits);
    connection.chargedUnits = 0;
    connection.streams++;
    connection.allowance?.increaseLimit(connection.streams);
    connection.wasIdentified = true;
    this.#options.bounds.busy(connection.socket);
  }

  /** Called when a stream with an identified node ends. */
  onStreamEnded(peer: string): void {
    const connection = this.#trackedConnections.get(peer);
    if (connection === undefined || --connection.streams > 0) return;
    connection.since = performance.now();
    connection.bytes = connection.socket.bytesRead;
    connection.chargedBytes = connection.bytes;
    this.#options.bounds.idle(connection.socket);
  }

  /**
   * Closes connections without an identified node: immediately if they have no HTTP/2 session, otherwise after the client could read the status of a
   * rejected stream.
   */
  waitUntilEmpty(): Promise<void> {
    this.#acceptQueue.clear();
    this.queue.clear();
    for (const { socket, wasIdentified, session } of this.#trackedConnections.values()) {
      if (wasIdentified) continue;
      if (session === undefined) socket.destroy();
      else setTimeout(() => socket.destroy(), statusLingerMs).unref();
    }
    this.#emptyWaiter ??= Promise.withResolvers<void>();
    if (this.#trackedConnections.size === 0) this.#emptyWaiter.resolve();
    return this.#emptyWaiter.promise;
  }

  destroyConnections(): void {
    this.#stop();
    this.#acceptQueue.clear();
    this.queue.clear();
    for (const { socket } of this.#trackedConnections.values()) socket.destroy();
  }

  closeBusyConnections(group: string): void {
    for (const connection of this.#trackedConnections.values())
      if (connection.group === group) this.#closeIfBusy(connection);
  }

  #enqueue(socket: Socket, group: string, onTurn: () => void): void {
    const { bounds, limits, reportRefusal: refused } = this.#options;
    // If the limit is reached, `bounds` closes another connection or rejects this one.
    if (bounds.size + this.queue.size >= limits.maxConnections) onTurn();
    else if (!this.queue.add(group, socket, onTurn)) refused('too many connections');
  }

  #track(socket: Socket, group: string): boolean {
    if (!this.#options.bounds.admit(socket, socket.remoteAddress)) {
      this.#options.reportRefusal('too many connections');
      return false;
    }
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    const connectedAt = performance.now();
    const connection: TrackedConnection = {
      ...{
        socket,
        group,
        streams: 0,
        wasIdentified: false,
        since: connectedAt,
        bytes: 0,
        waitingStreams: 0,
        waitingSince: 0,
      },
      ...{ chargedUnits: 0, chargedBytes: 0, session: undefined, allowance: undefined, wasted: 0 },
    };
    this.#trackedConnections.set(peer, connection);
    socket.once('close', () => this.#removeConnection(peer, connection));
    this.#timer ??= setInterval(
      () => this.#sweep(),
      Math.min(sweepIntervalMs, this.#options.limits.silentMs / 4),
    ).unref();
    this.#chargeConnection(connection, connectionCosts[this.#options.isSecure ? 'tls' : 'plaintext']);
    return true;
  }

  #chargeConnection(connection: TrackedConnection, units: number): void {
    connection.chargedUnits += units;
    this.#chargeAddress(connection.group, units);
  }

  #chargeReceivedBytes(connection: TrackedConnection): void {
    const units = Math.floor((connection.socket.bytesRead - connection.chargedBytes) / bytesPerUnit);
    if (connection.streams > 0 || units <= 0) return;
    connection.chargedBytes += units * bytesPerUnit;
    this.#chargeConnection(connection, units);
    this.#closeIfBusy(connection);
  }

  #chargeAddress(group: string, units: number): void {
    const throttledMs = this.#options.pace.chargeUnits(group, units);
    if (throttledMs > 0) this.#options.onThrottled(group, throttledMs);
  }

  #closeIfBusy(connection: TrackedConnection): void {
    if (connection.wasted <= maxWastedStreams && connection.chargedUnits <= maxChargedStreams) return;
    if (!this.#options.pace.isThrottled(connection.group)) return;
    connection.wasted = 0;
    connection.chargedUnits = 0;
    this.#options.reportRefusal('too busy');
    this.#acceptQueue.throttle(connection.group);
    if (connection.session === undefined) connection.socket.destroy();
    else closeBusySession(connection.session);
  }

  #removeConnection(peer: string, connection: TrackedConnection): void {
    this.#chargeReceivedBytes(connection);
    if (this.#trackedConnections.get(peer) === connection) this.#trackedConnections.delete(peer);
    if (this.#trackedConnections.size > 0) return;
    this.#stop();
    this.#emptyWaiter?.resolve();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #sweep(): void {
    const { silentMs, maxSilentBytes } = this.#options.limits;
    const latestSilentStart = performance.now() - silentMs;
    for (const connection of this.#trackedConnections.values()) {
      connection.wasted = Math.floor(connection.wasted * wasteDecay);
      const { socket, streams, since, bytes, waitingStreams } = connection;
      if (streams > 0) continue;
      this.#chargeReceivedBytes(connection);
      if ((since <= latestSilentStart && waitingStreams === 0) || socket.bytesRead - bytes > maxSilentBytes)
        socket.destroy();
    }
  }
}
