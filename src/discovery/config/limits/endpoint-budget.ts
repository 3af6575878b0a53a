/**
 * Limits the endpoints of the services of a namespace. 1,500 ServiceEntries that select the same 1,500 WorkloadEntries (500 kB in total) would result
 * in 2.25 million endpoints for every proxy. Beyond the limit, the youngest objects have no endpoints.
 */
import type { Config } from '../../../model/config/config.ts';
import { itemsBeyondLimit, type LimitShare } from '../../../model/config/oldest-first.ts';
import type { EndpointSlice } from '../../../model/kinds/kubernetes/endpoint-slice.ts';
import { type Endpoints, slicesOf } from '../../../model/kinds/kubernetes/endpoints.ts';
import type { KubernetesService } from '../../../model/kinds/kubernetes/service.ts';
import type { ServiceEntry } from '../../../model/kinds/workloads/service-entry.ts';
import type { WorkloadEntry } from '../../../model/kinds/workloads/workload-entry.ts';
import { LabelIndex } from '../../../model/services/label-match.ts';
import type { Steps } from '../../../runtime/turns.ts';
import {
  type BudgetSettings,
  type LimitExcess,
  type LimitedObject,
  type LimitedObjects,
  type NamespaceBudget,
  recomputeLimited,
} from './limited-objects.ts';

type Labels = Readonly<Record<string, string>>;

interface LabelledEndpoints {
  readonly labels: Labels;
}

interface EndpointSource {
  readonly config: Config;
  readonly listedEndpointCount: number;
  readonly selection: Selection | undefined;
}

interface Selection {
  readonly selector: Labels;
  readonly clusters: number;
  /** Whether the object selects pods. Kubernetes Services do not: their endpoints come from EndpointSlices. */
  readonly selectsPods: boolean;
}

interface NamespaceEndpoints {
  readonly sources: Map<string, EndpointSource>;
  readonly entries: LabelIndex<LabelledEndpoints>;
  readonly pods: Map<string, LabelledEndpoints>;
  readonly sums: EndpointSums;
  /** `undefined` while no object selects pods. */
  podIndex?: LabelIndex<LabelledEndpoints> | undefined;
}

/** Upper bounds, without evaluating selectors. */
interface EndpointSums {
  listedEndpointCount: number;
  /** Endpoints per WorkloadEntry, if all selectors match it. */
  clusters: number;
  /** Endpoints per pod, if all selectors match it. */
  clustersOfPods: number;
}

export class EndpointBudget implements NamespaceBudget {
  readonly #maxEndpoints: number;
  readonly #namespaces = new Map<string, NamespaceEndpoints>();

  constructor(maxEndpoints: number) {
    this.#maxEndpoints = maxEndpoints;
  }

  *limitInSteps(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    _settings: BudgetSettings,
    previous: ReadonlyMap<string, LimitedObject>,
  ): Steps<LimitedObjects> {
    const touchedKeys = new Set<string>();
    for (const key of keys) {
      yield;
      this.#putConfig(key, objectOf(key), touchedKeys);
    }
    const previouslyLimited = new Set([...previous.values()].map(({ original }) => original.namespace));
    for (const name of touchedKeys)
      if (!previouslyLimited.has(name) && this.#isWithinLimit(name)) touchedKeys.delete(name);
    if (touchedKeys.size === 0) return { limitedByKey: previous, changedKeys: touchedKeys };
    return yield* recomputeLimited(touchedKeys, previous, (name) => this.#excessOf(name));
  }

  /** If true, the namespace is within the limit, whatever its selectors match. */
  #isWithinLimit(name: string): boolean {
    const namespace = this.#namespaces.get(name);
    if (namespace === undefined) return true;
    const { sums, entries, pods } = namespace;
    return (
      sums.listedEndpointCount + sums.clusters * entries.size + sums.clustersOfPods * pods.size <= this.#maxEndpoints
    );
  }

  #putConfig(key: string, config: Config | undefined, touchedKeys: Set<string>): void {
    const [kind = '', name = ''] = key.split('/', 2);
    if (!kinds.has(kind)) return;
    const namespace = this.#namespaces.get(name) ?? {
      ...{
        sources: new Map<string, EndpointSource>(),
        entries: new LabelIndex<LabelledEndpoints>(),
        pods: new Map<string, LabelledEndpoints>(),
      },
      sums: { listedEndpointCount: 0, clusters: 0, clustersOfPods: 0 },
    };
    if (kind === 'WorkloadEntry') {
      if (config === undefined) namespace.entries.remove(key);
      else namespace.entries.put(key, { labels: { ...(config.spec as WorkloadEntry).labels, ...config.labels } });
    } else if (kind === 'Pod') {
      if (config === undefined) namespace.pods.delete(key);
      else namespace.pods.set(key, { labels: config.labels });
      if (config === undefined) namespace.podIndex?.remove(key);
      else namespace.podIndex?.put(key, { labels: config.labels });
    } else {
      const source = config && sourceOf(config);
      addToSums(namespace.sums, namespace.sources.get(key), -1);
      addToSums(namespace.sums, source, 1);
      if (source === undefined) namespace.sources.delete(key);
      else namespace.sources.set(key, source);
      // Added even if nothing remains, because the caller's map may contain the previous result of the namespace.
      touchedKeys.add(name);
    }
    if (namespace.sources.size > 0) touchedKeys.add(name);
    if (namespace.sources.size + namespace.entries.size + namespace.pods.size > 0)
      this.#namespaces.set(name, namespace);
    else this.#namespaces.delete(name);
  }

  *#excessOf(name: string): Generator<LimitExcess> {
    const namespace = this.#namespaces.get(name);
    if (namespace === undefined) return;
    const shares = limitSharesOf(namespace);
    const excessShares = itemsBeyondLimit(shares, this.#maxEndpoints);
    if (excessShares.length === 0) return;
    const totalCost = shares.reduce((sum, { cost }) => sum + cost, 0);
    for (const { config } of excessShares) yield this.#buildLimitExcess(config, totalCost);
  }

  #buildLimitExcess(originalConfig: Config, totalCost: number): LimitExcess {
    const { kind, namespace } = originalConfig;
    return {
      original: originalConfig,
      variant: 'without-endpoints',
      limit: () => ({
        config: omitEndpoints(originalConfig),
        field: fields[kind]!(originalConfig),
        message:
          `${effects[kind] ?? 'its services get no endpoints'}: the services of namespace ${namespace} have ${totalCost} endpoints (addresses x ` +
          `ports, x hosts of a ServiceEntry), the limit is ${this.#maxEndpoints} (LIMIT_EXCEEDED): reduce hosts, ports or ` +
          'selected workloads, distribute the objects over several namespaces, or raise PILOT_MAX_ENDPOINTS_PER_NAMESPACE',
      }),
    };
  }
}

