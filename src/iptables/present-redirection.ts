/** The rules may come from any flags and generation of Istio. Chain, port, mark or `markers.ts` identify them, never the form alone. */
import { dnsCapturePort } from './interception.ts';
import { isMarkerChain, type MarkedRules, parseMarkers } from './markers.ts';
import { isBuiltIn } from './rule.ts';
import { logGroup } from './rule-list.ts';
import { outboundMark } from './rules.ts';
import type { SavedChain, SavedRule, SavedRules } from './saved-rules.ts';

export interface PresentRedirection {
  readonly chains: readonly SavedChain[];
  readonly rules: readonly SavedRule[];
  /** Rules in chains of other programs that jump to chains of the redirection. */
  readonly references: readonly SavedRule[];
  readonly tproxyMarks: readonly number[];
}

export interface NamedRedirection {
  readonly tproxyMark: number;
  /** These rules have no markers if Istio created the chains. */
  readonly unrecorded?: MarkedRules;
}

const chainNames: ReadonlySet<string> = new Set([
  ...['ISTIO_INBOUND', 'ISTIO_OUTPUT', 'ISTIO_OUTPUT_DNS', 'ISTIO_REDIRECT', 'ISTIO_IN_REDIRECT'],
  ...['ISTIO_DIVERT', 'ISTIO_TPROXY', 'ISTIO_DROP'],
]);

export function presentRedirection(savedRules: SavedRules, namedRedirection: NamedRedirection): PresentRedirection {
  const chains = savedRules.chains.filter(({ chain }) => isRedirectionChain(chain));
  const tproxyMarks = [...new Set([namedRedirection.tproxyMark, ...marksOf(savedRules)])];
  const builtInChainRules = savedRules.rules.filter(({ chain }) => isBuiltIn(chain));
  const redirectionRules = new Set([
    ...builtInChainRules.filter((rule) => isRedirectionChain(targetOf(rule)) || isLog(rule)),
    ...dnsRules(savedRules),
    ...builtInChainRules.filter((rule) => isTproxyRule(rule, tproxyMarks)),
  ]);
  for (const rule of markedRulesOf(savedRules, namedRedirection)) redirectionRules.add(rule);
  return {
    chains,
    rules: builtInChainRules.filter((rule) => redirectionRules.has(rule)),
    references: savedRules.rules.filter(
      (rule) => !isBuiltIn(rule.chain) && !isRedirectionChain(rule.chain) && isRedirectionChain(targetOf(rule)),
    ),
    tproxyMarks,
  };
}

export function isPresent({ chains, rules, references }: PresentRedirection): boolean {
  return chains.length + rules.length + references.length > 0;
}

function isRedirectionChain(chain: string): boolean {
  return chainNames.has(chain) || isMarkerChain(chain);
}

function targetOf({ text }: SavedRule): string {
  return /(?:^| )-[jg] (\S+)/.exec(text)?.[1] ?? '';
}

/** iptables-save adds these matches to a port. */
function textWithoutPortMatches({ text }: SavedRule): string {
  return text.replaceAll(/ -m (udp|tcp)(?= )/g, '');
}

function rulesOfChain({ rules }: SavedRules, table: string, chain: string): SavedRule[] {
  return rules.filter((rule) => rule.table === table && rule.chain === chain);
}

/** `--iptables-trace-logging` adds rules with the chain's name as prefix, in a separate log group. */
function isLog({ chain, text }: SavedRule): boolean {
  return text.includes(`-j NFLOG --nflog-prefix "${chain}>`) && text.includes(`--nflog-group ${logGroup}`);
}

const owner = '((?:-m owner (?:! )?--[ug]id-owner \\S+ ?)+)';
const ownerReturn = new RegExp(`^${owner}-j RETURN$`);
const queryReturn = new RegExp(`^-p udp --dport 53 ${owner}-j RETURN$`);
const queryRedirect = new RegExp(`^(?:-d \\S+ )?-p udp --dport 53 -j REDIRECT --to-ports ${dnsCapturePort}$`);
const agentResponseZone = new RegExp(`^-p udp --sport ${dnsCapturePort} ${owner}-j CT --zone 2$`);
const agentQueryZone = new RegExp(`^-p udp --dport 53 ${owner}-j CT --zone 1$`);
const serverQueryZone = /^(?:-d (\S+) )?-p udp --dport 53 -j CT --zone 2$/;
const serverResponseZone = /^(?:-s (\S+) )?-p udp --sport 53 -j CT --zone 1$/;

function dnsRules(savedRules: SavedRules): SavedRule[] {
  const rawOutput = rulesOfChain(savedRules, 'raw', 'OUTPUT');
  const rawPrerouting = rulesOfChain(savedRules, 'raw', 'PREROUTING');
  const responses = rawOutput.filter((rule) => agentResponseZone.test(textWithoutPortMatches(rule)));
  const proxies = new Set(responses.map((rule) => agentResponseZone.exec(textWithoutPortMatches(rule))![1]!));
  const queries = rawOutput.filter((rule) => proxies.has(agentQueryZone.exec(textWithoutPortMatches(rule))?.[1] ?? ''));
  return [
    ...natDnsRules(savedRules, proxies),
    ...responses,
    ...queries,
    ...serverZones(rawOutput, rawPrerouting, proxies),
  ];
}

