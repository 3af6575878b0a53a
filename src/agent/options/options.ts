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

export interface ProxyOptions {
  readonly role: ProxyRole;
  readonly config: ProxyConfig;
  readonly binaryPath: string | undefined;
  /** False with DISABLE_ENVOY, if applications use xDS themselves. */
  readonly runsEnvoy: boolean;
  readonly concurrency: number;
  readonly addresses: readonly string[];
  /** `name.namespace`. */
  readonly workloadId: string;
  readonly domain: string;
  readonly nodeId: string | undefined;
  /** Port of the local token exchange; 0 if disabled. */
  readonly stsPort: number;
  /** SANs in the node metadata. If `undefined`, the required SAN of the control plane's certificate is used. */
  readonly pilotSans: readonly string[] | undefined;
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
  readonly template: BootstrapTemplate | undefined;
  readonly dns: DnsOptions | undefined;
  readonly wasm: WasmOptions;
  readonly status: StatusOptions;
  readonly workloadProbe: WorkloadProbe | undefined;
  /** `undefined` if Istio's standard metrics are turned off. */
  readonly standardMetrics: StandardMetricsOptions | undefined;
  readonly delta: boolean;
  /** True if ISTIO_DUAL_STACK is on and both address families exist. */
  readonly dualStack: boolean;
  readonly watch: { readonly directories: string[]; readonly delayMs: number; readonly requiredFiles: string[] };
  readonly restartPolicy: 'retry' | 'exit';
  readonly hotRestart: boolean;
  readonly watchBinary: boolean;
  /** Whether the next agent of the container adopts the Envoy of a killed agent (LIVE_RESTORE). */
  readonly liveRestore: boolean;
  readonly baseId: number | undefined;
  /** Admin port of an Envoy that starts beside the serving one without a hot restart; 0 for any free port. */
  readonly spareAdminPort: number;
  readonly exitOnZeroActiveConnections: boolean;
  readonly minimumDrainMs: number;
  readonly runDir: string | undefined;
  readonly identity: IdentityOptions;
  readonly env: NodeJS.ProcessEnv;
  readonly warnings: readonly LogWarning[];
}

export type ProxyRole = 'sidecar' | 'router';
