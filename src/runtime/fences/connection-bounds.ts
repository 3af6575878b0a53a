/**
 * Limits the number of unauthenticated connections, shared fairly among addresses. A connection is idle unless a request of its client is being
 * processed. An address at its limit loses its longest idle connection to the next one; at the total limit, the address with the most idle
 * connections loses one.
 */

export interface ConnectionBoundsOptions {
  readonly maxPerAddress: number;
  readonly maxConnections: number;
  /** Maximum idle connections (default: the limit of all connections). */
  readonly maxIdlePerAddress?: number;
  readonly maxIdleConnections?: number;
  /**
   * Whether an address without a connection may replace an idle one if all connections are idle and of different addresses. Set it for ports whose
   * clients send a request immediately, because silent clients would otherwise block all others.
   */
  readonly isIdleReplaced?: boolean;
}

export interface BoundConnection {
  destroy(): void;
  once(event: 'close', listener: () => void): unknown;
}

interface AddressConnections<C> {
  readonly idle: Set<C>;
  readonly busy: Set<C>;
}

export class ConnectionBounds<C extends BoundConnection> {
  readonly #options: ConnectionBoundsOptions;
  readonly #addresses = new Map<string, AddressConnections<C>>();
  readonly #addressOf = new Map<C, AddressConnections<C>>();
  #idleCount = 0;

  constructor(options: ConnectionBoundsOptions) {
    this.#options = options;
  }

  admit(connection: C, address: string | undefined): boolean {
    const group = addressGroup(address);
    const addressConnections = this.#addresses.get(group) ?? { idle: new Set(), busy: new Set() };
    if (!this.#freeSlot(addressConnections)) {
      connection.destroy();
      return false;
    }
    this.#addresses.set(group, addressConnections);
    addressConnections.idle.add(connection);
    this.#idleCount++;
    this.#addressOf.set(connection, addressConnections);
    connection.once('close', () => this.#removeConnection(connection, group));
    return true;
  }

  busy(connection: C): void {
    const addressConnections = this.#addressOf.get(connection);
    if (addressConnections === undefined || !this.#removeIdle(addressConnections, connection)) return;
    addressConnections.busy.add(connection);
  }

  idle(connection: C): void {
    const addressConnections = this.#addressOf.get(connection);
    if (!addressConnections?.busy.delete(connection)) return;
    addressConnections.idle.add(connection);
    this.#idleCount++;
  }

  release(connection: C): void {
    const addressConnections = this.#addressOf.get(connection);
    this.#addressOf.delete(connection);
    if (addressConnections === undefined) return;
    this.#removeIdle(addressConnections, connection);
    addressConnections.busy.delete(connection);
  }

  get size(): number {
    return this.#addressOf.size;
  }

  #freeSlot(addressConnections: AddressConnections<C>): boolean {
    const {
      maxPerAddress,
      maxConnections,
      maxIdlePerAddress = maxPerAddress,
      maxIdleConnections = maxConnections,
    } = this.#options;
    if (countOf(addressConnections) >= maxPerAddress || addressConnections.idle.size >= maxIdlePerAddress)
      return this.#closeOldestIdle(addressConnections);
    if (this.#addressOf.size < maxConnections && this.#idleCount < maxIdleConnections) return true;
    const busiestAddress = this.#busiestAddress();
    if (busiestAddress === undefined) return false;
    const isWithinFairShare =
      busiestAddress.idle.size > addressConnections.idle.size + 1 ||
      (this.#options.isIdleReplaced === true && countOf(addressConnections) === 0);
    return isWithinFairShare && this.#closeOldestIdle(busiestAddress);
  }

  #busiestAddress(): AddressConnections<C> | undefined {
    let addressToClose: AddressConnections<C> | undefined;
    for (const candidate of this.#addresses.values())
      if (candidate.idle.size > (addressToClose?.idle.size ?? 0)) addressToClose = candidate;
    return addressToClose;
  }

  #closeOldestIdle(addressConnections: AddressConnections<C>): boolean {
    for (const oldestConnection of addressConnections.idle) {
      this.#removeIdle(addressConnections, oldestConnection);
      this.#addressOf.delete(oldestConnection);
      oldestConnection.destroy();
      return true;
    }
    return false;
  }

  #removeIdle(addressConnections: AddressConnections<C>, connection: C): boolean {
    const wasIdle = addressConnections.idle.delete(connection);
    if (wasIdle) this.#idleCount--;
    return wasIdle;
  }

  #removeConnection(connection: C, group: string): void {
    const addressConnections = this.#addressOf.get(connection) ?? this.#addresses.get(group);
    this.#addressOf.delete(connection);
    if (addressConnections === undefined) return;
    this.#removeIdle(addressConnections, connection);
    addressConnections.busy.delete(connection);
    if (countOf(addressConnections) === 0 && this.#addresses.get(group) === addressConnections)
      this.#addresses.delete(group);
  }
}

function countOf<C>({ idle, busy }: AddressConnections<C>): number {
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
  const headGroups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const tailGroups = tail === '' ? [] : tail.split(':');
    while (headGroups.length + tailGroups.length < 8) headGroups.push('0');
    headGroups.push(...tailGroups);
  }
  return headGroups.slice(0, 4).join(':');
}
