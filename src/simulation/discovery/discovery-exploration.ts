/**
 * The real charts of the push path (`push`, `push-queue` and an `ads-connection` for every stream) with a simulated mesh,
 * simulated streams that apply the real rules (`ads-exchange.ts`) and scripted clients, and all that is not determined as a choice: what changes (`change:cluster`), when
 * a context is built (`built`), when the next proxy has its turn (`turn`), what clients do in their own time (`read:0`,
 * `accept:0`), what goes wrong (`reject:0`, `reset:1`, `unbuilt`: a context cannot be built), and which deadline is next
 * (`tick:push.quietTime`). A registry may change by itself (`move:cluster`); its services are then made (`computed`), or
 * cannot be (`uncomputed`). Where its first list comes late (`listed`), it may as well never come. It may
 * be lost (`lost`), and is tried again. A client may join and
 * watch nothing until it asks (`ask:0`); it may stop reading (`stall:0`), and read again (`resume:0`) or never.
 */

import type { AnyActorRef, InspectionEvent } from 'xstate';
import { type ExchangeEvent, routineAfter, routineBefore } from '../../../machines/discovery/ads-exchange.ts';
import type {
  AdsRequest,
  PushToClient,
  ResponseOrder,
  StreamEnd,
  StreamOrder,
  StreamReport,
} from '../../../machines/discovery/ads-protocol.ts';
import { endpointType, isByName } from '../../../machines/discovery/ads-types.ts';
import { isSubscribed } from '../../../machines/discovery/ads-watch.ts';
import type { ProxiesServe, ProxyReport } from '../../../machines/discovery/protocol.ts';
import type { ServicesOrder, ServicesReading } from '../../../machines/discovery/service-registry.machine.ts';
import { type Running, report, settle } from '../../debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../debugger/explore/symbolic-system.ts';
import type { Choice, Violation, World } from '../../debugger/explore/world.ts';
import { relay } from '../../runtime/actors/relay.ts';
import { OneAtATime } from '../../runtime/one-at-a-time.ts';
import { type BuildInput, type PushEffectWorld, pushWorldOf, type ScriptedCharts } from './discovery-charts.ts';
import {
  accepted,
  type ClientState,
  connected,
  disconnected,
  newClient,
  rejected,
  stale,
  type Turn,
} from './discovery-client.ts';
import {
  noWire,
  type PushInvariant,
  type PushObserved,
  pushInvariants,
  stalledDelaysNobody,
  stalledWindow,
  type WireRecord,
} from './discovery-invariants.ts';
import {
  type Contents,
  changedContents,
  firstContents,
  keysOf,
  type MeshContext,
  type MeshEvent,
  type MeshType,
  meshTypes,
  typesToPush,
  unlistedContents,
} from './discovery-mesh.ts';
import type { PushWorldState } from './discovery-state.ts';
import { keyOfWorld } from './discovery-state-key.ts';
import { answer, newStream, type StreamState, type WaitingOrder, type WireResponse } from './discovery-stream.ts';

/** How much of each kind a run may hold. */
export interface PushBounds {
  /** Things that change in the configuration. */
  readonly changes: number;
  /** Rejections, stale answers, streams that break, contexts that cannot be built. */
  readonly faults: number;
}

export interface PushWorldOptions {
  /** Protocols of the clients. */
  readonly clients: readonly ('sotw' | 'delta')[];
  readonly types: readonly MeshType[];
  /** What may change. */
  readonly events: readonly MeshEvent[];
  readonly throttle: number;
  /** Responses that may be under way to a client that does not read; 0: any number, and it reads at once, unless it stalls. */
  readonly window: number;
  /** Begins with everybody connected and served. */
  readonly settled: boolean;
  /** What may change in a registry that nobody feeds; none by default. */
  readonly moves?: readonly MeshEvent[];
  /** The first list of a registry comes late, if at all: clients are not there before. Not together with `settled`. */
  readonly listsLate?: boolean;
  /** The registry may be lost (`lost`), a fault: it is tried again, and then tells all that it has (`listed`). */
  readonly registryFails?: boolean;
  /** A client joins and watches nothing until it asks, in its own time. */
  readonly asksLate?: boolean;
  /** A stream that watches nothing is passed over by a push, and stays with its context. Broken on purpose. */
  readonly passesOverIdle?: boolean;
  readonly invariants?: readonly PushInvariant[];
  /** Kinds of faults that there may be; all, unless said. */
  readonly faults?: readonly string[];
  /** False: a context can always be built. That it cannot is a fault of ours, which no diagram shows. */
  readonly buildsFail?: boolean;
  /** How a node finds out what concerns it; else exactly. For a source that is broken on purpose. */
  readonly trustsOrders?: boolean;
  /** A stream makes a response of what the source has when its turn comes. Broken on purpose, too. */
  readonly makesLate?: boolean;
  /** The server keeps the turn of a proxy until all of its responses have left. Broken on purpose as well. */
  readonly waitsForReaders?: boolean;
  readonly inspect?: (event: InspectionEvent) => void;
}

