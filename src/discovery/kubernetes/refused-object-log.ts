/** Warns of objects that exceed a limit, so that a namespace with a hundred thousand of them does not fill the log as well. */
import type { ObjectKey } from './object-store.ts';

/** Of one kind in one namespace, one warning in this time. */
const quietMs = 60_000;
/** Kinds and namespaces that are told apart; beyond, all are forgotten, and may be warned of again. */
const maxTold = 1_000;

export class RefusedObjectLog {
  readonly #warn: (message: string) => void;
  readonly #now: () => number;
  /** When a kind of a namespace was warned of, and how many objects were refused since. */
  readonly #told = new Map<string, { readonly at: number; since: number }>();

  /** @param now milliseconds, of any beginning */
  constructor(warn: (message: string) => void, now: () => number = () => performance.now()) {
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
    const more = last?.since ? ` (and ${last.since} more of this kind and namespace since the last warning)` : '';
    this.#told.set(place, { at: this.#now(), since: 0 });
    this.#warn(`${kind} ${key} ${reason}${more}`);
  }
}
