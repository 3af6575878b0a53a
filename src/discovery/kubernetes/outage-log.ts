/** Log lines of an API server that stops and resumes responding. */
import type { Logger } from '../../runtime/output/log.ts';

/**
 * An outage or a series of failed requests that is over by then is no warning: an API server restarts, and a definition is served
 * some moments after it was created. In milliseconds. Leases are lost later.
 */
export const usualOutageMs = 10_000;

/** Fields that name an API server in the log. */
interface ServerFields {
  readonly server?: string;
  readonly cluster?: string;
}

/** One line when the server stops responding, a warning if that lasts for {@link usualOutageMs}, one line when it responds again. */
export class OutageLog {
  readonly #log: Logger;
  readonly #server: ServerFields;
  #reason: string | undefined;
  #warning: NodeJS.Timeout | undefined;

  /** @param server fields that name the API server */
  constructor(log: Logger, server: ServerFields) {
    this.#log = log;
    this.#server = server;
  }

  /** Why the server does not respond; undefined while it responds. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** @param reason undefined: the server responds */
  report(reason: string | undefined): void {
    const wasLost = this.#reason !== undefined;
    this.#reason = reason;
    if (reason === undefined) {
      this.close();
      this.#log.info('kubernetes.responsive', this.#server);
    } else if (!wasLost) {
      this.#log.info('kubernetes.unresponsive', { ...this.#server, reason });
      this.#warning = setTimeout(() => {
        const fields = { ...this.#server, reason: this.#reason, sinceMs: usualOutageMs };
        this.#log.warn('kubernetes.stillUnresponsive', fields);
      }, usualOutageMs).unref();
    }
  }

  close(): void {
    clearTimeout(this.#warning);
  }
}