const kinds: ReadonlySet<string> = new Set([
  ...['ServiceEntry', 'Service', 'EndpointSlice', 'Endpoints', 'WorkloadEntry', 'Pod'],
]);

/** `undefined` if the object has no endpoints and selects none. */
function sourceOf(config: Config): EndpointSource | undefined {
  const listedCount = listedEndpoints(config);
  const selection = selectionOf(config);
  return listedCount === 0 && selection === undefined
    ? undefined
    : { config, listedEndpointCount: listedCount, selection };
}

function listedEndpoints({ kind, spec }: Config): number {
  switch (kind) {
    case 'EndpointSlice':
      return sliceSize(spec as EndpointSlice);
    case 'Endpoints':
      return slicesOf(spec as Endpoints).reduce((sum, slice) => sum + sliceSize(slice), 0);
    case 'ServiceEntry': {
      const { hosts, ports, endpoints = [], resolution } = spec as ServiceEntry;
      return resolution === 'NONE' ? 0 : hosts.length * ports.length * endpoints.length;
    }
    default:
      return 0;
  }
}

function sliceSize({ endpoints, ports }: EndpointSlice): number {
  return endpoints.reduce((sum, { addresses }) => sum + addresses.length, 0) * ports.length;
}

function selectionOf({ kind, spec }: Config): Selection | undefined {
  if (kind === 'Service') {
    const { type, selector = {}, ports } = (spec as KubernetesService).spec;
    const selectsNothing = type === 'ExternalName' || Object.keys(selector).length === 0;
    return selectsNothing ? undefined : { selector, clusters: ports.length, selectsPods: false };
  }
  if (kind !== 'ServiceEntry') return undefined;
  const { workloadSelector, resolution, hosts, ports } = spec as ServiceEntry;
  // Without resolution, connections use their original destination, so there are no endpoints.
  if (workloadSelector === undefined || resolution === 'NONE') return undefined;
  return { selector: workloadSelector.labels, clusters: hosts.length * ports.length, selectsPods: true };
}

function addToSums(sums: EndpointSums, source: EndpointSource | undefined, times: 1 | -1): void {
  if (source === undefined) return;
  const { listedEndpointCount, selection } = source;
  sums.listedEndpointCount += times * listedEndpointCount;
  sums.clusters += times * (selection?.clusters ?? 0);
  if (selection?.selectsPods) sums.clustersOfPods += times * selection.clusters;
}

function limitSharesOf(namespace: NamespaceEndpoints): readonly LimitShare[] {
  const { sources, entries, pods } = namespace;
  if (![...sources.values()].some(({ selection }) => selection?.selectsPods)) namespace.podIndex = undefined;
  else if (namespace.podIndex === undefined) {
    namespace.podIndex = new LabelIndex();
    for (const [key, pod] of pods) namespace.podIndex.put(key, pod);
  }
  const { podIndex } = namespace;
  return [...sources.values()].map(({ config, listedEndpointCount, selection }) => {
    if (selection === undefined) return { config, cost: listedEndpointCount };
    const { selector, clusters, selectsPods } = selection;
    /** The count is an upper bound, because an exact count would evaluate each selector for each workload. */
    const selectedCount =
      entries.maxSelectedBy(selector) + (selectsPods ? (podIndex?.maxSelectedBy(selector) ?? 0) : 0);
    return { config, cost: listedEndpointCount + clusters * selectedCount };
  });
}

function omitEndpoints({ kind, spec }: Config): Partial<Config> {
  if (kind === 'EndpointSlice') return { spec: { ...(spec as EndpointSlice), endpoints: [] } };
  if (kind === 'Endpoints') return { spec: { ...(spec as Endpoints), subsets: [] } };
  return { isWithoutEndpoints: true };
}

const fields: Readonly<Record<string, (config: Config) => string>> = {
  EndpointSlice: () => 'endpoints',
  Endpoints: () => 'subsets',
  Service: () => 'spec.selector',
  ServiceEntry: ({ spec }) =>
    (spec as ServiceEntry).workloadSelector === undefined ? 'spec.endpoints' : 'spec.workloadSelector',
};

const effects: Readonly<Record<string, string>> = {
  EndpointSlice: 'its endpoints are ignored',
  Endpoints: 'its endpoints are ignored',
  Service: 'WorkloadEntries that it selects are ignored',
};
