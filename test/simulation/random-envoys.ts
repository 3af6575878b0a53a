/** The spontaneous events of a host's Envoys and their times, random within measured bounds. */
import type { AnyActorRef } from 'xstate';
import { reportEvent } from '../../src/debugger/explore/scripted-effect.ts';
import type { SimulatedHost, SimulatedProcess } from '../../src/simulation/agent/simulated-host.ts';
import type { RandomDurations } from './nature.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Measured maximums, and the interval of probes (src/agent/admin/live-probe.ts). */
const maxDurations = { adminMs: 400, liveMs: 2_500, probeMs: 300 };

export interface EnvoyTimesOptions {
  readonly host: SimulatedHost;
  readonly clock: VirtualClock;
  readonly durations: RandomDurations;
  /** The actor that probes this Envoy. */
  probeOf(process: SimulatedProcess): AnyActorRef | undefined;
  /** Additional time until this Envoy is live. */
  slownessOf(pid: number): number;
}

/** Temporary conditions that affect the Envoys. */
export interface EnvoyConditions {
  readonly sourcesAway: boolean;
  readonly deafToSigterm: boolean;
}

interface ScheduledEnvoyEvent {
  readonly pid: number;
  readonly event: string;
  readonly timer: number;
}

export class EnvoyTimes {
  readonly #options: EnvoyTimesOptions;
  /** By process and kind. */
  readonly #scheduledEvents = new Map<string, ScheduledEnvoyEvent>();

  constructor(options: EnvoyTimesOptions) {
    this.#options = options;
  }

  /** Schedules each process's next event, and no other. */
  scheduleEvents(circumstances: EnvoyConditions): void {
    const { processes } = this.#options.host;
    for (const process of processes) this.#scheduleEvent(process, circumstances);
    for (const [key, { pid, timer }] of this.#scheduledEvents) {
      if (processes.some((process) => process.pid === pid)) continue;
      this.#options.clock.clearTimeout(timer);
      this.#scheduledEvents.delete(key);
    }
  }

  #scheduleEvent(process: SimulatedProcess, { sourcesAway, deafToSigterm }: EnvoyConditions): void {
    const { host, durations } = this.#options;
    const { pid } = process;
    if (deafToSigterm && host.mayHang(process)) host.sendEvent(process, 'envoy.hung');
    const next = host.natureOf(process)?.event;
    const waits = next === 'envoy.went-live' && sourcesAway;
    if (next === undefined || waits) this.#cancelEvent(`${pid}`);
    else {
      const draw = () => this.#delayOf(process);
      this.#armTimer({ key: `${pid}`, pid, event: next, draw, happen: () => host.sendEvent(process, next) });
    }
    if (!this.#isSeenByAgent(process)) this.#cancelEvent(`${pid} seen`);
    else {
      const draw = () => durations.drawUniform(maxDurations.probeMs, `seen ${pid}`);
      this.#armTimer({ key: `${pid} seen`, pid, event: 'seen', draw, happen: () => this.reportLive(process) });
    }
  }

  /** The delay is chosen once per event: other events do not extend it. */
  #armTimer(plan: { key: string; pid: number; event: string; draw: () => number; happen: () => void }): void {
    const { key, pid, event, draw, happen } = plan;
    if (this.#scheduledEvents.get(key)?.event === event) return;
    this.#cancelEvent(key);
    const fire = () => {
      this.#scheduledEvents.delete(key);
      happen();
    };
    this.#scheduledEvents.set(key, { pid, event, timer: this.#options.clock.setTimeout(fire, draw()) });
  }

  #cancelEvent(key: string): void {
    const arranged = this.#scheduledEvents.get(key);
    if (arranged === undefined) return;
    this.#options.clock.clearTimeout(arranged.timer);
    this.#scheduledEvents.delete(key);
  }

  #delayOf(process: SimulatedProcess): number {
    const { host, durations, slownessOf } = this.#options;
    const { event, withinMs = 0 } = host.natureOf(process)!;
    const { pid } = process;
    switch (event) {
      case 'envoy.admin-opened':
        return 20 + durations.drawMostlyShort(maxDurations.adminMs, `admin ${pid}`);
      case 'envoy.went-live':
        return 5 + durations.drawMostlyShort(maxDurations.liveMs, `live ${pid}`) + slownessOf(pid);
      default:
        return durations.drawUniform(withinMs, `${event} ${pid}`);
    }
  }

  #isSeenByAgent(process: SimulatedProcess): boolean {
    const { host, probeOf } = this.#options;
    return probeOf(process) !== undefined && process.isLive && host.hasAdmin(process) && !process.exitRequested;
  }

  /** Reports that a probe found the process live. */
  reportLive(process: SimulatedProcess): void {
    const probe = this.#options.probeOf(process);
    if (probe === undefined) return;
    this.#options.host.markSeenLive(process);
    reportEvent(probe, { type: 'probe.passed', timeToLiveMs: 300, unseenMs: 300 });
  }
}
