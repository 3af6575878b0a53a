import type { EnvoyLogLine } from './envoy-log.ts';

const linesPerSecond = 100;
const burstSize = 200;
const maxTextLength = 16 * 1024;

/** Limits Envoy's log lines in the trace to 100 per second after a burst of 200. Records the number of omitted lines at most once per second. */
export class EnvoyLogRecords {
  readonly #record: (line: EnvoyLogLine) => void;
  readonly #now: () => number;
  #allowance = burstSize;
  #lastTakenAt: number;
  #omittedCount = 0;
  #omittedSinceMs = 0;
  /** Whether the last line was inside a private key, whose lines cannot be recognized one by one. */
  #isWritingKey = false;

  /** @param now monotonic milliseconds */
  constructor(record: (line: EnvoyLogLine) => void, now: () => number = () => performance.now()) {
    this.#record = record;
    this.#now = now;
    this.#lastTakenAt = now();
  }

  record({ text, ...lineFields }: EnvoyLogLine): void {
    const nowMs = this.#now();
    if (this.#isKeyLine(lineFields.component, text)) return;
    this.#allowance = Math.min(burstSize, this.#allowance + ((nowMs - this.#lastTakenAt) * linesPerSecond) / 1_000);
    this.#lastTakenAt = nowMs;
    if (this.#allowance < 1) {
      if (this.#omittedCount++ === 0) this.#omittedSinceMs = nowMs;
      return;
    }
    this.#allowance--;
    if (this.#omittedCount > 0 && nowMs - this.#omittedSinceMs >= 1_000) this.#recordOmitted();
    this.#record({ ...lineFields, text: shortened(text) });
  }

  end(): void {
    if (this.#omittedCount > 0) this.#recordOmitted();
  }

  #recordOmitted(): void {
    this.#record({ level: 'info', text: `… ${this.#omittedCount} lines omitted` });
    this.#omittedCount = 0;
  }

  /** Only lines without a prefix continue a message. */
  #isKeyLine(component: string | undefined, text: string): boolean {
    const isContinued = this.#isWritingKey && component === undefined;
    const isInsideKey = text.lastIndexOf('-----BEGIN ') > text.lastIndexOf('-----END ') && keyBegin.test(text);
    this.#isWritingKey = isInsideKey || (isContinued && !text.includes('-----END '));
    return isContinued;
  }
}

const keyBegin = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;

/** Cuts at white space: the redaction would not recognize half a secret. */
function shortened(text: string): string {
  if (text.length <= maxTextLength) return text;
  const prefix = text.slice(0, maxTextLength);
  return `${prefix.slice(0, prefix.search(/\s\S*$/) + 1)}… (${text.length} characters)`;
}
