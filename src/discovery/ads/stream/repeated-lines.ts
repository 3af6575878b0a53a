/** Warnings that a client can bring about as often as it likes. */
import type { Logger } from '../../../runtime/output/log.ts';

/** Between two lines of one kind. */
const repeatAfterMs = 60_000;
/** Kinds that are told apart; all others are one. */
const maxKinds = 32;

interface Kind {
  readonly message: string;
  readonly fields: object;
  /** When the next line may be written. */
  next: number;
  /** How many were not written since the last one. */
  leftOut: number;
}

/** Lines that repeat: of each kind the first is written, then at most one in {@link repeatAfterMs}, which says how many there were meanwhile. */
export class RepeatedLines {
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #kinds = new Map<string, Kind>();

  /** @param now milliseconds */
  constructor(logger: Logger, now: () => number) {
    this.#logger = logger;
    this.#now = now;
  }

  warn(kind: string, message: string, fields: object): void {
    const key = this.#kinds.has(kind) || this.#kinds.size < maxKinds ? kind : '';
    const now = this.#now();
    const known = this.#kinds.get(key);
    if (known !== undefined && now < known.next) {
      known.leftOut++;
      return;
    }
    this.#write(message, fields, known?.leftOut ?? 0);
    this.#kinds.set(key, { message, fields, next: now + repeatAfterMs, leftOut: 0 });
  }

  /** Says how many were left out, for there will be no more. */
  end(): void {
    for (const { message, fields, leftOut } of this.#kinds.values()) this.#write(message, fields, leftOut, leftOut > 0);
    this.#kinds.clear();
  }

  #write(message: string, fields: object, leftOut: number, isDue = true): void {
    if (isDue) this.#logger.warn(message, leftOut === 0 ? fields : { ...fields, repeated: leftOut });
  }
}
