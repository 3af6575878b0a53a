import type { AnyActorRef } from 'xstate';
import {
  type ExchangeEvent,
  routineEventAfter,
  routineEventBefore,
} from '../../../machines/discovery/xds/ads-exchange.ts';
import type {
  AdsRequest,
  ResponseOrder,
  StreamEnd,
  StreamOrder,
} from '../../../machines/discovery/xds/ads-protocol.ts';
import { type RunningEffect, reportEvent } from '../../debugger/explore/scripted-effect.ts';
import { SerialProcessor } from '../../runtime/one-at-a-time.ts';
import type { PushWorldOptions } from './discovery-bounds.ts';
import { type PushEffectWorld, pushWorldOf, type ScriptedCharts } from './discovery-charts.ts';
import { type ClientState, type ClientStep, connectClient, disconnectClient } from './discovery-client.ts';
import { stalledWindow } from './discovery-invariants.ts';
import type { Contents } from './discovery-mesh.ts';
import type { PushMoment } from './discovery-moment.ts';
import type { PushWorldState } from './discovery-state.ts';
import { executeOrder, newStream, type StreamState, type WaitingOrder, type WireResponse } from './discovery-stream.ts';
import { recordRequest, recordResponse } from './wire-record.ts';

interface ConnectionEvent {
  readonly connection: number;
  readonly event: ExchangeEvent;
}

const limits = { ackTimeoutMs: 10_000, congestionMs: 120_000, makeBeforeBreakMs: 5_000, removalDelayMs: 5_000 };
const rules = { resendsEndpoints: true, acceptsLateNames: true, maxNames: 1_000, maxNameChars: 10_000 };
/** A client reads all responses that can wait together before `congestionMs`. */
const readingMs = 30_000;

export class PushStreams {
  readonly #moment: PushMoment;
  readonly #charts: ScriptedCharts;
  readonly #effects: PushEffectWorld;
  /** Empty between choices. */
  readonly #pendingEvents = new SerialProcessor<ConnectionEvent>((connectionEvent) => this.#step(connectionEvent));

  constructor(moment: PushMoment, charts: ScriptedCharts, effects: PushEffectWorld) {
    this.#moment = moment;
    this.#charts = charts;
    this.#effects = effects;
  }

  execute(connection: number, order: StreamOrder): void {
    switch (order.type) {
      case 'stream.end':
        this.#endStream(connection, order);
        break;
      case 'responses.send':
        this.#queueOrders(connection, order.orders);
        break;
      case 'waits.expire':
      case 'removals.expire':
        break;
      default:
        this.processEvent(connection, order);
    }
  }

  onOpened({ self, input }: RunningEffect<{ connection: number }>): void {
    this.#moment.set({ effects: new Map(this.#state.effects).set(input.connection, self) });
  }

  /** An event caused by another one is processed after it. */
  processEvent(connection: number, event: ExchangeEvent): void {
    this.#pendingEvents.add({ connection, event });
  }

  /** As in src/discovery/xds/stream/ads-exchange.ts. */
  #step({ connection, event }: ConnectionEvent): void {
    const stream = this.#state.streams.get(connection);
    if (stream === undefined || stream.end !== undefined) return;
    const isRecorded = this.#options.inspect !== undefined;
    const message = isRecorded ? routineEventBefore(event) : undefined;
    if (message !== undefined) this.#moment.send(connection, message);
    const step = this.#charts.exchange(stream.exchange, event, rules);
    this.#moment.updateStream(connection, (previous) => ({ ...previous, exchange: step.exchange }));
    for (const report of step.reports) this.#moment.send(connection, report);
    if (isRecorded)
      for (const report of routineEventAfter(stream.exchange, step)) this.#moment.send(connection, report);
    if (this.#state.streams.get(connection)?.end === undefined) this.#queueOrders(connection, step.orders);
  }

