/** What generators made, kept for all contexts as long as it is of use (spec/discovery.md §6.7). */
import { type ConfigKey, configKeyText } from '../../model/config/config.ts';
import type { Memory, RememberedType } from '../../networking/index.ts';

export interface ResourceMemoryOptions {
  /** PILOT_XDS_CACHE_SIZE. 0: nothing is kept. */
  readonly maxEntries: number;
  /** Types that are made anew each time (PILOT_ENABLE_CDS_CACHE, PILOT_ENABLE_RDS_CACHE). */
  readonly notKept?: ReadonlySet<RememberedType>;
}

export interface MemoryCounts {
  hits: number;
  misses: number;
  evictions: number;
}

interface Entry {
  readonly inputs: readonly unknown[];
  readonly value: unknown;
  readonly dependsOn: readonly string[];
  /** Asked for since eviction last passed by. */
  used: boolean;
}

/**
 * An entry is given out only for the very inputs that it was made from, so an old context that is still being served
 * can neither be given what is too new nor leave behind what is too old (§6.7, token rule). What depends on a changed
 * object is forgotten when the change is published; of the rest the least recently used goes when there is too much.
 */
export class ResourceMemory implements Memory {
  readonly counts: MemoryCounts = { hits: 0, misses: 0, evictions: 0 };
  readonly #options: ResourceMemoryOptions;
  /** In the order in which they come up for eviction. */
  readonly #entries = new Map<string, Entry>();
  /**
   * Where eviction has got to: all that is left is after it. One that began anew each time would pass by all that was deleted
   * before it, which costs as much as there are entries.
   */
  #hand = this.#entries.entries();
  /** Keys of entries by the object that they depend on. */
  readonly #dependants = new Map<string, Set<string>>();

  constructor(options: ResourceMemoryOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** How many objects anything that is kept depends on. */
  get dependentConfigs(): number {
    return this.#dependants.size;
  }

  recall<T extends { readonly dependsOn: readonly ConfigKey[] }>(
    type: RememberedType,
    key: string,
    inputs: readonly unknown[],
    make: (before: T | undefined) => T,
  ): T {
    const { maxEntries, notKept } = this.#options;
    if (maxEntries === 0 || notKept?.has(type)) return make(undefined);
    const id = `${type} ${key}`;
    const known = this.#entries.get(id);
    if (known !== undefined && sameInputs(known.inputs, inputs)) {
      this.counts.hits++;
      known.used = true;
      return known.value as T;
    }
    this.counts.misses++;
    const value = make(known?.value as T | undefined);
    if (known !== undefined) this.#remove(id, known);
    this.#add(id, { inputs, value, dependsOn: value.dependsOn.map(configKeyText), used: false });
    return value;
  }

  /** Forgets what depends on any of these objects. */
  forget(changed: Iterable<string>): void {
    for (const key of changed) {
      for (const id of this.#dependants.get(key) ?? []) this.#remove(id, this.#entries.get(id)!);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#hand = this.#entries.entries();
    this.#dependants.clear();
  }

  #add(id: string, entry: Entry): void {
    this.#entries.set(id, entry);
    for (const key of entry.dependsOn) {
      const ids = this.#dependants.get(key);
      if (ids === undefined) this.#dependants.set(key, new Set([id]));
      else ids.add(id);
    }
    while (this.#entries.size > this.#options.maxEntries) this.#evict();
  }

  /** The second time that eviction comes to an entry that nobody asked for meanwhile, it goes. */
  #evict(): void {
    const [id, entry] = this.#hand.next().value!;
    if (entry.used) {
      entry.used = false;
      this.#entries.delete(id);
      this.#entries.set(id, entry);
      return;
    }
    this.counts.evictions++;
    this.#remove(id, entry);
  }

  #remove(id: string, entry: Entry): void {
    this.#entries.delete(id);
    for (const key of entry.dependsOn) {
      const ids = this.#dependants.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#dependants.delete(key);
    }
  }
}

function sameInputs(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}
