import { type LinkedItem, LinkedQueue } from '../../../model/collections/linked-queue.ts';
import { hashOf } from '../../../model/collections/persistent-map.ts';
import { type ConfigKey, configKeyText } from '../../../model/config/config.ts';
import type { CachedType, Memory } from '../../../networking/index.ts';
import { PartBlock } from '../../../networking/messages/part-block.ts';
import { Encodable, ResourceOfParts } from '../../../networking/messages/resource.ts';

export interface ResourceMemoryOptions {
  /** PILOT_XDS_CACHE_SIZE; 0 disables the cache. */
  readonly maxEntries: number;
  /** PILOT_XDS_CACHE_BYTES. Default: unlimited. */
  readonly maxBytes?: number;
  readonly onThrashing?: (figures: ThrashingFigures) => void;
  /** Types whose caching PILOT_ENABLE_CDS_CACHE or PILOT_ENABLE_RDS_CACHE disables. */
  readonly uncachedTypes?: ReadonlySet<CachedType>;
}

export interface ThrashingFigures {
  readonly rebuiltCount: number;
  readonly entries: number;
  readonly bytes: number;
}

export interface MemoryCounts {
  hits: number;
  misses: number;
  evictions: number;
  rebuilds: number;
}

const entryBytes = 300;
/** Entries are measured after their resources are encoded. */
const maxUnmeasuredEntries = 8_192;
/** The same number of older keys is kept too. */
const maxDroppedIds = 32_768;
/** A listener may depend on all services. */
const maxDependencies = 256;
const noKeys: readonly string[] = [];
const minReportedRebuilds = 1_000;

interface MemoryEntry extends LinkedItem<MemoryEntry> {
  readonly id: string;
  readonly inputs: readonly unknown[];
  readonly value: unknown;
  readonly dependsOn: readonly string[];
  /** Whether the entry was requested since the last eviction pass. */
  isRecentlyUsed: boolean;
  /** Approximate size of data that no other entry shares. 0 until measured, -1 after removal. */
  bytes: number;
  blocks: readonly PartBlock[];
}

interface SharedBytes {
  holders: number;
  readonly bytes: number;
}

/**
 * Returns an entry only for the inputs that it was built from, so that an old context that is still served neither receives newer values nor leaves
 * outdated ones.
 */
export class ResourceMemory implements Memory {
  readonly counts: MemoryCounts = { hits: 0, misses: 0, evictions: 0, rebuilds: 0 };
  readonly #options: ResourceMemoryOptions;
  readonly #entries = new Map<string, MemoryEntry>();
  readonly #queue = new LinkedQueue<MemoryEntry>();
  readonly #dependants = new Map<string, Set<string>>();

  #bytes = 0;
  readonly #blocks = new Map<PartBlock, SharedBytes>();
  #unmeasuredEntries: MemoryEntry[] = [];
  #recentlyDropped = new Set<number>();
  #previouslyDroppedIds = new Set<number>();
  #reportedRebuilds = 0;
  #reportThreshold = minReportedRebuilds;

  constructor(options: ResourceMemoryOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  get dependentConfigs(): number {
    return this.#dependants.size;
  }

  getOrBuild<T extends { readonly dependsOn: readonly ConfigKey[] }>(
    type: CachedType,
    key: string,
    inputs: readonly unknown[],
    build: (previous: T | undefined) => T,
  ): T {
    const { maxEntries, uncachedTypes } = this.#options;
    if (maxEntries === 0 || uncachedTypes?.has(type)) return build(undefined);
    const id = `${type} ${key}`;
    const cachedEntry = this.#entries.get(id);
    if (cachedEntry !== undefined && areInputsEqual(cachedEntry.inputs, inputs)) {
      this.counts.hits++;
      cachedEntry.isRecentlyUsed = true;
      return cachedEntry.value as T;
    }
    this.counts.misses++;
    if (cachedEntry === undefined && this.#wasDropped(id)) this.counts.rebuilds++;
    const value = build(cachedEntry?.value as T | undefined);
    // The build may have added this entry.
    const existingEntry = this.#entries.get(id);
    if (existingEntry !== undefined) this.#remove(existingEntry);
    this.#add({
      id,
      inputs,
      value,
      // With so many dependencies, one changes soon, so the value is not indexed by them.
      dependsOn: value.dependsOn.length > maxDependencies ? noKeys : value.dependsOn.map(configKeyText),
      isRecentlyUsed: false,
      bytes: 0,
      blocks: noBlocks,
      older: undefined,
      newer: undefined,
    });
    return value;
  }

  latestValue(type: CachedType, key: string): unknown {
    return this.#entries.get(`${type} ${key}`)?.value;
  }

