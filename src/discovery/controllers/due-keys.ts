/** Keys of objects that a duty must write. */
import { messageOf } from '../../runtime/errors.ts';
import type { DutyReport, DutyRun } from '../election/duty.ts';
import { ApiError } from '../kubernetes/api-failure.ts';

/** Limits the load on the API server. */
const maxConcurrentWrites = 4;

export class DueKeys {
  readonly #due = new Set<string>();
  readonly #failed = new Set<string>();
  readonly #watchers = new Set<() => void>();

  add(key: string): void {
    this.#due.add(key);
    for (const due of this.#watchers) due();
  }

  watch(due: () => void): () => void {
    this.#watchers.add(due);
    return () => void this.#watchers.delete(due);
  }

  get isDue(): boolean {
    return this.#due.size > 0;
  }

  /**
   * Tries each key once. Keys that remain at the end of the term are due in the next one.
   *
   * @param all returns every key, for the first run of a term
   * @param write returns whether it wrote something; throws like {@link WriteGate.write}
   */
  async write(
    run: DutyRun,
    all: () => Iterable<string>,
    write: (key: string) => Promise<boolean>,
  ): Promise<DutyReport> {
    const keys = new Set([...this.#due, ...(run.retry ? this.#failed : []), ...(run.anew ? all() : [])]);
    this.#due.clear();
    let [written, failed, reason] = [0, 0, ''];
    const remainingKeys = keys.values();
    const lane = async (): Promise<void> => {
      for (const key of remainingKeys) {
        this.#failed.delete(key);
        try {
          if (await write(key)) written++;
        } catch (error) {
          failed++;
          reason = messageOf(error);
          this.#failed.add(key);
          if (error instanceof ApiError && error.failure.kind === 'aborted') return;
        }
      }
    };
    await Promise.all(Array.from({ length: maxConcurrentWrites }, lane));
    // These keys remain because the term ended.
    for (const key of remainingKeys) this.#failed.add(key);
    return { written, failed, reason };
  }
}
