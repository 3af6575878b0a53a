/** Reports selectors of policies, Sidecars, Gateways and services that select no workload, and objects that select the same workload. */
import type { Config } from '../../../model/config/config.ts';
import { gatewayServiceAnnotation } from '../../../model/kinds/gateway/gateway.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import type { KubernetesService } from '../../../model/kinds/kubernetes/service.ts';
import { LabelIndex } from '../../../model/services/label-match.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';
import { objectOfService } from '../known-objects.ts';
import {
  type SelectableWorkload,
  type WorkloadsByNamespace,
  workloadsByNamespace,
} from '../services/workloads-by-namespace.ts';

type Labels = Readonly<Record<string, string>>;

interface Selector {
  readonly field: string;
  readonly labels: Labels;
}

type SelectorOf = (spec: never) => Selector | undefined;

const policySelector = ({ selector }: { readonly selector?: Labels }): Selector | undefined =>
  selector && { field: 'spec.selector.matchLabels', labels: selector };
const workloadSelector = ({
  workloadSelector: selector,
}: {
  readonly workloadSelector?: Labels | { readonly labels: Labels };
}) =>
  selector && {
    field: 'spec.workloadSelector.labels',
    labels: ('labels' in selector && typeof selector.labels === 'object' ? selector.labels : selector) as Labels,
  };

const selectorsByKind: readonly (readonly [KindName, SelectorOf])[] = [
  ...(['PeerAuthentication', 'RequestAuthentication', 'AuthorizationPolicy', 'Telemetry', 'WasmPlugin'] as const).map(
    (kind) => [kind, policySelector as SelectorOf] as const,
  ),
  ...(['Sidecar', 'EnvoyFilter', 'DestinationRule'] as const).map(
    (kind) => [kind, workloadSelector as SelectorOf] as const,
  ),
];

/** Kinds of which only the oldest object in a namespace applies to a workload. */
const singleObjectKinds: ReadonlySet<KindName> = new Set<KindName>(['PeerAuthentication', 'Sidecar', 'Telemetry']);

export const checkSelectors: ConfigCheck = function* (sources) {
  // Only selectors require an index of all workloads.
  const workloads = haveSelectors(sources)
    ? yield* workloadsByNamespace(sources)
    : new Map<string, LabelIndex<SelectableWorkload>>();
  for (const [kind, selectorOf] of selectorsByKind) {
    const oldestBySelector = new Map<string, Config>();
    for (const config of sources.configs[kind] as readonly Config<never>[]) {
      yield undefined;
      if (!isWrittenConfig(config) || hasTargets(config)) continue;
      const selector = selectorOf(config.spec);
      if (singleObjectKinds.has(kind)) {
        const key = `${config.namespace} ${JSON.stringify(Object.entries(selector?.labels ?? {}).sort())}`;
        const olderConfig = oldestBySelector.get(key);
        if (olderConfig === undefined) oldestBySelector.set(key, config);
        else yield conflict(config, olderConfig, selector);
      }
      if (selector !== undefined) yield unmatchedWarning(config, selector, workloads, sources);
    }
  }
  yield* gatewaysWithoutWorkloads(workloads, sources);
  // Checked only for files, because Services without workloads are common in a cluster, for example for a Deployment scaled to zero.
  if (sources.knownObjects.areFromFiles) yield* servicesWithoutPods(workloads, sources);
};

function haveSelectors({ configs, knownObjects }: CheckSources): boolean {
  if (knownObjects.areFromFiles || configs.Gateway.length > 0) return true;
  return selectorsByKind.some(([kind, selectorOf]) =>
    (configs[kind] as readonly Config<never>[]).some(({ spec }) => selectorOf(spec) !== undefined),
  );
}

function* servicesWithoutPods(
  workloads: WorkloadsByNamespace,
  sources: CheckSources,
): Generator<ConfigWarning | undefined> {
  const { context, configs } = sources;
  yield* entriesWithoutWorkloads(workloads, sources);
  for (const service of context.services) {
    yield undefined;
    const config = service.origin.kind === 'Service' ? objectOfService(service, configs) : undefined;
    const { selector: labels } = (config?.spec as KubernetesService | undefined)?.spec ?? {};
    if (config === undefined || !isWrittenConfig(config) || labels === undefined) continue;
    if (context.endpointsOf(service.hostname, service.namespace).length > 0) continue;
    const unmatchedSelector = unmatchedWarning(config, { field: 'spec.selector', labels }, workloads, sources);
    yield unmatchedSelector && {
      ...unmatchedSelector,
      message: `no workload of namespace ${config.namespace} has the labels ${labelsText(labels)}, so requests for ${service.hostname} fail (503): correct the selector, or the labels of the pods`,
    };
  }
}

