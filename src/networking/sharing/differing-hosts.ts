/**
 * Hosts that mean something else to one shape than to another: another service, or another destination rule. Clusters and
 * endpoints of all other hosts are the same for both.
 */
import { onceFor, onceForPair } from '../../model/collections/once-for.ts';
import { isWildcard } from '../../model/fields/hostname.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../model/services/service.ts';
import { chainBehind, isAlias } from '../../model/services/service-alias.ts';
import { byServiceAge } from '../../model/services/service-registry.ts';
import { servicesWithin } from '../../model/services/services-within.ts';

type Hosts = ReadonlySet<string>;

const none: Hosts = new Set();
const tooMany = 'too many';

/** So few may differ however small the mesh is; of more services a quarter. */
const fewHosts = 16;

/** Workloads of a namespace get one answer; undefined: so many differ that the one's list is little help for the other's. */
export function differingHosts(shape: ProxyShape, common: ProxyShape, push: PushContext): Hosts | undefined {
  const known = answers(push);
  const key = `${viewText(shape, push)}>${viewText(common, push)}`;
  let answer = known.get(key);
  if (answer === undefined) {
    answer = withAliases(differing(shape, common, push), shape, common, push);
    known.set(key, answer);
  }
  return answer === tooMany ? undefined : answer;
}

const answers = onceFor((_: PushContext) => new Map<string, Hosts | typeof tooMany>());

/** What of a shape decides what hosts mean to it. */
function viewText(shape: ProxyShape, push: PushContext): string {
  const { type, configNamespace, labels } = shape;
  const { sidecar } = push.sidecarScopeFor(shape);
  const rules = push.destinationRulesSelecting(configNamespace, labels);
  return `${type}~${configNamespace}~${rules}~${sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`}`;
}

function differing(shape: ProxyShape, common: ProxyShape, push: PushContext): Hosts | typeof tooMany {
  const [own, theirs] = [push.sidecarScopeFor(shape), push.sidecarScopeFor(common)];
  const most = Math.max(fewHosts, own.services.length / 4);
  if (Math.abs(own.services.length - theirs.services.length) > most) return tooMany;
  const ofServices = own.services === theirs.services ? none : hostsOfOthers(own.services, theirs.services);
  if (ofServices.size > most) return tooMany;
  const hosts = new Set(ofServices);
  for (const service of servicesOfOwnRules(shape, own, push)) {
    const rule = push.destinationRuleFor(shape.configNamespace, service, shape.labels);
    if (rule === push.destinationRuleFor(common.configNamespace, service, common.labels)) continue;
    hosts.add(service.hostname);
    if (hosts.size > most) return tooMany;
  }
  return hosts;
}

/** Hosts of services that are in one of two lists only; both are in the order of their age. */
const hostsOfOthers = onceForPair((a: readonly Service[], b: readonly Service[]): Hosts => {
  const hosts = new Set<string>();
  for (let [i, j] = [0, 0]; i < a.length || j < b.length; ) {
    const [left, right] = [a[i], b[j]];
    const order = left === right ? 0 : left === undefined ? 1 : right === undefined ? -1 : byServiceAge(left, right);
    if (left !== right) hosts.add((order <= 0 ? left! : right!).hostname);
    if (left !== right && order === 0) hosts.add(right!.hostname);
    if (order <= 0) i++;
    if (order >= 0) j++;
  }
  return hosts;
});

/** The services that the rules may be for which not everybody has. */
function servicesOfOwnRules(
  { configNamespace, labels }: ProxyShape,
  scope: SidecarScope,
  push: PushContext,
): Iterable<Service> {
  const hosts = new Set(push.ownDestinationRuleHosts(configNamespace, labels));
  const wildcards = [...hosts].filter(isWildcard);
  const named = [...hosts].flatMap((host) => scope.serviceByHostname(host) ?? []);
  if (wildcards.length === 0) return named;
  return new Set([...named, ...wildcards.flatMap((host) => servicesWithin(scope.services, host))]);
}

const aliasesIn = onceFor((services: readonly Service[]) => services.filter(isAlias));

/** What a name is another name for decides what it means: both differ, or neither does. */
function withAliases(
  hosts: Hosts | typeof tooMany,
  shape: ProxyShape,
  common: ProxyShape,
  push: PushContext,
): Hosts | typeof tooMany {
  if (hosts === tooMany || hosts.size === 0) return hosts;
  const all = new Set(hosts);
  for (const scope of [push.sidecarScopeFor(shape), push.sidecarScopeFor(common)]) {
    for (const alias of aliasesIn(scope.services)) {
      const chain = chainBehind(alias, (host) => scope.serviceByHostname(host));
      if (!chain.some(({ hostname }) => hosts.has(hostname))) continue;
      for (const { hostname } of chain) all.add(hostname);
    }
  }
  return all;
}
