/** What takes the redirection away again (spec/agent.md §10.6). What is not there any more is passed over. */
import type { Interception, IpFamily } from './interception.ts';
import { type CommandLine, isBuiltIn, programOf, type Rule } from './rule-list.ts';
import { interceptionRules } from './rules.ts';

/** Where they jump to comes last: a chain that a rule names cannot be deleted. */
const chains: readonly Pick<Rule, 'table' | 'chain'>[] = [
  { table: 'nat', chain: 'ISTIO_OUTPUT' },
  { table: 'nat', chain: 'ISTIO_INBOUND' },
  { table: 'mangle', chain: 'ISTIO_INBOUND' },
  { table: 'mangle', chain: 'ISTIO_DIVERT' },
  { table: 'mangle', chain: 'ISTIO_TPROXY' },
  { table: 'nat', chain: 'ISTIO_REDIRECT' },
  { table: 'nat', chain: 'ISTIO_IN_REDIRECT' },
];

/** The ways into our chains, whichever flags they were made with. */
const jumps: readonly Rule[] = [
  { table: 'nat', chain: 'PREROUTING', words: ['-p', 'tcp', '-j', 'ISTIO_INBOUND'] },
  { table: 'mangle', chain: 'PREROUTING', words: ['-p', 'tcp', '-j', 'ISTIO_INBOUND'] },
  // G3's, and G4's: a chain that is jumped to cannot be deleted, and empty it lets everything pass the proxy.
  { table: 'nat', chain: 'OUTPUT', words: ['-p', 'tcp', '-j', 'ISTIO_OUTPUT'] },
  { table: 'nat', chain: 'OUTPUT', words: ['-j', 'ISTIO_OUTPUT'] },
];

/** For both families; given the flags that the rules were made with, nothing of them is left. */
export function cleanupCommands(wanted: Interception): CommandLine[] {
  return (['v4', 'v6'] as const).flatMap((family) => familyCommands(wanted, family));
}

function familyCommands(wanted: Interception, family: IpFamily): CommandLine[] {
  const program = programOf(family);
  const ours = interceptionRules(wanted, family).filter(({ chain }) => isBuiltIn(chain));
  const others = ours.filter((rule) => !jumps.some((jump) => jump.table === rule.table && isSame(jump, rule)));
  return [
    ...[...jumps, ...others].map(({ table, chain, words }) => ({
      program,
      args: ['-t', table, '-D', chain, ...words],
    })),
    ...chains.flatMap(({ table, chain }) => [
      { program, args: ['-t', table, '-F', chain] },
      { program, args: ['-t', table, '-X', chain] },
    ]),
  ];
}

function isSame(one: Rule, other: Rule): boolean {
  return one.chain === other.chain && one.words.join(' ') === other.words.join(' ');
}
