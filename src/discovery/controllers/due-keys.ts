/** Keys of objects that a duty must write. */
import { messageOf } from '../../runtime/errors.ts';
import type { DutyReport, DutyRun } from '../election/duty.ts';
import { ApiError } from '../kubernetes/api-failure.ts';

/** Limits the load on the API server. */
const maxConcurrentWrites = 4;

export class DueKeys {
  readonly #dueKeys = new Set<string>();
  readonly #failedKeys = new Set<string>();
  readonly #watchers = new Set<() => void>();

  add(key: string): void {
    this.#dueKeys.add(key);
    for (const notifyDue of this.#watchers) notifyDue();
  }

  watch(onDue: () => void): () => void {
    this.#watchers.add(onDue);
    return () => void this.#watchers.delete(onDue);
  }

  get isDue(): boolean {
    return this.#dueKeys.size > 0;
  }

  /**
   * Keys that remain at the end of the term are due in the next one.
   *
   * @param listAllKeys returns every key, for the first run of a term
   * @param write returns whether it wrote something; throws like {@link WriteGate.write}
   */
  async write(
    run: DutyRun,
    listAllKeys: () => Iterable<string>,
    write: (key: string) => Promise<boolean>,
  ): Promise<DutyReport> {
    const keys = new Set([
      ...this.#dueKeys,
      ...(run.retry ? this.#failedKeys : []),
      ...(run.includesAll ? listAllKeys() : []),
    ]);
    this.#dueKeys.clear();
    let [writtenCount, failedCount, reason] = [0, 0, ''];
    const remainingKeys = keys.values();
    const runWorker = async (): Promise<void> => {
      for (const key of remainingKeys) {
        this.#failedKeys.delete(key);
        try {
          if (await write(key)) writtenCount++;
        } catch (error) {
          failedCount++;
          reason = messageOf(error);
          this.#failedKeys.add(key);
          if (error instanceof ApiError && error.failure.kind === 'aborted') return;
        }
      }
    };
    await Promise.all(Array.from({ length: maxConcurrentWrites }, runWorker));
    for (const key of remainingKeys) this.#failedKeys.add(key);
    return { writtenCount, failedCount, reason };
  }
}
