/** The spontaneous events of a host's Envoys and their times, random within measured bounds. */
import type { AnyActorRef } from 'xstate';
import { report } from '../../src/debugger/explore/scripted-effect.ts';
import type { SimulatedHost, SimulatedProcess } from '../../src/simulation/agent/simulated-host.ts';
import type { Nature } from './nature.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Measured maximums, and the interval of probes (src/agent/admin/live-probe.ts). */
const maxDurations = { adminMs: 400, liveMs: 2_500, probeMs: 300 };

export interface EnvoyTimesOptions {
  readonly host: SimulatedHost;
  readonly clock: VirtualClock;
  readonly nature: Nature;
  /** The actor that probes this Envoy. */
  probeOf(process: SimulatedProcess): AnyActorRef | undefined;
  /** Additional time until this Envoy is live. */
  slownessOf(pid: number): number;
}

/** Temporary conditions that affect the Envoys. */
export interface Circumstances {
  readonly sourcesAway: boolean;
  readonly deafToSigterm: boolean;
}

interface Arranged {
  readonly pid: number;
  readonly event: string;
  readonly timer: number;
}

export class EnvoyTimes {
  readonly #options: EnvoyTimesOptions;
  /** By process and kind. */
  readonly #scheduledEvents = new Map<string, Arranged>();

  constructor(options: EnvoyTimesOptions) {
    this.#options = options;
  }

  /** Schedules each process's next event, and no other. */
  arrange(circumstances: Circumstances): void {
    const { processes } = this.#options.host;
    for (const process of processes) this.#arrange(process, circumstances);
    for (const [key, { pid, timer }] of this.#scheduledEvents) {
      if (processes.some((process) => process.pid === pid)) continue;
      this.#options.clock.clearTimeout(timer);
      this.#scheduledEvents.delete(key);
    }
  }

  #arrange(process: SimulatedProcess, { sourcesAway, deafToSigterm }: Circumstances): void {
    const { host, nature } = this.#options;
    const { pid } = process;
    if (deafToSigterm && host.mayHang(process)) host.sendEvent(process, 'envoy.hung');
    const next = host.natureOf(process)?.event;
    const waits = next === 'envoy.went-live' && sourcesAway;
    if (next === undefined || waits) this.#disarm(`${pid}`);
    else {
      const draw = () => this.#delayOf(process);
      this.#arm({ key: `${pid}`, pid, event: next, draw, happen: () => host.sendEvent(process, next) });
    }
    if (!this.#isSeenByAgent(process)) this.#disarm(`${pid} seen`);
    else {
      const draw = () => nature.within(maxDurations.probeMs, `seen ${pid}`);
      this.#arm({ key: `${pid} seen`, pid, event: 'seen', draw, happen: () => this.see(process) });
    }
  }

  /** The delay is chosen once per event: other events do not extend it. */
  #arm(plan: { key: string; pid: number; event: string; draw: () => number; happen: () => void }): void {
    const { key, pid, event, draw, happen } = plan;
    if (this.#scheduledEvents.get(key)?.event === event) return;
    this.#disarm(key);
    const fire = () => {
      this.#scheduledEvents.delete(key);
      happen();
    };
    this.#scheduledEvents.set(key, { pid, event, timer: this.#options.clock.setTimeout(fire, draw()) });
  }

  #disarm(key: string): void {
    const arranged = this.#scheduledEvents.get(key);
    if (arranged === undefined) return;
    this.#options.clock.clearTimeout(arranged.timer);
    this.#scheduledEvents.delete(key);
  }

  #delayOf(process: SimulatedProcess): number {
    const { host, nature, slownessOf } = this.#options;
    const { event, withinMs = 0 } = host.natureOf(process)!;
    const { pid } = process;
    switch (event) {
      case 'envoy.admin-opened':
        return 20 + nature.upTo(maxDurations.adminMs, `admin ${pid}`);
      case 'envoy.went-live':
        return 5 + nature.upTo(maxDurations.liveMs, `live ${pid}`) + slownessOf(pid);
      default:
        return nature.within(withinMs, `${event} ${pid}`);
    }
  }

  #isSeenByAgent(process: SimulatedProcess): boolean {
    const { host, probeOf } = this.#options;
    return probeOf(process) !== undefined && process.isLive && host.hasAdmin(process) && !process.exitRequested;
  }

  /** Reports that a probe found the process live. */
  see(process: SimulatedProcess): void {
    const probe = this.#options.probeOf(process);
    if (probe === undefined) return;
    this.#options.host.markSeenLive(process);
    report(probe, { type: 'probe.passed', timeToLiveMs: 300, unseenMs: 300 });
  }
}
