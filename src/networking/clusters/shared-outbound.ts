/**
 * Outbound clusters that were made before. Proxies of one shape get the very same objects, so that a push to many of
 * them costs one generation, and whoever encodes can tell by identity what it has encoded.
 */
import type { PushContext } from '../../model/push-context.ts';
import type { MergedDestinationRule } from '../../model/resolved-rules.ts';
import type { Service } from '../../model/service.ts';
import { clusterShapeKey, type ProxyShape } from '../proxy-shape.ts';
import type { Resource } from '../resource.ts';
import { outboundClusters } from './outbound.ts';

/** By shape; gone with the service, the rule or the context that they were made from. */
type OfShapes = Map<string, readonly Resource[]>;
type OfRules = WeakMap<MergedDestinationRule | typeof noRule, OfShapes>;

const noRule = {};
const made = new WeakMap<PushContext, WeakMap<Service, OfRules>>();

export function sharedOutboundClusters(
  service: Service,
  rule: MergedDestinationRule | undefined,
  shape: ProxyShape,
  push: PushContext,
): readonly Resource[] {
  const ofServices = getOrMake(made, push, () => new WeakMap<Service, OfRules>());
  const ofRules = getOrMake(ofServices, service, (): OfRules => new WeakMap());
  const ofShapes = getOrMake(ofRules, rule ?? noRule, (): OfShapes => new Map());
  const key = clusterShapeKey(shape, service);
  const known = ofShapes.get(key);
  if (known !== undefined) return known;
  const clusters = outboundClusters(service, rule, shape, push);
  ofShapes.set(key, clusters);
  return clusters;
}

function getOrMake<K extends object, V>(map: WeakMap<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}
