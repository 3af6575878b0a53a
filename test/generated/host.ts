/** The Envoys of a session: scripted, or real processes. */
import type { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import type { shutdownMachine } from '../../machines/agent/envoy/shutdown.machine.ts';
import type { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import type { AgentSettings } from '../../machines/agent/settings.ts';
import { StepNotPossible } from './driver.ts';
import { type Limit, pollWithin } from './limit.ts';

type EffectsOf<Machine> = Machine extends { provide(implementations: { actors?: infer Actors }): unknown }
  ? NonNullable<Actors>
  : never;

export type HostEpochEffects = EffectsOf<typeof epochMachine>;
export type HostSupervisorEffects = EffectsOf<typeof supervisorMachine>;
export type ShutdownEffects = EffectsOf<typeof shutdownMachine>;

/**
 * How an Envoy exits: on request, by SIGTERM or SIGKILL, or unexpectedly with code 0 or by a signal, the latter also after an unobserved hand-over.
 */
export type EnvoyEnd = 'on request' | 'killed' | 'with code 0' | 'by a signal' | 'after it took over';

/** Behavior of Envoys that a test specifies in advance. */
export interface HostPlan {
  /**
   * Result of the preparation. `good`: Envoy accepts the bootstrap. `refused`: Envoy rejects it. `outdated`: the certificates have changed.
   * `unwritable`: the file cannot be written. `unreachable`: a child cannot reach its control plane.
   */
  readonly bootstrap: 'good' | 'refused' | 'outdated' | 'unwritable' | 'unreachable';
  /** Whether there is a binary. */
  readonly spawns: boolean;
  /** Whether an Envoy ever becomes live. */
  readonly live: boolean;
  /** Whether it accepts requests, which get no response. */
  readonly takesRequests?: boolean;
}

export interface Host {
  /** The primary and the spare base ID. */
  readonly baseIds: readonly number[];
  /** Admin ports of these base IDs. */
  readonly adminPorts: Pick<AgentSettings, 'adminPort' | 'spareAdminPort'>;
  /** Digest of the certificates at their validation; null without certificates. */
  readonly certificates: string | null;
  readonly epochEffects: HostEpochEffects;
  readonly supervisorEffects: HostSupervisorEffects;
  readonly shutdownEffects: ShutdownEffects;
  /** Completes a preparation that is delayed before a process exists. */
  prepare(): void | Promise<void>;
  /** Epochs are identified by their actors' names. */
  live(name: string): void | Promise<void>;
  waits(name: string): void | Promise<void>;
  /** Makes the epoch live without a listener. */
  lacks(name: string): void | Promise<void>;
  /** Later Envoys become live only on order. */
  holdBack(): void;
  /** Epochs with a running process. */
  running(): readonly string[];
  end(name: string, how: EnvoyEnd): void | Promise<void>;
  /** Attaches a child, so that the parent exits on time. */
  attachChild(name: string): void | Promise<void>;
  /** Sets the result of the next drain orders. */
  drain(name: string, meets: 'a response' | 'an error' | 'no response'): void | Promise<void>;
  /** Makes the parent reject the next child. `repairable` determines whether a repair succeeds. */
  refuseNext(name: string, repairable: boolean): void | Promise<void>;
  /** Sets the number of requests in flight that an Envoy reports; it does not respond if `undefined`. */
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

/** Waits for an event. If it does not occur on this host, the test cannot run here. */
export async function waitForValue<Value>(
  description: string,
  poll: () => Value | undefined,
  limit: Limit,
): Promise<Value> {
  const value = await pollWithin(limit, poll);
  if (value === undefined) throw new StepNotPossible(`there is no ${description}`);
  return value;
}

/** Starts a session on a new host, and closes the host if that fails, because no other code refers to it yet. */
export async function beginOn<Begun>(
  kind: HostKind,
  plan: HostPlan,
  startSession: (host: Host) => Promise<Begun>,
): Promise<Begun> {
  const host = await kind.open(plan);
  try {
    return await startSession(host);
  } catch (error) {
    await host.close();
    throw error;
  }
}
