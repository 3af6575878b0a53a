import type { LocalityLoadBalancerSetting } from '../../model/kinds/destinations/traffic-policy.ts';
import type { Endpoint, TrafficDistribution } from '../../model/services/service.ts';
import { ownValue } from '../../runtime/json-object.ts';
import type { LocalityOrdering } from '../traffic/traffic-policy.ts';
import { topologyDistance } from './distance.ts';

export interface LocalityGroup {
  /** `region/zone/subzone`. */
  readonly locality: string;
  readonly endpoints: readonly Endpoint[];
  readonly weight: number;
  /** 0 is the highest priority. Priorities of a cluster are contiguous. */
  readonly priority: number;
}

export interface LocalityOrder {
  readonly proxyLocality: string;
  readonly proxyLabels: Readonly<Record<string, string>>;
  readonly proxyNetwork: string;
  /** Kubernetes node of the proxy. Empty if it has no effect. */
  readonly proxyNode: string;
  readonly setting?: LocalityOrdering | undefined;
  /** Failover requires outlier detection: Envoy uses the next priority only if hosts are unhealthy. */
  readonly outlierDetection: boolean;
}

export function localityGroups(
  clusterEndpoints: readonly Endpoint[],
  localityOrder: LocalityOrder,
): readonly LocalityGroup[] {
  const endpoints = withCountableWeights(clusterEndpoints);
  const { setting } = localityOrder;
  if (setting?.distribution !== undefined)
    return compactPriorities(groupByCloseness(endpoints, localityOrder, setting.distribution));
  if (setting?.zoneAware !== undefined) return compactPriorities(groupByRegion(endpoints, localityOrder, setting));
  if (setting?.distribute?.length)
    return distributeGroups(groupByLocality(endpoints), localityOrder.proxyLocality, setting.distribute);
  if (setting === undefined || !localityOrder.outlierDetection) return groupByLocality(endpoints);
  if (!setting.failoverPriority?.length)
    return compactPriorities(orderByFailover(groupByLocality(endpoints), localityOrder, setting));
  const groups = groupByLabelPriority(endpoints, localityOrder, setting.failoverPriority);
  return compactPriorities(setting.failover?.length ? orderByFailoverInTiers(groups, localityOrder, setting) : groups);
}

export function weightOf(endpoint: Endpoint): number {
  return endpoint.weight || 1;
}

/** Maximum sum of the weights of a cluster, which must fit in 32 bits. */
const maxTotalWeight = 2 ** 31;

function withCountableWeights(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const totalWeight = endpoints.reduce((sum, endpoint) => sum + weightOf(endpoint), 0);
  if (totalWeight <= maxTotalWeight) return endpoints;
  const divisor = totalWeight / maxTotalWeight;
  return endpoints.map((endpoint) => ({
    ...endpoint,
    weight: Math.max(1, Math.floor(weightOf(endpoint) / divisor)),
  }));
}

function groupByLocality(endpoints: readonly Endpoint[], priority = 0): LocalityGroup[] {
  const groups = new Map<string, Endpoint[]>();
  for (const endpoint of endpoints) {
    const group = groups.get(endpoint.locality);
    if (group === undefined) groups.set(endpoint.locality, [endpoint]);
    else group.push(endpoint);
  }
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([locality, members]) => ({
      locality,
      endpoints: members,
      weight: members.reduce((sum, endpoint) => sum + weightOf(endpoint), 0),
      priority,
    }));
}

function groupByCloseness(
  endpoints: readonly Endpoint[],
  { proxyLocality, proxyNetwork, proxyNode }: LocalityOrder,
  distribution: TrafficDistribution,
): LocalityGroup[] {
  const client = { network: proxyNetwork, locality: proxyLocality, node: proxyNode };
  return groupByPriority(endpoints, (endpoint) => topologyDistance(endpoint, client, distribution));
}

function groupByPriority(endpoints: readonly Endpoint[], priorityOf: (endpoint: Endpoint) => number): LocalityGroup[] {
  return [...Map.groupBy(endpoints, priorityOf)]
    .sort(([a], [b]) => a - b)
    .flatMap(([priority, members]) => groupByLocality(members, priority));
}

/** Orders by the proxy's region, its failover region, then all other regions, within label priorities if configured. */
function groupByRegion(
  endpoints: readonly Endpoint[],
  localityOrder: LocalityOrder,
  { failover, failoverPriority }: LocalityOrdering,
): LocalityGroup[] {
  const [proxyRegion] = localityOrder.proxyLocality.split('/');
  const failoverRegion = failover?.find(({ from }) => from === proxyRegion)?.to;
  const regionDistance = (locality: string): number => {
    const [region] = locality.split('/');
    if (region === proxyRegion) return 0;
    return failoverRegion === undefined || failoverRegion === region ? 1 : 2;
  };
  const tiers = failoverPriority?.length
    ? groupByLabelPriority(endpoints, localityOrder, failoverPriority)
    : groupByLocality(endpoints);
  return tiers.map((group) => ({ ...group, priority: group.priority * 3 + regionDistance(group.locality) }));
}

