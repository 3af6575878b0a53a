import { Command } from 'commander';
import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import { runAgent } from '../../agent/agent-system.ts';
import { findOrInstallEnvoy } from '../../agent/envoy/envoy-binary.ts';
import { warnAboutVersion } from '../../agent/envoy/envoy-release.ts';
import { awaitAddresses } from '../../agent/options/addresses.ts';
import { withCloudMetadata } from '../../agent/options/cloud-platform.ts';
import type { ProxyOptions } from '../../agent/options/options.ts';
import type { ProxyFlags } from '../../agent/options/proxy-flags.ts';
import { resolveProxyOptions } from '../../agent/options/proxy-options.ts';
import { withStatsdAddress } from '../../agent/options/statsd-address.ts';
import { proxyConfigToJson } from '../../model/mesh/proxy-config.ts';
import { openFilesLimit } from '../../runtime/fences/open-files.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { standardError } from '../../runtime/output/standard-streams.ts';
import { addLogFlags, type LogFlags, loggerFromFlags, logWarnings } from '../flags/log-flags.ts';
import { addRecordingFlags, openRecording, type RecordingFlags } from '../flags/trace-flags.ts';
import { refuseRedirectionLoop } from '../refuse-redirection-loop.ts';
import { unknownFlagsOf } from '../usage.ts';
import { addHelpSections } from './help-sections.ts';
import { addProxyFlags, roleArgument } from './proxy-flags.ts';
import { versionLine } from './version.ts';

export interface Succession {
  /** Called when the state machines run; their timeouts replace the timeout of the start. */
  readonly booted: () => void;
}

interface CommandFlags extends ProxyFlags, LogFlags, RecordingFlags {}

export type ProxyRun = (args: readonly string[], flags: CommandFlags) => Promise<number>;

/** @param run replaced by tests */
export function proxyCommand(succession?: Succession, run: ProxyRun = proxyRun(succession)): Command {
  const command = new Command('proxy')
    .summary('Run Envoy')
    .description(
      'Run Envoy until SIGTERM, SIGINT or SIGQUIT, which drain it; a second signal stops it immediately. ' +
        'SIGHUP starts a hot restart. SIGUSR1 reopens access logs.',
    )
    .argument('[role]', 'Proxy type: sidecar or router', 'sidecar')
    .allowUnknownOption()
    .allowExcessArguments();
  addProxyCommandFlags(command);
  return addHelpSections(command, {
    examples: ['pilot-agent proxy router --discoveryAddress 127.0.0.1:15010 --controlPlaneAuthPolicy NONE'],
    environment: [
      [
        'EXIT_ON_ZERO_ACTIVE_CONNECTIONS',
        'true: exit when no connection is active, instead of after --terminationDrainDuration',
      ],
      ['MINIMUM_DRAIN_DURATION', 'Minimum drain time with EXIT_ON_ZERO_ACTIVE_CONNECTIONS (default 5s)'],
      ['LIVE_RESTORE', 'true: as PID 1 of a container, keep Envoy running if the agent is killed'],
      ['STANDARD_METRICS', 'false: do not count requests (default true)'],
      ['STANDARD_METRICS_MAX_LABEL_SETS', 'Label sets of each standard metric (default 1000)'],
      ['DISABLE_ENVOY', 'true: run no Envoy, only the agent (for proxyless gRPC)'],
      ['GRPC_XDS_BOOTSTRAP', 'Path of the gRPC bootstrap file, written if ISTIO_META_GENERATOR is grpc'],
    ],
    exitCodes: [
      ['0', 'stopped by a signal'],
      ['1', 'Envoy could not be kept running, or a port of the agent is in use'],
      ['255', 'invalid flag, file or environment variable'],
    ],
  }).action(async (_role: string, flags: CommandFlags) => {
    process.exitCode = await run(command.args, flags);
  });
}

function proxyRun(succession: Succession | undefined): ProxyRun {
  return (args, flags) => proxy(args, flags, succession);
}

