import type { Registry } from 'prom-client';

export interface MetricDefinition {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

export function definitionsOf(registry: Registry): MetricDefinition[] {
  return registry.getMetricsAsArray().map((metric) => {
    // All metrics of the package have these fields; its types omit them.
    const { name, help, type, labelNames } = metric as unknown as MetricDefinition & { labelNames: readonly string[] };
    return { name, type, help, labels: labelNames };
  });
}
