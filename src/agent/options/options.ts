/** What the agent works with, once flags, environment and files are read. */
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import type { DnsOptions } from '../dns/dns-options.ts';
import type { ProxyLogLevel } from '../envoy/envoy-args.ts';
import type { IdentityOptions } from './identity-options.ts';

/** What the agent works with. */
export interface ProxyOptions {
  readonly role: ProxyRole;
  readonly config: ProxyConfig;
  /** Only when somebody named one. */
  readonly binaryPath: string | undefined;
  readonly concurrency: number;
  readonly addresses: readonly string[];
  /** `name.namespace`. */
  readonly workloadId: string;
  readonly domain: string;
  readonly podLabels: Readonly<Record<string, string>>;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly logLevel: ProxyLogLevel;
  readonly envoyStatusPort: number;
  readonly envoyPrometheusPort: number;
  readonly connectTimeoutMs: number;
  readonly outlierLogPath: string | undefined;
  readonly configOverride: string;
  /** Undefined: no DNS server. */
  readonly dns: DnsOptions | undefined;
  readonly delta: boolean;
  readonly watch: { readonly directories: string[]; readonly delayMs: number; readonly requiredFiles: string[] };
  readonly restartPolicy: 'retry' | 'exit';
  readonly hotRestart: boolean;
  readonly baseId: number | undefined;
  /** Of an Envoy that comes up beside one that takes no child; 0: a free port. */
  readonly spareAdminPort: number;
  readonly exitOnZeroActiveConnections: boolean;
  readonly minimumDrainMs: number;
  readonly runDir: string | undefined;
  readonly identity: IdentityOptions;
  readonly env: NodeJS.ProcessEnv;
  /** For the log: what was strange, but no mistake. */
  readonly warnings: readonly string[];
}

export type ProxyRole = 'sidecar' | 'router';
