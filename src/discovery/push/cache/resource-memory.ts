/** What generators made, kept for all contexts as long as it is of use (spec/discovery.md §6.7). */

import { type Linked, LinkedQueue } from '../../../model/collections/linked-queue.ts';
import { hashOf } from '../../../model/collections/persistent-map.ts';
import { type ConfigKey, configKeyText } from '../../../model/config/config.ts';
import type { Memory, RememberedType } from '../../../networking/index.ts';
import { PartBlock } from '../../../networking/messages/part-block.ts';
import { Encodable, ResourceOfParts } from '../../../networking/messages/resource.ts';

export interface ResourceMemoryOptions {
  /** PILOT_XDS_CACHE_SIZE: most things kept. 0: nothing is. */
  readonly maxEntries: number;
  /** PILOT_XDS_CACHE_BYTES: about as much is kept; without a limit when absent. */
  readonly maxBytes?: number;
  /** Told when much that was dropped is asked for again; each time after twice as much as before. */
  readonly thrashing?: (figures: ThrashingFigures) => void;
  /** Types that are made anew each time (PILOT_ENABLE_CDS_CACHE, PILOT_ENABLE_RDS_CACHE). */
  readonly notKept?: ReadonlySet<RememberedType>;
}

export interface ThrashingFigures {
  /** Things that were dropped and made again since the last time. */
  readonly remade: number;
  readonly entries: number;
  readonly bytes: number;
}

export interface MemoryCounts {
  hits: number;
  misses: number;
  evictions: number;
  /** Misses of what had been dropped for want of room. */
  remade: number;
}

/** An entry with its key, without what it holds. */
const entryBytes = 300;
/** Entries that wait to be measured: their resources are encoded after they were made. */
const maxUnmeasured = 8_192;
/** Dropped things of which is known that they were there: so many, and up to as many again that were dropped before them. */
const maxDropped = 32_768;
/** Objects that a thing may depend on to be forgotten when one of them changes: a listener may depend on all services. */
const maxDependencies = 256;
const noKeys: readonly string[] = [];
/** Before so much was made again nobody is told. */
const fewRemade = 1_000;

interface Entry extends Linked<Entry> {
  readonly id: string;
  readonly inputs: readonly unknown[];
  readonly value: unknown;
  readonly dependsOn: readonly string[];
  /** Asked for since eviction last passed by. */
  used: boolean;
  /** About what it holds, and nobody else does; 0 until it is measured. */
  bytes: number;
  /** What it shares with others, from when it is measured. */
  blocks: readonly PartBlock[];
}

/** What several entries hold counts once. */
interface SharedBytes {
  holders: number;
  readonly bytes: number;
}

/**
 * An entry is given out only for the very inputs that it was made from, so an old context that is still being served
 * can neither be given what is too new nor leave behind what is too old (§6.7, token rule). What depends on a changed
 * object is forgotten when the change is published; of the rest the least recently used goes when there is too much.
 */
export class ResourceMemory implements Memory {
  readonly counts: MemoryCounts = { hits: 0, misses: 0, evictions: 0, remade: 0 };
  readonly #options: ResourceMemoryOptions;
  readonly #entries = new Map<string, Entry>();
  /** Entries in the order in which they come up for eviction. */
  readonly #queue = new LinkedQueue<Entry>();
  /** Keys of entries by the object that they depend on. */
  readonly #dependants = new Map<string, Set<string>>();

  #bytes = 0;
  readonly #blocks = new Map<PartBlock, SharedBytes>();
  #unmeasured: Entry[] = [];
  /** Hashes of the keys of what was dropped lately. */
  #dropped = new Set<number>();
  #droppedBefore = new Set<number>();
  #toldAt = 0;
  #tellFrom = fewRemade;

  constructor(options: ResourceMemoryOptions) {
    this.#options = options;
  }

