/**
 * Serves xDS over gRPC: state of the world and delta, aggregated and by type. Every stream is an actor of its own
 * (machines/discovery/xds/ads-connection.machine.ts), kept in a map; what they are to be sent comes from a ResourceSource.
 */
import type { Socket } from 'node:net';
import { type ServerCredentials, status } from '@grpc/grpc-js';
import type { Actor, AnyActorRef } from 'xstate';
import type { adsConnectionMachine } from '../../../machines/discovery/xds/ads-connection.machine.ts';
import { type DrainOrder, routineMessages } from '../../../machines/discovery/xds/ads-protocol.ts';
import { startRoot } from '../../runtime/actors/actor-system.ts';
import { messageOf, withCode } from '../../runtime/errors.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import { AddressPace, addressPaceLimits } from './admission/address-pace.ts';
import { groupOfPeer } from './admission/ads-admission.ts';
import { KnownNodes } from './admission/known-nodes.ts';
import { LoadAdmission } from './admission/load-admission.ts';
import type { Slot } from './admission/slots.ts';
import type { Refusal } from './admission/strangers.ts';
import { adsConnectionWithEffects } from './ads-connection.effects.ts';
import {
  defaultDrainMs,
  defaultMakeBeforeBreakMs,
  defaultRemovalDelayMs,
  nameLimits,
  streamLimits,
} from './ads-limits.ts';
import type { ConnectionView } from './ads-observer.ts';
import { AdsPorts } from './ads-ports.ts';
import type { AdsServerOptions } from './ads-server-options.ts';
import { viewConnection } from './ads-view.ts';
import { nodeIdIn } from './requests/ads-request.ts';
import { RequestIntake } from './requests/request-intake.ts';
import { NameLists } from './requests/request-names.ts';
import { RequestTurns } from './requests/request-turns.ts';
import type { ResourceChange } from './resource-source.ts';
import { encodeControlPlane, SharedBodies } from './responses/ads-response.ts';
import { DepartedClusters } from './rollout/departed-clusters.ts';
import { AdsStream } from './stream/ads-stream.ts';
import { type AdsCall, endOpenSide } from './stream/ads-transport.ts';
import { shortened } from './stream/client-text.ts';
import type { IncomingStream, StreamKind, StreamSecurity } from './stream/incoming-stream.ts';
import { RepeatedLines } from './stream/repeated-lines.ts';
import { maxServedStreamsWithin, StreamShares } from './stream/stream-shares.ts';
import type { StreamSurroundings } from './stream/stream-surroundings.ts';
import { PushRounds } from './turns/push-rounds.ts';

export type { AdsServerOptions } from './ads-server-options.ts';

export interface AdsServer {
  /**
   * Opens `host:port`; port 0 for any free one. Several addresses may be opened. With credentials (of TLS), clients of
   * the port are asked who they are.
   *
   * @throws ChartpilotError PORT_IN_USE or LISTEN_FAILED
   */
  listen(address: string, credentials?: ServerCredentials): Promise<{ port: number }>;
  /** Takes over a connection that came to another port, as one of a port without TLS. @returns false: it cannot yet */
  take(socket: Socket): boolean;
  /**
   * Brings these connections up to date, in this order, and has done so when it returns: what concerns them is generated
   * and written, or waits for the client's word on what it was sent before. Connections that are gone are passed over.
   * The caller sees to it that they are few enough for one turn of the event loop.
   *
   * @returns how many of them the change concerns
   */
  serve(connections: readonly number[], change: ResourceChange): number;
  /** Does what `serve` does for every connection, in slices of the event loop. For servers without a push queue. */
  push(change: ResourceChange): void;
  /** The accepted clients, in the order in which they came. */
  connections(): ConnectionView[];
  /**
   * Lets one client go, who will connect again.
   *
   * @param id of its ConnectionView
   * @returns false when there is none of this id
   */
  disconnect(id: string): boolean;
  /**
   * Closes the ports, rejects streams that wait for admission, and ends all others as soon as their clients have acknowledged what they
   * were sent: clients connect elsewhere at once. Ends within the budget.
   */
  drain(budgetMs: number): Promise<void>;
  /** Cuts all that is left. */
  close(): void;
}

interface Connection {
  readonly stream: AdsStream;
  readonly actor: Actor<typeof adsConnectionMachine>;
  readonly security: StreamSecurity;
  /** Until the first response is written. */
  readonly slot: Slot;
}

