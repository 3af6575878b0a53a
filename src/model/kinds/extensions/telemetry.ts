import type { PolicyScope } from '../policies/policy-target.ts';

export interface Telemetry extends PolicyScope {
  readonly tracing?: readonly Tracing[];
  readonly metrics?: readonly Metrics[];
  readonly accessLogging?: readonly AccessLogging[];
}

export type TelemetryMode = 'CLIENT_AND_SERVER' | 'CLIENT' | 'SERVER';

export interface Tracing {
  readonly match?: { readonly mode?: TelemetryMode };
  readonly providers?: readonly string[];
  readonly randomSamplingPercentage?: number;
  readonly disableSpanReporting?: boolean;
  readonly customTags?: Readonly<Record<string, CustomTag>>;
  readonly useRequestIdForTraceSampling?: boolean;
  readonly enableIstioTags?: boolean;
  readonly disableContextPropagation?: boolean;
}

export interface CustomTag {
  readonly literal?: { readonly value: string };
  readonly environment?: { readonly name: string; readonly defaultValue?: string };
  readonly header?: { readonly name: string; readonly defaultValue?: string };
  readonly formatter?: { readonly value: string };
}

export interface Metrics {
  readonly providers?: readonly string[];
  readonly overrides?: readonly MetricOverride[];
  readonly reportingIntervalMs?: number;
}

export interface MetricOverride {
  readonly match?: { readonly metric?: string; readonly customMetric?: string; readonly mode?: TelemetryMode };
  readonly disabled?: boolean;
  readonly tagOverrides?: Readonly<
    Record<string, { readonly operation: 'UPSERT' | 'REMOVE'; readonly value?: string }>
  >;
}

export interface AccessLogging {
  readonly match?: { readonly mode?: TelemetryMode };
  readonly providers?: readonly string[];
  readonly disabled?: boolean;
  readonly filter?: string;
}
