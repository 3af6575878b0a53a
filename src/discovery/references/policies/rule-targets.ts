/** Reports DestinationRules without effect: the host, port or subset is missing, or no client receives the rule. */
import type { Config } from '../../../model/config/config.ts';
import { isWildcard } from '../../../model/fields/hostname.ts';
import type { DestinationRule } from '../../../model/kinds/destinations/destination-rule.ts';
import { matchesSelector } from '../../../model/services/label-match.ts';
import type { Service } from '../../../model/services/service.ts';
import { exportSet, isExportedTo } from '../../../model/services/visibility.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';
import { destinationsOf } from '../routes/destinations.ts';
import { PodsOfServices } from '../services/pods-of-services.ts';

export const checkRuleTargets: ConfigCheck = function* (sources) {
  const { context, configs, hosts } = sources;
  const labelsOf = new Map<string, EndpointLabels>();
  const pods = new PodsOfServices(configs);
  const routedSubsetsByHost = yield* routedSubsets(sources);
  for (const config of configs.DestinationRule) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    const host = context.hostNames.qualify(config.spec.host, config.namespace);
    if (hosts.isMissingHost(host)) {
      const message = `no service has the host ${host}, so the rule has no effect: ${hosts.correctionOf(host)}`;
      yield { code: 'HOST_NOT_FOUND', config, field: 'spec.host', message };
      continue;
    }
    if (isWildcard(host)) continue;
    const services = hosts.servicesOf(host);
    yield unappliedWarning(config, services, sources);
    yield* missingPorts(config, services);
    if (services.length === 0) continue;
    const labels = labelsOf.get(host) ?? labelsOfHost(services, context, pods);
    labelsOf.set(host, labels);
    yield* emptySubsets(config, services, labels, (name) => routedSubsetsByHost.has(`${host} ${name}`));
  }
};

/**
 * Rules are looked up in the client's, then the service's, then the root namespace. A rule in any other namespace applies to clients of that
 * namespace only.
 */
function unappliedWarning(
  config: Config<DestinationRule>,
  services: readonly Service[],
  { context: { mesh } }: CheckSources,
): ConfigWarning | undefined {
  const { namespace, spec } = config;
  const [service] = services;
  if (service === undefined || namespace === mesh.rootNamespace) return undefined;
  if (services.some((candidate) => candidate.namespace === namespace)) return undefined;
  const exportTo = exportSet(namespace, spec.exportTo, mesh.defaultDestinationRuleExportTo, mesh);
  const isExportedToOwn = isExportedTo(exportTo, namespace, namespace);
  if (isExportedToOwn && spec.exportTo === undefined) return undefined;
  if (isExportedToOwn && spec.exportTo!.every((exportedTo) => exportedTo === '.' || exportedTo === namespace))
    return undefined;
  const recipients = isExportedToOwn
    ? `only to clients of namespace ${namespace}, regardless of exportTo`
    : 'to no client';
  return {
    ...{ code: 'RULE_NOT_APPLIED', config, field: 'spec.exportTo' },
    message: `the rule applies ${recipients}: ${spec.host} is a host of namespace ${service.namespace}; move the rule to ${service.namespace} for all clients, or set exportTo to ["."]`,
  };
}

function* missingPorts(config: Config<DestinationRule>, services: readonly Service[]): Generator<ConfigWarning> {
  const { trafficPolicy, subsets = [] } = config.spec;
  const numbers = new Set(services.flatMap(({ ports }) => ports.map(({ number }) => number)));
  if (numbers.size === 0) return;
  const policies = [
    { policy: trafficPolicy, path: 'spec.trafficPolicy' },
    ...subsets.map((subset, index) => ({ policy: subset.trafficPolicy, path: `spec.subsets[${index}].trafficPolicy` })),
  ];
  for (const { policy, path } of policies) {
    for (const [index, { port }] of (policy?.portLevelSettings ?? []).entries()) {
      if (numbers.has(port.number)) continue;
      yield {
        ...{ code: 'PORT_NOT_FOUND', config, field: `${path}.portLevelSettings[${index}].port.number` },
        message: `${services[0]!.hostname} has no port ${port.number}, so these settings have no effect: choose one of ${[...numbers].join(', ')}`,
      };
    }
  }
}

function* emptySubsets(
  config: Config<DestinationRule>,
  services: readonly Service[],
  labels: EndpointLabels,
  isRouted: (subset: string) => boolean,
): Generator<ConfigWarning | undefined> {
  for (const [index, { name, labels: selector = {} }] of (config.spec.subsets ?? []).entries()) {
    yield undefined;
    // Files may contain only some of the running Pods.
    if (labels.isSelectedBy(selector) || (labels.areOfPods && !isRouted(name))) continue;
    const text = Object.entries(selector)
      .map(([key, value]) => `${key}=${value}`)
      .join(', ');
    yield {
      ...{ code: 'SUBSET_WITHOUT_ENDPOINTS', config, field: `spec.subsets[${index}].labels` },
      message: `no endpoint of ${services[0]!.hostname} has the labels ${text}, so requests for subset ${name} fail (503): correct the labels, or start workloads with them`,
    };
  }
}

type Labels = Readonly<Record<string, string>>;

/** If no endpoints exist, uses the labels of the Pods that the Services of the host select. */
function labelsOfHost(
  services: readonly Service[],
  context: CheckSources['context'],
  pods: PodsOfServices,
): EndpointLabels {
  const namespaces = new Set(services.map(({ namespace }) => namespace));
  const endpoints = [...namespaces].flatMap((namespace) => context.endpointsOf(services[0]!.hostname, namespace));
  const labels =
    endpoints.length > 0
      ? endpoints.map((endpoint) => endpoint.labels)
      : services.flatMap((candidate) => pods.podsOf(candidate).map((pod) => pod.labels));
  return new EndpointLabels(labels, endpoints.length === 0);
}

/** Subsets of all destinations, as `host subset`. */
function* routedSubsets({ configs, context }: CheckSources): Generator<undefined, ReadonlySet<string>> {
  const destinationHosts = new Set<string>();
  for (const { namespace, spec } of configs.VirtualService) {
    yield undefined;
    for (const { destination } of destinationsOf(spec))
      if (destination.subset)
        destinationHosts.add(`${context.hostNames.qualify(destination.host, namespace)} ${destination.subset}`);
  }
  return destinationHosts;
}

class EndpointLabels {
  readonly #sets: ReadonlyMap<string, Labels>;
  readonly #pairs = new Set<string>();
  /** If true, the labels are those of Pods, because no endpoint is known. */
  readonly areOfPods: boolean;

  constructor(labelSets: readonly Labels[], areOfPods: boolean) {
    this.areOfPods = areOfPods;
    const distinctLabels = new Set(labelSets);
    this.#sets = new Map([...distinctLabels].map((labels) => [JSON.stringify(Object.entries(labels).sort()), labels]));
    for (const labels of this.#sets.values())
      for (const [key, value] of Object.entries(labels)) this.#pairs.add(`${key}=${value}`);
  }

  /** Also true if there are no labels, because workloads may be elsewhere or not started. */
  isSelectedBy(selector: Labels): boolean {
    if (this.#sets.size === 0) return true;
    const pairs = Object.entries(selector);
    if (!pairs.every(([key, value]) => this.#pairs.has(`${key}=${value}`))) return false;
    return pairs.length < 2 || [...this.#sets.values()].some((labels) => matchesSelector(selector, labels));
  }
}
