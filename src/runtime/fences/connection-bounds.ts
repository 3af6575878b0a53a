/**
 * How many connections strangers may hold, shared fairly among addresses.
 *
 * A connection is idle until somebody at its other end has asked for something that is being done. When an address has as
 * many as it may, its longest idle one makes room for the next; when all are taken, that of the address with the most idle.
 * What is at work is never cut off for a newcomer.
 */

export interface ConnectionBoundsOptions {
  readonly maxPerAddress: number;
  readonly maxInWhole: number;
  /** Of idle ones; absent: as many as of all. */
  readonly maxIdlePerAddress?: number;
  readonly maxIdleInWhole?: number;
  /**
   * When all are taken by idle ones of as many addresses, an address that has none yet is let in for one of
   * them: where who comes asks at once, and strangers who say nothing would keep everybody out.
   */
  readonly isIdleReplaced?: boolean;
}

/** What is used of a socket. */
export interface BoundConnection {
  destroy(): void;
  once(event: 'close', listener: () => void): unknown;
}

interface OfAddress<C> {
  /** In the order in which they became idle. */
  readonly idle: Set<C>;
  readonly busy: Set<C>;
}

export class ConnectionBounds<C extends BoundConnection> {
  readonly #options: ConnectionBoundsOptions;
  readonly #addresses = new Map<string, OfAddress<C>>();
  readonly #of = new Map<C, OfAddress<C>>();
  #idle = 0;

  constructor(options: ConnectionBoundsOptions) {
    this.#options = options;
  }

  /** Takes a new connection, or closes it. @returns whether it may stay */
  admit(connection: C, address: string | undefined): boolean {
    const group = addressGroup(address);
    const own = this.#addresses.get(group) ?? { idle: new Set(), busy: new Set() };
    if (!this.#makeRoom(own)) {
      connection.destroy();
      return false;
    }
    this.#addresses.set(group, own);
    own.idle.add(connection);
    this.#idle++;
    this.#of.set(connection, own);
    connection.once('close', () => this.#forget(connection, group));
    return true;
  }

  /** Something is being done for it. */
  busy(connection: C): void {
    const own = this.#of.get(connection);
    if (own === undefined || !this.#takeIdle(own, connection)) return;
    own.busy.add(connection);
  }

  /** What was being done for it is done. */
  idle(connection: C): void {
    const own = this.#of.get(connection);
    if (!own?.busy.delete(connection)) return;
    own.idle.add(connection);
    this.#idle++;
  }

  /** It is somebody else's from now on. */
  release(connection: C): void {
    const own = this.#of.get(connection);
    this.#of.delete(connection);
    if (own === undefined) return;
    this.#takeIdle(own, connection);
    own.busy.delete(connection);
  }

  get size(): number {
    return this.#of.size;
  }

  #makeRoom(own: OfAddress<C>): boolean {
    const { maxPerAddress, maxInWhole, maxIdlePerAddress = maxPerAddress, maxIdleInWhole = maxInWhole } = this.#options;
    if (countOf(own) >= maxPerAddress || own.idle.size >= maxIdlePerAddress) return this.#closeIdle(own);
    if (this.#of.size < maxInWhole && this.#idle < maxIdleInWhole) return true;
    const most = this.#addressWithMost();
    if (most === undefined) return false;
    const isFair = most.idle.size > own.idle.size + 1 || (this.#options.isIdleReplaced === true && countOf(own) === 0);
    return isFair && this.#closeIdle(most);
  }

  #addressWithMost(): OfAddress<C> | undefined {
    let most: OfAddress<C> | undefined;
    for (const other of this.#addresses.values()) if (other.idle.size > (most?.idle.size ?? 0)) most = other;
    return most;
  }

  #closeIdle(own: OfAddress<C>): boolean {
    for (const longest of own.idle) {
      this.#takeIdle(own, longest);
      this.#of.delete(longest);
      longest.destroy();
      return true;
    }
    return false;
  }

  #takeIdle(own: OfAddress<C>, connection: C): boolean {
    const wasIdle = own.idle.delete(connection);
    if (wasIdle) this.#idle--;
    return wasIdle;
  }

  #forget(connection: C, group: string): void {
    const own = this.#of.get(connection) ?? this.#addresses.get(group);
    this.#of.delete(connection);
    if (own === undefined) return;
    this.#takeIdle(own, connection);
    own.busy.delete(connection);
    if (countOf(own) === 0 && this.#addresses.get(group) === own) this.#addresses.delete(group);
  }
}

function countOf<C>({ idle, busy }: OfAddress<C>): number {
  return idle.size + busy.size;
}

/**
 * Addresses that are one stranger's: an IPv4 address, however it is written, and the first half of an IPv6 address, of
 * which a host has the second half to itself.
 */
export function addressGroup(address: string | undefined): string {
  if (address === undefined || !address.includes(':')) return address ?? '';
  const v4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (v4 !== undefined) return v4;
  const [head = '', tail] = address.split('%', 1)[0]!.split('::', 2);
  const first = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const last = tail === '' ? [] : tail.split(':');
    while (first.length + last.length < 8) first.push('0');
    first.push(...last);
  }
  return first.slice(0, 4).join(':');
}
