/** Limits running and waiting tasks; runs them in round-robin order by key (see FairQueue). */
import { FairQueue, type ShareKey } from './fair-queue.ts';

export interface FairTasksOptions {
  readonly maxRunning: number;
  /** Maximum concurrent tasks of one outermost key. Default: {@link maxRunning}. */
  readonly maxRunningOfKey?: number;
  readonly maxWaiting: number;
  readonly maxWaitingOfKey?: readonly (number | undefined)[];
}

export interface FairTask<Result> {
  readonly key: ShareKey;
  /** Among the tasks of one innermost key, a lower rank runs first. Default 0. */
  readonly rank?: number;
  /**
   * The task counts as running until the promise settles; `settle` may deliver the result earlier. A rejection before `settle` becomes the
   * result.
   */
  readonly run: (settle: (result: Result) => void) => Promise<void>;
  /**
   * Called instead of `run` if the queue rejects the task.
   * @param waitingCount number of waiting tasks
   */
  readonly reject: (waitingCount: number) => Result;
  /** Called instead of `run` if the signal is aborted first. By default, the task stays in the queue. */
  readonly cancelled?: () => Result;
}

interface WaitingTask {
  readonly key: ShareKey;
  readonly rank: number;
  readonly startTask: () => Promise<void>;
  readonly reject: () => void;
}

export class FairTasks {
  readonly #options: FairTasksOptions;
  readonly #queue: FairQueue<WaitingTask>;
  readonly #runningByKey = new Map<string, number>();
  #runningCount = 0;

  constructor(options: FairTasksOptions) {
    this.#options = options;
    const { maxWaiting, maxWaitingOfKey } = options;
    this.#queue = new FairQueue({
      maxItems: maxWaiting,
      ...(maxWaitingOfKey !== undefined && { maxOfKey: maxWaitingOfKey }),
      precedes: (one, other) => one.rank < other.rank,
    });
  }

  get waitingCount(): number {
    return this.#queue.size;
  }

  schedule<Result>({ key, rank = 0, run, reject, cancelled }: FairTask<Result>, signal?: AbortSignal): Promise<Result> {
    if (signal?.aborted === true && cancelled !== undefined) return Promise.resolve(cancelled());
    const { promise, resolve, reject: fail } = Promise.withResolvers<Result>();
    const waitingTask: WaitingTask = {
      ...{ key, rank },
      startTask: () => run(resolve).catch(fail),
      reject: () => resolve(reject(this.#queue.size)),
    };
    const cancelWaitingTask = (): void => {
      if (cancelled !== undefined && this.#queue.remove(waitingTask)) resolve(cancelled());
    };
    signal?.addEventListener('abort', cancelWaitingTask, { once: true });
    if (this.#hasSlot(key)) this.#start(waitingTask);
    else this.#queue.add(waitingTask, key)?.reject();
    return promise.finally(() => signal?.removeEventListener('abort', cancelWaitingTask));
  }

  #startNextTasks(): void {
    const nextTask = this.#queue.takeNext(({ key }) => this.#hasSlot(key));
    if (nextTask !== undefined) this.#start(nextTask);
  }

  #hasSlot([outermostKey = '']: ShareKey): boolean {
    const { maxRunning, maxRunningOfKey = maxRunning } = this.#options;
    return this.#runningCount < maxRunning && (this.#runningByKey.get(outermostKey) ?? 0) < maxRunningOfKey;
  }

  #start({ key: [outermostKey = ''], startTask }: WaitingTask): void {
    this.#changeRunningCount(outermostKey, 1);
    void startTask().finally(() => {
      this.#changeRunningCount(outermostKey, -1);
      this.#startNextTasks();
    });
  }

  #changeRunningCount(outermostKey: string, change: number): void {
    this.#runningCount += change;
    const count = (this.#runningByKey.get(outermostKey) ?? 0) + change;
    if (count === 0) this.#runningByKey.delete(outermostKey);
    else this.#runningByKey.set(outermostKey, count);
  }
}
