/** `rule-list.ts` renders a rule for iptables, `nftables.ts` for nft. */
import type { IpFamily } from './interception.ts';

/** iptables applies the tables in this order. */
export const tables = ['mangle', 'nat', 'raw'] as const;
export type Table = (typeof tables)[number];

export type TransportProtocol = 'tcp' | 'udp';
export type OwnerKind = 'uid' | 'gid';

/** A rule applies if all its conditions match. */
export type Match =
  | { readonly kind: 'protocol'; readonly protocol: TransportProtocol }
  /** Requires a preceding protocol match. */
  | { readonly kind: 'port'; readonly side: 'd' | 's'; readonly ports: readonly number[]; readonly not?: boolean }
  | { readonly kind: 'address'; readonly side: 'd' | 's'; readonly range: string; readonly not?: boolean }
  /** A name that ends in `+` matches all interfaces with this prefix. */
  | { readonly kind: 'interface'; readonly direction: 'i' | 'o'; readonly name: string }
  | { readonly kind: 'owner'; readonly owner: OwnerKind; readonly id: string; readonly not?: boolean }
  | { readonly kind: 'mark'; readonly mark: number; readonly not?: boolean }
  | { readonly kind: 'connectionMark'; readonly mark: number }
  | { readonly kind: 'connectionState'; readonly states: readonly string[] };

export type Action =
  | { readonly kind: 'return' | 'accept' | 'drop' | 'saveMark' | 'restoreMark' }
  | { readonly kind: 'jump'; readonly chain: string }
  | { readonly kind: 'redirect'; readonly port: number }
  | { readonly kind: 'tproxy'; readonly port: number; readonly mark: number }
  | { readonly kind: 'setMark'; readonly mark: number }
  | { readonly kind: 'zone'; readonly zone: number }
  | { readonly kind: 'log'; readonly prefix: string };

export interface Rule {
  readonly table: Table;
  readonly chain: string;
  /** 1-based; a rule without position is appended. */
  readonly position?: number;
  /** Absent if the rule applies to both families. */
  readonly family?: IpFamily;
  readonly matches: readonly Match[];
  readonly action: Action;
}

export function rulesOfFamily(rules: readonly Rule[], family: IpFamily): Rule[] {
  return rules.filter((rule) => rule.family === undefined || rule.family === family);
}

const builtInChains: ReadonlySet<string> = new Set(['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']);

/** The kernel provides these chains; they are never created, flushed or deleted. */
export function isBuiltIn(chain: string): boolean {
  return builtInChains.has(chain);
}

export function chainsOf(rules: readonly Rule[]): readonly Pick<Rule, 'table' | 'chain'>[] {
  const createdChains = new Map<string, Pick<Rule, 'table' | 'chain'>>();
  for (const { table, chain } of rules) {
    if (!isBuiltIn(chain))
      createdChains.set(`${table} ${chain}`, createdChains.get(`${table} ${chain}`) ?? { table, chain });
  }
  return [...createdChains.values()];
}
