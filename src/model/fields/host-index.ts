/** Things by their hosts, where hosts may be wildcards: who shares a name with a host is found without asking everybody. */
import { isWildcard } from './hostname.ts';

/** One host of one thing. */
export interface HostEntry<T> {
  readonly item: T;
  readonly host: string;
  /** The host's place among the hosts of all things, which are in their order. */
  readonly place: number;
}

/**
 * Answers by `hostsOverlap` (hostname.ts): a look-up costs as much as there are lengths of wildcards, and what it finds.
 * Immutable.
 */
export class HostIndex<T> {
  /** Entries by the host itself, wildcards too. */
  readonly #byHost = new Map<string, HostEntry<T>[]>();
  /** How long the ends are that wildcards stand for: `*.test` has one of five. */
  readonly #wildcardLengths: readonly number[];
  /** Hosts written backwards, in order, made when a wildcard is first looked for: those of one end stand together. */
  #backwards: readonly { readonly text: string; readonly host: string }[] | undefined;

  constructor(items: Iterable<T>, hostsOf: (item: T) => Iterable<string>) {
    let place = 0;
    for (const item of items) {
      for (const host of hostsOf(item)) {
        const entry = { item, host, place: place++ };
        const same = this.#byHost.get(host);
        if (same === undefined) this.#byHost.set(host, [entry]);
        else same.push(entry);
      }
    }
    const wildcards = [...this.#byHost.keys()].filter(isWildcard);
    this.#wildcardLengths = [...new Set(wildcards.map((host) => host.length - 1))];
  }

  /** Entries that share a name with a host, in their order. */
  overlapping(host: string): readonly HostEntry<T>[] {
    const found = [this.#wider(host), isWildcard(host) ? this.#narrower(host) : (this.#byHost.get(host) ?? [])];
    const [wider, others] = found as [readonly HostEntry<T>[], readonly HostEntry<T>[]];
    if (wider.length === 0 && others.length < 2) return others;
    return [...wider, ...others].sort((a, b) => a.place - b.place);
  }

  /** Entries whose hosts are wildcards that the host lies within, but not that very host. */
  #wider(host: string): readonly HostEntry<T>[] {
    return this.#wildcardLengths.flatMap((length) => {
      if (length >= host.length) return [];
      const wildcard = `*${host.slice(host.length - length)}`;
      return wildcard === host ? [] : (this.#byHost.get(wildcard) ?? []);
    });
  }

  /** Entries whose hosts lie within a wildcard, the wildcard itself among them. */
  #narrower(wildcard: string): readonly HostEntry<T>[] {
    this.#backwards ??= [...this.#byHost.keys()]
      .map((host) => ({ text: backwards(host), host }))
      .sort((a, b) => (a.text < b.text ? -1 : 1));
    const end = backwards(wildcard.slice(1));
    const found: HostEntry<T>[] = [];
    for (let at = firstAtLeast(this.#backwards, end); at < this.#backwards.length; at++) {
      const { text, host } = this.#backwards[at]!;
      if (!text.startsWith(end)) break;
      // `*.test` does not stand for `.test`.
      if (text.length > end.length) found.push(...this.#byHost.get(host)!);
    }
    return found;
  }
}

function backwards(text: string): string {
  return [...text].reverse().join('');
}

/** The place of the first text that is not before another one. */
function firstAtLeast(sorted: readonly { readonly text: string }[], text: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.text < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
