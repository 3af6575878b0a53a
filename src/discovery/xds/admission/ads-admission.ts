/**
 * Fair queue of new streams: round-robin over addresses, and over the nodes and connections of each address.
 *
 * A stream occupies a slot until its first response is written, for at most one second. The number of slots depends on the load
 * (machines/discovery/xds/stream-admission.machine.ts). A stream waits at most 60 s for a slot and at most 1 s for the rate
 * (`PILOT_MAX_REQUESTS_PER_SECOND`), and is then rejected. Known nodes (see KnownNodes) are admitted first, then addresses with known nodes, then others.
 *
 * Only the first request identifies the node of a stream, so it is read ahead for the first waiting stream of each connection. A node ID is neither
 * verified nor secret, so each ID has priority for one stream at a time, and again only after {@link priorityIntervalMs}.
 */

import { addressGroup } from '../../../runtime/fences/connection-bounds.ts';
import { throwUncaught } from '../../../runtime/fences/uncaught.ts';
import { dropOldest } from './drop-oldest.ts';
import type { KnownNodes } from './known-nodes.ts';
import { type Slot, Slots } from './slots.ts';

const maxWaitForSlotMs = 60_000;
/** Istio has the same limit. */
const maxWaitForRateMs = 1_000;
/** Minimum interval between admissions with priority for one node ID. Envoy retries after 500 ms. */
const priorityIntervalMs = 250;
/** Every fourth round starts with unknown addresses. */
const unknownTurnInterval = 4;
/** Beyond this limit, reading ahead ends for the oldest stream. */
const maxReadAhead = 2_000;
/** Waiting and admitted streams without an identified node. */
const maxUnidentifiedOfAddress = 1_000;
/** Additional streams per address with known nodes, one for each connection, for clients that reconnect during a flood. */
const reservedForReconnects = 200;
/** Maximum number of waiting streams for all addresses, and of additional ones for addresses with known nodes. */
const maxWaitingStreams = 10_000;
const reservedForKnownNodes = 2_000;
const maxRejectedPeers = 10_000;
const noop = (): void => {};

/** Calls back with the node ID in the first request of a stream, if there is one. */
export type NodeReader = (onNode: (node: string) => void) => void;

export interface AdmittedStream extends Slot {
  /** Called when the node is identified or the stream ends. Idempotent. */
  identified(): void;
}

export interface Admission {
  /**
   * Calls `begin` or `refuse` at most once, immediately or later, and neither after the returned function was called.
   *
   * @param peer `host:port`
   * @param readNode reads the node ID ahead
   * @returns the release function; call it when the stream is closed
   */
  admit(
    peer: string,
    begin: (admitted: AdmittedStream) => void,
    onRejected: () => void,
    readNode?: NodeReader,
  ): () => void;
  readonly waiting: number;
  readonly isFull: boolean;
  setSlots(slots: number): void;
  stop(): void;
}

export interface AdmissionOptions {
  /** If 0 or less, only the load limits streams. */
  readonly perSecond: number;
  /** Monotonic clock in milliseconds. */
  readonly now: () => number;
  readonly known: KnownNodes;
  readonly slots?: number;
  /** Called when the first stream starts waiting for a slot, and when none waits any more. */
  readonly onChange?: (isQueued: boolean) => void;
  readonly onBegun?: () => void;
}

interface WaitingStream {
  readonly group: string;
  readonly peer: string;
  /** Number of earlier waiting streams of the same connection or node. */
  round: number;
  /** Time of the first attempt of this connection. */
  readonly since: number;
  readonly queuedAt: number;
  readonly begin: (admitted: AdmittedStream) => void;
  readonly refuse: () => void;
  queue: AddressQueue;
  /** The node ID is not verified. */
  node: string | undefined;
  isDone: boolean;
}

/** Waiting streams by address, in the order in which addresses are served. */
type AddressQueue = Map<string, WaitingStream[]>;

export function createAdmission(options: AdmissionOptions): Admission {
  return new FairAdmission(options);
}

