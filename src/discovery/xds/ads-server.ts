/** Serves xDS over gRPC: state of the world (SotW) and delta, ADS and separate services. */
import type { Socket } from 'node:net';
import { type ServerCredentials, status } from '@grpc/grpc-js';
import type { Actor, AnyActorRef } from 'xstate';
import type { adsConnectionMachine } from '../../../machines/discovery/xds/ads-connection.machine.ts';
import { internalErrorEnd } from '../../../machines/discovery/xds/ads-connection-context.ts';
import { type ConnectionDrain, routineMessages } from '../../../machines/discovery/xds/ads-protocol.ts';
import { startRoot } from '../../runtime/actors/actor-system.ts';
import { appendCode, messageOf } from '../../runtime/errors.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import { AddressPace, addressPaceLimits } from './admission/address-pace.ts';
import { type AdmittedStream, groupOfPeer } from './admission/ads-admission.ts';
import { KnownNodes } from './admission/known-nodes.ts';
import { LoadAdmission } from './admission/load-admission.ts';
import type { ConnectionRefusal } from './admission/unidentified-connections.ts';
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
import { MemoryRelease } from './memory-release.effects.ts';
import { readFirstRequest } from './requests/ads-request.ts';
import { RequestIntake } from './requests/request-intake.ts';
import { RequestNameLists } from './requests/request-names.ts';
import { RequestTurns } from './requests/request-turns.ts';
import type { ResourceChange } from './resource-source.ts';
import { encodeControlPlane, SharedBodies } from './responses/ads-response.ts';
import { DepartedClusters } from './rollout/departed-clusters.ts';
import { AdsStream } from './stream/ads-stream.ts';
import { type AdsCall, endOpenSide, peerOf } from './stream/ads-transport.ts';
import { shortenText } from './stream/client-text.ts';
import type { IncomingStream, StreamKind, StreamSecurity } from './stream/incoming-stream.ts';
import { RepeatedLines } from './stream/repeated-lines.ts';
import type { StreamContext } from './stream/stream-context.ts';
import { maxServedStreamsForHeap, StreamShares } from './stream/stream-shares.ts';
import { PushRounds } from './turns/push-rounds.ts';

export type { AdsServerOptions } from './ads-server-options.ts';

export interface AdsServer {
  /**
   * Opens `host:port`. Port 0 selects any free one. Can be called for several addresses. With TLS credentials, clients of the port are authenticated.
   *
   * @throws ChartpilotError PORT_IN_USE or LISTEN_FAILED
   */
  listen(address: string, credentials?: ServerCredentials): Promise<{ port: number }>;
  /**
   * Serves a connection of another plaintext port.
   *
   * @returns false if no port is open
   */
  serveSocket(socket: Socket): boolean;
  /**
   * Updates connections synchronously and in order. A server that drains sends no changes, because each client receives them from its next server.
   *
   * @returns the number of affected connections
   */
  serve(connections: readonly number[], change: ResourceChange): number;
  /** Updates all connections in slices of the event loop, for servers without a push queue. */
  push(change: ResourceChange): void;
  connections(): ConnectionView[];
  disconnect(id: string): boolean;
  /** Rejects streams that wait for admission, and ends every other stream after the client's last ACK or NACK. */
  drain(budgetMs: number): Promise<void>;
  close(): void;
}

interface Connection {
  readonly stream: AdsStream;
  readonly actor: Actor<typeof adsConnectionMachine>;
  readonly security: StreamSecurity;
  readonly admission: AdmittedStream;
}

export function createAdsServer(options: AdsServerOptions): AdsServer {
  return new GrpcAdsServer(options);
}

class GrpcAdsServer implements AdsServer {
  readonly #options: AdsServerOptions;
  readonly #streamContext: StreamContext;
  readonly #knownNodes = new KnownNodes(() => performance.now());
  readonly #admission: LoadAdmission;
  readonly #memoryRelease: MemoryRelease;
  readonly #recorder: Recorder | undefined;
  readonly #ports: AdsPorts;
  readonly #machine: typeof adsConnectionMachine;
  readonly #connections = new Map<number, Connection>();
  readonly #openingStreams = new Map<number, AdsStream>();
  readonly #pushRounds: PushRounds;
  readonly #requestTurns = new RequestTurns();
  /** Separate, so that opening and closing streams do not delay others. */
  readonly #openingTurns = new RequestTurns();
  readonly #joinedConnections = new Set<number>();
  readonly #unacknowledgedConnections = new Set<number>();
  /** Rate-limited, because unauthenticated clients can cause these lines. */
  readonly #repeatedLines: RepeatedLines;
  #count = 0;
  #isDraining = false;
  #emptyListener: (() => void) | undefined;

