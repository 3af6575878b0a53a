import type { ConnectionPush, StreamReport } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { Authenticator } from '../access/authenticator.ts';
import type { RequestIntake } from '../requests/request-intake.ts';
import type { AdsCall } from './ads-transport.ts';

/** Authentication on the port of a stream. */
export interface StreamSecurity {
  readonly isSecure: boolean;
  readonly authenticators: readonly Authenticator[];
  /** Whether the client's identity must match the node. */
  readonly checksIdentity: boolean;
}

export const plaintext: StreamSecurity = { isSecure: false, authenticators: [], checksIdentity: false };

export interface StreamKind {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly delta: boolean;
  /** Type of a separate service, for requests without a type; null on an aggregated stream. */
  readonly onlyType: string | null;
}

export interface IncomingStream {
  readonly call: AdsCall;
  /** Its first request may have been inspected already. */
  readonly intake: RequestIntake;
  readonly kind: StreamKind;
}

export interface StreamListener {
  /** For the stream's chart. */
  report(report: StreamReport): void;
  /** Pushes for the stream's chart, if routine events are traced. */
  pushed(order: ConnectionPush): void;
  /** A response was written, or the client has all that it requested. */
  responded(): void;
  /** The client has acknowledged a response. */
  acknowledged(): void;
}
