import type { PushRecord } from './push-record.ts';

export interface RingLimits {
  readonly maxRecords: number;
  readonly maxBytes: number;
}

export class RecordRing {
  readonly #limits: RingLimits;
  readonly #records = new Map<string, PushRecord>();
  #bytes = 0;
  #evictedCount = 0;

  constructor(limits: RingLimits) {
    this.#limits = limits;
  }

  /** Oldest first. */
  get records(): Iterable<PushRecord> {
    return this.#records.values();
  }

  get size(): number {
    return this.#records.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get evictedCount(): number {
    return this.#evictedCount;
  }

  get(version: string): PushRecord | undefined {
    return this.#records.get(version);
  }

  add(record: PushRecord): void {
    this.#records.set(record.version, record);
    this.#bytes += record.bytes;
    this.#evict();
  }

  /** Call after names were added to a record. */
  recordGrowth(record: PushRecord, bytes: number): void {
    record.bytes += bytes;
    if (!this.#records.has(record.version)) return;
    this.#bytes += bytes;
    this.#evict();
  }

  #evict(): void {
    const { maxRecords, maxBytes } = this.#limits;
    for (const [version, { bytes }] of this.#records) {
      if (this.#records.size <= maxRecords && (this.#bytes <= maxBytes || this.#records.size === 1)) return;
      this.#records.delete(version);
      this.#bytes -= bytes;
      this.#evictedCount++;
    }
  }
}
