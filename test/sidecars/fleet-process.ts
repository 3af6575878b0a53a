/**
 * A {@link Fleet} in a separate process, so that the benchmark's work is not measured. The parent sends {@link FleetOrder}s over Node's IPC channel;
 * the child ({@link file://./fleet-child.ts}) responds to each with a {@link FleetResponse} in the same order. The child exits with its parent.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { FleetCounts, FleetMark, FleetPlan, FleetReturn } from './fleet.ts';
import type { Kind } from './xds-types.ts';

export type FleetOrder =
  | { readonly type: 'ready' }
  | { readonly type: 'open'; readonly plan: FleetPlan; readonly timeoutMs: number }
  | ({ readonly type: 'mark'; readonly timeoutMs: number } & FleetMark)
  | { readonly type: 'marked' }
  | { readonly type: 'counts' }
  /** Sent before the server stops. */
  | { readonly type: 'await-return'; readonly timeoutMs: number }
  | { readonly type: 'return' }
  /** Writes the latest responses of the first sidecar to files `CDS.bin` and so on in a folder. */
  | { readonly type: 'save'; readonly folder: string };

export type FleetResponse =
  | { readonly type: 'ready' }
  | {
      readonly type: 'opened';
      readonly openedAtMs: number;
      readonly firstAtMs: number;
      readonly fullAtMs: number;
      readonly sizes: Record<Kind, number>;
    }
  | { readonly type: 'awaiting' }
  | { readonly type: 'acknowledged'; readonly atMs: number }
  | ({ readonly type: 'returned' } & FleetReturn)
  | { readonly type: 'counted'; readonly counts: FleetCounts }
  | { readonly type: 'saved' }
  | { readonly type: 'failed'; readonly reason: string };

type ResponseOf<Type extends FleetResponse['type']> = Extract<FleetResponse, { type: Type }>;

export class FleetProcess {
  readonly #child: ChildProcess;
  readonly #waiters: { resolve: (response: FleetResponse) => void; reject: (error: Error) => void }[] = [];
  readonly #ended: Promise<void>;
  #failure: Error | undefined;

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#child = fork(join(import.meta.dirname, 'fleet-child.ts'), { execArgv: [], env });
    this.#ended = new Promise((resolve) => this.#child.once('close', () => resolve()));
    this.#child.on('message', (response: FleetResponse) => {
      if (response.type === 'failed') this.#fail(new Error(`the sidecars: ${response.reason}`));
      else this.#waiters.shift()?.resolve(response);
    });
    this.#child.on('close', (code, signal) => this.#fail(new Error(`the sidecars ended with ${signal ?? code}`)));
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Resolves when the process has started. */
  async ready(): Promise<void> {
    await this.#send<'ready'>({ type: 'ready' });
  }

  /** Opens all streams; resolves when each has received all resources. May be called before the server listens. */
  open(plan: FleetPlan, timeoutMs = 180_000): Promise<ResponseOf<'opened'>> {
    return this.#send({ type: 'open', plan, timeoutMs });
  }

  /**
   * Makes a change and waits until every sidecar has acknowledged a response of the kind that contains the mark.
   *
   * @returns time of the last acknowledgement, by `nowMs`
   */
  async acknowledge(mark: FleetMark, change: () => void | Promise<void>, timeoutMs = 60_000): Promise<number> {
    await this.#send<'awaiting'>({ type: 'mark', timeoutMs, ...mark });
    await change();
    return (await this.#send<'acknowledged'>({ type: 'marked' })).atMs;
  }

  async counts(): Promise<FleetCounts> {
    return (await this.#send<'counted'>({ type: 'counts' })).counts;
  }

  /** Interrupts the server and waits until the sidecars have reconnected. @returns the reconnections */
  async returnAfter(interruption: () => Promise<void>, timeoutMs: number): Promise<FleetReturn> {
    await this.#send<'awaiting'>({ type: 'await-return', timeoutMs });
    await interruption();
    return this.#send<'returned'>({ type: 'return' });
  }

  async save(folder: string): Promise<void> {
    await this.#send<'saved'>({ type: 'save', folder });
  }

  async end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #send<Type extends FleetResponse['type']>(order: FleetOrder): Promise<ResponseOf<Type>> {
    const { promise, resolve, reject } = Promise.withResolvers<FleetResponse>();
    if (this.#failure === undefined) {
      this.#waiters.push({ resolve, reject });
      this.#child.send(order);
    } else reject(this.#failure);
    return promise as Promise<ResponseOf<Type>>;
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiters.splice(0)) reject(this.#failure);
  }
}
