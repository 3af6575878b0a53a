/** `bootstrap`: what `proxy` would start Envoy with, written for people to read; nothing is started. */
import { readFileSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { agentBootstrap } from '../../agent/bootstrap/agent-bootstrap.ts';
import { bootstrapText } from '../../agent/bootstrap/prepare-epoch.ts';
import { unwritable } from '../../agent/envoy/scratch-folder.ts';
import { credentialServerAnswers } from '../../agent/identity/credential-server.ts';
import type { ProxyOptions } from '../../agent/options/options.ts';
import type { ProxyFlags } from '../../agent/options/proxy-flags.ts';
import { resolveProxyOptions } from '../../agent/options/proxy-options.ts';
import { withStatsdAddress } from '../../agent/options/statsd-address.ts';
import { standardError, standardOutput } from '../../runtime/output/standard-streams.ts';
import { addProxyFlags, roleAmong } from './proxy-flags.ts';

interface BootstrapFlags extends ProxyFlags {
  readonly out: string;
}

export function bootstrapCommand(): Command {
  const command = new Command('bootstrap')
    .summary("write Envoy's bootstrap as proxy would; start nothing")
    .description(
      "Writes the bootstrap that 'proxy' would start Envoy with, of the same flags, environment and files. What only the " +
        'pod has, a token and the root of the control plane, is taken to be there.',
    )
    .argument('[role]', 'sidecar or router; default: that of --nodeId, else sidecar')
    .allowUnknownOption()
    .allowExcessArguments();
  command.optionsGroup('Instead of what is found:');
  command
    .option('--proxyConfig <file>', 'a ProxyConfig, over the mesh file and PROXY_CONFIG')
    .option('--podInfoDir <dir>', 'labels and annotations, default ./etc/istio/pod')
    .option('--nodeId <id>', 'type~address~name.namespace~domain')
    .option('--instanceIPs <a,b>', 'addresses of this proxy, the first one first')
    .option('--pilotSAN <s,…>', "names of the control plane in the node's metadata")
    .option('--platformMetadata <json>', 'what the cloud says of the machine, as an object of texts')
    .option('--out <file>', 'where to; - is standard output', '-');
  return addProxyFlags(command).action(async (_role: string | undefined, flags: BootstrapFlags) => {
    await writeBootstrap(roleAmong(command.args, roleOf(flags)), flags);
  });
}

function roleOf({ nodeId }: BootstrapFlags): string {
  return nodeId?.startsWith('router~') ? 'router' : 'sidecar';
}

async function writeBootstrap(role: string, flags: BootstrapFlags): Promise<void> {
  const options = await withStatsdAddress(resolveProxyOptions({ role, flags, env: process.env, assumesMounts: true }));
  const { text, warnings } = await bootstrapOf(options);
  for (const warning of [...options.warnings, ...warnings]) standardError.write(`pilot-agent: warning: ${warning}\n`);
  if (flags.out === '-') standardOutput.print(text);
  else writeWhole(resolve(flags.out), text);
}

async function bootstrapOf(options: ProxyOptions): Promise<{ text: string; warnings: readonly string[] }> {
  const { config, baseId = 0 } = options;
  if (config.customConfigFile) {
    const warnings = [`Envoy is run with ${config.customConfigFile} as it is`];
    return { text: readFileSync(config.customConfigFile, 'utf8'), warnings };
  }
  const { bootstrap, warnings } = agentBootstrap(options, {
    adminPort: config.proxyAdminPort,
    run: { epoch: 0, baseId },
    hasCredentialServer: await credentialServerAnswers(),
  });
  return { text: bootstrapText(bootstrap), warnings };
}

/**
 * Whole or not at all, and for this user only, as the agent does: tokens of tracers may be in it. A pipe or a device is written to:
 * a file in the place of `/dev/null` would be everybody's trouble.
 */
function writeWhole(file: string, text: string): void {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found?.isFile() === false) {
      writeFileSync(file, text);
      return;
    }
    // A link stays one.
    const place = found === undefined ? file : realpathSync(file);
    writeFileSync(`${place}.new`, text, { mode: 0o600 });
    renameSync(`${place}.new`, place);
  } catch (error) {
    throw unwritable(file, error, '--out');
  }
}
