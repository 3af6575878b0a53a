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
  /** Authenticators for clients of TLS ports, in the order in which they are tried. If empty, no identity is required. */
  readonly authenticators?: readonly Authenticator[];
  /** PILOT_ENABLE_XDS_IDENTITY_CHECK: rejects nodes that do not match the client's identity. Default true. */
  readonly checksIdentity?: boolean;
  /** PILOT_SECRETS_ON_PLAINTEXT: whether to serve Secrets on plaintext ports. Default false. */
  readonly secretsOnPlaintext?: boolean;
  /** Handler of types below `istio.io/debug`. */
  readonly oneShot?: OneShot;
  /** Whether to send endpoints again after their clusters (see AdsConnectionInput). Default true. */
  readonly resendsEndpoints?: boolean;
  /** Whether to accept names of a delta client with the nonce of an earlier response (see Rules of ads-watch.ts). Default true. */
  readonly acceptsLateNames?: boolean;
  readonly references?: ResourceReferences;
  /** Drain time of replaced listeners. Default 45 s. */
  readonly drainMs?: number;
  /** Value of `control_plane.identifier` in all responses. */
  readonly identifier?: string;
  readonly limits?: AdsLimits;
  /** Connected proxies that wait for a push. Default: none. */
  readonly waitingProxies?: () => number;
  /** Service that is also available on TLS ports. */
  readonly unary?: UnaryService;
  /** Called before the first response to a client. */
  readonly onJoined?: (connection: number) => void;
  readonly onLeft?: (connection: number) => void;
}
