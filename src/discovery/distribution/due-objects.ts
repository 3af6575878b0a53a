/** Objects whose status must be updated are reported at the end of an evaluation. */
import { setBounded } from '../../model/collections/set-bounded.ts';

/** @param isUrgent whether to write the status immediately */
export type DueListener = (keys: readonly string[], isUrgent: boolean) => void;

/** Maximum for one version of an object within {@link urgentWindowMs}. */
const maxUrgentUpdates = 4;
const urgentWindowMs = 60_000;
const maxTrackedObjects = 4_096;

export class DueObjects {
  readonly #listeners = new Set<DueListener>();
  readonly #urgentUpdates = new Map<string, { readonly since: number; count: number }>();
  #dueKeys = new Map<string, boolean>();

  onDue(listener: DueListener): void {
    this.#listeners.add(listener);
  }

  /** Urgent updates are limited, so that a proxy that repeatedly connects, rejects and disconnects does not cause a write each time. */
  add(key: string, isUrgent: boolean, now: number): void {
    const previousUpdates = this.#urgentUpdates.get(key);
    const urgentUpdates =
      previousUpdates !== undefined && now - previousUpdates.since < urgentWindowMs
        ? previousUpdates
        : { since: now, count: 0 };
    if (isUrgent) urgentUpdates.count++;
    setBounded(this.#urgentUpdates, key, urgentUpdates, maxTrackedObjects);
    this.#dueKeys.set(key, isUrgent && urgentUpdates.count <= maxUrgentUpdates);
  }

  resetLimit(key: string): void {
    this.#urgentUpdates.delete(key);
  }

  flush(): void {
    const dueKeys = this.#dueKeys;
    this.#dueKeys = new Map();
    for (const [urgent, keys] of Map.groupBy(dueKeys.keys(), (key) => dueKeys.get(key)!)) {
      for (const listener of this.#listeners) listener(keys, urgent);
    }
  }
}