  /** About what all things hold that are kept. */
  get bytes(): number {
    return this.#bytes;
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
    if (known === undefined && this.#wasDropped(id)) this.counts.remade++;
    const value = make(known?.value as T | undefined);
    // What was made on the way may have taken its place, or its room.
    const there = this.#entries.get(id);
    if (there !== undefined) this.#remove(there);
    this.#add({
      id,
      inputs,
      value,
      // Of so many objects one changes soon, and the next thing under the key takes its place.
      dependsOn: value.dependsOn.length > maxDependencies ? noKeys : value.dependsOn.map(configKeyText),
      used: false,
      bytes: 0,
      blocks: none,
      older: undefined,
      newer: undefined,
    });
    return value;
  }

  latest(type: RememberedType, key: string): unknown {
    return this.#entries.get(`${type} ${key}`)?.value;
  }

  /** Forgets what depends on any of these objects, and sees to it that the rest is no more than may be kept. */
  forget(changed: Iterable<string>): void {
    this.#measure();
    this.#tell();
    for (const key of changed) {
      for (const id of this.#dependants.get(key) ?? []) this.#remove(this.#entries.get(id)!);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#queue.clear();
    this.#dependants.clear();
    this.#dropped.clear();
    this.#droppedBefore.clear();
    this.#unmeasured = [];
    this.#blocks.clear();
    this.#bytes = 0;
  }

  #measure(): void {
    for (const entry of this.#unmeasured) {
      // Gone meanwhile.
      if (entry.bytes < 0) continue;
      entry.bytes = entryBytes + 8 * entry.inputs.length + bytesIn(entry.value);
      entry.blocks = blocksIn(entry.value);
      this.#bytes += entry.bytes;
      for (const block of entry.blocks) this.#hold(block);
    }
    this.#unmeasured = [];
    while (this.#bytes > (this.#options.maxBytes ?? Number.POSITIVE_INFINITY)) this.#evict();
  }

  #hold(block: PartBlock): void {
    const shared = this.#blocks.get(block);
    if (shared !== undefined) {
      shared.holders++;
      return;
    }
    const bytes = block.bytesKept + 8 * block.parts.length;
    this.#blocks.set(block, { holders: 1, bytes });
    this.#bytes += bytes;
  }

  #release(block: PartBlock): void {
    const shared = this.#blocks.get(block)!;
    if (--shared.holders > 0) return;
    this.#blocks.delete(block);
    this.#bytes -= shared.bytes;
  }

  /** What is dropped because something changed, or is seldom wanted, is made again now and then; this is more. */
  #tell(): void {
    const remade = this.counts.remade - this.#toldAt;
    if (remade < this.#tellFrom) return;
    this.#toldAt = this.counts.remade;
    this.#tellFrom *= 2;
    this.#options.thrashing?.({ remade, entries: this.size, bytes: this.bytes });
  }

  #add(entry: Entry): void {
    const { id } = entry;
    this.#entries.set(id, entry);
    this.#queue.add(entry);
    this.#unmeasured.push(entry);
    for (const key of entry.dependsOn) {
      const ids = this.#dependants.get(key);
      if (ids === undefined) this.#dependants.set(key, new Set([id]));
      else ids.add(id);
    }
    // From here on the entry may be evicted again.
    if (this.#unmeasured.length >= maxUnmeasured) this.#measure();
    while (this.#entries.size > this.#options.maxEntries) this.#evict();
  }

  /** The second time that eviction comes to an entry that nobody asked for meanwhile, it goes. */
  #evict(): void {
    const entry = this.#queue.oldest!;
    if (entry.used) {
      entry.used = false;
      this.#queue.remove(entry);
      this.#queue.add(entry);
      return;
    }
    this.counts.evictions++;
    this.#remove(entry);
    this.#dropped.add(hashOf(entry.id));
    if (this.#dropped.size < maxDropped) return;
    this.#droppedBefore = this.#dropped;
    this.#dropped = new Set();
  }

  /** Whether what is there again now was dropped before. */
  #wasDropped(id: string): boolean {
    if (this.#dropped.size === 0 && this.#droppedBefore.size === 0) return false;
    const hash = hashOf(id);
    return this.#dropped.delete(hash) || this.#droppedBefore.delete(hash);
  }

  #remove(entry: Entry): void {
    const { id } = entry;
    this.#entries.delete(id);
    this.#queue.remove(entry);
    this.#bytes -= entry.bytes;
    entry.bytes = -1;
    for (const block of entry.blocks) this.#release(block);
    entry.blocks = none;
    for (const key of entry.dependsOn) {
      const ids = this.#dependants.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#dependants.delete(key);
    }
  }
}

/** Bytes of a value: of an encoded one without its blocks, of a list what it takes to have it. */
function bytesIn(value: unknown): number {
  if (value instanceof Encodable) return value.bytesKept;
  let sum = 0;
  for (const held of Object.values(value as object)) {
    if (held instanceof Encodable) sum += held.bytesKept;
    else if (Array.isArray(held)) {
      sum += 8 * held.length;
      for (const item of held) if (item instanceof Encodable) sum += item.bytesKept;
    }
  }
  return sum;
}

const none: readonly PartBlock[] = [];

function blocksIn(value: unknown): readonly PartBlock[] {
  if (value instanceof ResourceOfParts) return value.blocks;
  return Object.values(value as object).flatMap((held) => {
    if (held instanceof ResourceOfParts) return held.blocks;
    return Array.isArray(held) && held[0] instanceof PartBlock ? held : none;
  });
}

function sameInputs(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}
