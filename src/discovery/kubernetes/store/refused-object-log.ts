/** Warnings are rate-limited, because a namespace can have a hundred thousand rejected objects. */
import type { ObjectKey } from './object-store.ts';

const minIntervalMs = 60_000;
/** Beyond this number of kinds and namespaces, the cache is cleared and warnings may be repeated. */
const maxTrackedObjects = 1_000;

/** `similar` is the number of rejected objects with the same kind and namespace since the last warning. */
interface RejectionFields {
  readonly kind: string;
  readonly object: string;
  readonly reason: string;
  readonly similar?: number;
}

export class RejectedObjectLog {
  readonly #warn: (fields: RejectionFields) => void;
  readonly #now: () => number;
  readonly #lastWarnings = new Map<string, { readonly warnedAt: number; suppressedCount: number }>();

  constructor(warn: (fields: RejectionFields) => void, now: () => number = () => performance.now()) {
    this.#warn = warn;
    this.#now = now;
  }

  /** @param reason verb phrase, such as "is too large: …" */
  report(kind: string, key: ObjectKey, reason: string): void {
    const namespaceKey = `${kind} ${key.slice(0, key.indexOf('/'))}`;
    const lastWarning = this.#lastWarnings.get(namespaceKey);
    if (lastWarning !== undefined && this.#now() - lastWarning.warnedAt < minIntervalMs) {
      lastWarning.suppressedCount++;
      return;
    }
    if (this.#lastWarnings.size >= maxTrackedObjects) this.#lastWarnings.clear();
    this.#lastWarnings.set(namespaceKey, { warnedAt: this.#now(), suppressedCount: 0 });
    const similarCount = lastWarning?.suppressedCount ?? 0;
    this.#warn({ kind, object: key, reason, ...(similarCount > 0 && { similar: similarCount }) });
  }
}
