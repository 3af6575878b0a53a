/**
 * Every Envoy that was started and has not been seen to exit. It lies outside the statecharts: whatever a failed chart
 * leaves behind is ended from here (design.md, "a safety net under the charts"). The process effect alone enters processes; an agent's
 * replacement says whether they are left to another agent, which has to hold in the same instant, also where no chart runs any more. Nothing else
 * is decided by it: who lives the charts are told by events.
 */

export interface RunningEnvoy {
  readonly pid: number;
  readonly epoch: number;
  readonly baseId: number;
}

/** What the table needs of a process. */
interface Child {
  readonly pid?: number | undefined;
  kill(signal: NodeJS.Signals): boolean;
  once(event: 'exit' | 'spawn' | 'error', listener: () => void): unknown;
  /** This agent waits for the process no more, and lets it run on. Absent: the process ends with this agent. */
  letGo?(): void;
}

export class ProcessTable {
  readonly #running = new Map<Child, RunningEnvoy>();
  #letsGo = false;

  /** What runs is for another agent to go on with: nothing of it is ended from here. */
  get letsGo(): boolean {
    return this.#letsGo;
  }

  /** @throws Error when one of them would end with this agent */
  letGo(): void {
    for (const [child, { epoch }] of this.#running) {
      if (child.letGo === undefined) throw new Error(`epoch ${epoch} cannot outlive this agent`);
    }
    this.#letsGo = true;
  }

  /** What runs is this agent's. */
  keep(): void {
    this.#letsGo = false;
  }

  /** What was let go is adopted anew. */
  forget(): void {
    this.#running.clear();
  }

  /** From the moment of its spawn until its exit event the process is in the table. */
  add(child: Child, { epoch, baseId }: Pick<RunningEnvoy, 'epoch' | 'baseId'>): void {
    if (child.pid === undefined) return;
    // The number of a process that is not our own child is known a moment later.
    const running = { epoch, baseId, pid: child.pid };
    this.#running.set(child, running);
    child.once('spawn', () => {
      running.pid = child.pid ?? running.pid;
    });
    child.once('error', () => this.#running.delete(child));
    child.once('exit', () => this.#running.delete(child));
  }

  list(): RunningEnvoy[] {
    return [...this.#running.values()];
  }

  /** For the moment in which the agent itself ends: nothing can be waited for any more. */
  killAll(): void {
    if (this.#letsGo) return;
    // The handle's kill, not the number's: a reaped process's number may be another one's already.
    for (const child of this.#running.keys()) child.kill('SIGKILL');
  }

  /**
   * Ends what is left and waits until it is gone.
   *
   * @returns the processes that had to be ended
   */
  async endAll(limitMs = 10_000): Promise<RunningEnvoy[]> {
    if (this.#letsGo) return [];
    const left = this.list();
    const exits = [...this.#running.keys()].map(
      (child) => new Promise<void>((resolve) => child.once('exit', () => resolve())),
    );
    this.killAll();
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise((resolve) => {
      timer = setTimeout(resolve, limitMs);
    });
    await Promise.race([Promise.all(exits), limit]);
    clearTimeout(timer);
    return left;
  }
}
