/** Sidecars in several processes that connect one after another to the same server. */
import { setPriority } from 'node:os';
import type { FleetPlan, FleetReturn } from '../../sidecars/fleet.ts';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import type { Programs } from '../programs.ts';
import type { MeshChange } from './mesh-files.ts';
import { kindOfChange } from './push-run.ts';
import type { PushServer } from './servers.ts';

const openTimeoutMs = 600_000;
const returnTimeoutMs = 900_000;

export class Crowd {
  readonly #programs: Programs;
  readonly #port: number;
  readonly #plan: Partial<FleetPlan>;
  readonly #priority: number;
  readonly #fleets: FleetProcess[] = [];
  #size = 0;

  /**
   * @param plan overrides of the default plan
   * @param priority argument of `setPriority`: a higher number is a lower priority
   */
  constructor(programs: Programs, port: number, plan: Partial<FleetPlan> = {}, priority = 0) {
    this.#priority = priority;
    this.#programs = programs;
    this.#port = port;
    this.#plan = plan;
  }

  get size(): number {
    return this.#size;
  }

  /** Connects sidecars, each with its own address. @returns milliseconds until all of them had all resources */
  async grow(sidecars: number): Promise<number> {
    const fleet = new FleetProcess(this.#programs.env);
    this.#programs.onEnd(() => fleet.end());
    await fleet.ready();
    if (this.#priority !== 0) setPriority(fleet.pid, this.#priority);
    const { openedAtMs, fullAtMs } = await fleet.open(
      {
        port: this.#port,
        protocol: 'delta',
        sidecars,
        firstNumber: this.#size,
        hasOwnAddresses: true,
        reconnects: true,
        ...this.#plan,
      },
      openTimeoutMs,
    );
    this.#fleets.push(fleet);
    this.#size += sidecars;
    return fullAtMs - openedAtMs;
  }

  /** @returns milliseconds until the last sidecar has acknowledged the change */
  async acknowledge(server: PushServer, change: MeshChange, mark: string): Promise<number> {
    const expectedChange = { kind: kindOfChange[change], mark };
    const changedAt = Promise.withResolvers<number>();
    let remainingFleets = this.#fleets.length;
    const all = this.#fleets.map((fleet) =>
      fleet.acknowledge(expectedChange, async () => {
        // All processes are waiting for the change.
        if (--remainingFleets === 0) changedAt.resolve(server.change(change, mark));
        await changedAt.promise;
      }),
    );
    return Math.max(...(await Promise.all(all))) - (await changedAt.promise);
  }

  async messageBytes(): Promise<number> {
    const counts = await Promise.all(this.#fleets.map((fleet) => fleet.counts()));
    return counts.reduce((sum, { messageBytes }) => sum + messageBytes, 0);
  }

  /** Interrupts the server. @returns how the sidecars reconnected */
  async returnAfter(interruption: () => Promise<void>): Promise<FleetReturn> {
    const startSignal = Promise.withResolvers<void>();
    let remainingFleets = this.#fleets.length;
    const all = this.#fleets.map((fleet) =>
      fleet.returnAfter(async () => {
        if (--remainingFleets === 0) startSignal.resolve(interruption());
        await startSignal.promise;
      }, returnTimeoutMs),
    );
    const returns = await Promise.all(all);
    const reasons: Record<string, number> = {};
    for (const fleetReturn of returns) {
      for (const [reason, count] of Object.entries(fleetReturn.reasons))
        reasons[reason] = (reasons[reason] ?? 0) + count;
    }
    return {
      fullAtMs: returns.flatMap(({ fullAtMs }) => fullAtMs).toSorted((a, b) => a - b),
      attempts: returns.reduce((sum, { attempts }) => sum + attempts, 0),
      reasons,
    };
  }

  async end(): Promise<void> {
    await Promise.all(this.#fleets.map((fleet) => fleet.end()));
  }
}
