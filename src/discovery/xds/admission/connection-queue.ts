/**
 * Queue of accepted connections before TLS handshake and HTTP/2 session. It limits how many connections are set up at a time, so that the first ones
 * complete early. A connection counts until its first stream. While many streams wait for admission, connections wait here, where each costs a few
 * KiB.
 *
 * A connection waits for a slot only after its first bytes: a TLS ClientHello, or the preface of HTTP/2. In plaintext, a returning client immediately
 * sends up to 64 KiB of subscriptions. While too much is buffered, the queue reads no connection, and further data stays in the kernel.
 */
import type { Socket } from 'node:net';
import { throwUncaught } from '../../../runtime/fences/uncaught.ts';
import { RequestTurns } from '../requests/request-turns.ts';
import { maxSlotMs, type Slot, Slots } from './slots.ts';

export interface ConnectionQueueOptions {
  readonly maxPerAddress: number;
  readonly maxTotal: number;
  /** Maximum first bytes of all waiting connections. Above half of it (three quarters for addresses with known nodes), no connection is read. */
  readonly maxTotalBytes: number;
  /** Limits the wait for the first bytes, and the wait in total. */
  readonly maxWaitMs: number;
  readonly isOpen: () => boolean;
  readonly isKnown: (group: string) => boolean;
  /** Called when the first connection starts waiting for a slot, and when none waits any more. */
  readonly onChange?: (isQueued: boolean) => void;
  /** Called when a connection is closed because it waited too long for a slot. */
  readonly onExpired?: () => void;
}

interface QueuedConnection {
  readonly group: string;
  /** First bytes that are buffered in the socket. */
  bytes: number;
  readonly socket: Socket;
  readonly begin: () => void;
  readonly kind: AddressKind;
  /** Set while the first bytes are awaited. */
  reading: Slot | undefined;
  wasRead: boolean;
}

type AddressKind = 'known' | 'unknown';

/** Connections by address, in the order in which addresses are served. */
type TurnOrder = Map<string, QueuedConnection[]>;

/** Before the server's first bytes, a client sends at most its TLS ClientHello, or 64 KiB of data (HTTP/2's initial window). */
const maxFirstBytes = 96 * 1024;
/** Every fourth round starts with addresses without known nodes. */
const turnsPerUnknownTurn = 4;
/** Connections that are read at a time. Together they send up to 16 MiB. */
const maxReadingConnections = 256;
const maxReadingMs = 250;
const readShares = { known: 0.75, unknown: 0.5 } as const;

export class ConnectionQueue {
  readonly #options: ConnectionQueueOptions;
  readonly #knownGroupTurns: TurnOrder = new Map();
  readonly #unknownTurns: TurnOrder = new Map();
  readonly #unreadEntries: Record<AddressKind, Set<QueuedConnection>> = { known: new Set(), unknown: new Set() };
  readonly #readingSlots: Slots;
  /** Connections that have sent nothing, oldest first. */
  readonly #silentEntries = new Map<string, Set<QueuedConnection>>();
  readonly #counts = new Map<string, number>();
  readonly #entries = new Set<QueuedConnection>();
  readonly #slots: Slots;
  readonly #slotOf = new WeakMap<Socket, Slot>();
  readonly #requestTurns = new RequestTurns();
  #readyCount = 0;
  #bytes = 0;
  #begunCount = 0;
  #isBeginningNext = false;
  #isQueued = false;
  #timer: NodeJS.Timeout | undefined;
  #readTimer: NodeJS.Timeout | undefined;

  /**
   * @param slots connections that are being set up
   * @param setUpMs time after which a connection without a stream frees its slot
   */
  constructor(options: ConnectionQueueOptions, slots: number, setUpMs = maxSlotMs) {
    this.#options = options;
    const now = (): number => performance.now();
    this.#slots = new Slots(slots, now, () => this.beginQueued(), setUpMs);
    this.#readingSlots = new Slots(maxReadingConnections, now, () => this.#readNext(), maxReadingMs);
  }

  get size(): number {
    return this.#entries.size;
  }

  get waiting(): number {
    return this.#readyCount;
  }

  get isFull(): boolean {
    return this.#slots.msUntilFree > 0;
  }

  setSlots(slots: number): void {
    this.#slots.resize(slots);
  }

