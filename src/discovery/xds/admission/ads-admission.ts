/**
 * Fair queue of new streams: round-robin over addresses, and over the nodes and connections of each address.
 *
 * A stream occupies a slot until its first response is written, for at most one second. The number of slots depends on the load
 * (machines/discovery/xds/stream-admission.machine.ts). With a rate (`PILOT_MAX_REQUESTS_PER_SECOND`, spec/discovery.md §6.4), streams are also
 * spaced evenly. A stream waits for a slot for at most 30 s, or 1 s with a rate, and is then rejected. Known nodes (see KnownNodes) are admitted
 * first, then addresses with known nodes, then others, which have every fourth turn in any case.
 *
 * Only the first request identifies the node of a stream. It is read ahead for the first waiting stream of each connection. A node ID is neither
 * verified nor secret, so each ID has priority for one stream at a time, and again only after {@link placeMs}.
 *
 * Streams without an identified node are limited by address. A rejected connection that retries precedes connections of its address that came later,
 * so retrying clients are admitted even if new ones keep arriving.
 */

import { addressGroup } from '../../../runtime/fences/connection-bounds.ts';
import { letEscape } from '../../../runtime/fences/uncaught.ts';
import { dropOldest } from './drop-oldest.ts';
import type { KnownNodes } from './known-nodes.ts';
import { type Slot, Slots } from './slots.ts';

/** As in Istio with a rate. */
const maxWaitMs = { withRate: 1_000, byLoad: 30_000 } as const;
/** Minimum time between two admissions with priority of one node ID. Envoy retries after 500 ms. */
const placeMs = 250;
/** Every fourth turn starts with unknown addresses. */
const turnOfLast = 4;
/** Limit of streams whose first request is read ahead. Beyond it, the oldest one loses this. */
const mostLookedAt = 2_000;
/** Limit for one address of waiting and admitted streams without an identified node. */
const mostSilent = 1_000;
/** Additional streams at an address with known nodes, one for each connection, for clients that reconnect during a flood. */
const reservedForFirst = 200;
/** Limits of waiting streams of all addresses, and of additional ones at addresses with known nodes. */
const mostWaiting = 10_000;
const reservedForKnown = 2_000;
const mostRefused = 10_000;
const nothingToLeave = (): void => {};

/** Calls back with the node ID in the first request of a stream, if there is one. */
export type Look = (named: (node: string) => void) => void;

export interface Admitted extends Slot {
  /** Call when the node is identified or the stream ends. Idempotent. */
  identified(): void;
}

export interface Admission {
  /**
   * Calls `begin` or `refuse` at most once, now or later, and neither after the returned function was called.
   *
   * @param peer `host:port`
   * @param look reads the node ID ahead
   * @returns to be called when the stream is closed
   */
  ask(peer: string, begin: (admitted: Admitted) => void, refuse: () => void, look?: Look): () => void;
  readonly waiting: number;
  readonly isFull: boolean;
  setSlots(slots: number): void;
  stop(): void;
}

export interface AdmissionOptions {
  /** Streams per second; 0 or less: limited only by the load. */
  readonly perSecond: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly known: KnownNodes;
  /** Default: unlimited. */
  readonly slots?: number;
  /** Called when the first stream waits, and when none is left. */
  readonly onQueued?: () => void;
  readonly onEmptied?: () => void;
  readonly onBegun?: () => void;
}

interface Asking {
  readonly group: string;
  readonly peer: string;
  /** Number of earlier waiting streams of the same connection or node. */
  round: number;
  /** Time of the first attempt of this connection. */
  readonly since: number;
  readonly until: number;
  readonly begin: (admitted: Admitted) => void;
  readonly refuse: () => void;
  line: Line;
  /** Unverified. */
  node: string | undefined;
  isOver: boolean;
}

/** Waiting streams by address, in the order of the addresses' turns. */
type Line = Map<string, Asking[]>;

export function createAdmission(options: AdmissionOptions): Admission {
  return new FairAdmission(options);
}

