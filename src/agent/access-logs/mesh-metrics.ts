/** Counts Istio's standard metrics from access log entries. Counters survive hot restarts of Envoy. */
import type { PeerClaim, WorkloadLabelValues } from '../../model/standard-metrics/peer-claim.ts';
import {
  type StandardMetric,
  type StandardMetricId,
  standardMetrics,
} from '../../model/standard-metrics/standard-metrics.ts';
import type { StreamRules } from '../../model/standard-metrics/stream-rules.ts';
import { ClaimedWorkloads } from './claimed-workloads.ts';
import { labelsOf, labelText, overflowLabelsOf, type PeerOutcome } from './entry-labels.ts';
import { type AccessLogEntry, logTypes } from './log-entries.ts';
import { defaultTableLimits, MetricTable, type Overflow, type Series, type TableLimits } from './metric-table.ts';
import { TcpConnections } from './tcp-connections.ts';

export interface MeshMetricsOptions {
  readonly localWorkload: WorkloadLabelValues;
  /** Version of this agent, for `istio_build`. */
  readonly version: string;
  readonly limits?: Partial<TableLimits>;
  readonly maxConnections?: number;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
  /** Milliseconds since 1970. */
  readonly startedAtMs?: number;
  readonly onFolding?: (folding: Overflow) => void;
}

/** The series in which entries with the same fields are counted. */
interface ResolvedSeries {
  readonly series: ReadonlyMap<StandardMetricId, Series>;
  readonly peer: PeerOutcome | undefined;
  /** Monotonic milliseconds until which the overflow series is used without another attempt. */
  readonly validUntilMs: number;
}

const overflowRetryMs = 1_000;

const cacheEntriesPerLabelSet = 2;
const maxConnections = 20_000;

const noValues: readonly string[] = [];
const requestMetrics: readonly StandardMetricId[] = [
  ...(['REQUEST_COUNT', 'REQUEST_DURATION', 'REQUEST_SIZE', 'RESPONSE_SIZE'] as const),
];
const tcpMetrics: readonly StandardMetricId[] = [
  ...(['TCP_OPENED_CONNECTIONS', 'TCP_CLOSED_CONNECTIONS', 'TCP_SENT_BYTES', 'TCP_RECEIVED_BYTES'] as const),
];

export class MeshMetrics {
  readonly #localWorkload: WorkloadLabelValues;
  readonly #now: () => number;
  readonly #version: string;
  readonly #table: MetricTable;
  readonly #connections: TcpConnections;
  readonly #claims = new ClaimedWorkloads();
  readonly #admit = (id: string, claim: PeerClaim): boolean => this.#claims.admit(id, claim);
  readonly #maxCacheEntries: number;
  #resolvedByRules = new WeakMap<StreamRules, Map<string, ResolvedSeries>>();
  readonly #peers = new Map<PeerOutcome, number>();
  #entries = 0;
  readonly #lostByReason = new Map<string, number>();

  constructor({
    localWorkload,
    version,
    limits,
    now = () => performance.now(),
    startedAtMs,
    ...options
  }: MeshMetricsOptions) {
    const tableLimits = { ...defaultTableLimits, ...limits };
    this.#localWorkload = localWorkload;
    this.#now = now;
    this.#version = version;
    this.#table = new MetricTable(tableLimits, now, options.onFolding ?? (() => {}));
    this.#connections = new TcpConnections(options.maxConnections ?? maxConnections, startedAtMs ?? Date.now());
    this.#maxCacheEntries = tableLimits.maxLabelSets * cacheEntriesPerLabelSet;
  }

  recordEntry(entry: AccessLogEntry, rules: StreamRules): void {
    this.#entries++;
    // With an EnvoyFilter, Envoy may log a request several times; only the last entry counts.
    const isPartial = entry.type === logTypes.downstreamStart || entry.type === logTypes.downstreamPeriodic;
    if (entry.protocol === 'http' && isPartial) return;
    const { series, peer } = this.#resolve(entry, rules);
    if (peer !== undefined) this.#peers.set(peer, (this.#peers.get(peer) ?? 0) + 1);
    if (entry.protocol === 'http') this.#takeRequest(entry, series);
    else this.#takeConnection(entry, series);
  }

  /** @param reason a fixed label value */
  countLost(reason: string, count = 1): void {
    this.#lostByReason.set(reason, (this.#lostByReason.get(reason) ?? 0) + count);
  }

