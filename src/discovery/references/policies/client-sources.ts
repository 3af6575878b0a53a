/** Reports client namespaces and labels that VirtualServices and AuthorizationPolicies match but that no workload has. */
import type { Config } from '../../../model/config/config.ts';
import { nearestName } from '../../../model/fields/nearest-name.ts';
import type { AuthorizationPolicy } from '../../../model/kinds/policies/authorization-policy.ts';
import type { VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';
import { type WorkloadsByNamespace, workloadsByNamespace } from '../services/workloads-by-namespace.ts';
import { labelsText } from './selectors.ts';

export const checkClientSources: ConfigCheck = function* (sources) {
  const namespaces = namespacesOf(sources);
  for (const config of sources.configs.AuthorizationPolicy) {
    yield undefined;
    if (namespaces !== undefined && isWrittenConfig(config)) yield* missingNamespaces(config, namespaces);
  }
  let workloads: WorkloadsByNamespace | undefined;
  for (const config of sources.configs.VirtualService) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const { field, sourceLabels = {}, sourceNamespace } of matchesOf(config.spec)) {
      if (sourceNamespace !== undefined && namespaces?.has(sourceNamespace) === false) {
        const message = `there is no namespace ${sourceNamespace}, so the match applies to no request: ${correctionOf(sourceNamespace, namespaces)}`;
        yield { code: 'SOURCE_NOT_FOUND', config, field: `${field}.sourceNamespace`, message };
      } else if (Object.keys(sourceLabels).length > 0) {
        // Built only for such matches, because it indexes all workloads.
        workloads ??= yield* workloadsByNamespace(sources);
        yield unmatchedLabels(config, { field, sourceLabels, sourceNamespace }, workloads, sources);
      }
    }
  }
};

/** `undefined` if not all namespaces are known. */
export function namespacesOf({
  configs,
  knownObjects,
}: Pick<CheckSources, 'configs' | 'knownObjects'>): ReadonlySet<string> | undefined {
  if (!knownObjects.isComplete('Namespace')) return undefined;
  // A connected workload can have a namespace that exists in no cluster.
  const connectedNamespaces = [...(knownObjects.connectedWorkloads ?? [])].map(({ shape }) => shape.configNamespace);
  const workloadNamespaces = [...configs.Pod, ...configs.WorkloadEntry].map(({ namespace }) => namespace);
  return new Set([...configs.Namespace.map(({ name }) => name), ...workloadNamespaces, ...connectedNamespaces]);
}

function correctionOf(writtenNamespace: string, namespaces: ReadonlySet<string>): string {
  const nearestNamespace = nearestName(writtenNamespace, namespaces);
  return nearestNamespace === undefined
    ? 'correct the name, or create the namespace'
    : `write ${nearestNamespace}, or create the namespace`;
}

function* missingNamespaces(
  config: Config<AuthorizationPolicy>,
  namespaces: ReadonlySet<string>,
): Generator<ConfigWarning> {
  for (const { name, field, isExcluded } of namespacesNamedIn(config.spec)) {
    if (name.includes('*') || namespaces.has(name)) continue;
    const effect = isExcluded ? 'excludes no request' : 'matches no request';
    const message = `there is no namespace ${name}, so it ${effect}: ${correctionOf(name, namespaces)}`;
    yield { code: 'SOURCE_NOT_FOUND', config, field, message };
  }
}

interface NamedNamespace {
  readonly name: string;
  readonly field: string;
  readonly isExcluded: boolean;
}

function* namespacesNamedIn({ rules }: AuthorizationPolicy): Generator<NamedNamespace> {
  const namespacesAt = (values: readonly string[] = [], path: string, isExcluded: boolean): NamedNamespace[] =>
    values.map((name, index) => ({ name, field: `${path}[${index}]`, isExcluded }));
  for (const [rule, { from = [], when = [] }] of rules.entries()) {
    for (const [sourceIndex, { namespaces, notNamespaces }] of from.entries()) {
      const path = `spec.rules[${rule}].from[${sourceIndex}].source`;
      yield* namespacesAt(namespaces, `${path}.namespaces`, false);
      yield* namespacesAt(notNamespaces, `${path}.notNamespaces`, true);
    }
    for (const [conditionIndex, { key, values, notValues }] of when.entries()) {
      if (key !== 'source.namespace') continue;
      yield* namespacesAt(values, `spec.rules[${rule}].when[${conditionIndex}].values`, false);
      yield* namespacesAt(notValues, `spec.rules[${rule}].when[${conditionIndex}].notValues`, true);
    }
  }
}

interface SourceMatch {
  readonly field: string;
  readonly sourceLabels?: Readonly<Record<string, string>>;
  readonly sourceNamespace: string | undefined;
}

function* matchesOf({ http = [], tls = [], tcp = [] }: VirtualService): Generator<SourceMatch> {
  for (const [list, routes] of Object.entries({ http, tls, tcp })) {
    for (const [index, { match = [] }] of routes.entries()) {
      for (const [matchIndex, routeMatch] of match.entries()) {
        const sourceNamespace = 'sourceNamespace' in routeMatch ? routeMatch.sourceNamespace : undefined;
        const field = `spec.${list}[${index}].match[${matchIndex}]`;
        yield { field, sourceNamespace, ...(routeMatch.sourceLabels && { sourceLabels: routeMatch.sourceLabels }) };
      }
    }
  }
}

function unmatchedLabels(
  config: Config,
  { field, sourceLabels, sourceNamespace = '' }: Required<SourceMatch>,
  workloads: WorkloadsByNamespace,
  { knownObjects }: CheckSources,
): ConfigWarning | undefined {
  if (workloads.get(sourceNamespace)?.selectsAny(sourceLabels) || !knownObjects.isComplete('Pod', sourceNamespace)) {
    return undefined;
  }
  const scopeText = sourceNamespace === '' ? 'of the mesh' : `of namespace ${sourceNamespace}`;
  return {
    ...{ code: 'SOURCE_NOT_FOUND', config, field: `${field}.sourceLabels` },
    message: `no workload ${scopeText} has the labels ${labelsText(sourceLabels)}, so the match applies to no request: correct the labels, or the labels of the pods`,
  };
}