/** A ServiceEntry is not reported if a WorkloadGroup may register VMs. */
function* entriesWithoutWorkloads(
  workloads: WorkloadsByNamespace,
  { configs, knownObjects }: CheckSources,
): Generator<ConfigWarning | undefined> {
  const groupsByNamespace = new Map<string, LabelIndex<SelectableWorkload>>();
  for (const { namespace, name, spec } of configs.WorkloadGroup) {
    yield undefined;
    const index = groupsByNamespace.get(namespace) ?? new LabelIndex<SelectableWorkload>();
    groupsByNamespace.set(namespace, index);
    index.put(name, { labels: spec.metadata?.labels ?? {} });
  }
  const entries = new Set(configs.WorkloadEntry.map(({ namespace }) => namespace));
  for (const config of configs.ServiceEntry) {
    yield undefined;
    const { namespace, spec } = config;
    const labels = spec.workloadSelector?.labels ?? {};
    if (!isWrittenConfig(config) || Object.keys(labels).length === 0) continue;
    if (workloads.get(namespace)?.selectsAny(labels) || groupsByNamespace.get(namespace)?.selectsAny(labels)) continue;
    if (!knownObjects.isComplete(entries.has(namespace) ? 'WorkloadEntry' : 'Pod', namespace)) continue;
    yield {
      ...{ code: 'WORKLOAD_NOT_FOUND', config, field: 'spec.workloadSelector.labels' },
      message: `no workload of namespace ${namespace} has the labels ${labelsText(labels)}, so requests for ${spec.hosts.join(', ')} fail (503): correct the selector, or the labels of the workloads`,
    };
  }
}

/** A Gateway applies to workloads of all namespaces, unless gateways are scoped to their own namespace. */
function* gatewaysWithoutWorkloads(
  workloads: WorkloadsByNamespace,
  { configs, context, knownObjects }: CheckSources,
): Generator<ConfigWarning | undefined> {
  const isNamespaceScoped = context.features.gatewaysOfOwnNamespace;
  for (const config of configs.Gateway) {
    yield undefined;
    const { selector: labels } = config.spec;
    const isServiceGateway = config.annotations[gatewayServiceAnnotation] !== undefined;
    if (!isWrittenConfig(config) || isServiceGateway || Object.keys(labels).length === 0) continue;
    const namespace = isNamespaceScoped ? config.namespace : '';
    if (workloads.get(namespace)?.selectsAny(labels)) continue;
    if (!knownObjects.isComplete(isNamespaceScoped ? 'Pod' : 'GatewayPod', namespace)) continue;
    const scopeText = isNamespaceScoped ? `of namespace ${namespace}` : 'of the mesh';
    yield {
      ...{ code: 'WORKLOAD_NOT_FOUND', config, field: 'spec.selector' },
      message: `no workload ${scopeText} has the labels ${labelsText(labels)}, so no gateway serves these servers: correct the selector, or the labels of the gateway's pods`,
    };
  }
}

function hasTargets({ spec }: Config<never>): boolean {
  return ((spec as { targetRefs?: readonly unknown[] }).targetRefs ?? []).length > 0;
}

function unmatchedWarning(
  config: Config,
  { field, labels }: Selector,
  workloads: WorkloadsByNamespace,
  { knownObjects, context }: CheckSources,
): ConfigWarning | undefined {
  if (Object.keys(labels).length === 0) return undefined;
  const isForMesh = config.namespace === context.mesh.rootNamespace;
  const namespace = isForMesh ? '' : config.namespace;
  if (!knownObjects.isComplete('Pod', namespace)) return undefined;
  if (workloads.get(namespace)?.selectsAny(labels)) return undefined;
  const scopeText = isForMesh ? 'of the mesh' : `of namespace ${config.namespace}`;
  return {
    ...{ code: 'WORKLOAD_NOT_FOUND', config, field },
    message: `no workload ${scopeText} has the labels ${labelsText(labels)}, so the object has no effect: correct the labels, or the labels of the pods`,
  };
}

export function labelsText(labels: Labels): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ');
}

function conflict(config: Config, olderConfig: Config, selector: Selector | undefined): ConfigWarning {
  const selectedText = selector === undefined ? 'all workloads of the namespace' : 'the same workloads';
  return {
    ...{ code: 'SELECTOR_CONFLICT', config, field: selector?.field ?? 'spec' },
    message: `${config.kind} ${olderConfig.namespace}/${olderConfig.name} applies to ${selectedText} and is older, so this object has no effect: merge the two`,
    other: { config: olderConfig },
  };
}
