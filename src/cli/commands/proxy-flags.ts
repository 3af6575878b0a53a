import { type Command, Option } from 'commander';

export function addProxyFlags(command: Command): Command {
  command.optionsGroup('Control plane:');
  command
    .option('--discoveryAddress <host:port>', 'Address of the xDS server (default istiod.istio-system.svc:15012)')
    .option('--controlPlaneAuthPolicy <policy>', 'Connection to it: NONE (plaintext) or MUTUAL_TLS (default)')
    .option('--connectTimeout <duration>', 'Timeout of a connection attempt (default 1s)')
    .option('--delta', 'Use incremental (delta) xDS');
  command.optionsGroup('Proxy:');
  command
    .option('--domain <suffix>', 'DNS domain suffix (default $POD_NAMESPACE.svc.cluster.local)')
    .option('--serviceCluster <name>', 'Service name of the workload (default its app label, else istio-proxy)')
    .option('--meshConfig <file>', 'Mesh configuration file (default ./etc/istio/config/mesh)');
  command.optionsGroup('Envoy:');
  command
    .option('--binaryPath <file>', 'Envoy binary (default $ENVOY_BINARY, then PATH, then a download to the cache)')
    .option('--configPath <dir>', 'Directory for generated configuration (default ./etc/istio/proxy)')
    .option('--customConfigFile <file>', 'Bootstrap file to use instead of a generated one')
    .option('--templateFile <file>', 'Template of the bootstrap: Go template, JSON or YAML')
    .option('--concurrency <n>', 'Number of worker threads (default one per CPU)')
    .option('--drainDuration <duration>', 'Drain time of the previous epoch in a hot restart (default 45s)')
    .option('--parentShutdownDuration <duration>', 'Time until the previous epoch shuts down (default 60s)')
    .option('--terminationDrainDuration <duration>', 'Drain time before exit (default 5s)')
    .option('--proxyAdminPort <port>', 'Port of the Envoy admin interface (default 15000)')
    .option('--spareAdminPort <port>', 'Admin port of an Envoy that replaces a hung one (default a free port)')
    .option('--proxyLogLevel <levels>', 'Log levels: level,component:level,… (default warning)')
    .option('--baseId <n>', 'Base ID of Envoy (default a free one)')
    .option('--runDir <dir>', 'Directory for base ID locks (default /run/chartpilot)');
  command.optionsGroup('Agent:');
  command
    .option('--statusPort <port>', 'Port of readiness and metrics, 0 to disable (default 15020)')
    .option('--watchCerts <dir,…>', 'Certificate directories; a change starts a hot restart')
    .option('--watchDelay <duration>', 'Delay from a certificate change to the restart (default 10s)')
    .option('--restartPolicy <policy>', 'If Envoy exits: retry (default) or exit')
    .option('--watchBinary <on|off>', 'Hot restart when the Envoy binary changes; off: only on POST /upgrade')
    .option('--hotRestart <on|off>', 'Use hot restart; off: drain and start again (default on)');
  for (const flag of rarelyUsedFlags) command.addOption(new Option(flag).hideHelp());
  return command;
}

/** Rarely needed; accepted for compatibility. */
const rarelyUsedFlags = [
  '--proxyComponentLogLevel <levels>',
  '--outlierLogPath <file>',
  '--statsdUdpAddress <host:port>',
  '--id <id>',
  '--ip <address>',
  '--profiling [on]',
  '--heapSnapshots [on]',
  '--stsPort <port>',
  '--applicationPorts <port,…>',
  '--serviceregistry <registry>',
  '--trust-domain <domain>',
  '--envoyMetricsServiceAddress <host:port>',
  '--zipkinAddress <host:port>',
  '--lightstepAddress <host:port>',
  '--lightstepAccessToken <token>',
  '--lightstepSecure [true|false]',
  '--lightstepCacertPath <file>',
];

/** @returns the role: the first argument, or one after unknown flags */
export function roleArgument(args: readonly string[], defaultRole: string): string {
  const [first = defaultRole] = args;
  if (!first.startsWith('-')) return first;
  return args.find((arg) => arg === 'sidecar' || arg === 'router') ?? defaultRole;
}
