import { defaultFetchLimits, type FetchLimits } from './wasm/wasm-module.machine.ts';
import type { ProbeTimes } from './xds/workload-health.machine.ts';

/** Settings of the agent's machines, fixed at start. Times in milliseconds. */
export interface AgentSettings {
  /** Port of Envoy's admin interface. A child takes it over from its parent. */
  adminPort: number;
  /** Admin port of an Envoy under the spare base ID, which cannot share the primary one. 0: any free port. */
  spareAdminPort: number;
  /** Envoy's --drain-time-s: drain of a superseded or stopping Envoy. */
  drainMs: number;
  /** Envoy's --parent-shutdown-time-s: time from a live child to the exit of its parent. */
  parentShutdownMs: number;
  /** How long a stopping agent drains Envoy before terminating it. */
  terminationDrainMs: number;
  /** A stopping agent waits, without a limit, until no request is active. */
  exitOnZeroActiveConnections: boolean;
  /** Minimum drain with `exitOnZeroActiveConnections`, because clients that have not yet removed this proxy may still send requests. */
  minimumDrainMs: number;
  /** Limit for a child to become live. */
  startLimitMs: number;
  /** Maximum time from an ordered termination to SIGKILL. Covers a blocked main thread (measured: 10 s). */
  stopLimitMs: number;
  /** Tolerance after the parent-shutdown time. */
  parentGraceMs: number;
  /** How long an epoch must be live to reset the retry budget. */
  healthyMs: number;
  /** After an unexpected exit of the serving Envoy: start another one, or exit. */
  restartPolicy: 'retry' | 'exit';
  /** False: Envoy is drained and started at epoch 0 instead of a hot restart. */
  hotRestart: boolean;
  retry: { budget: number; firstDelayMs: number; maxDelayMs: number };
  /** Rate limit of Envoy starts: `burst` together, then one per `refillMs`. */
  starts: { burst: number; refillMs: number };
  watch: {
    directories: string[];
    /** Delay from the first change to the read of the files. */
    delayMs: number;
    /** Files that Envoy needs at its start, and the maximum wait for them. */
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
  /** False: no Envoy is started, and the agent serves applications that are xDS clients. */
  runsEnvoy: boolean;
  /** 0: no status server. */
  statusPort: number;
  /** Whether Envoy is ready only after it has served an application port. */
  awaitsApplication: boolean;
  /** Whether the agent resolves the workload's DNS queries. */
  dns: boolean;
  identity: IdentitySettings;
  /** Whether the agent requests bootstrap patches from the control plane before it starts the first Envoy. */
  patchedBootstrap: boolean;
  /** Socket of the xDS proxy; empty: no xDS proxy. */
  xdsSocket: string;
  /** Socket of the access log service; empty: no standard metrics. */
  accessLogSocket: string;
  /** Whether the pod's programs are proxyless gRPC clients and servers: no xDS stream replaces another. */
  proxyless: boolean;
  /** Probe whose result is reported to the control plane; null: no probe. */
  readinessProbe: ProbeTimes | null;
  moduleLimits: FetchLimits;
}

/** Envoy's binary, and how the agent handles a new one. */
export interface BinarySettings {
  /** Configured path of the binary, where a new file may appear; empty: not watched. */
  path: string;
  /** Name by which effects identify the file at the path when the agent starts. */
  first: string;
  /** False: a new binary is used only by order. */
  watched: boolean;
  /** How long a changed file must stay unchanged before it is checked. */
  settleMs: number;
}

export interface IdentitySettings {
  /**
   * `nowhere`: no identity and no secret server. `files of services`: no identity, but a secret server for the files in TLS settings of
   * tracers and telemetry services.
   */
  source: 'nowhere' | 'files of services' | 'files' | 'authority';
  /** Reason for the source, for the log. */
  reason: string;
  /** Path of the secret server's socket. */
  socket: string;
  /** Directories of mounted files: certificate and key, and roots. Empty: not mounted. */
  certificateDirectory: string;
  rootDirectory: string;
  /** Share of the remaining lifetime at which certificates are renewed, plus or minus the jitter. */
  grace: { ratio: number; jitter: number };
  /** Whether issued certificates are also written to files. */
  writesOutput: boolean;
}

export function provesIdentity({ source }: Pick<IdentitySettings, 'source'>): boolean {
  return source === 'files' || source === 'authority';
}

/** Defaults; those of Istio's pilot-agent where it has the setting. */
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
