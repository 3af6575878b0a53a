import { WeakValues } from '../collections/weak-values.ts';
import type { Config } from '../config/config.ts';
import type { EnvoyFilter } from '../kinds/envoy-filter/envoy-filter.ts';
import type { PolicyTargetReference } from '../kinds/policies/policy-target.ts';
import { SelectingList } from '../services/label-match.ts';

export interface TargetableObject {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface PolicySubject {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Objects that the workload implements. Policies attached to them apply to it. */
  readonly targetableAs?: readonly TargetableObject[];
}

/** Without labels, the policy applies to its whole namespace. */
interface PolicySelection {
  readonly selector?: Readonly<Record<string, string>>;
  readonly targetRefs?: readonly PolicyTargetReference[];
}

interface PolicyResult<Spec> {
  readonly allPolicies: readonly Config<Spec>[];
  layers?: readonly Config<Spec>[];
}

/** Selects a workload's policies of one kind. Those of the root namespace apply to the whole mesh. */
export class PolicyIndex<Spec extends object> {
  readonly policies: readonly Config<Spec>[];
  private readonly policiesByNamespace: ReadonlyMap<string, PoliciesOfNamespace<Spec>>;
  private readonly rootNamespace: string;
  private readonly selectorOf: (spec: Spec) => PolicySelection;
  private readonly compare: ((a: Spec, b: Spec) => number) | undefined;
  /** Weak, because clients choose their labels, so a plain cache would be unbounded. */
  private readonly resultsByText = new WeakValues<PolicyResult<Spec>>();
  /** Last result for a label object, which endpoints and proxies retain. */
  private readonly latestByLabels = new WeakMap<
    PolicySubject['labels'],
    { namespace: string; result: PolicyResult<Spec> }
  >();
  private readonly emptyResult: PolicyResult<Spec> = { allPolicies: [], layers: [] };

  /**
   * @param policies oldest first
   * @param selectorOf returns a spec's selection fields, if not in `selector`
   * @param compare order of a workload's policies across namespaces; ties keep the default order
   */
  constructor(
    policies: readonly Config<Spec>[],
    rootNamespace: string,
    selectorOf: (spec: Spec) => PolicySelection = (spec) => spec as PolicySelection,
    compare?: (a: Spec, b: Spec) => number,
  ) {
    this.policies = policies;
    this.compare = compare;
    // A placeholder for an object with an unreadable namespace applies to the whole mesh.
    const groups = Map.groupBy(policies, ({ namespace }) => namespace || rootNamespace);
    this.policiesByNamespace = new Map(
      [...groups].map(([namespace, namespacePolicies]) => [
        namespace,
        new PoliciesOfNamespace(namespacePolicies, selectorOf),
      ]),
    );
    this.rootNamespace = rootNamespace;
    this.selectorOf = selectorOf;
  }

  /**
   * Policies of the root namespace, then of the workload's namespace, each oldest first. A policy with `targetRefs` applies to workloads that
   * implement one of these objects in its namespace.
   */
  policiesFor(subject: PolicySubject): readonly Config<Spec>[] {
    return this.resultFor(subject).allPolicies;
  }

  /**
   * Returns the oldest policy per level, widest first: mesh, namespace, workload (PeerAuthentication, Telemetry, ProxyConfig: narrower policies
   * override wider ones). Adds placeholders with unknown scope.
   */
  layersFor(subject: PolicySubject): readonly Config<Spec>[] {
    const result = this.resultFor(subject);
    result.layers ??= this.layersOf(result.allPolicies, subject.namespace);
    return result.layers;
  }

  private resultFor(subject: PolicySubject): PolicyResult<Spec> {
    const { namespace, labels, targetableAs = [] } = subject;
    if (targetableAs.length > 0) return this.resultOf(subject);
    const latestEntry = this.latestByLabels.get(labels);
    if (latestEntry?.namespace === namespace) return latestEntry.result;
    const result = this.resultOf(subject);
    this.latestByLabels.set(labels, { namespace, result });
    return result;
  }

  private resultOf({ namespace, labels, targetableAs = [] }: PolicySubject): PolicyResult<Spec> {
    const namespaces = [...new Set([this.rootNamespace, namespace])].filter((policyNamespace) =>
      this.policiesByNamespace.has(policyNamespace),
    );
    if (namespaces.length === 0) return this.emptyResult;
    const id = JSON.stringify([namespace, Object.entries(labels).sort(), targetableAs.map(textOf).sort()]);
    let result = this.resultsByText.get(id);
    if (result === undefined) {
      const lists = namespaces
        .map((policyNamespace) => this.policiesByNamespace.get(policyNamespace)!.policiesFor(labels, targetableAs))
        .filter((list) => list.length > 0);
      result = { allPolicies: this.orderPolicies(lists) };
      this.resultsByText.set(id, result);
    }
    return result;
  }

