/** The metrics of the control plane, under the names that Istio's dashboards know (spec/discovery.md §9.2). */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { PushOrder } from '../../../machines/discovery/protocol.ts';
import { pushedTypeOf } from '../../model/concern.ts';
import type { Recorder } from '../../runtime/actor-system.ts';
import type { AdsObserver } from '../ads/ads-observer.ts';
import type { EncodedCache } from '../push/encoded-cache.ts';
import type { MeshState } from '../push/mesh-state.ts';
import { pushStatus, pushStatusMetrics } from './push-status.ts';

const seconds = [0.01, 0.1, 0.5, 1, 3, 5, 10, 20, 30];
const sizes = [1, 10_000, 1_000_000, 4_000_000, 10_000_000, 40_000_000];

export interface MetricsOptions {
  readonly version: string;
  readonly state: MeshState;
  readonly cache: EncodedCache;
  /** Version of a connected proxy's Istio, by node id. */
  readonly connectedVersions: () => Iterable<string>;
}

interface Rejection {
  readonly gauge: Gauge<'node' | 'err'>;
  readonly labels: { readonly node: string; readonly err: string };
}

/** Of a label: Envoy's reasons can be pages long. */
const longestReason = 200;

/** `cds`, as dashboards call a type; the whole URL of those that have no such name. */
function shortType(typeUrl: string): string {
  return pushedTypeOf(typeUrl)?.toLowerCase() ?? typeUrl;
}

