import type { Percentiles } from './report.ts';

/** Ratio of neighbouring buckets: a percentile is at most 2 % too high. */
const growth = 1.02;
const smallestMs = 0.05;

/** Counts latencies of any number of requests in bounded memory. */
export class LatencyHistogram {
  readonly #counts = new Map<number, number>();
  #total = 0;
  #max = 0;

  add(latencyMs: number): void {
    const bucket = Math.ceil(Math.log(Math.max(latencyMs, smallestMs) / smallestMs) / Math.log(growth));
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + 1);
    this.#total++;
    this.#max = Math.max(this.#max, latencyMs);
  }

  /** All zero without values. */
  percentiles(): Percentiles {
    return { p50: this.#valueAt(0.5), p90: this.#valueAt(0.9), p99: this.#valueAt(0.99), max: this.#max };
  }

  #valueAt(quantile: number): number {
    const rank = Math.ceil(this.#total * quantile);
    let seenCount = 0;
    for (const bucket of [...this.#counts.keys()].sort((a, b) => a - b)) {
      seenCount += this.#counts.get(bucket)!;
      if (seenCount >= rank) return Math.min(this.#max, smallestMs * growth ** bucket);
    }
    return 0;
  }
}
