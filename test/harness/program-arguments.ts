/** Command lines and environments of a mesh's programs. */

export interface DiscoveryArguments {
  readonly configDirectory: string;
  readonly meshConfigFile: string;
  readonly xdsPort: number;
  readonly httpPort: number;
  readonly monitoringPort: number;
  readonly traceFile: string;
}

/** Arguments of a control plane that reads only a directory, on loopback, without TLS. */
export function discoveryArguments(settings: DiscoveryArguments): string[] {
  return [
    'discovery',
    '--registries=',
    ...['--configDir', settings.configDirectory],
    ...['--meshConfig', settings.meshConfigFile],
    ...['--grpcAddr', `127.0.0.1:${settings.xdsPort}`],
    ...['--httpAddr', `127.0.0.1:${settings.httpPort}`],
    ...['--monitoringAddr', `127.0.0.1:${settings.monitoringPort}`],
    '--secureGRPCAddr=',
    '--httpsAddr=',
    // Streams are checked message by message; the standard level omits periodic messages.
    ...['--trace', settings.traceFile, '--traceLevel', 'full'],
  ];
}

export interface AgentArguments {
  readonly role: 'router' | 'sidecar';
  readonly name: string;
  readonly xdsPort: number;
  readonly adminPort: number;
  readonly statusPort: number;
  readonly configDirectory: string;
  /** Whole seconds. */
  readonly drainMs: number;
  readonly parentShutdownMs: number;
  readonly traceFile: string;
  readonly delta: boolean;
  readonly runDirectory: string | undefined;
}

/** Arguments of an agent that connects in plaintext to the control plane on loopback. */
export function agentArguments(settings: AgentArguments): string[] {
  return [
    ...['proxy', settings.role],
    ...['--serviceCluster', settings.name],
    ...['--discoveryAddress', `127.0.0.1:${settings.xdsPort}`],
    ...['--controlPlaneAuthPolicy', 'NONE'],
    ...['--proxyAdminPort', String(settings.adminPort)],
    ...['--statusPort', String(settings.statusPort)],
    ...['--configPath', settings.configDirectory],
    ...['--drainDuration', `${settings.drainMs / 1_000}s`],
    ...['--parentShutdownDuration', `${settings.parentShutdownMs / 1_000}s`],
    ...['--concurrency', '1'],
    ...['--trace', settings.traceFile],
    ...(settings.runDirectory === undefined ? [] : ['--runDir', settings.runDirectory]),
    ...(settings.delta ? ['--delta'] : []),
  ];
}

/** The proxy's identity, as its pod would set it; the agent intercepts nothing and opens no other ports. */
export function agentEnvironment(
  name: string,
  labels: Readonly<Record<string, string>>,
  terminationDrainMs: number,
): NodeJS.ProcessEnv {
  return {
    POD_NAME: name,
    POD_NAMESPACE: 'demo',
    INSTANCE_IP: '127.0.0.1',
    ISTIO_META_INTERCEPTION_MODE: 'NONE',
    ISTIO_METAJSON_LABELS: JSON.stringify(labels),
    ENVOY_STATUS_PORT: '0',
    ENVOY_PROMETHEUS_PORT: '0',
    TERMINATION_DRAIN_DURATION_SECONDS: String(terminationDrainMs / 1_000),
  };
}

/** Replaces flags of the same names, because programs report duplicate flags. */
export function withFlags(args: readonly string[], flags: readonly string[]): string[] {
  const nameOf = (flag: string): string => flag.split('=', 1)[0]!;
  const replacedFlags = new Set(flags.filter((flag) => flag.startsWith('--')).map(nameOf));
  let isLeftOut = false;
  const keptArgs = args.filter((arg) => {
    if (arg.startsWith('--')) isLeftOut = replacedFlags.has(nameOf(arg));
    return !isLeftOut;
  });
  return [...keptArgs, ...flags];
}
