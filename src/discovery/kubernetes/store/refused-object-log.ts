/** Rate-limited warnings of objects that exceed a limit: a namespace may have a hundred thousand of them. */
import type { ObjectKey } from './object-store.ts';

/** Of one kind in one namespace, one warning in this time. */
const quietMs = 60_000;
/** Kinds and namespaces that are remembered; beyond, all are forgotten, and may be logged again. */
const maxTold = 1_000;

/** Fields of a warning; `similar`: objects of the same kind and namespace since the last one. */
interface RefusedObject {
  readonly kind: string;
  readonly object: string;
  readonly reason: string;
  readonly similar?: number;
}

export class RefusedObjectLog {
  readonly #warn: (fields: RefusedObject) => void;
  readonly #now: () => number;
  /** When a kind of a namespace was logged, and how many objects were refused since. */
  readonly #told = new Map<string, { readonly at: number; since: number }>();

  /** @param now milliseconds, of any beginning */
  constructor(warn: (fields: RefusedObject) => void, now: () => number = () => performance.now()) {
    this.#warn = warn;
    this.#now = now;
  }

  /** @param reason a verb phrase: "is too large: …" */
  refused(kind: string, key: ObjectKey, reason: string): void {
    const place = `${kind} ${key.slice(0, key.indexOf('/'))}`;
    const last = this.#told.get(place);
    if (last !== undefined && this.#now() - last.at < quietMs) {
      last.since++;
      return;
    }
    if (this.#told.size >= maxTold) this.#told.clear();
    this.#told.set(place, { at: this.#now(), since: 0 });
    const similar = last?.since ?? 0;
    this.#warn({ kind, object: key, reason, ...(similar > 0 && { similar }) });
  }
}
