/** A stream as it comes in, and what it reports to. */
import type { PushToClient, StreamReport } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { Authenticator } from '../access/authenticator.ts';
import type { RequestIntake } from '../requests/request-intake.ts';
import type { AdsCall } from './ads-transport.ts';

/** How strangers are received on the port that a stream came in by. */
export interface StreamSecurity {
  /** The port has TLS. */
  readonly isSecure: boolean;
  /** Whom to ask who the client is. */
  readonly authenticators: readonly Authenticator[];
  /** Whether an identity must be one of the node's own. */
  readonly checksIdentity: boolean;
}

export const plaintext: StreamSecurity = { isSecure: false, authenticators: [], checksIdentity: false };

export interface StreamKind {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly delta: boolean;
  /** The type of a separate service, for requests that do not say it; null on an aggregated stream. */
  readonly onlyType: string | null;
}

export interface IncomingStream {
  readonly call: AdsCall;
  /** Takes the stream's requests, of which the first may have been looked at. */
  readonly intake: RequestIntake;
  readonly kind: StreamKind;
}

/** Whom a stream tells what. */
export interface StreamListener {
  /** A report for the stream's chart. */
  report(report: StreamReport): void;
  /** An order for the stream's chart, in the server's name: what it is told of a push where people want to see all. */
  pushed(order: PushToClient): void;
  /** A response was written, or the client has all that it requested. */
  responded(): void;
  /** The client has answered, and has acknowledged something by now. */
  acknowledged(): void;
}