/** Zone rules for name servers belong to the redirection only in pairs: queries to and responses from the same server. */
function serverZones(output: SavedRule[], prerouting: SavedRule[], proxies: ReadonlySet<string>): SavedRule[] {
  if (proxies.size === 0) return [];
  const servers = (rules: SavedRule[], zone: RegExp): Map<string, SavedRule> =>
    new Map(
      rules.flatMap((rule) =>
        zone.test(textWithoutPortMatches(rule)) ? [[zone.exec(textWithoutPortMatches(rule))![1] ?? 'any', rule]] : [],
      ),
    );
  const queries = servers(output, serverQueryZone);
  const responses = servers(prerouting, serverResponseZone);
  return [...queries].flatMap(([server, query]) => {
    const response = responses.get(server);
    return response === undefined ? [] : [query, response];
  });
}

/**
 * Rules for the agent's queries have an owner of ISTIO_OUTPUT or of the zones. If an earlier cleanup removed only ISTIO_OUTPUT, the rules directly
 * before the redirection of queries are such rules, too.
 */
function natDnsRules(savedRules: SavedRules, proxies: ReadonlySet<string>): SavedRule[] {
  const output = rulesOfChain(savedRules, 'nat', 'OUTPUT');
  const lacksOutputChain = !savedRules.chains.some(({ table, chain }) => table === 'nat' && chain === 'ISTIO_OUTPUT');
  const owners = new Set([
    ...proxies,
    ...rulesOfChain(savedRules, 'nat', 'ISTIO_OUTPUT').map(
      (rule) => ownerReturn.exec(textWithoutPortMatches(rule))?.[1] ?? '',
    ),
  ]);
  const dnsReturnRules: SavedRule[] = [];
  for (const [i, rule] of [...output.entries()].reverse()) {
    const ownerId = queryReturn.exec(textWithoutPortMatches(rule))?.[1];
    const next = output.slice(i + 1).find((candidateRule) => !isLog(candidateRule));
    const precedesOwnRule = lacksOutputChain && next !== undefined && dnsReturnRules.includes(next);
    if (
      queryRedirect.test(textWithoutPortMatches(rule)) ||
      (ownerId !== undefined && (owners.has(ownerId) || precedesOwnRule))
    ) {
      dnsReturnRules.push(rule);
    }
  }
  return dnsReturnRules;
}

function marksOf(savedRules: SavedRules): number[] {
  return rulesOfChain(savedRules, 'mangle', 'ISTIO_DIVERT').flatMap(({ text }) => {
    const mark = /^-j MARK --set-xmark (0x[\da-f]+)/.exec(text)?.[1];
    return mark === undefined ? [] : [Number(mark)];
  });
}

const hex = (mark: number): string => `0x${mark.toString(16)}`;

function isTproxyRule(rule: SavedRule, marks: readonly number[]): boolean {
  const { table, chain } = rule;
  const text = textWithoutPortMatches(rule);
  if (table !== 'mangle') return false;
  if (chain === 'PREROUTING') {
    return marks.some((mark) => text.startsWith(`-p tcp -m mark --mark ${hex(mark)} -j CONNMARK --save-mark`));
  }
  if (chain !== 'OUTPUT') return false;
  return (
    (text.startsWith('! -d ') &&
      text.includes(` -o lo -p tcp -m owner `) &&
      text.includes(` -j MARK --set-xmark ${hex(outboundMark)}/`)) ||
    marks.some(
      (mark) =>
        text === `-o lo -p tcp -m mark --mark ${hex(mark)} -j RETURN` ||
        text.startsWith(`-p tcp -m connmark --mark ${hex(mark)} -j CONNMARK --restore-mark`),
    )
  );
}

/** An equal rule of another program stays, because each marker records one rule. */
function markedRulesOf(savedRules: SavedRules, { unrecorded }: NamedRedirection): SavedRule[] {
  const hasRecords = savedRules.chains.some(({ chain }) => isMarkerChain(chain));
  const isUnrecorded = !hasRecords && savedRules.chains.some(({ chain }) => chainNames.has(chain));
  const { excludedInterfaces, kubevirtInterfaces, dropInvalid } =
    isUnrecorded && unrecorded !== undefined ? unrecorded : parseMarkers(savedRules.chains);
  const foundRules: SavedRule[] = [];
  // The redirection appended its rule, so the last of several equal rules belongs to it.
  const addRule = (table: string, chain: string, text: string): void => {
    const rule = rulesOfChain(savedRules, table, chain).findLast(
      (foundRule) => foundRule.text === text && !foundRules.includes(foundRule),
    );
    if (rule !== undefined) foundRules.push(rule);
  };
  const hasTproxy = savedRules.chains.some(({ table, chain }) => table === 'mangle' && chain === 'ISTIO_INBOUND');
  for (const name of excludedInterfaces) {
    for (const table of hasTproxy ? ['nat', 'mangle'] : ['nat']) {
      addRule(table, 'PREROUTING', `-i ${name} -j RETURN`);
      addRule(table, 'OUTPUT', `-o ${name} -j RETURN`);
    }
  }
  for (const name of kubevirtInterfaces) {
    // The redirection inserted its rule, so the first of several equal rules belongs to it.
    const rule = rulesOfChain(savedRules, 'nat', 'PREROUTING').find(({ text }) => text === `-i ${name} -j RETURN`);
    if (rule !== undefined) foundRules.push(rule);
  }
  if (dropInvalid) addRule('mangle', 'PREROUTING', '-m conntrack --ctstate INVALID -j DROP');
  return foundRules;
}
