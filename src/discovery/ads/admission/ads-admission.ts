/**
 * How many new streams a second are let in (`PILOT_MAX_REQUESTS_PER_SECOND`, spec/discovery.md §6.4), and whose: one address
 * does not use up what is there for all.
 *
 * Streams are spaced evenly. When more come than may begin, addresses have their turn one after the other, those of nodes
 * that were served before first; a stream waits for a second at the most, and then is refused. Streams that have not said
 * who they are have a bound by address. Within an address, connections have their turn one after the other: a crowd of
 * streams by one connection keeps nobody waiting who comes by another. A connection that was refused, and asks again, has
 * its turn before those that came after it: who keeps asking gets in, however many come. A stream that is gone waits no
 * more.
 */

import { addressGroup } from '../../../runtime/connection-bounds.ts';
import { dropOldest } from './drop-oldest.ts';

const longestWaitMs = 1_000;
/** Addresses of which it is remembered that a node was there. */
const mostKnown = 20_000;
/** Streams of one address that wait for their turn, or have not said who they are. */
const mostSilent = 1_000;
/** More of them, each the only one of its connection, where a node was before: for those that come back beside a crowd. */
const reservedForFirst = 200;
/** Streams that wait for their turn, of all addresses. */
const mostWaiting = 10_000;
/** Connections of which it is remembered that they were refused. */
const mostRefused = 10_000;
/** No turn is waited for. */
const nothingToLeave = (): void => {};

export interface Admission {
  /**
   * Calls one of both: at once, or within a second; neither once the stream is gone. `peer` is `host:port`.
   *
   * @returns to be called when the stream is gone
   */
  ask(peer: string, begin: () => void, refuse: () => void): () => void;
  /** A stream that was begun has said who it is. */
  introduced(peer: string): void;
  /** A stream that was begun, and has not said who it is, is gone. */
  left(peer: string): void;
  /** Nobody has a turn any more. */
  stop(): void;
}

interface Asking {
  readonly group: string;
  readonly peer: string;
  /** How many streams of its connection came before it and wait. */
  readonly round: number;
  /** Since when its connection has been asking. */
  readonly since: number;
  readonly until: number;
  readonly begin: () => void;
  readonly refuse: () => void;
  isOver: boolean;
}

/**
 * @param perSecond 0 or less: no limit.
 * @param now monotonic milliseconds.
 */
export function createAdmission(perSecond: number, now: () => number): Admission {
  return new FairAdmission(perSecond > 0 ? 1_000 / perSecond : 0, now);
}

class FairAdmission implements Admission {
  readonly #spacingMs: number;
  readonly #now: () => number;
  readonly #known = new Map<string, true>();
  /** By address, in the order in which they have their turns. */
  readonly #waiting = { known: new Map<string, Asking[]>(), strange: new Map<string, Asking[]>() };
  /** All that wait, and some that do not any more, oldest first. */
  #line: Asking[] = [];
  /** Streams that were begun and have not said who they are, by address. */
  readonly #silent = new Map<string, number>();
  /** The same by connection. */
  readonly #silentOf = new Map<string, number>();
  /** When connections that were refused asked first: until one of their streams begins. */
  readonly #refused = new Map<string, number>();
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(spacingMs: number, now: () => number) {
    this.#spacingMs = spacingMs;
    this.#now = now;
  }

