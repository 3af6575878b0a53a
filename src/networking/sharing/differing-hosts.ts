/** Finds hosts that resolve to different services or DestinationRules for two shapes. Clusters and endpoints of all other hosts are equal. */
import { memoizeByObject, memoizeByPair } from '../../model/collections/memoize-by-object.ts';
import { isWildcard } from '../../model/fields/hostname.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../model/services/service.ts';
import { aliasChain, isAlias } from '../../model/services/service-alias.ts';
import { compareServiceAge } from '../../model/services/service-registry.ts';
import { servicesWithin } from '../../model/services/services-within.ts';

type Hosts = ReadonlySet<string>;

const noHosts: Hosts = new Set();
const tooManyHosts = 'too many';

/** Maximum number of differing hosts in a small mesh. In a larger mesh, a quarter of the services may differ. */
const minDifferingLimit = 16;

/** Returns `undefined` if too many hosts differ for sharing to be useful. */
export function differingHosts(shape: ProxyShape, commonShape: ProxyShape, push: PushContext): Hosts | undefined {
  const cachedDifferences = differingByViews(push);
  const key = `${viewText(shape, push)}>${viewText(commonShape, push)}`;
  let result = cachedDifferences.get(key);
  if (result === undefined) {
    result = withAliases(computeDifferingHosts(shape, commonShape, push), shape, commonShape, push);
    cachedDifferences.set(key, result);
  }
  return result === tooManyHosts ? undefined : result;
}

const differingByViews = memoizeByObject((_: PushContext) => new Map<string, Hosts | typeof tooManyHosts>());

function viewText(shape: ProxyShape, push: PushContext): string {
  const { type, configNamespace, labels } = shape;
  const { sidecar } = push.sidecarScopeFor(shape);
  const rules = push.destinationRulesSelecting(configNamespace, labels);
  return `${type}~${configNamespace}~${rules}~${sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`}`;
}

function computeDifferingHosts(
  shape: ProxyShape,
  commonShape: ProxyShape,
  push: PushContext,
): Hosts | typeof tooManyHosts {
  const [scope, commonScope] = [push.sidecarScopeFor(shape), push.sidecarScopeFor(commonShape)];
  const maxDiffering = Math.max(minDifferingLimit, scope.services.length / 4);
  if (Math.abs(scope.services.length - commonScope.services.length) > maxDiffering) return tooManyHosts;
  const serviceHosts =
    scope.services === commonScope.services ? noHosts : hostsInOnlyOneList(scope.services, commonScope.services);
  if (serviceHosts.size > maxDiffering) return tooManyHosts;
  const hosts = new Set(serviceHosts);
  for (const service of servicesWithOwnRules(shape, scope, push)) {
    const rule = push.destinationRuleFor(shape.configNamespace, service, shape.labels);
    if (rule === push.destinationRuleFor(commonShape.configNamespace, service, commonShape.labels)) continue;
    hosts.add(service.hostname);
    if (hosts.size > maxDiffering) return tooManyHosts;
  }
  return hosts;
}

/** Hosts of services in only one of the lists, which are sorted by age. */
const hostsInOnlyOneList = memoizeByPair((a: readonly Service[], b: readonly Service[]): Hosts => {
  const hosts = new Set<string>();
  for (let [i, j] = [0, 0]; i < a.length || j < b.length; ) {
    const [leftService, rightService] = [a[i], b[j]];
    const order =
      leftService === rightService
        ? 0
        : leftService === undefined
          ? 1
          : rightService === undefined
            ? -1
            : compareServiceAge(leftService, rightService);
    if (leftService !== rightService) hosts.add((order <= 0 ? leftService! : rightService!).hostname);
    if (leftService !== rightService && order === 0) hosts.add(rightService!.hostname);
    if (order <= 0) i++;
    if (order >= 0) j++;
  }
  return hosts;
});

function servicesWithOwnRules(
  { configNamespace, labels }: ProxyShape,
  scope: SidecarScope,
  push: PushContext,
): Iterable<Service> {
  const hosts = new Set(push.ownDestinationRuleHosts(configNamespace, labels));
  const wildcards = [...hosts].filter(isWildcard);
  const namedServices = [...hosts].flatMap((host) => scope.serviceByHostname(host) ?? []);
  if (wildcards.length === 0) return namedServices;
  return new Set([...namedServices, ...wildcards.flatMap((host) => servicesWithin(scope.services, host))]);
}

const aliasesIn = memoizeByObject((services: readonly Service[]) => services.filter(isAlias));

/** Adds aliases and targets, which always differ together, because an alias resolves to the target. */
function withAliases(
  hosts: Hosts | typeof tooManyHosts,
  shape: ProxyShape,
  commonShape: ProxyShape,
  push: PushContext,
): Hosts | typeof tooManyHosts {
  if (hosts === tooManyHosts || hosts.size === 0) return hosts;
  const hostsWithAliases = new Set(hosts);
  for (const scope of [push.sidecarScopeFor(shape), push.sidecarScopeFor(commonShape)]) {
    for (const alias of aliasesIn(scope.services)) {
      const chain = aliasChain(alias, (host) => scope.serviceByHostname(host));
      if (!chain.some(({ hostname }) => hosts.has(hostname))) continue;
      for (const { hostname } of chain) hostsWithAliases.add(hostname);
    }
  }
  return hostsWithAliases;
}
