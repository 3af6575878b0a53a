/** What of a duty is still to be written, by key: what duties that write one object for each of something have in common. */
import { messageOf } from '../../runtime/errors.ts';
import type { DutyReport, DutyRun } from '../election/duty.ts';
import { ApiError } from '../kubernetes/api-failure.ts';

/** Writes under way at the same time: more would be the storm that starves others of the API server. */
const writesAtOnce = 4;

export class DueKeys {
  readonly #due = new Set<string>();
  /** Tried in vain. */
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
   * Tries each key once. What was not written for the end of the term is due in the next one.
   *
   * @param all that there are, for a run that begins anew
   * @param write whether there was something to be written; throws what {@link WriteGate.write} does
   */
  async write(
    run: DutyRun,
    all: () => Iterable<string>,
    write: (key: string) => Promise<boolean>,
  ): Promise<DutyReport> {
    const keys = new Set([...this.#due, ...(run.retry ? this.#failed : []), ...(run.anew ? all() : [])]);
    this.#due.clear();
    let [written, failed, reason] = [0, 0, ''];
    const left = keys.values();
    const lane = async (): Promise<void> => {
      for (const key of left) {
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
    await Promise.all(Array.from({ length: writesAtOnce }, lane));
    // The term is over before these had their turn.
    for (const key of left) this.#failed.add(key);
    return { written, failed, reason };
  }
}
