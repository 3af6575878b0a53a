import { writeFileSync } from 'node:fs';
import { ChartpilotError, messageOf } from '../runtime/errors.ts';
import { type Interception, type IpFamily, ipFamilies } from './interception.ts';
import type { InterceptionOrder } from './interception-settings.ts';
import { addRoutes, removePassthroughAddress, removeRoutes } from './ip-routes.ts';
import { buildMarkers, isMarkerChain } from './markers.ts';
import { applyNft, nftTableText, presentNftTables, removeNftTables } from './nft-tables.ts';
import { nftText } from './nftables.ts';
import { isPresent, presentRedirection } from './present-redirection.ts';
import { isRedirected, presentIn, removeAllRules, savedRules, savedText, type Terminal } from './remove.ts';
import { isBuiltIn, type Rule, rulesOfFamily } from './rule.ts';
import { type CommandLine, checkText, commandText, programOf, restoreText, ruleCommands } from './rule-list.ts';
import { interceptionRules } from './rules.ts';
import { requireNetAdmin, run, runOrThrow, withNetworkNamespace } from './run-command.ts';

export function dryRunText(order: InterceptionOrder): string {
  const { interception, restoreFormat, networkNamespace } = order;
  const describeCommand = (command: CommandLine): string =>
    commandText(withNetworkNamespace(networkNamespace, command));
  if (order.nativeNftables) return nftText(interception);
  return familiesOf(interception)
    .flatMap((family) => {
      const rules = rulesOf(interception, family);
      if (!restoreFormat) return ruleCommands(family, rules).map((command) => `${describeCommand(command)}\n`);
      return [`# ${describeCommand(restoreCommand(family))}\n`, restoreText(rules)];
    })
    .join('');
}

/**
 * Repeated calls with the same flags change nothing.
 *
 * @throws ChartpilotError IPTABLES_FAILED with the command, its exit code and its error output
 */
export async function applyInterception(order: InterceptionOrder, { print, log }: Terminal): Promise<void> {
  const { interception, networkNamespace, outputPath } = order;
  if (outputPath !== undefined) writeRules(outputPath, order);
  if (order.dryRun) {
    print(dryRunText(order));
    return;
  }
  requireNetAdmin();
  const presence = order.forceApply ? 'none' : await presentInterception(order);
  if (presence === 'some' && !order.reconcile) {
    throw new ChartpilotError('IPTABLES_FAILED', 'rules of a previous run with other flags are present', {
      hint: 'Replace them with --reconcile, or remove them with `pilot-agent istio-clean-iptables`.',
    });
  }
  if (presence === 'none') await addAll(order);
  else {
    await addRoutes(interception, networkNamespace);
    if (presence === 'some') await replaceRules(order, log);
  }
  if (presence === 'all') log('redirection.unchanged');
  else log('redirection.applied', { rules: await appliedRules(order) });
}

/** Removes all added rules after a failed step, except with `--force-apply`, because earlier rules may exist. */
async function addAll(order: InterceptionOrder): Promise<void> {
  const { interception, networkNamespace, nativeNftables } = order;
  try {
    await addRoutes(interception, networkNamespace);
    if (nativeNftables) await applyNft(nftText(interception), networkNamespace);
    else await addFamilies(order);
  } catch (error) {
    if (!order.forceApply) {
      await removeAllRules(order).catch(() => {});
      await removeRoutes([interception.tproxyMark], interception.tproxyRouteTable, networkNamespace);
      await removePassthroughAddress(networkNamespace);
    }
    throw error;
  }
}

async function addFamilies({ interception, restoreFormat, networkNamespace }: InterceptionOrder): Promise<void> {
  const runInNamespace = (command: CommandLine): Promise<unknown> =>
    runOrThrow(withNetworkNamespace(networkNamespace, command));
  for (const family of familiesOf(interception)) {
    const rules = rulesOf(interception, family);
    for (const marker of buildMarkers(interception)) {
      await runInNamespace({ program: programOf(family), args: ['-t', 'nat', '-N', marker] });
    }
    if (restoreFormat) {
      await runOrThrow(withNetworkNamespace(networkNamespace, restoreCommand(family)), { input: restoreText(rules) });
    } else for (const command of ruleCommands(family, rules)) await runInNamespace(command);
  }
}

/**
 * Without rules, all traffic would bypass the proxy, so the previous rules are restored if the new ones cannot be applied. nft applies its rules in
 * one transaction.
 */
