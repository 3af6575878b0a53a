/** `pilot-discovery`: the control plane (spec/discovery.md §1). */
import { Command } from 'commander';
import { completionCommand } from './commands/completion.ts';
import { crdsCommand } from './commands/crds.ts';
import { discoveryCommand, normalizedArguments } from './commands/discovery.ts';
import { explainCommand } from './commands/explain.ts';
import { requestCommand } from './commands/request.ts';
import { tokenCommand } from './commands/token.ts';
import { validateCommand } from './commands/validate.ts';
import { versionCommand } from './commands/version.ts';
import { registerConformanceCommand } from './commands/xds-conformance.ts';
import { runProgram } from './run-program.ts';

const failed = 1;

function pilotDiscovery(): Command {
  const program = new Command('pilot-discovery')
    .description('Istio control plane: read mesh configuration and serve it to Envoy proxies over xDS.')
    .exitOverride()
    .addCommand(discoveryCommand())
    .addCommand(validateCommand())
    .addCommand(explainCommand())
    .addCommand(
      requestCommand({
        target: 'the control plane on this host',
        host: '127.0.0.1',
        defaultPort: 15014,
        allowedPorts: [],
        example: 'pilot-discovery request GET /debug/syncz',
        failed: 1,
      }),
    )
    .addCommand(crdsCommand())
    .addCommand(tokenCommand())
    .addCommand(versionCommand('pilot-discovery'))
    .addCommand(completionCommand('pilot-discovery'));
  registerConformanceCommand(program);
  return program;
}

await runProgram(
  pilotDiscovery(),
  { misused: failed, failed: () => failed },
  normalizedArguments(process.argv.slice(2)),
);
