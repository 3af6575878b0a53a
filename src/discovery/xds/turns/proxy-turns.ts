/** Updates proxies in the order of the push queue, in slices of the event loop. */
import type { ProxiesServe } from '../../../../machines/discovery/protocol.ts';
import { throwUncaught } from '../../../runtime/fences/uncaught.ts';
import type { ResourceChange } from '../resource-source.ts';
import { SliceScheduler } from './slices.ts';

export interface ProxyTurnsOptions {
  serve(connection: number, change: ResourceChange, order: ProxiesServe): void;
  /** Other connections are served anyway. */
  onFailed?(connection: number, error: unknown): void;
  /** Called when all connections of an order were served. May cause another order. */
  onServed(order: ProxiesServe): void;
}

export class ProxyTurns {
  readonly #options: ProxyTurnsOptions;
  readonly #orders: ProxiesServe[] = [];
  #current: { readonly change: ResourceChange; completedCount: number } | undefined;
  readonly #slices = new SliceScheduler(
    () => this.#orders[0] !== undefined && this.#serveNextConnection(this.#orders[0]),
    true,
  );

  constructor(options: ProxyTurnsOptions) {
    this.#options = options;
  }

  get size(): number {
    return (
      this.#orders.reduce((sum, { connections }) => sum + connections.length, 0) - (this.#current?.completedCount ?? 0)
    );
  }

  addOrder(order: ProxiesServe): void {
    this.#orders.push(order);
    this.#slices.start();
  }

  stop(): void {
    this.#slices.stop();
    this.#orders.length = 0;
    this.#current = undefined;
  }

  #serveNextConnection(order: ProxiesServe): boolean {
    const { version, forced, configs, connections } = order;
    this.#current ??= { change: { version, forced, configs: new Set(configs) }, completedCount: 0 };
    const current = this.#current;
    this.#serve(connections[current.completedCount++]!, current.change, order);
    // Serving may have stopped the server.
    if (current !== this.#current) return false;
    if (current.completedCount < connections.length) return true;
    this.#orders.shift();
    this.#current = undefined;
    this.#options.onServed(order);
    return this.#orders.length > 0;
  }

  #serve(...[connection, change, order]: Parameters<ProxyTurnsOptions['serve']>): void {
    try {
      this.#options.serve(connection, change, order);
    } catch (error) {
      try {
        this.#options.onFailed?.(connection, error);
      } catch (reportError) {
        throwUncaught(reportError);
      }
    }
  }
}