/** What happens on a stream. */
interface StreamHappening {
  readonly connection: number;
  readonly event: ExchangeEvent;
}

const ackTimeoutMs = 10_000;
const limits = { ackTimeoutMs, congestionMs: 120_000 };
const rules = { resendsEndpoints: true, hearsLateNames: true, maxNames: 1_000, maxNameChars: 10_000 };
/** A client that reads takes each response in this time: all that can wait at once, in less than the server waits. */
const readingMs = 30_000;
const everything = '*';
const slow = { registry: 'Slow/one', revision: '' };

export class PushWorld implements World, PushEffectWorld {
  readonly #system = new SymbolicSystem();
  readonly #charts: ScriptedCharts;
  readonly #options: PushWorldOptions;
  readonly #discovery: AnyActorRef;
  /** Empty between choices. */
  readonly #happenings = new OneAtATime<StreamHappening>((happening) => this.#step(happening));
  #state: PushWorldState;
  #choices: readonly Choice[] | undefined;

  constructor(charts: ScriptedCharts, bounds: PushBounds, options: PushWorldOptions) {
    this.#charts = charts;
    this.#options = options;
    const { throttle, clients, types, inspect, listsLate = false } = options;
    this.#state = {
      changes: 0,
      faults: 0,
      changed: 0,
      contents: firstContents,
      made: listsLate ? unlistedContents : firstContents,
      moved: [],
      isListed: !listsLate,
      isInStep: false,
      isLate: false,
      computing: undefined,
      registries: undefined,
      feed: undefined,
      contexts: [],
      build: undefined,
      server: undefined,
      orders: [],
      streams: new Map(),
      effects: new Map(),
      connections: new Map(),
      clients: clients.map((protocol) => newClient(protocol === 'delta', types)),
      streamCount: 0,
      responses: 0,
      wires: new Map(),
      owed: new Map(),
      violations: [],
    };
    this.#discovery = this.#system.start(charts.discovery, {
      id: 'discovery',
      input: { throttle },
      inspect,
      created: (root) => pushWorldOf.set(root.system, this),
    });
    report(this.#state.registries!, { type: 'registries.listed', registries: [slow] });
    if (!listsLate) this.#list();
    this.#settle();
    if (!listsLate) {
      this.apply('computed');
      this.apply('built');
    }
    while (options.settled && this.choices().length > 0) this.apply(this.choices()[0]!.name);
    this.#set(bounds);
    this.#settle();
  }

  get violations(): readonly Violation[] {
    return this.#state.violations;
  }

  /** A cycle that sends something is a livelock. */
  get spawned(): number {
    return this.#state.responses;
  }

  get ending(): boolean {
    return false;
  }

  /** Everybody has what the sources hold, as far as it can be had. */
  get reached(): boolean {
    const { isListed, contents, made } = this.#state;
    const published = isListed ? contents : made;
    return (
      stalledDelaysNobody.atRestButStalled!({ ...this.#observed(), published }) === undefined &&
      this.#state.clients.every((client) => !client.stalled || this.#isSentAll(client, published))
    );
  }

  /** All that there is for a client that does not read is on its way to it. */
  #isSentAll({ connection, types }: ClientState, contents: Contents): boolean {
    const { orders, end } = this.#state.streams.get(connection!)!;
    if (orders.length > 0 || end !== undefined) return false;
    return types.every((type) => {
      const { heard, sent } = this.#state.wires.get(connection!)![type] ?? noWire;
      const all = contents[type];
      const names = isByName(type) ? heard.split(',').filter((name) => name in all) : Object.keys(all);
      return names.every((name) => sent[name] === all[name]);
    });
  }

  get state(): PushWorldState {
    return this.#state;
  }

  choices(): readonly Choice[] {
    this.#choices ??=
      this.#state.violations.length > 0 ? [] : [...this.#possible()].filter((one) => this.#isWithin(one));
    return this.#choices;
  }

  #isWithin({ name, free }: Choice): boolean {
    const { faults } = this.#options;
    const kind = name.slice(0, name.search(/:|$/));
    return free || faults === undefined || kind === 'change' || kind === 'move' || faults.includes(kind);
  }

  apply(choice: string): void {
    const [kind = '', subject = ''] = choice.split(':');
    this.#perform(kind, subject);
    this.#letGo();
    this.#settle();
  }

  /** Nothing more changes and nothing more goes wrong. */
  exhaust(): void {
    this.#set({ changes: 0, faults: 0 });
    this.#settle();
  }

  key(): string {
    return keyOfWorld(this.#state, this.#system);
  }

  save(): () => void {
    const state = this.#state;
    const choices = this.#choices;
    const system = this.#system.save();
    return () => {
      this.#state = state;
      this.#choices = choices;
      system();
    };
  }

  // ---- what the effects ask

  building({ self, input }: Running<BuildInput>): void {
    this.#set({ build: { call: self, input, contents: this.#state.made } });
  }

  computing({ self }: Running<ServicesOrder>): void {
    this.#set({ computing: self });
  }

  computingStopped(call: AnyActorRef): void {
    if (this.#state.computing === call) this.#set({ computing: undefined });
  }

  registriesListed(registries: AnyActorRef): void {
    this.#set({ registries });
  }

  registryRuns(feed: AnyActorRef): void {
    this.#set({ feed, isInStep: false });
  }

  serverStarted(server: AnyActorRef): void {
    this.#set({ server });
  }

  serve(order: ProxiesServe): void {
    this.#set({ orders: [...this.#state.orders, { order, served: 0 }] });
  }

  streamOpened({ self, input }: Running<{ connection: number }>): void {
    this.#set({ effects: new Map(this.#state.effects).set(input.connection, self) });
  }

  execute(connection: number, order: StreamOrder): void {
    switch (order.type) {
      case 'stream.end':
        this.#endStream(connection, order);
        break;
      case 'responses.send':
        this.#order(connection, order.orders);
        break;
      default:
        this.#happenings.add({ connection, event: order });
    }
  }

  // ---- what may happen

  *#possible(): Generator<Choice> {
    const { build, orders, changes, faults, computing, isListed, isInStep, feed } = this.#state;
    if (build !== undefined) yield { name: 'built', free: true };
    if (computing !== undefined) yield { name: 'computed', free: true };
    // The first list may never come; one that was there is there again.
    if (!isInStep && feed !== undefined) yield { name: 'listed', free: true, ...(!isListed && { fair: false }) };
    if (orders.length > 0) yield { name: 'turn', free: true };
    for (const [index, client] of this.#state.clients.entries()) yield* this.#choicesOf(index, client);
    for (const timer of this.#system.zone.firable()) yield { name: `tick:${timer}`, free: true };
    if (changes > 0) for (const event of this.#options.events) yield { name: `change:${event}`, free: false };
    if (changes > 0) for (const event of this.#options.moves ?? []) yield { name: `move:${event}`, free: false };
    if (faults === 0 || this.#options.buildsFail === false) return;
    // Before there is a first context either ends the program, with its word.
    if (this.#state.contexts.length === 0) return;
    if (build !== undefined) yield { name: 'unbuilt', free: false };
    if (computing !== undefined) yield { name: 'uncomputed', free: false };
    if (this.#options.registryFails === true && isInStep) yield { name: 'lost', free: false };
  }

  *#choicesOf(index: number, { connection, hands, nonces, stalled }: ClientState): Generator<Choice> {
    const isFaulty = this.#state.faults > 0;
    if (connection === undefined) {
      if (this.#state.contexts.length > 0) yield { name: `connect:${index}`, free: true };
      return;
    }
    if (this.#isToAsk(index)) {
      yield { name: `ask:${index}`, free: true };
      return;
    }
    if (hands.length > 0) yield { name: `accept:${index}`, free: true };
    if (stalled) yield { name: `resume:${index}`, free: true, fair: false };
    else if (this.#state.streams.get(connection)!.network.length > 0) yield { name: `read:${index}`, free: true };
    if (!isFaulty) return;
    if (!stalled) yield { name: `stall:${index}`, free: false };
    if (this.#mayReject(index)) yield { name: `reject:${index}`, free: false };
    if (Object.keys(nonces).length > 0) yield { name: `stale:${index}`, free: false };
    yield { name: `reset:${index}`, free: false };
  }

  /**
   * The names in a rejection do not count (§7.3 S1). A state-of-the-world client that had to say new ones while a response
   * was on its way to it says them only with its answer to that: if it rejects, nobody hears of them until the next one.
   */
  #mayReject(index: number): boolean {
    const { delta, hands, connection, asked } = this.#state.clients[index]!;
    const [response] = hands;
    if (response === undefined || delta || response.typeUrl !== endpointType) return response !== undefined;
    return this.#state.wires.get(connection!)![endpointType]!.heard === asked.toSorted().join();
  }

  /** It has joined, and has not asked for anything yet. */
  #isToAsk(index: number): boolean {
    const { connection } = this.#state.clients[index]!;
    return this.#options.asksLate === true && Object.keys(this.#state.wires.get(connection!) ?? {}).length === 0;
  }

  #perform(kind: string, subject: string): void {
    const index = Number(subject);
    switch (kind) {
      case 'change':
        this.#changeMesh(subject as MeshEvent);
        return;
      case 'built':
        this.#built();
        return;
      case 'unbuilt':
        this.#spendFault();
        settle(this.#takeBuild().call, { error: new Error('a bug of a generator') });
        return;
      case 'move':
        this.#moveRegistry(subject as MeshEvent);
        return;
      case 'listed':
        if (!this.#state.isListed) this.#set({ moved: [...this.#state.moved, 'cluster'] });
        this.#list();
        return;
      case 'lost':
        this.#spendFault();
        this.#lose();
        return;
      case 'computed':
        this.#computed();
        return;
      case 'uncomputed':
        this.#spendFault();
        settle(this.#takeComputing(), { error: new Error('a bug of a registry') });
        return;
      case 'ask':
        this.#say(index, connected(this.#state.clients[index]!, this.#state.clients[index]!.connection!));
        return;
      case 'turn':
        this.#turn();
        return;
      case 'tick':
        this.#tick(subject);
        return;
      case 'connect':
        this.#connect(index);
        return;
      case 'read':
        this.#read(this.#state.clients[index]!.connection!);
        return;
      case 'stall':
        this.#spendFault();
        this.#stall(index);
        return;
      case 'resume':
        this.#resume(index);
        return;
      case 'accept':
        this.#take(index, accepted);
        return;
      case 'reject':
        this.#spendFault();
        this.#take(index, rejected);
        return;
      case 'stale':
        this.#spendFault();
        this.#take(index, stale);
        return;
      case 'reset':
        this.#spendFault();
        this.#reset(index);
        return;
      default:
        throw new Error(`no choice is named '${kind}'`);
    }
  }

  // ---- the sources and the push

  #changeMesh(event: MeshEvent): void {
    const { changes, changed, contents, made } = this.#state;
    this.#set({
      changes: changes - 1,
      changed: changed + 1,
      contents: changedContents(contents, event, changed + 1),
      made: changedContents(made, event, changed + 1),
    });
    this.#actor('push').send({
      type: 'push.request',
      configs: keysOf[event],
      forced: event === 'forced',
      reasons: { config: 1 },
    });
  }

  /** Nobody asked for it, and nobody is told but by the registry. */
  #moveRegistry(event: MeshEvent): void {
    const { changes, changed, contents, moved } = this.#state;
    this.#set({
      changes: changes - 1,
      changed: changed + 1,
      contents: changedContents(contents, event, changed + 1),
      moved: [...moved.filter((one) => one !== event), event],
    });
    if (this.#state.isInStep) this.#tellOfRegistry('registry.changed');
  }

  #list(): void {
    this.#set({ isListed: true, isInStep: true });
    this.#tellOfRegistry('registry.synced');
  }

  /** What it handed over stays; what becomes of it from now on nobody is told. */
  #lose(): void {
    const { feed } = this.#state;
    this.#set({ feed: undefined, isInStep: false });
    report(feed!, { type: 'registry.failed', registry: slow.registry, reason: 'connection lost' });
  }

  #tellOfRegistry(type: 'registry.synced' | 'registry.changed'): void {
    report(this.#state.feed!, { type, registry: slow.registry });
  }

  #computed(): void {
    const { moved, isInStep, contents } = this.#state;
    const handedOver = isInStep ? moved : [];
    const keys = handedOver.flatMap((event) => keysOf[event]);
    const reading: ServicesReading = {
      services: 1,
      endpoints: 1,
      changedServices: keys.filter((key) => !key.startsWith('Endpoints/')),
      changedEndpoints: keys.filter((key) => key.startsWith('Endpoints/')),
    };
    if (isInStep) this.#set({ moved: [], made: contents });
    settle(this.#takeComputing(), { value: reading });
  }

  #takeComputing(): AnyActorRef {
    const { computing } = this.#state;
    if (computing === undefined) throw new Error('no services are being made');
    this.#set({ computing: undefined });
    return computing;
  }

  #built(): void {
    const { call, input, contents } = this.#takeBuild();
    const { contexts, owed } = this.#state;
    const number = contexts.length + 1;
    const changed = new Set(input.configs);
    this.#set({ contexts: [...contexts, { number, contents, changed, forced: input.forced }] });
    if (number > 1) {
      const keys = input.forced ? [...changed, everything] : [...changed];
      this.#set({ owed: new Map([...owed].map(([connection, has]) => [connection, union(has, keys)])) });
    }
    settle(call, { value: { version: `${number}`, publishedAt: 0 } });
  }

  #takeBuild(): NonNullable<PushWorldState['build']> {
    const { build } = this.#state;
    if (build === undefined) throw new Error('no context is being built');
    this.#set({ build: undefined });
    return build;
  }

  /** The server brings the next proxy up to date. */
  #turn(): void {
    const [{ order, served }, ...others] = this.#state.orders as [PushWorldState['orders'][0]];
    const connection = order.connections[served]!;
    const isLast = served + 1 === order.connections.length;
    this.#set({ orders: isLast ? others : [{ order, served: served + 1 }, ...others] });
    if (this.#state.streams.has(connection)) this.#bringUpToDate(connection, order);
    if (isLast && !this.#keepsTurn(connection))
      this.#tellQueue({ type: 'proxies.served', connections: order.connections });
  }

  #keepsTurn(connection: number): boolean {
    return this.#options.waitsForReaders === true && this.#state.streams.get(connection)?.congested === true;
  }

  #bringUpToDate(connection: number, order: ProxiesServe): void {
    const { owed, contexts, streams } = this.#state;
    const settled = order.forced ? [...order.configs, everything] : order.configs;
    const left = (owed.get(connection) ?? []).filter((key) => !settled.includes(key));
    this.#set({ owed: new Map(owed).set(connection, left) });
    const { watches } = streams.get(connection)!.exchange;
    const watched = Object.keys(watches).filter((type) => isSubscribed(watches[type]!));
    if (watched.length === 0 && this.#options.passesOverIdle === true) return;
    const types = this.#concerned(contexts.slice(streams.get(connection)!.context), order);
    this.#change(connection, (stream) => ({ ...stream, context: contexts.length }));
    const concerned = watched.filter((type) => types === everything || types.has(type));
    if (concerned.length === 0) return;
    const push: PushToClient = { type: 'push.order', version: order.version, types: concerned };
    this.#happenings.add({ connection, event: push });
  }

  /** Of the contexts that a node passes over. */
  #concerned(passed: readonly MeshContext[], order: ProxiesServe): ReadonlySet<string> | typeof everything {
    if (this.#options.trustsOrders === true) {
      if (passed.length === 0 && !order.forced) return new Set();
      return order.forced ? everything : typesToPush(order.configs);
    }
    if (order.forced || passed.some(({ forced }) => forced)) return everything;
    return typesToPush(passed.flatMap(({ changed }) => [...changed]));
  }

  // ---- streams

  /** As src/discovery/ads/ads-exchange.ts does. */
  #step({ connection, event }: StreamHappening): void {
    const stream = this.#state.streams.get(connection);
    if (stream === undefined || stream.end !== undefined) return;
    const isRecorded = this.#options.inspect !== undefined;
    const message = isRecorded ? routineBefore(event) : undefined;
    if (message !== undefined) this.#tell(connection, message);
    const step = this.#charts.exchange(stream.exchange, event, rules);
    this.#change(connection, (before) => ({ ...before, exchange: step.exchange }));
    for (const report of step.reports) this.#tell(connection, report);
    if (isRecorded) for (const report of routineAfter(stream.exchange, step)) this.#tell(connection, report);
    if (this.#state.streams.get(connection)?.end === undefined) this.#order(connection, step.orders);
  }

  #order(connection: number, orders: readonly ResponseOrder[]): void {
    if (orders.length === 0) return;
    this.#change(connection, (stream) => ({
      ...stream,
      orders: [...stream.orders, ...orders.map((order) => ({ order, context: stream.context }))],
    }));
    this.#sendDue(connection);
  }

  #connect(index: number): void {
    const connection = this.#state.streamCount + 1;
    const client = this.#state.clients[index]!;
    const { streams, contexts, connections } = this.#state;
    this.#set({
      streamCount: connection,
      streams: new Map(streams).set(connection, newStream(connection, index, client.delta, contexts.length)),
      wires: new Map(this.#state.wires).set(connection, {}),
      owed: new Map(this.#state.owed).set(connection, []),
    });
    const actor = this.#system.start(this.#charts.connection, {
      id: `ads-connection-${connection}`,
      input: { connection, onlyType: null, ...limits },
      inspect: this.#options.inspect,
      created: (root) => pushWorldOf.set(root.system, this),
    });
    this.#set({ connections: new Map(connections).set(connection, actor) });
    const stream = this.#state.effects.get(connection)!;
    report(stream, { type: 'peer.authenticated', identities: [] });
    report(stream, { type: 'node.accepted', node: `node-${index}` });
    this.#tellQueue({ type: 'proxy.joined', connection });
    if (this.#options.asksLate === true) this.#setClient(index, { ...client, connection });
    else this.#say(index, connected(client, connection));
  }

  #reset(index: number): void {
    const client = this.#state.clients[index]!;
    const connection = client.connection!;
    this.#setClient(index, disconnected(client));
    report(this.#state.effects.get(connection)!, { type: 'stream.closed', reason: 'reset' });
    this.#forget(connection);
  }

  /** Streams whose connection is over are cut: a client that has one of them comes back. */
  #letGo(): void {
    for (const [connection, actor] of this.#state.connections) {
      if (actor.getSnapshot().status !== 'done') continue;
      const { client: index } = this.#state.streams.get(connection)!;
      this.#setClient(index, disconnected(this.#state.clients[index]!));
      this.#forget(connection);
    }
  }

  #forget(connection: number): void {
    this.#system.disarm(readingOf(connection));
    this.#system.forget(this.#state.connections.get(connection)!);
    this.#set({
      streams: less(this.#state.streams, connection),
      effects: less(this.#state.effects, connection),
      connections: less(this.#state.connections, connection),
      wires: less(this.#state.wires, connection),
      owed: less(this.#state.owed, connection),
    });
    this.#tellQueue({ type: 'proxy.left', connection });
  }

  /** The status comes after what was sent: who reads nothing does not hear of it. */
  #endStream(connection: number, end: StreamEnd): void {
    const stream = this.#state.streams.get(connection)!;
    this.#judge((invariant) => invariant.ending?.(this.#state.clients[stream.client]!, end, stream));
    this.#change(connection, (before) => ({ ...before, orders: [], held: [], end }));
    this.#closeWhenRead(connection);
  }

  #closeWhenRead(connection: number): void {
    const { end, network, client } = this.#state.streams.get(connection)!;
    if (end === undefined || network.length > 0 || this.#state.clients[client]!.stalled) return;
    report(this.#state.effects.get(connection)!, { type: 'stream.closed', reason: 'ended by the server' });
  }

  #sendDue(connection: number): void {
    for (let stream = this.#state.streams.get(connection)!; ; stream = this.#state.streams.get(connection)!) {
      const [order, ...orders] = stream.orders;
      if (order === undefined || stream.network.length >= this.#windowOf(stream)) break;
      this.#change(connection, (before) => ({ ...before, orders }));
      this.#answer(connection, order);
    }
    this.#noteCongestion(connection);
  }

  #windowOf({ client }: StreamState): number {
    const { window } = this.#options;
    if (window > 0) return window;
    return this.#state.clients[client]!.stalled ? stalledWindow : Number.POSITIVE_INFINITY;
  }

  /** While an order waits nothing is read from the client; then what it has sent meanwhile. */
  #noteCongestion(connection: number): void {
    const { orders, congested: before, end } = this.#state.streams.get(connection)!;
    const congested = orders.length > 0;
    if (congested === before || end !== undefined) return;
    this.#change(connection, (stream) => ({ ...stream, congested }));
    this.#happenings.add({ connection, event: { type: congested ? 'stream.congested' : 'stream.relieved' } });
    if (!congested) this.#readOn(connection);
  }

  #readOn(connection: number): void {
    for (let stream = this.#state.streams.get(connection)!; ; stream = this.#state.streams.get(connection)!) {
      const [request, ...held] = stream.held;
      if (request === undefined || stream.congested) return;
      this.#change(connection, (before) => ({ ...before, held }));
      this.#deliver(connection, request);
    }
  }

  #answer(connection: number, waiting: WaitingOrder): void {
    const before = this.#state.streams.get(connection)!;
    const context = this.#options.makesLate === true ? before.context : waiting.context;
    const { contents } = this.#state.contexts[context - 1]!;
    const { stream, response } = answer(before, { ...waiting, context }, contents);
    this.#change(connection, () => stream);
    const { typeUrl } = waiting.order;
    if (response === undefined) {
      this.#happenings.add({ connection, event: { type: 'response.skipped', typeUrl, why: 'unchanged' } });
      return;
    }
    this.#write(connection, response, contents);
    const { nonce, version, removed } = response;
    const resources = Object.keys(response.resources).length;
    const sent = { typeUrl, nonce, version, resources, removed: removed.length, sentAt: 0 };
    this.#happenings.add({ connection, event: { type: 'response.sent', ...sent } });
  }

  #write(connection: number, response: WireResponse, contents: Contents): void {
    const wire = this.#state.wires.get(connection)!;
    this.#judge((invariant, observed) => invariant.sending?.(response, wire, contents, observed));
    this.#note(connection, response.typeUrl, (record) => ({
      ...record,
      unanswered: [...record.unanswered, response],
      asks: record.asks.filter((name) => isOwed(name, response, contents)),
      overdue: false,
      lastNonce: response.nonce,
      sent: withoutNames({ ...record.sent, ...response.resources }, response.removed),
    }));
    this.#set({ responses: this.#state.responses + 1 });
    this.#change(connection, (stream) => ({ ...stream, network: [...stream.network, response] }));
    if (this.#options.window === 0 && !this.#isStalled(connection)) this.#read(connection);
    else this.#awaitReading(connection);
  }

  #isStalled(connection: number): boolean {
    return this.#state.clients[this.#state.streams.get(connection)!.client]!.stalled;
  }

  /** The client reads: there is room for the next response. */
  #read(connection: number): void {
    const { network, client: index } = this.#state.streams.get(connection)!;
    const [response, ...rest] = network as [WireResponse, ...WireResponse[]];
    this.#change(connection, (stream) => ({ ...stream, network: rest }));
    const client = this.#state.clients[index]!;
    this.#setClient(index, { ...client, hands: [...client.hands, response] });
    this.#system.disarm(readingOf(connection));
    this.#awaitReading(connection);
    if (this.#state.streams.get(connection)!.orders.length > 0) this.#sendDue(connection);
    this.#closeWhenRead(connection);
  }

  /** What lies in the network is read in time, by one who reads. */
  #awaitReading(connection: number): void {
    const { network } = this.#state.streams.get(connection)!;
    const reading = readingOf(connection);
    if (network.length === 0 || this.#isStalled(connection) || this.#system.zone.has(reading)) return;
    this.#system.arm(reading, readingMs, 'within');
  }

  /** The client reads nothing any more; what it has read it may still answer. */
  #stall(index: number): void {
    const client = this.#state.clients[index]!;
    this.#setClient(index, { ...client, stalled: true });
    this.#system.disarm(readingOf(client.connection!));
  }

  #resume(index: number): void {
    const client = this.#state.clients[index]!;
    const connection = client.connection!;
    this.#setClient(index, { ...client, stalled: false });
    // All that has piled up, however slow it is else: time has passed already.
    while (this.#hasUnread(connection)) this.#read(connection);
    this.#closeWhenRead(connection);
  }

  #hasUnread(connection: number): boolean {
    return (this.#state.streams.get(connection)?.network.length ?? 0) > 0;
  }

  /** A client does something with what it has read. */
  #take(index: number, deed: (client: ClientState) => Turn): void {
    this.#say(index, deed(this.#state.clients[index]!));
  }

  #say(index: number, { client, requests }: Turn): void {
    this.#setClient(index, client);
    for (const request of requests) this.#send(client.connection!, request);
  }

  /** A request waits in the network while the server does not read; one that has ended the stream reads nothing any more. */
  #send(connection: number, request: AdsRequest): void {
    const { congested, end } = this.#state.streams.get(connection)!;
    if (end !== undefined) return;
    if (congested) this.#change(connection, (stream) => ({ ...stream, held: [...stream.held, request] }));
    else this.#deliver(connection, request);
  }

  #deliver(connection: number, request: AdsRequest): void {
    const { typeUrl, nonce, rejection } = request;
    this.#note(connection, typeUrl, (record) => {
      const { unanswered } = record;
      const answered = unanswered.find((response) => response.nonce === nonce);
      const isCurrent = nonce === '' || nonce === record.lastNonce;
      // What a state-of-the-world client wants counts when it answers the last response (§7.3 S4), and does not reject it (S1).
      const counts = request.protocol === 'delta' || (isCurrent && rejection === null);
      const isLast = answered !== undefined && answered === unanswered.at(-1);
      return {
        ...record,
        unanswered: unanswered.filter((response) => response !== answered),
        asks: union(record.asks, counts ? asksOf(request, record.heard) : []),
        ...(counts && { heard: namesAfter(record.heard, request) }),
        ...(isLast && rejection === null && { accepted: { nonce, version: answered.version } }),
      };
    });
    this.#happenings.add({ connection, event: { type: 'request.received', request } });
  }

  // ---- deadlines

  #tick(timer: string): void {
    const [actor = '', delay] = timer.split('.');
    if (delay === 'ackTimeout') {
      const connection = Number(actor.slice('ads-connection-'.length));
      for (const type of meshTypes) {
        if ((this.#state.wires.get(connection)?.[type]?.unanswered.length ?? 0) > 0)
          this.#note(connection, type, (record) => ({ ...record, overdue: true }));
      }
    }
    if (delay === 'firstLists') this.#set({ isLate: true });
    this.#system.fire(timer);
  }

  // ---- the rest

  #settle(): void {
    this.#system.elapse();
    this.#choices = undefined;
    this.#judge((invariant, observed) => invariant.always?.(observed));
    if (this.violations.length === 0 && !this.choices().some((choice) => choice.free)) {
      this.#judge((invariant, observed) => invariant.atRest?.(observed));
    }
    if (this.violations.length === 0 && this.#onlyStalledClientsAreLeft()) {
      this.#judge((invariant, observed) => invariant.atRestButStalled?.(observed));
    }
    this.#choices = undefined;
  }

  /** Whatever happens next by itself happens to a client that does not read. */
  #onlyStalledClientsAreLeft(): boolean {
    const { clients } = this.#state;
    const theirs = clients.flatMap(({ stalled, connection }, index) =>
      stalled ? [`resume:${index}`, `accept:${index}`, `tick:ads-connection-${connection}`] : [],
    );
    if (theirs.length === 0) return false;
    const isTheirs = (name: string): boolean => theirs.some((one) => name === one || name.startsWith(`${one}.`));
    return this.choices().every(({ name, free }) => !free || isTheirs(name));
  }

  #judge(ask: (invariant: PushInvariant, observed: PushObserved) => string | undefined): void {
    const observed = this.#observed();
    for (const invariant of this.#options.invariants ?? pushInvariants) {
      const detail = ask(invariant, observed);
      if (detail === undefined) continue;
      this.#set({ violations: [...this.#state.violations, { invariant: invariant.name, detail }] });
    }
  }

  #observed(): PushObserved {
    const { clients, streams, wires, contexts, owed, orders, isListed, isLate } = this.#state;
    const ordered = orders.flatMap(({ order }) => order.connections);
    return {
      clients,
      streams,
      wires,
      published: contexts.at(-1)?.contents ?? firstContents,
      mayServe: isListed || isLate,
      owed,
      beingServed: ordered.filter((connection) => streams.has(connection)),
      throttle: this.#options.throttle,
      window: this.#options.window,
      acknowledged: (connection, type) => {
        const watch = streams.get(connection)!.exchange.watches[type];
        return { nonce: watch?.nonceAcked ?? '', version: watch?.versionAcked ?? '' };
      },
      failures: this.#system.failures,
    };
  }

  #actor(name: string): AnyActorRef {
    return this.#discovery.system.get(name) as AnyActorRef;
  }

  #tellQueue(event: ProxyReport): void {
    relay(this.#state.server, this.#actor('push-queue'), event);
  }

  #tell(connection: number, event: StreamReport | PushToClient): void {
    if (event.type !== 'push.order') report(this.#state.effects.get(connection)!, event);
    else relay(this.#state.server, this.#state.connections.get(connection)!, event);
  }

  #spendFault(): void {
    this.#set({ faults: this.#state.faults - 1 });
  }

  #change(connection: number, next: (stream: StreamState) => StreamState): void {
    const { streams } = this.#state;
    this.#set({ streams: new Map(streams).set(connection, next(streams.get(connection)!)) });
  }

  #setClient(index: number, client: ClientState): void {
    this.#set({ clients: this.#state.clients.with(index, client) });
  }

  #note(connection: number, type: string, next: (record: WireRecord) => WireRecord): void {
    const { wires } = this.#state;
    const wire = wires.get(connection)!;
    this.#set({ wires: new Map(wires).set(connection, { ...wire, [type]: next(wire[type] ?? noWire) }) });
  }

  #set(change: Partial<PushWorldState>): void {
    this.#state = { ...this.#state, ...change };
  }
}

