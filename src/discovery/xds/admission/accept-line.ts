/**
 * Where connections wait that come from an address that is held off and where nodes live: one of the strangers beside them
 * is too busy, and nobody can tell yet which connection is whose. They are let in one at a time, the longest waiting first;
 * nothing was set up for them until then. When more come than can wait, any of them makes room: a crowd does not push out
 * the one among them that is a node with more than its share of chance.
 *
 * A connection by which a node says who it is costs little, so many are let in; where one that was let in was busy with
 * something else, fewer are for a while.
 */

import { letEscape } from '../../../runtime/fences/uncaught.ts';
import { setNewest } from './drop-oldest.ts';

export interface AcceptLineLimits {
  /** Time from one connection of an address to its next. Default 5 ms. */
  readonly spacingMs: number;
  /** Connections of one address that wait: each in the line has its turn within a second. Default 192. */
  readonly mostWaiting: number;
  /** How many times as slow an address is that {@link AcceptLine.slowDown} was called for, and for how long. Default 4, 5 s. */
  readonly slowFactor: number;
  readonly slowMs: number;
  /** Connections of all addresses that wait. Default 1024. */
  readonly mostInWhole: number;
}

export const acceptLineLimits: AcceptLineLimits = {
  spacingMs: 5,
  mostWaiting: 192,
  slowFactor: 4,
  slowMs: 5_000,
  mostInWhole: 1_024,
};

/** Addresses that are slow; when there are more, the longest slow one is not any more. */
const mostSlow = 1_024;

/** What is used of a socket. */
export interface WaitingConnection {
  readonly destroyed: boolean;
  destroy(): void;
  once(event: 'close', listener: () => void): unknown;
}

interface Waiting<C> {
  readonly connection: C;
  readonly begin: () => void;
}

export class AcceptLine<C extends WaitingConnection> {
  readonly #limits: AcceptLineLimits;
  readonly #random: () => number;
  readonly #lines = new Map<string, Waiting<C>[]>();
  /** Until when addresses are slow. */
  readonly #slow = new Map<string, number>();
  #count = 0;
  #turns = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param random from 0 to below 1 */
  constructor(limits: AcceptLineLimits, random: () => number) {
    this.#limits = limits;
    this.#random = random;
  }

  /**
   * @param begin called when it is its turn, unless it is closed before
   * @returns whether there was room; else it is closed
   */
  add(group: string, connection: C, begin: () => void): boolean {
    const { mostInWhole, slowFactor } = this.#limits;
    const mostWaiting = this.#limits.mostWaiting / (this.#isSlow(group) ? slowFactor : 1);
    const line = this.#lines.get(group) ?? [];
    if (line.length < mostWaiting && this.#count >= mostInWhole) {
      connection.destroy();
      return false;
    }
    this.#lines.set(group, line);
    line.push({ connection, begin });
    this.#count++;
    connection.once('close', () => this.#leave(group, connection));
    this.#wake();
    if (line.length <= mostWaiting) return true;
    const { connection: unlucky } = line[Math.floor(this.#random() * line.length)]!;
    this.#leave(group, unlucky);
    unlucky.destroy();
    return unlucky !== connection;
  }

  /** A connection of this address that was let in was too busy. */
  slowDown(group: string): void {
    setNewest(this.#slow, group, performance.now() + this.#limits.slowMs, mostSlow);
  }

  /** Closes all that wait. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const line of [...this.#lines.values()]) for (const { connection } of [...line]) connection.destroy();
    this.#lines.clear();
    this.#count = 0;
  }

  #wake(): void {
    this.#timer ??= setTimeout(() => this.#turn(), this.#limits.spacingMs);
  }

  /** Lets in one connection of each address. */
  #turn(): void {
    this.#timer = undefined;
    const isTurnOfSlow = ++this.#turns % this.#limits.slowFactor === 0;
    for (const [group, [first]] of [...this.#lines]) {
      if (first === undefined || (!isTurnOfSlow && this.#isSlow(group))) continue;
      this.#leave(group, first.connection);
      if (first.connection.destroyed) continue;
      try {
        first.begin();
      } catch (error) {
        // The others wait for the next turn.
        letEscape(error);
      }
    }
    if (this.#count > 0) this.#wake();
  }

  #isSlow(group: string): boolean {
    const until = this.#slow.get(group);
    if (until === undefined) return false;
    if (performance.now() < until) return true;
    this.#slow.delete(group);
    return false;
  }

  #leave(group: string, connection: C): void {
    const line = this.#lines.get(group) ?? [];
    const at = line.findIndex((waiting) => waiting.connection === connection);
    if (at < 0) return;
    line.splice(at, 1);
    this.#count--;
    if (line.length === 0) this.#lines.delete(group);
  }
}
