/**
 * Limits the endpoints that ServiceEntries and Services of one namespace get by selecting workloads. Each host and port has an endpoint for
 * each workload: 1,500 ServiceEntries that select the same 1,500 WorkloadEntries, 500 kB in all, would become 2.25 million endpoints. Beyond
 * the limit the oldest objects keep their endpoints; a younger one keeps its services, and these get no selected endpoint.
 */
import { byAge, type Config, compareText } from '../../model/config/config.ts';
import type { KubernetesService } from '../../model/kinds/kubernetes/service.ts';
import { maxSelectedEndpoints } from '../../model/kinds/object-limits.ts';
import type { ServiceEntry } from '../../model/kinds/service-entry.ts';
import type { WorkloadEntry } from '../../model/kinds/workload-entry.ts';
import { LabelIndex } from '../../model/services/label-match.ts';
import type { LimitedObject, LimitedObjects } from './export-budget.ts';

type Labels = Readonly<Record<string, string>>;

interface Labelled {
  readonly labels: Labels;
}

interface Namespace {
  /** ServiceEntries and Services with a selector, by key. */
  readonly selecting: Map<string, Config>;
  readonly entries: LabelIndex<Labelled>;
  readonly pods: Map<string, Labelled>;
  /** Exists only while a ServiceEntry selects: Services get pods from EndpointSlices, which are not counted. */
  podIndex?: LabelIndex<Labelled> | undefined;
}

/** The selector of an object, and its endpoints for each workload selected by it. */
interface Selection {
  readonly selector: Labels;
  readonly clusters: number;
}

export class SelectionBudget {
  readonly #namespaces = new Map<string, Namespace>();

  /**
   * Idempotent, as `ExportBudget.limit`.
   *
   * @param keys of all objects that may differ from the last call
   * @param objectOf what the key stands for now
   * @param before result of the last call that took effect
   */
  limit(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    before: ReadonlyMap<string, LimitedObject>,
  ): LimitedObjects {
    const touched = new Set<string>();
    for (const key of keys) this.#put(key, objectOf(key), touched);
    const limited = new Map([...before].filter(([, { config }]) => !touched.has(config.namespace)));
    for (const name of touched) {
      const namespace = this.#namespaces.get(name);
      if (namespace === undefined) continue;
      for (const [key, config, total] of beyond(namespace)) {
        const known = before.get(key);
        limited.set(key, known?.original === config ? known : limitedObject(config, total));
      }
    }
    const changed = new Set<string>();
    for (const [key, { config }] of limited) if (before.get(key)?.config !== config) changed.add(key);
    for (const key of before.keys()) if (!limited.has(key)) changed.add(key);
    return { limited, changed };
  }

  #put(key: string, config: Config | undefined, touched: Set<string>): void {
    const [kind = '', name = ''] = key.split('/', 2);
    if (!kinds.has(kind)) return;
    const namespace = this.#namespaces.get(name) ?? {
      ...{
        selecting: new Map<string, Config>(),
        entries: new LabelIndex<Labelled>(),
        pods: new Map<string, Labelled>(),
      },
    };
    if (kind === 'WorkloadEntry') {
      if (config === undefined) namespace.entries.drop(key);
      else namespace.entries.put(key, { labels: { ...(config.spec as WorkloadEntry).labels, ...config.labels } });
    } else if (kind === 'Pod') {
      if (config === undefined) namespace.pods.delete(key);
      else namespace.pods.set(key, { labels: config.labels });
      if (config === undefined) namespace.podIndex?.drop(key);
      else namespace.podIndex?.put(key, { labels: config.labels });
    } else if (config === undefined || selectionOf(config) === undefined) {
      // Touched in any case: its result may be in the map of the caller.
      namespace.selecting.delete(key);
      touched.add(name);
    } else namespace.selecting.set(key, config);
    if (namespace.selecting.size > 0) touched.add(name);
    if (namespace.selecting.size + namespace.entries.size + namespace.pods.size > 0)
      this.#namespaces.set(name, namespace);
    else this.#namespaces.delete(name);
  }
}

const kinds: ReadonlySet<string> = new Set(['ServiceEntry', 'Service', 'WorkloadEntry', 'Pod']);

/** `undefined`: the object selects no workloads. */
function selectionOf({ kind, spec }: Config): Selection | undefined {
  if (kind === 'Service') {
    const { type, selector = {}, ports } = (spec as KubernetesService).spec;
    return type === 'ExternalName' || Object.keys(selector).length === 0
      ? undefined
      : { selector, clusters: ports.length };
  }
  const { workloadSelector, resolution, hosts, ports } = spec as ServiceEntry;
  // Without resolution connections go to their original destination: there are no endpoints.
  if (workloadSelector === undefined || resolution === 'NONE') return undefined;
  return { selector: workloadSelector.labels, clusters: hosts.length * ports.length };
}

/** Objects beyond the limit, each with the number of endpoints of the whole namespace. */
function beyond(namespace: Namespace): readonly (readonly [key: string, config: Config, total: number])[] {
  const { selecting, entries, pods } = namespace;
  if (![...selecting.values()].some(({ kind }) => kind === 'ServiceEntry')) namespace.podIndex = undefined;
  else if (namespace.podIndex === undefined) {
    namespace.podIndex = new LabelIndex();
    for (const [key, pod] of pods) namespace.podIndex.put(key, pod);
  }
  let total = 0;
  const costs = [...selecting].map(([key, config]) => {
    const { selector, clusters } = selectionOf(config)!;
    // Counting what exactly is selected would match each selector with each workload.
    const selected =
      entries.maxSelectedBy(selector) +
      (config.kind === 'ServiceEntry' ? (namespace.podIndex?.maxSelectedBy(selector) ?? 0) : 0);
    const cost = clusters * selected;
    total += cost;
    return { key, config, cost };
  });
  if (total <= maxSelectedEndpoints) return [];
  let sum = 0;
  return costs
    .sort((a, b) => byAge(a.config, b.config) || compareText(a.key, b.key))
    .flatMap(({ key, config, cost }) => {
      // A small object is kept after a large one was left out: the large one alone is the cause.
      if (sum + cost > maxSelectedEndpoints) return [[key, config, total] as const];
      sum += cost;
      return [];
    });
}

function limitedObject(original: Config, total: number): LimitedObject {
  const { kind, namespace, name, resourceVersion, source } = original;
  return {
    original,
    config: Object.freeze({
      ...original,
      isSelectionLimited: true,
      resourceVersion: `${resourceVersion}-without-selected`,
    }),
    problem: {
      severity: 'error',
      place: source === undefined ? { source: 'k8s://' } : { file: source.file, line: source.line },
      object: `${kind} ${namespace}/${name}`,
      field: kind === 'Service' ? 'spec.selector' : 'spec.workloadSelector',
      message:
        `its services get no selected ${kind === 'Service' ? 'WorkloadEntries' : 'workloads'} as endpoints: the ServiceEntries and ` +
        `Services of namespace ${namespace} select ${total} endpoints (hosts x ports x workloads), the limit is ` +
        `${maxSelectedEndpoints} (LIMIT_EXCEEDED): list several hosts or ports only where needed, select fewer workloads, or ` +
        'distribute the objects over several namespaces',
    },
  };
}