function addProxyCommandFlags(command: Command): Command {
  return addLogFlags(addRecordingFlags(addProxyFlags(command)));
}

export async function prepareProxy(args: readonly string[], flags: CommandFlags) {
  const role = roleArgument(args, 'sidecar');
  const noAddress = await awaitAddresses();
  const options = await withCloudMetadata(
    await withStatsdAddress(resolveProxyOptions({ role, flags, env: process.env })),
  );
  const { log, countUnwrittenLines } = loggerFromFlags(flags, envoyScopeLevel(options));
  logWarnings(log);
  if (noAddress !== undefined) log.write(noAddress);
  log.info('agent.started', { version: versionLine(), role, pid: process.pid });
  log.info('program.flags', redactTokens(flags));
  log.info('agent.fileLimit', { limit: openFilesLimit() });
  log.info('agent.config', redactTokens(proxyConfigToJson(options.config)));
  const unknownFlags = unknownFlagsOf(addProxyCommandFlags(new Command()), args);
  if (unknownFlags.length > 0) log.warn('option.unknown', { flags: unknownFlags });
  return { role, options, log, unwritten: countUnwrittenLines };
}

async function proxy(
  args: readonly string[],
  flags: CommandFlags,
  succession: Succession | undefined,
): Promise<number> {
  const { role, options, log, unwritten } = await prepareProxy(args, flags);
  const mode = process.env.ISTIO_META_INTERCEPTION_MODE ?? options.config.interceptionMode;
  await refuseRedirectionLoop(log, { role, intercepts: mode !== 'NONE' });
  const binary = options.runsEnvoy ? await envoyFor(options, log) : '';
  const { runDir } = options;
  // The older agent still writes to its own file.
  const isSuccessor = succession !== undefined;
  const trace = isSuccessor && flags.trace ? { trace: `${flags.trace}.${process.pid}` } : {};
  const recording = openRecording({
    program: 'pilot-agent',
    machines: [agentMachine],
    flags: { ...flags, ...trace },
    runDir,
    log,
  });
  succession?.booted();
  try {
    const unwrittenLines = () => ({ log: unwritten(), trace: recording.countUnwrittenLines() });
    const traceLevel = recording.level;
    return await runAgentWithTrace(
      { options, binary, log, unwrittenLines, traceLevel, succeeds: isSuccessor, ...recording },
      flags.trace,
    );
  } finally {
    await recording.close();
  }
}

async function envoyFor({ binaryPath }: ProxyOptions, log: Logger): Promise<string> {
  const search = binaryPath === undefined ? {} : { binaryPath };
  const progress = (line: string): void => standardError.write(`${line}\n`);
  const envoy = await findOrInstallEnvoy({ ...search, env: process.env }, { env: process.env, progress });
  log.info('envoy.binary', { path: envoy.path, source: envoy.source });
  void warnAboutVersion(envoy.path, log);
  return envoy.path;
}

async function runAgentWithTrace(program: Parameters<typeof runAgent>[0], trace: string | undefined): Promise<number> {
  const { exitCode, trouble } = await runAgent(program);
  if (trouble.length === 0) return exitCode;
  const [headline, ...details] = trouble;
  const traceHint = trace === undefined ? '' : `\n  → what led to it: chartpilot trace ${trace}`;
  standardError.write(`pilot-agent: ${[headline, ...details].join('\n  ')}${traceHint}\n`);
  return exitCode;
}

/** Removes tokens, because a log has more readers than a configuration. */
function redactTokens(settings: object): object {
  const isToken = (key: string): boolean => /accessToken$/i.test(key);
  return JSON.parse(JSON.stringify(settings, (key, value: unknown) => (isToken(key) ? '…' : value))) as object;
}

/** A user who sets Envoy's log level expects its log. */
function envoyScopeLevel({ logLevel }: ProxyOptions): string {
  return /\b(debug|trace)\b/.test(`${logLevel.level},${logLevel.components}`) ? 'envoy:debug' : '';
}
