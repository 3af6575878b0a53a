import type { AnyActorRef } from 'xstate';
import type { Logger } from '../../runtime/output/log.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { Authenticator } from './access/authenticator.ts';
import type { AdsLimits } from './ads-limits.ts';
import type { AdsObserver } from './ads-observer.ts';
import type { UnaryService } from './ads-ports.ts';
import type { OneShot } from './one-shot.ts';
import type { ResourceReferences, ResourceSource } from './resource-source.ts';

export interface AdsServerOptions {
  readonly source: ResourceSource;
  readonly logger: Logger;
  readonly recorder?: Recorder;
  readonly observer?: AdsObserver;
  /** While this returns false, new streams end with UNAVAILABLE. */
  readonly isReady?: () => boolean;
  /** Sender of pushes and drains in the trace. */
  readonly sender?: AnyActorRef;
  /** Authenticators for clients of TLS ports. If empty, no identity is required. */
  readonly authenticators?: readonly Authenticator[];
  /** PILOT_ENABLE_XDS_IDENTITY_CHECK: rejects nodes that do not match the client's identity. Default true. */
  readonly checksIdentity?: boolean;
  /** PILOT_SECRETS_ON_PLAINTEXT. Default false. */
  readonly secretsOnPlaintext?: boolean;
  /** Handler of types below `istio.io/debug`. */
  readonly oneShot?: OneShot;
  /** See ExchangeRules. Default true. */
  readonly resendsEndpoints?: boolean;
  /** See Rules of ads-watch.ts. Default true. */
  readonly acceptsLateNames?: boolean;
  readonly references?: ResourceReferences;
  /** Drain time of replaced listeners. Default 45 s. */
  readonly drainMs?: number;
  readonly identifier?: string;
  readonly limits?: AdsLimits;
  /** Connected proxies that wait for a push. Default: none. */
  readonly waitingProxies?: () => number;
  readonly unary?: UnaryService;
  /** Called before the first response to a client. */
  readonly onJoined?: (connection: number) => void;
  readonly onLeft?: (connection: number) => void;
}
