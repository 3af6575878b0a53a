/** What the agent works with, once flags, environment and files are read. */

import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import type { DnsOptions } from '../dns/dns-options.ts';
import type { ProxyLogLevel } from '../envoy/envoy-args.ts';
import type { WorkloadProbe } from '../health/workload-probe.ts';
import type { StatusOptions } from '../status/status-options.ts';
import type { BootstrapTemplate } from './bootstrap-template.ts';
import type { IdentityOptions } from './identity-options.ts';
import type { StandardMetricsOptions } from './standard-metrics-options.ts';
import type { WasmOptions } from './wasm-options.ts';

/** What the agent works with. */
export interface ProxyOptions {
  readonly role: ProxyRole;
  readonly config: ProxyConfig;
  /** Only when somebody named one. */
  readonly binaryPath: string | undefined;
  /** False: applications speak xDS themselves (DISABLE_ENVOY). */
  readonly runsEnvoy: boolean;
  readonly concurrency: number;
  readonly addresses: readonly string[];
  /** `name.namespace`. */
  readonly workloadId: string;
  readonly domain: string;
  /** What the control plane calls this proxy, where somebody says it as a whole. */
  readonly nodeId: string | undefined;
  /** Port of the local token exchange; 0: there is none. */
  readonly stsPort: number;
  /** Names of the control plane, for the node's metadata; undefined: the one that its certificate must have. */
  readonly pilotSans: readonly string[] | undefined;
  /** What the platform says of the machine; undefined: nothing is known. */
  readonly platformMetadata: Readonly<Record<string, string>> | undefined;
  readonly podLabels: Readonly<Record<string, string>>;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly logLevel: ProxyLogLevel;
  readonly envoyStatusPort: number;
  readonly envoyPrometheusPort: number;
  readonly envoySecureMetricsPort: number;
  readonly envoySecureMergedMetricsPort: number;
  readonly connectTimeoutMs: number;
  readonly outlierLogPath: string | undefined;
  readonly configOverride: string;
  readonly skipDeprecatedLogs: boolean;
  readonly enableCoreDump: boolean;
  /** Undefined: the bootstrap has its usual shape. */
  readonly template: BootstrapTemplate | undefined;
  /** Undefined: no DNS server. */
  readonly dns: DnsOptions | undefined;
  /** Fetch of Wasm modules for Envoy. */
  readonly wasm: WasmOptions;
  readonly status: StatusOptions;
  /** Undefined: the workload's health is told nobody. */
  readonly workloadProbe: WorkloadProbe | undefined;
  /** Undefined: Istio's standard metrics are not counted. */
  readonly standardMetrics: StandardMetricsOptions | undefined;
  readonly delta: boolean;
  /** Addresses of both families are used (ISTIO_DUAL_STACK), and there are some of both. */
  readonly dualStack: boolean;
  readonly watch: { readonly directories: string[]; readonly delayMs: number; readonly requiredFiles: string[] };
  readonly restartPolicy: 'retry' | 'exit';
  readonly hotRestart: boolean;
  /** Another Envoy at the path of its binary is taken up without an order. */
  readonly watchBinary: boolean;
  /** An Envoy outlives an agent that is killed, and the next agent of the container takes it over (LIVE_RESTORE). */
  readonly liveRestore: boolean;
  readonly baseId: number | undefined;
  /** Admin port of an Envoy that comes up beside one that takes no child; 0: a free port. */
  readonly spareAdminPort: number;
  readonly exitOnZeroActiveConnections: boolean;
  readonly minimumDrainMs: number;
  readonly runDir: string | undefined;
  readonly identity: IdentityOptions;
  readonly env: NodeJS.ProcessEnv;
  /** What was strange, but no mistake: lines for the log. */
  readonly warnings: readonly LogWarning[];
}

export type ProxyRole = 'sidecar' | 'router';
