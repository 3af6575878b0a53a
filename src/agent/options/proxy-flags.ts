/** Flags of `proxy` as strings; absent if not given. */
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
  readonly watchBinary?: string;
  readonly baseId?: string;
  readonly runDir?: string;
  readonly delta?: boolean;
  readonly profiling?: string | boolean;
  readonly heapSnapshots?: string | boolean;
  readonly stsPort?: string;
  readonly applicationPorts?: string;
  readonly templateFile?: string;
  readonly serviceregistry?: string;
  readonly trustDomain?: string;
  readonly envoyMetricsServiceAddress?: string;
  readonly zipkinAddress?: string;
  readonly lightstepAddress?: string;
  readonly lightstepAccessToken?: string;
  /** True if the flag has no value. */
  readonly lightstepSecure?: string | true;
  readonly lightstepCacertPath?: string;
  /** Flags of `bootstrap` that override detected settings. */
  readonly proxyConfig?: string;
  readonly podInfoDir?: string;
  readonly nodeId?: string;
  readonly instanceIPs?: string;
  readonly pilotSAN?: string;
  readonly platformMetadata?: string;
}
