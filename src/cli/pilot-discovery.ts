/** `pilot-discovery`: the control plane (spec/discovery.md §1). */
import { Command, CommanderError } from 'commander';
import { explainError } from '../runtime/errors.ts';
import { endProgram, standardError } from '../runtime/standard-streams.ts';
import { completionCommand } from './commands/completion.ts';
import { discoveryCommand, normalizedArguments } from './commands/discovery.ts';
import { explainCommand } from './commands/explain.ts';
import { requestCommand } from './commands/request.ts';
import { validateCommand } from './commands/validate.ts';
import { versionCommand } from './commands/version.ts';
import { registerConformanceCommand } from './commands/xds-conformance.ts';
import { speakThroughSinks } from './speak-through-sinks.ts';

const failed = 1;

function pilotDiscovery(): Command {
  const program = new Command('pilot-discovery')
    .description('Configures Envoys: reads what the mesh is, and serves it to every proxy over xDS.')
    .showHelpAfterError("(run 'pilot-discovery --help' or 'pilot-discovery COMMAND --help')")
    .exitOverride()
    .addCommand(discoveryCommand())
    .addCommand(validateCommand())
    .addCommand(explainCommand())
    .addCommand(
      requestCommand({
        what: 'the control plane of this host',
        host: '127.0.0.1',
        defaultPort: 15014,
        allowedPorts: [],
        example: 'pilot-discovery request GET /debug/syncz',
        failed: 1,
      }),
    )
    .addCommand(versionCommand('pilot-discovery'))
    .addCommand(completionCommand());
  registerConformanceCommand(program);
  return speakThroughSinks(program);
}

try {
  await pilotDiscovery().parseAsync(normalizedArguments(process.argv.slice(2)), { from: 'user' });
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has told the person; help that was asked for is no error.
    process.exitCode = error.exitCode === 0 ? 0 : failed;
  } else {
    standardError.write(`pilot-discovery: ${explainError(error)}\n`);
    process.exitCode = failed;
  }
}
// Nothing that still has a handle open keeps the process alive.
await endProgram();
