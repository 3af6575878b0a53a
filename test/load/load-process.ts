/**
 * A load run in a separate process, so that the test's concurrent work is not measured.
 *
 * The parent sends {@link LoadOrder}s over Node's IPC channel, and the child ({@link file://./load-child.ts}) responds with {@link LoadResponse}s.
 * The child exits with its parent.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { LoadPlan } from './plan.ts';
import type { LoadReport } from './report.ts';

export type LoadOrder =
  | { readonly type: 'load.start'; readonly plan: LoadPlan }
  | { readonly type: 'load.report' }
  | { readonly type: 'load.stop' };

export type LoadResponse =
  | { readonly type: 'load.started' }
  | { readonly type: 'load.failed'; readonly reason: string }
  | { readonly type: 'load.reported'; readonly report: LoadReport }
  | { readonly type: 'load.finished'; readonly report: LoadReport };

export interface LoadRun {
  readonly pid: number;
  /** The results so far. */
  report(): Promise<LoadReport>;
  /** Stops new requests, waits for those in flight, and reports. Then the process exits. Can be called again. */
  stop(): Promise<LoadReport>;
  /** Resolves with the report when the run has ended by its limits or was stopped; rejects if the process fails. */
  readonly finished: Promise<LoadReport>;
  /** Kills the process without a report, for the cleanup after a failed test. */
  kill(): void;
}

/**
 * Starts a load run; resolves when its clients are running.
 *
 * @param wrapperCommand command that runs another one, such as `nsenter --net=FILE`; default: none
 */
export async function startLoad(
  plan: LoadPlan,
  env: NodeJS.ProcessEnv = process.env,
  wrapperCommand: readonly string[] = [],
): Promise<LoadRun> {
  const [execPath = process.execPath, ...execArgv] =
    wrapperCommand.length === 0 ? [] : [...wrapperCommand, process.execPath];
  const child = fork(join(import.meta.dirname, 'load-child.ts'), { execPath, execArgv, env });
  const responses = new ResponseQueue(child);
  const finished = responses.next('load.finished').then(async ({ report }) => {
    await responses.exited;
    return report;
  });
  // A waiting caller gets the rejection, but there may be no caller.
  finished.catch(() => {});
  child.send({ type: 'load.start', plan } satisfies LoadOrder);
  await responses.next('load.started');

  const order = (message: LoadOrder): void => {
    if (child.connected) child.send(message);
  };
  return {
    pid: child.pid!,
    finished,
    async report() {
      order({ type: 'load.report' });
      return Promise.race([responses.next('load.reported').then(({ report }) => report), finished]);
    },
    stop() {
      order({ type: 'load.stop' });
      return finished;
    },
    kill: () => void child.kill('SIGKILL'),
  };
}

type Waiter = { type: LoadResponse['type']; resolve: (response: LoadResponse) => void; reject: (error: Error) => void };

/** Passes each response to the first caller that waits for its type. */
class ResponseQueue {
  readonly exited: Promise<void>;
  readonly #waiters: Waiter[] = [];
  #failure: Error | undefined;

  constructor(child: ChildProcess) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.exited = promise;
    child.on('message', (response: LoadResponse) => {
      if (response.type === 'load.failed') return this.#fail(new Error(`load generator: ${response.reason}`));
      const index = this.#waiters.findIndex(({ type }) => type === response.type);
      if (index >= 0) this.#waiters.splice(index, 1)[0]!.resolve(response);
    });
    // Not `exit`, because messages may still be in transit then.
    child.on('close', (code, signal) => {
      this.#fail(new Error(`the load generator's process ended early (${signal ?? `exit code ${code}`})`));
      resolve();
    });
  }

  next<Type extends LoadResponse['type']>(type: Type): Promise<Extract<LoadResponse, { type: Type }>> {
    const { promise, resolve, reject } = Promise.withResolvers<LoadResponse>();
    if (this.#failure === undefined) this.#waiters.push({ type, resolve, reject });
    else reject(this.#failure);
    return promise as Promise<Extract<LoadResponse, { type: Type }>>;
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiters.splice(0)) reject(this.#failure);
  }
}
