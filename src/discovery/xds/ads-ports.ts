import type { Server as NetServer, Socket } from 'node:net';
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { ConnectionBounds } from '../../runtime/fences/connection-bounds.ts';
import { parseListenAddress } from '../listen-address.ts';
import type { CallPeer } from './access/authenticator.ts';
import type { AddressPace } from './admission/address-pace.ts';
import { type ConnectionInjector, createInjector, type SessionLimits } from './admission/grpc-http2.ts';
import type { KnownNodes } from './admission/known-nodes.ts';
import { initialStreams } from './admission/session-pace.ts';
import { smallPiecesInterceptor } from './admission/small-pieces.ts';
import {
  type ConnectionRefusal,
  type ConnectionSetUp,
  UnidentifiedConnections,
  unidentifiedLimits,
} from './admission/unidentified-connections.ts';
import { type AdsLimits, channelOptions, maxStreamsOf } from './ads-limits.ts';
import { xdsMethods, xdsService } from './ads-services.ts';
import { bindError } from './grpc-bind.ts';
import { openPort, portOf } from './port-listeners.ts';
import { type AdsCall, peerOf } from './stream/ads-transport.ts';
import { plaintextSecurity, type StreamKind, type StreamSecurity } from './stream/incoming-stream.ts';

export type AcceptCall = (call: AdsCall, kind: StreamKind, security: StreamSecurity) => void;

export interface UnaryService {
  readonly method: MethodDefinition<Buffer, Buffer>;
  /** @param onIdentified called when the client is identified */
  handle(
    call: ServerUnaryCall<Buffer, Buffer>,
    peer: CallPeer,
    onIdentified: () => void,
    respond: sendUnaryData<Buffer>,
  ): void;
}

export interface RefusalListener {
  onRefused(reason: ConnectionRefusal): void;
  onThrottled(address: string, durationMs: number): void;
}

interface Injectors {
  readonly normal: ConnectionInjector;
  /** Injector for connections from throttled addresses. */
  readonly suspect: ConnectionInjector;
}

interface Ports {
  readonly server: Server;
  readonly unidentified: UnidentifiedConnections;
  injectors: Injectors | undefined;
}

const normal: SessionLimits = { maxConcurrentStreams: initialStreams, resetBurst: 250, resetsPerSecond: 250 };
const suspect: SessionLimits = { maxConcurrentStreams: initialStreams, resetBurst: 20, resetsPerSecond: 5 };

export interface AdsPortsOptions {
  readonly pace: AddressPace;
  readonly knownNodes: KnownNodes;
  readonly listener: RefusalListener;
  readonly setUp: ConnectionSetUp;
  readonly unary?: UnaryService;
}

export class AdsPorts {
  /** Separate, because a call does not contain its port. */
  readonly #ports: { readonly plaintext: Ports; readonly secure: Ports };
  readonly #listeners = new Set<NetServer>();
  readonly #maxStreams: number;
  #isClosed = false;

