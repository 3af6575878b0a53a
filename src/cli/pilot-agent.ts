/** `pilot-agent`: the sidecar's entrypoint (spec/agent.md §1). */
import { Command } from 'commander';
import { agentMachine } from '../../machines/agent/agent.machine.ts';
import { gaveWay } from '../../machines/agent/replacement/due-orders.ts';
import { runAgent } from '../agent/agent-system.ts';
import { findOrInstallEnvoy } from '../agent/envoy/envoy-binary.ts';
import { warnOfVersion } from '../agent/envoy/envoy-release.ts';
import { awaitAddresses } from '../agent/options/addresses.ts';
import { withCloudMetadata } from '../agent/options/cloud-platform.ts';
import type { ProxyOptions } from '../agent/options/options.ts';
import type { ProxyFlags } from '../agent/options/proxy-flags.ts';
import { resolveProxyOptions } from '../agent/options/proxy-options.ts';
import { withStatsdAddress } from '../agent/options/statsd-address.ts';
import { proxyConfigToJson } from '../model/mesh/proxy-config.ts';
import { openFilesLimit } from '../runtime/fences/open-files.ts';
import type { Logger } from '../runtime/output/log.ts';
import { endProgram, standardError } from '../runtime/output/standard-streams.ts';
import { bootstrapCommand } from './commands/bootstrap.ts';
import { completionCommand } from './commands/completion.ts';
import { addHelpSections } from './commands/help-sections.ts';
import { istioCleanIptablesCommand, istioIptablesCommand } from './commands/istio-iptables.ts';
import { addLogFlags, type LogFlags, loggerFromFlags, logWarnings, takeLogFlags } from './commands/log-flags.ts';
import { addProxyFlags, roleAmong } from './commands/proxy-flags.ts';
import { requestCommand } from './commands/request.ts';
import { addRecordingFlags, openRecording, type RecordingFlags } from './commands/trace-flags.ts';
import { versionCommand, versionLine } from './commands/version.ts';
import { waitCommand } from './commands/wait.ts';
import { refuseRedirectionLoop } from './refuse-redirection-loop.ts';
import { runProgram } from './run-program.ts';

/** A set-up that cannot work. The reference's −1. */
const setUpFailed = 255;

interface CommandFlags extends ProxyFlags, LogFlags, RecordingFlags {}