  /**
   * If a limit is reached, replaces a silent connection or closes this one.
   *
   * @param onBegin sets the connection up; not called if it is closed first
   * @returns false if the connection was closed
   */
  add(group: string, socket: Socket, onBegin: () => void): boolean {
    const { maxWaitMs } = this.#options;
    if (!this.#enforceLimits(group)) {
      // After destroy(), the system would keep the connection for a minute.
      socket.resetAndDestroy();
      return false;
    }
    const onClose = (): void => this.#remove(entry);
    const onTimeout = (): void => this.#expire(entry);
    const entry: QueuedConnection = {
      ...{ group, bytes: 0, socket, reading: undefined, wasRead: false },
      kind: this.#options.isKnown(group) ? 'known' : 'unknown',
      begin: () => {
        socket.off('close', onClose);
        socket.setTimeout(0, onTimeout);
        this.#remove(entry);
        onBegin();
      },
    };
    this.#entries.add(entry);
    this.#counts.set(group, (this.#counts.get(group) ?? 0) + 1);
    socket.once('close', onClose);
    socket.setTimeout(maxWaitMs, onTimeout);
    this.#unreadEntries[entry.kind].add(entry);
    this.#readNext();
    return true;
  }

  setUpCompleted(socket: Socket): void {
    this.#slotOf.get(socket)?.release();
  }

