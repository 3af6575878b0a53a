/**
 * Which policies hold for a workload (spec/discovery.md §4.1 "typed views", §8.9 to §8.11): AuthorizationPolicy,
 * RequestAuthentication, PeerAuthentication, Telemetry, EnvoyFilter, WasmPlugin, ProxyConfig. What else a view of the
 * configuration offers is in the push context: services, gateways of a workload, routes, destination rules, scopes.
 */
import type { Config } from './config.ts';
import type { EnvoyFilter } from './kinds/envoy-filter.ts';
import type { PolicyTargetReference } from './kinds/policy-target.ts';
import { isSelected } from './label-match.ts';

/** What of a workload policies look at. */
export interface PolicySubject {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** What of a spec says whom it is for; no labels: everybody in its namespace. */
interface Selecting {
  readonly selector?: Readonly<Record<string, string>>;
  readonly targetRefs?: readonly PolicyTargetReference[];
}

/**
 * Policies of one kind by the workloads that they hold for. The root namespace's hold for the whole mesh. Answers are
 * computed once for each set of labels of a namespace.
 */
export class PolicyIndex<Spec extends object> {
  private readonly byNamespace: ReadonlyMap<string, readonly Config<Spec>[]>;
  private readonly rootNamespace: string;
  private readonly selectorOf: (spec: Spec) => Selecting;
  private readonly answers = new Map<string, readonly Config<Spec>[]>();

  /**
   * @param policies oldest first
   * @param selectorOf where a spec has its selector, when not in `selector`
   */
  constructor(
    policies: readonly Config<Spec>[],
    rootNamespace: string,
    selectorOf: (spec: Spec) => Selecting = (spec) => spec as Selecting,
  ) {
    this.byNamespace = Map.groupBy(policies, ({ namespace }) => namespace);
    this.rootNamespace = rootNamespace;
    this.selectorOf = selectorOf;
  }

  /**
   * Those of the root namespace, then those of the workload's own, each oldest first. One that names objects
   * (`targetRefs`) holds for no workload by its labels.
   */
  for({ namespace, labels }: PolicySubject): readonly Config<Spec>[] {
    const id = JSON.stringify([namespace, Object.entries(labels).sort()]);
    let answer = this.answers.get(id);
    if (answer === undefined) {
      const namespaces = namespace === this.rootNamespace ? [namespace] : [this.rootNamespace, namespace];
      answer = namespaces.flatMap((one) => this.of(one).filter(({ spec }) => this.selects(spec, labels)));
      this.answers.set(id, answer);
    }
    return answer;
  }

  /** Those of a namespace that are attached to an object of it, oldest first. */
  attachedTo(kind: string, name: string, namespace: string): readonly Config<Spec>[] {
    return this.of(namespace).filter(({ spec }) =>
      this.selectorOf(spec).targetRefs?.some(
        (reference) =>
          reference.kind === kind && reference.name === name && (reference.namespace ?? namespace) === namespace,
      ),
    );
  }

  /**
   * The policies of which one holds, the widest first: the oldest for the mesh, the oldest for the namespace, the oldest
   * for the workload (PeerAuthentication, ProxyConfig: a narrower one overrides a wider).
   */
  layersFor(subject: PolicySubject): readonly Config<Spec>[] {
    const all = this.for(subject);
    const isForAll = ({ spec }: Config<Spec>): boolean => isEmpty(this.selectorOf(spec).selector);
    const layers = [
      all.find((policy) => policy.namespace === this.rootNamespace && isForAll(policy)),
      all.find((policy) => policy.namespace === subject.namespace && isForAll(policy)),
      all.find((policy) => policy.namespace === subject.namespace && !isForAll(policy)),
    ];
    return [...new Set(layers.filter((policy) => policy !== undefined))];
  }

  private of(namespace: string): readonly Config<Spec>[] {
    return this.byNamespace.get(namespace) ?? [];
  }

  private selects(spec: Spec, labels: Readonly<Record<string, string>>): boolean {
    const { selector, targetRefs = [] } = this.selectorOf(spec);
    return targetRefs.length === 0 && (isEmpty(selector) || isSelected(selector!, labels));
  }
}

/** EnvoyFilters of workloads in the order in which their patches are applied: within a namespace by priority, then age (§8.9). */
export function envoyFilterIndex(
  filters: readonly Config<EnvoyFilter>[],
  rootNamespace: string,
): PolicyIndex<EnvoyFilter> {
  const byPriority = filters.toSorted((a, b) => a.spec.priority - b.spec.priority);
  return new PolicyIndex(byPriority, rootNamespace, ({ workloadSelector, targetRefs }) => ({
    ...(workloadSelector && { selector: workloadSelector }),
    ...(targetRefs && { targetRefs }),
  }));
}

function isEmpty(selector: Readonly<Record<string, string>> | undefined): boolean {
  return selector === undefined || Object.keys(selector).length === 0;
}