function pilotAgent(): Command {
  const program = new Command('pilot-agent')
    .description('Run Envoy as a sidecar or gateway: generate its bootstrap, start, hot restart and drain it.')
    .allowUnknownOption()
    .exitOverride()
    .addCommand(proxyCommand())
    .addCommand(bootstrapCommand())
    .addCommand(
      requestCommand({
        target: "Envoy's admin interface",
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
    .addCommand(completionCommand('pilot-agent'))
    .addCommand(versionCommand('pilot-agent'));
  // addCommand, unlike command, does not copy the settings of the program.
  for (const command of program.commands) {
    command.exitOverride();
    takeLogFlags(command);
  }
  return program;
}

/**
 * Flags before the command's name are those of `proxy`, as the reference has them; whichever it does not know it ignores, and other
 * commands ignore all (spec/agent.md §1.1). A word after an unknown flag is its value, unless it names a command.
 */
function commandFirst(program: Command, args: readonly string[]): readonly string[] {
  const names = new Set(program.commands.map((command) => command.name()));
  const at = args.findIndex((arg) => names.has(arg));
  if (at <= 0 || !args[0]!.startsWith('-') || args.slice(0, at).some((arg) => arg === '-h' || arg === '--help'))
    return args;
  const [before, command, after] = [args.slice(0, at), args[at]!, args.slice(at + 1)];
  if (command === 'proxy') return [command, ...after, ...before];
  standardError.write(`pilot-agent: ignoring flags that ${command} does not have: ${before.join(' ')}\n`);
  return [command, ...after];
}

function proxyCommand(): Command {
  const command = new Command('proxy')
    .summary('Run Envoy')
    .description(
      'Run Envoy until SIGTERM, SIGINT or SIGQUIT, which drain it; a second signal stops it immediately. ' +
        'SIGHUP starts a hot restart. SIGUSR1 reopens access logs.',
    )
    .argument('[role]', 'Proxy type: sidecar or router', 'sidecar')
    .allowUnknownOption()
    .allowExcessArguments();
  addLogFlags(addRecordingFlags(addProxyFlags(command)));
  return addHelpSections(command, {
    examples: ['pilot-agent proxy router --discoveryAddress 127.0.0.1:15010 --controlPlaneAuthPolicy NONE'],
    environment: [
      [
        'EXIT_ON_ZERO_ACTIVE_CONNECTIONS',
        'true: exit when no connection is active, instead of after --terminationDrainDuration',
      ],
      ['MINIMUM_DRAIN_DURATION', 'Minimum drain time with EXIT_ON_ZERO_ACTIVE_CONNECTIONS (default 5s)'],
      ['LIVE_RESTORE', 'true: as PID 1 of a container, keep Envoy running if the agent is killed'],
      ['DISABLE_ENVOY', 'true: run no Envoy, only the agent (for proxyless gRPC)'],
    ],
    exitCodes: [
      ['0', 'stopped by a signal'],
      ['1', 'Envoy could not be kept running, or a port of the agent is in use'],
      ['255', 'invalid flag, file or environment variable'],
    ],
  }).action(async (_role: string, flags: CommandFlags) => {
    process.exitCode = await proxy(command.args, flags);
  });
}

/** @returns the exit code */
async function proxy(args: readonly string[], flags: CommandFlags): Promise<number> {
  const role = roleAmong(args, 'sidecar');
  const noAddress = await awaitAddresses();
  const options = await withCloudMetadata(
    await withStatsdAddress(resolveProxyOptions({ role, flags, env: process.env })),
  );
  const { log, unwritten } = loggerFromFlags(flags, envoyScopeLevel(options));
  logWarnings(log);
  if (noAddress !== undefined) log.write(noAddress);
  log.info('agent.started', { version: versionLine(), role, pid: process.pid });
  log.info('program.flags', withoutTokens(flags));
  log.info('agent.fileLimit', { limit: openFilesLimit() });
  log.info('agent.config', withoutTokens(proxyConfigToJson(options.config)));
  const unknown = args.filter((arg) => arg.startsWith('-'));
  if (unknown.length > 0) log.warn('option.unknown', { flags: unknown });

  const mode = process.env.ISTIO_META_INTERCEPTION_MODE ?? options.config.interceptionMode;
  await refuseRedirectionLoop(log, { role, intercepts: mode !== 'NONE' });
  const binary = options.runsEnvoy ? await envoyFor(options, log) : '';
  const { runDir } = options;
  // The older agent writes on into its own.
  const trace = succeeds && flags.trace ? { trace: `${flags.trace}.${process.pid}` } : {};
  const recording = openRecording({
    program: 'pilot-agent',
    machines: [agentMachine],
    flags: { ...flags, ...trace },
    runDir,
    log,
  });
  clearTimeout(bootLimit);
  try {
    const unwrittenLines = () => ({ log: unwritten(), trace: recording.unwritten() });
    const traceLevel = recording.level;
    return await run({ options, binary, log, unwrittenLines, traceLevel, succeeds, ...recording }, flags.trace);
  } finally {
    await recording.close();
  }
}

/** @returns the path of the binary */
async function envoyFor({ binaryPath }: ProxyOptions, log: Logger): Promise<string> {
  const search = binaryPath === undefined ? {} : { binaryPath };
  const progress = (line: string): void => standardError.write(`${line}\n`);
  const envoy = await findOrInstallEnvoy({ ...search, env: process.env }, { env: process.env, progress });
  log.info('envoy.binary', { path: envoy.path, source: envoy.by });
  void warnOfVersion(envoy.path, log);
  return envoy.path;
}

async function run(program: Parameters<typeof runAgent>[0], trace: string | undefined): Promise<number> {
  const { exitCode, trouble } = await runAgent(program);
  if (trouble.length === 0) return exitCode;
  const [what, ...details] = trouble;
  const place = trace === undefined ? '' : `\n  → what led to it: chartpilot trace ${trace}`;
  standardError.write(`pilot-agent: ${[what, ...details].join('\n  ')}${place}\n`);
  return exitCode;
}

/** A log is read by more people than a configuration. */
function withoutTokens(said: object): object {
  const isToken = (key: string): boolean => /accessToken$/i.test(key);
  return JSON.parse(JSON.stringify(said, (key, value: unknown) => (isToken(key) ? '…' : value))) as object;
}

/** Who asks Envoy to say more wants to read it. */
function envoyScopeLevel({ logLevel }: ProxyOptions): string {
  return /\b(debug|trace)\b/.test(`${logLevel.level},${logLevel.components}`) ? 'envoy:debug' : '';
}

/**
 * By this word the launcher starts an agent that is to take the place of an older one. A command, not a flag or a variable: a program that
 * does not know it ends, and would otherwise end what it finds running.
 */
const successionWord = 'succeed';
const words = process.argv.slice(2);
const succeeds = words[0] === successionWord;
function giveUpBooting(): void {
  process.exitCode = gaveWay;
  void endProgram();
}

/** Until a newer agent has charts, which have limits: one that waits for an address or a download is not waited for. */
const bootLimit = succeeds ? setTimeout(giveUpBooting, 30_000) : undefined;

const program = pilotAgent();
const codes = { misused: setUpFailed, failed: () => setUpFailed };
await runProgram(program, codes, commandFirst(program, succeeds ? words.slice(1) : words));
