import type { AnyActorRef } from 'xstate';
import type { ProxyReport } from '../../../machines/discovery/protocol.ts';
import type { AdsStreamReport, ConnectionPush } from '../../../machines/discovery/xds/ads-protocol.ts';
import { reportEvent } from '../../debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../debugger/explore/symbolic-system.ts';
import { relay } from '../../runtime/actors/relay-event.ts';
import type { PushWorldOptions } from './discovery-bounds.ts';
import type { ClientState } from './discovery-client.ts';
import {
  noWire,
  type PushInvariant,
  type PushObservation,
  pushInvariants,
  type WireRecord,
} from './discovery-invariants.ts';
import { firstContents } from './discovery-mesh.ts';
import type { PushWorldState } from './discovery-state.ts';
import type { StreamState } from './discovery-stream.ts';

export class PushMoment {
  readonly system = new SymbolicSystem();
  readonly options: PushWorldOptions;
  state: PushWorldState;
  /** Parent of push, its queue and the registries. */
  discovery: AnyActorRef | undefined;

  constructor(options: PushWorldOptions, state: PushWorldState) {
    this.options = options;
    this.state = state;
  }

  observe(): PushObservation {
    const { clients, streams, wires, contexts, unservedKeys, orders, isListed, isLate } = this.state;
    const orderedConnections = orders.flatMap(({ order }) => order.connections);
    return {
      clients,
      streams,
      wires,
      publishedContents: contexts.at(-1)?.contents ?? firstContents,
      mayServe: isListed || isLate,
      unservedKeys,
      connectionsBeingServed: orderedConnections.filter((connection) => streams.has(connection)),
      throttle: this.options.throttle,
      window: this.options.window,
      lastAcknowledged: (connection, type) => {
        const watch = streams.get(connection)!.exchange.watches[type];
        return { nonce: watch?.nonceAcked ?? '', version: watch?.versionAcked ?? '' };
      },
      failures: this.system.failures,
    };
  }

  checkInvariants(check: (invariant: PushInvariant, observed: PushObservation) => string | undefined): void {
    const observation = this.observe();
    for (const invariant of this.options.invariants ?? pushInvariants) {
      const detail = check(invariant, observation);
      if (detail === undefined) continue;
      this.set({ violations: [...this.state.violations, { invariant: invariant.name, detail }] });
    }
  }

  actor(name: string): AnyActorRef {
    return this.discovery!.system.get(name) as AnyActorRef;
  }

  sendToQueue(event: ProxyReport): void {
    relay(this.state.server, this.actor('push-queue'), event);
  }

  send(connection: number, event: AdsStreamReport | ConnectionPush): void {
    if (event.type !== 'connection.push') reportEvent(this.state.effects.get(connection)!, event);
    else relay(this.state.server, this.state.connections.get(connection)!, event);
  }

  spendFault(): void {
    this.set({ faults: this.state.faults - 1 });
  }

  updateStream(connection: number, update: (stream: StreamState) => StreamState): void {
    const { streams } = this.state;
    this.set({ streams: new Map(streams).set(connection, update(streams.get(connection)!)) });
  }

  setClient(index: number, client: ClientState): void {
    this.set({ clients: this.state.clients.with(index, client) });
  }

  updateRecord(connection: number, type: string, update: (record: WireRecord) => WireRecord): void {
    const { wires } = this.state;
    const wire = wires.get(connection)!;
    this.set({ wires: new Map(wires).set(connection, { ...wire, [type]: update(wire[type] ?? noWire) }) });
  }

  set(change: Partial<PushWorldState>): void {
    this.state = { ...this.state, ...change };
  }
}
