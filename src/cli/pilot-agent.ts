/** `pilot-agent`: the sidecar's entrypoint (spec/agent.md §1). */
import { Command, Option } from 'commander';
import { agentMachine } from '../../machines/agent/agent.machine.ts';
import { runAgent } from '../agent/agent-system.ts';
import { findOrInstallEnvoy } from '../agent/envoy/envoy-binary.ts';
import type { ProxyOptions } from '../agent/options/options.ts';
import type { ProxyFlags } from '../agent/options/proxy-flags.ts';
import { resolveProxyOptions } from '../agent/options/proxy-options.ts';
import { proxyConfigToJson } from '../model/mesh/proxy-config.ts';
import { standardError } from '../runtime/standard-streams.ts';
import { istioCleanIptablesCommand, istioIptablesCommand } from './commands/istio-iptables.ts';
import { addLogFlags, type LogFlags, loggerFromFlags, logWarnings } from './commands/log-flags.ts';
import { requestCommand } from './commands/request.ts';
import { addRecordingFlags, openRecording, type RecordingFlags } from './commands/trace-flags.ts';
import { versionCommand, versionLine } from './commands/version.ts';
import { waitCommand } from './commands/wait.ts';
import { runProgram } from './run-program.ts';

/** A set-up that cannot work. The reference's −1. */
const setUpFailed = 255;

interface CommandFlags extends ProxyFlags, LogFlags, RecordingFlags {}

const hint = "(run 'pilot-agent --help' or 'pilot-agent COMMAND --help')";

function pilotAgent(): Command {
  const program = new Command('pilot-agent')
    .description('Runs Envoy beside a workload: starts it, hot-restarts it, keeps it running, drains it.')
    .allowUnknownOption()
    .showHelpAfterError(hint)
    .exitOverride()
    .addCommand(proxyCommand())
    .addCommand(
      requestCommand({
        what: "Envoy's admin interface",
        host: 'localhost',
        defaultPort: 15000,
        allowedPorts: [15000, 15004, 15020, 15021],
        example: 'pilot-agent request GET /stats',
        failed: 255,
      }),
    )
    .addCommand(waitCommand())
    .addCommand(istioIptablesCommand())
    .addCommand(istioCleanIptablesCommand())
    .addCommand(versionCommand('pilot-agent'));
  // A command that is added, not made by its program, takes over nothing of it.
  for (const command of program.commands) command.exitOverride().showHelpAfterError(hint);
  return program;
}

function proxyCommand(): Command {
  const command = new Command('proxy')
    .summary('run Envoy until told to end')
    .description(
      'Runs Envoy until SIGTERM, SIGINT or SIGQUIT (drain, then end; a second one: at once). ' +
        'SIGHUP restarts it hot, SIGUSR1 reopens access logs.',
    )
    .argument('[role]', 'sidecar or router', 'sidecar')
    .allowUnknownOption()
    .allowExcessArguments();
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
    .option('--hotRestart <on|off>', 'off: drain and start anew instead; default on');
  addLogFlags(addRecordingFlags(command));
  for (const flag of rareFlags) command.addOption(new Option(flag).hideHelp());
  return command
    .addHelpText(
      'after',
      `\nEnvironment:
  EXIT_ON_ZERO_ACTIVE_CONNECTIONS=true   end when no request is in flight, not after --terminationDrainDuration,
  MINIMUM_DRAIN_DURATION=5s              but not before this
\nExample:\n  pilot-agent proxy router --discoveryAddress 127.0.0.1:15010 --controlPlaneAuthPolicy NONE`,
    )
    .action(async (_role: string, flags: CommandFlags) => {
      process.exitCode = await proxy(command.args, flags);
    });
}

/** Taken as the reference takes them; few people need them. */
const rareFlags = [
  '--proxyComponentLogLevel <levels>',
  '--outlierLogPath <file>',
  '--statsdUdpAddress <host:port>',
  '--id <id>',
  '--ip <address>',
];

/** @returns the exit code */
async function proxy(args: readonly string[], flags: CommandFlags): Promise<number> {
  const role = roleAmong(args);
  const options = resolveProxyOptions({ role, flags, env: process.env });
  const { log, unwritten } = loggerFromFlags(flags, envoyScopeLevel(options));
  logWarnings(log);
  log.info(`pilot-agent ${versionLine()}`, { role, pid: process.pid });
  log.info('flags', flags);
  log.info('effective config', proxyConfigToJson(options.config));
  const unknown = args.filter((arg) => arg.startsWith('-'));
  if (unknown.length > 0) log.warn('flags that mean nothing here are ignored', { flags: unknown });

  const search = options.binaryPath === undefined ? {} : { binaryPath: options.binaryPath };
  const progress = (line: string): void => standardError.write(`${line}\n`);
  const envoy = await findOrInstallEnvoy({ ...search, env: process.env }, { env: process.env, progress });
  log.info(`Envoy is ${envoy.path}`, { by: envoy.by });

  const { runDir } = options;
  const recording = openRecording({ program: 'pilot-agent', machines: [agentMachine], flags, runDir, log });
  try {
    const unwrittenLines = () => ({ log: unwritten(), trace: recording.unwritten() });
    return await run({ options, binary: envoy.path, log, unwrittenLines, ...recording }, flags.trace);
  } finally {
    await recording.close();
  }
}

async function run(program: Parameters<typeof runAgent>[0], trace: string | undefined): Promise<number> {
  const { exitCode, trouble } = await runAgent(program);
  if (trouble.length === 0) return exitCode;
  const [what, ...details] = trouble;
  const place = trace === undefined ? '' : `\n  → what led to it: chartpilot trace ${trace}`;
  standardError.write(`pilot-agent: ${[what, ...details].join('\n  ')}${place}\n`);
  return exitCode;
}

/** The role stands before flags that we do not know, or after them. */
function roleAmong(args: readonly string[]): string {
  const [first = 'sidecar'] = args;
  if (!first.startsWith('-')) return first;
  return args.find((arg) => arg === 'sidecar' || arg === 'router') ?? 'sidecar';
}

/** Who asks Envoy to say more wants to read it. */
function envoyScopeLevel({ logLevel }: ProxyOptions): string {
  return /\b(debug|trace)\b/.test(`${logLevel.level},${logLevel.components}`) ? 'envoy:debug' : '';
}

await runProgram(pilotAgent(), { misused: setUpFailed, failed: () => setUpFailed });