  invalidate(changedKeys: Iterable<string>): void {
    this.#measureEntries();
    this.#reportThrashing();
    for (const key of changedKeys) {
      for (const id of this.#dependants.get(key) ?? []) this.#remove(this.#entries.get(id)!);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#queue.clear();
    this.#dependants.clear();
    this.#recentlyDropped.clear();
    this.#previouslyDroppedIds.clear();
    this.#unmeasuredEntries = [];
    this.#blocks.clear();
    this.#bytes = 0;
  }

  #measureEntries(): void {
    for (const entry of this.#unmeasuredEntries) {
      if (entry.bytes < 0) continue;
      entry.bytes = entryBytes + 8 * entry.inputs.length + countBytes(entry.value);
      entry.blocks = listBlocks(entry.value);
      this.#bytes += entry.bytes;
      for (const block of entry.blocks) this.#retainBlock(block);
    }
    this.#unmeasuredEntries = [];
    while (this.#bytes > (this.#options.maxBytes ?? Number.POSITIVE_INFINITY)) this.#evict();
  }

  #retainBlock(block: PartBlock): void {
    const sharedBlock = this.#blocks.get(block);
    if (sharedBlock !== undefined) {
      sharedBlock.holders++;
      return;
    }
    const bytes = block.retainedBytes + 8 * block.parts.length;
    this.#blocks.set(block, { holders: 1, bytes });
    this.#bytes += bytes;
  }

  #release(block: PartBlock): void {
    const sharedBlock = this.#blocks.get(block)!;
    if (--sharedBlock.holders > 0) return;
    this.#blocks.delete(block);
    this.#bytes -= sharedBlock.bytes;
  }

  /** A few repeated builds result from changes and rare use. */
  #reportThrashing(): void {
    const newRebuilds = this.counts.rebuilds - this.#reportedRebuilds;
    if (newRebuilds < this.#reportThreshold) return;
    this.#reportedRebuilds = this.counts.rebuilds;
    this.#reportThreshold *= 2;
    this.#options.onThrashing?.({ rebuiltCount: newRebuilds, entries: this.size, bytes: this.bytes });
  }

  #add(entry: MemoryEntry): void {
    const { id } = entry;
    this.#entries.set(id, entry);
    this.#queue.add(entry);
    this.#unmeasuredEntries.push(entry);
    for (const key of entry.dependsOn) {
      const ids = this.#dependants.get(key);
      if (ids === undefined) this.#dependants.set(key, new Set([id]));
      else ids.add(id);
    }
    // The added entry may be evicted here.
    if (this.#unmeasuredEntries.length >= maxUnmeasuredEntries) this.#measureEntries();
    while (this.#entries.size > this.#options.maxEntries) this.#evict();
  }

  /** Second-chance algorithm: a used entry is evicted if it is unused until the next pass. */
  #evict(): void {
    const entry = this.#queue.oldest!;
    if (entry.isRecentlyUsed) {
      entry.isRecentlyUsed = false;
      this.#queue.remove(entry);
      this.#queue.add(entry);
      return;
    }
    this.counts.evictions++;
    this.#remove(entry);
    this.#recentlyDropped.add(hashOf(entry.id));
    if (this.#recentlyDropped.size < maxDroppedIds) return;
    this.#previouslyDroppedIds = this.#recentlyDropped;
    this.#recentlyDropped = new Set();
  }

  #wasDropped(id: string): boolean {
    if (this.#recentlyDropped.size === 0 && this.#previouslyDroppedIds.size === 0) return false;
    const hash = hashOf(id);
    return this.#recentlyDropped.delete(hash) || this.#previouslyDroppedIds.delete(hash);
  }

  #remove(entry: MemoryEntry): void {
    const { id } = entry;
    this.#entries.delete(id);
    this.#queue.remove(entry);
    this.#bytes -= entry.bytes;
    entry.bytes = -1;
    for (const block of entry.blocks) this.#release(block);
    entry.blocks = noBlocks;
    for (const key of entry.dependsOn) {
      const ids = this.#dependants.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#dependants.delete(key);
    }
  }
}

/** Shared blocks are not counted. */
function countBytes(value: unknown): number {
  if (value instanceof Encodable) return value.retainedBytes;
  let sum = 0;
  for (const fieldValue of Object.values(value as object)) {
    if (fieldValue instanceof Encodable) sum += fieldValue.retainedBytes;
    else if (Array.isArray(fieldValue)) {
      sum += 8 * fieldValue.length;
      for (const item of fieldValue) if (item instanceof Encodable) sum += item.retainedBytes;
    }
  }
  return sum;
}

const noBlocks: readonly PartBlock[] = [];

function listBlocks(value: unknown): readonly PartBlock[] {
  if (value instanceof ResourceOfParts) return value.blocks;
  return Object.values(value as object).flatMap((fieldValue) => {
    if (fieldValue instanceof ResourceOfParts) return fieldValue.blocks;
    return Array.isArray(fieldValue) && fieldValue[0] instanceof PartBlock ? fieldValue : noBlocks;
  });
}

function areInputsEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}
