import { readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { agentBootstrap } from '../../agent/bootstrap/agent-bootstrap.ts';
import { bootstrapText } from '../../agent/bootstrap/prepare-epoch.ts';
import { unwritableError } from '../../agent/envoy/scratch-folder.ts';
import { isCredentialServerReachable } from '../../agent/identity/credential-server.ts';
import type { ProxyOptions } from '../../agent/options/options.ts';
import type { ProxyFlags } from '../../agent/options/proxy-flags.ts';
import { resolveProxyOptions } from '../../agent/options/proxy-options.ts';
import { withStatsdAddress } from '../../agent/options/statsd-address.ts';
import { replaceFileSync } from '../../runtime/files/replace-file.ts';
import { entryText } from '../../runtime/output/log.ts';
import { standardError, standardOutput } from '../../runtime/output/standard-streams.ts';
import { unknownFlagsOf } from '../usage.ts';
import { addHelpSections } from './help-sections.ts';
import { addProxyFlags, roleArgument } from './proxy-flags.ts';

interface BootstrapFlags extends ProxyFlags {
  readonly out: string;
}

export function bootstrapCommand(): Command {
  const command = new Command('bootstrap')
    .summary('Print the Envoy bootstrap configuration')
    .description(
      "Print the bootstrap that 'proxy' would start Envoy with, from the same flags, environment and files. The token " +
        'and the root certificate of the control plane are assumed to exist.',
    )
    .argument('[role]', 'Proxy type: sidecar or router (default that of --nodeId, else sidecar)')
    .allowUnknownOption()
    .allowExcessArguments();
  command.optionsGroup('Input and output:');
  command
    .option('--proxyConfig <file>', 'ProxyConfig that overrides the mesh configuration and PROXY_CONFIG')
    .option('--podInfoDir <dir>', 'Directory with labels and annotations (default ./etc/istio/pod)')
    .option('--nodeId <id>', 'Node ID: type~address~name.namespace~domain')
    .option('--instanceIPs <a,b>', 'Addresses of the proxy, the primary one first')
    .option('--pilotSAN <s,…>', 'SANs of the control plane in the node metadata')
    .option('--platformMetadata <json>', 'Cloud metadata, a JSON object of strings')
    .option('--out <file>', 'Output file; - is standard output', '-');
  return addHelpSections(addProxyFlags(command), {
    examples: ['pilot-agent bootstrap --discoveryAddress istiod.istio-system.svc:15012 --out bootstrap.json'],
    exitCodes: [
      ['0', 'bootstrap written'],
      ['255', 'invalid flag, file or environment variable'],
    ],
  }).action(async (_role: string | undefined, flags: BootstrapFlags) => {
    const unknownFlags = unknownFlagsOf(command, command.args);
    if (unknownFlags.length > 0) {
      standardError.write(`pilot-agent: warning: ${entryText({ event: 'option.unknown', flags: unknownFlags })}\n`);
    }
    await writeBootstrap(roleArgument(command.args, roleOf(flags)), flags);
  });
}

function roleOf({ nodeId }: BootstrapFlags): string {
  return nodeId?.startsWith('router~') ? 'router' : 'sidecar';
}

async function writeBootstrap(role: string, flags: BootstrapFlags): Promise<void> {
  const options = await withStatsdAddress(resolveProxyOptions({ role, flags, env: process.env, assumesMounts: true }));
  const { text, warnings } = await bootstrapOf(options);
  for (const warning of [...options.warnings.map(entryText), ...warnings]) {
    standardError.write(`pilot-agent: warning: ${warning}\n`);
  }
  if (flags.out === '-') standardOutput.print(text);
  else writeOutput(resolve(flags.out), text);
}

async function bootstrapOf(options: ProxyOptions): Promise<{ text: string; warnings: readonly string[] }> {
  const { config, baseId = 0 } = options;
  if (config.customConfigFile) {
    const warnings = [`${config.customConfigFile} is used unchanged`];
    return { text: readFileSync(config.customConfigFile, 'utf8'), warnings };
  }
  const { bootstrap, warnings } = agentBootstrap(options, {
    adminPort: config.proxyAdminPort,
    run: { epoch: 0, baseId },
    hasCredentialServer: await isCredentialServerReachable(),
  });
  return { text: bootstrapText(bootstrap), warnings: warnings.map(entryText) };
}

/**
 * Mode 0600, because the configuration may contain tokens of tracers. A pipe or a device is not replaced: replacing `/dev/null` would break other
 * programs.
 */
function writeOutput(file: string, text: string): void {
  try {
    const fileStat = statSync(file, { throwIfNoEntry: false });
    if (fileStat?.isFile() === false) {
      writeFileSync(file, text);
      return;
    }
    const targetPath = fileStat === undefined ? file : realpathSync(file);
    replaceFileSync(targetPath, text);
  } catch (error) {
    throw unwritableError(file, error, '--out');
  }
}