/** Makes a server; it serves nobody before `listen`. */
export function createAdsServer(options: AdsServerOptions): AdsServer {
  return new GrpcAdsServer(options);
}

class GrpcAdsServer implements AdsServer {
  readonly #options: AdsServerOptions;
  readonly #around: StreamSurroundings;
  /** Nodes that were served, at all ports together. */
  readonly #known = new KnownNodes(() => performance.now());
  readonly #admission: LoadAdmission;
  readonly #recorder: Recorder | undefined;
  readonly #ports: AdsPorts;
  readonly #machine: typeof adsConnectionMachine;
  readonly #connections = new Map<number, Connection>();
  /** Streams whose actor is being started. */
  readonly #opening = new Map<number, AdsStream>();
  readonly #rounds: PushRounds;
  readonly #turns = new RequestTurns();
  /** A line of their own: streams that come and go do not keep those waiting that are there. */
  readonly #comings = new RequestTurns();
  /** Connections whose client has told who it is. */
  readonly #joined = new Set<number>();
  /** Of those, the ones that have not acknowledged anything yet. */
  readonly #unproven = new Set<number>();
  /** What strangers bring about again and again. */
  readonly #lines: RepeatedLines;
  #count = 0;
  #isDraining = false;
  #whenEmpty: (() => void) | undefined;

