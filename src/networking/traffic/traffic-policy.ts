/** Which traffic policy holds for one port of one subset (spec/discovery.md §8.2, DestinationRule). */
import { onceFor } from '../../model/collections/once-for.ts';
import type { DestinationRule, Subset } from '../../model/kinds/destinations/destination-rule.ts';
import type {
  LocalityLoadBalancerSetting,
  PortPolicy,
  PortTrafficPolicy,
  TrafficPolicy,
} from '../../model/kinds/destinations/traffic-policy.ts';
import type { Service, TrafficDistribution } from '../../model/services/service.ts';

/** A policy without port levels: they are applied. */
export type EffectivePolicy = PortPolicy & Pick<TrafficPolicy, 'tunnel' | 'proxyProtocol' | 'retryBudget'>;

const noPolicy: EffectivePolicy = {};

/**
 * The rule's policy, overridden field by field by the subset's; on each level a matching port level replaces the four
 * port fields as a whole, absent ones included.
 */
export function effectivePolicy(rule: DestinationRule | undefined, subset: string, port: number): EffectivePolicy {
  if (rule === undefined) return noPolicy;
  return override(override(noPolicy, rule.trafficPolicy, port), subsetOf(rule, subset)?.trafficPolicy, port);
}

export function subsetOf(rule: DestinationRule | undefined, name: string): Subset | undefined {
  return name === '' || rule?.subsets === undefined ? undefined : subsetsByName(rule.subsets).get(name);
}

/** Looked up for each port of each subset. Of several with one name the first applies. */
const subsetsByName = onceFor((subsets: readonly Subset[]) => firstBy(subsets, ({ name }) => name));
const levelsByPort = onceFor((levels: readonly PortTrafficPolicy[]) => firstBy(levels, ({ port }) => port.number));

function firstBy<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): ReadonlyMap<Key, Item> {
  const byKey = new Map<Key, Item>();
  for (const item of items) if (!byKey.has(keyOf(item))) byKey.set(keyOf(item), item);
  return byKey;
}

function override(parent: EffectivePolicy, policy: TrafficPolicy | undefined, port: number): EffectivePolicy {
  if (policy === undefined) return parent;
  const { portLevelSettings, ...own } = policy;
  const merged = { ...parent, ...own };
  const level = portLevelSettings && levelsByPort(portLevelSettings).get(port);
  if (level === undefined) return merged;
  const { loadBalancer: _1, connectionPool: _2, outlierDetection: _3, tls: _4, ...withoutPortFields } = merged;
  const { port: _5, ...portFields } = level;
  return { ...withoutPortFields, ...portFields };
}

/** What orders the endpoints of a service by where they are. */
export interface LocalityOrdering extends LocalityLoadBalancerSetting {
  /** The service's own wish, which says it all. Endpoints are known to be ill by their registry. */
  readonly distribution?: TrafficDistribution;
  /** Of a region the zones are left to Envoy, where there are endpoints enough. */
  readonly zoneAware?: { readonly minClusterSize?: number };
}

/** The rule's setting over the service's wish over the mesh's setting; undefined when it is off. */
export function localityOrdering(
  policy: EffectivePolicy,
  mesh: LocalityLoadBalancerSetting,
  { attributes }: Pick<Service, 'attributes'>,
): LocalityOrdering | undefined {
  const zones = policy.loadBalancer?.zoneAwareLbSetting;
  if (zones?.enabled) {
    const { enabled: _, minClusterSize, ...tiers } = zones;
    return { ...tiers, zoneAware: minClusterSize === undefined ? {} : { minClusterSize } };
  }
  const own = policy.loadBalancer?.localityLbSetting;
  const distribution = attributes?.trafficDistribution;
  if (own === undefined && distribution !== undefined) return { distribution };
  const setting = own ?? mesh;
  return setting.enabled === false ? undefined : setting;
}
