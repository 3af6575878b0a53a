/** The metrics have the names that Istio's dashboards use. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { ConfigChange } from '../../../../machines/discovery/protocol.ts';
import type { UncaughtOrigin } from '../../../runtime/fences/uncaught.ts';
import { definitionsOf, type MetricDefinition } from '../../../runtime/output/metric-definitions.ts';
import type { Recorder } from '../../../runtime/trace/recorder.ts';
import { visibleMetrics } from '../../../runtime/visible-text.ts';
import type { XdsSourceStatus } from '../../config/xds/xds-source.ts';
import type { DatacenterView } from '../../consul/consul-datacenter.ts';
import type { NameServerCounts } from '../../names/name-server.ts';
import type { EncodedCache } from '../../push/cache/encoded-cache.ts';
import type { MeshState } from '../../push/contexts/mesh-state.ts';
import type { MeshNode } from '../../push/mesh-resources.ts';
import { findingMeanings } from '../diagnostics/finding-meanings.ts';
import { MeshDiagnostics, type MeshFindings } from '../diagnostics/mesh-diagnostics.ts';
import { pushStatusMetrics } from '../diagnostics/push-status.ts';
import { addCertificateMetrics, type CertificateMetricsOptions } from './certificate-metrics.ts';
import { HistogramByKey, readCounter } from './cheap-metrics.ts';
import { SourceMetrics } from './source-metrics.ts';
import { addWebhookMetrics, type WebhookCounts } from './webhook-metrics.ts';
import { XdsMetrics } from './xds-metrics.ts';

export interface MetricsOptions {
  readonly version: string;
  readonly state: MeshState;
  readonly cache: EncodedCache;
  readonly connectedVersions: () => Iterable<string>;
  /** `undefined` without issuers. */
  readonly keyFetches?: { readonly success: number; readonly failure: number };
  readonly nodes?: () => Iterable<MeshNode>;
  /** Called after each scan with warnings about objects of the cluster that take only partial effect. */
  readonly onWarnings?: (findings: Pick<MeshFindings, 'warnings' | 'loggableWarnings'>) => void;
  readonly isOnlyReplica?: () => boolean;
  readonly configSources?: () => readonly XdsSourceStatus[];
  readonly datacenters?: () => readonly DatacenterView[];
  readonly nameQueries?: NameServerCounts;
  readonly webhooks?: WebhookCounts;
  readonly certificates?: CertificateMetricsOptions;
  /** `undefined` without a cluster. */
  readonly refusedObjects?: () => Iterable<{ readonly kind: string; readonly count: number }>;
}

/** Streams and pushes call this class directly. Sources are counted by observing the trace. */
export class DiscoveryMetrics extends XdsMetrics {
  readonly #registry: Registry;
  readonly #options: MetricsOptions;
  readonly #sources: SourceMetrics;
  readonly #diagnostics: MeshDiagnostics;
  readonly #contextTime: HistogramByKey;
  readonly #uncaughtCounter: Counter<'origin' | 'cost'>;

