import { defaultFetchLimits, type FetchLimits } from './wasm/wasm-module.machine.ts';
import type { ProbeTimes } from './xds/workload-health.machine.ts';

/** Settings are fixed at the start; times are in milliseconds. */
export interface AgentSettings {
  /** A child takes over Envoy's admin port from its parent. */
  adminPort: number;
  /** An Envoy under the spare base ID cannot share the primary admin port. 0 selects any free port. */
  spareAdminPort: number;
  /** Value of Envoy's --drain-time-s. */
  drainMs: number;
  /** Envoy's --parent-shutdown-time-s: from a live child to the exit of its parent. */
  parentShutdownMs: number;
  /** How long a stopping agent drains Envoy before it terminates Envoy. */
  terminationDrainMs: number;
  /** A stopping agent drains, without a limit, until no request is active, instead of for `terminationDrainMs`. */
  exitOnZeroActiveConnections: boolean;
  /** Minimum drain time with `exitOnZeroActiveConnections`: clients that have not yet removed this proxy may still send requests. */
  minimumDrainMs: number;
  /** Limit for a child to become live. */
  startLimitMs: number;
  /** Maximum time from an ordered termination to SIGKILL. Covers a blocked main thread (measured: 10 s). */
  stopLimitMs: number;
  /** Tolerance after the parent-shutdown time. */
  parentGraceMs: number;
  /** An epoch that was live for this time resets the retry budget. */
  healthyMs: number;
  restartPolicy: 'retry' | 'exit';
  /** If false, Envoy is drained and started at epoch 0. */
  hotRestart: boolean;
  retry: { budget: number; firstDelayMs: number; maxDelayMs: number };
  /** Starts `burst` Envoys together, then one per `refillMs`. */
  starts: { burst: number; refillMs: number };
  watch: {
    directories: string[];
    delayMs: number;
    requiredFiles: string[];
    requiredFilesLimitMs: number;
  };
  binary: BinarySettings;
  /** Whether a killed agent of this container may have left Envoys running. */
  liveRestore: boolean;
  /** Whether a newer agent of this container may replace this one. */
  givesWay: boolean;
  /** Whether this agent replaces an older one of this container. */
  succeeds: boolean;
  /** If false, the agent serves applications that are xDS clients. */
  runsEnvoy: boolean;
  /** 0 means that there is no status server. */
  statusPort: number;
  /** Whether Envoy is ready only after it has served an application port. */
  awaitsApplication: boolean;
  dns: boolean;
  identity: IdentitySettings;
  patchedBootstrap: boolean;
  /** An empty path means that there is no xDS proxy. */
  xdsSocket: string;
  /** An empty path means that there are no standard metrics. */
  accessLogSocket: string;
  /** Whether the pod's programs are proxyless gRPC clients and servers, so that no xDS stream replaces another. */
  proxyless: boolean;
  readinessProbe: ProbeTimes | null;
  moduleLimits: FetchLimits;
}

export interface BinarySettings {
  /** A new file may appear at this path; empty if the path is not watched. */
  path: string;
  /** Effects use this name for the file that is at the path when the agent starts. */
  first: string;
  /** If false, a new binary is used only by order. */
  watched: boolean;
  /** A changed file must stay unchanged for this time before it is checked. */
  settleMs: number;
}

export interface IdentitySettings {
  /**
   * `nowhere`: no identity and no secret server. `files of services`: no identity, but a secret server for the files in TLS settings of tracers and
   * telemetry services.
   */
  source: 'nowhere' | 'files of services' | 'files' | 'authority';
  reason: string;
  socket: string;
  /** Directories of mounted files; empty if none are mounted. */
  certificateDirectory: string;
  rootDirectory: string;
  /** Certificates are renewed at this share of the remaining lifetime, plus or minus the jitter. */
  grace: { ratio: number; jitter: number };
  writesOutput: boolean;
}

export function provesIdentity({ source }: Pick<IdentitySettings, 'source'>): boolean {
  return source === 'files' || source === 'authority';
}

/** Istio's pilot-agent has the same defaults, where it has the setting. */
export const defaultSettings: AgentSettings = {
  adminPort: 15_000,
  spareAdminPort: 0,
  drainMs: 45_000,
  parentShutdownMs: 60_000,
  terminationDrainMs: 5_000,
  exitOnZeroActiveConnections: false,
  minimumDrainMs: 5_000,
  startLimitMs: 20_000,
  stopLimitMs: 12_000,
  parentGraceMs: 5_000,
  healthyMs: 60_000,
  restartPolicy: 'retry',
  hotRestart: true,
  retry: { budget: 10, firstDelayMs: 200, maxDelayMs: 30_000 },
  starts: { burst: 10, refillMs: 1_000 },
  watch: { directories: [], delayMs: 10_000, requiredFiles: [], requiredFilesLimitMs: 120_000 },
  binary: { path: '', first: '', watched: true, settleMs: 1_000 },
  liveRestore: false,
  givesWay: false,
  succeeds: false,
  runsEnvoy: true,
  statusPort: 15020,
  awaitsApplication: false,
  dns: false,
  identity: {
    source: 'nowhere',
    reason: 'no workload certificate requested',
    socket: '',
    certificateDirectory: '',
    rootDirectory: '',
    grace: { ratio: 0.5, jitter: 0.01 },
    writesOutput: false,
  },
  patchedBootstrap: false,
  xdsSocket: '',
  accessLogSocket: '',
  proxyless: false,
  readinessProbe: null,
  moduleLimits: defaultFetchLimits,
};
