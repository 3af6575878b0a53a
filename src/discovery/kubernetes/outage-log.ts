/** Log lines of an API server that stops and resumes responding. */
import type { Logger } from '../../runtime/output/log.ts';

/**
 * An outage or a series of failed requests that is over by then is no warning: an API server restarts, and a definition is served
 * some moments after it was created. In milliseconds. Leases are lost later.
 */
export const usualOutageMs = 10_000;

/** One line when the server stops responding, a warning if that lasts for {@link usualOutageMs}, one line when it responds again. */
export class OutageLog {
  readonly #log: Logger;
  readonly #server: string;
  #reason: string | undefined;
  #warning: NodeJS.Timeout | undefined;

  /** @param server in the words of the log: `API server https://…` */
  constructor(log: Logger, server: string) {
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
      this.#log.info(`${this.#server} responds again`);
    } else if (!wasLost) {
      this.#log.info(`${this.#server} does not respond, keeping the last known state`, { reason });
      this.#warning = setTimeout(() => {
        const fields = { reason: this.#reason, sinceMs: usualOutageMs };
        this.#log.warn(`${this.#server} still does not respond, keeping the last known state`, fields);
      }, usualOutageMs).unref();
    }
  }

  close(): void {
    clearTimeout(this.#warning);
  }
}
