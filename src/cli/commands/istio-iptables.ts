/** `istio-iptables` and `istio-clean-iptables` add and remove the redirection of a pod's traffic to Envoy. */
import { readFileSync } from 'node:fs';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { Command, Option } from 'commander';
import { execa, execaSync } from 'execa';
import { applyInterception } from '../../iptables/apply.ts';
import { type FlagName, type GivenFlags, type InterceptionFlag, interceptionFlags } from '../../iptables/flags.ts';
import { type InterceptionOrder, resolveInterception } from '../../iptables/interception-settings.ts';
import { removeInterception, type Terminal } from '../../iptables/remove.ts';
import { validateInterception } from '../../iptables/validation.ts';
import { ChartpilotError, explainError, messageOf } from '../../runtime/errors.ts';
import { standardError, standardOutput } from '../../runtime/output/standard-streams.ts';
import { addLogFlags, type LogFlags, loggerFromFlags } from '../flags/log-flags.ts';
import { addHelpSections } from './help-sections.ts';

/** Istio's codes for a failed program, a failed validation, and other errors. */
const exitCodes = { IPTABLES_FAILED: 255, REDIRECTION_ABSENT: 126, other: 1 } as const;

const nsenterLimitMs = 30_000;

export function istioIptablesCommand(): Command {
  const command = interceptionCommand('istio-iptables', 'Redirect the traffic of a pod to Envoy').description(
    'Redirect the traffic of this network namespace to Envoy with iptables or nftables. Requires NET_ADMIN.',
  );
  return addHelpSections(command, {
    examples: ["pilot-agent istio-iptables -b '*' -d 15090,15021,15020 -i '*' --dry-run"],
    environment: [
      ['NAME_OF_FLAG', 'Value of a flag, for example ENVOY_PORT for --envoy-port'],
      ['ISTIO_META_DNS_CAPTURE', 'Value of --redirect-dns'],
      ['INVALID_DROP', 'Value of --drop-invalid'],
      ['ISTIO_DUAL_STACK', 'Value of --dual-stack'],
      ['ISTIO_OUTBOUND_OWNER_GROUPS', 'Groups whose outbound connections are captured (default *)'],
      ['ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE', 'Groups whose outbound connections are not captured'],
      ['ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR', 'Loopback destinations that are not captured (default 127.0.0.1/32)'],
    ],
    exitCodes: [
      ['0', 'rules applied, or printed with --dry-run'],
      ['1', 'invalid flag, or another error'],
      ['126', 'validation failed: connections are not captured'],
      ['255', 'iptables or nft failed'],
    ],
  });
}

export function istioCleanIptablesCommand(): Command {
  const command = interceptionCommand('istio-clean-iptables', 'Remove the traffic redirection').description(
    'Remove the rules of istio-iptables, whatever its flags were, and list rules that remain. Requires NET_ADMIN.',
  );
  return addHelpSections(command, {
    examples: ['pilot-agent istio-clean-iptables --dry-run'],
    exitCodes: [
      ['0', 'rules removed, or printed with --dry-run'],
      ['1', 'rules remain, or another error'],
      ['255', 'rules could not be read'],
    ],
  });
}

function interceptionCommand(name: 'istio-iptables' | 'istio-clean-iptables', summary: string): Command {
  const command = new Command(name).summary(summary);
  const keys = new Map<string, FlagName>();
  for (const [key, flag] of Object.entries<InterceptionFlag>(interceptionFlags)) {
    const { syntax, byDefault, meaning, rare } = flag;
    const description =
      byDefault === '' || syntax.endsWith('[true|false]') ? meaning : `${meaning} (default ${byDefault})`;
    const option = new Option(syntax, description).hideHelp(rare === true);
    keys.set(option.attributeName(), key as FlagName);
    command.addOption(option);
  }
  addLogFlags(command);
  return command.action(async (flags: Record<string, string | boolean> & LogFlags) => {
    const setFlags = Object.fromEntries([...keys].map(([attribute, key]) => [key, flags[attribute]])) as GivenFlags;
    process.exitCode = await run(name, setFlags, flags);
  });
}

