/** Where a session's Envoys are: scripted, or processes. */
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
 * It goes the way it was sent, by SIGTERM or SIGKILL, or by itself: with code 0, or by a signal of its own; that one also after it took
 * over unseen.
 */
export type End = 'as told' | 'killed' | 'with code 0' | 'by a signal' | 'after it took over';

/** What a test says beforehand about its Envoys. */
export interface HostPlan {
  /**
   * The bootstrap is one that Envoy takes; `outdated`: but the certificates have changed; `unwritable`: but there is no room
   * for it; `unreachable`: but a child's control plane is away.
   */
  readonly bootstrap: 'good' | 'refused' | 'outdated' | 'unwritable' | 'unreachable';
  /** There is a binary. */
  readonly spawns: boolean;
  /** An Envoy is to be live at some time. */
  readonly live: boolean;
  /** It takes requests, which nobody ever answers. */
  readonly takesRequests?: boolean;
}

export interface Host {
  /** The first, and the spare one. */
  readonly baseIds: readonly number[];
  /** Of those. */
  readonly adminPorts: Pick<AgentSettings, 'adminPort' | 'spareAdminPort'>;
  /** What the certificates were when they were found good; null where there are none. */
  readonly certificates: string | null;
  readonly epochEffects: EpochEffects;
  readonly supervisorEffects: SupervisorEffects;
  readonly shutdownEffects: ShutdownEffects;
  /** Lets what is held before there is a process go on. */
  prepare(): void | Promise<void>;
  /** Epochs are known by their actors' names. */
  live(name: string): void | Promise<void>;
  waits(name: string): void | Promise<void>;
  /** It is live without a listener. */
  lacks(name: string): void | Promise<void>;
  /** Whoever starts from now on is not live until it is told. */
  holdBack(): void;
  /** Whose processes are there. */
  running(): readonly string[];
  end(name: string, how: End): void | Promise<void>;
  /** A child comes up beside it: for a parent that leaves as parents do. */
  attachChild(name: string): void | Promise<void>;
  /** What the next drain orders meet. */
  drain(name: string, meets: 'an answer' | 'a refusal' | 'nobody'): void | Promise<void>;
  /** The next child is refused by its parent; afterwards that can be repaired, or not. */
  refuseNext(name: string, repairable: boolean): void | Promise<void>;
  /** What an Envoy says of its requests in flight; undefined when it does not answer. */
  requests(name: string, inFlight: number | undefined): void | Promise<void>;
  close(): Promise<void>;
}

export interface HostKind {
  readonly name: string;
  /** How long what a test brings about may take here. */
  readonly limit: Limit;
  open(plan: HostPlan): Promise<Host>;
}

export const epochName = ({ epoch, baseId }: { epoch: number; baseId: number }, baseIds: readonly number[]): string =>
  `epoch-${epoch}${baseId === baseIds[1] ? 'b' : ''}`;

/** Waits for something that may never come here: then the test cannot be shown. */
export async function awaited<Value>(what: string, look: () => Value | undefined, limit: Limit): Promise<Value> {
  const found = await foundWithin(limit, look);
  if (found === undefined) throw new NotShown(`there is no ${what}`);
  return found;
}

/** What is begun on a host of its own, which is closed where that fails: nobody else knows of it yet. */
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
