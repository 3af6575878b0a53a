/**
 * Limits the number of unauthenticated connections, shared fairly among addresses. A connection is idle unless a
 * request of its client is being processed. An address at its limit loses its longest idle connection to the next one;
 * at the total limit, the address with the most idle connections loses one. A busy connection is never closed for a new
 * one.
 */

export interface ConnectionBoundsOptions {
  readonly maxPerAddress: number;
  readonly maxConnections: number;
  /** Limit of idle connections (default: the limit of all). */
  readonly maxIdlePerAddress?: number;
  readonly maxIdleConnections?: number;
  /**
   * Whether an address without a connection may replace an idle one if all connections are idle and of different
   * addresses. For ports whose clients send a request at once, because silent clients would otherwise block all others.
   */
  readonly isIdleReplaced?: boolean;
}

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

  /**
   * Admits a new connection, or closes it.
   *
   * @returns whether it was admitted
   */
  admit(connection: C, address: string | undefined): boolean {
    const group = addressGroup(address);
    const ofAddress = this.#addresses.get(group) ?? { idle: new Set(), busy: new Set() };
    if (!this.#makeSpace(ofAddress)) {
      connection.destroy();
      return false;
    }
    this.#addresses.set(group, ofAddress);
    ofAddress.idle.add(connection);
    this.#idle++;
    this.#of.set(connection, ofAddress);
    connection.once('close', () => this.#forget(connection, group));
    return true;
  }

  busy(connection: C): void {
    const ofAddress = this.#of.get(connection);
    if (ofAddress === undefined || !this.#takeIdle(ofAddress, connection)) return;
    ofAddress.busy.add(connection);
  }

  idle(connection: C): void {
    const ofAddress = this.#of.get(connection);
    if (!ofAddress?.busy.delete(connection)) return;
    ofAddress.idle.add(connection);
    this.#idle++;
  }

  /** Removes a connection from the counts that another component will manage. */
  release(connection: C): void {
    const ofAddress = this.#of.get(connection);
    this.#of.delete(connection);
    if (ofAddress === undefined) return;
    this.#takeIdle(ofAddress, connection);
    ofAddress.busy.delete(connection);
  }

  get size(): number {
    return this.#of.size;
  }

  #makeSpace(ofAddress: OfAddress<C>): boolean {
    const {
      maxPerAddress,
      maxConnections,
      maxIdlePerAddress = maxPerAddress,
      maxIdleConnections = maxConnections,
    } = this.#options;
    if (countOf(ofAddress) >= maxPerAddress || ofAddress.idle.size >= maxIdlePerAddress)
      return this.#closeIdle(ofAddress);
    if (this.#of.size < maxConnections && this.#idle < maxIdleConnections) return true;
    const largest = this.#addressWithMost();
    if (largest === undefined) return false;
    const isFair =
      largest.idle.size > ofAddress.idle.size + 1 ||
      (this.#options.isIdleReplaced === true && countOf(ofAddress) === 0);
    return isFair && this.#closeIdle(largest);
  }

  #addressWithMost(): OfAddress<C> | undefined {
    let largest: OfAddress<C> | undefined;
    for (const other of this.#addresses.values()) if (other.idle.size > (largest?.idle.size ?? 0)) largest = other;
    return largest;
  }

  #closeIdle(ofAddress: OfAddress<C>): boolean {
    for (const oldest of ofAddress.idle) {
      this.#takeIdle(ofAddress, oldest);
      this.#of.delete(oldest);
      oldest.destroy();
      return true;
    }
    return false;
  }

  #takeIdle(ofAddress: OfAddress<C>, connection: C): boolean {
    const wasIdle = ofAddress.idle.delete(connection);
    if (wasIdle) this.#idle--;
    return wasIdle;
  }

  #forget(connection: C, group: string): void {
    const ofAddress = this.#of.get(connection) ?? this.#addresses.get(group);
    this.#of.delete(connection);
    if (ofAddress === undefined) return;
    this.#takeIdle(ofAddress, connection);
    ofAddress.busy.delete(connection);
    if (countOf(ofAddress) === 0 && this.#addresses.get(group) === ofAddress) this.#addresses.delete(group);
  }
}

function countOf<C>({ idle, busy }: OfAddress<C>): number {
  return idle.size + busy.size;
}

/**
 * The group of addresses that one host can have: an IPv4 address in any notation, or the first half of an IPv6 address,
 * because a host controls the second half.
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
