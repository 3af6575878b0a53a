import type { AdsStreamReport, ConnectionPush } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { Authenticator } from '../access/authenticator.ts';
import type { RequestIntake } from '../requests/request-intake.ts';
import type { AdsCall } from './ads-transport.ts';

export interface StreamSecurity {
  readonly isSecure: boolean;
  readonly authenticators: readonly Authenticator[];
  /** If true, the client's identity must match the node. */
  readonly checksIdentity: boolean;
}

export const plaintextSecurity: StreamSecurity = { isSecure: false, authenticators: [], checksIdentity: false };

export interface StreamKind {
  /** Method as `/package.Service/Method`. */
  readonly path: string;
  readonly isDelta: boolean;
  /** Default type of requests on a separate service. Null for ADS. */
  readonly onlyType: string | null;
}

export interface IncomingStream {
  readonly call: AdsCall;
  /** The first request may have been read ahead. */
  readonly intake: RequestIntake;
  readonly kind: StreamKind;
}

export interface StreamListener {
  report(report: AdsStreamReport): void;
  /** Not called unless routine events are traced. */
  onPushed(order: ConnectionPush): void;
  /** Called when a response was written or the client has all requested resources. */
  onResponded(): void;
  onAcknowledged(): void;
}