class FairAdmission implements Admission {
  readonly #admissionSpacingMs: number;
  readonly #now: () => number;
  readonly #nodeMemory: KnownNodes;
  readonly #options: AdmissionOptions;
  readonly #slots: Slots;
  #isQueued = false;
  #waitingCount = 0;
  /** Known nodes, addresses with known nodes, and other addresses have separate queues. */
  readonly #nodeQueue: AddressQueue = new Map();
  readonly #addressQueue: AddressQueue = new Map();
  readonly #unknownAddresses: AddressQueue = new Map();
  /** Oldest first. Streams that no longer wait are removed only when they are the oldest. */
  #waitingStreams: WaitingStream[] = [];
  readonly #streamsReadAhead = new Set<WaitingStream>();
  readonly #nextWithPriority = new Map<string, WaitingStream>();
  /** Until this time, a node has no priority. */
  readonly #priorityBlockedUntil = new Map<string, number>();
  readonly #unidentifiedByAddress = new Map<string, number>();
  readonly #unidentifiedByPeer = new Map<string, number>();
  /** Time of the first attempt of each rejected connection, until one of its streams is admitted. */
  readonly #firstRejectedAt = new Map<string, number>();
  #nextStartMs = 0;
  #turnCount = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AdmissionOptions) {
    const { perSecond, now, known, slots = Number.POSITIVE_INFINITY } = options;
    this.#options = options;
    this.#admissionSpacingMs = perSecond > 0 ? 1_000 / perSecond : 0;
    this.#now = now;
    this.#nodeMemory = known;
    this.#slots = new Slots(slots, now, () => this.#waitingStreams.length > 0 && this.#reschedule());
  }

  get waiting(): number {
    return this.#waitingCount;
  }

  get isFull(): boolean {
    return this.#slots.msUntilFree > 0;
  }

  setSlots(slots: number): void {
    this.#slots.resize(slots);
  }

  admit(
    peer: string,
    onAdmitted: (admitted: AdmittedStream) => void,
    onRejected: () => void,
    readNode?: NodeReader,
  ): () => void {
    const group = groupOfPeer(peer);
    const isKnownGroup = this.#nodeMemory.hasKnownNodes(group);
    const queue = isKnownGroup ? this.#addressQueue : this.#unknownAddresses;
    const streamsOfGroup = queue.get(group) ?? [];
    const time = this.#now();
    const peerRound = streamsOfGroup.filter((queuedStream) => queuedStream.peer === peer).length;
    const isFirst = peerRound === 0 && !this.#unidentifiedByPeer.has(peer);
    const maxWaitingOfAddress = maxUnidentifiedOfAddress + (isFirst && isKnownGroup ? reservedForReconnects : 0);
    const maxWaitingOfAll = maxWaitingStreams + (isKnownGroup ? reservedForKnownNodes : 0);
    const waitingSince = peerRound === 0 ? (this.#firstRejectedAt.get(peer) ?? time) : time;
    const stream: WaitingStream = {
      group,
      peer,
      round: peerRound,
      since: waitingSince,
      queuedAt: time,
      begin: onAdmitted,
      refuse: onRejected,
      queue,
      node: undefined,
      isDone: false,
    };
    // The stream may belong to a known node, so the length of the queue does not matter yet.
    const mayBeKnownNode = isKnownGroup && peerRound === 0 && readNode !== undefined;
    if ((this.#unidentifiedByAddress.get(group) ?? 0) + streamsOfGroup.length >= maxWaitingOfAddress)
      this.#reject(stream);
    else if (this.#waitingStreams.length === 0 && this.#msUntilStart() === 0) this.#start(stream);
    else if (this.#waitingStreams.length >= maxWaitingOfAll) this.#reject(stream);
    else if (!mayBeKnownNode && !this.#hasCapacityFor(stream)) this.#reject(stream);
    else {
      enqueue(stream);
      this.#waitingStreams.push(stream);
      this.#waitingCount++;
      this.#updateQueued();
      this.#scheduleAdmission();
      if (peerRound === 0 && readNode !== undefined) this.#startReadAhead(stream, readNode);
      return () => this.#remove(stream);
    }
    return noop;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const stream of this.#waitingStreams.splice(0)) {
      if (stream.isDone) continue;
      this.#remove(stream);
      stream.refuse();
    }
    for (const queue of [this.#nodeQueue, this.#addressQueue, this.#unknownAddresses]) queue.clear();
    this.#streamsReadAhead.clear();
    this.#nextWithPriority.clear();
    this.#updateQueued();
  }

  #startReadAhead(stream: WaitingStream, readNode: NodeReader): void {
    this.#streamsReadAhead.add(stream);
    const [oldest] = this.#streamsReadAhead;
    if (oldest !== undefined && this.#streamsReadAhead.size > maxReadAhead) this.#streamsReadAhead.delete(oldest);
    readNode((node) => {
      if (this.#streamsReadAhead.delete(stream)) this.#onNodeRead(stream, node);
    });
  }

  #onNodeRead(stream: WaitingStream, node: string): void {
    dequeue(stream);
    const streamsOfGroup = stream.queue.get(stream.group) ?? [];
    stream.node = node;
    stream.round = Math.max(stream.round, streamsOfGroup.filter((queuedStream) => queuedStream.node === node).length);
    const isNextWithPriority =
      this.#nodeMemory.has(stream.group, node) && !this.#nextWithPriority.has(nodeKeyOf(stream));
    if (!isNextWithPriority && !this.#hasCapacityFor(stream)) {
      this.#remove(stream);
      this.#reject(stream);
      return;
    }
    enqueue(stream);
    if (!isNextWithPriority) return;
    this.#nextWithPriority.set(nodeKeyOf(stream), stream);
    this.#assignPriority();
  }

  #assignPriority(): void {
    const time = this.#now();
    for (const [nodeKey, expiresAt] of this.#priorityBlockedUntil)
      if (expiresAt <= time) this.#priorityBlockedUntil.delete(nodeKey);
    for (const [nodeKey, stream] of this.#nextWithPriority) {
      if (this.#priorityBlockedUntil.has(nodeKey)) continue;
      this.#priorityBlockedUntil.set(nodeKey, Number.POSITIVE_INFINITY);
      this.#nextWithPriority.delete(nodeKey);
      dequeue(stream);
      stream.queue = this.#nodeQueue;
      stream.round = 0;
      enqueue(stream);
    }
  }

  #isNextWithPriority(stream: WaitingStream): boolean {
    return stream.node !== undefined && this.#nextWithPriority.get(nodeKeyOf(stream)) === stream;
  }

  /** If the queue is too long, rejects its last stream in favor of an earlier one. */
  #hasCapacityFor(stream: WaitingStream): boolean {
    const queuedStreams = stream.queue.get(stream.group) ?? [];
    // Streams that may belong to known nodes are not counted.
    const queue =
      stream.queue === this.#unknownAddresses
        ? queuedStreams
        : queuedStreams.filter(
            (waitingStream) => !this.#streamsReadAhead.has(waitingStream) && !this.#isNextWithPriority(waitingStream),
          );
    if (queue.length * this.#admissionSpacingMs < maxWaitForRateMs) return true;
    const lastStream = queue.at(-1)!;
    if (!startsBefore(stream, lastStream)) return false;
    this.#remove(lastStream);
    this.#reject(lastStream);
    return true;
  }

  #reject(stream: WaitingStream): void {
    const { peer, round, since } = stream;
    stream.isDone = true;
    if (round === 0) {
      this.#firstRejectedAt.set(peer, since);
      dropOldest(this.#firstRejectedAt, maxRejectedPeers);
    }
    stream.refuse();
  }

  #remove(stream: WaitingStream): void {
    if (stream.isDone) return;
    stream.isDone = true;
    this.#waitingCount--;
    dequeue(stream);
    this.#streamsReadAhead.delete(stream);
    if (this.#isNextWithPriority(stream)) this.#nextWithPriority.delete(nodeKeyOf(stream));
    if (stream.queue === this.#nodeQueue) this.#priorityBlockedUntil.delete(nodeKeyOf(stream));
  }

  #start(
    { group, peer, begin }: Pick<WaitingStream, 'group' | 'peer' | 'begin'>,
    startMs = Math.max(this.#nextStartMs, this.#now()),
  ): void {
    this.#nextStartMs = startMs + this.#admissionSpacingMs;
    this.#firstRejectedAt.delete(peer);
    const admission = this.#admit(group, peer);
    this.#options.onBegun?.();
    try {
      begin(admission);
    } catch (error) {
      // The stream was closed, so it must not occupy a slot.
      admission.release();
      admission.identified();
      throwUncaught(error);
    }
  }

  #admit(group: string, peer: string): AdmittedStream {
    this.#unidentifiedByPeer.set(peer, (this.#unidentifiedByPeer.get(peer) ?? 0) + 1);
    this.#unidentifiedByAddress.set(group, (this.#unidentifiedByAddress.get(group) ?? 0) + 1);
    let isIdentified = false;
    const identified = (): void => {
      if (isIdentified) return;
      isIdentified = true;
      decrementCount(this.#unidentifiedByAddress, group);
      decrementCount(this.#unidentifiedByPeer, peer);
    };
    return { ...this.#slots.acquire(), identified };
  }

  #msUntilStart(): number {
    return Math.max(0, this.#nextStartMs - this.#now(), this.#slots.msUntilFree);
  }

  #updateQueued(): void {
    const isQueued = this.#waitingCount > 0;
    if (isQueued === this.#isQueued) return;
    this.#isQueued = isQueued;
    this.#options.onChange?.(isQueued);
  }

  #scheduleAdmission(): void {
    this.#timer ??= setTimeout(() => this.#admitDue(), Math.ceil(this.#msUntilStart()));
  }

  #reschedule(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#scheduleAdmission();
  }

  #admitDue(): void {
    this.#timer = undefined;
    const time = this.#now();
    // After a delay of the event loop, admits all streams that are due.
    while (time >= this.#nextStartMs && this.#slots.msUntilFree === 0) {
      this.#assignPriority();
      const queuesByPriority = [this.#nodeQueue, this.#addressQueue, this.#unknownAddresses];
      if (++this.#turnCount % unknownTurnInterval === 0) queuesByPriority.reverse();
      const stream = queuesByPriority.map(nextStreamOf).find((queuedStream) => queuedStream !== undefined);
      if (stream === undefined) break;
      this.#remove(stream);
      moveAddressToEnd(stream);
      if (stream.queue === this.#nodeQueue)
        this.#priorityBlockedUntil.set(nodeKeyOf(stream), time + priorityIntervalMs);
      this.#start(stream, this.#admissionSpacingMs > 0 ? this.#nextStartMs : time);
    }
    this.#rejectLate(time);
    this.#waitingStreams = this.#waitingStreams.slice(this.#waitingStreams.findIndex(({ isDone }) => !isDone) >>> 0);
    this.#updateQueued();
    if (this.#waitingStreams.length > 0) this.#scheduleAdmission();
  }

  #rejectLate(time: number): void {
    const isForSlot = this.#admissionSpacingMs === 0 || this.isFull;
    const oldestMs = time - (isForSlot ? maxWaitForSlotMs : maxWaitForRateMs);
    for (const stream of this.#waitingStreams) {
      if (stream.queuedAt >= oldestMs) return;
      if (stream.isDone) continue;
      this.#remove(stream);
      this.#reject(stream);
    }
  }
}

/** Within an address, identified streams come first. */
function startsBefore(stream: WaitingStream, otherStream: WaitingStream): boolean {
  if ((stream.node === undefined) !== (otherStream.node === undefined)) return stream.node !== undefined;
  return stream.round < otherStream.round || (stream.round === otherStream.round && stream.since < otherStream.since);
}

/** A new address is served last. */
function enqueue(stream: WaitingStream): void {
  const { queue, group } = stream;
  const streamsOfGroup = queue.get(group) ?? [];
  const insertIndex = streamsOfGroup.findIndex((queuedStream) => startsBefore(stream, queuedStream));
  queue.set(group, streamsOfGroup.toSpliced(insertIndex < 0 ? streamsOfGroup.length : insertIndex, 0, stream));
}

function dequeue(stream: WaitingStream): void {
  const { queue, group } = stream;
  const remainingStreams = queue.get(group)?.filter((queuedStream) => queuedStream !== stream) ?? [];
  if (remainingStreams.length > 0) queue.set(group, remainingStreams);
  else queue.delete(group);
}

function nextStreamOf(queue: AddressQueue): WaitingStream | undefined {
  for (const [first] of queue.values()) return first;
  return undefined;
}

function moveAddressToEnd({ queue, group }: WaitingStream): void {
  const remainingStreams = queue.get(group);
  if (remainingStreams === undefined) return;
  queue.delete(group);
  queue.set(group, remainingStreams);
}

function nodeKeyOf({ group, node = '' }: WaitingStream): string {
  return `${group} ${node}`;
}

function decrementCount(counts: Map<string, number>, key: string): void {
  const remainingCount = (counts.get(key) ?? 0) - 1;
  if (remainingCount > 0) counts.set(key, remainingCount);
  else counts.delete(key);
}

export function groupOfPeer(peer: string): string {
  return addressGroup(peer.slice(0, Math.max(0, peer.lastIndexOf(':'))));
}
