import type { AnyActorRef } from 'xstate';
import type { Logger } from '../../runtime/output/log.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { Authenticator } from './access/authenticator.ts';
import type { AdsLimits } from './ads-limits.ts';
import type { AdsObserver } from './ads-observer.ts';
import type { UnaryService } from './ads-ports.ts';
import type { OneShot } from './one-shot.ts';
import type { ResourceReferences, ResourceSource } from './resource-source.ts';

/** What an ADS server serves, to whom, and whom it tells of it. */
export interface AdsServerOptions {
  readonly source: ResourceSource;
  readonly logger: Logger;
  readonly recorder?: Recorder;
  readonly observer?: AdsObserver;
  /** False: new streams are answered UNAVAILABLE. */
  readonly isReady?: () => boolean;
  /** The actor in whose name pushes and drains are recorded in the trace. */
  readonly sender?: AnyActorRef;
  /** Who is asked, in this order, who a client of a port with TLS is. None: nobody needs an identity. */
  readonly authenticators?: readonly Authenticator[];
  /** Refuse nodes that a client's identity is not of (PILOT_ENABLE_XDS_IDENTITY_CHECK). Default true. */
  readonly checksIdentity?: boolean;
  /** Serve secrets to clients of a port without TLS (PILOT_SECRETS_ON_PLAINTEXT). Default false. */
  readonly secretsOnPlaintext?: boolean;
  /** Answers requests of the types under `istio.io/debug`. */
  readonly oneShot?: OneShot;
  /** Send endpoints again after their clusters (see AdsConnectionInput). Default true. */
  readonly resendsEndpoints?: boolean;
  /** Count names that a delta client says in answer to an earlier response (see Rules of ads-watch.ts). Default true. */
  readonly hearsLateNames?: boolean;
  /**
   * Make before break: listeners and routes wait until the client can use the clusters that they name. Undefined: they do not.
   */
  readonly references?: ResourceReferences;
  /** Time for which Envoys drain the connections of a listener that was replaced. Default 45 s. */
  readonly drainMs?: number;
  /** `control_plane.identifier` of all responses. Undefined: responses have none. */
  readonly identifier?: string;
  readonly limits?: AdsLimits;
  /** Served proxies that wait for a push. Default: none. */
  readonly waitingProxies?: () => number;
  /** Served on the ports with TLS as well. */
  readonly unary?: UnaryService;
  /** A client was accepted: from now on changes concern it. Called before its first request is answered. */
  readonly joined?: (connection: number) => void;
  /** A client that had joined is gone. */
  readonly left?: (connection: number) => void;
}
