/** The metrics of the control plane, under the names that Istio's dashboards know (spec/discovery.md §9.2). */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { ConfigChange } from '../../../machines/discovery/protocol.ts';
import { policiesWithoutProvider } from '../../networking/index.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { UncaughtOrigin } from '../../runtime/uncaught.ts';
import type { EncodedCache } from '../push/encoded-cache.ts';
import type { MeshNode } from '../push/mesh-resources.ts';
import type { MeshState } from '../push/mesh-state.ts';
import { Distribution, readCounter } from './metrics/cheap-metrics.ts';
import { SourceMetrics } from './metrics/source-metrics.ts';
import { XdsMetrics } from './metrics/xds-metrics.ts';
import { patchCounts } from './patch-status.ts';
import { type PushStatus, pushStatusMetrics, statusOf } from './push-status.ts';

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
}

/** Counts for xDS streams and pushes by being told, for sources by watching. What can be looked up is, when it is asked for. */
export class DiscoveryMetrics extends XdsMetrics {
  readonly #registry: Registry;
  readonly #options: MetricsOptions;
  readonly #sources: SourceMetrics;
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
    this.#addProgram();
    this.#addMesh();
    this.#addCache();
    this.#addKeyFetches();
  }

  /** Prometheus' text. */
  async text(): Promise<{ body: string; contentType: string }> {
    return { body: await this.#registry.metrics(), contentType: this.#registry.contentType };
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
  }

  /** To be told of each error that came to the last fence. */
  errorEscaped(origin: UncaughtOrigin, cost: 'owner' | 'nothing'): void {
    this.#uncaught.inc({ origin, cost });
  }

  #addProgram(): void {
    const { version, connectedVersions } = this.#options;
    this.#gauge('pilot_info', 'Version of this control plane', ['version']).set({ version }, 1);
    this.#gaugeOf('istiod_uptime_seconds', 'Seconds since the start', () => process.uptime());
    const connected = this.#gauge('pilot_xds', 'Connected proxies, by their version', ['version'], () => {
      connected.reset();
      for (const version of connectedVersions()) connected.inc({ version });
    });
    const clusters = this.#gauge('istiod_managed_clusters', 'Clusters that are read', ['cluster_type']);
    clusters.set({ cluster_type: 'local' }, 1);
    clusters.set({ cluster_type: 'remote' }, 0);
  }

  #addMesh(): void {
    const { state, nodes = () => [] } = this.#options;
    this.#gaugeOf('pilot_services', 'Services of all registries', () => state.context?.services.length ?? 0);
    this.#gaugeOf('pilot_virt_services', 'Virtual services in force', () => state.configs.set.VirtualService.length);
    this.#gaugeOf('pilot_k8s_endpoints_pending_pod', 'Pods that endpoints name and that are not known yet', () => {
      return state.registries.counts.pendingPods;
    });
    this.#gaugeOf('endpoint_no_pod', 'Endpoints of services with a selector, but of no pod', () => {
      return state.registries.counts.endpointsWithoutPod;
    });
    const help = 'Patches of EnvoyFilters, by what became of them; why not, see /debug/push_status';
    const patches = this.#gauge('pilot_envoy_filter_status', help, ['name', 'patch', 'result'], () => {
      patches.reset();
      for (const { count, ...labels } of patchCounts(state.configs.set.EnvoyFilter)) patches.set(labels, count);
    });
    const lookups = 'CUSTOM policies whose provider, or its service, is not there: what they match is refused';
    const failures = this.#gauge('provider_lookup_cluster_failures', lookups, ['type'], () => {
      const { context, configs } = state;
      const count = context ? policiesWithoutProvider(configs.set.AuthorizationPolicy, context).length : 0;
      failures.set({ type: 'authz' }, count);
    });
    let status: PushStatus = {};
    for (const [index, name] of pushStatusMetrics.entries()) {
      this.#gaugeOf(name, 'Diagnostics of the last push, see /debug/push_status', () => {
        // They are read together, in this order.
        if (index === 0) {
          status = statusOf(state, nodes());
          this.#sources.gatewayServersRejected(Object.keys(status.pilot_gateway_servers_rejected ?? {}));
        }
        return Object.keys(status[name] ?? {}).length;
      });
    }
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
    this.#gaugeOf('xds_cache_dependent_config_size', 'Objects that kept resources depend on', () => {
      return cache.dependentConfigs;
    });
    readCounter(this.#registry, { name: 'xds_cache_evictions', help: 'Encoded resources that were forgotten' }, () => [
      { labels: {}, value: cache.counts.evictions },
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
