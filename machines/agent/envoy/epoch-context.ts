export interface EpochInput {
  /** System ID of this actor, contained in each report. */
  name: string;
  /** Envoy's --restart-epoch. */
  epoch: number;
  baseId: number;
  /** Port of the admin interface: the parent's, or the configured one. 0: a free port, chosen when the epoch is prepared. */
  adminPort: number;
  /** Name of the binary, see `binary.changed`. */
  binary: string;
  /** Whether Envoy validates the bootstrap before the start (`--mode validate`). */
  validate: boolean;
  /** Required SHA-256 of the watched files: the epoch is not started with other files. `null` allows any files. */
  certificates: string | null;
  parentGraceMs: number;
  healthyMs: number;
  /** Absent: Envoy must be started. */
  adopted?: AdoptedRun;
}

export interface AdoptedRun {
  configFile: string;
  /** Whether the epoch was already live: then it is not probed, because its child may have taken the admin interface. */
  live: boolean;
  /** Time when its start was ordered, on the host's clock. */
  startedAtMs: number;
}

export interface EpochContext extends EpochInput {
  configFile: string;
  /** Maximum drain time after the epoch was replaced. */
  lingerMs: number;
  /** Whether the epoch's parent exited too early, so that its main thread will block and SIGTERM has no effect. */
  isOrphaned: boolean;
  /** Whether to reopen access logs as soon as Envoy handles SIGUSR1. */
  reopens: boolean;
  /** Whether to probe as soon as the process is running. */
  isProbeRequested: boolean;
  startedAtMs: number;
  /** Remaining parent-shutdown time when the child was detected as live. */
  parentShutdownMs: number;
  /** Upper bound of the time that the child was live before the detection. */
  unseenMs: number;
}

/** Tags of the states, for the timeline and for tests. */
export type EpochPhase = 'starting' | 'live' | 'draining' | 'retiring' | 'ending' | 'gone';

/** Steps and checks before the process starts. */
export type PrepareOrder = EpochRun &
  Pick<EpochInput, 'binary' | 'validate' | 'certificates' | 'adopted'> & {
    /** The control plane must be reachable within this time; `null`: not required. */
    controlPlaneLimitMs: number | null;
  };

/**
 * Bootstrap file and admin port, or the error. `node`: Envoy's node ID if the agent generated the bootstrap. `outdated`: the certificates
 * differ from the valid ones. `unwritable`: files cannot be written. `unreachable`: the child would not become live without the control
 * plane.
 */
export type PreparedEpoch =
  | { configFile: string; adminPort: number; node?: string }
  | { outdated: string }
  | { unwritable: string }
  | { unreachable: string };

export type StartOrder = EpochRun & Pick<EpochInput, 'binary' | 'adopted'> & { configFile: string };

/** `listeners`: also probe whether Envoy has each listener that it received. `isProbeRequested`: report the first result, as for `probe.run`. */
export type ProbeOrder = EpochRun &
  Pick<EpochInput, 'adopted'> &
  Pick<EpochContext, 'startedAtMs'> & { listeners: boolean; isProbeRequested: boolean };

/** `replaced`: close all listeners immediately. */
export type DrainListenersOrder = EpochRun & { replaced: boolean };

export type EpochRun = Pick<EpochInput, 'epoch' | 'baseId' | 'adminPort'>;

export const runOf = ({ epoch, baseId, adminPort }: EpochRun): EpochRun => ({ epoch, baseId, adminPort });
export const adoptedOf = ({ adopted }: Pick<EpochInput, 'adopted'>): Pick<EpochInput, 'adopted'> =>
  adopted ? { adopted } : {};
