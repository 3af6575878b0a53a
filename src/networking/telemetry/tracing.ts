/** How the requests of a connection are traced: the `tracing` of the Telemetry objects in force (spec/discovery.md §8.11). */
import type { Config } from '../../model/config/config.ts';
import type { CustomTag, Telemetry } from '../../model/kinds/extensions/telemetry.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { isFor, type Side } from './mode.ts';

export interface TracingChoice {
  /** Name of the provider that spans are reported to; undefined: the tracer of the proxy's bootstrap. */
  readonly provider: string | undefined;
  /** Percent; undefined: nobody said. */
  readonly sampling: number | undefined;
  readonly customTags: Readonly<Record<string, CustomTag>> | undefined;
  readonly useRequestId: boolean;
  readonly istioTags: boolean;
  readonly propagateContext: boolean;
}

const nothingSaid: TracingChoice = {
  provider: undefined,
  sampling: undefined,
  customTags: undefined,
  useRequestId: true,
  istioTags: true,
  propagateContext: true,
};

/**
 * Field by field, the narrowest object that says it: the mesh's first, then the namespace's, then the workload's. Of
 * several providers the first reports; who is not told otherwise reports to the mesh's default provider.
 *
 * @returns undefined when no span is to be reported, or Telemetry says that it is nobody's to report to
 */
export function chosenTracing(
  telemetries: readonly Config<Telemetry>[],
  { defaultProviders, enableTracing }: Pick<MeshConfig, 'defaultProviders' | 'enableTracing'>,
  side: Side,
): TracingChoice | undefined {
  const rules = telemetries.flatMap(({ spec }) => spec.tracing ?? []);
  const byDefault = defaultProviders.tracing?.[0];
  if (rules.length === 0 && byDefault === undefined) return enableTracing ? nothingSaid : undefined;
  let choice: TracingChoice = { ...nothingSaid, provider: byDefault };
  let silent = false;
  for (const rule of rules) {
    if (!isFor(rule.match, side)) continue;
    silent = rule.disableSpanReporting ?? silent;
    choice = {
      provider: rule.providers?.[0] ?? choice.provider,
      sampling: rule.randomSamplingPercentage ?? choice.sampling,
      customTags: rule.customTags ?? choice.customTags,
      useRequestId: rule.useRequestIdForTraceSampling ?? choice.useRequestId,
      istioTags: rule.enableIstioTags ?? choice.istioTags,
      propagateContext: !(rule.disableContextPropagation ?? !choice.propagateContext),
    };
  }
  if (silent || (choice.provider === undefined && !enableTracing)) return undefined;
  return choice;
}
