/**
 * Queues connections from a throttled address with known nodes, because connections of the busy client cannot be distinguished from those of nodes.
 * Connections are accepted one at a time, oldest first. If the queue is full, a random connection is closed. During a flood, this is rarely a node's
 * connection.
 */

import { throwUncaught } from '../../../runtime/fences/uncaught.ts';
import { setAsNewest } from './drop-oldest.ts';

export interface AcceptQueueLimits {
  /** Interval between accepted connections of an address. */
  readonly spacingMs: number;
  readonly maxWaiting: number;
  /** Divisor of the rate and of `maxWaiting` after {@link AcceptQueue.throttle}. */
  readonly slowFactor: number;
  readonly slowMs: number;
  readonly maxTotal: number;
}

export const acceptQueueLimits: AcceptQueueLimits = {
  spacingMs: 5,
  maxWaiting: 192,
  slowFactor: 4,
  slowMs: 5_000,
  maxTotal: 1_024,
};

const maxSlowAddresses = 1_024;

export interface WaitingConnection {
  readonly destroyed: boolean;
  destroy(): void;
  once(event: 'close', listener: () => void): unknown;
}

interface Waiting<C> {
  readonly connection: C;
  readonly begin: () => void;
}

export class AcceptQueue<C extends WaitingConnection> {
  readonly #limits: AcceptQueueLimits;
  readonly #random: () => number;
  readonly #queues = new Map<string, Waiting<C>[]>();
  readonly #slowUntilByGroup = new Map<string, number>();
  #count = 0;
  #turnCount = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param random returns a number in [0, 1) */
  constructor(limits: AcceptQueueLimits, random: () => number) {
    this.#limits = limits;
    this.#random = random;
  }

  /**
   * @param onBegin not called if the connection is closed first
   * @returns false if the queue is full and this connection was closed
   */
  add(group: string, connection: C, onBegin: () => void): boolean {
    const { maxTotal, slowFactor } = this.#limits;
    const maxWaitingOfGroup = this.#limits.maxWaiting / (this.#isThrottled(group) ? slowFactor : 1);
    const queue = this.#queues.get(group) ?? [];
    if (queue.length < maxWaitingOfGroup && this.#count >= maxTotal) {
      connection.destroy();
      return false;
    }
    this.#queues.set(group, queue);
    queue.push({ connection, begin: onBegin });
    this.#count++;
    connection.once('close', () => this.#removeConnection(group, connection));
    this.#scheduleAccept();
    if (queue.length <= maxWaitingOfGroup) return true;
    const { connection: evictedConnection } = queue[Math.floor(this.#random() * queue.length)]!;
    this.#removeConnection(group, evictedConnection);
    evictedConnection.destroy();
    return evictedConnection !== connection;
  }

  /** Called when an accepted connection has sent too much without a node. */
  throttle(group: string): void {
    setAsNewest(this.#slowUntilByGroup, group, performance.now() + this.#limits.slowMs, maxSlowAddresses);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const queue of [...this.#queues.values()]) for (const { connection } of [...queue]) connection.destroy();
    this.#queues.clear();
    this.#count = 0;
  }

  #scheduleAccept(): void {
    this.#timer ??= setTimeout(() => this.#acceptOnePerAddress(), this.#limits.spacingMs);
  }

  #acceptOnePerAddress(): void {
    this.#timer = undefined;
    const isTurnOfSlow = ++this.#turnCount % this.#limits.slowFactor === 0;
    for (const [group, [first]] of [...this.#queues]) {
      if (first === undefined || (!isTurnOfSlow && this.#isThrottled(group))) continue;
      this.#removeConnection(group, first.connection);
      if (first.connection.destroyed) continue;
      try {
        first.begin();
      } catch (error) {
        throwUncaught(error);
      }
    }
    if (this.#count > 0) this.#scheduleAccept();
  }

  #isThrottled(group: string): boolean {
    const throttledUntil = this.#slowUntilByGroup.get(group);
    if (throttledUntil === undefined) return false;
    if (performance.now() < throttledUntil) return true;
    this.#slowUntilByGroup.delete(group);
    return false;
  }

  #removeConnection(group: string, connection: C): void {
    const queue = this.#queues.get(group) ?? [];
    const queueIndex = queue.findIndex((entry) => entry.connection === connection);
    if (queueIndex < 0) return;
    queue.splice(queueIndex, 1);
    this.#count--;
    if (queue.length === 0) this.#queues.delete(group);
  }
}
