import { Command } from 'commander';
import { checkInstallationCommand } from './commands/check-installation.ts';
import { completionCommand } from './commands/completion.ts';
import { crdsCommand } from './commands/crds.ts';
import { explainCommand } from './commands/explain.ts';
import { injectCommand } from './commands/inject.ts';
import { certificatesCommand } from './commands/remote/certificates.ts';
import { changesCommand } from './commands/remote/changes.ts';
import { requestCommand } from './commands/request.ts';
import { tokenCommand } from './commands/token.ts';
import { validateCommand } from './commands/validate.ts';
import { versionCommand } from './commands/version.ts';
import { registerConformanceCommand } from './commands/xds-conformance.ts';

export function pilotDiscovery(discovery: Command): Command {
  const program = new Command('pilot-discovery')
    .description('Istio control plane: read mesh configuration and serve it to Envoy proxies over xDS.')
    .exitOverride()
    .addCommand(discovery)
    .addCommand(validateCommand())
    .addCommand(explainCommand())
    .addCommand(injectCommand())
    .addCommand(
      requestCommand({
        target: 'a control plane',
        host: '127.0.0.1',
        defaultPort: 15014,
        allowedPorts: [],
        acceptsFrom: true,
        example: 'pilot-discovery request GET /debug/syncz --from 127.0.0.1:15014',
        failed: 1,
      }),
    )
    .addCommand(changesCommand())
    .addCommand(certificatesCommand())
    .addCommand(crdsCommand())
    .addCommand(checkInstallationCommand())
    .addCommand(tokenCommand())
    .addCommand(versionCommand('pilot-discovery'))
    .addCommand(completionCommand('pilot-discovery'));
  registerConformanceCommand(program);
  for (const command of program.commands) command.exitOverride();
  return program;
}
