export interface EpochInput {
  name: string;
  epoch: number;
  baseId: number;
  /** The port of the parent, or the configured one. 0 selects a free port when the epoch is prepared. */
  adminPort: number;
  binary: string;
  validate: boolean;
  /** SHA-256 of the files with which the epoch may be started; `null` allows any files. */
  certificates: string | null;
  parentGraceMs: number;
  healthyMs: number;
  /** If absent, Envoy must be started. */
  adopted?: AdoptedRun;
}

export interface AdoptedRun {
  configFile: string;
  /** Whether the epoch was already live: then it is not probed, because its child may have taken the admin interface. */
  live: boolean;
  /** Time when the start was ordered, on the host's clock. */
  startedAtMs: number;
}

export interface EpochContext extends EpochInput {
  configFile: string;
  /** Maximum drain time after the epoch was replaced. */
  lingerMs: number;
  /** Whether the parent exited too early, so that the main thread will block and SIGTERM has no effect. */
  isOrphaned: boolean;
  reopens: boolean;
  isProbeRequested: boolean;
  startedAtMs: number;
  /** Remaining parent-shutdown time when the child was detected as live. */
  parentShutdownMs: number;
  /** Upper bound of the time that the child was live before the detection. */
  unseenMs: number;
}

/** Tags of the states, for the timeline and for tests. */
export type EpochPhase = 'starting' | 'live' | 'draining' | 'retiring' | 'ending' | 'gone';

export type PrepareOrder = EpochRun &
  Pick<EpochInput, 'binary' | 'validate' | 'certificates' | 'adopted'> & {
    /** The control plane must be reachable within this time; `null` if it need not be reachable. */
    controlPlaneLimitMs: number | null;
  };

/**
 * `node` is Envoy's node ID if the agent generated the bootstrap. `outdated`: the certificates differ from the valid ones. `unwritable`: files cannot
 * be written. `unreachable`: the child would not become live without the control plane.
 */
export type PreparedEpoch =
  | { configFile: string; adminPort: number; node?: string }
  | { outdated: string }
  | { unwritable: string }
  | { unreachable: string };

export type StartOrder = EpochRun & Pick<EpochInput, 'binary' | 'adopted'> & { configFile: string };

/** `listeners`: also check that Envoy has each listener that it received. `isProbeRequested`: report the first result, as for `probe.run`. */
export type ProbeOrder = EpochRun &
  Pick<EpochInput, 'adopted'> &
  Pick<EpochContext, 'startedAtMs'> & { listeners: boolean; isProbeRequested: boolean };

/** `replaced` closes all listeners immediately. */
export type DrainListenersOrder = EpochRun & { replaced: boolean };

export type EpochRun = Pick<EpochInput, 'epoch' | 'baseId' | 'adminPort'>;

export const runOf = ({ epoch, baseId, adminPort }: EpochRun): EpochRun => ({ epoch, baseId, adminPort });
export const adoptedOf = ({ adopted }: Pick<EpochInput, 'adopted'>): Pick<EpochInput, 'adopted'> =>
  adopted ? { adopted } : {};