class FairAdmission implements Admission {
  readonly #spacingMs: number;
  readonly #maxWaitMs: number;
  readonly #now: () => number;
  readonly #known: KnownNodes;
  readonly #options: AdmissionOptions;
  readonly #slots: Slots;
  #isQueued = false;
  #waitingCount = 0;
  /** Queues of known nodes, of addresses with known nodes, and of other addresses. */
  readonly #nodes: Line = new Map();
  readonly #addresses: Line = new Map();
  readonly #strange: Line = new Map();
  /** Oldest first. Contains streams that no longer wait until they are the oldest ones. */
  #waiting: Asking[] = [];
  /** Waiting streams whose first request is read ahead, oldest first. */
  readonly #lookedAt = new Set<Asking>();
  /** The next stream with priority, by node. */
  readonly #claims = new Map<string, Asking>();
  /** Until when a node has no priority, by node. */
  readonly #places = new Map<string, number>();
  /** Number of admitted streams without an identified node by address, and by connection. */
  readonly #silent = new Map<string, number>();
  readonly #silentOf = new Map<string, number>();
  /** Time of the first attempt of rejected connections, until one of their streams is admitted. */
  readonly #refused = new Map<string, number>();
  #next = 0;
  #turns = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AdmissionOptions) {
    const { perSecond, now, known, slots = Number.POSITIVE_INFINITY } = options;
    this.#options = options;
    this.#spacingMs = perSecond > 0 ? 1_000 / perSecond : 0;
    this.#maxWaitMs = perSecond > 0 ? maxWaitMs.withRate : maxWaitMs.byLoad;
    this.#now = now;
    this.#known = known;
    this.#slots = new Slots(slots, now, () => this.#waiting.length > 0 && this.#wakeSooner());
  }

  get waiting(): number {
    return this.#waitingCount;
  }

  get isFull(): boolean {
    return this.#slots.freeInMs > 0;
  }

  setSlots(slots: number): void {
    this.#slots.resize(slots);
  }

  ask(peer: string, begin: (admitted: Admitted) => void, refuse: () => void, look?: Look): () => void {
    const group = groupOfPeer(peer);
    const isKnown = this.#known.hasAny(group);
    const line = isKnown ? this.#addresses : this.#strange;
    const before = line.get(group) ?? [];
    const time = this.#now();
    const round = before.filter((other) => other.peer === peer).length;
    const isFirst = round === 0 && !this.#silentOf.has(peer);
    const mostOfAddress = mostSilent + (isFirst && isKnown ? reservedForFirst : 0);
    const mostOfAll = mostWaiting + (isKnown ? reservedForKnown : 0);
    const since = round === 0 ? (this.#refused.get(peer) ?? time) : time;
    const until = time + this.#maxWaitMs;
    const asking: Asking = { group, peer, round, since, until, begin, refuse, line, node: undefined, isOver: false };
    // It may belong to a known node, so the length of the queue does not matter yet.
    const mayBeKnown = isKnown && round === 0 && look !== undefined;
    if ((this.#silent.get(group) ?? 0) + before.length >= mostOfAddress) this.#refuse(asking);
    else if (this.#waiting.length === 0 && this.#mayBeginInMs() === 0) this.#begin(asking);
    else if (this.#waiting.length >= mostOfAll) this.#refuse(asking);
    else if (!mayBeKnown && !this.#makesRoom(asking)) this.#refuse(asking);
    else {
      enqueue(asking);
      this.#waiting.push(asking);
      this.#waitingCount++;
      this.#noteQueue();
      this.#wake();
      if (round === 0 && look !== undefined) this.#lookAt(asking, look);
      return () => this.#leave(asking);
    }
    return nothingToLeave;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const asking of this.#waiting.splice(0)) {
      if (asking.isOver) continue;
      this.#leave(asking);
      asking.refuse();
    }
    for (const line of [this.#nodes, this.#addresses, this.#strange]) line.clear();
    this.#lookedAt.clear();
    this.#claims.clear();
    this.#noteQueue();
  }

  // ---- identification

  #lookAt(asking: Asking, look: Look): void {
    this.#lookedAt.add(asking);
    const [oldest] = this.#lookedAt;
    if (oldest !== undefined && this.#lookedAt.size > mostLookedAt) this.#lookedAt.delete(oldest);
    look((node) => {
      if (this.#lookedAt.delete(asking)) this.#named(asking, node);
    });
  }

  #named(asking: Asking, node: string): void {
    dequeue(asking);
    const others = asking.line.get(asking.group) ?? [];
    asking.node = node;
    asking.round = Math.max(asking.round, others.filter((other) => other.node === node).length);
    const isNext = this.#known.has(asking.group, node) && !this.#claims.has(placeOf(asking));
    if (!isNext && !this.#makesRoom(asking)) {
      this.#leave(asking);
      this.#refuse(asking);
      return;
    }
    enqueue(asking);
    if (!isNext) return;
    this.#claims.set(placeOf(asking), asking);
    this.#givePlaces();
  }

  #givePlaces(): void {
    const time = this.#now();
    for (const [place, until] of this.#places) if (until <= time) this.#places.delete(place);
    for (const [place, asking] of this.#claims) {
      if (this.#places.has(place)) continue;
      this.#places.set(place, Number.POSITIVE_INFINITY);
      this.#claims.delete(place);
      dequeue(asking);
      asking.line = this.#nodes;
      asking.round = 0;
      enqueue(asking);
    }
  }

  #isNext(asking: Asking): boolean {
    return asking.node !== undefined && this.#claims.get(placeOf(asking)) === asking;
  }

  // ---- turns

  /** If the queue of the address takes longer than the maximum wait, rejects its last stream in favour of an earlier one. */
  #makesRoom(asking: Asking): boolean {
    const all = asking.line.get(asking.group) ?? [];
    // Streams that may belong to known nodes do not count.
    const line =
      asking.line === this.#strange ? all : all.filter((one) => !this.#lookedAt.has(one) && !this.#isNext(one));
    if (line.length * this.#spacingMs < this.#maxWaitMs) return true;
    const last = line.at(-1)!;
    if (!isBefore(asking, last)) return false;
    this.#leave(last);
    this.#refuse(last);
    return true;
  }

  #refuse(asking: Asking): void {
    const { peer, round, since } = asking;
    asking.isOver = true;
    if (round === 0) {
      this.#refused.set(peer, since);
      dropOldest(this.#refused, mostRefused);
    }
    asking.refuse();
  }

  #leave(asking: Asking): void {
    if (asking.isOver) return;
    asking.isOver = true;
    this.#waitingCount--;
    dequeue(asking);
    this.#lookedAt.delete(asking);
    if (this.#isNext(asking)) this.#claims.delete(placeOf(asking));
    if (asking.line === this.#nodes) this.#places.delete(placeOf(asking));
  }

  #begin(
    { group, peer, begin }: Pick<Asking, 'group' | 'peer' | 'begin'>,
    turn = Math.max(this.#next, this.#now()),
  ): void {
    this.#next = turn + this.#spacingMs;
    this.#refused.delete(peer);
    const admitted = this.#admit(group, peer);
    this.#options.onBegun?.();
    try {
      begin(admitted);
    } catch (error) {
      // The stream does not exist, so it must not occupy a slot.
      admitted.release();
      admitted.identified();
      letEscape(error);
    }
  }

  #admit(group: string, peer: string): Admitted {
    this.#silentOf.set(peer, (this.#silentOf.get(peer) ?? 0) + 1);
    this.#silent.set(group, (this.#silent.get(group) ?? 0) + 1);
    let isIdentified = false;
    const identified = (): void => {
      if (isIdentified) return;
      isIdentified = true;
      countDown(this.#silent, group);
      countDown(this.#silentOf, peer);
    };
    return { ...this.#slots.take(), identified };
  }

  #mayBeginInMs(): number {
    return Math.max(0, this.#next - this.#now(), this.#slots.freeInMs);
  }

  #noteQueue(): void {
    const isQueued = this.#waitingCount > 0;
    if (isQueued === this.#isQueued) return;
    this.#isQueued = isQueued;
    if (isQueued) this.#options.onQueued?.();
    else this.#options.onEmptied?.();
  }

  #wake(): void {
    this.#timer ??= setTimeout(() => this.#turn(), Math.ceil(this.#mayBeginInMs()));
  }

  #wakeSooner(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wake();
  }

  #turn(): void {
    this.#timer = undefined;
    const time = this.#now();
    // After a delay of the event loop, admit all streams that are due.
    while (time >= this.#next && this.#slots.freeInMs === 0) {
      this.#givePlaces();
      const order = [this.#nodes, this.#addresses, this.#strange];
      if (++this.#turns % turnOfLast === 0) order.reverse();
      const asking = order.map(firstOf).find((first) => first !== undefined);
      if (asking === undefined) break;
      this.#leave(asking);
      rotate(asking);
      if (asking.line === this.#nodes) this.#places.set(placeOf(asking), time + placeMs);
      this.#begin(asking, this.#spacingMs > 0 ? this.#next : time);
    }
    this.#refuseLate(time);
    this.#waiting = this.#waiting.slice(this.#waiting.findIndex(({ isOver }) => !isOver) >>> 0);
    this.#noteQueue();
    if (this.#waiting.length > 0) this.#wake();
  }

  #refuseLate(time: number): void {
    for (const asking of this.#waiting) {
      if (asking.until >= time) return;
      if (asking.isOver) continue;
      this.#leave(asking);
      this.#refuse(asking);
    }
  }
}

/** Order within an address: identified streams first. */
function isBefore(one: Asking, other: Asking): boolean {
  if ((one.node === undefined) !== (other.node === undefined)) return one.node !== undefined;
  return one.round < other.round || (one.round === other.round && one.since < other.since);
}

/** Inserts by {@link isBefore}. A new address is the last one in the order of turns. */
function enqueue(asking: Asking): void {
  const { line, group } = asking;
  const others = line.get(group) ?? [];
  const at = others.findIndex((other) => isBefore(asking, other));
  line.set(group, others.toSpliced(at < 0 ? others.length : at, 0, asking));
}

function dequeue(asking: Asking): void {
  const { line, group } = asking;
  const left = line.get(group)?.filter((other) => other !== asking) ?? [];
  if (left.length > 0) line.set(group, left);
  else line.delete(group);
}

function firstOf(line: Line): Asking | undefined {
  for (const [first] of line.values()) return first;
  return undefined;
}

/** The address takes its next turn after all others. */
function rotate({ line, group }: Asking): void {
  const left = line.get(group);
  if (left === undefined) return;
  line.delete(group);
  line.set(group, left);
}

function placeOf({ group, node = '' }: Asking): string {
  return `${group} ${node}`;
}

function countDown(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 0) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}

/** Address of `host:port`, or its network prefix (see addressGroup). */
export function groupOfPeer(peer: string): string {
  return addressGroup(peer.slice(0, Math.max(0, peer.lastIndexOf(':'))));
}
