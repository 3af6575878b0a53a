import { Command, Option } from 'commander';
import { discoveryProgramMachines } from '../../../machines/discovery/program-machines.ts';
import { routineQueueMessages } from '../../../machines/discovery/protocol.ts';
import { routineMessages } from '../../../machines/discovery/xds/ads-protocol.ts';
import { runDiscovery } from '../../discovery/discovery-system.ts';
import type { DiscoveryFlags } from '../../discovery/options/discovery-flags.ts';
import { resolveDiscoveryOptions } from '../../discovery/options/discovery-options.ts';
import { disallowedValue } from '../../model/fields/violation.ts';
import { optionError } from '../../runtime/option-errors.ts';
import { standardError } from '../../runtime/output/standard-streams.ts';
import { addLogFlags, type LogFlags, loggerFromFlags, logWarnings } from '../flags/log-flags.ts';
import { addRecordingFlags, openRecording, type RecordingFlags } from '../flags/trace-flags.ts';
import { unknownFlagsOf } from '../usage.ts';
import { addHelpSections } from './help-sections.ts';
import { istioVersion, versionLine } from './version.ts';

interface CommandFlags extends DiscoveryFlags, LogFlags, RecordingFlags {}

/** Accepted for compatibility, without effect. */
const flagsWithoutEffect = [
  '--cniNamespace <namespace>',
  '--kubernetesApiQPS <n>',
  '--kubernetesApiBurst <n>',
  '--ctrlz_port <port>',
  '--ctrlz_address <address>',
  '-a, --appNamespace <namespace>',
  '--resync <duration>',
  '--trust-domain <domain>',
  '--consulserverInterval <duration>',
  '--mcpServerAddrs <addresses>',
  '--mcpMaxMsgSize <bytes>',
  '--mcpInitialWindowSize <bytes>',
  '--mcpInitialConnWindowSize <bytes>',
  '--disable-install-crds [on]',
  '--plugins <names>',
  '--discoveryCache [on]',
].map((flag) => new Option(flag).hideHelp());

export type DiscoveryRun = (args: readonly string[], flags: CommandFlags) => Promise<number>;

/** @param run replaced by tests */
export function discoveryCommand(run: DiscoveryRun = discovery): Command {
  const command = new Command('discovery')
    .summary('Run the control plane')
    .description(
      'Serve mesh configuration from files and Kubernetes clusters to Envoy proxies over xDS. Changes apply immediately; invalid ones are ' +
        'reported. SIGTERM and SIGINT drain connections and stop; a second signal stops immediately.',
    )
    .allowUnknownOption()
    .allowExcessArguments();
  command.optionsGroup('Configuration:');
  command
    .option(
      '--configDir <dir>',
      'Directory of YAML and JSON files with Istio and Kubernetes objects, searched recursively',
    )
    .option('--kubeconfig <file>', 'Cluster to read (default in-cluster configuration, unless --configDir is set)')
    .option('--meshConfig <file>', 'Mesh configuration file (default ./etc/istio/config/mesh)')
    .option('--networksConfig <file>', 'Mesh networks file (default ./etc/istio/config/meshNetworks)')
    .option('--registries <names>', 'Kubernetes (default), Consul, Memory, Mock; empty to disable')
    .option('-n, --namespace <namespace>', 'Namespace of the control plane (default $POD_NAMESPACE or istio-system)')
    .option('--domain <suffix>', 'DNS domain suffix (default cluster.local)')
    .option('--clusterID <id>', 'Name of the local cluster (default $CLUSTER_ID or Kubernetes)')
    .option('--clusterAliases <a=b,…>', 'Aliases of cluster names in node metadata')
    .option(
      '--clusterRegistriesNamespace <namespace>',
      'Namespace of remote cluster Secrets (default that of the control plane)',
    );
  command
    .option('--consulServerURL <url>', 'Consul to read (default $CONSUL_HTTP_ADDR or 127.0.0.1:8500)')
    .addOption(new Option('--consulTokenFile <file>').hideHelp())
    .addOption(new Option('--consulDatacenters <names>').hideHelp())
    .addOption(new Option('--consulserverURL <url>').hideHelp());
  command.optionsGroup('Server (addresses: HOST:PORT, :PORT for all interfaces, empty to disable):');
  command
    .option('--grpcAddr <address>', 'xDS in plaintext (default :15010); empty: serve it on --httpAddr')
    .option('--httpAddr <address>', '/ready, /metrics and /debug (default :8080)')
    .option('--monitoringAddr <address>', 'The same endpoints (default :15014)')
    .option('--secureGRPCAddr [address]', 'xDS over TLS (default :15012); requires a CA or the three TLS files')
    .option('--httpsAddr <address>', 'Webhooks over HTTPS (default :15017)')
    .option('--shutdownDuration <duration>', 'Maximum time of a graceful shutdown (default 10s)')
    .option('--keepaliveInterval <duration>', 'Interval of keepalive pings (default 30s)')
    .option('--keepaliveTimeout <duration>', 'Timeout of a keepalive ping (default 10s)')
    .option('--keepaliveMaxServerConnectionAge <duration>', 'Maximum age of a connection (default unlimited)');
  command.optionsGroup('Security:');
  command
    .option('--caCertFile <file>', 'CA certificates that sign client certificates (PEM)')
    .option('--tlsCertFile <file>', 'Server certificate chain (PEM)')
    .option('--tlsKeyFile <file>', 'Server private key (PEM)')
    .option('--tls-cipher-suites <names>', 'TLS 1.2 cipher suites (Go names; default the strong ones)')
    .option('--tls-min-version <version>', 'Minimum TLS version: 1.2 (default) or 1.3');
  addLogFlags(command);
  addRecordingFlags(command);
  command.option('--profile [on]', 'Serve /debug/pprof to holders of the token (default true)');
  command.addOption(new Option('--heapSnapshots [on]').hideHelp());
  for (const option of flagsWithoutEffect) command.addOption(option);
  return addHelpSections(command.usage('[options]'), {
    examples: ['pilot-discovery discovery --registries= --configDir mesh --grpcAddr 127.0.0.1:15010'],
    environment: [['DNS_ADDR', 'Resolve names of the mesh over DNS with TLS at this address, as :15053 (default off)']],
    limits: [
      ['PILOT_MAX_REQUESTS_PER_SECOND', 'Maximum new xDS streams per second (default by load)'],
      ['ISTIO_GPRC_MAXSTREAMS', 'Streams per connection (default 100000)'],
      ['ISTIO_GPRC_MAXRECVMSGSIZE', 'Bytes per request (default 4194304)'],
      ['PILOT_XDS_MAX_CONNECTIONS', 'Connections (default 60000, less if ulimit -n is lower)'],
      [
        'PILOT_XDS_MAX_CONNECTIONS_PER_ADDRESS',
        'Connections per client address (default 10000); raise it behind a NAT',
      ],
      ['PILOT_XDS_MAX_UNIDENTIFIED_PER_ADDRESS', 'Connections per address without an acknowledged node (default 512)'],
      ['PILOT_XDS_UNIDENTIFIED_RATE_PER_ADDRESS', 'Streams per second that end unidentified (default 200, burst 2000)'],
      ['PILOT_XDS_MAX_STREAMS', 'Served streams, shared fairly by namespaces (default by heap size)'],
      ['PILOT_XDS_MAX_NAMES_PER_STREAM', 'Subscribed resource names per stream (default 200000)'],
      ['PILOT_CONFIG_MAX_FILE_BYTES', 'Bytes per configuration file (default 8388608)'],
      ['PILOT_CONFIG_MAX_BYTES', 'Bytes of all files in --configDir (default 268435456)'],
      ['PILOT_CONFIG_MAX_ENTRIES', 'Files and directories in --configDir (default 100000)'],
      ['PILOT_XDS_SOURCE_MAX_OBJECTS', 'Objects of a configuration source over xDS (default 100000)'],
      ['PILOT_XDS_SOURCE_MAX_MESSAGE_BYTES', 'Bytes per response of such a source (default 67108864)'],
      ['PILOT_MAX_EXPORTED_PER_NAMESPACE', 'Clusters and routes that a namespace exports (default 10000)'],
      ['PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE', 'Gateway routes and Ingress paths per namespace (default 20000)'],
      ['PILOT_MAX_ENDPOINTS_PER_NAMESPACE', 'Endpoints per namespace (default 65536)'],
    ],
    exitCodes: [
      ['0', 'stopped by a signal'],
      ['1', 'invalid flag or file, or the control plane could not start or continue'],
    ],
  }).action(async (flags: CommandFlags) => {
    process.exitCode = await run(command.args, flags);
  });
}