/** Applies the `distribute` entry whose `from` matches the proxy. Unlisted localities receive no traffic. */
function distributeGroups(
  groups: readonly LocalityGroup[],
  proxyLocality: string,
  distribute: NonNullable<LocalityLoadBalancerSetting['distribute']>,
): readonly LocalityGroup[] {
  const entry = distribute.find(({ from }) => localityMatches(proxyLocality, from));
  if (entry === undefined) return groups;
  const remainingGroups = new Set(groups);
  const weightedGroups: LocalityGroup[] = [];
  // The most specific target selects its localities first.
  for (const [targetLocality, weight] of Object.entries(entry.to).sort(([a], [b]) => specificity(b) - specificity(a))) {
    const members = [...remainingGroups].filter((group) => localityMatches(group.locality, targetLocality));
    const totalWeight = members.reduce((sum, group) => sum + group.weight, 0);
    for (const group of members) {
      remainingGroups.delete(group);
      if (weight > 0) weightedGroups.push({ ...group, weight: Math.ceil((group.weight * weight) / totalWeight) });
    }
  }
  return weightedGroups.sort((a, b) => (a.locality < b.locality ? -1 : 1));
}

function orderByFailover(
  groups: readonly LocalityGroup[],
  localityOrder: LocalityOrder,
  setting: LocalityLoadBalancerSetting,
): LocalityGroup[] {
  return groups.map((group) => ({
    ...group,
    priority: regionDistance(localityOrder.proxyLocality, group.locality, setting),
  }));
}

function orderByFailoverInTiers(
  groups: readonly LocalityGroup[],
  localityOrder: LocalityOrder,
  setting: LocalityLoadBalancerSetting,
): LocalityGroup[] {
  return groups.map((group) => ({
    ...group,
    priority: group.priority * 5 + regionDistance(localityOrder.proxyLocality, group.locality, setting),
  }));
}

/** Returns 0 for the same subzone, 1 for the zone, 2 for the region, 3 for the failover region (any if none is configured), 4 otherwise. */
function regionDistance(proxy: string, endpoint: string, setting: LocalityLoadBalancerSetting): number {
  const [region = '', zone = '', subzone = ''] = proxy.split('/');
  const [otherRegion = '', otherZone = '', otherSubzone = ''] = endpoint.split('/');
  if (region === otherRegion) {
    if (zone !== otherZone) return 2;
    return subzone === otherSubzone ? 0 : 1;
  }
  const failover = setting.failover?.find(({ from }) => from === region);
  return failover === undefined || failover.to === otherRegion ? 3 : 4;
}

/** Prioritizes by the number of labels, from the start of the list, that endpoint and proxy have in common. */
function groupByLabelPriority(
  endpoints: readonly Endpoint[],
  localityOrder: LocalityOrder,
  labels: readonly string[],
): LocalityGroup[] {
  return groupByPriority(endpoints, (endpoint) => {
    const firstMismatchIndex = labels.findIndex((label) => !hasSameLabelValue(label, endpoint, localityOrder));
    return firstMismatchIndex === -1 ? 0 : labels.length - firstMismatchIndex;
  });
}

/** A label `key` requires equal values on proxy and endpoint; `key=value` requires this value on the endpoint. */
function hasSameLabelValue(label: string, endpoint: Endpoint, localityOrder: LocalityOrder): boolean {
  const equals = label.indexOf('=');
  if (equals > 0) return workloadLabel(endpoint, label.slice(0, equals)) === label.slice(equals + 1);
  const proxyRegion = workloadLabel(
    { labels: localityOrder.proxyLabels, locality: localityOrder.proxyLocality },
    label,
  );
  return proxyRegion === workloadLabel(endpoint, label);
}

const topologyLabels = ['topology.kubernetes.io/region', 'topology.kubernetes.io/zone', 'topology.istio.io/subzone'];

function workloadLabel(workload: Pick<Endpoint, 'labels' | 'locality'>, key: string): string | undefined {
  const level = topologyLabels.indexOf(key);
  return ownValue(workload.labels, key) ?? (level === -1 ? undefined : workload.locality.split('/')[level]);
}

/** Maximum priority number in Envoy. */
const lastPriority = 128;

/** Renumbers priorities without gaps, as Envoy requires. */
function compactPriorities(groups: readonly LocalityGroup[]): readonly LocalityGroup[] {
  const usedPriorities = [...new Set(groups.map((group) => group.priority))].sort((a, b) => a - b);
  const rankByPriority = new Map(usedPriorities.map((priority, index) => [priority, index]));
  return groups.map((group) => ({ ...group, priority: Math.min(rankByPriority.get(group.priority)!, lastPriority) }));
}

/** `region/zone/*`, `region/*`, `region` and `*` match every locality below. */
export function localityMatches(locality: string, rule: string): boolean {
  const localityParts = locality.split('/');
  for (const [level, expected] of rule.split('/').entries()) {
    if (expected === '*') return true;
    if (expected !== (localityParts[level] ?? '')) return false;
  }
  return true;
}

function specificity(rule: string): number {
  return rule.split('/').filter((segment) => segment !== '*').length;
}
