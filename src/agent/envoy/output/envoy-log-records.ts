/** Envoy's log lines for the trace, with a limited rate. */
import type { EnvoyLogLine } from './envoy-log.ts';

const linesPerSecond = 100;
const burst = 200;
const longestText = 16 * 1024;

/**
 * Records the lines of one process. Omits lines above 100 per second after a burst of 200, and records the number of omitted lines at most once
 * per second.
 */
export class EnvoyLogRecords {
  readonly #record: (line: EnvoyLogLine) => void;
  readonly #now: () => number;
  #allowance = burst;
  #at: number;
  #leftOut = 0;
  #leftOutSince = 0;
  /** Inside a private key, whose lines cannot be recognized one by one. */
  #isInKey = false;

  /** @param now monotonic milliseconds */
  constructor(record: (line: EnvoyLogLine) => void, now: () => number = () => performance.now()) {
    this.#record = record;
    this.#now = now;
    this.#at = now();
  }

  take({ text, ...rest }: EnvoyLogLine): void {
    const now = this.#now();
    if (this.#isOfKey(rest.component, text)) return;
    this.#allowance = Math.min(burst, this.#allowance + ((now - this.#at) * linesPerSecond) / 1_000);
    this.#at = now;
    if (this.#allowance < 1) {
      if (this.#leftOut++ === 0) this.#leftOutSince = now;
      return;
    }
    this.#allowance--;
    if (this.#leftOut > 0 && now - this.#leftOutSince >= 1_000) this.#tellLeftOut();
    this.#record({ ...rest, text: shortened(text) });
  }

  /** Called after the last line. */
  end(): void {
    if (this.#leftOut > 0) this.#tellLeftOut();
  }

  #tellLeftOut(): void {
    this.#record({ level: 'info', text: `… ${this.#leftOut} lines omitted` });
    this.#leftOut = 0;
  }

  /** Whether a line continues a private key. Only lines without a prefix continue a message. */
  #isOfKey(component: string | undefined, text: string): boolean {
    const isContinued = this.#isInKey && component === undefined;
    const isBegun = text.lastIndexOf('-----BEGIN ') > text.lastIndexOf('-----END ') && keyBegin.test(text);
    this.#isInKey = isBegun || (isContinued && !text.includes('-----END '));
    return isContinued;
  }
}

const keyBegin = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;

/** Cuts at white space: the redaction would not recognize half a secret. */
function shortened(text: string): string {
  if (text.length <= longestText) return text;
  const kept = text.slice(0, longestText);
  return `${kept.slice(0, kept.search(/\s\S*$/) + 1)}… (${text.length} characters)`;
}
