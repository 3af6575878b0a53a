export interface SavedChain {
  readonly table: string;
  readonly chain: string;
}

export interface SavedRule extends SavedChain {
  /** The text after the chain's name, exactly as printed. */
  readonly text: string;
  readonly number: number;
  readonly isRepeated: boolean;
}

export interface SavedRules {
  readonly chains: readonly SavedChain[];
  /** In the order in which the kernel applies them. */
  readonly rules: readonly SavedRule[];
}

export function parseSavedRules(savedText: string): SavedRules {
  const chains: SavedChain[] = [];
  const savedLines: Pick<SavedRule, 'table' | 'chain' | 'text' | 'number'>[] = [];
  const lengths = new Map<string, number>();
  const copies = new Map<string, number>();
  const count = (counts: Map<string, number>, key: string): number => {
    counts.set(key, (counts.get(key) ?? 0) + 1);
    return counts.get(key)!;
  };
  let table = '';
  for (const line of savedText.split('\n')) {
    const [, tableName, chain, appendedTo, text = ''] = /^(?:\*\s*(\S+)|:(\S+) .*|-A (\S+) ?(.*))$/.exec(line) ?? [];
    if (tableName !== undefined) table = tableName;
    else if (chain !== undefined) chains.push({ table, chain });
    else if (appendedTo !== undefined) {
      savedLines.push({ table, chain: appendedTo, text, number: count(lengths, `${table} ${appendedTo}`) });
      count(copies, `${table} ${appendedTo} ${text}`);
    }
  }
  const isRepeated = (line: Omit<SavedRule, 'isRepeated'>): boolean =>
    copies.get(`${line.table} ${line.chain} ${line.text}`)! > 1;
  return { chains, rules: savedLines.map((line) => ({ ...line, isRepeated: isRepeated(line) })) };
}
