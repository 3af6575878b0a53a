/** What an epoch knows, and what its effects are told and answer. */

export interface EpochInput {
  /** Name of this actor, which goes into every report. */
  name: string;
  /** Envoy's --restart-epoch. */
  epoch: number;
  baseId: number;
  /** Port of the admin interface: the parent's, or the one that was configured; 0: a free one is chosen when the epoch is prepared. */
  adminPort: number;
  /** Which Envoy: see `binary.changed`. */
  binary: string;
  /** Let Envoy check its bootstrap before it is started for real (`--mode validate`). */
  validate: boolean;
  /** SHA-256 of the watched files that were found good: it is not started with others. Null: with whatever is there. */
  certificates: string | null;
  parentGraceMs: number;
  healthyMs: number;
  /** The Envoy runs already, started by an agent before this one; absent: it is to be started. */
  adopted?: AdoptedRun;
}

/** What is known of an Envoy that another agent has started. */
export interface AdoptedRun {
  /** The bootstrap that it runs. */
  configFile: string;
  /** The Envoy has been seen to be live: nobody asks its admin interface, which its child may have closed. */
  live: boolean;
  /** When its start was ordered, by the clock of the host. */
  startedAtMs: number;
}

export interface EpochContext extends EpochInput {
  configFile: string;
  /** How long it may linger once it is replaced. */
  lingerMs: number;
  /** The Envoy's parent died before its time: its main thread will be blocked, and deaf to SIGTERM. */
  doomed: boolean;
  /** The order to reopen access logs came before Envoy could hear it. */
  reopens: boolean;
  /** The order to look came before the process was reported to be there. */
  asked: boolean;
  /** When its start was ordered, by this agent or another one: by a clock that they share. */
  startedAtMs: number;
  /** The parent-shutdown time, as it was when the child was seen to be live. */
  parentShutdownMs: number;
  /** How long the child may have been live when that was seen. */
  unseenMs: number;
}

/** What the life of an Envoy is in, for whoever shows it: a tag of each state. */
export type EpochPhase = 'starting' | 'live' | 'draining' | 'retiring' | 'ending' | 'gone';

/** What is to be prepared, and how carefully. */
export type PrepareOrder = EpochRun &
  Pick<EpochInput, 'binary' | 'validate' | 'certificates' | 'adopted'> & {
    /** The control plane must be within reach, and has so long to show it; null: nobody needs it. */
    controlPlaneLimitMs: number | null;
  };

/**
 * What became of the preparation: a bootstrap file, and the port of the admin interface that it names; or why there is none, in words: it is not the bootstrap's fault.
 * `outdated`: the certificates are not those that were found good. `unwritable`: there is no room for files. `unreachable`:
 * as the child of an Envoy that serves it would never be live, because it needs the control plane.
 */
/** `node`: the id by which the control plane knows this Envoy, where the bootstrap is ours. */
export type PreparedEpoch =
  | { configFile: string; adminPort: number; node?: string }
  | { outdated: string }
  | { unwritable: string }
  | { unreachable: string };

/** What Envoy's process is started with. */
export type StartOrder = EpochRun & Pick<EpochInput, 'binary' | 'adopted'> & { configFile: string };

/** The Envoy that the probe asks. `listeners`: with all those that it was sent. `requestedMs`: what its first look finds is told, as of an ordered one. */
export type ProbeOrder = EpochRun &
  Pick<EpochInput, 'adopted'> &
  Pick<EpochContext, 'startedAtMs'> & { listeners: boolean; asked: boolean };

/** The Envoy that is to let its requests finish. `replaced`: and to close all of its listeners at once. */
export type DrainListenersOrder = EpochRun & { replaced: boolean };

/** Which Envoy an effect is about, and where it is asked. */
export type EpochRun = Pick<EpochInput, 'epoch' | 'baseId' | 'adminPort'>;

/** What of it an effect is told. */
export const runOf = ({ epoch, baseId, adminPort }: EpochRun): EpochRun => ({ epoch, baseId, adminPort });
export const adoptedOf = ({ adopted }: Pick<EpochInput, 'adopted'>): Pick<EpochInput, 'adopted'> =>
  adopted ? { adopted } : {};
