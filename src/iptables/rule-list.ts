/** Rules are rendered as lines of iptables-restore, or as one command for each rule. */
import type { IpFamily } from './interception.ts';
import { type Action, chainsOf, type Match, type Rule, tables } from './rule.ts';

export interface CommandLine {
  readonly program: string;
  readonly args: readonly string[];
}

/** Returns input for `iptables-restore --noflush`. */
export function restoreText(rules: readonly Rule[]): string {
  return textOf(rules, (tableRules) => [
    ...chainsOf(tableRules).map(({ chain }) => `-N ${chain}`),
    ...tableRules.map((rule) => addWords(rule).join(' ')),
  ]);
}

/** The input changes nothing, and `iptables-restore --noflush` fails unless all rules are present. */
export function checkText(rules: readonly Rule[]): string {
  return textOf(rules, (tableRules) => tableRules.map((rule) => ['-C', rule.chain, ...ruleWords(rule)].join(' ')));
}

function textOf(rules: readonly Rule[], linesOf: (rulesOfTable: readonly Rule[]) => readonly string[]): string {
  return tables
    .flatMap((table) => {
      const tableRules = rules.filter((rule) => rule.table === table);
      return tableRules.length === 0 ? [] : [`* ${table}`, ...linesOf(tableRules), 'COMMIT'];
    })
    .map((line) => `${line}\n`)
    .join('');
}

export function ruleCommands(family: IpFamily, rules: readonly Rule[]): CommandLine[] {
  const program = programOf(family);
  return [
    ...chainsOf(rules).map(({ table, chain }) => ({ program, args: ['-t', table, '-N', chain] })),
    ...rules.map((rule) => ({ program, args: ['-t', rule.table, ...addWords(rule)] })),
  ];
}

export function ruleWords({ matches, action }: Rule): string[] {
  return [...matches.flatMap(matchWords), ...actionWords(action, matches)];
}

function addWords(rule: Rule): string[] {
  const { chain, position } = rule;
  return position === undefined ? ['-A', chain, ...ruleWords(rule)] : ['-I', chain, `${position}`, ...ruleWords(rule)];
}

function matchWords(match: Match): string[] {
  const negation = 'not' in match && match.not ? ['!'] : [];
  switch (match.kind) {
    case 'protocol':
      return ['-p', match.protocol];
    case 'port':
      return match.ports.length === 1
        ? [...negation, `--${match.side}port`, `${match.ports[0]}`]
        : ['-m', 'multiport', ...negation, `--${match.side}ports`, match.ports.join(',')];
    case 'address':
      return [...negation, `-${match.side}`, match.range];
    case 'interface':
      return [`-${match.direction}`, match.name];
    case 'owner':
      return ['-m', 'owner', ...negation, `--${match.owner}-owner`, match.id];
    case 'mark':
      return ['-m', 'mark', ...negation, '--mark', `${match.mark}`];
    case 'connectionMark':
      return ['-m', 'connmark', '--mark', `${match.mark}`];
    case 'connectionState':
      return ['-m', 'conntrack', '--ctstate', match.states.join(',')];
  }
}

export function targetOf(action: Action): string {
  switch (action.kind) {
    case 'jump':
      return action.chain;
    case 'saveMark':
    case 'restoreMark':
      return 'CONNMARK';
    case 'setMark':
      return 'MARK';
    case 'zone':
      return 'CT';
    case 'log':
      return 'NFLOG';
    default:
      return action.kind.toUpperCase();
  }
}

function actionWords(action: Action, matches: readonly Match[]): string[] {
  return ['-j', targetOf(action), ...targetOptions(action, matches)];
}

function targetOptions(action: Action, matches: readonly Match[]): string[] {
  switch (action.kind) {
    case 'redirect': {
      // iptables accepts both spellings; Istio uses one for each protocol.
      const isUdp = matches.some((match) => match.kind === 'protocol' && match.protocol === 'udp');
      return [isUdp ? '--to-port' : '--to-ports', `${action.port}`];
    }
    case 'tproxy':
      return ['--tproxy-mark', `${action.mark}/0xffffffff`, '--on-port', `${action.port}`];
    case 'setMark':
      return ['--set-mark', `${action.mark}`];
    case 'saveMark':
      return ['--save-mark'];
    case 'restoreMark':
      return ['--restore-mark'];
    case 'zone':
      return ['--zone', `${action.zone}`];
    case 'log':
      return ['--nflog-prefix', action.prefix, '--nflog-group', `${logGroup}`, '--nflog-size', `${logBytes}`];
    default:
      return [];
  }
}

/** Netfilter's log group of `--iptables-trace-logging`. */
export const logGroup = 1337;
/** An IPv4 header has this length. */
export const logBytes = 20;

export function programOf(family: IpFamily): string {
  return family === 'v4' ? 'iptables' : 'ip6tables';
}

export function commandText({ program, args }: CommandLine): string {
  return [program, ...args].join(' ');
}