  private orderPolicies(lists: readonly (readonly Config<Spec>[])[]): readonly Config<Spec>[] {
    const { compare } = this;
    if (lists.length === 1 && compare === undefined) return lists[0]!;
    const allPolicies = lists.flat();
    return compare === undefined ? allPolicies : allPolicies.sort((a, b) => compare(a.spec, b.spec));
  }

  private layersOf(allPolicies: readonly Config<Spec>[], namespace: string): readonly Config<Spec>[] {
    const isForAll = ({ spec }: Config<Spec>): boolean => {
      const { selector, targetRefs = [] } = this.selectorOf(spec);
      return isEmpty(selector) && targetRefs.length === 0;
    };
    const policiesOf = (policyNamespace: string): readonly Config<Spec>[] =>
      allPolicies.filter((policy) => policy.namespace === policyNamespace);
    const selectorPolicies = (
      policies: readonly Config<Spec>[],
      isForAllWorkloads: boolean,
    ): (Config<Spec> | undefined)[] => [
      policies.find((policy) => isScopeKnown(policy) && isForAll(policy) === isForAllWorkloads),
    ];
    // Wider policies do not replace a placeholder with unknown scope, because it may stand for a policy of single workloads.
    const unknownScopePolicies = (policies: readonly Config<Spec>[]): readonly Config<Spec>[] =>
      policies.filter((policy) => !isScopeKnown(policy));
    const [root, namespacePolicies] = [policiesOf(this.rootNamespace), policiesOf(namespace)];
    const layers = [
      ...selectorPolicies(root, true),
      ...unknownScopePolicies(root),
      ...selectorPolicies(namespacePolicies, true),
      ...unknownScopePolicies(namespacePolicies),
      ...unknownScopePolicies(policiesOf('')),
      ...selectorPolicies(namespacePolicies, false),
    ];
    return [...new Set(layers.filter((policy) => policy !== undefined))];
  }
}

class PoliciesOfNamespace<Spec extends object> {
  private readonly policiesBySelector: SelectingList<Config<Spec>>;
  private readonly policiesByReference = new Map<string, Config<Spec>[]>();
  private readonly orderOfPolicy = new Map<Config<Spec>, number>();

  /** @param policies in application order */
  constructor(policies: readonly Config<Spec>[], selectorOf: (spec: Spec) => PolicySelection) {
    const selectingPolicies = policies.filter(({ spec }) => (selectorOf(spec).targetRefs ?? []).length === 0);
    this.policiesBySelector = new SelectingList(selectingPolicies, ({ spec }) => selectorOf(spec).selector);
    for (const [policyIndex, policy] of policies.entries()) {
      this.orderOfPolicy.set(policy, policyIndex);
      const { namespace } = policy;
      for (const reference of selectorOf(policy.spec).targetRefs ?? []) {
        // A policy cannot target objects of another namespace.
        if ((reference.namespace ?? namespace) !== namespace) continue;
        const text = textOf({ ...reference, namespace });
        const referencingPolicies = this.policiesByReference.get(text);
        if (referencingPolicies === undefined) this.policiesByReference.set(text, [policy]);
        else referencingPolicies.push(policy);
      }
    }
  }

  policiesFor(
    labels: Readonly<Record<string, string>>,
    targetableAs: readonly TargetableObject[],
  ): readonly Config<Spec>[] {
    const selectingPolicies = this.policiesBySelector.itemsSelecting(labels);
    const referencedPolicies = targetableAs.flatMap((object) => this.policiesByReference.get(textOf(object)) ?? []);
    if (referencedPolicies.length === 0) return selectingPolicies;
    return [...new Set([...selectingPolicies, ...referencedPolicies])].sort(
      (a, b) => this.orderOfPolicy.get(a)! - this.orderOfPolicy.get(b)!,
    );
  }
}

function isScopeKnown({ standsFor }: Config): boolean {
  return standsFor?.isScopeKnown !== false;
}

function textOf({ group, kind, namespace, name }: TargetableObject): string {
  return `${group}/${kind}/${namespace}/${name}`;
}

/** Patches apply in this order: by priority, root namespace first, oldest first. */
export function envoyFilterIndex(
  filters: readonly Config<EnvoyFilter>[],
  rootNamespace: string,
): PolicyIndex<EnvoyFilter> {
  return new PolicyIndex(
    filters,
    rootNamespace,
    ({ workloadSelector, targetRefs }) => ({
      ...(workloadSelector && { selector: workloadSelector }),
      ...(targetRefs && { targetRefs }),
    }),
    (a, b) => a.priority - b.priority,
  );
}

function isEmpty(selector: Readonly<Record<string, string>> | undefined): boolean {
  return selector === undefined || Object.keys(selector).length === 0;
}
