/** The metrics of the control plane, under the names that Istio's dashboards know (spec/discovery.md §9.2). */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { ConfigChange } from '../../../machines/discovery/protocol.ts';
import type { UncaughtOrigin } from '../../runtime/fences/uncaught.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import { visibleMetrics } from '../../runtime/visible-text.ts';
import type { EncodedCache } from '../push/encoded-cache.ts';
import type { MeshNode } from '../push/mesh-resources.ts';
import type { MeshState } from '../push/mesh-state.ts';
import { MeshDiagnostics, type MeshFindings } from './mesh-diagnostics.ts';
import { Distribution, readCounter } from './metrics/cheap-metrics.ts';
import { SourceMetrics } from './metrics/source-metrics.ts';
import { XdsMetrics } from './metrics/xds-metrics.ts';
import { pushStatusMetrics } from './push-status.ts';

export interface MetricsOptions {
  readonly version: string;
  readonly state: MeshState;
  readonly cache: EncodedCache;
  /** Versions of the connected proxies' Istio. */
  readonly connectedVersions: () => Iterable<string>;
  /** How often issuers of tokens were asked for their keys; absent: they are not asked. */
  readonly keyFetches?: { readonly success: number; readonly failure: number };
  /** The connected proxies. */
  readonly nodes?: () => Iterable<MeshNode>;
  /** To be told of all objects of a cluster that take effect only in part, after each look at the mesh. */
  readonly warned?: (warnings: MeshFindings['warnings']) => void;
  /** Whether no other replica serves proxies; absent: there is none. */
  readonly isOnlyReplica?: () => boolean;
  /** Objects of a cluster that exceed what their namespace may take in memory; absent: no cluster is followed. */
  readonly refusedObjects?: () => Iterable<{ readonly kind: string; readonly count: number }>;
}

/**
 * Counts for xDS streams and pushes by being told, for sources by watching. What is one number somewhere is looked up when it is
 * asked for; what has the size of the mesh is found before.
 */
export class DiscoveryMetrics extends XdsMetrics {
  readonly #registry: Registry;
  readonly #options: MetricsOptions;
  readonly #sources: SourceMetrics;
  readonly #diagnostics: MeshDiagnostics;
  readonly #contextTime: Distribution;
  readonly #uncaught: Counter<'origin' | 'cost'>;

