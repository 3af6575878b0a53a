import type { Logger } from '../../runtime/output/log.ts';

/** Allows for restarts of API servers and new CRDs, but is shorter than the expiry of Leases. */
export const outageWarningDelayMs = 10_000;

interface ServerFields {
  readonly server?: string;
  readonly cluster?: string;
}

/** Warns only after {@link outageWarningDelayMs}. */
export class OutageLog {
  readonly #log: Logger;
  readonly #server: ServerFields;
  #reason: string | undefined;
  #warning: NodeJS.Timeout | undefined;

  constructor(log: Logger, server: ServerFields) {
    this.#log = log;
    this.#server = server;
  }

  get reason(): string | undefined {
    return this.#reason;
  }

  /** @param reason `undefined` if the server responds */
  report(reason: string | undefined): void {
    const wasLost = this.#reason !== undefined;
    this.#reason = reason;
    if (reason === undefined) {
      this.close();
      this.#log.info('kubernetes.responsive', this.#server);
    } else if (!wasLost) {
      this.#log.info('kubernetes.unresponsive', { ...this.#server, reason });
      this.#warning = setTimeout(() => {
        const fields = { ...this.#server, reason: this.#reason, sinceMs: outageWarningDelayMs };
        this.#log.warn('kubernetes.stillUnresponsive', fields);
      }, outageWarningDelayMs).unref();
    }
  }

  close(): void {
    clearTimeout(this.#warning);
  }
}
