/** The flags of `proxy`, which `bootstrap` takes as well: what one runs, the other shows. */
import { type Command, Option } from 'commander';

export function addProxyFlags(command: Command): Command {
  command.optionsGroup('Control plane:');
  command
    .option('--discoveryAddress <host:port>', 'default istiod.istio-system.svc:15012')
    .option('--controlPlaneAuthPolicy <policy>', 'NONE (plaintext) or MUTUAL_TLS (default)')
    .option('--connectTimeout <duration>', 'default 1s')
    .option('--delta', 'incremental xDS');
  command.optionsGroup('Who this proxy is:');
  command
    .option('--domain <suffix>', 'default $POD_NAMESPACE.svc.cluster.local')
    .option('--serviceCluster <name>', 'default istio-proxy, or by the app label')
    .option('--meshConfig <file>', 'mesh configuration, default ./etc/istio/config/mesh');
  command.optionsGroup('Envoy:');
  command
    .option('--binaryPath <file>', 'default $ENVOY_BINARY, PATH, else installed into the cache')
    .option('--configPath <dir>', 'generated files, default ./etc/istio/proxy')
    .option('--customConfigFile <file>', 'run Envoy with this file; generate none')
    .option('--templateFile <file>', 'of the bootstrap: Go template, JSON or YAML')
    .option('--concurrency <n>', 'worker threads, default one a processor')
    .option('--drainDuration <duration>', 'default 45s')
    .option('--parentShutdownDuration <duration>', 'default 60s')
    .option('--terminationDrainDuration <duration>', 'drain before the end, default 5s')
    .option('--proxyAdminPort <port>', 'default 15000')
    .option('--spareAdminPort <port>', 'of an Envoy that replaces a stuck one, default a free port')
    .option('--proxyLogLevel <levels>', 'level,component:level,…; default warning')
    .option('--baseId <n>', 'Envoy base id, default a free one')
    .option('--runDir <dir>', 'locks of base ids, default /run/chartpilot');
  command.optionsGroup('Agent:');
  command
    .option('--statusPort <port>', 'readiness and metrics, default 15020; 0: none')
    .option('--watchCerts <dir,…>', 'a change of a certificate in there restarts Envoy hot')
    .option('--watchDelay <duration>', 'from a change to the restart, default 10s')
    .option('--restartPolicy <policy>', 'an Envoy that ends: retry (default), or exit with it')
    .option('--watchBinary <on|off>', 'another Envoy at its path is taken up hot; off: by POST /upgrade')
    .option('--hotRestart <on|off>', 'off: drain and start anew instead; default on');
  for (const flag of rareFlags) command.addOption(new Option(flag).hideHelp());
  return command;
}

/** Taken as the reference takes them; few people need them. */
const rareFlags = [
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

/**
 * The role stands before flags that we do not know, or after them.
 *
 * @param otherwise where nobody says one
 */
export function roleAmong(args: readonly string[], otherwise: string): string {
  const [first = otherwise] = args;
  if (!first.startsWith('-')) return first;
  return args.find((arg) => arg === 'sidecar' || arg === 'router') ?? otherwise;
}
