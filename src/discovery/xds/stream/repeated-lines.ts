/** Rate-limits warnings that a client can cause repeatedly. */
import type { EventOfLevel } from '../../../runtime/log-events/log-events.ts';
import type { Logger } from '../../../runtime/output/log.ts';

const repeatAfterMs = 60_000;
const maxKinds = 32;

type Warning = EventOfLevel<'warn'>;

interface LineKind {
  readonly event: Warning;
  readonly fields: object;
  /** Time from which the next line may be written. */
  readonly nextLineAt: number;
  readonly omittedCount: number;
  readonly lastAt: number;
  readonly isWritten: boolean;
}

/** Writes the first line of each kind, then at most one per {@link repeatAfterMs}, with the number of omitted lines (`repeated`). */
export class RepeatedLines {
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #now: () => number;
  readonly #kinds = new Map<string, LineKind>();

  readonly #minPersistenceMs: number;

  /** @param minPersistenceMs a line is written only if the failure still occurs this long after its first occurrence */
  constructor(logger: Pick<Logger, 'warn'>, now: () => number, minPersistenceMs = 0) {
    this.#logger = logger;
    this.#now = now;
    this.#minPersistenceMs = minPersistenceMs;
  }

  warn(kind: string, event: Warning, fields: object): void {
    const key = this.#kinds.has(kind) || this.#kinds.size < maxKinds ? kind : '';
    const now = this.#now();
    const previousLine = this.#kinds.get(key);
    const isPeriodOver =
      this.#minPersistenceMs > 0 && previousLine !== undefined && now - previousLine.lastAt > repeatAfterMs;
    const activeRepeat = isPeriodOver ? undefined : previousLine;
    if (activeRepeat === undefined ? this.#minPersistenceMs > 0 : now < activeRepeat.nextLineAt) {
      const { nextLineAt, omittedCount, isWritten } = activeRepeat ?? {
        nextLineAt: now + this.#minPersistenceMs,
        omittedCount: 0,
        isWritten: false,
      };
      this.#kinds.set(key, { event, fields, nextLineAt, omittedCount: omittedCount + 1, lastAt: now, isWritten });
      return;
    }
    this.#write(event, fields, activeRepeat?.omittedCount ?? 0);
    this.#kinds.set(key, {
      event,
      fields,
      nextLineAt: now + repeatAfterMs,
      omittedCount: 0,
      lastAt: now,
      isWritten: true,
    });
  }

  end(): void {
    for (const { event, fields, omittedCount, isWritten } of this.#kinds.values()) {
      if (isWritten && omittedCount > 0) this.#write(event, fields, omittedCount);
    }
    this.#kinds.clear();
  }

  #write(event: Warning, fields: object, omittedCount: number): void {
    this.#logger.warn(event, omittedCount === 0 ? fields : { ...fields, repeated: omittedCount });
  }
}
