/**
 * Queue of new streams, fair among addresses, and among the nodes and connections of an address.
 *
 * A stream takes a slot until its first response is written, for a second at most. The number of slots depends on the load
 * (machines/discovery/xds/stream-admission.machine.ts). With a rate (`PILOT_MAX_REQUESTS_PER_SECOND`, spec/discovery.md §6.4), streams are
 * also spaced evenly. A stream that finds no slot waits for at most 30 s, with a rate for a second, and is then rejected. Nodes that were
 * served before at their address take their turns first (see KnownNodes), then addresses of such nodes, then all others, which have one
 * turn in four in any case. Within each of these, addresses take turns; within an address nodes, then connections.
 *
 * A stream tells only by its first request whose it is, so that of the first stream of a connection is looked at while it
 * waits. What it says is not verified, and a node's id is no secret: it gains one place for each id, and again only after a
 * while, however many say that they are it.
 *
 * Streams that have not said who they are have a bound by address. A connection that was refused, and asks again, has its
 * turn before those that came after it: who keeps asking gets in, however many come. A stream that is gone waits no more.
 */

import { addressGroup } from '../../../runtime/fences/connection-bounds.ts';
import { letEscape } from '../../../runtime/fences/uncaught.ts';
import { dropOldest } from './drop-oldest.ts';
import type { KnownNodes } from './known-nodes.ts';
import { type Slot, Slots } from './slots.ts';

/** Limit of the wait; with a rate as in Istio. */
const maxWaitMs = { withRate: 1_000, byLoad: 30_000 } as const;
/** Time between two turns that an id has as a node that was served before: Envoy tries again after half a second. */
const placeMs = 250;
/** One turn in so many is for those that come last otherwise. */
const turnOfLast = 4;
/** Streams whose first request is being waited for; when more come, those that have had the most time are not any more. */
const mostLookedAt = 2_000;
/** Streams of one address that wait for their turn, or have not said who they are. */
const mostSilent = 1_000;
/** More of them, each the only one of its connection, where a node was before: for those that come back beside a crowd. */
const reservedForFirst = 200;
/** Streams that wait for their turn, of all addresses; and more of them, where a node was before. */
const mostWaiting = 10_000;
const reservedForKnown = 2_000;
/** Connections of which it is remembered that they were refused. */
const mostRefused = 10_000;
/** No turn is waited for. */
const nothingToLeave = (): void => {};

/** Calls with the ID of a stream's node when its first request arrives, if it has one. */
export type Look = (named: (node: string) => void) => void;

/** A stream that was admitted. */
export interface Admitted extends Slot {
  /** The stream has identified its node, or has ended without. Idempotent. */
  identified(): void;
}

export interface Admission {
  /**
   * Calls one of both: at once, or when it is its turn; neither once the stream is gone. `peer` is `host:port`.
   *
   * @param look finds out by the stream's first request which node it says it is
   * @returns to be called when the stream is gone
   */
  ask(peer: string, begin: (admitted: Admitted) => void, refuse: () => void, look?: Look): () => void;
  /** Streams that wait. */
  readonly waiting: number;
  /** Whether all slots are taken. */
  readonly isFull: boolean;
  setSlots(slots: number): void;
  /** Ends the turns: nobody has one any more. */
  stop(): void;
}

export interface AdmissionOptions {
  /** Streams a second; 0 or less: no limit but the load. */
  readonly perSecond: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly known: KnownNodes;
  /** Default: no limit. */
  readonly slots?: number;
  /** Called when the first stream waits, and when none waits any more. */
  readonly onQueued?: () => void;
  readonly onEmptied?: () => void;
  /** Called with each stream that begins. */
  readonly onBegun?: () => void;
}

interface Asking {
  readonly group: string;
  readonly peer: string;
  /** How many streams of its connection, or of its node, came before it and wait. */
  round: number;
  /** Since when its connection has been asking. */
  readonly since: number;
  readonly until: number;
  readonly begin: (admitted: Admitted) => void;
  readonly refuse: () => void;
  /** Where it waits. */
  line: Line;
  /** The id that it says is its node's. */
  node: string | undefined;
  isOver: boolean;
}

/** Streams that wait, by address, in the order in which they have their turns. */
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
  /** Those of known nodes, of addresses where known nodes live, and of others. */
  readonly #nodes: Line = new Map();
  readonly #addresses: Line = new Map();
  readonly #strange: Line = new Map();
  /** All that wait, and some that do not any more, oldest first. */
  #waiting: Asking[] = [];
  /** Of those, the ones whose first request is being waited for, oldest first. */
  readonly #lookedAt = new Set<Asking>();
  /** And those that are next to have the place of a known node, by place. */
  readonly #claims = new Map<string, Asking>();
  /** Places of known nodes that are taken, and until when. */
  readonly #places = new Map<string, number>();
  /** Streams that were begun and have not said who they are, by address. */
  readonly #silent = new Map<string, number>();
  /** The same by connection. */
  readonly #silentOf = new Map<string, number>();
  /** When connections that were refused asked first: until one of their streams begins. */
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
    // Where known nodes live it may be one of them, however long the line is.
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

  // ---- whose a stream is

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

  /** The last of a line that would take longer than a stream may wait gives way to one that comes before it. */
  #makesRoom(asking: Asking): boolean {
    const all = asking.line.get(asking.group) ?? [];
    // Where known nodes live those do not count that may be one of them.
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

  /** Waits no more. */
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
      // There is no stream, and the others have their turns.
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

  /** Milliseconds until a stream may begin; 0: now. */
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
    // A busy event loop comes late: all whose turn it has been meanwhile begin.
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

/** Whether a stream comes before another one of its address: those that have said who they are come first. */
function isBefore(one: Asking, other: Asking): boolean {
  if ((one.node === undefined) !== (other.node === undefined)) return one.node !== undefined;
  return one.round < other.round || (one.round === other.round && one.since < other.since);
}

/** Behind those of its address that come before it; an address that had nobody in the line comes last. */
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

/** The address whose turn it is. */
function firstOf(line: Line): Asking | undefined {
  for (const [first] of line.values()) return first;
  return undefined;
}

/** The address that has had its turn goes to the end of the line. */
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

/** Whose connection it is: of `host:port`. */
export function groupOfPeer(peer: string): string {
  return addressGroup(peer.slice(0, Math.max(0, peer.lastIndexOf(':'))));
}