/**
 * Normalizes flags of older programs and of Go's flag parser: `--secureGrpcAddr` becomes `--secureGRPCAddr`, and
 * without a value (if another flag follows) it disables the address.
 */
export function normalizedArguments(args: readonly string[]): string[] {
  return args.map((arg, i) => {
    const normalizedArg = arg.replace(/^--secureGrpcAddr(?==|$)/, '--secureGRPCAddr');
    const next = args[i + 1];
    return normalizedArg === '--secureGRPCAddr' && (next === undefined || next.startsWith('-'))
      ? `${normalizedArg}=`
      : normalizedArg;
  });
}

export function prepareDiscovery(args: readonly string[], flags: CommandFlags) {
  rejectStrayArguments(args);
  const unknownFlags = unknownFlagsOf(discoveryCommand(), args);
  const options = resolveDiscoveryOptions(flags, process.env);
  const { log } = loggerFromFlags(flags);
  logWarnings(log);
  log.info('discovery.started', { version: versionLine(), pid: process.pid });
  log.info('program.flags', flags);
  const ineffectiveFlags = flagsWithoutEffect.flatMap((option) =>
    option.attributeName() in flags ? option.long! : [],
  );
  if (ineffectiveFlags.length > 0) log.info('option.flagsWithoutEffect', { flags: ineffectiveFlags });
  if (unknownFlags.length > 0) log.warn('option.unknown', { flags: unknownFlags });
  return { options, log, version: istioVersion() };
}

async function discovery(args: readonly string[], flags: CommandFlags): Promise<number> {
  const { options, log, version } = prepareDiscovery(args, flags);
  const recording = openRecording({
    program: 'pilot-discovery',
    machines: [...discoveryProgramMachines],
    routine: [...routineMessages, ...routineQueueMessages],
    flags,
    log,
  });
  try {
    const { exitCode, trouble } = await runDiscovery({ options, log, version, ...recording });
    for (const reason of trouble) standardError.write(`pilot-discovery: ${reason}\n`);
    return exitCode;
  } finally {
    await recording.close();
  }
}

/** @throws ChartpilotError FLAG_INVALID for an argument that is neither an unknown flag nor the value of one */
function rejectStrayArguments(args: readonly string[]): void {
  const strayArgument = args.find((arg, i) => !arg.startsWith('-') && !(args[i - 1] ?? '').startsWith('-'));
  if (strayArgument !== undefined) {
    throw optionError(
      'arguments',
      disallowedValue(`must be empty, got ${JSON.stringify(strayArgument)}`, strayArgument),
    );
  }
}
