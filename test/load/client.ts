import type { Expectation } from './exchange.ts';
import type { Outcome } from './tally.ts';

/** A client of one target. It opens connections as its kind does and never repeats a request. */
export interface LoadClient {
  /** Sends one request. Never rejects: a failure is an outcome. */
  send(path: string, expectation: Expectation): Promise<Outcome>;
  close(): void;
}

/** Target of a client, with the trusted authority already read. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly authority: string;
  readonly ca: string | undefined;
  /** Called for each connection that was opened, with its certificate's serial number for TLS. */
  readonly onConnected: (serialNumber?: string) => void;
  /** Called for each request that a GOAWAY overtook before it was sent. */
  readonly onOvertaken: () => void;
}
