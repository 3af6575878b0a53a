/** What the ADS server tells those who count (metrics) and those who show (debug pages, status). */
import type { NodeIdentity } from './resource-source.ts';

/** Why a response was sent. */
export type ResponseCause = 'request' | 'push';

/** Callbacks, all optional. They must not throw and must not wait. */
export interface AdsObserver {
  /** A client was accepted. `connections` counts the accepted ones, it included. */
  clientConnected?(node: string, connections: number): void;
  /** An accepted client is gone. */
  clientGone?(node: string, connections: number): void;
  responseSent?(typeUrl: string, response: { cause: ResponseCause; resources: number; bytes: number }): void;
  /** A client rejected a response (NACK). */
  responseRejected?(typeUrl: string, node: string, reason: string): void;
  /** A request answered a response that is no longer the last one (`pilot_xds_expired_nonce`). */
  nonceExpired?(typeUrl: string, node: string): void;
  /** The source threw when it was asked for resources. */
  sourceFailed?(typeUrl: string, node: string, error: unknown): void;
  /** A fan-out has reached all clients that were connected when it began; milliseconds since it was asked for. */
  pushFinished?(durationMs: number, clients: number): void;
}

/** One type that a client watches. */
export interface WatchView {
  readonly typeUrl: string;
  readonly wildcard: boolean;
  readonly names: readonly string[];
  readonly nonceSent: string;
  readonly nonceAcked: string;
  readonly versionSent: string;
  readonly versionAcked: string;
  /** Why the client rejected what it was sent; empty when it did not. */
  readonly lastError: string;
  /** ISO 8601; undefined before the first response. */
  readonly sentAt: string | undefined;
}

/** One connected client, for `/debug/adsz` and `/debug/syncz`. */
export interface ConnectionView {
  /** `<node id>-<counter>`. */
  readonly id: string;
  readonly node: string;
  /** The node as it described itself. */
  readonly identity: NodeIdentity;
  /** ISO 8601. */
  readonly connectedAt: string;
  readonly peer: string;
  readonly protocol: 'sotw' | 'delta';
  readonly state: string;
  readonly watches: readonly WatchView[];
}
