/** The flags of `proxy`, as texts; absent when not given. */
export interface ProxyFlags {
  readonly domain?: string;
  readonly meshConfig?: string;
  readonly serviceCluster?: string;
  readonly proxyLogLevel?: string;
  readonly proxyComponentLogLevel?: string;
  readonly concurrency?: string;
  readonly outlierLogPath?: string;
  readonly id?: string;
  readonly ip?: string;
  readonly configPath?: string;
  readonly binaryPath?: string;
  readonly customConfigFile?: string;
  readonly drainDuration?: string;
  readonly parentShutdownDuration?: string;
  readonly terminationDrainDuration?: string;
  readonly discoveryAddress?: string;
  readonly connectTimeout?: string;
  readonly statusPort?: string;
  readonly proxyAdminPort?: string;
  readonly spareAdminPort?: string;
  readonly controlPlaneAuthPolicy?: string;
  readonly statsdUdpAddress?: string;
  readonly watchCerts?: string;
  readonly watchDelay?: string;
  readonly restartPolicy?: string;
  readonly hotRestart?: string;
  readonly baseId?: string;
  readonly runDir?: string;
  readonly delta?: boolean;
}
