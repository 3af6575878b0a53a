import { Command } from 'commander';
import { standardError } from '../runtime/output/standard-streams.ts';
import { bootstrapCommand } from './commands/bootstrap.ts';
import { completionCommand } from './commands/completion.ts';
import { istioCleanIptablesCommand, istioIptablesCommand } from './commands/istio-iptables.ts';
import { requestCommand } from './commands/request.ts';
import { versionCommand } from './commands/version.ts';
import { waitCommand } from './commands/wait.ts';
import { acceptLogFlags } from './flags/log-flags.ts';

export function pilotAgent(proxy: Command): Command {
  const program = new Command('pilot-agent')
    .description('Run Envoy as a sidecar or gateway: generate its bootstrap, start, hot restart and drain it.')
    .allowUnknownOption()
    .exitOverride()
    .addCommand(proxy)
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
  // Unlike `command`, `addCommand` does not copy the settings of the program.
  for (const command of program.commands) {
    command.exitOverride();
    acceptLogFlags(command);
  }
  return program;
}

/**
 * As in Istio, `proxy` reads flags before the command's name and ignores unknown ones. Other commands ignore all such flags. A word after an unknown
 * flag is the flag's value, unless the word names a command.
 */
export function commandFirst(program: Command, args: readonly string[]): readonly string[] {
  const names = new Set(program.commands.map((command) => command.name()));
  const commandIndex = args.findIndex((arg) => names.has(arg));
  if (
    commandIndex <= 0 ||
    !args[0]!.startsWith('-') ||
    args.slice(0, commandIndex).some((arg) => arg === '-h' || arg === '--help')
  )
    return args;
  const [argsBefore, command, argsAfter] = [
    args.slice(0, commandIndex),
    args[commandIndex]!,
    args.slice(commandIndex + 1),
  ];
  if (command === 'proxy') return [command, ...argsAfter, ...argsBefore];
  standardError.write(`pilot-agent: ignoring flags that ${command} does not have: ${argsBefore.join(' ')}\n`);
  return [command, ...argsAfter];
}
