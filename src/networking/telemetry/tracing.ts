import type { Config } from '../../model/config/config.ts';
import type { CustomTag, Telemetry } from '../../model/kinds/extensions/telemetry.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { appliesToSide, type TelemetrySide } from './mode.ts';

export interface TracingChoice {
  /** `undefined` for the tracer in the proxy's bootstrap. */
  readonly provider: string | undefined;
  readonly sampling: number | undefined;
  readonly customTags: Readonly<Record<string, CustomTag>> | undefined;
  readonly useRequestId: boolean;
  readonly istioTags: boolean;
  readonly propagateContext: boolean;
}

const defaultTracing: TracingChoice = {
  provider: undefined,
  sampling: undefined,
  customTags: undefined,
  useRequestId: true,
  istioTags: true,
  propagateContext: true,
};

/**
 * Applies each field of the most specific object that sets it (workload, namespace, mesh). Of several providers, the first applies; without any, the
 * mesh's default provider.
 *
 * @returns `undefined` if tracing is disabled
 */
export function chosenTracing(
  telemetries: readonly Config<Telemetry>[],
  { defaultProviders, enableTracing }: Pick<MeshConfig, 'defaultProviders' | 'enableTracing'>,
  side: TelemetrySide,
): TracingChoice | undefined {
  const rules = telemetries.flatMap(({ spec }) => spec.tracing ?? []);
  const defaultProvider = defaultProviders.tracing?.[0];
  if (rules.length === 0 && defaultProvider === undefined) return enableTracing ? defaultTracing : undefined;
  let choice: TracingChoice = { ...defaultTracing, provider: defaultProvider };
  let isReportingDisabled = false;
  for (const rule of rules) {
    if (!appliesToSide(rule.match, side)) continue;
    isReportingDisabled = rule.disableSpanReporting ?? isReportingDisabled;
    choice = {
      provider: rule.providers?.[0] ?? choice.provider,
      sampling: rule.randomSamplingPercentage ?? choice.sampling,
      customTags: rule.customTags ?? choice.customTags,
      useRequestId: rule.useRequestIdForTraceSampling ?? choice.useRequestId,
      istioTags: rule.enableIstioTags ?? choice.istioTags,
      propagateContext: !(rule.disableContextPropagation ?? !choice.propagateContext),
    };
  }
  if (isReportingDisabled || (choice.provider === undefined && !enableTracing)) return undefined;
  return choice;
}