  #takeRequest({ durationMs, received, sent }: AccessLogEntry, series: ResolvedSeries['series']): void {
    this.#count(series, 'REQUEST_COUNT', 1);
    this.#observe(series, 'REQUEST_DURATION', durationMs);
    this.#observe(series, 'REQUEST_SIZE', received);
    this.#observe(series, 'RESPONSE_SIZE', sent);
  }

  #takeConnection(entry: AccessLogEntry, series: ResolvedSeries['series']): void {
    const { opened, closed, sent, received } = this.#connections.recordEntry(entry);
    this.#count(series, 'TCP_OPENED_CONNECTIONS', opened);
    this.#count(series, 'TCP_SENT_BYTES', sent);
    this.#count(series, 'TCP_RECEIVED_BYTES', received);
    this.#count(series, 'TCP_CLOSED_CONNECTIONS', closed);
  }

  #count(series: ResolvedSeries['series'], id: StandardMetricId, amount: number): void {
    const counterLabels = series.get(id);
    if (counterLabels !== undefined) this.#table.count(standardMetrics[id].name, counterLabels, amount);
  }

  #observe(series: ResolvedSeries['series'], id: StandardMetricId, value: number): void {
    const histogramLabels = series.get(id);
    if (histogramLabels !== undefined) this.#table.observe(standardMetrics[id].name, histogramLabels, value);
  }

  #resolve(entry: AccessLogEntry, rules: StreamRules): ResolvedSeries {
    let resolvedSeries = this.#resolvedByRules.get(rules);
    if (resolvedSeries === undefined) {
      resolvedSeries = new Map();
      this.#resolvedByRules.set(rules, resolvedSeries);
    }
    const key = keyOf(entry);
    const cachedSeries = resolvedSeries.get(key);
    if (cachedSeries !== undefined && this.#isCurrent(cachedSeries)) return cachedSeries;
    const newSeries = this.#resolveUncached(entry, rules);
    if (resolvedSeries.size >= this.#maxCacheEntries) resolvedSeries.clear();
    resolvedSeries.set(key, newSeries);
    return newSeries;
  }

  #isCurrent({ series, validUntilMs }: ResolvedSeries): boolean {
    for (const entry of series.values()) if (entry.isEvicted) return false;
    return validUntilMs === Number.POSITIVE_INFINITY || this.#now() < validUntilMs;
  }

  #resolveUncached(entry: AccessLogEntry, rules: StreamRules): ResolvedSeries {
    const { labels, peer } = labelsOf(entry, rules.reporter, this.#localWorkload, this.#admit);
    const defaultLabelText = labelText(labels, undefined, noValues);
    const metricIds = (entry.protocol === 'http' ? requestMetrics : tcpMetrics).filter(
      (id) => rules.metrics[id]?.disabled !== true,
    );
    const series = metricIds.map((id): [StandardMetricId, Series] => {
      const rule = rules.metrics[id];
      const metric: StandardMetric = standardMetrics[id];
      const text = rule === undefined ? defaultLabelText : labelText(labels, rule, entry.values);
      const overflow = (): string =>
        labelText(overflowLabelsOf(labels), rule?.removed && { removed: rule.removed }, noValues);
      return [id, this.#table.series(metric, text, overflow)];
    });
    const isFolded = series.some(([, { isOverflow }]) => isOverflow);
    return {
      series: new Map(series),
      peer,
      validUntilMs: isFolded ? this.#now() + overflowRetryMs : Number.POSITIVE_INFINITY,
    };
  }

  *text(): Generator<string> {
    if (this.#table.evictIdle() > 0) this.#claims.clear();
    yield `# HELP istio_build Always 1: version of a component.\n# TYPE istio_build gauge\nistio_build{component="proxy",tag="${this.#version}"} 1\n`;
    yield* this.#table.text();
    yield `# HELP istio_agent_access_log_entries_total Access log entries received from Envoy.\n# TYPE istio_agent_access_log_entries_total counter\nistio_agent_access_log_entries_total ${this.#entries}\n`;
    yield '# HELP istio_agent_access_log_lost_total Access log messages that were not counted, by reason.\n# TYPE istio_agent_access_log_lost_total counter\n';
    for (const [reason, count] of this.#lostByReason)
      yield `istio_agent_access_log_lost_total{reason="${reason}"} ${count}\n`;
    yield '# HELP istio_agent_peer_claims_total What peers claim about their workload, by outcome.\n# TYPE istio_agent_peer_claims_total counter\n';
    for (const [outcome, count] of this.#peers) yield `istio_agent_peer_claims_total{outcome="${outcome}"} ${count}\n`;
    const { state } = this.#table;
    yield '# HELP istio_agent_metric_label_sets Label sets of a standard metric.\n# TYPE istio_agent_metric_label_sets gauge\n';
    for (const { metric, labelSets } of state) yield `istio_agent_metric_label_sets{metric="${metric}"} ${labelSets}\n`;
    yield '# HELP istio_agent_metric_folded_total Observations counted without their labels, because the limit of label sets or of the page was reached.\n# TYPE istio_agent_metric_folded_total counter\n';
    for (const { metric, folded } of state) yield `istio_agent_metric_folded_total{metric="${metric}"} ${folded}\n`;
    yield `# HELP istio_agent_metric_label_sets_evicted_total Label sets removed because nothing used them.\n# TYPE istio_agent_metric_label_sets_evicted_total counter\nistio_agent_metric_label_sets_evicted_total ${this.#table.evictedSeriesCount}\n`;
    yield `# HELP istio_agent_tcp_connections_tracked Open TCP connections whose bytes are counted.\n# TYPE istio_agent_tcp_connections_tracked gauge\nistio_agent_tcp_connections_tracked ${this.#connections.size}\n`;
  }
}

/** The key consists of all fields on which an entry's labels depend. */
function keyOf(entry: AccessLogEntry): string {
  const { protocol, cluster, route, flags, code, contentType, grpcStatus, peerUri, localUri, claim } = entry;
  const isGrpc = contentType.startsWith('application/grpc');
  return `${protocol}\n${code}\n${flags}\n${isGrpc ? grpcStatus : '-'}\n${cluster}\n${route}\n${entry.workload}\n${entry.services}\n${peerUri}\n${localUri}\n${claim}\n${entry.upstreamPeer}\n${entry.upstreamLocal}\n${entry.values.join('\n')}`;
}
