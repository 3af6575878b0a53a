import type { PresentRedirection } from './present-redirection.ts';
import type { SavedChain, SavedRule } from './saved-rules.ts';

/** Returns input for `iptables-restore --noflush`, which applies each table in one step. */
export function removalText({ chains, rules, references }: PresentRedirection): string {
  const tables = [...new Set([...rules, ...chains].map(({ table }) => table))];
  const isReferenced = ({ table, chain }: SavedChain): boolean =>
    references.some((rule) => rule.table === table && rule.text.split(' ').includes(chain));
  return tables
    .flatMap((table) => {
      const chainsOfTable = chains.filter((savedChain) => savedChain.table === table);
      return [
        `* ${table}`,
        ...deletions(rules.filter((rule) => rule.table === table)),
        ...chainsOfTable.map(({ chain }) => `-F ${chain}`),
        ...chainsOfTable.filter((one) => !isReferenced(one)).map(({ chain }) => `-X ${chain}`),
        'COMMIT',
      ];
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** Duplicates are deleted by number: deletion by text removes the first, which may belong to another program. */
function deletions(rules: readonly SavedRule[]): string[] {
  const repeatedRules = rules.filter(({ isRepeated }) => isRepeated).sort((one, other) => other.number - one.number);
  return [
    ...repeatedRules.map(({ chain, number }) => `-D ${chain} ${number}`),
    ...rules.filter(({ isRepeated }) => !isRepeated).map(({ chain, text }) => `-D ${chain} ${text}`),
  ];
}