  constructor(options: AdsServerOptions) {
    this.#options = options;
    const { source, logger, observer = {}, secretsOnPlaintext = false } = options;
    const { resendsEndpoints = true, acceptsLateNames = true, limits = {}, recorder } = options;
    this.#streamContext = {
      source,
      shares: new StreamShares(limits.maxServedStreams ?? maxServedStreamsForHeap(), () => this.#onDisplaced()),
      logger,
      observer,
      rules: { resendsEndpoints, acceptsLateNames, ...nameLimits(limits) },
      reportsRoutine: recorder !== undefined && routineMessages.some((type) => !recorder.omits(type)),
      secretsOnPlaintext,
      bodies: new SharedBodies(),
      nameLists: new RequestNameLists(),
      turns: this.#requestTurns,
      closingTurns: this.#openingTurns,
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
          departedClusters: new DepartedClusters(options.drainMs ?? defaultDrainMs),
          limitMs: limits.makeBeforeBreakMs ?? defaultMakeBeforeBreakMs,
        },
      }),
    };
    this.#recorder = withSender(recorder, options.sender);
    this.#memoryRelease = new MemoryRelease({
      logger,
      ...(this.#recorder !== undefined && { recorder: this.#recorder }),
    });
    this.#admission = new LoadAdmission({
      perSecond: limits.streamsPerSecond ?? 0,
      known: this.#knownNodes,
      logger,
      ...(this.#recorder !== undefined && { recorder: this.#recorder }),
      requests: () => this.#requestTurns.size,
      proxies: () => options.waitingProxies?.() ?? 0,
      onMeasured: (view) => observer.admissionMeasured?.(view),
    });
    // Each provide() creates a machine.
    this.#machine = adsConnectionWithEffects({
      streamOf: (connection) => this.#openingStreams.get(connection)!,
      onJoined: (stream, node) => this.#onJoined(stream, node),
      onPushed: (connection, order) => this.#connections.get(connection)?.actor.send(order),
      onResponded: (connection) => this.#connections.get(connection)?.admission.release(),
      onAcknowledged: (connection) => this.#onAcknowledged(connection),
    });
    this.#pushRounds = new PushRounds({
      clients: () => this.#joinedConnections,
      serve: (connection, change) => this.serve([connection], change),
      finished: (durationMs, clients) => observer.pushFinished?.(durationMs, clients),
    });
    const { authenticators = [], checksIdentity = true } = options;
    const secureSecurity = { isSecure: true, authenticators, checksIdentity };
    const addressPace = new AddressPace({ ...addressPaceLimits, ...limits.addressPace }, () => performance.now());
    const listener = {
      onRefused: this.#onConnectionRejected.bind(this),
      onThrottled: this.#onThrottled.bind(this),
    };
    this.#repeatedLines = new RepeatedLines(logger, () => performance.now());
    this.#ports = new AdsPorts(limits, secureSecurity, (...stream) => this.#acceptCall(...stream), {
      pace: addressPace,
      knownNodes: this.#knownNodes,
      listener,
      setUp: this.#admission.connectionSetUp,
      ...(options.unary !== undefined && { unary: options.unary }),
    });
    this.#admission.setPorts(this.#ports);
  }

  serveSocket(socket: Socket): boolean {
    return this.#ports.serveSocket(socket);
  }

  listen(address: string, credentials?: ServerCredentials): Promise<{ port: number }> {
    return this.#ports.listen(address, credentials);
  }

  serve(connections: readonly number[], change: ResourceChange): number {
    if (this.#isDraining) return 0;
    let affectedCount = 0;
    for (const number of connections) {
      const connection = this.#connections.get(number);
      if (connection?.stream.push(change) === true) affectedCount++;
    }
    return affectedCount;
  }

  push(change: ResourceChange): void {
    this.#pushRounds.push(change);
  }

  connections(): ConnectionView[] {
    return [...this.#connections.values()].flatMap(({ stream, actor }) => viewConnection(stream, actor) ?? []);
  }

  disconnect(id: string): boolean {
    const matchingConnection = [...this.#connections.values()].find(
      ({ stream, actor }) => viewConnection(stream, actor)?.id === id,
    );
    if (matchingConnection !== undefined) disconnectStream(matchingConnection, 0);
    return matchingConnection !== undefined;
  }

  async drain(budgetMs: number): Promise<void> {
    this.#isDraining = true;
    this.#pushRounds.stop();
    this.#admission.stop();
    this.#memoryRelease.stop();
    const portsShutDown = this.#ports.shutDown();
    this.#endStreams(budgetMs * drainTimeFraction);
    const deadline = timeout(budgetMs);
    const streamsClosed = new Promise<void>((resolve) => {
      this.#emptyListener = resolve;
      this.#notifyIfEmpty();
    });
    await Promise.race([Promise.all([streamsClosed, portsShutDown]), deadline.promise]);
    deadline.clear();
    this.close();
  }

  close(): void {
    this.#isDraining = true;
    this.#repeatedLines.end();
    this.#pushRounds.stop();
    this.#requestTurns.stop();
    this.#openingTurns.stop();
    this.#admission.stop();
    this.#memoryRelease.stop();
    for (const connection of [...this.#connections.values()]) {
      connection.actor.stop();
      this.#remove(connection.stream.number);
    }
    this.#ports.destroyConnections();
  }

  #acceptCall(call: AdsCall, kind: StreamKind, security: StreamSecurity): void {
    if (this.#isDraining || this.#options.isReady?.() === false) {
      this.#ports.refundStream(security, call.getPeer());
      rejectCall(call, status.UNAVAILABLE, this.#isDraining ? serverShuttingDown : serverNotReady);
      return;
    }
    const peer = call.getPeer();
    const endWait = this.#ports.beginWait(security, peer);
    const requestIntake = new RequestIntake(call, this.#requestTurns);
    const connect = (admission: AdmittedStream): void => {
      endWait();
      try {
        if (this.#connect({ call, intake: requestIntake, kind }, security, admission)) return;
      } catch (error) {
        this.#options.logger.error('stream.openFailed', { error: (error as Error).stack });
        rejectCall(call, status.UNAVAILABLE, appendCode('internal error', 'INTERNAL_ERROR'));
      }
      admission.release();
      admission.identified();
    };
    const cancelAdmission = this.#admission.admit(
      { peer, isTrusted: security.isSecure && peerOf(call).certificate !== undefined },
      (admission) => this.#openingTurns.run(() => connect(admission), 0),
      () => {
        endWait();
        if (this.#isDraining) rejectCall(call, status.UNAVAILABLE, serverShuttingDown);
        else this.#rejectLateCall(call);
      },
      (onFirstRequest) =>
        requestIntake.peekFirstRequest((request) => onFirstRequest(readFirstRequest(request, kind.isDelta))),
    );
    call.once('cancelled', () => {
      endWait();
      cancelAdmission();
    });
  }

  #connect({ call, intake, kind }: IncomingStream, security: StreamSecurity, admission: AdmittedStream): boolean {
    if (call.cancelled) return false;
    if (this.#isDraining) {
      rejectCall(call, status.UNAVAILABLE, serverShuttingDown);
      return false;
    }
    const number = ++this.#count;
    const stream = new AdsStream(number, { call, intake, kind }, this.#streamContext, security);
    this.#openingStreams.set(number, stream);
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
        stream.dispose(internalErrorEnd);
        this.#remove(number);
      },
    });
    this.#openingStreams.delete(number);
    this.#connections.set(number, { stream, actor, security, admission });
    // `onError` handles failures, but without this listener XState would throw an uncaught error.
    actor.subscribe({ complete: () => this.#remove(number), error: () => {} });
    if (actor.getSnapshot().status !== 'active') this.#remove(number);
    return true;
  }

  #onJoined({ number: connection, peer }: AdsStream, node: string): void {
    this.#joinedConnections.add(connection);
    this.#memoryRelease.setServed(this.#joinedConnections.size);
    this.#unacknowledgedConnections.add(connection);
    const { security, admission } = this.#connections.get(connection) ?? {};
    admission?.identified();
    if (security !== undefined) this.#ports.identified(security, peer);
    this.#streamContext.observer.clientConnected?.(node, this.#joinedConnections.size);
    this.#options.logger.info('client.connected', { node: shortenText(node) });
    this.#options.onJoined?.(connection);
  }

  /** An ACK proves that nodes run at this address. */
  #onAcknowledged(number: number): void {
    const connection = this.#connections.get(number);
    if (connection === undefined || !this.#unacknowledgedConnections.delete(number)) return;
    const { peer, identity } = connection.stream;
    if (identity !== undefined) this.#knownNodes.recordAcknowledgement(groupOfPeer(peer), identity.id);
  }

  #onConnectionRejected(reason: ConnectionRefusal): void {
    this.#streamContext.observer.connectionRefused?.(reason);
    if (reason !== 'too many connections') return;
    this.#repeatedLines.warn(reason, 'connections.limitReached', { clients: this.#joinedConnections.size });
  }

  #rejectLateCall(call: AdsCall): void {
    this.#streamContext.observer.streamRefused?.();
    this.#repeatedLines.warn('admission', 'admission.streamsRefused', { clients: this.#joinedConnections.size });
    rejectCall(call, status.RESOURCE_EXHAUSTED, tooManyStreamsError);
  }

  #onDisplaced(): void {
    this.#repeatedLines.warn('displaced', 'streams.limitReached', { clients: this.#joinedConnections.size });
  }

  #onThrottled(address: string, forMs: number): void {
    this.#streamContext.observer.addressHeldOff?.();
    this.#repeatedLines.warn(address, 'address.throttled', { address, seconds: forMs / 1_000 });
  }

  #remove(number: number): void {
    const connection = this.#connections.get(number);
    if (connection === undefined) return;
    this.#connections.delete(number);
    const wasProven = !this.#unacknowledgedConnections.delete(number);
    const { stream, security, admission } = connection;
    admission.release();
    admission.identified();
    if (this.#joinedConnections.delete(number)) {
      this.#memoryRelease.setServed(this.#joinedConnections.size);
      this.#ports.onStreamEnded(security, stream.peer);
      const node = connection.stream.identity?.id ?? '';
      if (wasProven) this.#knownNodes.disconnected(groupOfPeer(stream.peer), node);
      this.#streamContext.observer.clientDisconnected?.(node, this.#joinedConnections.size);
      this.#options.logger.info('client.disconnected', { node: shortenText(node) });
      this.#options.onLeft?.(number);
    }
    this.#notifyIfEmpty();
  }

  /** Ends streams in slices, so that ACKs can be received in between. */
  #endStreams(timeoutMs: number): void {
    const numbers = [...this.#connections.keys()];
    this.#openingTurns.startWork(() => {
      const connection = this.#connections.get(numbers.pop() ?? 0);
      if (connection !== undefined) disconnectStream(connection, timeoutMs);
      return numbers.length > 0;
    });
  }

  #notifyIfEmpty(): void {
    if (this.#connections.size === 0) this.#emptyListener?.();
  }
}

/** Share of the time for draining. The rest is for sending the final status. */
const drainTimeFraction = 0.9;

function disconnectStream({ actor }: Connection, timeoutMs: number): void {
  const drainOrder: ConnectionDrain = { type: 'connection.drain', withinMs: timeoutMs };
  if (!actor.getSnapshot().hasTag('leaving')) actor.send(drainOrder);
}

const tooManyStreamsError = appendCode('request rate limit exceeded: too many new streams', 'STREAM_RATE_EXCEEDED');
const serverShuttingDown = appendCode('the server is shutting down', 'SERVER_SHUTTING_DOWN');
const serverNotReady = appendCode('server is not ready to serve discovery information', 'SERVER_NOT_READY');

function rejectCall(call: AdsCall, code: status, details: string): void {
  call.emit('error', Object.assign(new Error(details), { code, details }));
  endOpenSide(call);
}

/** Makes the ADS server the sender of events without an actor in the trace. */
function withSender(recorder: Recorder | undefined, sender: AnyActorRef | undefined): Recorder | undefined {
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
