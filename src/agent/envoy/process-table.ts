/** The table is outside the statecharts, so that Envoys of a failed chart are still ended. Only the process actor adds entries. */

export interface RunningEnvoy {
  readonly pid: number;
  readonly epoch: number;
  readonly baseId: number;
}

interface Child {
  readonly pid?: number | undefined;
  kill(signal: NodeJS.Signals): boolean;
  once(event: 'exit' | 'spawn' | 'error', listener: () => void): unknown;
  /** Absent if the process ends with this agent. */
  release?(): void;
}

export class ProcessTable {
  readonly #runningByChild = new Map<Child, RunningEnvoy>();
  #isHandedOver = false;

  /** Whether another agent takes over the Envoys, so that this agent ends none. */
  get isHandedOver(): boolean {
    return this.#isHandedOver;
  }

  /** @throws Error if an Envoy would end with this agent */
  handOver(): void {
    for (const [child, { epoch }] of this.#runningByChild) {
      if (child.release === undefined) throw new Error(`epoch ${epoch} cannot outlive this agent`);
    }
    this.#isHandedOver = true;
  }

  takeBack(): void {
    this.#isHandedOver = false;
  }

  /** Called before handed-over Envoys are adopted again. */
  clear(): void {
    this.#runningByChild.clear();
  }

  /** The entry exists from the spawn until the exit event. */
  add(child: Child, { epoch, baseId }: Pick<RunningEnvoy, 'epoch' | 'baseId'>): void {
    if (child.pid === undefined) return;
    // The PID of a process that is not a child of the agent is known only after `spawn`.
    const runningEnvoy = { epoch, baseId, pid: child.pid };
    this.#runningByChild.set(child, runningEnvoy);
    child.once('spawn', () => {
      runningEnvoy.pid = child.pid ?? runningEnvoy.pid;
    });
    child.once('error', () => this.#runningByChild.delete(child));
    child.once('exit', () => this.#runningByChild.delete(child));
  }

  list(): RunningEnvoy[] {
    return [...this.#runningByChild.values()];
  }

  killAll(): void {
    if (this.#isHandedOver) return;
    // Kill by handle, not by PID, which may be reused after the process was reaped.
    for (const child of this.#runningByChild.keys()) child.kill('SIGKILL');
  }

  /** @returns the processes that had to be killed */
  async endAll(limitMs = 10_000): Promise<RunningEnvoy[]> {
    if (this.#isHandedOver) return [];
    const remainingEnvoys = this.list();
    const exits = [...this.#runningByChild.keys()].map(
      (child) => new Promise<void>((resolve) => child.once('exit', () => resolve())),
    );
    this.killAll();
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise((resolve) => {
      timer = setTimeout(resolve, limitMs);
    });
    await Promise.race([Promise.all(exits), limit]);
    clearTimeout(timer);
    return remainingEnvoys;
  }
}
