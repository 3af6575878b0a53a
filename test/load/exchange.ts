import type { RequestPhase } from './report.ts';
import type { Outcome } from './tally.ts';

/** Requirements for a response in addition to its status: maximum duration and end of the body. */
export interface Expectation {
  readonly timeoutMs: number;
  readonly bodyEndsWith: string | undefined;
  /** Aborts requests in flight at the end of the drain time. */
  readonly drainDeadline: AbortSignal;
}

/** An error with the code under which a failure is counted. */
class ExchangeError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Prefix of a body that is stored: enough for its expected end, and for a proxy's description of a failure. */
const maxKeptBytes = 200;

/** Determines the one outcome of a request, in any order of the events of Node's streams. */
export class Exchange {
  readonly outcome: Promise<Outcome>;
  phase: RequestPhase = 'connect';
  reusedConnection = false;
  status = 0;
  version: string | undefined;
  readonly #startedAt = performance.now();
  readonly #expectation: Expectation;
  readonly #timer: NodeJS.Timeout;
  readonly #resolve: (outcome: Outcome) => void;
  #bytes = 0;
  #tail = '';

  /** @param cancel resets the request when it times out */
  constructor(expectation: Expectation, cancel: (reason: Error) => void) {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#expectation = expectation;
    const giveUp = (error: Error): void => {
      this.fail(error);
      cancel(error);
    };
    this.#timer = setTimeout(
      () => giveUp(new ExchangeError('REQUEST_TIMEOUT', `no complete response within ${expectation.timeoutMs} ms`)),
      expectation.timeoutMs,
    );
    const { drainDeadline } = expectation;
    const onDeadline = (): void => giveUp(new ExchangeError('DRAIN_TIMEOUT', 'still in flight at the end of the run'));
    drainDeadline.addEventListener('abort', onDeadline, { once: true });
    void promise.then(() => drainDeadline.removeEventListener('abort', onDeadline));
  }

  headers(status: number, version: string | string[] | undefined): void {
    this.phase = 'body';
    this.status = status;
    this.version = typeof version === 'string' ? version : version?.[0];
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#tail = (this.#tail + chunk.toString('latin1')).slice(-maxKeptBytes);
  }

  /** @param complete whether the protocol's framing was complete */
  end(complete: boolean): void {
    const expectedEnd = this.#expectation.bodyEndsWith;
    if (!complete) {
      this.fail(new ExchangeError('TRUNCATED', 'the connection ended before the response did'));
    } else if (this.status < 200 || this.status > 299) {
      this.phase = 'response';
      this.fail(new ExchangeError(`HTTP_${this.status}`, this.#tail.trim() || 'empty body'));
    } else if (expectedEnd !== undefined && !this.#tail.endsWith(expectedEnd)) {
      this.fail(new ExchangeError('TRUNCATED', `the body does not end with ${JSON.stringify(expectedEnd)}`));
    } else {
      this.#resolveOutcome({ ok: true, elapsedMs: this.#elapsedMs(), version: this.version });
    }
  }

  /** Only the first outcome of an exchange counts. */
  fail(error: Error): void {
    const { phase, reusedConnection } = this;
    // A stream of a failed session reports a cancellation; the reason is in the cause.
    const reason = error.cause instanceof Error ? error.cause : error;
    const code = 'code' in reason && typeof reason.code === 'string' ? reason.code : reason.name;
    const message = reason.message || code;
    const bytes = this.#bytes;
    this.#resolveOutcome({ ok: false, elapsedMs: this.#elapsedMs(), code, message, phase, bytes, reusedConnection });
  }

  #resolveOutcome(outcome: Outcome): void {
    clearTimeout(this.#timer);
    this.#resolve(outcome);
  }

  #elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }
}
