/** Metric series with bounded memory and page size. Counts label sets beyond the limit together, and removes sets that were unused for some time. */
import { standardBuckets } from '../../model/standard-metrics/standard-metrics.ts';

export interface TableLimits {
  readonly maxLabelSets: number;
  readonly maxPageBytes: number;
  /** A label set unused for this long is removed at the next sweep, or when space is needed. */
  readonly idleMs: number;
}

export const defaultTableLimits: TableLimits = {
  maxLabelSets: 1_000,
  maxPageBytes: 10 * 1024 * 1024,
  idleMs: 3_600_000,
};

export interface Series {
  /** In Prometheus text format, without braces. */
  readonly labels: string;
  readonly isOverflow: boolean;
  lastUsedMs: number;
  isEvicted: boolean;
  /** The value of a counter, or the number of observations of a histogram. */
  value: number;
  /** Histograms only: observations per bucket; the last one has no upper bound. */
  readonly buckets: Float64Array | undefined;
  sum: number;
}

interface Family {
  readonly name: string;
  readonly isHistogram: boolean;
  readonly series: Map<string, Series>;
  /** Bounded, because overflow labels have few values. */
  readonly overflow: Map<string, Series>;
  overflowCount: number;
}

export interface Overflow {
  readonly metric: string;
  readonly reason: 'label sets' | 'page size';
  readonly limit: number;
}

/** Bytes of a line in addition to metric name and labels: suffix, braces, `le`, value. */
const lineBytes = 40;
const maxOverflowSets = 64;

export class MetricTable {
  readonly #limits: TableLimits;
  readonly #now: () => number;
  readonly #onOverflow: (folding: Overflow) => void;
  readonly #families = new Map<string, Family>();
  #pageBytes = 0;
  #evictedCount = 0;

  constructor(limits: TableLimits, now: () => number, onOverflow: (folding: Overflow) => void) {
    this.#limits = limits;
    this.#now = now;
    this.#onOverflow = onOverflow;
  }

  series(
    metric: { name: string; type: 'counter' | 'histogram' },
    labels: string,
    overflowLabels: () => string,
  ): Series {
    const family = this.#family(metric);
    const existingSeries = family.series.get(labels);
    if (existingSeries !== undefined) return existingSeries;
    const bytes = this.#bytesOf(family, labels);
    const reason = this.#overflowReason(family, bytes);
    if (reason !== undefined) {
      const limit = reason === 'label sets' ? this.#limits.maxLabelSets : this.#limits.maxPageBytes;
      this.#onOverflow({ metric: family.name, reason, limit });
      return this.#overflowOf(family, overflowLabels());
    }
    const series = this.#newSeries(family, labels, false);
    family.series.set(labels, series);
    this.#pageBytes += bytes;
    return series;
  }

  #family({ name, type }: { name: string; type: 'counter' | 'histogram' }): Family {
    let family = this.#families.get(name);
    if (family === undefined) {
      family = { name, isHistogram: type === 'histogram', series: new Map(), overflow: new Map(), overflowCount: 0 };
      this.#families.set(name, family);
    }
    return family;
  }

  #newSeries({ isHistogram }: Family, labels: string, isOverflow: boolean): Series {
    const buckets = isHistogram ? new Float64Array(standardBuckets.length + 1) : undefined;
    return { labels, isOverflow, lastUsedMs: this.#now(), isEvicted: false, value: 0, buckets, sum: 0 };
  }

  #overflowOf(family: Family, labels: string): Series {
    const key = family.overflow.has(labels) || family.overflow.size < maxOverflowSets ? labels : 'overflow="true"';
    let series = family.overflow.get(key);
    if (series === undefined) {
      series = this.#newSeries(family, key, true);
      family.overflow.set(key, series);
    }
    return series;
  }

  #bytesOf({ name, isHistogram }: Family, labels: string): number {
    return (isHistogram ? standardBuckets.length + 3 : 1) * (name.length + labels.length + lineBytes);
  }

  #overflowReason(family: Family, bytes: number): Overflow['reason'] | undefined {
    const reason = this.#exceededLimit(family, bytes);
    if (reason === undefined) return undefined;
    return this.evictIdle() > 0 ? this.#exceededLimit(family, bytes) : reason;
  }

  #exceededLimit({ series }: Family, bytes: number): Overflow['reason'] | undefined {
    if (series.size >= this.#limits.maxLabelSets) return 'label sets';
    return this.#pageBytes + bytes > this.#limits.maxPageBytes ? 'page size' : undefined;
  }

  #lastEvictionMs = Number.NEGATIVE_INFINITY;

  /** Removes expired label sets, at most once per second. */
  evictIdle(): number {
    const nowMs = this.#now();
    if (nowMs - this.#lastEvictionMs < 1_000) return 0;
    this.#lastEvictionMs = nowMs;
    let evictedCount = 0;
    for (const family of this.#families.values()) {
      for (const [labels, series] of family.series) {
        if (nowMs - series.lastUsedMs < this.#limits.idleMs) continue;
        series.isEvicted = true;
        family.series.delete(labels);
        this.#pageBytes -= this.#bytesOf(family, labels);
        evictedCount++;
      }
    }
    this.#evictedCount += evictedCount;
    return evictedCount;
  }

  count(family: string, series: Series, amount: number): void {
    series.lastUsedMs = this.#now();
    series.value += amount;
    if (series.isOverflow) this.#families.get(family)!.overflowCount++;
  }

  observe(family: string, series: Series, value: number): void {
    const bucketIndex = standardBuckets.findIndex((bound) => value <= bound);
    series.buckets![bucketIndex === -1 ? standardBuckets.length : bucketIndex]!++;
    series.sum += value;
    this.count(family, series, 1);
  }

  get state(): readonly { metric: string; labelSets: number; folded: number }[] {
    return [...this.#families.values()].map(({ name, series, overflowCount }) => {
      return { metric: name, labelSets: series.size, folded: overflowCount };
    });
  }

  get evictedSeriesCount(): number {
    return this.#evictedCount;
  }

  *text(): Generator<string> {
    for (const family of this.#families.values()) {
      yield `# TYPE ${family.name} ${family.isHistogram ? 'histogram' : 'counter'}\n`;
      for (const series of family.series.values()) yield linesOf(family.name, series);
      for (const series of family.overflow.values()) yield linesOf(family.name, series);
    }
  }
}

function linesOf(name: string, { labels, value, buckets, sum }: Series): string {
  if (buckets === undefined) return `${name}{${labels}} ${value}\n`;
  let exposition = '';
  let cumulativeCount = 0;
  for (const [bucketIndex, bound] of standardBuckets.entries()) {
    cumulativeCount += buckets[bucketIndex]!;
    exposition += `${name}_bucket{${labels},le="${bound}"} ${cumulativeCount}\n`;
  }
  return `${exposition}${name}_bucket{${labels},le="+Inf"} ${value}\n${name}_sum{${labels}} ${sum}\n${name}_count{${labels}} ${value}\n`;
}
