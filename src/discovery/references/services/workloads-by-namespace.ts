/** Workloads to which selectors may apply. */
import { LabelIndex } from '../../../model/services/label-match.ts';
import type { CheckSources } from '../config-warning.ts';

type Labels = Readonly<Record<string, string>>;

export type SelectableWorkload = { readonly labels: Labels };
export type WorkloadsByNamespace = ReadonlyMap<string, LabelIndex<SelectableWorkload>>;

/** The empty key contains the workloads of all namespaces. */
export function* workloadsByNamespace({
  configs,
  knownObjects: { connectedWorkloads = [] },
}: Pick<CheckSources, 'configs' | 'knownObjects'>): Generator<undefined, WorkloadsByNamespace> {
  const indexByNamespace = new Map<string, LabelIndex<SelectableWorkload>>([['', new LabelIndex()]]);
  const add = (namespace: string, id: string, labels: Labels): void => {
    const index = indexByNamespace.get(namespace) ?? new LabelIndex<SelectableWorkload>();
    indexByNamespace.set(namespace, index);
    index.put(id, { labels });
    indexByNamespace.get('')!.put(`${namespace}/${id}`, { labels });
  };
  for (const { namespace, name, labels } of configs.Pod) {
    yield undefined;
    add(namespace, `Pod ${name}`, labels);
  }
  for (const { namespace, name, labels, spec } of configs.WorkloadEntry) {
    yield undefined;
    add(namespace, `WorkloadEntry ${name}`, { ...spec.labels, ...labels });
  }
  let count = 0;
  for (const { shape } of connectedWorkloads) {
    yield undefined;
    add(shape.configNamespace, `proxy ${count++}`, shape.labels);
  }
  return indexByNamespace;
}