async function run(name: string, setFlags: GivenFlags, flags: LogFlags): Promise<number> {
  try {
    const interceptionOrder = resolveInterception(setFlags, process.env, { addresses: outerAddresses, readFile });
    const order = name === 'istio-clean-iptables' ? { ...interceptionOrder, cleanupOnly: true } : interceptionOrder;
    for (const warning of order.warnings) standardError.write(`pilot-agent: ${warning}\n`);
    return await carryOut(order, terminal(name, flags));
  } catch (error) {
    standardError.write(`pilot-agent: ${explainError(error)}\n`);
    const { IPTABLES_FAILED, REDIRECTION_ABSENT, other } = exitCodes;
    if (!(error instanceof ChartpilotError)) return other;
    return error.code === 'IPTABLES_FAILED'
      ? IPTABLES_FAILED
      : error.code === 'REDIRECTION_ABSENT'
        ? REDIRECTION_ABSENT
        : other;
  }
}

async function carryOut(interceptionOrder: InterceptionOrder, terminal: Terminal): Promise<number> {
  if (interceptionOrder.cleanupOnly) await removeInterception(interceptionOrder, terminal);
  else if (!interceptionOrder.skipRuleApply) await applyInterception(interceptionOrder, terminal);
  if (interceptionOrder.cleanupOnly || !interceptionOrder.runValidation || interceptionOrder.dryRun) return 0;
  if (interceptionOrder.networkNamespace !== undefined)
    return validateWithin(interceptionOrder.networkNamespace, interceptionOrder);
  await validateInterception(interceptionOrder);
  terminal.log('redirection.verified');
  return 0;
}

function omitPlaceFlags(commandArgs: readonly string[]): string[] {
  return commandArgs.filter((argument, index) => {
    if (commandArgs[index - 1] === '--network-namespace') return false;
    return !/^--(network-namespace|cni-mode|skip-rule-apply|force-ipv6)(=|$)/.test(argument);
  });
}

/** A process cannot switch its network namespace, so this program is started inside it, with the same flags, to validate. */
async function validateWithin(networkNamespace: string, order: InterceptionOrder): Promise<number> {
  const flags = [
    ...omitPlaceFlags(process.argv.slice(1)),
    '--skip-rule-apply',
    `--force-ipv6=${order.interception.ipv6}`,
  ];
  const command = [process.execPath, ...process.execArgv, ...flags];
  const { exitCode, stdout, stderr, shortMessage } = await execa(
    'nsenter',
    [`--net=${networkNamespace}`, '--', ...command],
    { reject: false, stdin: 'ignore', timeout: order.probeTimeoutMs + nsenterLimitMs },
  );
  if (stdout) standardOutput.print(`${stdout}\n`);
  if (stderr) standardError.write(`${stderr}\n`);
  if (exitCode === undefined)
    throw new ChartpilotError('REDIRECTION_ABSENT', shortMessage ?? 'the validation timed out');
  return exitCode;
}

function terminal(name: string, flags: LogFlags): Terminal {
  return {
    print: (text) => standardOutput.print(text),
    log: (event, fields) => loggerFromFlags(flags).log.scope(name).info(event, fields),
  };
}

function outerAddresses(networkNamespace: string | undefined): string[] | undefined {
  const interfaces = networkNamespace === undefined ? networkInterfaces() : listInterfacesOfNamespace(networkNamespace);
  if (interfaces === undefined) return undefined;
  return Object.values(interfaces)
    .flatMap((entries) => entries ?? [])
    .filter(({ internal }) => !internal)
    .map(({ address }) => address);
}

function listInterfacesOfNamespace(networkNamespace: string): NodeJS.Dict<NetworkInterfaceInfo[]> | undefined {
  const print = 'process.stdout.write(JSON.stringify(require("node:os").networkInterfaces()))';
  try {
    const { stdout } = execaSync('nsenter', [`--net=${networkNamespace}`, '--', process.execPath, '-e', print], {
      stdin: 'ignore',
      timeout: nsenterLimitMs,
      env: { NODE_OPTIONS: '' },
    });
    return JSON.parse(stdout);
  } catch {
    return undefined;
  }
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', messageOf(error), { cause: error });
  }
}
