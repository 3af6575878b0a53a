/** The Envoys of a session: scripted, or processes. */
import type { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import type { shutdownMachine } from '../../machines/agent/envoy/shutdown.machine.ts';
import type { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import type { AgentSettings } from '../../machines/agent/settings.ts';
import { NotShown } from './driver.ts';
import { foundWithin, type Limit } from './limit.ts';

type EffectsOf<Machine> = Machine extends { provide(implementations: { actors?: infer Actors }): unknown }
  ? NonNullable<Actors>
  : never;

export type EpochEffects = EffectsOf<typeof epochMachine>;
export type SupervisorEffects = EffectsOf<typeof supervisorMachine>;
export type ShutdownEffects = EffectsOf<typeof shutdownMachine>;

/**
 * It exits on request, by SIGTERM or SIGKILL, or by itself: with code 0, or by its own signal; the latter also after an unobserved
 * hand-over.
 */
export type End = 'as told' | 'killed' | 'with code 0' | 'by a signal' | 'after it took over';

/** What a test specifies in advance about its Envoys. */
export interface HostPlan {
  /**
   * `good`: Envoy accepts the bootstrap; `outdated`: but the certificates have changed; `unwritable`: but there is no space
   * for it; `unreachable`: but a child's control plane is unreachable.
   */
  readonly bootstrap: 'good' | 'refused' | 'outdated' | 'unwritable' | 'unreachable';
  /** There is a binary. */
  readonly spawns: boolean;
  /** An Envoy becomes live at some time. */
  readonly live: boolean;
  /** It accepts requests, which get no response. */
  readonly takesRequests?: boolean;
}

export interface Host {
  /** The first and the spare one. */
  readonly baseIds: readonly number[];
  /** Admin ports of these base IDs. */
  readonly adminPorts: Pick<AgentSettings, 'adminPort' | 'spareAdminPort'>;
  /** Digest of the certificates when they were found valid; null without certificates. */
  readonly certificates: string | null;
  readonly epochEffects: EpochEffects;
  readonly supervisorEffects: SupervisorEffects;
  readonly shutdownEffects: ShutdownEffects;
  /** Releases a preparation that is held before there is a process. */
  prepare(): void | Promise<void>;
  /** Epochs are identified by their actors' names. */
  live(name: string): void | Promise<void>;
  waits(name: string): void | Promise<void>;
  /** It is live without a listener. */
  lacks(name: string): void | Promise<void>;
  /** Envoys that start after this call become live only on order. */
  holdBack(): void;
  /** Epochs with a running process. */
  running(): readonly string[];
  end(name: string, how: End): void | Promise<void>;
  /** A child attaches to it: for a parent that exits on time. */
  attachChild(name: string): void | Promise<void>;
  /** The outcome of the next drain orders. */
  drain(name: string, meets: 'an answer' | 'a refusal' | 'nobody'): void | Promise<void>;
  /** Its parent rejects the next child; afterwards that can be repaired, or not. */
  refuseNext(name: string, repairable: boolean): void | Promise<void>;
  /** Requests in flight, as reported by an Envoy; undefined when it does not respond. */
  requests(name: string, inFlight: number | undefined): void | Promise<void>;
  close(): Promise<void>;
}

export interface HostKind {
  readonly name: string;
  /** Time limit for an event that a test triggers. */
  readonly limit: Limit;
  open(plan: HostPlan): Promise<Host>;
}

export const epochName = ({ epoch, baseId }: { epoch: number; baseId: number }, baseIds: readonly number[]): string =>
  `epoch-${epoch}${baseId === baseIds[1] ? 'b' : ''}`;

/** Waits for an event that may never happen here: then the test cannot be shown. */
export async function awaited<Value>(what: string, look: () => Value | undefined, limit: Limit): Promise<Value> {
  const found = await foundWithin(limit, look);
  if (found === undefined) throw new NotShown(`there is no ${what}`);
  return found;
}

/** Begins on a new host, and closes the host on failure, because no other code refers to it yet. */
export async function beginOn<Begun>(
  kind: HostKind,
  plan: HostPlan,
  begin: (host: Host) => Promise<Begun>,
): Promise<Begun> {
  const host = await kind.open(plan);
  try {
    return await begin(host);
  } catch (error) {
    await host.close();
    throw error;
  }
}
