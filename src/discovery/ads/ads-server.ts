/**
 * Serves xDS over gRPC: state of the world and delta, aggregated and by type. Every stream is an actor of its own
 * (machines/discovery/ads-connection.machine.ts), kept in a map; what they are to be sent comes from a ResourceSource.
 */
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { type Actor, type AnyActorRef, fromCallback } from 'xstate';
import { adsConnectionMachine } from '../../../machines/discovery/ads-connection.machine.ts';
import type { DrainOrder, PushToClient, StreamOrder } from '../../../machines/discovery/ads-protocol.ts';
import { isSubscribed } from '../../../machines/discovery/ads-watch.ts';
import { type Recorder, startRoot } from '../../runtime/actor-system.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import { type Admission, createAdmission } from './ads-admission.ts';
import { FanOut } from './ads-fan-out.ts';
import { type AdsLimits, channelOptions } from './ads-limits.ts';
import type { AdsObserver, ConnectionView } from './ads-observer.ts';
import { SharedBodies } from './ads-response.ts';
import { xdsMethods, xdsService } from './ads-services.ts';
import { AdsStream, type StreamKind, type StreamSurroundings } from './ads-stream.ts';
import type { AdsCall } from './ads-transport.ts';
import { viewConnection } from './ads-view.ts';
import { bindError } from './grpc-bind.ts';
import type { ResourceChange, ResourceSource } from './resource-source.ts';

export interface AdsServerOptions {
  readonly source: ResourceSource;
  readonly logger: Logger;
  readonly recorder?: Recorder;
  readonly observer?: AdsObserver;
  /** False: new streams are answered UNAVAILABLE. */
  readonly isReady?: () => boolean;
  /** In whose name pushes and drains are recorded in the trace. */
  readonly sender?: AnyActorRef;
  /** Send endpoints again after their clusters (see AdsConnectionInput). Default true. */
  readonly resendsEndpoints?: boolean;
  readonly limits?: AdsLimits;
}

export interface AdsServer {
  /**
   * Opens `host:port`; port 0 for any free one. Several addresses may be opened.
   *
   * @throws ChartpilotError PORT_IN_USE or LISTEN_FAILED
   */
  listen(address: string, credentials?: ServerCredentials): Promise<{ port: number }>;
  /** Something changed: every client that it concerns is brought up to date. */
  push(change: ResourceChange): void;
  /** The accepted clients, in the order in which they came. */
  connections(): ConnectionView[];
  /** Takes no new streams, and lets go those that there are, spread over half of the budget. Ends within the budget. */
  drain(budgetMs: number): Promise<void>;
  /** Cuts all that is left. */
  close(): void;
}

interface Connection {
  readonly stream: AdsStream;
  readonly actor: Actor<typeof adsConnectionMachine>;
}

/** Makes a server; it serves nobody before `listen`. */
export function createAdsServer(options: AdsServerOptions): AdsServer {
  return new GrpcAdsServer(options);
}

class GrpcAdsServer implements AdsServer {
  readonly #options: AdsServerOptions;
  readonly #around: StreamSurroundings;
  readonly #admission: Admission;
  readonly #recorder: Recorder | undefined;
  readonly #server: Server;
  readonly #machine: typeof adsConnectionMachine;
  readonly #connections = new Map<number, Connection>();
  /** Streams whose actor is being started. */
  readonly #opening = new Map<number, AdsStream>();
  readonly #fanOut: FanOut<Connection>;
  #count = 0;
  /** Clients that have told who they are. */
  #accepted = 0;
  #isDraining = false;
  #whenEmpty: (() => void) | undefined;