  #queueOrders(connection: number, orders: readonly ResponseOrder[]): void {
    if (orders.length === 0) return;
    this.#moment.updateStream(connection, (stream) => ({
      ...stream,
      orders: [...stream.orders, ...orders.map((order) => ({ order, context: stream.context }))],
    }));
    this.#sendDue(connection);
  }

  connect(index: number): void {
    const connection = this.#state.streamCount + 1;
    const client = this.#client(index);
    const { streams, contexts, connections } = this.#state;
    this.#moment.set({
      streamCount: connection,
      streams: new Map(streams).set(connection, newStream(connection, index, client.isDelta, contexts.length)),
      wires: new Map(this.#state.wires).set(connection, {}),
      unservedKeys: new Map(this.#state.unservedKeys).set(connection, []),
    });
    const actor = this.#moment.system.start(this.#charts.connection, {
      id: `ads-connection-${connection}`,
      input: { connection, onlyType: null, ...limits },
      inspect: this.#options.inspect,
      created: (root) => pushWorldOf.set(root.system, this.#effects),
    });
    this.#moment.set({ connections: new Map(connections).set(connection, actor) });
    const stream = this.#effect(connection);
    reportEvent(stream, { type: 'peer.authenticated', identities: [] });
    reportEvent(stream, { type: 'node.accepted', node: `node-${index}` });
    this.#moment.sendToQueue({ type: 'proxy.connected', connection });
    if (this.#options.requestsLate === true) this.#moment.setClient(index, { ...client, connection });
    else this.sendRequests(index, connectClient(client, connection));
  }

  reset(index: number): void {
    const client = this.#client(index);
    const connection = client.connection!;
    this.#moment.setClient(index, disconnectClient(client));
    reportEvent(this.#effect(connection), { type: 'stream.closed', reason: 'reset' });
    this.#removeStream(connection);
  }

  /** Clients of closed streams reconnect. */
  closeEnded(): void {
    for (const [connection, actor] of this.#state.connections) {
      if (actor.getSnapshot().status !== 'done') continue;
      const { client: index } = this.#stream(connection);
      this.#moment.setClient(index, disconnectClient(this.#client(index)));
      this.#removeStream(connection);
    }
  }

  #removeStream(connection: number): void {
    this.#moment.system.disarm(readingOf(connection));
    this.#moment.system.removeRoot(this.#state.connections.get(connection)!);
    this.#moment.set({
      streams: withoutKey(this.#state.streams, connection),
      effects: withoutKey(this.#state.effects, connection),
      connections: withoutKey(this.#state.connections, connection),
      wires: withoutKey(this.#state.wires, connection),
      unservedKeys: withoutKey(this.#state.unservedKeys, connection),
    });
    this.#moment.sendToQueue({ type: 'proxy.disconnected', connection });
  }

  /** The status is sent after the responses: a client that reads nothing does not receive it. */
  #endStream(connection: number, end: StreamEnd): void {
    const stream = this.#stream(connection);
    this.#moment.checkInvariants((invariant) => invariant.onStreamEnd?.(this.#client(stream.client), end, stream));
    this.#moment.updateStream(connection, (previous) => ({ ...previous, orders: [], heldRequests: [], end }));
    this.#closeWhenRead(connection);
  }

  #closeWhenRead(connection: number): void {
    const { end, network, client } = this.#stream(connection);
    if (end === undefined || network.length > 0 || this.#client(client).isStalled) return;
    reportEvent(this.#effect(connection), { type: 'stream.closed', reason: 'ended by the server' });
  }

  #sendDue(connection: number): void {
    for (let stream = this.#stream(connection); ; stream = this.#stream(connection)) {
      const [order, ...orders] = stream.orders;
      if (order === undefined || stream.network.length >= this.#windowOf(stream)) break;
      this.#moment.updateStream(connection, (previous) => ({ ...previous, orders }));
      this.#executeOrder(connection, order);
    }
    this.#recordCongestion(connection);
  }

  #windowOf({ client }: StreamState): number {
    const { window } = this.#options;
    if (window > 0) return window;
    return this.#client(client).isStalled ? stalledWindow : Number.POSITIVE_INFINITY;
  }

  /** While an order waits, the server reads nothing from the client. */
  #recordCongestion(connection: number): void {
    const { orders, isCongested: wasCongested, end } = this.#stream(connection);
    const isCongested = orders.length > 0;
    if (isCongested === wasCongested || end !== undefined) return;
    this.#moment.updateStream(connection, (stream) => ({ ...stream, isCongested: isCongested }));
    this.processEvent(connection, { type: isCongested ? 'stream.congested' : 'stream.resumed' });
    if (!isCongested) this.#readNextRequest(connection);
  }

  #readNextRequest(connection: number): void {
    for (let stream = this.#stream(connection); ; stream = this.#stream(connection)) {
      const [request, ...laterRequests] = stream.heldRequests;
      if (request === undefined || stream.isCongested) return;
      this.#moment.updateStream(connection, (previous) => ({ ...previous, heldRequests: laterRequests }));
      this.#deliver(connection, request);
    }
  }

  #executeOrder(connection: number, waitingOrder: WaitingOrder): void {
    const previousStream = this.#stream(connection);
    const { again } = waitingOrder.order;
    const latestContext = this.#options.buildsLate === true ? previousStream.context : waitingOrder.context;
    const context = again === undefined ? latestContext : Number(again);
    const { contents } = this.#state.contexts[context - 1]!;
    const { stream, response } = executeOrder(previousStream, { ...waitingOrder, context }, contents);
    this.#moment.updateStream(connection, () => stream);
    const { typeUrl } = waitingOrder.order;
    if (response === undefined) {
      this.processEvent(connection, { type: 'response.skipped', typeUrl, reason: 'unchanged' });
      return;
    }
    this.#write(connection, response, contents);
    const { nonce, version, removedNames } = response;
    const resources = Object.keys(response.resources).length;
    const sentResponse = { typeUrl, nonce, version, resources, removed: removedNames.length, sentAt: 0 };
    this.processEvent(connection, { type: 'response.sent', ...sentResponse });
  }

  #write(connection: number, response: WireResponse, contents: Contents): void {
    const wire = this.#state.wires.get(connection)!;
    this.#moment.checkInvariants((invariant, observation) => invariant.onSend?.(response, wire, contents, observation));
    this.#moment.updateRecord(connection, response.typeUrl, (record) => recordResponse(record, response, contents));
    this.#moment.set({ responses: this.#state.responses + 1 });
    this.#moment.updateStream(connection, (stream) => ({ ...stream, network: [...stream.network, response] }));
    if (this.#options.window === 0 && !this.#isStalled(connection)) this.read(connection);
    else this.#awaitReading(connection);
  }

  #isStalled(connection: number): boolean {
    return this.#state.clients[this.#stream(connection).client]!.isStalled;
  }

  /** Reading frees capacity for the next response. */
  read(connection: number): void {
    const { network, client: index } = this.#stream(connection);
    const [response, ...laterResponses] = network as [WireResponse, ...WireResponse[]];
    this.#moment.updateStream(connection, (stream) => ({ ...stream, network: laterResponses }));
    const client = this.#client(index);
    this.#moment.setClient(index, {
      ...client,
      unacknowledgedResponses: [...client.unacknowledgedResponses, response],
    });
    this.#moment.system.disarm(readingOf(connection));
    this.#awaitReading(connection);
    if (this.#stream(connection).orders.length > 0) this.#sendDue(connection);
    this.#closeWhenRead(connection);
  }

  /** Starts the deadline by which a reading client reads the responses on the wire. */
  #awaitReading(connection: number): void {
    const { network } = this.#stream(connection);
    const readingTimer = readingOf(connection);
    if (network.length === 0 || this.#isStalled(connection) || this.#moment.system.zone.has(readingTimer)) return;
    this.#moment.system.arm(readingTimer, readingMs, 'within');
  }

  /** The client stops reading; it may still respond to responses that it has read. */
  stallClient(index: number): void {
    const client = this.#client(index);
    this.#moment.setClient(index, { ...client, isStalled: true });
    this.#moment.system.disarm(readingOf(client.connection!));
  }

  resumeClient(index: number): void {
    const client = this.#client(index);
    const connection = client.connection!;
    this.#moment.setClient(index, { ...client, isStalled: false });
    // A resuming client reads everything that has accumulated, even if it is slow otherwise.
    while (this.#hasUnread(connection)) this.read(connection);
    this.#closeWhenRead(connection);
  }

  #hasUnread(connection: number): boolean {
    return (this.#state.streams.get(connection)?.network.length ?? 0) > 0;
  }

  processResponse(index: number, handleResponse: (client: ClientState) => ClientStep): void {
    this.sendRequests(index, handleResponse(this.#client(index)));
  }

  sendRequests(index: number, { client, requests }: ClientStep): void {
    this.#moment.setClient(index, client);
    for (const request of requests) this.#send(client.connection!, request);
  }

  /** A request stays on the wire while the server does not read. */
  #send(connection: number, request: AdsRequest): void {
    const { isCongested, end } = this.#stream(connection);
    if (end !== undefined) return;
    if (isCongested)
      this.#moment.updateStream(connection, (stream) => ({
        ...stream,
        heldRequests: [...stream.heldRequests, request],
      }));
    else this.#deliver(connection, request);
  }

  #deliver(connection: number, request: AdsRequest): void {
    this.#moment.updateRecord(connection, request.typeUrl, (record) => recordRequest(record, request));
    this.processEvent(connection, { type: 'request.received', request });
  }

  get #state(): PushWorldState {
    return this.#moment.state;
  }

  get #options(): PushWorldOptions {
    return this.#moment.options;
  }

  #stream(connection: number): StreamState {
    return this.#state.streams.get(connection)!;
  }

  #effect(connection: number): AnyActorRef {
    return this.#state.effects.get(connection)!;
  }

  #client(index: number): ClientState {
    return this.#state.clients[index]!;
  }
}

const readingOf = (connection: number): string => `reading ${connection}`;

function withoutKey<Value>(map: ReadonlyMap<number, Value>, key: number): ReadonlyMap<number, Value> {
  const remainingEntries = new Map(map);
  remainingEntries.delete(key);
  return remainingEntries;
}
