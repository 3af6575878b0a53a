import type { Socket } from 'node:net';
import type { ServerCredentials } from '@grpc/grpc-js';
import type { ListenAddress } from '../listen-address.ts';
import type { AdsLimits } from './ads-limits.ts';
import type { ConnectionView } from './ads-observer.ts';
import type { AdsServer } from './ads-server.ts';
import { type AdsEffectOptions, adsEffect } from './ads-server-actor.ts';
import type { ResourceChange, ResourceReferences } from './resource-source.ts';
import type { SecurePort } from './secure-port/secure-port.ts';
import { withToolClients } from './tool-clients.ts';

/** Used if xDS is served only on the HTTP port. */
const loopbackAddress: ListenAddress = { host: '127.0.0.1', port: 0 };

export interface XdsOptions {
  readonly grpcAddress: ListenAddress | undefined;
  readonly securePort: SecurePort | undefined;
  readonly shutdownMs: number;
  readonly checksIdentity: boolean;
  readonly secretsOnPlaintext: boolean;
  readonly clientLimits: Pick<AdsLimits, 'maxNames' | 'maxServedStreams' | 'unidentified' | 'addressPace'>;
  readonly streamsPerSecond: number;
  readonly maxRequestBytes: number;
  readonly maxConcurrentStreams: number;
  readonly keepaliveIntervalMs: number;
  readonly keepaliveTimeoutMs: number;
  readonly maxConnectionAgeMs: number;
  readonly makeBeforeBreakMs: number;
  readonly removalDelayMs: number;
}

export interface XdsParts
  extends Pick<
    AdsEffectOptions,
    'source' | 'identifier' | 'logger' | 'recorder' | 'observer' | 'isReady' | 'authenticators' | 'oneShot' | 'unary'
  > {
  readonly credentials: () => ServerCredentials;
  /** Enables make-before-break. */
  readonly references: ResourceReferences;
  readonly onOpened: () => void;
}

/** The server exists while its actor runs. */
export class Xds {
  readonly #options: XdsOptions;
  #server: AdsServer | undefined;
  #isOpen = false;

  constructor(options: XdsOptions) {
    this.#options = options;
  }

  connections(): readonly ConnectionView[] {
    return this.#server?.connections() ?? [];
  }

  disconnect(id: string): boolean {
    return this.#server?.disconnect(id) ?? false;
  }

  push(change: ResourceChange): void {
    this.#server?.push(change);
  }

  serveSocket(socket: Socket): boolean {
    return this.#isOpen && this.#server!.serveSocket(socket);
  }

  actor({ credentials, references, onOpened, source, ...actorParts }: XdsParts) {
    const { grpcAddress, securePort, shutdownMs, checksIdentity, secretsOnPlaintext, ...limits } = this.#options;
    return adsEffect({
      ...{ ...actorParts, source: withToolClients(source), shutdownMs, checksIdentity, secretsOnPlaintext },
      address: grpcAddress ?? loopbackAddress,
      ...(securePort !== undefined && { securePort: { address: securePort.address, credentials } }),
      limits: {
        ...limits.clientLimits,
        streamsPerSecond: limits.streamsPerSecond,
        maxRequestBytes: limits.maxRequestBytes,
        maxConcurrentStreams: limits.maxConcurrentStreams,
        keepaliveTimeMs: limits.keepaliveIntervalMs,
        keepaliveTimeoutMs: limits.keepaliveTimeoutMs,
        maxConnectionAgeMs: limits.maxConnectionAgeMs,
        makeBeforeBreakMs: limits.makeBeforeBreakMs,
        removalDelayMs: limits.removalDelayMs,
      },
      ...(limits.makeBeforeBreakMs > 0 && { references }),
      onCreated: (server) => {
        this.#server = server;
      },
      onListening: () => {
        this.#isOpen = true;
        onOpened();
      },
    });
  }
}

export function makeXds(options: XdsOptions): Xds {
  return new Xds(options);
}
