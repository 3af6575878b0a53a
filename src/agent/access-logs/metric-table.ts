/**
 * Series of metrics with bounded memory and a bounded page: label sets beyond the limit are counted together, sets that
 * nothing used for a while give their place back.
 */
import { standardBuckets } from '../../model/standard-metrics/standard-metrics.ts';

export interface TableLimits {
  /** Label sets of one metric. */
  readonly maxLabelSets: number;
  /** Bytes of all series on a page of metrics; histograms are the cost. */
  readonly maxPageBytes: number;
  /** A label set that was unused for so long is removed when its place is needed, or at the next sweep. */
  readonly idleMs: number;
}

export const defaultTableLimits: TableLimits = {
  maxLabelSets: 1_000,
  maxPageBytes: 10 * 1024 * 1024,
  idleMs: 3_600_000,
};

/** The samples of one label set of one metric. */
export interface Series {
  /** As Prometheus' text format has them, without braces. */
  readonly labels: string;
  /** The series counts what has no place of its own. */
  readonly isOverflow: boolean;
  lastUsedMs: number;
  isEvicted: boolean;
  /** Of a counter its value, of a histogram the number of observations. */
  value: number;
  /** Histograms only: observations by bucket, the last one without a bound. */
  readonly buckets: Float64Array | undefined;
  sum: number;
}

interface Family {
  readonly name: string;
  readonly isHistogram: boolean;
  readonly series: Map<string, Series>;
  /** Few: their labels have few values. */
  readonly overflow: Map<string, Series>;
  folded: number;
}

export interface Folding {
  readonly metric: string;
  readonly reason: 'label sets' | 'page size';
  readonly limit: number;
}

/** Bytes of a line besides the metric's name and the labels: suffix, braces, `le`, the value. */
const lineBytes = 40;
/** Sets that may exist for overflow in a metric; their labels come from a few fixed values. */
const maxOverflowSets = 64;

export class MetricTable {
  readonly #limits: TableLimits;
  readonly #now: () => number;
  readonly #onFolding: (folding: Folding) => void;
  readonly #families = new Map<string, Family>();
  #pageBytes = 0;
  #evicted = 0;

  /**
   * @param now monotonic milliseconds
   * @param onFolding called whenever a label set gets no place of its own
   */
  constructor(limits: TableLimits, now: () => number, onFolding: (folding: Folding) => void) {
    this.#limits = limits;
    this.#now = now;
    this.#onFolding = onFolding;
  }

  /** The series of these labels. @param overflowLabels of the series that counts them if there is no place */
  series(
    metric: { name: string; type: 'counter' | 'histogram' },
    labels: string,
    overflowLabels: () => string,
  ): Series {
    const family = this.#family(metric);
    const known = family.series.get(labels);
    if (known !== undefined) return known;
    const bytes = this.#bytesOf(family, labels);
    const reason = this.#whyNoPlace(family, bytes);
    if (reason !== undefined) {
      const limit = reason === 'label sets' ? this.#limits.maxLabelSets : this.#limits.maxPageBytes;
      this.#onFolding({ metric: family.name, reason, limit });
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
      family = { name, isHistogram: type === 'histogram', series: new Map(), overflow: new Map(), folded: 0 };
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

  #whyNoPlace(family: Family, bytes: number): Folding['reason'] | undefined {
    const reason = this.#isFull(family, bytes);
    if (reason === undefined) return undefined;
    return this.evictIdle() > 0 ? this.#isFull(family, bytes) : reason;
  }

  #isFull({ series }: Family, bytes: number): Folding['reason'] | undefined {
    if (series.size >= this.#limits.maxLabelSets) return 'label sets';
    return this.#pageBytes + bytes > this.#limits.maxPageBytes ? 'page size' : undefined;
  }

  #sweptAtMs = Number.NEGATIVE_INFINITY;

  /** Removes label sets that have expired; runs at most once per second. @returns how many */
  evictIdle(): number {
    const now = this.#now();
    if (now - this.#sweptAtMs < 1_000) return 0;
    this.#sweptAtMs = now;
    let evicted = 0;
    for (const family of this.#families.values()) {
      for (const [labels, series] of family.series) {
        if (now - series.lastUsedMs < this.#limits.idleMs) continue;
        series.isEvicted = true;
        family.series.delete(labels);
        this.#pageBytes -= this.#bytesOf(family, labels);
        evicted++;
      }
    }
    this.#evicted += evicted;
    return evicted;
  }

  count(family: string, series: Series, amount: number): void {
    series.lastUsedMs = this.#now();
    series.value += amount;
    if (series.isOverflow) this.#families.get(family)!.folded++;
  }

  observe(family: string, series: Series, value: number): void {
    const place = standardBuckets.findIndex((bound) => value <= bound);
    series.buckets![place === -1 ? standardBuckets.length : place]!++;
    series.sum += value;
    this.count(family, series, 1);
  }

  /** Metrics of the table itself. */
  get state(): readonly { metric: string; labelSets: number; folded: number }[] {
    return [...this.#families.values()].map(({ name, series, folded }) => {
      return { metric: name, labelSets: series.size, folded };
    });
  }

  get evicted(): number {
    return this.#evicted;
  }

  /** Prometheus' text format, a metric's label set at a time. */
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
  let lines = '';
  let total = 0;
  for (const [place, bound] of standardBuckets.entries()) {
    total += buckets[place]!;
    lines += `${name}_bucket{${labels},le="${bound}"} ${total}\n`;
  }
  return `${lines}${name}_bucket{${labels},le="+Inf"} ${value}\n${name}_sum{${labels}} ${sum}\n${name}_count{${labels}} ${value}\n`;
}
