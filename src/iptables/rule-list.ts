/** Rules of iptables as words, and their two written forms: lines of iptables-restore, and a command for each. */
import type { IpFamily } from './interception.ts';

/** In the order in which they are applied. */
export const tables = ['mangle', 'nat', 'raw'] as const;
export type Table = (typeof tables)[number];

export interface Rule {
  readonly table: Table;
  readonly chain: string;
  /** Inserted there, and not appended. */
  readonly position?: number;
  /** What follows the chain's name. */
  readonly words: readonly string[];
}

/** A program with its arguments: never given to a shell. */
export interface CommandLine {
  readonly program: string;
  readonly args: readonly string[];
}

const builtInChains: ReadonlySet<string> = new Set(['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']);

/** Whether the kernel has the chain by itself: it is never made, flushed or deleted. */
export function isBuiltIn(chain: string): boolean {
  return builtInChains.has(chain);
}

/** The chains that rules are in and that have to be made, each once, in the order of first use. */
export function chainsOf(rules: readonly Rule[]): readonly Pick<Rule, 'table' | 'chain'>[] {
  const made = new Map<string, Pick<Rule, 'table' | 'chain'>>();
  for (const { table, chain } of rules) {
    if (!isBuiltIn(chain)) made.set(`${table} ${chain}`, made.get(`${table} ${chain}`) ?? { table, chain });
  }
  return [...made.values()];
}

/** What `iptables-restore --noflush` reads; empty without rules. */
export function restoreText(rules: readonly Rule[]): string {
  return tables
    .flatMap((table) => {
      const own = rules.filter((rule) => rule.table === table);
      if (own.length === 0) return [];
      const chains = chainsOf(own).map(({ chain }) => `-N ${chain}`);
      return [`* ${table}`, ...chains, ...own.map((rule) => addWords(rule).join(' ')), 'COMMIT'];
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** The same as commands, one after the other: chains first. */
export function ruleCommands(family: IpFamily, rules: readonly Rule[]): CommandLine[] {
  const program = programOf(family);
  return [
    ...chainsOf(rules).map(({ table, chain }) => ({ program, args: ['-t', table, '-N', chain] })),
    ...rules.map((rule) => ({ program, args: ['-t', rule.table, ...addWords(rule)] })),
  ];
}

/** Appends a rule, or inserts it. */
function addWords({ chain, position, words }: Rule): string[] {
  return position === undefined ? ['-A', chain, ...words] : ['-I', chain, `${position}`, ...words];
}

export function programOf(family: IpFamily): string {
  return family === 'v4' ? 'iptables' : 'ip6tables';
}

/** As a person would type it; for people, never for a shell. */
export function commandText({ program, args }: CommandLine): string {
  return [program, ...args].join(' ');
}
