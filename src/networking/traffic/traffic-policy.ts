import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import type { DestinationRule, Subset } from '../../model/kinds/destinations/destination-rule.ts';
import type {
  LocalityLoadBalancerSetting,
  PortPolicy,
  PortTrafficPolicy,
  TrafficPolicy,
} from '../../model/kinds/destinations/traffic-policy.ts';
import type { Service, TrafficDistribution } from '../../model/services/service.ts';

export type EffectivePolicy = PortPolicy & Pick<TrafficPolicy, 'tunnel' | 'proxyProtocol' | 'retryBudget'>;

const noPolicy: EffectivePolicy = {};

/**
 * The subset's policy overrides the rule's policy field by field. On each level, matching port settings replace all four port fields, even with
 * absent ones.
 */
export function effectivePolicy(rule: DestinationRule | undefined, subset: string, port: number): EffectivePolicy {
  if (rule === undefined) return noPolicy;
  return overridePolicy(
    overridePolicy(noPolicy, rule.trafficPolicy, port),
    subsetOf(rule, subset)?.trafficPolicy,
    port,
  );
}

export function subsetOf(rule: DestinationRule | undefined, name: string): Subset | undefined {
  return name === '' || rule?.subsets === undefined ? undefined : subsetsByName(rule.subsets).get(name);
}

/** If a name occurs several times, the first entry applies. */
const subsetsByName = memoizeByObject((subsets: readonly Subset[]) => firstItemByKey(subsets, ({ name }) => name));
const levelsByPort = memoizeByObject((levels: readonly PortTrafficPolicy[]) =>
  firstItemByKey(levels, ({ port }) => port.number),
);

function firstItemByKey<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): ReadonlyMap<Key, Item> {
  const itemByKey = new Map<Key, Item>();
  for (const item of items) if (!itemByKey.has(keyOf(item))) itemByKey.set(keyOf(item), item);
  return itemByKey;
}

function overridePolicy(parent: EffectivePolicy, policy: TrafficPolicy | undefined, port: number): EffectivePolicy {
  if (policy === undefined) return parent;
  const { portLevelSettings, ...policyFields } = policy;
  const mergedPolicy = { ...parent, ...policyFields };
  const level = portLevelSettings && levelsByPort(portLevelSettings).get(port);
  if (level === undefined) return mergedPolicy;
  const { loadBalancer: _1, connectionPool: _2, outlierDetection: _3, tls: _4, ...otherFields } = mergedPolicy;
  const { port: _5, ...portFields } = level;
  return { ...otherFields, ...portFields };
}

export interface LocalityOrdering extends LocalityLoadBalancerSetting {
  /** The service's traffic distribution. If it is set, no other field is set, and the registry also reports unhealthy endpoints. */
  readonly distribution?: TrafficDistribution;
  readonly zoneAware?: { readonly minClusterSize?: number };
}

/**
 * Setting of the DestinationRule, the service's distribution, or the mesh's setting, in this order. `undefined` if
 * locality has no effect.
 */
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
  const ruleSetting = policy.loadBalancer?.localityLbSetting;
  const distribution = attributes?.trafficDistribution;
  if (ruleSetting === undefined && distribution !== undefined) return { distribution };
  const setting = ruleSetting ?? mesh;
  return setting.enabled === false ? undefined : setting;
}
