import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { SearchOptions, SearchResult } from '../simulation/random-search.ts';

export type SearchBatch = Pick<SearchOptions, 'seed' | 'runs'>;

/**
 * Searches random schedules on a separate thread, with XState's production build, because its development build is
 * slower.
 */
export class SearchThread {
  readonly #worker = new Worker(fileURLToPath(new URL('./search-thread-main.ts', import.meta.url)), {
    execArgv: [],
    // Many snapshots are allocated and soon released.
    resourceLimits: { maxYoungGenerationSizeMb: 64 },
  });

  /** One batch at a time. */
  search(batch: SearchBatch): Promise<SearchResult> {
    return new Promise((resolve, reject) => {
      this.#worker.once('error', reject);
      this.#worker.once('message', (result: SearchResult) => {
        this.#worker.off('error', reject);
        resolve(result);
      });
      this.#worker.postMessage(batch);
    });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}
