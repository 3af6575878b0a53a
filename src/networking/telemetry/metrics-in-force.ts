/** Whether a connection is counted as the mesh counts: the `metrics` of the Telemetry objects in force (spec/discovery.md §8.11). */
import type { Config } from '../../model/config/config.ts';
import type { Telemetry } from '../../model/kinds/extensions/telemetry.ts';
import type { TelemetryProvider } from '../../model/mesh/extension-providers.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { isFor, type Side } from './mode.ts';

/**
 * True when a Prometheus provider is among those in force: the mesh's default ones, or those that the narrowest Telemetry
 * object names, and no rule turns all metrics off.
 */
export function reportsMetrics(
  telemetries: readonly Config<Telemetry>[],
  { defaultProviders }: Pick<MeshConfig, 'defaultProviders'>,
  providers: ReadonlyMap<string, TelemetryProvider>,
  side: Side,
): boolean {
  let named: readonly string[] = defaultProviders.metrics ?? [];
  let counted = true;
  for (const rule of telemetries.flatMap(({ spec }) => spec.metrics ?? [])) {
    if (rule.providers !== undefined && rule.providers.length > 0) named = rule.providers;
    for (const { match = {}, disabled } of rule.overrides ?? []) {
      const all = match.customMetric === undefined && (match.metric ?? 'ALL_METRICS') === 'ALL_METRICS';
      if (all && disabled !== undefined && isFor(match, side)) counted = !disabled;
    }
  }
  return counted && named.some((name) => providers.get(name)?.type === 'prometheus');
}
