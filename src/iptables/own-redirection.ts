/** If this process's connections are redirected to its own Envoy, Envoy repeatedly connects to itself until it has no file descriptors left. */
import type { OwnerKind } from './rule.ts';
import { isNotInstalled, run } from './run-command.ts';
import { parseSavedRules } from './saved-rules.ts';

export interface Sender {
  readonly uid: number;
  readonly gid: number;
}

export type OwnRedirection =
  | { readonly kind: 'none' }
  /** The connections of excluded owners, such as `uid 1337`, are not redirected. */
  | { readonly kind: 'loop'; readonly excluded: readonly string[] }
  | { readonly kind: 'unknown'; readonly reason: string };

/** Whether a condition applies to the sender's TCP connections to another host. */
type Applicability = 'always' | 'sometimes' | 'never';

interface SenderRule {
  readonly chain: string;
  readonly applicability: Applicability;
  /** `return`, `accept`, `drop`, `redirect`, or a chain. */
  readonly target: string;
  /** `undefined` if the rule has another condition. */
  readonly owner: string | undefined;
}

export async function ownRedirection(sender: Sender): Promise<OwnRedirection> {
  const [v4, v6, nft] = await Promise.all([
    run({ program: 'iptables-save', args: ['-t', 'nat'] }),
    run({ program: 'ip6tables-save', args: ['-t', 'nat'] }),
    run({ program: 'nft', args: ['-s', 'list', 'table', 'inet', 'istio-proxy-nat'] }),
  ]);
  if (v4.exitCode !== 0 && isNotInstalled(nft)) return { kind: 'unknown', reason: v4.stderr.trim() };
  const rulesOfPrograms = [
    ...[v4, v6].filter(({ exitCode }) => exitCode === 0).map(({ stdout }) => iptablesRules(stdout, sender)),
    ...(nft.exitCode === 0 ? [nftRules(nft.stdout, sender)] : []),
  ];
  return redirectionOf(rulesOfPrograms);
}

/** @param rulesOfPrograms one rule set per family or program */
export function redirectionOf(rulesOfPrograms: readonly (readonly SenderRule[])[]): OwnRedirection {
  const redirectingRuleSets = rulesOfPrograms.filter((rules) => outcomeOf('output', rules) === 'redirected');
  if (redirectingRuleSets.length === 0) return { kind: 'none' };
  const excludedOwners = redirectingRuleSets
    .flat()
    .flatMap(({ owner, target }) => (target === 'return' && owner ? [owner] : []));
  return { kind: 'loop', excluded: [...new Set(excludedOwners)] };
}

/** Follows both paths of a rule that applies to only some connections: applied and skipped. */
function outcomeOf(chain: string, rules: readonly SenderRule[]): 'redirected' | 'decided' | 'undecided' {
  for (const { applicability, target } of rules.filter(
    (rule) => rule.chain === chain && rule.applicability !== 'never',
  )) {
    if (target === 'redirect') {
      if (chain.startsWith('istio')) return 'redirected';
    } else if (target === 'return' || target === 'accept' || target === 'drop') {
      if (applicability === 'always') return target === 'return' ? 'undecided' : 'decided';
    } else {
      const ruleOutcome = outcomeOf(target, rules);
      if (ruleOutcome === 'redirected' || (ruleOutcome === 'decided' && applicability === 'always')) return ruleOutcome;
    }
  }
  return 'undecided';
}

export function iptablesRules(savedText: string, sender: Sender): SenderRule[] {
  return parseSavedRules(savedText)
    .rules.filter(({ table }) => table === 'nat')
    .map(({ chain, text }) => {
      const [conditions = '', target = ''] = text.split(/(?:^| )-[jg] /);
      const conditionTexts = conditions
        .split(/ (?=!|-)(?<!! )/)
        .filter((condition) => condition !== '' && !/^-m \w+$/.test(condition));
      return {
        chain: commonName(chain),
        applicability: conjunctionOf(conditionTexts.map((condition) => iptablesCondition(condition, sender))),
        target: commonName(target.split(' ')[0]!),
        owner: /^-m owner --([ug]id)-owner (\S+)$/.exec(conditions)?.slice(1).join(' '),
      };
    });
}

function iptablesCondition(condition: string, sender: Sender): Applicability {
  const [, negation, option, value = ''] = /^(! )?(-\S+) ?(.*)$/.exec(condition) ?? [];
  if (option === '-p') return invertIf(value === 'tcp' ? 'always' : 'never', negation);
  if (option === '-o' && value === 'lo') return invertIf('never', negation);
  const kind = /^--([ug]id)-owner$/.exec(option ?? '')?.[1];
  if (kind !== undefined) return invertIf(matchesOwner(value, kind as OwnerKind, sender), negation);
  return 'sometimes';
}

export function nftRules(rulesetText: string, sender: Sender): SenderRule[] {
  const rules: SenderRule[] = [];
  let chain = '';
  for (const line of rulesetText.split('\n').map((outputLine) => outputLine.trim())) {
    chain = /^chain (\S+) \{$/.exec(line)?.[1] ?? chain;
    if (line.startsWith('type ')) continue;
    const [, conditions = '', action, next] =
      /^(.*?) ?(?:counter )?(?:(return|accept|drop|redirect)\b.*|jump (\S+))$/.exec(line) ?? [];
    const target = next ?? action;
    if (target === undefined) continue;
    const conditionTexts = conditions
      .split(/ (?=(?:meta|[oi]ifname|(?:tcp|udp) [ds]port|ip6? [ds]addr|ct) )/)
      .filter(Boolean);
    rules.push({
      chain,
      applicability: conjunctionOf(conditionTexts.map((condition) => nftCondition(condition, sender))),
      target,
      owner: /^meta sk([ug]id) (\d+)$/.exec(conditions)?.slice(1).join(' '),
    });
  }
  return rules;
}

function nftCondition(condition: string, sender: Sender): Applicability {
  const negation = condition.includes(' != ') ? '!' : undefined;
  const value = condition.split(' ').at(-1)!;
  if (/^meta l4proto /.test(condition)) return invertIf(value === 'tcp' ? 'always' : 'never', negation);
  if (/^udp /.test(condition)) return 'never';
  if (/^oifname /.test(condition) && value === '"lo"') return invertIf('never', negation);
  const kind = /^meta sk([ug]id) /.exec(condition)?.[1];
  if (kind !== undefined) return invertIf(matchesOwner(value, kind as OwnerKind, sender), negation);
  return 'sometimes';
}

/** @param value ID or ID range; names are not resolved */
function matchesOwner(value: string, kind: OwnerKind, sender: Sender): Applicability {
  const [firstId, lastId] = /^(\d+)(?:-(\d+))?$/.exec(value)?.slice(1) ?? [];
  if (firstId === undefined) return 'sometimes';
  const id = sender[kind];
  return id >= Number(firstId) && id <= Number(lastId ?? firstId) ? 'always' : 'never';
}

function invertIf(applicability: Applicability, negation: string | undefined): Applicability {
  if (negation === undefined || applicability === 'sometimes') return applicability;
  return applicability === 'always' ? 'never' : 'always';
}

function conjunctionOf(conditions: readonly Applicability[]): Applicability {
  if (conditions.includes('never')) return 'never';
  return conditions.includes('sometimes') ? 'sometimes' : 'always';
}

/** iptables has chains such as `ISTIO_OUTPUT`, nft such as `istio-output`. */
function commonName(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}