export class DiscoveryMetrics implements AdsObserver {
  readonly #registry = new Registry();
  readonly #options: MetricsOptions;
  #rejections: Rejection[] = [];
  readonly #pushes = this.#counter('pilot_xds_pushes', 'Responses that were sent, by type of resource', ['type']);
  readonly #rejects = this.#counter('pilot_total_xds_rejects', 'Responses that a proxy rejected', ['type']);
  readonly #expiredNonces = this.#counter('pilot_xds_expired_nonce', 'Requests that answered an old response', [
    'type',
  ]);
  readonly #internalErrors = this.#counter('pilot_total_xds_internal_errors', 'Resources that could not be made', []);
  readonly #configSize = this.#histogram('pilot_xds_config_size_bytes', 'Size of responses', sizes, ['type']);
  readonly #convergence = this.#histogram(
    'pilot_proxy_convergence_time',
    'Seconds from the start of a push until every proxy was served',
    [0.1, 0.5, 1, 3, 5, 10, 20, 30],
  );
  readonly #debounce = this.#histogram('pilot_debounce_time', 'Seconds from the first change to its context', seconds);
  readonly #contextTime = this.#histogram(
    'pilot_pushcontext_init_seconds',
    'Seconds that it took to build a push context',
    [0.01, 0.1, 0.5, 1, 3, 5],
  );
  readonly #triggers = this.#counter('pilot_push_triggers', 'Why pushes were asked for', ['type']);
  readonly #updates = this.#counter('pilot_inbound_updates', 'Updates that came from the sources', ['type']);
  readonly #rejectedConfigs = this.#counter('pilot_total_rejected_configs', 'Objects that were refused', [
    'type',
    'name',
  ]);
  readonly #services = this.#gauge('pilot_services', 'Services of all registries');
  readonly #virtualServices = this.#gauge('pilot_virt_services', 'Virtual services in force');
  readonly #statusGauges = new Map(
    pushStatusMetrics.map((name) => [name, this.#gauge(name, 'Oddities of the last push, see /debug/push_status')]),
  );
  readonly #rejectGauges = new Map(
    ['cds', 'eds', 'lds', 'rds'].map((type) => [
      type,
      this.#gauge(`pilot_xds_${type}_reject`, `Proxies that reject their ${type.toUpperCase()}`, ['node', 'err']),
    ]),
  );

  constructor(options: MetricsOptions) {
    this.#options = options;
    collectDefaultMetrics({ register: this.#registry });
    this.#gauge('pilot_info', 'Version of this control plane', ['version']).set({ version: options.version }, 1);
    this.#gaugeOf('istiod_uptime_seconds', 'Seconds since the start', () => process.uptime());
    this.#gaugeOf('xds_cache_size', 'Encoded resources that are kept', () => options.cache.size);
    this.#gaugeOf('xds_cache_evictions', 'Encoded resources that were forgotten', () => options.cache.counts.evictions);
    const reads = this.#gauge('xds_cache_reads', 'Reads of the cache', ['type'], () => {
      reads.set({ type: 'hit' }, options.cache.counts.hits);
      reads.set({ type: 'miss' }, options.cache.counts.misses);
    });
    const connected = this.#gauge('pilot_xds', 'Connected proxies, by their version', ['version'], () => {
      connected.reset();
      for (const version of options.connectedVersions()) connected.inc({ version });
    });
  }

  /** Prometheus' text. */
  async text(): Promise<{ body: string; contentType: string }> {
    return { body: await this.#registry.metrics(), contentType: this.#registry.contentType };
  }

  /** Counts what passes between the actors. @returns how to stop. */
  observe(recorder: Recorder): () => void {
    let firstRequestAt: number | undefined;
    return recorder.observe((record) => {
      if (record.kind === 'spawn' && record.actor === 'push/context' && firstRequestAt !== undefined) {
        this.#debounce.observe((record.t - firstRequestAt) / 1_000);
        firstRequestAt = undefined;
      }
      if (record.kind !== 'event') return;
      if (record.to === 'push' && record.event.type === 'push.request') {
        firstRequestAt ??= record.t;
        this.#countRequest(record.event as unknown as PushOrder);
      }
      if (record.event.type === 'config.rejected') this.#countRejected(record.event.problems as { object: string }[]);
    });
  }

  /** To be told of each new context, with the time that it took to build it. */
  contextPublished(durationMs: number): void {
    this.#contextTime.observe(durationMs / 1_000);
    const { context } = this.#options.state;
    if (context === undefined) return;
    this.#services.set(context.services.length);
    this.#virtualServices.set(this.#options.state.configs.set.VirtualService.length);
    const status = pushStatus(context);
    for (const [name, gauge] of this.#statusGauges) gauge.set(Object.keys(status[name] ?? {}).length);
  }

  responseSent(typeUrl: string, { bytes }: { bytes: number }): void {
    this.#pushes.inc({ type: shortType(typeUrl) });
    this.#configSize.observe({ type: typeUrl }, bytes);
  }

  responseRejected(typeUrl: string, node: string, reason: string): void {
    this.#rejects.inc({ type: shortType(typeUrl) });
    const gauge = this.#rejectGauges.get(shortType(typeUrl));
    if (gauge === undefined) return;
    const labels = { node, err: reason.slice(0, longestReason) };
    this.#forgetRejection(node, gauge);
    gauge.set(labels, 1);
    this.#rejections.push({ gauge, labels });
  }

  clientGone(node: string): void {
    this.#forgetRejection(node);
  }

  nonceExpired(typeUrl: string): void {
    this.#expiredNonces.inc({ type: shortType(typeUrl) });
  }

  sourceFailed(): void {
    this.#internalErrors.inc();
  }

  pushFinished(durationMs: number): void {
    this.#convergence.observe(durationMs / 1_000);
  }

  /** A proxy is counted with its last rejection of a type, until it is gone. */
  #forgetRejection(node: string, only?: Gauge<'node' | 'err'>): void {
    const concerns = ({ gauge, labels }: Rejection): boolean =>
      labels.node === node && (only === undefined || gauge === only);
    for (const { gauge, labels } of this.#rejections.filter(concerns)) gauge.remove(labels);
    this.#rejections = this.#rejections.filter((rejection) => !concerns(rejection));
  }

  #countRequest({ reasons, configs }: PushOrder): void {
    for (const [type, count] of Object.entries(reasons)) this.#triggers.inc({ type }, count);
    const updates: Record<string, number> = { config: 0, eds: 0, svc: 0 };
    for (const key of configs) {
      updates[key.startsWith('Endpoints/') ? 'eds' : key.startsWith('ServiceEntry/') ? 'svc' : 'config']! += 1;
    }
    for (const [type, count] of Object.entries(updates)) if (count > 0) this.#updates.inc({ type }, count);
  }

  #countRejected(problems: readonly { object: string }[]): void {
    for (const { object } of problems) {
      const [type = '', name = ''] = object.split(' ');
      this.#rejectedConfigs.inc({ type, name });
    }
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: Label[] = [],
  ): Histogram<Label> {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
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
