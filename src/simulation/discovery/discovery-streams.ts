/** The streams of the simulated push path: the charts of their connections, the messages in both directions, and the clients. */
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
import { type Running, report } from '../../debugger/explore/scripted-effect.ts';
import { OneAtATime } from '../../runtime/one-at-a-time.ts';
import type { PushWorldOptions } from './discovery-bounds.ts';
import { type PushEffectWorld, pushWorldOf, type ScriptedCharts } from './discovery-charts.ts';
import { type ClientState, type ClientStep, connectClient, disconnected } from './discovery-client.ts';
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
/** Maximum time in which a reading client reads one response, so that all that can wait together are read before `congestionMs`. */
const readingMs = 30_000;

export class PushStreams {
  readonly #moment: PushMoment;
  readonly #charts: ScriptedCharts;
  readonly #effects: PushEffectWorld;
  /** Empty between choices. */
  readonly #happenings = new OneAtATime<ConnectionEvent>((happening) => this.#step(happening));

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
        this.#order(connection, order.orders);
        break;
      case 'waits.expire':
      case 'removals.expire':
        break;
      default:
        this.happens(connection, order);
    }
  }

  opened({ self, input }: Running<{ connection: number }>): void {
    this.#moment.set({ effects: new Map(this.#state.effects).set(input.connection, self) });
  }

  /** Processes events one after the other: an event caused by another one is processed after it. */
  happens(connection: number, event: ExchangeEvent): void {
    this.#happenings.add({ connection, event });
  }

  /** As in src/discovery/xds/stream/ads-exchange.ts. */
  #step({ connection, event }: ConnectionEvent): void {
    const stream = this.#state.streams.get(connection);
    if (stream === undefined || stream.end !== undefined) return;
    const isRecorded = this.#options.inspect !== undefined;
    const message = isRecorded ? routineEventBefore(event) : undefined;
    if (message !== undefined) this.#moment.send(connection, message);
    const step = this.#charts.exchange(stream.exchange, event, rules);
    this.#moment.change(connection, (previous) => ({ ...previous, exchange: step.exchange }));
    for (const report of step.reports) this.#moment.send(connection, report);
    if (isRecorded)
      for (const report of routineEventAfter(stream.exchange, step)) this.#moment.send(connection, report);
    if (this.#state.streams.get(connection)?.end === undefined) this.#order(connection, step.orders);
  }

  #order(connection: number, orders: readonly ResponseOrder[]): void {
    if (orders.length === 0) return;
    this.#moment.change(connection, (stream) => ({
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
      streams: new Map(streams).set(connection, newStream(connection, index, client.delta, contexts.length)),
      wires: new Map(this.#state.wires).set(connection, {}),
      owed: new Map(this.#state.owed).set(connection, []),
    });
    const actor = this.#moment.system.start(this.#charts.connection, {
      id: `ads-connection-${connection}`,
      input: { connection, onlyType: null, ...limits },
      inspect: this.#options.inspect,
      created: (root) => pushWorldOf.set(root.system, this.#effects),
    });
    this.#moment.set({ connections: new Map(connections).set(connection, actor) });
    const stream = this.#effect(connection);
    report(stream, { type: 'peer.authenticated', identities: [] });
    report(stream, { type: 'node.accepted', node: `node-${index}` });
    this.#moment.sendToQueue({ type: 'proxy.connected', connection });
    if (this.#options.requestsLate === true) this.#moment.setClient(index, { ...client, connection });
    else this.sendRequests(index, connectClient(client, connection));
  }

  reset(index: number): void {
    const client = this.#client(index);
    const connection = client.connection!;
    this.#moment.setClient(index, disconnected(client));
    report(this.#effect(connection), { type: 'stream.closed', reason: 'reset' });
    this.#forget(connection);
  }

  /** Closes streams whose connection has ended; their clients reconnect. */
  closeEnded(): void {
    for (const [connection, actor] of this.#state.connections) {
      if (actor.getSnapshot().status !== 'done') continue;
      const { client: index } = this.#stream(connection);
      this.#moment.setClient(index, disconnected(this.#client(index)));
      this.#forget(connection);
    }
  }

  #forget(connection: number): void {
    this.#moment.system.disarm(readingOf(connection));
    this.#moment.system.forget(this.#state.connections.get(connection)!);
    this.#moment.set({
      streams: withoutKey(this.#state.streams, connection),
      effects: withoutKey(this.#state.effects, connection),
      connections: withoutKey(this.#state.connections, connection),
      wires: withoutKey(this.#state.wires, connection),
      owed: withoutKey(this.#state.owed, connection),
    });
    this.#moment.sendToQueue({ type: 'proxy.disconnected', connection });
  }

  /** The status is sent after the responses: a client that reads nothing does not receive it. */
  #endStream(connection: number, end: StreamEnd): void {
    const stream = this.#stream(connection);
    this.#moment.judge((invariant) => invariant.ending?.(this.#client(stream.client), end, stream));
    this.#moment.change(connection, (previous) => ({ ...previous, orders: [], held: [], end }));
    this.#closeWhenRead(connection);
  }

  #closeWhenRead(connection: number): void {
    const { end, network, client } = this.#stream(connection);
    if (end === undefined || network.length > 0 || this.#client(client).stalled) return;
    report(this.#effect(connection), { type: 'stream.closed', reason: 'ended by the server' });
  }

  #sendDue(connection: number): void {
    for (let stream = this.#stream(connection); ; stream = this.#stream(connection)) {
      const [order, ...orders] = stream.orders;
      if (order === undefined || stream.network.length >= this.#windowOf(stream)) break;
      this.#moment.change(connection, (previous) => ({ ...previous, orders }));
      this.#executeOrder(connection, order);
    }
    this.#noteCongestion(connection);
  }

  #windowOf({ client }: StreamState): number {
    const { window } = this.#options;
    if (window > 0) return window;
    return this.#client(client).stalled ? stalledWindow : Number.POSITIVE_INFINITY;
  }

  /** While an order waits, the server reads nothing from the client; afterwards it reads the held requests. */
  #noteCongestion(connection: number): void {
    const { orders, congested: wasCongested, end } = this.#stream(connection);
    const congested = orders.length > 0;
    if (congested === wasCongested || end !== undefined) return;
    this.#moment.change(connection, (stream) => ({ ...stream, congested }));
    this.happens(connection, { type: congested ? 'stream.congested' : 'stream.resumed' });
    if (!congested) this.#readOn(connection);
  }

  #readOn(connection: number): void {
    for (let stream = this.#stream(connection); ; stream = this.#stream(connection)) {
      const [request, ...laterRequests] = stream.held;
      if (request === undefined || stream.congested) return;
      this.#moment.change(connection, (previous) => ({ ...previous, held: laterRequests }));
      this.#deliver(connection, request);
    }
  }

  #executeOrder(connection: number, waitingOrder: WaitingOrder): void {
    const previous = this.#stream(connection);
    const { again } = waitingOrder.order;
    const latest = this.#options.buildsLate === true ? previous.context : waitingOrder.context;
    const context = again === undefined ? latest : Number(again);
    const { contents } = this.#state.contexts[context - 1]!;
    const { stream, response } = executeOrder(previous, { ...waitingOrder, context }, contents);
    this.#moment.change(connection, () => stream);
    const { typeUrl } = waitingOrder.order;
    if (response === undefined) {
      this.happens(connection, { type: 'response.skipped', typeUrl, reason: 'unchanged' });
      return;
    }
    this.#write(connection, response, contents);
    const { nonce, version, removed } = response;
    const resources = Object.keys(response.resources).length;
    const sentResponse = { typeUrl, nonce, version, resources, removed: removed.length, sentAt: 0 };
    this.happens(connection, { type: 'response.sent', ...sentResponse });
  }

  #write(connection: number, response: WireResponse, contents: Contents): void {
    const wire = this.#state.wires.get(connection)!;
    this.#moment.judge((invariant, observation) => invariant.sending?.(response, wire, contents, observation));
    this.#moment.note(connection, response.typeUrl, (record) => recordResponse(record, response, contents));
    this.#moment.set({ responses: this.#state.responses + 1 });
    this.#moment.change(connection, (stream) => ({ ...stream, network: [...stream.network, response] }));
    if (this.#options.window === 0 && !this.#isStalled(connection)) this.read(connection);
    else this.#awaitReading(connection);
  }

  #isStalled(connection: number): boolean {
    return this.#state.clients[this.#stream(connection).client]!.stalled;
  }

  /** The client reads, which frees capacity for the next response. */
  read(connection: number): void {
    const { network, client: index } = this.#stream(connection);
    const [response, ...laterResponses] = network as [WireResponse, ...WireResponse[]];
    this.#moment.change(connection, (stream) => ({ ...stream, network: laterResponses }));
    const client = this.#client(index);
    this.#moment.setClient(index, { ...client, unacknowledged: [...client.unacknowledged, response] });
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
  stall(index: number): void {
    const client = this.#client(index);
    this.#moment.setClient(index, { ...client, stalled: true });
    this.#moment.system.disarm(readingOf(client.connection!));
  }

  resume(index: number): void {
    const client = this.#client(index);
    const connection = client.connection!;
    this.#moment.setClient(index, { ...client, stalled: false });
    // A resuming client reads everything that has accumulated, even if it is slow otherwise.
    while (this.#hasUnread(connection)) this.read(connection);
    this.#closeWhenRead(connection);
  }

  #hasUnread(connection: number): boolean {
    return (this.#state.streams.get(connection)?.network.length ?? 0) > 0;
  }

  /** A client processes a response that it has read. */
  take(index: number, react: (client: ClientState) => ClientStep): void {
    this.sendRequests(index, react(this.#client(index)));
  }

  sendRequests(index: number, { client, requests }: ClientStep): void {
    this.#moment.setClient(index, client);
    for (const request of requests) this.#send(client.connection!, request);
  }

  /** A request stays on the wire while the server does not read; a server that has ended the stream reads nothing. */
  #send(connection: number, request: AdsRequest): void {
    const { congested, end } = this.#stream(connection);
    if (end !== undefined) return;
    if (congested) this.#moment.change(connection, (stream) => ({ ...stream, held: [...stream.held, request] }));
    else this.#deliver(connection, request);
  }

  #deliver(connection: number, request: AdsRequest): void {
    this.#moment.note(connection, request.typeUrl, (record) => recordRequest(record, request));
    this.happens(connection, { type: 'request.received', request });
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
  const remaining = new Map(map);
  remaining.delete(key);
  return remaining;
}
