import type { ConfigKey } from '../../model/config/config.ts';
import { telemetryProvidersOf } from '../../model/mesh/extension-providers.decode.ts';
import type { ProviderType, TelemetryProvider } from '../../model/mesh/extension-providers.ts';
import { type ProxySettings, proxySettingsOf } from '../../model/mesh/proxy-settings.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { serviceKey } from '../../model/services/service.ts';
import type { ProxyContext } from '../inputs/connection-context.ts';
import { hasIstioExtensions } from '../messages/istio-extensions.ts';
import { chosenLogs, meshLog } from './access-logging.ts';
import type { TelemetrySide } from './mode.ts';
import { type ProviderCluster, providerCluster } from './provider-cluster.ts';
import { type ReportedMetrics, reportedMetrics, reportingInterval } from './reported-metrics.ts';
import { chosenTracing, type TracingChoice } from './tracing.ts';
import { type TracedWorkload, tracedWorkload } from './workload-identity.ts';
import { workloadLabelsOf } from './workload-labels.ts';

export interface ConnectionLog {
  readonly provider?: TelemetryProvider;
  /** Cluster of the provider's service; absent for a file. */
  readonly cluster?: string;
  readonly filter?: string;
}

export interface ConnectionTracing extends TracingChoice {
  /** `undefined` for the tracer in the proxy's bootstrap. */
  readonly tracer:
    | { readonly provider: TelemetryProvider; readonly cluster: string; readonly host: string }
    | undefined;
  readonly workload: TracedWorkload;
}

export interface ConnectionTelemetry {
  readonly logs: readonly ConnectionLog[];
  readonly tracing: ConnectionTracing | undefined;
  /** Whether Istio's build of Envoy computes metrics of requests and connections. */
  readonly metrics: boolean;
  readonly standardMetrics: ReportedMetrics | undefined;
  readonly reportingIntervalMs: number;
  readonly settings: ProxySettings;
  /**
   * Equal for proxies with equal telemetry, given the same mesh configuration and Telemetry objects. Empty if telemetry does not depend on the proxy.
   */
  readonly text: string;
  readonly dependsOn: readonly ConfigKey[];
}

const cachedTelemetry = new WeakMap<object, WeakMap<ProxyShape, Map<TelemetrySide, ConnectionTelemetry>>>();

export function telemetryOf({ shape, push, policies }: ProxyContext, side: TelemetrySide): ConnectionTelemetry {
  const telemetryByShape =
    cachedTelemetry.get(push) ?? new WeakMap<ProxyShape, Map<TelemetrySide, ConnectionTelemetry>>();
  cachedTelemetry.set(push, telemetryByShape);
  const telemetryBySide = telemetryByShape.get(shape) ?? new Map<TelemetrySide, ConnectionTelemetry>();
  telemetryByShape.set(shape, telemetryBySide);
  let telemetry = telemetryBySide.get(side);
  if (telemetry === undefined) {
    telemetry = resolveTelemetry({ shape, push, policies }, side);
    telemetryBySide.set(side, telemetry);
  }
  return telemetry;
}

const logServices: ReadonlySet<ProviderType> = new Set(['envoyHttpAls', 'envoyTcpAls', 'envoyOtelAls']);
const tracerTypes: ReadonlySet<ProviderType> = new Set(['zipkin', 'datadog', 'skywalking', 'opentelemetry']);

function resolveTelemetry(proxy: ProxyContext, side: TelemetrySide): ConnectionTelemetry {
  const { shape, push, policies } = proxy;
  const { mesh } = push;
  const providers = telemetryProvidersOf(mesh);
  const providerClusters: ProviderCluster[] = [];
  const clusterOf = (provider: TelemetryProvider): ProviderCluster | undefined => {
    if (!('service' in provider.settings)) return undefined;
    const cluster = providerCluster(provider.settings, shape, push);
    if (cluster !== undefined) providerClusters.push(cluster);
    return cluster;
  };
  const logs = chosenLogs(policies.telemetries, mesh, side).flatMap(({ target, ...choice }): ConnectionLog[] => {
    if (target === meshLog) return [choice];
    const provider = providers.get(target);
    if (provider?.type === 'envoyFileAccessLog') return [{ ...choice, provider }];
    if (provider === undefined || !logServices.has(provider.type)) return [];
    const cluster = clusterOf(provider)?.cluster;
    return cluster === undefined ? [] : [{ ...choice, provider, cluster }];
  });
  const settings = proxySettingsOf(shape, mesh);
  const tracing = resolvedTracing(proxy, side, settings, (name) => {
    const provider = providers.get(name);
    if (provider === undefined || !tracerTypes.has(provider.type)) return undefined;
    const tracingCluster = clusterOf(provider);
    return tracingCluster && { provider, cluster: tracingCluster.cluster, host: tracingCluster.service.hostname };
  });
  const reportedMetricRules = reportedMetrics(policies.telemetries, mesh, providers, side);
  const { STANDARD_METRICS: agentCounts } = shape.metadata;
  const facts = {
    clusters: logs.flatMap(({ cluster }) => cluster ?? []),
    ...(tracing && { tracer: tracing.tracer?.cluster ?? '', workload: tracing.workload }),
    ...(shape.metadata.PROXY_CONFIG !== undefined && { settings: shape.metadata.PROXY_CONFIG }),
    ...(hasIstioExtensions(shape, mesh) && { istio: true }),
    ...(agentCounts !== undefined && { agentCounts }),
    ...(agentCounts === 'stats' && reportedMetricRules !== undefined && { own: workloadLabelsOf(shape) }),
  };
  const usesDefaults = facts.clusters.length === 0 && Object.keys(facts).length === 1;
  return {
    logs,
    tracing,
    metrics: reportedMetricRules !== undefined,
    standardMetrics: agentCounts === undefined || hasIstioExtensions(shape, mesh) ? undefined : reportedMetricRules,
    reportingIntervalMs: reportingInterval(policies.telemetries),
    settings,
    text: usesDefaults ? '' : JSON.stringify(facts),
    dependsOn: providerClusters.map(({ service }) => serviceKey(service)),
  };
}

function resolvedTracing(
  { shape, push, policies }: ProxyContext,
  side: TelemetrySide,
  settings: ProxySettings,
  tracerNamed: (name: string) => ConnectionTracing['tracer'],
): ConnectionTracing | undefined {
  const choice = chosenTracing(policies.telemetries, push.mesh, side);
  if (choice === undefined) return undefined;
  const { provider } = choice;
  const tracer = provider === undefined ? undefined : tracerNamed(provider);
  if (provider === undefined ? !settings.tracing.hasTracer : tracer === undefined) return undefined;
  return {
    ...choice,
    sampling: choice.sampling ?? settings.tracing.sampling ?? push.features.traceSampling,
    customTags: choice.customTags ?? settings.tracing.customTags,
    istioTags: choice.istioTags && (settings.tracing.enableIstioTags ?? true),
    tracer,
    workload: tracedWorkload(shape, settings),
  };
}
