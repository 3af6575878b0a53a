/**
 * As in Istio 1.27 and later (`--native-nftables`), the tables are `istio-proxy-nat`, `-mangle` and `-raw` of family `inet`, with chains in lower
 * case with hyphens. One transaction replaces all tables.
 */
import { type Interception, type IpFamily, ipFamilies } from './interception.ts';
import { type Action, isBuiltIn, type Match, type Rule, rulesOfFamily, type Table, tables } from './rule.ts';
import { logBytes, logGroup } from './rule-list.ts';
import { interceptionRules } from './rules.ts';

export const nftTables: readonly string[] = tables.map(nftTable);

/** Changing a mark reroutes packets only in a chain of type `route`. */
const hooks: Readonly<Record<Table, Readonly<Record<string, { type: string; priority: number }>>>> = {
  mangle: { PREROUTING: { type: 'filter', priority: -150 }, OUTPUT: { type: 'route', priority: -150 } },
  nat: { PREROUTING: { type: 'nat', priority: -100 }, OUTPUT: { type: 'nat', priority: -100 } },
  raw: { PREROUTING: { type: 'filter', priority: -300 }, OUTPUT: { type: 'filter', priority: -300 } },
};

export function nftText(interception: Interception): string {
  const rules = interceptionRules(interception).filter(({ family }) => family !== 'v6' || interception.ipv6);
  return removalOf(nftTables) + tables.map((table) => tableText(table, rules, interception)).join('');
}

/** Returns input for `nft -f -`, which succeeds even if the tables do not exist. */
export function removalOf(names: readonly string[]): string {
  return names.map((name) => `add table inet ${name}\ndelete table inet ${name}\n`).join('');
}

function tableText(table: Table, allRules: readonly Rule[], interception: Interception): string {
  const rules = allRules.filter((rule) => rule.table === table);
  if (rules.length === 0) return '';
  const chains = [...new Set(rules.map(({ chain }) => chain))];
  const texts = chains.map((name) =>
    chainText(name, orderRules(rules.filter(({ chain }) => chain === name)), interception),
  );
  return `table inet ${nftTable(table)} {\n${texts.join('')}}\n`;
}

function hookText(table: Table, chain: string): string {
  const hook = hooks[table][chain];
  if (hook === undefined) return '';
  return `    type ${hook.type} hook ${nftChain(chain)} priority ${hook.priority}; policy accept;\n`;
}

function chainText(chain: string, rules: readonly Rule[], interception: Interception): string {
  const lines = rules.map((rule) => `    ${ruleText(rule, isBuiltIn(chain) && !interception.ipv6)}\n`);
  return `  chain ${nftChain(chain)} {\n${hookText(rules[0]!.table, chain)}${lines.join('')}  }\n`;
}

/** In iptables, an insert position counts only rules of the same family. */
function orderRules(rules: readonly Rule[]): Rule[] {
  const orderedRules: Rule[] = [];
  for (const rule of rules) {
    if (rule.position === undefined) orderedRules.push(rule);
    else orderedRules.splice(indexOf(orderedRules, rule, rule.position - 1), 0, rule);
  }
  return orderedRules;
}

function indexOf(orderedRules: readonly Rule[], { family }: Rule, precedingCount: number): number {
  const families = family === undefined ? ipFamilies : [family];
  const endIndexes = families.map((tableFamily) => {
    const lastRule = rulesOfFamily(orderedRules, tableFamily)[precedingCount - 1];
    return lastRule === undefined ? 0 : orderedRules.indexOf(lastRule) + 1;
  });
  return Math.max(...endIndexes);
}

/** @param v4Only restricts the rule to IPv4, so that IPv6 packets pass the base chain unchanged */
function ruleText({ family, matches, action }: Rule, v4Only: boolean): string {
  const hasAddress = matches.some(({ kind }) => kind === 'address');
  const onlyFamily: IpFamily | undefined = v4Only ? 'v4' : family;
  const protocol = matches.find((match) => match.kind === 'protocol')?.protocol;
  return [
    ...(onlyFamily === undefined || hasAddress ? [] : [`meta nfproto ${onlyFamily === 'v4' ? 'ipv4' : 'ipv6'}`]),
    ...matches.map((match) => matchText(match, family, protocol)),
    'counter',
    actionText(action, family),
  ].join(' ');
}

function matchText(match: Match, family: IpFamily | undefined, protocol: string | undefined): string {
  const negation = 'not' in match && match.not ? '!= ' : '';
  switch (match.kind) {
    case 'protocol':
      return `meta l4proto ${match.protocol}`;
    case 'port':
      return `${protocol} ${match.side}port ${negation}${portSetText(match.ports)}`;
    case 'address':
      return `${addressFamily(family)} ${match.side}addr ${negation}${match.range}`;
    case 'interface':
      return `${match.direction}ifname ${negation}"${match.name.replace(/\+$/, '*')}"`;
    case 'owner':
      return `meta sk${match.owner} ${negation}${/^\d+$/.test(match.id) ? match.id : `"${match.id}"`}`;
    case 'mark':
      return `meta mark ${negation}${match.mark}`;
    case 'connectionMark':
      return `ct mark ${match.mark}`;
    case 'connectionState':
      return `ct state ${match.states.join(',').toLowerCase()}`;
  }
}

function actionText(action: Action, family: IpFamily | undefined): string {
  switch (action.kind) {
    case 'jump':
      return `jump ${nftChain(action.chain)}`;
    case 'redirect':
      return `redirect to :${action.port}`;
    case 'tproxy':
      return `tproxy ${addressFamily(family)} to :${action.port} meta mark set ${action.mark} accept`;
    case 'setMark':
      return `meta mark set ${action.mark}`;
    case 'saveMark':
      return 'ct mark set meta mark';
    case 'restoreMark':
      return 'meta mark set ct mark';
    case 'zone':
      return `ct zone set ${action.zone}`;
    case 'log':
      return `log prefix "${action.prefix}" group ${logGroup} snaplen ${logBytes}`;
    default:
      return action.kind;
  }
}

function portSetText(ports: readonly number[]): string {
  return ports.length === 1 ? `${ports[0]}` : `{ ${[...new Set(ports)].join(', ')} }`;
}

function addressFamily(family: IpFamily | undefined): string {
  return family === 'v6' ? 'ip6' : 'ip';
}

function nftTable(table: Table): string {
  return `istio-proxy-${table}`;
}

function nftChain(chain: string): string {
  return chain.toLowerCase().replaceAll('_', '-');
}
