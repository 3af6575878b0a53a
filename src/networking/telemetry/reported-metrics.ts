import type { Config } from '../../model/config/config.ts';
import { withoutStringConversion } from '../../model/fields/cel/conversion.ts';
import type { MetricOverride, Telemetry } from '../../model/kinds/extensions/telemetry.ts';
import type { TelemetryProvider } from '../../model/mesh/extension-providers.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { type StandardMetricId, standardMetricIds } from '../../model/standard-metrics/standard-metrics.ts';
import { type LabelValue, type MetricRule, maxExpressions } from '../../model/standard-metrics/stream-rules.ts';
import { appliesToSide, type TelemetrySide } from './mode.ts';

export interface ReportedMetrics {
  readonly rules: Readonly<Partial<Record<StandardMetricId, MetricRule>>>;
  /** CEL expressions of labels; rules refer to them by index. */
  readonly expressions: readonly string[];
}

export const defaultReportingMs = 5_000;

/**
 * Applies overrides of the mesh, the namespace, then the workload. For each metric the last `disabled` applies, for each label the last operation.
 *
 * @returns `undefined` if no Prometheus provider is active, or all metrics are disabled
 */
export function reportedMetrics(
  telemetries: readonly Config<Telemetry>[],
  { defaultProviders }: Pick<MeshConfig, 'defaultProviders'>,
  providers: ReadonlyMap<string, TelemetryProvider>,
  side: TelemetrySide,
): ReportedMetrics | undefined {
  let metricProviders: readonly string[] = defaultProviders.metrics ?? [];
  const changes = new Map<StandardMetricId, MetricChanges>();
  for (const rule of telemetries.flatMap(({ spec }) => spec.metrics ?? [])) {
    if (rule.providers !== undefined && rule.providers.length > 0) metricProviders = rule.providers;
    for (const override of rule.overrides ?? []) {
      if (appliesToSide(override.match, side))
        for (const id of metricsOf(override)) applyOverride(changes, id, override);
    }
  }
  if (!metricProviders.some((name) => providers.get(name)?.type === 'prometheus')) return undefined;
  if (standardMetricIds.every((id) => changes.get(id)?.disabled === true)) return undefined;
  return withExpressions(changes);
}

/** In milliseconds, from the most specific object. */
export function reportingInterval(telemetries: readonly Config<Telemetry>[]): number {
  const intervals = telemetries
    .flatMap(({ spec }) => spec.metrics ?? [])
    .flatMap((rule) => rule.reportingIntervalMs ?? []);
  return intervals.at(-1) ?? defaultReportingMs;
}

interface MetricChanges {
  disabled: boolean;
  /** `undefined` if the label is removed. */
  readonly labels: Map<string, string | undefined>;
}

function metricsOf({ match = {} }: MetricOverride): readonly StandardMetricId[] {
  if (match.customMetric !== undefined) return [];
  const { metric = 'ALL_METRICS' } = match;
  return metric === 'ALL_METRICS' ? standardMetricIds : standardMetricIds.filter((id) => id === metric);
}

function applyOverride(
  changes: Map<StandardMetricId, MetricChanges>,
  id: StandardMetricId,
  { disabled, tagOverrides = {} }: MetricOverride,
): void {
  const change = changes.get(id) ?? { disabled: false, labels: new Map() };
  if (disabled !== undefined) change.disabled = disabled;
  for (const [label, { operation, value }] of Object.entries(tagOverrides)) {
    change.labels.set(label, operation === 'REMOVE' ? undefined : (value ?? ''));
  }
  changes.set(id, change);
}

function withExpressions(changes: ReadonlyMap<StandardMetricId, MetricChanges>): ReportedMetrics {
  const expressions: string[] = [];
  const valueOf = (expressionText: string): LabelValue => {
    const expression = withoutStringConversion(expressionText);
    const [, quotedText] =
      /^(?:'([^'\\]*)'|"([^"\\]*)")$/.exec(expression.trim())?.filter((group) => group !== undefined) ?? [];
    if (quotedText !== undefined) return { text: quotedText };
    const expressionIndex = expressions.indexOf(expression);
    if (expressionIndex >= 0) return { tag: expressionIndex };
    if (expressions.length >= maxExpressions) return { text: 'unknown' };
    return { tag: expressions.push(expression) - 1 };
  };
  const rules = [...changes].flatMap(([id, { disabled, labels }]): [StandardMetricId, MetricRule][] => {
    if (disabled) return [[id, { disabled: true }]];
    const removedLabels = [...labels].flatMap(([label, value]) => (value === undefined ? label : []));
    const set = [...labels].flatMap(([label, value]) =>
      value === undefined ? [] : [[label, valueOf(value)] as const],
    );
    if (removedLabels.length === 0 && set.length === 0) return [];
    const rule = {
      ...(removedLabels.length > 0 && { removed: removedLabels }),
      ...(set.length > 0 && { set: Object.fromEntries(set) }),
    };
    return [[id, rule]];
  });
  return { rules: Object.fromEntries(rules), expressions };
}
