import { isWildcard } from './hostname.ts';

export interface HostEntry<T> {
  readonly item: T;
  readonly host: string;
  readonly itemIndex: number;
}

/** An immutable index by host, including wildcards, that finds overlapping hosts (`hostsOverlap` in hostname.ts) without a scan. */
export class HostIndex<T> {
  readonly #entriesByHost = new Map<string, HostEntry<T>[]>();
  /** Lengths of wildcard suffixes: five for `*.test`. */
  readonly #wildcardLengths: readonly number[];
  /** Reversed, so that hosts with the same suffix are adjacent; built on the first wildcard look-up. */
  #reversedHosts: readonly { readonly text: string; readonly host: string }[] | undefined;

  constructor(items: Iterable<T>, hostsOf: (item: T) => Iterable<string>) {
    let entryIndex = 0;
    for (const item of items) {
      for (const host of hostsOf(item)) {
        const entry = { item, host, itemIndex: entryIndex++ };
        const sameHost = this.#entriesByHost.get(host);
        if (sameHost === undefined) this.#entriesByHost.set(host, [entry]);
        else sameHost.push(entry);
      }
    }
    const wildcards = [...this.#entriesByHost.keys()].filter(isWildcard);
    this.#wildcardLengths = [...new Set(wildcards.map((host) => host.length - 1))];
  }

  overlappingEntries(host: string): readonly HostEntry<T>[] {
    const overlappingEntries = [
      this.#widerEntries(host),
      isWildcard(host) ? this.#narrowerEntries(host) : (this.#entriesByHost.get(host) ?? []),
    ];
    const [widerEntries, narrowerEntries] = overlappingEntries as [readonly HostEntry<T>[], readonly HostEntry<T>[]];
    if (widerEntries.length === 0 && narrowerEntries.length < 2) return narrowerEntries;
    return [...widerEntries, ...narrowerEntries].sort((a, b) => a.itemIndex - b.itemIndex);
  }

  #widerEntries(host: string): readonly HostEntry<T>[] {
    return this.#wildcardLengths.flatMap((length) => {
      if (length >= host.length) return [];
      const wildcard = `*${host.slice(host.length - length)}`;
      return wildcard === host ? [] : (this.#entriesByHost.get(wildcard) ?? []);
    });
  }

  #narrowerEntries(wildcard: string): readonly HostEntry<T>[] {
    this.#reversedHosts ??= [...this.#entriesByHost.keys()]
      .map((host) => ({ text: reversedText(host), host }))
      .sort((a, b) => (a.text < b.text ? -1 : 1));
    const reversedSuffix = reversedText(wildcard.slice(1));
    const narrowerEntries: HostEntry<T>[] = [];
    for (
      let entryIndex = lowerBoundIndex(this.#reversedHosts, reversedSuffix);
      entryIndex < this.#reversedHosts.length;
      entryIndex++
    ) {
      const { text, host } = this.#reversedHosts[entryIndex]!;
      if (!text.startsWith(reversedSuffix)) break;
      // `*.test` does not match `.test`.
      if (text.length > reversedSuffix.length) narrowerEntries.push(...this.#entriesByHost.get(host)!);
    }
    return narrowerEntries;
  }
}

function reversedText(text: string): string {
  return [...text].reverse().join('');
}

function lowerBoundIndex(sortedEntries: readonly { readonly text: string }[], text: string): number {
  let [lowIndex, highIndex] = [0, sortedEntries.length];
  while (lowIndex < highIndex) {
    const middle = (lowIndex + highIndex) >> 1;
    if (sortedEntries[middle]!.text < text) lowIndex = middle + 1;
    else highIndex = middle;
  }
  return lowIndex;
}