  constructor(options: AdsServerOptions) {
    this.#options = options;
    const { source, logger, observer = {}, resendsEndpoints = true } = options;
    this.#around = { source, logger, observer, resendsEndpoints, bodies: new SharedBodies(), now: Date.now };
    this.#admission = createAdmission(options.limits?.streamsPerSecond ?? 0, () => performance.now());
    this.#recorder = attributed(options.recorder, options.sender);
    // Once for all connections: every provide() makes another machine.
    this.#machine = adsConnectionMachine.provide({ actors: { stream: this.#streamLogic() } });
    this.#fanOut = new FanOut<Connection>({
      deliver: (connection, change) => this.#deliver(connection, change),
      finished: (durationMs, clients) => observer.pushFinished?.(durationMs, clients),
    });
    this.#server = new Server(channelOptions(options.limits ?? {}));
    this.#server.addService(
      xdsService,
      Object.fromEntries(xdsMethods.map((kind) => [kind.path, (call: AdsCall) => this.#accept(call, kind)])),
    );
  }

  listen(address: string, credentials = ServerCredentials.createInsecure()): Promise<{ port: number }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ port: number }>();
    this.#server.bindAsync(address, credentials, (error, port) => {
      if (error === null) resolve({ port });
      else reject(bindError(address, error));
    });
    return promise;
  }

  push(change: ResourceChange): void {
    this.#fanOut.push(change, this.#connections.values());
  }

  connections(): ConnectionView[] {
    return [...this.#connections.values()].flatMap(({ stream, actor }) => viewConnection(stream, actor) ?? []);
  }

  async drain(budgetMs: number): Promise<void> {
    this.#isDraining = true;
    this.#fanOut.stop();
    const shutDown = new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    const timers = this.#spreadDrainOrders(budgetMs);
    const deadline = timeout(budgetMs);
    const empty = new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
      this.#noteEmpty();
    });
    await Promise.race([Promise.all([empty, shutDown]), deadline.promise]);
    deadline.clear();
    for (const timer of timers) clearTimeout(timer);
    this.close();
  }

  close(): void {
    this.#isDraining = true;
    this.#fanOut.stop();
    for (const connection of [...this.#connections.values()]) {
      connection.actor.stop();
      this.#remove(connection);
    }
    this.#server.forceShutdown();
  }

  // ---- a stream's life

  #accept(call: AdsCall, kind: StreamKind): void {
    if (this.#isDraining || this.#options.isReady?.() === false) {
      refuse(
        call,
        status.UNAVAILABLE,
        this.#isDraining ? 'the server is shutting down' : 'the server is not ready yet',
      );
      return;
    }
    const waitMs = this.#admission.admit();
    if (waitMs === undefined)
      refuse(call, status.RESOURCE_EXHAUSTED, 'request rate limit exceeded: too many new streams');
    else if (waitMs === 0) this.#connect(call, kind);
    else setTimeout(() => this.#connect(call, kind), waitMs);
  }

  #connect(call: AdsCall, kind: StreamKind): void {
    if (call.cancelled) return;
    if (this.#isDraining) {
      refuse(call, status.UNAVAILABLE, 'the server is shutting down');
      return;
    }
    const number = ++this.#count;
    const stream = new AdsStream(number, call, kind, this.#around);
    this.#opening.set(number, stream);
    const actor = startRoot(this.#machine, {
      id: `ads-connection-${number}`,
      input: {
        connection: number,
        onlyType: kind.onlyType,
        resendsEndpoints: this.#around.resendsEndpoints,
        patienceMs: this.#options.limits?.ackPatienceMs ?? 10_000,
      },
      ...(this.#recorder !== undefined && { recorder: this.#recorder }),
      onError: (error) => {
        this.#options.logger.error('an xDS connection failed', { peer: stream.peer, error: messageOf(error) });
        stream.dispose();
        this.#remove(connection);
      },
    });
    this.#opening.delete(number);
    const connection: Connection = { stream, actor };
    this.#connections.set(number, connection);
    actor.subscribe({ complete: () => this.#remove(connection) });
    if (actor.getSnapshot().status !== 'active') this.#remove(connection);
  }

  /** The machine's `stream` actor: finds the gRPC stream by the connection's number. */
  #streamLogic() {
    return fromCallback<StreamOrder, { connection: number }>(({ input, receive, sendBack }) => {
      const stream = this.#opening.get(input.connection)!;
      receive((order) => stream.execute(order));
      stream.open((report) => {
        sendBack(report);
        if (report.type === 'node.accepted') this.#noteConnected(report.node);
      });
      return () => stream.dispose();
    });
  }

  #noteConnected(node: string): void {
    this.#around.observer.clientConnected?.(node, ++this.#accepted);
    this.#options.logger.info('client connected', { node });
  }

  #remove(connection: Connection): void {
    if (!this.#connections.delete(connection.stream.number)) return;
    this.#fanOut.forget(connection);
    const node = connection.stream.identity?.id;
    if (node !== undefined) {
      this.#around.observer.clientGone?.(node, --this.#accepted);
      this.#options.logger.info('client gone', { node });
    }
    this.#noteEmpty();
  }

  // ---- to many streams

  #deliver({ stream, actor }: Connection, change: ResourceChange): void {
    const { watches } = actor.getSnapshot().context;
    const watched = Object.keys(watches).filter((typeUrl) => isSubscribed(watches[typeUrl]!));
    const types = stream.concernedTypes(change, watched);
    if (types.length === 0) return;
    actor.send({ type: 'push.order', version: change.version, types } satisfies PushToClient);
  }

  #spreadDrainOrders(budgetMs: number): NodeJS.Timeout[] {
    const connections = [...this.#connections.values()];
    const spacingMs = budgetMs / 2 / Math.max(1, connections.length);
    return connections.map((connection, i) => {
      const afterMs = i * spacingMs;
      const order: DrainOrder = { type: 'drain.order', withinMs: Math.max(0, budgetMs * 0.9 - afterMs) };
      return setTimeout(() => {
        if (this.#connections.has(connection.stream.number)) connection.actor.send(order);
      }, afterMs);
    });
  }

  #noteEmpty(): void {
    if (this.#connections.size === 0) this.#whenEmpty?.();
  }
}

function refuse(call: AdsCall, code: status, details: string): void {
  call.emit('error', Object.assign(new Error(details), { code, details }));
}

/** What comes to a connection from no actor comes from the ADS server: the trace shows it so. */
function attributed(recorder: Recorder | undefined, sender: AnyActorRef | undefined): Recorder | undefined {
  if (recorder === undefined || sender === undefined) return recorder;
  return {
    ...recorder,
    inspect: (event) =>
      recorder.inspect(
        event.type === '@xstate.event' && event.sourceRef === undefined ? { ...event, sourceRef: sender } : event,
      ),
  };
}

function timeout(ms: number): { promise: Promise<void>; clear: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  return { promise, clear: () => clearTimeout(timer) };
}
