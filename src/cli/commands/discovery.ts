/** `pilot-discovery discovery`: the control plane (spec/discovery.md §1.1, §1.2). */
import { Command, Option } from 'commander';
import { adsConnectionMachine } from '../../../machines/discovery/ads/ads-connection.machine.ts';
import { routineMessages } from '../../../machines/discovery/ads/ads-protocol.ts';
import { discoveryMachine } from '../../../machines/discovery/discovery.machine.ts';
import { routineQueueMessages } from '../../../machines/discovery/protocol.ts';
import { type DiscoveryFlags, resolveDiscoveryOptions } from '../../discovery/discovery-options.ts';
import { runDiscovery } from '../../discovery/discovery-system.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { standardError } from '../../runtime/output/standard-streams.ts';
import { addLogFlags, type LogFlags, loggerFromFlags, logWarnings } from './log-flags.ts';
import { addRecordingFlags, openRecording, type RecordingFlags } from './trace-flags.ts';
import { versionLine } from './version.ts';

interface CommandFlags extends DiscoveryFlags, LogFlags, RecordingFlags {}

/** Taken as the reference takes them, and of no effect: what they are about is not there. */
const flagsWithoutEffect = [
  '--cniNamespace <namespace>',
  '--kubernetesApiQPS <n>',
  '--kubernetesApiBurst <n>',
  '--ctrlz_port <port>',
  '--ctrlz_address <address>',
  '-a, --appNamespace <namespace>',
  '--resync <duration>',
  '--trust-domain <domain>',
  '--consulserverURL <url>',
  '--consulserverInterval <duration>',
  '--mcpServerAddrs <addresses>',
  '--mcpMaxMsgSize <bytes>',
  '--mcpInitialWindowSize <bytes>',
  '--mcpInitialConnWindowSize <bytes>',
  '--disable-install-crds [on]',
  '--plugins <names>',
  '--discoveryCache [on]',
].map((flag) => new Option(flag).hideHelp());