  ask(peer: string, begin: () => void, refuse: () => void): () => void {
    const group = groupOf(peer);
    const line = this.#waiting[this.#sortOf(group)];
    const before = line.get(group) ?? [];
    const time = this.#now();
    const round = before.filter((other) => other.peer === peer).length;
    const isFirst = round === 0 && !this.#silentOf.has(peer);
    const most = mostSilent + (isFirst && this.#known.has(group) ? reservedForFirst : 0);
    const since = round === 0 ? (this.#refused.get(peer) ?? time) : time;
    const asking = { group, peer, round, since, until: time + longestWaitMs, begin, refuse, isOver: false };
    if ((this.#silent.get(group) ?? 0) + before.length >= most) this.#refuse(asking);
    else if (this.#line.length === 0 && time >= this.#next) this.#begin(asking);
    else if (this.#line.length >= mostWaiting || !this.#makesRoom(before, asking)) this.#refuse(asking);
    else {
      const others = before.filter(({ isOver }) => !isOver);
      const at = others.findIndex((other) => isBefore(asking, other));
      line.set(group, others.toSpliced(at < 0 ? others.length : at, 0, asking));
      this.#line.push(asking);
      this.#wake();
      return () => this.#leave(asking);
    }
    return nothingToLeave;
  }

  introduced(peer: string): void {
    const group = groupOf(peer);
    this.left(peer);
    this.#known.delete(group);
    this.#known.set(group, true);
    dropOldest(this.#known, mostKnown);
  }

  left(peer: string): void {
    const group = groupOf(peer);
    countDown(this.#silent, group);
    countDown(this.#silentOf, peer);
  }

  stop(): void {
    clearTimeout(this.#timer);
    for (const asking of this.#line.splice(0)) if (!asking.isOver) asking.refuse();
    this.#waiting.known.clear();
    this.#waiting.strange.clear();
  }

  #sortOf(group: string): 'known' | 'strange' {
    return this.#known.has(group) ? 'known' : 'strange';
  }

  /** The last of a line that would take longer than a stream may wait gives way to one that comes before it. */
  #makesRoom(line: readonly Asking[], asking: Asking): boolean {
    if (line.length * this.#spacingMs < longestWaitMs) return true;
    const last = line.at(-1)!;
    if (!isBefore(asking, last)) return false;
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
    asking.isOver = true;
    for (const line of Object.values(this.#waiting)) {
      const left = line.get(asking.group)?.filter((other) => other !== asking) ?? [];
      if (left.length > 0) line.set(asking.group, left);
      else line.delete(asking.group);
    }
  }

  #begin(
    { group, peer, begin }: Pick<Asking, 'group' | 'peer' | 'begin'>,
    turn = Math.max(this.#next, this.#now()),
  ): void {
    this.#next = turn + this.#spacingMs;
    this.#refused.delete(peer);
    this.#silentOf.set(peer, (this.#silentOf.get(peer) ?? 0) + 1);
    this.#silent.set(group, (this.#silent.get(group) ?? 0) + 1);
    begin();
  }

  #wake(): void {
    this.#timer ??= setTimeout(() => this.#turn(), Math.max(0, Math.ceil(this.#next - this.#now())));
  }

  #turn(): void {
    this.#timer = undefined;
    const time = this.#now();
    // A busy event loop comes late: all whose turn it has been meanwhile begin.
    while (time >= this.#next) {
      const asking = takeFirst(this.#waiting.known) ?? takeFirst(this.#waiting.strange);
      if (asking === undefined) break;
      asking.isOver = true;
      this.#begin(asking, this.#next);
    }
    this.#refuseLate(time);
    this.#line = this.#line.slice(this.#line.findIndex(({ isOver }) => !isOver) >>> 0);
    if (this.#line.length > 0) this.#wake();
  }

  #refuseLate(time: number): void {
    for (const asking of this.#line) {
      if (asking.until >= time) return;
      if (asking.isOver) continue;
      this.#leave(asking);
      this.#refuse(asking);
    }
  }
}

/** Of the same address. */
function isBefore(one: Asking, other: Asking): boolean {
  return one.round < other.round || (one.round === other.round && one.since < other.since);
}

/** The address that has had its turn goes to the end of the line. */
function takeFirst(line: Map<string, Asking[]>): Asking | undefined {
  for (const [group, [first, ...others]] of line) {
    line.delete(group);
    if (others.length > 0) line.set(group, others);
    return first;
  }
  return undefined;
}

function countDown(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 0) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}

function groupOf(peer: string): string {
  return addressGroup(peer.slice(0, Math.max(0, peer.lastIndexOf(':'))));
}
