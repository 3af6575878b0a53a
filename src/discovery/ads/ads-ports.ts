/** The gRPC servers of an ADS server: one for ports without TLS, one for ports with it. */
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { parseListenAddress } from '../listen-address.ts';
import { type AdsLimits, channelOptions } from './ads-limits.ts';
import { xdsMethods, xdsService } from './ads-services.ts';
import { plaintext, type StreamKind, type StreamSecurity } from './ads-stream.ts';
import { type AdsCall, sessionOf } from './ads-transport.ts';
import { bindError } from './grpc-bind.ts';
import { keepPace } from './session-pace.ts';
import { Strangers, strangerLimits } from './strangers.ts';

export type Accept = (call: AdsCall, kind: StreamKind, security: StreamSecurity) => void;

/** The servers of one sort of port, and who is at the other end of their connections. */
interface Ports {
  readonly server: Server;
  readonly strangers: Strangers;
  /** Where connections are handed over: made with the first port. */
  injector: { injectConnection(socket: Socket): void } | undefined;
}

export class AdsPorts {
  /** A call does not say by which port it came: each server has the ports of one sort. */
  readonly #ports: { readonly plaintext: Ports; readonly secure: Ports };
  readonly #listeners = new Set<NetServer>();

  constructor(limits: AdsLimits, secure: StreamSecurity, accept: Accept) {
    const newPorts = (security: StreamSecurity): Ports => {
      const server = new Server(channelOptions(limits));
      const handlers = xdsMethods.map((kind) => {
        const handle = (call: AdsCall): void => {
          const session = sessionOf(call);
          if (session !== undefined) keepPace(session);
          accept(call, kind, security);
        };
        return [kind.path, handle] as const;
      });
      server.addService(xdsService, Object.fromEntries(handlers));
      return { server, strangers: new Strangers({ ...strangerLimits, ...limits.strangers }), injector: undefined };
    };
    this.#ports = { plaintext: newPorts(plaintext), secure: newPorts(secure) };
  }

  /** See AdsServer. */
  listen(address: string, credentials: ServerCredentials | undefined): Promise<{ port: number }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ port: number }>();
    const ports = this.#ports[credentials === undefined ? 'plaintext' : 'secure'];
    const injector = ports.server.createConnectionInjector(credentials ?? ServerCredentials.createInsecure());
    ports.injector ??= injector;
    const listener = createServer({ noDelay: true }, (socket) => {
      if (ports.strangers.admit(socket)) injector.injectConnection(socket);
    });
    listener.once('error', (error) => reject(bindError(address, error)));
    const { host = '', port } = parseListenAddress('address', address) ?? { port: 0 };
    listener.listen({ port, ...(host !== '' && { host }) }, () => {
      this.#listeners.add(listener);
      resolve({ port: (listener.address() as AddressInfo).port });
    });
    return promise;
  }

  /** Takes a connection that came to another port without TLS. @returns false when nobody listens yet */
  take(socket: Socket): boolean {
    const { injector, strangers } = this.#ports.plaintext;
    if (injector === undefined || this.#listeners.size === 0) return false;
    if (strangers.admit(socket)) injector.injectConnection(socket);
    return true;
  }

  /** A node has said by a stream who it is. */
  introduced({ isSecure }: StreamSecurity, peer: string): void {
    this.#ports[isSecure ? 'secure' : 'plaintext'].strangers.introduced(peer);
  }

  /** Such a stream is gone. */
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

  #closeListeners(): void {
    for (const listener of this.#listeners) listener.close();
    this.#listeners.clear();
  }

  get #all(): Ports[] {
    return Object.values(this.#ports);
  }
}
