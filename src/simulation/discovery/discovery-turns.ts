/** The server updates proxies in push queue order. */
import type { AnyActorRef } from 'xstate';
import type { ProxiesServe } from '../../../machines/discovery/protocol.ts';
import type { ConnectionPush } from '../../../machines/discovery/xds/ads-protocol.ts';
import { isSubscribed } from '../../../machines/discovery/xds/ads-watch.ts';
import type { PushWorldOptions } from './discovery-bounds.ts';
import { type MeshContext, typesToPush } from './discovery-mesh.ts';
import type { PushMoment } from './discovery-moment.ts';
import type { PushWorldState } from './discovery-state.ts';
import type { PushStreams } from './discovery-streams.ts';
import { allNames } from './wire-record.ts';

export class PushTurns {
  readonly #moment: PushMoment;
  readonly #streams: PushStreams;

  constructor(moment: PushMoment, streams: PushStreams) {
    this.#moment = moment;
    this.#streams = streams;
  }

  onServerStarted(server: AnyActorRef): void {
    this.#moment.set({ server });
  }

  serve(order: ProxiesServe): void {
    this.#moment.set({ orders: [...this.#state.orders, { order, servedCount: 0 }] });
  }

  serveNextProxy(): void {
    const [{ order, servedCount }, ...otherOrders] = this.#state.orders as [PushWorldState['orders'][0]];
    const connection = order.connections[servedCount]!;
    const isLast = servedCount + 1 === order.connections.length;
    this.#moment.set({ orders: isLast ? otherOrders : [{ order, servedCount: servedCount + 1 }, ...otherOrders] });
    if (this.#state.streams.has(connection)) this.#updateProxy(connection, order);
    if (isLast && !this.#keepsTurn(connection))
      this.#moment.sendToQueue({ type: 'proxies.served', connections: order.connections });
  }

  #keepsTurn(connection: number): boolean {
    return this.#options.waitsForReaders === true && this.#state.streams.get(connection)?.isCongested === true;
  }

  #updateProxy(connection: number, order: ProxiesServe): void {
    const { unservedKeys, contexts, streams } = this.#state;
    const settledKeys = order.forced ? [...order.configs, allNames] : order.configs;
    const owedKeys = (unservedKeys.get(connection) ?? []).filter((key) => !settledKeys.includes(key));
    this.#moment.set({ unservedKeys: new Map(unservedKeys).set(connection, owedKeys) });
    const { watches } = streams.get(connection)!.exchange;
    const watchedTypes = Object.keys(watches).filter((type) => isSubscribed(watches[type]!));
    if (watchedTypes.length === 0 && this.#options.skipsUnsubscribed === true) return;
    const types = this.#concernedTypes(contexts.slice(streams.get(connection)!.context), order);
    this.#moment.updateStream(connection, (stream) => ({ ...stream, context: contexts.length }));
    const concernedTypes = watchedTypes.filter((type) => types === allNames || types.has(type));
    if (concernedTypes.length === 0) return;
    const push: ConnectionPush = { type: 'connection.push', version: order.version, types: concernedTypes };
    this.#streams.processEvent(connection, push);
  }

  /** Changes of the skipped contexts that concern a node. */
  #concernedTypes(passedContexts: readonly MeshContext[], order: ProxiesServe): ReadonlySet<string> | typeof allNames {
    if (this.#options.trustsOrders === true) {
      if (passedContexts.length === 0 && !order.forced) return new Set();
      return order.forced ? allNames : typesToPush(order.configs);
    }
    if (order.forced || passedContexts.some(({ forced }) => forced)) return allNames;
    return typesToPush(passedContexts.flatMap(({ changedKeys }) => [...changedKeys]));
  }

  get #state(): PushWorldState {
    return this.#moment.state;
  }

  get #options(): PushWorldOptions {
    return this.#moment.options;
  }
}
