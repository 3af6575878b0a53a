/**
 * Rules by which the agent computes metrics from one access log stream. The control plane encodes them in the log name, which Envoy sends first on
 * each stream.
 */
import { isObject } from '../../runtime/json-object.ts';
import { type StandardMetricId, standardMetricIds } from './standard-metrics.ts';

/** The proxy's side of a request or connection, as in the label `reporter`. */
export type Reporter = 'source' | 'destination';

/** Set by a Telemetry object: a fixed text, or the number of a custom tag. */
export type LabelValue = { readonly text: string } | { readonly tag: number };

export interface MetricRule {
  readonly disabled?: true;
  readonly removed?: readonly string[];
  readonly set?: Readonly<Record<string, LabelValue>>;
}

export interface StreamRules {
  readonly reporter: Reporter;
  readonly metrics: Readonly<Partial<Record<StandardMetricId, MetricRule>>>;
}

export const accessLogCluster = 'agent-access-logs';
const logNamePrefix = 'istio-metrics/';
/** Longer names are ignored, which limits the agent's parsing. */
export const maxLogNameLength = 32_768;
/** Maximum expressions per log, because Envoy evaluates each one per request. */
export const maxExpressions = 64;

export function logNameOf({ reporter, metrics }: StreamRules): string {
  return `${logNamePrefix}${reporter}${Object.keys(metrics).length === 0 ? '' : `/${JSON.stringify(metrics)}`}`;
}

export function rulesIn(logName: string): StreamRules | undefined {
  if (logName.length > maxLogNameLength) return undefined;
  const [, reporter, json] = /^istio-metrics\/(source|destination)(?:\/(\{.*\}))?$/s.exec(logName) ?? [];
  if (reporter === undefined) return undefined;
  const metrics = json === undefined ? {} : metricsIn(json);
  return metrics && { reporter: reporter as Reporter, metrics };
}

function metricsIn(json: string): StreamRules['metrics'] | undefined {
  try {
    const parsedJson: unknown = JSON.parse(json);
    if (!isObject(parsedJson)) return undefined;
    const configuredIds = standardMetricIds.filter((id) => isObject(parsedJson[id]));
    return Object.fromEntries(configuredIds.map((id) => [id, ruleIn(parsedJson[id] as Record<string, unknown>)]));
  } catch {
    return undefined;
  }
}

function ruleIn({ disabled, removed, set }: Record<string, unknown>): MetricRule {
  const labels = isObject(set) ? Object.entries(set).flatMap(([label, value]) => labelIn(label, value)) : [];
  return {
    ...(disabled === true && { disabled: true as const }),
    ...(Array.isArray(removed) && { removed: removed.map(String) }),
    ...(labels.length > 0 && { set: Object.fromEntries(labels) }),
  };
}

function labelIn(label: string, value: unknown): [string, LabelValue][] {
  if (!isObject(value)) return [];
  const { text, tag } = value;
  if (typeof text === 'string') return [[label, { text }]];
  return typeof tag === 'number' && tag >= 0 && tag < maxExpressions ? [[label, { tag }]] : [];
}

export function expressionTag(tag: number): string {
  return `t${tag}`;
}

export const entryTags = {
  /** `istio.workload` of the endpoint, in the form `workload;namespace;canonical service;canonical revision;cluster`. */
  workload: 'w',
  /** `istio.services` of the cluster, a JSON list of `{host, name, namespace}`. */
  services: 's',
  upstreamPeer: 'up',
  upstreamLocal: 'ul',
} as const;

export const peerStateKey = 'chartpilot.peer';
