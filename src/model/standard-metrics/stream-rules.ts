/**
 * What the agent counts of one access log stream. The control plane writes the rules into the name of the log, which Envoy
 * sends first on each stream: the agent needs no other source, and rules change together with the listener.
 */
import { isObject } from '../../runtime/json-object.ts';
import { type StandardMetricId, standardMetricIds } from './standard-metrics.ts';

/** Which side of a request or connection the proxy is, as the label `reporter` has it. */
export type Reporter = 'source' | 'destination';

/** The value of a label that a Telemetry object sets: a fixed text, or the custom tag of an entry with that number. */
export type LabelValue = { readonly text: string } | { readonly tag: number };

export interface MetricRule {
  readonly disabled?: true;
  /** Labels that are left out. */
  readonly removed?: readonly string[];
  /** Labels that are added or replaced. */
  readonly set?: Readonly<Record<string, LabelValue>>;
}

export interface StreamRules {
  readonly reporter: Reporter;
  /** Metrics that differ from the standard. */
  readonly metrics: Readonly<Partial<Record<StandardMetricId, MetricRule>>>;
}

/** Cluster of the agent's access log service in Envoy's bootstrap. */
export const accessLogCluster = 'agent-access-logs';
/** Where the names of these logs begin. */
const prefix = 'istio-metrics/';
/** A longer name is no name of ours; bounds what the agent parses. */
export const maxLogNameLength = 32_768;
/** Expressions of one log; each costs Envoy an evaluation per request. */
export const maxExpressions = 64;

export function logNameOf({ reporter, metrics }: StreamRules): string {
  return `${prefix}${reporter}${Object.keys(metrics).length === 0 ? '' : `/${JSON.stringify(metrics)}`}`;
}

/** @returns `undefined` for the name of another log, or rules of another form */
export function rulesIn(logName: string): StreamRules | undefined {
  if (logName.length > maxLogNameLength) return undefined;
  const [, reporter, json] = /^istio-metrics\/(source|destination)(?:\/(\{.*\}))?$/s.exec(logName) ?? [];
  if (reporter === undefined) return undefined;
  const metrics = json === undefined ? {} : metricsIn(json);
  return metrics && { reporter: reporter as Reporter, metrics };
}

function metricsIn(json: string): StreamRules['metrics'] | undefined {
  try {
    const parsed: unknown = JSON.parse(json);
    if (!isObject(parsed)) return undefined;
    const known = standardMetricIds.filter((id) => isObject(parsed[id]));
    return Object.fromEntries(known.map((id) => [id, ruleIn(parsed[id] as Record<string, unknown>)]));
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

/** Name of the custom tag with the value of an expression. */
export function expressionTag(tag: number): string {
  return `t${tag}`;
}

/** Names of the custom tags of each entry. */
export const entryTags = {
  /** `istio.workload` of the endpoint: `workload;namespace;canonical service;canonical revision;cluster`. */
  workload: 'w',
  /** `istio.services` of the cluster: JSON, a list of `{host, name, namespace}`. */
  services: 's',
  /** The peer's SPIFFE ID, of a connection to an endpoint. */
  upstreamPeer: 'up',
  /** The proxy's own SPIFFE ID on it. */
  upstreamLocal: 'ul',
} as const;

/** Name of the filter state object with the peer's claim about itself. */
export const peerStateKey = 'chartpilot.peer';