  constructor(
    limits: AdsLimits,
    streamSecurity: StreamSecurity,
    acceptCall: AcceptCall,
    { pace, knownNodes, listener, setUp, unary }: AdsPortsOptions,
  ) {
    this.#maxStreams = maxStreamsOf(limits);
    const unidentifiedOptions = { ...unidentifiedLimits, ...limits.unidentified };
    const bounds = new ConnectionBounds<Socket>(unidentifiedOptions);
    const newPorts = (security: StreamSecurity): Ports => {
      const server = new Server({ ...channelOptions(limits), interceptors: [smallPiecesInterceptor] });
      const handlers = xdsMethods.map(
        (kind) => [kind.path, (call: AdsCall): void => acceptCall(call, kind, security)] as const,
      );
      server.addService(xdsService, Object.fromEntries(handlers));
      if (unary !== undefined && security.isSecure) {
        server.addService({ unary: unary.method }, { unary: this.#unaryHandler(unary, security) });
      }
      const unidentifiedConnections = new UnidentifiedConnections({
        limits: unidentifiedOptions,
        bounds,
        pace,
        known: knownNodes,
        isSecure: security.isSecure,
        maxStreams: this.#maxStreams,
        setUp,
        reportRefusal: (reason) => listener.onRefused(reason),
        onThrottled: (address, forMs) => {
          listener.onThrottled(address, forMs);
          for (const { unidentified: all } of this.#allPorts) all.closeBusyConnections(address);
        },
      });
      return { server, unidentified: unidentifiedConnections, injectors: undefined };
    };
    this.#ports = { plaintext: newPorts(plaintextSecurity), secure: newPorts(streamSecurity) };
  }

  async listen(address: string, credentials: ServerCredentials | undefined): Promise<{ port: number }> {
    const ports = this.#ports[credentials === undefined ? 'plaintext' : 'secure'];
    const injectors = this.#createInjectors(ports, credentials ?? ServerCredentials.createInsecure());
    ports.injectors ??= injectors;
    try {
      // Sockets stay paused until the connection queue or the session reads them.
      const listeners = await openPort(parseListenAddress('address', address) ?? { host: '', port: 0 }, (socket) =>
        admitSocket(socket, ports, injectors),
      );
      for (const listener of listeners) this.#listeners.add(listener);
      if (this.#isClosed) this.#closeListeners();
      return { port: portOf(listeners[0]!) };
    } catch (error) {
      throw bindError(address, error as Error);
    }
  }

  serveSocket(socket: Socket): boolean {
    const { plaintext: ports } = this.#ports;
    if (ports.injectors === undefined || this.#listeners.size === 0) return false;
    admitSocket(socket, ports, ports.injectors);
    return true;
  }

  wakeConnections(): void {
    for (const { unidentified } of this.#allPorts) unidentified.queue.beginQueued();
  }

  setSlots(slots: number): void {
    for (const { unidentified } of this.#allPorts) unidentified.queue.setSlots(slots);
  }

  get waitingCount(): number {
    return this.#allPorts.reduce((sum, { unidentified }) => sum + unidentified.queue.waiting, 0);
  }

  get isFull(): boolean {
    return this.#allPorts.some(({ unidentified }) => unidentified.queue.isFull);
  }

  refundStream({ isSecure }: StreamSecurity, peer: string): void {
    this.#ports[isSecure ? 'secure' : 'plaintext'].unidentified.refundStream(peer);
  }

  beginWait({ isSecure }: StreamSecurity, peer: string): () => void {
    return this.#ports[isSecure ? 'secure' : 'plaintext'].unidentified.beginWait(peer);
  }

  identified({ isSecure }: StreamSecurity, peer: string): void {
    this.#ports[isSecure ? 'secure' : 'plaintext'].unidentified.identified(peer);
  }

  onStreamEnded({ isSecure }: StreamSecurity, peer: string): void {
    this.#ports[isSecure ? 'secure' : 'plaintext'].unidentified.onStreamEnded(peer);
  }

  async shutDown(): Promise<void> {
    this.#closeListeners();
    await Promise.all(
      this.#allPorts.flatMap(({ server, unidentified }) => [
        new Promise<void>((resolve) => server.tryShutdown(() => resolve())),
        // A closing session may still send.
        unidentified.waitUntilEmpty(),
      ]),
    );
  }

  destroyConnections(): void {
    this.#closeListeners();
    for (const { server, unidentified } of this.#allPorts) {
      server.forceShutdown();
      unidentified.destroyConnections();
    }
  }

  #unaryHandler({ handle }: UnaryService, security: StreamSecurity) {
    return (call: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>): void => {
      const peer = peerOf(call);
      let isIdentified = false;
      const markIdentified = (): void => {
        if (!isIdentified) this.identified(security, peer.address);
        isIdentified = true;
      };
      handle(call, peer, markIdentified, (...results) => {
        if (isIdentified) this.onStreamEnded(security, peer.address);
        isIdentified = false;
        respond(...results);
      });
    };
  }

  #createInjectors({ server, unidentified }: Ports, credentials: ServerCredentials): Injectors {
    const watch = {
      onSessionStarted: unidentified.onSessionStarted.bind(unidentified),
      onStreamStarted: unidentified.onStreamStarted.bind(unidentified),
    };
    const create = (limits: SessionLimits): ConnectionInjector => {
      const maxConcurrentStreams = Math.min(limits.maxConcurrentStreams, this.#maxStreams);
      return createInjector(server, credentials, { ...limits, maxConcurrentStreams }, watch);
    };
    return { normal: create(normal), suspect: create(suspect) };
  }

  #closeListeners(): void {
    this.#isClosed = true;
    for (const listener of this.#listeners) listener.close();
    this.#listeners.clear();
  }

  get #allPorts(): Ports[] {
    return Object.values(this.#ports);
  }
}

function admitSocket(socket: Socket, { unidentified }: Ports, injectors: Injectors): void {
  unidentified.admit(socket, (isSuspect) => {
    // Neither HTTP/2 nor TLS starts to read a paused socket.
    socket.read(0);
    injectors[isSuspect ? 'suspect' : 'normal'].injectConnection(socket);
  });
}