  constructor(options: MetricsOptions) {
    const registry = new Registry();
    super(registry);
    this.#registry = registry;
    this.#options = options;
    this.#sources = new SourceMetrics(registry, options.state);
    this.#contextTime = new Distribution(
      registry,
      { name: 'pilot_pushcontext_init_seconds', help: 'Seconds that it took to build a push context' },
      [0.01, 0.1, 0.5, 1, 3, 5],
    );
    this.#uncaught = new Counter({
      name: 'pilot_uncaught_errors_total',
      help: 'Errors that nobody caught, by what they cost: a stream or a request, or nothing that is known',
      labelNames: ['origin', 'cost'],
      registers: [registry],
    });
    collectDefaultMetrics({ register: registry });
    this.#diagnostics = this.#addMesh(this.#addProgram());
    this.#addCache();
    this.#addKeyFetches();
    this.#addRefusedObjects();
  }

  /** Prometheus' text. */
  async text(): Promise<{ body: string; contentType: string }> {
    await this.#diagnostics.settled();
    return { body: visibleMetrics(await this.#registry.metrics()), contentType: this.#registry.contentType };
  }

  /** Counts what passes between the actors. @returns how to stop. */
  observe(recorder: Recorder): () => void {
    return this.#sources.observe(recorder);
  }

  /** To be told of all objects that came, changed or went. */
  configsChanged(changes: readonly ConfigChange[]): void {
    this.#sources.configsChanged(changes);
  }

  /** To be told of each new context, with the time that it took to build it. */
  contextPublished(durationMs: number): void {
    this.#contextTime.observe(durationMs / 1_000);
    this.#diagnostics.stale();
  }

  clientConnected(): void {
    this.#diagnostics.stale();
  }

  override clientGone(node: string): void {
    super.clientGone(node);
    this.#diagnostics.stale();
  }

  /** What was made for it may have been patched, or not. */
  override responseSent(typeUrl: string, response: { bytes: number }): void {
    super.responseSent(typeUrl, response);
    this.#diagnostics.stale();
  }

  replicasChanged(): void {
    this.#diagnostics.stale();
  }

  pushFinished(): void {
    this.#diagnostics.stale();
  }

  /** To be told of each error that came to the last fence. */
  errorEscaped(origin: UncaughtOrigin, cost: 'owner' | 'nothing'): void {
    this.#uncaught.inc({ origin, cost });
  }

  /** @returns of connected proxies, which have the size of the mesh */
  #addProgram(): Gauge<'version'> {
    const { version } = this.#options;
    this.#gauge('pilot_info', 'Version of this control plane', ['version']).set({ version }, 1);
    this.#gaugeOf('istiod_uptime_seconds', 'Seconds since the start', () => process.uptime());
    const connected = this.#gauge('pilot_xds', 'Connected proxies, by their version', ['version']);
    const clusters = this.#gauge('istiod_managed_clusters', 'Clusters that are read', ['cluster_type'], () => {
      const { registries } = this.#options.state.registries;
      const read = registries.filter(({ provider }) => provider === 'Kubernetes').length;
      clusters.set({ cluster_type: 'local' }, 1);
      clusters.set({ cluster_type: 'remote' }, Math.max(0, read - 1));
    });
    return connected;
  }

  #addMesh(connected: Gauge<'version'>): MeshDiagnostics {
    const { state, connectedVersions, nodes = () => [], warned, isOnlyReplica } = this.#options;
    this.#gaugeOf('pilot_services', 'Services of all registries', () => state.context?.services.length ?? 0);
    this.#gaugeOf(
      'pilot_objects_beyond_export_limit',
      'Objects that are not exported, or routes that are not attached, because of a limit of their namespaces',
      () => state.limitedCount ?? 0,
    );
    this.#gaugeOf('pilot_virt_services', 'Virtual services in force', () => state.configs.set.VirtualService.length);
    const pending = this.#gauge(
      'pilot_k8s_endpoints_pending_pod',
      'Pods that endpoints name and that are not known yet',
    );
    const bare = this.#gauge('endpoint_no_pod', 'Endpoints of services with a selector, but of no pod');
    const help = 'Patches of EnvoyFilters, by what became of them; why not, see /debug/push_status';
    const patches = this.#gauge('pilot_envoy_filter_status', help, ['name', 'patch', 'result']);
    const lookups = 'CUSTOM policies whose provider, or its service, is not there: what they match is refused';
    const failures = this.#gauge('provider_lookup_cluster_failures', lookups, ['type']);
    failures.set({ type: 'authz' }, 0);
    const diagnostics = new Map(
      pushStatusMetrics.map((name) => [
        name,
        this.#gauge(name, 'Diagnostics of the last push, see /debug/push_status'),
      ]),
    );
    const found = ({ counts, rejectedServers, policiesWithoutProvider, ...found }: MeshFindings): void => {
      for (const [name, gauge] of diagnostics) gauge.set(counts.get(name) ?? 0);
      pending.set(found.pendingPods);
      bare.set(found.endpointsWithoutPod);
      this.#sources.gatewayServersRejected(rejectedServers);
      failures.set({ type: 'authz' }, policiesWithoutProvider);
      connected.reset();
      for (const [version, count] of found.versions) connected.set({ version }, count);
      patches.reset();
      for (const { count, ...labels } of found.patches) patches.set(labels, count);
      if (state.context !== undefined) warned?.(found.warnings);
    };
    return new MeshDiagnostics({ state, nodes, connectedVersions, found, ...(isOnlyReplica && { isOnlyReplica }) });
  }

  /** By kind alone: namespaces may be thousands. */
  #addRefusedObjects(): void {
    const { refusedObjects } = this.#options;
    if (refusedObjects === undefined) return;
    const help = 'Objects that are not in force because their namespace takes too much memory';
    const gauge: Gauge<'type'> = this.#gauge('pilot_k8s_refused_objects', help, ['type'], () => {
      gauge.reset();
      for (const { kind, count } of refusedObjects()) gauge.inc({ type: kind }, count);
    });
  }

  #addKeyFetches(): void {
    const { keyFetches = { success: 0, failure: 0 } } = this.#options;
    const name = 'pilot_jwks_resolver_network_fetch';
    const help = 'Questions for keys of issuers';
    readCounter(this.#registry, { name: `${name}_success_total`, help: `${help} that were answered` }, () => [
      { labels: {}, value: keyFetches.success },
    ]);
    readCounter(this.#registry, { name: `${name}_fail_total`, help: `${help} in vain` }, () => [
      { labels: {}, value: keyFetches.failure },
    ]);
  }

  #addCache(): void {
    const { cache } = this.#options;
    this.#gaugeOf('xds_cache_size', 'Encoded resources that are kept', () => cache.size);
    this.#gaugeOf('xds_cache_bytes', 'What they hold, about, as of the last change', () => cache.bytes);
    this.#gaugeOf('xds_cache_dependent_config_size', 'Objects that kept resources depend on', () => {
      return cache.dependentConfigs;
    });
    readCounter(this.#registry, { name: 'xds_cache_evictions', help: 'Encoded resources that were forgotten' }, () => [
      { labels: {}, value: cache.counts.evictions },
    ]);
    const remade = 'Encoded resources that were forgotten for want of room, and made again';
    readCounter(this.#registry, { name: 'xds_cache_remade', help: remade }, () => [
      { labels: {}, value: cache.counts.remade },
    ]);
    readCounter(this.#registry, { name: 'xds_cache_reads', help: 'Reads of the cache' }, () => [
      { labels: { type: 'hit' }, value: cache.counts.hits },
      { labels: { type: 'miss' }, value: cache.counts.misses },
    ]);
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
