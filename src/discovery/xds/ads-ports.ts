/** The gRPC servers of an ADS server: one for ports without TLS, one for ports with it. */
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { ConnectionBounds } from '../../runtime/fences/connection-bounds.ts';
import { parseListenAddress } from '../listen-address.ts';
import type { Peer } from './access/authenticator.ts';
import type { AddressPace } from './admission/address-pace.ts';
import { createInjector, type Injector, type SessionLimits } from './admission/grpc-http2.ts';
import type { KnownNodes } from './admission/known-nodes.ts';
import { firstStreams } from './admission/session-pace.ts';
import { joinsSmallPieces } from './admission/small-pieces.ts';
import { type ConnectionSetUp, type Refusal, Strangers, strangerLimits } from './admission/strangers.ts';
import { type AdsLimits, channelOptions, maxStreamsOf } from './ads-limits.ts';
import { xdsMethods, xdsService } from './ads-services.ts';
import { bindError } from './grpc-bind.ts';
import { type AdsCall, peerOf } from './stream/ads-transport.ts';
import { plaintext, type StreamKind, type StreamSecurity } from './stream/incoming-stream.ts';

export type Accept = (call: AdsCall, kind: StreamKind, security: StreamSecurity) => void;

/** Another service on the same ports: one method with one answer. */
export interface UnaryService {
  readonly method: MethodDefinition<Buffer, Buffer>;
  /** @param known to be called when it is known who asks: from then on the connection is nobody's who is a stranger */
  handle(call: ServerUnaryCall<Buffer, Buffer>, peer: Peer, known: () => void, answer: sendUnaryData<Buffer>): void;
}

/** Told of what strangers are refused. */
export interface RefusalListener {
  refused(why: Refusal): void;
  heldOff(address: string, forMs: number): void;
}

/** Where connections are handed over. */
interface Injectors {
  readonly ordinary: Injector;
  /** Takes connections of an address that is held off. */
  readonly suspect: Injector;
}

/** The servers of one sort of port, and who is at the other end of their connections. */
interface Ports {
  readonly server: Server;
  readonly strangers: Strangers;
  /** Injectors of the first port. */
  injectors: Injectors | undefined;
}

const ordinary: SessionLimits = { maxConcurrentStreams: firstStreams, resetBurst: 250, resetsPerSecond: 250 };
const suspect: SessionLimits = { maxConcurrentStreams: firstStreams, resetBurst: 20, resetsPerSecond: 5 };

/** Connections that wait to be accepted: all proxies of a mesh come at once to a new server. The system has a limit of its own. */
const mostUnaccepted = 65_535;

export interface AdsPortsOptions {
  readonly pace: AddressPace;
  readonly known: KnownNodes;
  readonly listener: RefusalListener;
  readonly setUp: ConnectionSetUp;
  /** Served on ports with TLS. */
  readonly unary?: UnaryService;
}

export class AdsPorts {
  /** A call does not say by which port it came: each server has the ports of one sort. */
  readonly #ports: { readonly plaintext: Ports; readonly secure: Ports };
  readonly #listeners = new Set<NetServer>();
  readonly #maxStreams: number;

