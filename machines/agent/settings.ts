import { defaultFetchLimits, type FetchLimits } from './wasm/wasm-module.machine.ts';
import type { ProbeTimes } from './xds/workload-health.machine.ts';

/** What the agent's machines are told once, at start. All times in milliseconds. */
export interface AgentSettings {
  /** Port of Envoy's admin interface. All epochs of one base id share it: a child takes it over from its parent. */
  adminPort: number;
  /** Admin port of an Envoy under the spare base id: two base ids cannot share one. 0: a free one, chosen when it is needed. */
  spareAdminPort: number;
  /** Envoy's --drain-time-s: how long a superseded or stopping Envoy lets its connections go. */
  drainMs: number;
  /** Envoy's --parent-shutdown-time-s: how long after its child is live a parent is ended. */
  parentShutdownMs: number;
  /** How long a stopping agent lets requests finish before it ends Envoy. */
  terminationDrainMs: number;
  /** True: a stopping agent waits until no request is in flight instead, however long that takes (spec/agent.md §2.5). */
  exitOnZeroActiveConnections: boolean;
  /** And for this at least: traffic that is still on its way here has to arrive first. */
  minimumDrainMs: number;
  /** A child beside a serving epoch must be live within this. */
  startLimitMs: number;
  /** An ordered end must have happened within this, else SIGKILL. Covers a blocked main thread (measured: 10 s). */
  stopLimitMs: number;
  /** How long a parent may outstay its parent-shutdown time. */
  parentGraceMs: number;
  /** How long live makes an epoch healthy: the retry budget is renewed. */
  healthyMs: number;
  /** What an Envoy that ends on its own leads to while nobody serves: another one, or the agent's own end. */
  restartPolicy: 'retry' | 'exit';
  /** False: what would be a hot restart is a drain and a start from epoch 0. */
  hotRestart: boolean;
  retry: { budget: number; firstDelayMs: number; maxDelayMs: number };
  /** Starts of Envoy: `burst` at once, then one each `refillMs`. */
  starts: { burst: number; refillMs: number };
  watch: {
    directories: string[];
    /** Time from the first change to the reading of the files. */
    delayMs: number;
    /** Files that should be there before Envoy starts, and how long to wait for them. */
    requiredFiles: string[];
    requiredFilesLimitMs: number;
  };
  binary: BinarySettings;
  /** Whether an agent of this container may have been killed and have left Envoys running. */
  liveRestore: boolean;
  /** Whether a newer agent of this container may take the place of this one. */
  givesWay: boolean;
  /** Whether an older agent of this container is to give way to this one. */
  succeeds: boolean;
  /** False: nobody starts an Envoy here; the agent serves applications that speak xDS themselves, until it is told to end. */
  runsEnvoy: boolean;
  /** 0: no status server. */
  statusPort: number;
  /** Whether an Envoy is ready only when it was seen to serve one of the application's ports. */
  awaitsApplication: boolean;
  /** Whether the workload's names are answered. */
  dns: boolean;
  identity: IdentitySettings;
  /** Whether the control plane is asked, before the first Envoy, what it patches in the bootstrap. */
  patchedBootstrap: boolean;
  /** The socket that Envoy has its configuration from; empty: no xDS proxy. */
  xdsSocket: string;
  /** The socket at which Envoy's access logs are received; empty: no standard metrics. */
  accessLogSocket: string;
  /** Programs of the pod are clients and servers of gRPC without a proxy: each of their xDS streams lives on. */
  proxyless: boolean;
  /** When the workload is asked whether it can serve, for the control plane to know; null: never. */
  readinessProbe: ProbeTimes | null;
  /** Limits of the fetches of Wasm modules. */
  moduleLimits: FetchLimits;
}

/** Where Envoy's binary is, and what is done about another one there. */
export interface BinarySettings {
  /** Path as it was named: the file behind it may change. Empty: it is not looked at again. */
  path: string;
  /** The name by which effects know the file that is there at the start. */
  first: string;
  /** False: another one is taken up when it is ordered, and then only. */
  watched: boolean;
  /** A file that is being written has to rest for so long. */
  settleMs: number;
}

/** How this workload proves who it is (spec/agent.md §7). */
export interface IdentitySettings {
  /**
   * Where its certificate comes from; `nowhere`: it has no identity, and Envoy is given no secret server. `files of services`: no identity
   * either, but a server of the files that TLS settings of tracers and of services for telemetry name.
   */
  source: 'nowhere' | 'files of services' | 'files' | 'authority';
  /** Why it is that; for people. */
  reason: string;
  /** Path of the secret server's socket. */
  socket: string;
  /** Directories of mounted files: of the certificate with its key, and of the roots; empty: not mounted. */
  certificateDirectory: string;
  rootDirectory: string;
  /** Share of a certificate's life that is left when it is renewed, and by how much that differs from one to the next. */
  grace: { ratio: number; jitter: number };
  /** Whether what is issued is written to files, too. */
  writesOutput: boolean;
}

/** Whether this workload can prove who it is. */
export function provesIdentity({ source }: Pick<IdentitySettings, 'source'>): boolean {
  return source === 'files' || source === 'authority';
}

/** The reference's figures (spec/agent.md §1.5, §2, §3). */
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