export function discoveryCommand(): Command {
  const command = new Command('discovery')
    .summary('serve the mesh until told to end')
    .description(
      'Reads mesh configuration and routing rules from files and from a cluster, and serves them to Envoys over xDS. What changes takes ' +
        'effect at once; a bad one is reported and leaves the last good state in force. SIGTERM or SIGINT: drain, then ' +
        'end; a second one: at once.',
    )
    .allowUnknownOption()
    .allowExcessArguments();
  command.optionsGroup('Where the mesh is described:');
  command
    .option('--configDir <dir>', 'YAML files of Istio and Kubernetes objects, at any depth')
    .option('--kubeconfig <file>', 'the cluster to read, default that of our pod, where no --configDir is given')
    .option('--meshConfig <file>', 'mesh configuration, default ./etc/istio/config/mesh')
    .option('--networksConfig <file>', 'mesh networks, default ./etc/istio/config/meshNetworks')
    .option(
      '--registries <names>',
      'Kubernetes (default; of a cluster, or of --configDir), Memory, Mock; empty for none',
    )
    .option('-n, --namespace <namespace>', 'its own, default $POD_NAMESPACE, else istio-system')
    .option('--domain <suffix>', 'of host names, default cluster.local')
    .option('--clusterID <id>', 'default $CLUSTER_ID, else Kubernetes')
    .option('--clusterAliases <a=b,…>', 'other names under which proxies know clusters')
    .option('--clusterRegistriesNamespace <namespace>', 'where Secrets name other clusters, default its own');
  command.optionsGroup('Where it is served (HOST:PORT; :PORT for all interfaces; empty for nowhere):');
  command
    .option('--grpcAddr <address>', 'xDS in plaintext, default :15010; empty: on --httpAddr')
    .option('--httpAddr <address>', '/ready, /metrics, /debug, default :8080')
    .option('--monitoringAddr <address>', 'the same pages, default :15014')
    .option('--secureGRPCAddr [address]', 'xDS over TLS, default :15012; needs an authority, or these three:')
    .option('--caCertFile <file>', 'PEM: who signs the certificates of clients')
    .option('--tlsCertFile <file>', 'PEM: its own certificate, with those in between')
    .option('--tlsKeyFile <file>', 'PEM: the key of its certificate')
    .option('--tls-cipher-suites <names>', "of TLS 1.2, by Go's names; default: the strong ones")
    .option('--tls-min-version <version>', '1.2 (default) or 1.3')
    .option('--httpsAddr <address>', 'webhooks: not served yet');
  command.optionsGroup('Time:');
  command
    .option('--shutdownDuration <duration>', 'longest time of a graceful end, default 10s')
    .option('--keepaliveInterval <duration>', 'between pings of idle proxies, default 30s')
    .option('--keepaliveTimeout <duration>', 'for the answer to a ping, default 10s')
    .option('--keepaliveMaxServerConnectionAge <duration>', 'then a proxy must connect anew, default never');
  command.optionsGroup('What is told:');
  command.option('--profile [on]', 'serve /debug/pprof with the token, default true; heap: --heapSnapshots');
  command.addOption(new Option('--heapSnapshots [on]').hideHelp());
  addLogFlags(addRecordingFlags(command));
  for (const option of flagsWithoutEffect) command.addOption(option);
  return command
    .usage('[flags]')
    .addHelpText(
      'after',
      `
Limits for xDS clients (environment; a client that has said by an acknowledged
response which node it is counts as identified):
  PILOT_MAX_REQUESTS_PER_SECOND                 new streams a second, default by processors
  ISTIO_GPRC_MAXSTREAMS                         streams of one connection, default 100000
  ISTIO_GPRC_MAXRECVMSGSIZE                     bytes of a request, default 4194304
  PILOT_XDS_MAX_CONNECTIONS                     default 60000, and fewer than files may be open (ulimit -n)
  PILOT_XDS_MAX_CONNECTIONS_PER_ADDRESS         default 10000; raise it where more proxies share an address (NAT)
  PILOT_XDS_MAX_UNIDENTIFIED_PER_ADDRESS        connections that have not said who they are, default 512
  PILOT_XDS_UNIDENTIFIED_RATE_PER_ADDRESS       streams a second that come to nothing, ten times as many at once, default 200
  PILOT_XDS_MAX_STREAMS                         streams served, a fair share for each namespace, default by heap size
  PILOT_XDS_MAX_NAMES_PER_STREAM                resource names subscribed to, default 200000

Limits for files of configuration (environment; what goes beyond is refused,
and what was in force of it stays):
  PILOT_CONFIG_MAX_FILE_BYTES                   of one file, default 8388608
  PILOT_CONFIG_MAX_BYTES                        of all files of a directory, default 268435456
  PILOT_CONFIG_MAX_ENTRIES                      names in it and in all directories below, default 100000

Limit for tenants (environment; younger objects beyond it are not exported):
  PILOT_MAX_EXPORTED_PER_NAMESPACE              clusters and routes that one namespace exports to sidecars, default 10000
  PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE        routes of one namespace at gateways, and paths of its Ingresses, default 20000
  PILOT_MAX_ENDPOINTS_PER_NAMESPACE             endpoints of the services of one namespace, default 65536

Exit code: 0 ended as told; 1 it could not start, or could not go on.
` + '\nExample:\n  pilot-discovery discovery --registries= --configDir mesh --grpcAddr 127.0.0.1:15010',
    )
    .action(async (flags: CommandFlags) => {
      process.exitCode = await discovery(command.args, flags);
    });
}

/**
 * Flags as older programs and Go's flag parser write them: `--secureGrpcAddr` is `--secureGRPCAddr`, and without a value
 * (another flag follows) it means none.
 */
export function normalizedArguments(args: readonly string[]): string[] {
  return args.map((arg, i) => {
    const spelled = arg.replace(/^--secureGrpcAddr(?==|$)/, '--secureGRPCAddr');
    const next = args[i + 1];
    return spelled === '--secureGRPCAddr' && (next === undefined || next.startsWith('-')) ? `${spelled}=` : spelled;
  });
}

/** @returns the exit code */
async function discovery(args: readonly string[], flags: CommandFlags): Promise<number> {
  const unknown = unknownFlags(args);
  const options = resolveDiscoveryOptions(flags, process.env);
  const { log } = loggerFromFlags(flags);
  logWarnings(log);
  const version = versionLine();
  log.info(`pilot-discovery ${version}`, { pid: process.pid });
  log.info('flags', flags);
  const idle = flagsWithoutEffect.flatMap((option) => (option.attributeName() in flags ? option.long! : []));
  if (idle.length > 0) log.info('flags that have no effect here', { flags: idle });
  if (unknown.length > 0) log.warn('flags that mean nothing here are ignored', { flags: unknown });
  const recording = openRecording({
    program: 'pilot-discovery',
    machines: [discoveryMachine, adsConnectionMachine],
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

/** What commander left over: flags that it does not know, each perhaps with a value. Nothing else may be there. */
function unknownFlags(args: readonly string[]): string[] {
  const flags = args.filter((arg) => arg.startsWith('-'));
  const stray = args.find((arg, i) => !arg.startsWith('-') && !(args[i - 1] ?? '').startsWith('-'));
  if (stray !== undefined) {
    throw new ChartpilotError('FLAG_INVALID', `discovery takes no arguments, and ${JSON.stringify(stray)} is one`);
  }
  return flags;
}
