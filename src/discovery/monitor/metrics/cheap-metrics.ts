/** Metrics for the push path: counting changes a map entry or array cell without hashing or copying. A scrape generates the text. */
import type { Registry } from 'prom-client';

interface MetricDescription {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

interface MetricValue {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface KeyLabels {
  readonly names: readonly string[];
  readonly labelsOf: (key: string) => Readonly<Record<string, string>>;
}

const noLabels: KeyLabels = { names: [], labelsOf: () => ({}) };

function register(
  registry: Registry,
  { name, help, labelNames = [] }: MetricDescription,
  type: string,
  values: () => MetricValue[],
): void {
  // The interface that a registry requires. Metrics of prom-client support arbitrary labels, but take a thousand times as long.
  const get = async () => ({ name, help, type, values: values() });
  const metric = { name, help, type, labelNames, aggregator: 'sum', get };
  registry.registerMetric(metric as never);
}

/** The key is the value of one label, or of two joined by a space. */
export function labelNamesOf(firstLabel: string, secondLabel?: string): KeyLabels {
  if (secondLabel === undefined) return { names: [firstLabel], labelsOf: (key) => ({ [firstLabel]: key }) };
  return {
    names: [firstLabel, secondLabel],
    labelsOf: (key) => {
      const spaceIndex = key.indexOf(' ');
      return { [firstLabel]: key.slice(0, spaceIndex), [secondLabel]: key.slice(spaceIndex + 1) };
    },
  };
}

/** The values are stored elsewhere and read on each scrape. */
export function readCounter(registry: Registry, description: MetricDescription, values: () => MetricValue[]): void {
  register(registry, description, 'counter', values);
}

/** Tenants choose names of rejected objects, so series without a limit would exhaust memory and slow down scrapes. */
export const maxSeriesPerCounter = 5_000;
const overflowKey = 'other other';

/** Beyond {@link maxSeriesPerCounter} keys, further keys are counted together as `other`. */
export class CounterByKey {
  readonly #counts = new Map<string, number>();

  constructor(registry: Registry, description: MetricDescription, labels: KeyLabels = noLabels) {
    register(registry, { ...description, labelNames: labels.names }, 'counter', () =>
      [...this.#counts].map(([key, value]) => ({ labels: labels.labelsOf(key), value })),
    );
  }

  add(key: string, count = 1): void {
    const countedKey = this.#counts.has(key) || this.#counts.size < maxSeriesPerCounter ? key : overflowKey;
    this.#counts.set(countedKey, (this.#counts.get(countedKey) ?? 0) + count);
  }
}

export class HistogramByKey {
  readonly #bounds: readonly number[];
  /** Cells by key: the count of each bucket, then of values above all bounds, then the sum. */
  readonly #cells = new Map<string, Float64Array>();

  constructor(
    registry: Registry,
    description: MetricDescription,
    bounds: readonly number[],
    labels: KeyLabels = noLabels,
  ) {
    this.#bounds = bounds;
    register(registry, { ...description, labelNames: labels.names }, 'histogram', () =>
      [...this.#cells].flatMap(([key, cells]) => this.#values(description.name, labels.labelsOf(key), cells)),
    );
  }

  observe(value: number, key = ''): void {
    const bounds = this.#bounds;
    let cells = this.#cells.get(key);
    if (cells === undefined) {
      cells = new Float64Array(bounds.length + 2);
      this.#cells.set(key, cells);
    }
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    cells[bucket]!++;
    cells[bounds.length + 1]! += value;
  }

  #values(name: string, labels: Readonly<Record<string, string>>, cells: Float64Array): MetricValue[] {
    const values: MetricValue[] = [];
    let count = 0;
    for (const [bucket, bound] of [...this.#bounds, '+Inf'].entries()) {
      count += cells[bucket]!;
      values.push({ metricName: `${name}_bucket`, labels: { ...labels, le: String(bound) }, value: count });
    }
    values.push({ metricName: `${name}_sum`, labels, value: cells[this.#bounds.length + 1]! });
    values.push({ metricName: `${name}_count`, labels, value: count });
    return values;
  }
}
