/** The gRPC servers of an ADS server: one for ports without TLS, one for ports with it. */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { type AdsLimits, channelOptions } from './ads-limits.ts';
import { xdsMethods, xdsService } from './ads-services.ts';
import { plaintext, type StreamKind, type StreamSecurity } from './ads-stream.ts';
import type { AdsCall } from './ads-transport.ts';
import { bindError } from './grpc-bind.ts';

export type Accept = (call: AdsCall, kind: StreamKind, security: StreamSecurity) => void;

export class AdsPorts {
  /** A call does not say by which port it came: each server has the ports of one sort. */
  readonly #servers: { readonly plaintext: Server; readonly secure: Server };

  constructor(limits: AdsLimits, secure: StreamSecurity, accept: Accept) {
    const newServer = (security: StreamSecurity): Server => {
      const server = new Server(channelOptions(limits));
      const handlers = xdsMethods.map((kind) => [kind.path, (call: AdsCall) => accept(call, kind, security)] as const);
      server.addService(xdsService, Object.fromEntries(handlers));
      return server;
    };
    this.#servers = { plaintext: newServer(plaintext), secure: newServer(secure) };
  }

  /** See AdsServer. */
  listen(address: string, credentials: ServerCredentials | undefined): Promise<{ port: number }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ port: number }>();
    const server = this.#servers[credentials === undefined ? 'plaintext' : 'secure'];
    server.bindAsync(address, credentials ?? ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve({ port });
      else reject(bindError(address, error));
    });
    return promise;
  }

  /** Takes no new streams; resolves when those that there are have ended. */
  async shutDown(): Promise<void> {
    await Promise.all(this.#all.map((server) => new Promise<void>((resolve) => server.tryShutdown(() => resolve()))));
  }

  /** Cuts all that is left. */
  cut(): void {
    for (const server of this.#all) server.forceShutdown();
  }

  get #all(): Server[] {
    return Object.values(this.#servers);
  }
}