  beginQueued(): void {
    if (this.#isBeginningNext || this.#readyCount === 0) return;
    this.#isBeginningNext = true;
    this.#requestTurns.startWork(() => {
      this.#isBeginningNext = this.#beginNext();
      return this.#isBeginningNext;
    });
  }

  clear(): void {
    for (const unreadSet of Object.values(this.#unreadEntries)) unreadSet.clear();
    for (const entry of [...this.#entries]) this.#close(entry);
    clearTimeout(this.#timer);
    clearTimeout(this.#readTimer);
    this.#readTimer = undefined;
  }

  #enforceLimits(group: string): boolean {
    const { maxPerAddress, maxTotal } = this.#options;
    const count = this.#counts.get(group) ?? 0;
    if (count >= maxPerAddress) return this.#closeSilentConnection(group);
    if (this.#entries.size < maxTotal) return true;
    const [oldest] = this.#silentEntries.keys();
    return count === 0 && oldest !== undefined && this.#closeSilentConnection(oldest);
  }

  #closeSilentConnection(group: string): boolean {
    const [oldest] = this.#silentEntries.get(group) ?? [];
    if (oldest === undefined) return false;
    this.#close(oldest);
    return true;
  }

  #readNext(): void {
    for (const kind of ['known', 'unknown'] as const) {
      for (const entry of this.#unreadEntries[kind]) {
        if (this.#hasEnoughReady(kind)) break;
        const waitMs = this.#readingSlots.msUntilFree;
        if (waitMs > 0) {
          this.#readTimer ??= setTimeout(() => {
            this.#readTimer = undefined;
            this.#readNext();
          }, Math.ceil(waitMs)).unref();
          return;
        }
        this.#unreadEntries[kind].delete(entry);
        this.#awaitFirstBytes(entry);
      }
    }
  }

  #awaitFirstBytes(entry: QueuedConnection): void {
    const { group, socket } = entry;
    entry.reading = this.#readingSlots.acquire();
    const silentOfGroup = this.#silentEntries.get(group) ?? new Set();
    this.#silentEntries.set(group, silentOfGroup.add(entry));
    if (entry.wasRead) {
      setReading(socket, true);
      return;
    }
    entry.wasRead = true;
    socket.on('readable', () => {
      const { readableLength } = socket;
      this.#bytes += readableLength - entry.bytes;
      entry.bytes = readableLength;
      // The bytes stay in the buffer for the handshake, so `end` is not emitted.
      const isTooLong = readableLength > maxFirstBytes || this.#bytes > this.#options.maxTotalBytes;
      if (hasEnded(socket) || isTooLong) this.#close(entry);
      else if (
        readableLength > 0 &&
        (this.#isSilentConnection(entry) || this.#unreadEntries[entry.kind].delete(entry))
      ) {
        this.#removeSilent(entry);
        this.#enqueue(entry);
        if (this.#hasEnoughReady(entry.kind)) this.#stopReading(entry.kind);
      }
    });
  }

  #hasEnoughReady(kind: AddressKind): boolean {
    return this.#bytes >= this.#options.maxTotalBytes * readShares[kind];
  }

  /** The data of silent connections stays in the kernel. They are read again before others. */
  #stopReading(kind: AddressKind): void {
    const stopped = [...this.#silentEntries.values()].flatMap((entries) =>
      [...entries].filter((entry) => entry.kind === kind && setReading(entry.socket, false)),
    );
    if (stopped.length === 0) return;
    for (const entry of stopped) this.#removeSilent(entry);
    this.#unreadEntries[kind] = new Set([...stopped, ...this.#unreadEntries[kind]]);
  }

  #enqueue(entry: QueuedConnection): void {
    const turnOrder = this.#options.isKnown(entry.group) ? this.#knownGroupTurns : this.#unknownTurns;
    const entries = turnOrder.get(entry.group);
    if (entries === undefined) turnOrder.set(entry.group, [entry]);
    else entries.push(entry);
    this.#readyCount++;
    if (this.#readyCount === 1) this.#requestTurns.run(() => void this.#beginNext(), 0);
    else this.beginQueued();
  }

  #beginNext(): boolean {
    if (!this.#mayBegin()) return false;
    const turnsByPriority = [this.#knownGroupTurns, this.#unknownTurns];
    if (++this.#begunCount % turnsPerUnknownTurn === 0) turnsByPriority.reverse();
    const turnOrder = turnsByPriority.find(({ size }) => size > 0)!;
    const [group, [entry]] = turnOrder.entries().next().value as [string, [QueuedConnection]];
    const entries = turnOrder.get(group)!;
    turnOrder.delete(group);
    turnOrder.set(group, entries);
    this.#beginEntry(entry);
    return this.#readyCount > 0;
  }

  #beginEntry({ socket, begin }: QueuedConnection): void {
    socket.removeAllListeners('readable');
    const slot = this.#slots.acquire();
    this.#slotOf.set(socket, slot);
    socket.once('close', () => slot.release());
    try {
      begin();
    } catch (error) {
      throwUncaught(error);
    }
  }

  #mayBegin(): boolean {
    if (this.#readyCount === 0) return false;
    const waitMs = this.#slots.msUntilFree;
    const isOpen = this.#options.isOpen();
    if (isOpen && waitMs === 0) return true;
    this.#setQueued(true);
    clearTimeout(this.#timer);
    if (isOpen) this.#timer = setTimeout(() => this.beginQueued(), Math.ceil(waitMs)).unref();
    return false;
  }

  #expire(entry: QueuedConnection): void {
    if (!this.#isSilentConnection(entry)) this.#options.onExpired?.();
    this.#close(entry);
  }

  #close(entry: QueuedConnection): void {
    this.#remove(entry);
    entry.socket.destroy();
  }

  #remove(entry: QueuedConnection): void {
    if (!this.#entries.delete(entry)) return;
    for (const unreadSet of Object.values(this.#unreadEntries)) unreadSet.delete(entry);
    this.#bytes -= entry.bytes;
    const { group } = entry;
    const count = this.#counts.get(group)! - 1;
    if (count > 0) this.#counts.set(group, count);
    else this.#counts.delete(group);
    this.#removeSilent(entry);
    for (const turnOrder of [this.#knownGroupTurns, this.#unknownTurns]) {
      const entries = turnOrder.get(group);
      const entryIndex = entries?.indexOf(entry) ?? -1;
      if (entries === undefined || entryIndex < 0) continue;
      entries.splice(entryIndex, 1);
      if (entries.length === 0) turnOrder.delete(group);
      this.#readyCount--;
    }
    if (this.#readyCount === 0) this.#setQueued(false);
    this.#readNext();
  }

  #isSilentConnection(entry: QueuedConnection): boolean {
    return this.#silentEntries.get(entry.group)?.has(entry) === true;
  }

  #removeSilent(entry: QueuedConnection): void {
    entry.reading?.release();
    entry.reading = undefined;
    const silentOfGroup = this.#silentEntries.get(entry.group);
    if (silentOfGroup?.delete(entry) === true && silentOfGroup.size === 0) this.#silentEntries.delete(entry.group);
  }

  #setQueued(isQueued: boolean): void {
    if (isQueued === this.#isQueued) return;
    this.#isQueued = isQueued;
    this.#options.onChange?.(isQueued);
  }
}

/**
 * Node has no public method for this.
 *
 * @returns false if the socket's private handle was not found; the data is then read
 */
function setReading(socket: Socket, isReading: boolean): boolean {
  const { _handle: handle } = socket as { _handle?: Partial<ReadHandle> | null };
  if (handle?.readStart === undefined || handle.readStop === undefined) return false;
  handle.reading = isReading;
  return (isReading ? handle.readStart() : handle.readStop()) === 0;
}

interface ReadHandle {
  reading: boolean;
  /** @returns 0, or an error code of libuv */
  readStart(): number;
  readStop(): number;
}

/** Node has no public property for a FIN that was received while bytes are unread. */
function hasEnded(socket: Socket): boolean {
  return (socket as { _readableState?: { ended?: boolean } })._readableState?.ended === true;
}