  constructor(
    limits: AdsLimits,
    secure: StreamSecurity,
    accept: Accept,
    { pace, known, listener, setUp, unary }: AdsPortsOptions,
  ) {
    this.#maxStreams = maxStreamsOf(limits);
    const ofStrangers = { ...strangerLimits, ...limits.strangers };
    const bounds = new ConnectionBounds<Socket>(ofStrangers);
    const newPorts = (security: StreamSecurity): Ports => {
      const server = new Server({ ...channelOptions(limits), interceptors: [joinsSmallPieces] });
      const handlers = xdsMethods.map(
        (kind) => [kind.path, (call: AdsCall): void => accept(call, kind, security)] as const,
      );
      server.addService(xdsService, Object.fromEntries(handlers));
      if (unary !== undefined && security.isSecure) {
        server.addService({ unary: unary.method }, { unary: this.#unaryHandler(unary, security) });
      }
      const strangers = new Strangers({
        limits: ofStrangers,
        bounds,
        pace,
        known,
        isSecure: security.isSecure,
        maxStreams: this.#maxStreams,
        setUp,
        refused: (why) => listener.refused(why),
        heldOff: (address, forMs) => {
          listener.heldOff(address, forMs);
          for (const { strangers: all } of this.#all) all.calm(address);
        },
      });
      return { server, strangers, injectors: undefined };
    };
    this.#ports = { plaintext: newPorts(plaintext), secure: newPorts(secure) };
  }

  /** See AdsServer. */
  listen(address: string, credentials: ServerCredentials | undefined): Promise<{ port: number }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ port: number }>();
    const ports = this.#ports[credentials === undefined ? 'plaintext' : 'secure'];
    const injectors = this.#createInjectors(ports, credentials ?? ServerCredentials.createInsecure());
    ports.injectors ??= injectors;
    const listener = createServer({ noDelay: true }, (socket) => letIn(socket, ports, injectors));
    listener.once('error', (error) => reject(bindError(address, error)));
    const { host = '', port } = parseListenAddress('address', address) ?? { port: 0 };
    listener.listen({ port, backlog: mostUnaccepted, ...(host !== '' && { host }) }, () => {
      this.#listeners.add(listener);
      resolve({ port: (listener.address() as AddressInfo).port });
    });
    return promise;
  }

  /** Takes a connection that came to another port without TLS. @returns false when nobody listens yet */
  take(socket: Socket): boolean {
    const { plaintext: ports } = this.#ports;
    if (ports.injectors === undefined || this.#listeners.size === 0) return false;
    letIn(socket, ports, ports.injectors);
    return true;
  }

  // ---- connections that are not set up

  wake(): void {
    for (const { strangers } of this.#all) strangers.queue.wake();
  }

  setSlots(slots: number): void {
    for (const { strangers } of this.#all) strangers.queue.setSlots(slots);
  }

  get waiting(): number {
    return this.#all.reduce((sum, { strangers }) => sum + strangers.queue.waiting, 0);
  }

  get isFull(): boolean {
    return this.#all.some(({ strangers }) => strangers.queue.isFull);
  }

  // ---- clients

  /** A stream was refused for reasons of ours. */
  excuse({ isSecure }: StreamSecurity, peer: string): void {
    this.#ports[isSecure ? 'secure' : 'plaintext'].strangers.excuse(peer);
  }

  /** A stream waits for its turn. @returns to be called when it does not any more: again is as good as once */
  keepWaiting({ isSecure }: StreamSecurity, peer: string): () => void {
    return this.#ports[isSecure ? 'secure' : 'plaintext'].strangers.keepWaiting(peer);
  }

  /** A node has said by a stream who it is. */
  introduced({ isSecure }: StreamSecurity, peer: string): void {
    this.#ports[isSecure ? 'secure' : 'plaintext'].strangers.introduced(peer);
  }

  /** A stream that had said who is there is gone. */
  left({ isSecure }: StreamSecurity, peer: string): void {
    this.#ports[isSecure ? 'secure' : 'plaintext'].strangers.left(peer);
  }

  /** Takes no new streams; resolves when those that there are have ended. */
  async shutDown(): Promise<void> {
    this.#closeListeners();
    await Promise.all(
      this.#all.flatMap(({ server, strangers }) => [
        new Promise<void>((resolve) => server.tryShutdown(() => resolve())),
        // A session that is closing has not sent everything yet.
        strangers.whenEmpty(),
      ]),
    );
  }

  /** Cuts all that is left. */
  cut(): void {
    this.#closeListeners();
    for (const { server, strangers } of this.#all) {
      server.forceShutdown();
      strangers.cut();
    }
  }

  /** A caller is a stranger until the service knows who it is. */
  #unaryHandler({ handle }: UnaryService, security: StreamSecurity) {
    return (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>): void => {
      const peer = peerOf(call);
      let isKnown = false;
      const known = (): void => {
        if (!isKnown) this.introduced(security, peer.address);
        isKnown = true;
      };
      handle(call, peer, known, (...outcome) => {
        if (isKnown) this.left(security, peer.address);
        isKnown = false;
        answer(...outcome);
      });
    };
  }

  #createInjectors({ server, strangers }: Ports, credentials: ServerCredentials): Injectors {
    const watch = {
      sessionBegan: strangers.sessionBegan.bind(strangers),
      streamBegan: strangers.streamBegan.bind(strangers),
    };
    const create = (limits: SessionLimits): Injector => {
      const maxConcurrentStreams = Math.min(limits.maxConcurrentStreams, this.#maxStreams);
      return createInjector(server, credentials, { ...limits, maxConcurrentStreams }, watch);
    };
    return { ordinary: create(ordinary), suspect: create(suspect) };
  }

  #closeListeners(): void {
    for (const listener of this.#listeners) listener.close();
    this.#listeners.clear();
  }

  get #all(): Ports[] {
    return Object.values(this.#ports);
  }
}

function letIn(socket: Socket, { strangers }: Ports, injectors: Injectors): void {
  strangers.admit(socket, (isSuspect) => injectors[isSuspect ? 'suspect' : 'ordinary'].injectConnection(socket));
}
