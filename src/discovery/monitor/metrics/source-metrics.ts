import type { Registry } from 'prom-client';
import type { ConfigChange, ConfigKeyText, ConfigProblem, PushOrder } from '../../../../machines/discovery/protocol.ts';
import { parseConfigKey } from '../../../model/config/config.ts';
import { kubernetesKinds } from '../../../model/kinds/kubernetes/index.ts';
import type { ServiceRegistry } from '../../../model/services/service-registry.ts';
import type { Recorder } from '../../../runtime/trace/recorder.ts';
import type { TraceRecord } from '../../../runtime/trace/trace.ts';
import type { MeshState } from '../../push/contexts/mesh-state.ts';
import { CounterByKey, HistogramByKey, labelNamesOf } from './cheap-metrics.ts';

const bounds = [0.01, 0.1, 0.5, 1, 3, 5, 10, 20, 30];

/** Kinds of a cluster from which a registry builds services. Others are configuration. */
const registryKinds: ReadonlySet<string> = new Set(
  Object.keys(kubernetesKinds).filter((kind) => !['Secret', 'ConfigMap', 'Ingress', 'IngressClass'].includes(kind)),
);

/** For more services than this, a set of all names is built. */
const maxSearchedRequests = 16;

export class SourceMetrics {
  readonly #state: MeshState;
  readonly #debounce: HistogramByKey;
  readonly #triggers: CounterByKey;
  readonly #updates: CounterByKey;
  readonly #rejectedCounter: CounterByKey;
  #rejectedServers: ReadonlySet<string> = new Set();
  readonly #configEvents: CounterByKey;
  readonly #registryEvents: CounterByKey;
  #firstRequestAt: number | undefined;
  readonly #hosts = new WeakMap<ServiceRegistry, ReadonlySet<string>>();

  constructor(registry: Registry, state: MeshState) {
    this.#state = state;
    const createCounter = (name: string, help: string, label: string): CounterByKey =>
      new CounterByKey(registry, { name, help }, labelNamesOf(label));
    const pair = (name: string, help: string, firstLabel: string, secondLabel: string): CounterByKey =>
      new CounterByKey(registry, { name, help }, labelNamesOf(firstLabel, secondLabel));
    this.#debounce = new HistogramByKey(
      registry,
      { name: 'pilot_debounce_time', help: 'Seconds from the first change to the push context that has it' },
      bounds,
    );
    this.#triggers = createCounter('pilot_push_triggers', 'Push requests by reason', 'type');
    this.#updates = createCounter(
      'pilot_inbound_updates',
      'Updates received from configuration sources and registries',
      'type',
    );
    this.#rejectedCounter = pair('pilot_total_rejected_configs', 'Rejected objects', 'type', 'name');
    this.#configEvents = pair(
      'pilot_k8s_cfg_events',
      'Configuration objects added, updated and deleted',
      'type',
      'event',
    );
    this.#registryEvents = pair(
      'pilot_k8s_reg_events',
      'Kubernetes objects added, updated and deleted',
      'type',
      'event',
    );
  }

  observe(recorder: Recorder): () => void {
    return recorder.observe((record) => this.#countRecord(record));
  }

  configsChanged(changes: readonly ConfigChange[]): void {
    for (const { key, event } of changes) {
      const kind = key.slice(0, key.indexOf('/'));
      (registryKinds.has(kind) ? this.#registryEvents : this.#configEvents).add(`${kind} ${event}`);
    }
  }

  /**
   * Counts each server once.
   *
   * @param servers now rejected, as `Gateway/namespace/name server port`
   */
  gatewayServersRejected(servers: readonly string[]): void {
    for (const server of servers) {
      if (this.#rejectedServers.has(server)) continue;
      const { namespace, name } = parseConfigKey(server.slice(0, server.indexOf(' ')));
      this.#rejectedCounter.add(`gateway ${namespace}/${name}`);
    }
    this.#rejectedServers = new Set(servers);
  }

  #countRecord(record: TraceRecord): void {
    if (record.kind === 'spawn') {
      if (record.actor === 'push/context' && this.#firstRequestAt !== undefined) {
        this.#debounce.observe((record.t - this.#firstRequestAt) / 1_000);
        this.#firstRequestAt = undefined;
      }
      return;
    }
    if (record.kind !== 'event') return;
    const { event, from, to } = record;
    switch (event.type) {
      case 'push.request':
        if (to === 'push') this.#recordRequest(from, record.t, event as unknown as PushOrder);
        break;
      case 'configs.rejected':
        for (const { object, severity } of event.problems as readonly ConfigProblem[]) {
          // An object that has only warnings is accepted.
          if (object !== '' && severity === 'error') this.#rejectedCounter.add(object);
        }
        break;
    }
  }

  #recordRequest(source: string, requestedAt: number, { reasons, configs, forced }: PushOrder): void {
    this.#firstRequestAt ??= requestedAt;
    for (const [type, count] of Object.entries(reasons)) this.#triggers.add(type, count);
    if (source === 'service-registry') {
      const isServed = this.#isServed(configs.length);
      for (const key of configs) this.#countServiceChange(key, isServed);
      return;
    }
    this.#updates.add('config', configs.length > 0 ? configs.length : forced ? 1 : 0);
  }

  #countServiceChange(key: ConfigKeyText, isServed: (namespace: string, hostname: string) => boolean): void {
    const { kind, namespace, name } = parseConfigKey(key);
    if (kind === 'Endpoints') this.#updates.add('eds');
    // Changes of proxies and DNS names accompany an update that is counted.
    else if (kind !== 'ServiceEntry') return;
    else if (isServed(namespace, name)) this.#updates.add('svc');
    // If the previous context has this service, it was removed. Otherwise, the key is that of the object from which a service was built.
    else if ((this.#state.context?.servicesOf(name, namespace).length ?? 0) > 0) this.#updates.add('svcdelete');
    else this.#updates.add('config');
  }

  #isServed(count: number): (namespace: string, hostname: string) => boolean {
    const { registry } = this.#state;
    return count <= maxSearchedRequests
      ? (namespace, hostname) =>
          registry.services.some((service) => service.hostname === hostname && service.namespace === namespace)
      : (namespace, hostname) => this.#hostsOf(registry).has(`${namespace}/${hostname}`);
  }

  #hostsOf(registry: ServiceRegistry): ReadonlySet<string> {
    let hosts = this.#hosts.get(registry);
    if (hosts === undefined) {
      hosts = new Set(registry.services.map(({ namespace, hostname }) => `${namespace}/${hostname}`));
      this.#hosts.set(registry, hosts);
    }
    return hosts;
  }
}