async function replaceRules(order: InterceptionOrder, log: Terminal['log']): Promise<void> {
  const { interception, networkNamespace, nativeNftables } = order;
  const previousState = await presentIn(order);
  if (nativeNftables) {
    await applyNft(nftText(interception), networkNamespace);
    await removeAllRules(order);
  } else {
    const savedTexts = await Promise.all(ipFamilies.map((family) => savedText(order, family)));
    try {
      await removeAllRules(order);
      await addFamilies(order);
    } catch (error) {
      // A restore does not remove tables that did not exist before.
      await removeAllRules(order).catch(() => {});
      for (const [i, family] of ipFamilies.entries()) await restoreTables(order, family, savedTexts[i]!);
      log('redirection.restored');
      throw error;
    }
    await removeNftTables(previousState.nftTables, networkNamespace);
  }
  const { mode, tproxyMark } = interception;
  const unusedMarks = previousState.marks.filter((mark) => mode !== 'TPROXY' || mark !== tproxyMark);
  await removeRoutes(unusedMarks, undefined, networkNamespace);
  if (!interception.ipv6) await removePassthroughAddress(networkNamespace);
}

async function restoreTables(
  { networkNamespace }: InterceptionOrder,
  family: IpFamily,
  restoredRulesText: string,
): Promise<void> {
  if (restoredRulesText === '') return;
  const program = `${programOf(family)}-restore`;
  await runOrThrow(withNetworkNamespace(networkNamespace, { program, args: [] }), { input: `${restoredRulesText}\n` });
}

/**
 * Detects rules that exist already, for example after a restart of the init container. Only iptables rules are compared, because nft replaces its
 * tables anyway.
 */
async function presentInterception(order: InterceptionOrder): Promise<'all' | 'some' | 'none'> {
  const { interception, networkNamespace, nativeNftables } = order;
  if (nativeNftables) return isRedirected(await presentIn(order)) ? 'some' : 'none';
  if ((await presentNftTables(networkNamespace)).length > 0) return 'some';
  const families = familiesOf(interception);
  const presentRulesByFamily = await Promise.all(ipFamilies.map((family) => presentRules(order, family)));
  if (ipFamilies.some((family, i) => !families.includes(family) && presentRulesByFamily[i] !== 'none')) return 'some';
  const stateByFamily = presentRulesByFamily.slice(0, families.length);
  return stateByFamily.every((familyState) => familyState === stateByFamily[0]) ? stateByFamily[0]! : 'some';
}

/** Returns `all` only if there are no other redirection rules. */
async function presentRules(order: InterceptionOrder, family: IpFamily): Promise<'all' | 'some' | 'none'> {
  const { interception, networkNamespace } = order;
  const savedRuleSet = await savedRules(order, family);
  const installedRedirection = presentRedirection(savedRuleSet, { tproxyMark: interception.tproxyMark });
  if (!isPresent({ ...installedRedirection, references: [] })) return 'none';
  const rules = rulesOf(interception, family);
  const markers = installedRedirection.chains.filter(({ chain }) => isMarkerChain(chain)).map(({ chain }) => chain);
  const rulesInOwnChains = savedRuleSet.rules.filter((rule) =>
    installedRedirection.chains.some(({ table, chain }) => table === rule.table && chain === rule.chain),
  );
  const isSameSize =
    `${markers.sort()}` === `${buildMarkers(interception).sort()}` &&
    installedRedirection.rules.length === rules.filter(({ chain }) => isBuiltIn(chain)).length &&
    rulesInOwnChains.length === rules.filter(({ chain }) => !isBuiltIn(chain)).length;
  if (!isSameSize) return 'some';
  const checkResult = await run(withNetworkNamespace(networkNamespace, restoreCommand(family)), checkText(rules));
  return checkResult.exitCode === 0 ? 'all' : 'some';
}

function familiesOf({ ipv6 }: Interception): readonly IpFamily[] {
  return ipv6 ? ipFamilies : ['v4'];
}

function rulesOf(interception: Interception, family: IpFamily): Rule[] {
  return rulesOfFamily(interceptionRules(interception), family);
}

function writeRules(path: string, order: InterceptionOrder): void {
  const text = dryRunText({ ...order, restoreFormat: true, networkNamespace: undefined });
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new ChartpilotError('FILE_UNWRITABLE', `--output-paths: ${path}: ${messageOf(error)}`, {
      fields: { path: '--output-paths', got: path },
      cause: error,
    });
  }
}

function restoreCommand(family: IpFamily): CommandLine {
  return { program: `${programOf(family)}-restore`, args: ['--noflush'] };
}

async function appliedRules(order: InterceptionOrder): Promise<string> {
  const { interception, networkNamespace, nativeNftables } = order;
  const texts = nativeNftables
    ? (await presentNftTables(networkNamespace)).map((table) => nftTableText(table, networkNamespace))
    : familiesOf(interception).map((family) => savedText(order, family));
  return (await Promise.all(texts)).join('\n');
}