  constructor(options: MetricsOptions) {
    const registry = new Registry();
    super(registry);
    this.#registry = registry;
    this.#options = options;
    this.#sources = new SourceMetrics(registry, options.state);
    this.#contextTime = new HistogramByKey(
      registry,
      { name: 'pilot_pushcontext_init_seconds', help: 'Seconds to build a push context' },
      [0.01, 0.1, 0.5, 1, 3, 5],
    );
    this.#uncaughtCounter = new Counter({
      name: 'pilot_uncaught_errors_total',
      help: 'Uncaught errors, by the stream or request that was closed because of them',
      labelNames: ['origin', 'cost'],
      registers: [registry],
    });
    collectDefaultMetrics({ register: registry });
    this.#diagnostics = this.#addMesh(this.#addProgram());
    this.#addCache();
    this.#addKeyFetches();
    this.#addRefusedObjects();
    this.#addConfigSources();
    this.#addRegistryConditions();
    this.#addNameQueries();
    if (options.webhooks !== undefined) addWebhookMetrics(registry, options.webhooks);
    if (options.certificates !== undefined) addCertificateMetrics(registry, options.certificates);
  }

  async text(): Promise<{ body: string; contentType: string }> {
    await this.#diagnostics.waitUntilIdle();
    return { body: visibleMetrics(await this.#registry.metrics()), contentType: this.#registry.contentType };
  }

  get definitions(): readonly MetricDefinition[] {
    return definitionsOf(this.#registry);
  }

  observe(recorder: Recorder): () => void {
    return this.#sources.observe(recorder);
  }

  configsChanged(changes: readonly ConfigChange[]): void {
    this.#sources.configsChanged(changes);
  }

  contextPublished(durationMs: number): void {
    this.#contextTime.observe(durationMs / 1_000);
    this.#diagnostics.markStale();
  }

  clientConnected(): void {
    this.#diagnostics.markStale();
  }

  override clientDisconnected(node: string): void {
    super.clientDisconnected(node);
    this.#diagnostics.markStale();
  }

  /** Results of EnvoyFilter patches may have changed. */
  override responseSent(typeUrl: string, response: { bytes: number }): void {
    super.responseSent(typeUrl, response);
    this.#diagnostics.markStale();
  }

  replicasChanged(): void {
    this.#diagnostics.markStale();
  }

  pushFinished(): void {
    this.#diagnostics.markStale();
  }

  errorEscaped(origin: UncaughtOrigin, cost: 'owner' | 'nothing'): void {
    this.#uncaughtCounter.inc({ origin, cost });
  }

  /** Returns the gauge of connected proxies, whose value changes later. */
  #addProgram(): Gauge<'version'> {
    const { version } = this.#options;
    this.#gauge('pilot_info', 'Version of this control plane', ['version']).set({ version }, 1);
    const build = this.#gauge('istio_build', 'Always 1: version of a component', ['component', 'tag']);
    build.set({ component: 'pilot', tag: version }, 1);
    this.#gaugeOf('istiod_uptime_seconds', 'Seconds since the start', () => process.uptime());
    const connectedGauge = this.#gauge('pilot_xds', 'Connected proxies by version', ['version']);
    const clusters = this.#gauge(
      'istiod_managed_clusters',
      'Kubernetes clusters that are watched',
      ['cluster_type'],
      () => {
        const { registries } = this.#options.state.registries;
        const readClusterCount = registries.filter(({ provider }) => provider === 'Kubernetes').length;
        clusters.set({ cluster_type: 'local' }, 1);
        clusters.set({ cluster_type: 'remote' }, Math.max(0, readClusterCount - 1));
      },
    );
    return connectedGauge;
  }

  #addMesh(connectedGauge: Gauge<'version'>): MeshDiagnostics {
    const { state, connectedVersions, nodes = () => [], onWarnings, isOnlyReplica } = this.#options;
    this.#gaugeOf('pilot_services', 'Services in all registries', () => state.context?.services.length ?? 0);
    this.#gaugeOf(
      'pilot_objects_beyond_export_limit',
      'Objects that are not exported and routes that are not attached because of a limit of their namespace',
      () => state.limitedCount ?? 0,
    );
    this.#gaugeOf('pilot_virt_services', 'VirtualServices that apply', () => state.configs.set.VirtualService.length);
    const pending = this.#gauge(
      'pilot_k8s_endpoints_pending_pod',
      'Pods that endpoints refer to and that are not known yet',
    );
    const bareEndpointGauge = this.#gauge('endpoint_no_pod', 'Endpoints without a pod, of services with a selector');
    const help = 'EnvoyFilter patches by result; /debug/push_status has the reasons';
    const patches = this.#gauge('pilot_envoy_filter_status', help, ['name', 'patch', 'result']);
    const lookups =
      'CUSTOM policies whose extension provider or its service does not exist: requests that they match are denied';
    const failures = this.#gauge('provider_lookup_cluster_failures', lookups, ['type']);
    failures.set({ type: 'authz' }, 0);
    const diagnostics = new Map(
      pushStatusMetrics.map((name) => [name, this.#gauge(name, findingMeanings[name] ?? name)]),
    );
    const applyFindings = ({
      counts,
      rejectedServers,
      policiesWithoutProvider,
      ...applyFindings
    }: MeshFindings): void => {
      for (const [name, gauge] of diagnostics) gauge.set(counts.get(name) ?? 0);
      pending.set(applyFindings.pendingPods);
      bareEndpointGauge.set(applyFindings.endpointsWithoutPod);
      this.#sources.gatewayServersRejected(rejectedServers);
      failures.set({ type: 'authz' }, policiesWithoutProvider);
      connectedGauge.reset();
      for (const [version, count] of applyFindings.versions) connectedGauge.set({ version }, count);
      patches.reset();
      for (const { count, ...labels } of applyFindings.patches) patches.set(labels, count);
      if (state.context !== undefined) onWarnings?.(applyFindings);
    };
    return new MeshDiagnostics({
      state,
      nodes,
      connectedVersions,
      onFindings: applyFindings,
      ...(isOnlyReplica && { isOnlyReplica }),
    });
  }

  /** The gauge is 1 if the condition applies, and otherwise has no series. */
  #addRegistryConditions(): void {
    const { datacenters } = this.#options;
    if (datacenters === undefined) return;
    const help = 'Condition of a service registry: reading, synced, held (a response is held back) or failing';
    const gauge: Gauge<'registry' | 'condition'> = this.#gauge(
      'pilot_registry_condition',
      help,
      ['registry', 'condition'],
      () => {
        gauge.reset();
        for (const { registry, condition } of datacenters()) gauge.set({ registry, condition }, 1);
      },
    );
  }

  /** The counter has no namespace label, because there can be thousands of namespaces. */
  #addRefusedObjects(): void {
    const { refusedObjects } = this.#options;
    if (refusedObjects === undefined) return;
    const help = 'Objects that are ignored because their namespace exceeds its memory limit';
    const gauge: Gauge<'type'> = this.#gauge('pilot_k8s_refused_objects', help, ['type'], () => {
      gauge.reset();
      for (const { kind, count } of refusedObjects()) gauge.inc({ type: kind }, count);
    });
  }

  #addConfigSources(): void {
    const { configSources } = this.#options;
    if (configSources === undefined) return;
    const sourceGauge: Gauge<'source'> = this.#gauge(
      'pilot_config_source_connected',
      'Whether the stream to a configuration source over xDS is open',
      ['source'],
      () => {
        sourceGauge.reset();
        for (const { address, state } of configSources())
          sourceGauge.set({ source: address }, state === 'connected' ? 1 : 0);
      },
    );
    const objects: Gauge<'source'> = this.#gauge(
      'pilot_config_source_objects',
      'Objects of a configuration source over xDS',
      ['source'],
      () => {
        objects.reset();
        for (const { address, objects: count } of configSources()) objects.set({ source: address }, count);
      },
    );
    const pausedGauge: Gauge<'source' | 'type'> = this.#gauge(
      'pilot_config_source_paused_deletions',
      'Objects whose deletion is paused because their source sent an empty state on a new stream',
      ['source', 'type'],
      () => {
        pausedGauge.reset();
        for (const { address, paused: kinds } of configSources())
          for (const { kind, objects: count } of kinds) pausedGauge.set({ source: address, type: kind }, count);
      },
    );
    readCounter(
      this.#registry,
      {
        name: 'pilot_config_source_responses_total',
        help: 'Responses of configuration sources over xDS, by whether they were accepted (ACK) or rejected (NACK)',
        labelNames: ['source', 'outcome'],
      },
      () =>
        configSources().flatMap(({ address, responses }) =>
          Object.entries(responses).map(([outcome, value]) => ({ labels: { source: address, outcome }, value })),
        ),
    );
  }

  #addKeyFetches(): void {
    const { keyFetches = { success: 0, failure: 0 } } = this.#options;
    const name = 'pilot_jwks_resolver_network_fetch';
    const help = 'requests for JSON Web Key Sets of issuers';
    readCounter(this.#registry, { name: `${name}_success_total`, help: `Successful ${help}` }, () => [
      { labels: {}, value: keyFetches.success },
    ]);
    readCounter(this.#registry, { name: `${name}_fail_total`, help: `Failed ${help}` }, () => [
      { labels: {}, value: keyFetches.failure },
    ]);
  }

  #addNameQueries(): void {
    const { nameQueries } = this.#options;
    if (nameQueries === undefined) return;
    this.#gaugeOf('pilot_dns_connections', 'Open connections to the DNS server', () => nameQueries.connections);
    readCounter(
      this.#registry,
      { name: 'pilot_dns_requests_total', help: 'DNS queries, by result', labelNames: ['result'] },
      () => [...nameQueries.queries].map(([result, value]) => ({ labels: { result }, value })),
    );
    const help = 'Connections to the DNS server that were closed because of a limit or an unaccepted client, by reason';
    readCounter(this.#registry, { name: 'pilot_dns_closed_connections_total', help, labelNames: ['reason'] }, () =>
      [...nameQueries.closuresByReason].map(([reason, value]) => ({ labels: { reason }, value })),
    );
  }

  #addCache(): void {
    const { cache } = this.#options;
    this.#gaugeOf('xds_cache_size', 'Encoded xDS resources in the cache', () => cache.size);
    this.#gaugeOf('xds_cache_bytes', 'Approximate bytes of the cached xDS resources', () => cache.bytes);
    this.#gaugeOf('xds_cache_dependent_config_size', 'Objects that cached xDS resources depend on', () => {
      return cache.dependentConfigs;
    });
    readCounter(
      this.#registry,
      { name: 'xds_cache_evictions', help: 'xDS resources that were evicted from the cache' },
      () => [{ labels: {}, value: cache.counts.evictions }],
    );
    const regeneratedHelp = 'xDS resources that were evicted because the cache was full, and built again';
    readCounter(this.#registry, { name: 'xds_cache_remade', help: regeneratedHelp }, () => [
      { labels: {}, value: cache.counts.rebuilds },
    ]);
    readCounter(
      this.#registry,
      { name: 'xds_cache_reads', help: 'Reads of the xDS cache', labelNames: ['type'] },
      () => [
        { labels: { type: 'hit' }, value: cache.counts.hits },
        { labels: { type: 'miss' }, value: cache.counts.misses },
      ],
    );
  }

  #gauge<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[] = [],
    collect?: () => void,
  ): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this.#registry], ...(collect && { collect }) });
  }

  #gaugeOf(name: string, help: string, value: () => number): void {
    const gauge: Gauge<never> = this.#gauge<never>(name, help, [], () => gauge.set(value()));
  }
}