const readingOf = (connection: number): string => `reading ${connection}`;

/** What a request asks for that was not asked for before; `*`: all there is. */
function asksOf(request: AdsRequest, heard: string): readonly string[] {
  const names = request.protocol === 'delta' ? request.subscribe : request.names;
  if (names.length === 0) return request.nonce === '' && !isByName(request.typeUrl) ? [everything] : [];
  if (request.protocol === 'delta' || request.nonce === '') return names;
  const before = heard.split(',');
  return names.filter((name) => !before.includes(name));
}

/** What a client has asked for is still to be sent after this response. */
function isOwed(name: string, { typeUrl, resources }: WireResponse, contents: Contents): boolean {
  return name !== everything && !(name in resources) && contents[typeUrl][name] !== undefined;
}

/** What the client wants after a request that counts. */
function namesAfter(heard: string, request: AdsRequest): string {
  if (request.protocol === 'sotw') return request.names.toSorted().join();
  const before = heard === '' ? [] : heard.split(',');
  return union(before, request.subscribe)
    .filter((name) => !request.unsubscribe.includes(name))
    .join();
}

function union(one: readonly string[], other: readonly string[]): string[] {
  return [...new Set([...one, ...other])].sort();
}

function withoutNames(resources: Readonly<Record<string, number>>, names: readonly string[]): Record<string, number> {
  const rest = { ...resources };
  for (const name of names) delete rest[name];
  return rest;
}

function less<Value>(map: ReadonlyMap<number, Value>, key: number): ReadonlyMap<number, Value> {
  const rest = new Map(map);
  rest.delete(key);
  return rest;
}
