import { type Interception, type IpFamily, ipFamilies } from './interception.ts';
import type { CommandLine } from './rule-list.ts';
import { run, runOrThrow, withNetworkNamespace } from './run-command.ts';

/** IPv4 needs no route, because all of 127.0.0.0/8 belongs to `lo`. */
const passthroughAddress = ['::6/128', 'dev', 'lo'];
/** Newer kernels report `address already assigned`. */
const existsError = /File exists|address already assigned/i;

interface MarkRule {
  readonly mark: number;
  /** A number, or a name if the host names its tables (`/etc/iproute2/rt_tables`). */
  readonly table: string;
}

type Network = string | undefined;

export async function addRoutes(interception: Interception, network: Network): Promise<void> {
  const { mode, ipv6, tproxyMark: mark } = interception;
  const table = `${interception.tproxyRouteTable}`;
  const add = (command: CommandLine): Promise<unknown> =>
    runOrThrow(withNetworkNamespace(network, command), { harmless: existsError });
  if (ipv6) await add(ip('v6', 'addr', 'add', ...passthroughAddress));
  if (mode !== 'TPROXY') return;
  for (const family of ipv6 ? ipFamilies : (['v4'] as const)) {
    // Older kernels would accept a duplicate rule.
    const isPresent = (await markRules(family, network)).some((rule) => rule.mark === mark && rule.table === table);
    if (!isPresent) await add(ip(family, 'rule', 'add', ...markRuleWords({ mark, table })));
    await add(ip(family, 'route', 'add', ...localRoute(table)));
  }
}

/**
 * Removes policy rules with these marks whose table has no other route.
 *
 * @param marks of the removed redirection
 */
export async function removeRoutes(
  marks: readonly number[],
  table: number | undefined,
  network: Network,
): Promise<void> {
  const remove = (command: CommandLine): Promise<unknown> => run(withNetworkNamespace(network, command));
  for (const family of ipFamilies) {
    for (const rule of await redirectionMarkRules(family, marks, network)) {
      await remove(ip(family, 'rule', 'del', ...markRuleWords(rule)));
      await remove(ip(family, 'route', 'del', ...localRoute(rule.table)));
    }
    const isUsed = (await markRules(family, network)).some((rule) => rule.table === `${table}`);
    if (table !== undefined && !isUsed) await remove(ip(family, 'route', 'del', ...localRoute(`${table}`)));
  }
}

export async function removePassthroughAddress(network: Network): Promise<void> {
  await run(withNetworkNamespace(network, ip('v6', 'addr', 'del', ...passthroughAddress)));
}

export async function remainingRoutes(marks: readonly number[], network: Network): Promise<string[]> {
  const remainingRules = await Promise.all(ipFamilies.map((family) => redirectionMarkRules(family, marks, network)));
  return ipFamilies.flatMap((family, i) =>
    remainingRules[i]!.map((rule) => `ip ${family === 'v6' ? '-6 ' : ''}rule ${markRuleWords(rule).join(' ')}`),
  );
}

async function redirectionMarkRules(family: IpFamily, marks: readonly number[], network: Network): Promise<MarkRule[]> {
  const matchingRules = (await markRules(family, network)).filter(({ mark }) => marks.includes(mark));
  const leadToLocalRoute = await Promise.all(
    matchingRules.map(({ table }) => hasLocalRouteOnly(family, table, network)),
  );
  return matchingRules.filter((_, i) => leadToLocalRoute[i]);
}

/** Ignores rules with a mask, which match only part of a mark. Empty if `ip` cannot list rules, such as without IPv6 in the kernel. */
async function markRules(family: IpFamily, network: Network): Promise<MarkRule[]> {
  return (await listWithIp(family, ['rule', 'show'], network)).flatMap((line) => {
    const [, mark, table] = /\bfwmark (0x[0-9a-f]+|\d+) .*?\blookup (\S+)/.exec(line) ?? [];
    return mark === undefined || table === undefined ? [] : [{ mark: Number(mark), table }];
  });
}

async function hasLocalRouteOnly(family: IpFamily, table: string, network: Network): Promise<boolean> {
  const routes = await listWithIp(family, ['route', 'show', 'table', table], network);
  return routes.every((line) => /^local default dev lo\b/.test(line));
}

/** busybox's `ip` in the image cannot print JSON. */
async function listWithIp(family: IpFamily, ipArgs: string[], network: Network): Promise<string[]> {
  const { exitCode, stdout } = await run(withNetworkNamespace(network, ip(family, ...ipArgs)));
  return exitCode === 0 ? stdout.split('\n').filter((line) => line.trim() !== '') : [];
}

function ip(family: IpFamily, ...args: string[]): CommandLine {
  return { program: 'ip', args: family === 'v6' ? ['-6', ...args] : args };
}

function markRuleWords({ mark, table }: MarkRule): string[] {
  return ['fwmark', `${mark}`, 'lookup', table];
}

/** The route makes all marked packets local, so that a socket of this host receives them. */
function localRoute(table: string): string[] {
  return ['local', 'default', 'dev', 'lo', 'table', table];
}