  constructor(options: AdsServerOptions) {
    this.#options = options;
    const { source, logger, observer = {}, secretsOnPlaintext = false } = options;
    const { resendsEndpoints = true, hearsLateNames = true, limits = {}, recorder } = options;
    this.#around = {
      source,
      shares: new StreamShares(limits.maxServedStreams ?? maxServedStreamsWithin(), () => this.#noteDisplaced()),
      logger,
      observer,
      rules: { resendsEndpoints, hearsLateNames, ...nameLimits(limits) },
      tellsRoutine: recorder !== undefined && routineMessages.some((type) => !recorder.omits(type)),
      secretsOnPlaintext,
      bodies: new SharedBodies(),
      lists: new NameLists(),
      turns: this.#turns,
      departures: this.#comings,
      now: Date.now,
      ...(options.identifier !== undefined && { controlPlane: encodeControlPlane(options.identifier) }),
      ...(options.oneShot !== undefined && { oneShot: options.oneShot }),
      ...(options.references !== undefined && {
        makeBeforeBreak: {
          references: options.references,
          removal: {
            delayMs: limits.removalDelayMs ?? defaultRemovalDelayMs,
            drainMs: options.drainMs ?? defaultDrainMs,
          },
          departed: new DepartedClusters(options.drainMs ?? defaultDrainMs),
          limitMs: limits.makeBeforeBreakMs ?? defaultMakeBeforeBreakMs,
        },
      }),
    };
    this.#recorder = attributed(recorder, options.sender);
    this.#admission = new LoadAdmission({
      perSecond: limits.streamsPerSecond ?? 0,
      known: this.#known,
      logger,
      ...(this.#recorder !== undefined && { recorder: this.#recorder }),
      requests: () => this.#turns.size,
      proxies: () => options.waitingProxies?.() ?? 0,
      onMeasured: (view) => observer.admissionMeasured?.(view),
    });
    // Once for all connections: every provide() makes another machine.
    this.#machine = adsConnectionWithEffects({
      streamOf: (connection) => this.#opening.get(connection)!,
      joined: (stream, node) => this.#noteJoined(stream, node),
      pushed: (connection, order) => this.#connections.get(connection)?.actor.send(order),
      responded: (connection) => this.#connections.get(connection)?.slot.release(),
      acknowledged: (connection) => this.#noteAcknowledged(connection),
    });
    this.#rounds = new PushRounds({
      clients: () => this.#joined,
      serve: (connection, change) => this.serve([connection], change),
      finished: (durationMs, clients) => observer.pushFinished?.(durationMs, clients),
    });
    const { authenticators = [], checksIdentity = true } = options;
    const secure = { isSecure: true, authenticators, checksIdentity };
    const pace = new AddressPace({ ...addressPaceLimits, ...limits.addressPace }, () => performance.now());
    const listener = {
      refused: this.#noteRefused.bind(this),
      heldOff: this.#noteHeldOff.bind(this),
    };
    this.#lines = new RepeatedLines(logger, () => performance.now());
    this.#ports = new AdsPorts(limits, secure, (...stream) => this.#accept(...stream), {
      pace,
      known: this.#known,
      listener,
      setUp: this.#admission.setUp,
      ...(options.unary !== undefined && { unary: options.unary }),
    });
    this.#admission.limits(this.#ports);
  }

  take(socket: Socket): boolean {
    return this.#ports.take(socket);
  }

  listen(address: string, credentials?: ServerCredentials): Promise<{ port: number }> {
    return this.#ports.listen(address, credentials);
  }

  serve(connections: readonly number[], change: ResourceChange): number {
    let concerned = 0;
    for (const number of connections) {
      const connection = this.#connections.get(number);
      if (connection?.stream.push(change) === true) concerned++;
    }
    return concerned;
  }

  push(change: ResourceChange): void {
    this.#rounds.push(change);
  }

  connections(): ConnectionView[] {
    return [...this.#connections.values()].flatMap(({ stream, actor }) => viewConnection(stream, actor) ?? []);
  }

  disconnect(id: string): boolean {
    const found = [...this.#connections.values()].find(({ stream, actor }) => viewConnection(stream, actor)?.id === id);
    if (found !== undefined) letGo(found, 0);
    return found !== undefined;
  }

  async drain(budgetMs: number): Promise<void> {
    this.#isDraining = true;
    this.#rounds.stop();
    this.#admission.stop();
    const shutDown = this.#ports.shutDown();
    this.#endStreams(budgetMs * drainShare);
    const deadline = timeout(budgetMs);
    const empty = new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
      this.#noteEmpty();
    });
    await Promise.race([Promise.all([empty, shutDown]), deadline.promise]);
    deadline.clear();
    this.close();
  }

  close(): void {
    this.#isDraining = true;
    this.#lines.end();
    this.#rounds.stop();
    this.#turns.stop();
    this.#comings.stop();
    this.#admission.stop();
    for (const connection of [...this.#connections.values()]) {
      connection.actor.stop();
      this.#remove(connection.stream.number);
    }
    this.#ports.cut();
  }

  // ---- a stream's life

  #accept(call: AdsCall, kind: StreamKind, security: StreamSecurity): void {
    if (this.#isDraining || this.#options.isReady?.() === false) {
      this.#ports.excuse(security, call.getPeer());
      refuse(call, status.UNAVAILABLE, this.#isDraining ? serverShuttingDown : serverNotReady);
      return;
    }
    const peer = call.getPeer();
    const goOn = this.#ports.keepWaiting(security, peer);
    const intake = new RequestIntake(call, this.#turns);
    const connect = (slot: Slot): void => {
      goOn();
      try {
        if (this.#connect({ call, intake, kind }, security, slot)) return;
        slot.release();
        this.#admission.left(peer);
      } catch (error) {
        slot.release();
        this.#admission.left(peer);
        this.#options.logger.error('stream.openFailed', { error: (error as Error).stack });
        refuse(call, status.UNAVAILABLE, withCode('internal error', 'INTERNAL_ERROR'));
      }
    };
    const leave = this.#admission.ask(
      peer,
      (slot) => this.#comings.run(() => connect(slot), 0),
      () => {
        goOn();
        if (this.#isDraining) refuse(call, status.UNAVAILABLE, serverShuttingDown);
        else this.#refuseLate(call);
      },
      (named) =>
        intake.look((request) => {
          const node = nodeIdIn(request, kind.delta);
          if (node !== undefined) named(node);
        }),
    );
    call.once('cancelled', () => {
      goOn();
      leave();
    });
  }

  /** @returns whether there is a connection now */
  #connect({ call, intake, kind }: IncomingStream, security: StreamSecurity, slot: Slot): boolean {
    if (call.cancelled) return false;
    if (this.#isDraining) {
      refuse(call, status.UNAVAILABLE, serverShuttingDown);
      return false;
    }
    const number = ++this.#count;
    const stream = new AdsStream(number, { call, intake, kind }, this.#around, security);
    this.#opening.set(number, stream);
    const actor = startRoot(this.#machine, {
      id: `ads-connection-${number}`,
      input: {
        connection: number,
        onlyType: kind.onlyType,
        ...streamLimits(this.#options.limits ?? {}),
      },
      ...(this.#recorder !== undefined && { recorder: this.#recorder }),
      onError: (error) => {
        this.#options.logger.error('connection.failed', { peer: stream.peer, error: messageOf(error) });
        stream.dispose();
        this.#remove(number);
      },
    });
    this.#opening.delete(number);
    this.#connections.set(number, { stream, actor, security, slot });
    // `onError` hears of a failure. Without `error` here XState would throw it where nobody catches it.
    actor.subscribe({ complete: () => this.#remove(number), error: () => {} });
    if (actor.getSnapshot().status !== 'active') this.#remove(number);
    return true;
  }

  /** The machine's `stream` actor: finds the gRPC stream by the connection's number. */
  #noteJoined({ number: connection, peer }: AdsStream, node: string): void {
    this.#joined.add(connection);
    this.#unproven.add(connection);
    this.#admission.introduced(peer);
    const security = this.#connections.get(connection)?.security;
    if (security !== undefined) this.#ports.introduced(security, peer);
    this.#around.observer.clientConnected?.(node, this.#joined.size);
    this.#options.logger.info('client.connected', { node: shortened(node) });
    this.#options.joined?.(connection);
  }

  /** A node that has taken what it was sent shows that nodes live at its address. */
  #noteAcknowledged(number: number): void {
    const connection = this.#connections.get(number);
    if (connection === undefined || !this.#unproven.delete(number)) return;
    const { peer, identity } = connection.stream;
    if (identity !== undefined) this.#known.acknowledged(groupOfPeer(peer), identity.id);
  }

  #noteRefused(why: Refusal): void {
    this.#around.observer.connectionRefused?.(why);
    if (why !== 'too many connections') return;
    this.#lines.warn(why, 'connections.limitReached', { clients: this.#joined.size });
  }

  #refuseLate(call: AdsCall): void {
    this.#around.observer.streamRefused?.();
    this.#lines.warn('admission', 'admission.streamsRefused', { clients: this.#joined.size });
    refuse(call, status.RESOURCE_EXHAUSTED, tooManyStreams);
  }

  #noteDisplaced(): void {
    this.#lines.warn('displaced', 'streams.limitReached', { clients: this.#joined.size });
  }

  #noteHeldOff(address: string, forMs: number): void {
    this.#around.observer.addressHeldOff?.();
    this.#lines.warn(address, 'address.throttled', { address, seconds: forMs / 1_000 });
  }

  #remove(number: number): void {
    const connection = this.#connections.get(number);
    if (connection === undefined) return;
    this.#connections.delete(number);
    const wasProven = !this.#unproven.delete(number);
    const { stream, security, slot } = connection;
    slot.release();
    if (this.#joined.delete(number)) {
      this.#ports.left(security, stream.peer);
      const node = connection.stream.identity?.id ?? '';
      if (wasProven) this.#known.gone(groupOfPeer(stream.peer), node);
      this.#around.observer.clientGone?.(node, this.#joined.size);
      this.#options.logger.info('client.disconnected', { node: shortened(node) });
      this.#options.left?.(number);
    } else {
      this.#admission.left(stream.peer);
    }
    this.#noteEmpty();
  }

  // ---- to many streams

  /** In slices of the event loop: acknowledgements arrive in between. */
  #endStreams(withinMs: number): void {
    const numbers = [...this.#connections.keys()];
    this.#comings.begin(() => {
      const connection = this.#connections.get(numbers.pop() ?? 0);
      if (connection !== undefined) letGo(connection, withinMs);
      return numbers.length > 0;
    });
  }

  #noteEmpty(): void {
    if (this.#connections.size === 0) this.#whenEmpty?.();
  }
}

/** Share of a shutdown that clients have to acknowledge what they were sent; the rest is for the last status. */
const drainShare = 0.9;

/** Once: its chart says whether it is on its way out already. */
function letGo({ actor }: Connection, withinMs: number): void {
  const order: DrainOrder = { type: 'drain.order', withinMs };
  if (!actor.getSnapshot().hasTag('leaving')) actor.send(order);
}

const tooManyStreams = withCode('request rate limit exceeded: too many new streams', 'STREAM_RATE_EXCEEDED');
const serverShuttingDown = withCode('the server is shutting down', 'SERVER_SHUTTING_DOWN');
const serverNotReady = withCode('server is not ready to serve discovery information', 'SERVER_NOT_READY');

function refuse(call: AdsCall, code: status, details: string): void {
  call.emit('error', Object.assign(new Error(details), { code, details }));
  endOpenSide(call);
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
