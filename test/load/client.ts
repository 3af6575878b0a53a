import type { Expectation } from './exchange.ts';
import type { Outcome } from './tally.ts';

/** A client of one target. It opens connections according to its kind and never retries a request. */
export interface LoadClient {
  /** Sends one request. Never rejects, because a failure is an outcome. */
  send(path: string, expectation: Expectation): Promise<Outcome>;
  close(): void;
}

/** Target of a client, with the trusted CA already loaded. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly authority: string;
  readonly ca: string | undefined;
  /** Called for each opened connection, for TLS with the serial number of its certificate. */
  readonly onConnected: (serialNumber?: string) => void;
  /** Called for each request that was not sent before a GOAWAY arrived. */
  readonly onOvertaken: () => void;
}
