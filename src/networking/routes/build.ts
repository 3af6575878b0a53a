/** RDS: the route configurations that a proxy asks for by name (spec/discovery.md §7.3, §8.5, §8.7). */
import type { ProxyView } from '../../model/proxy.ts';
import type { PushContext } from '../../model/push-context.ts';
import { mergeGateways } from '../gateway/merge.ts';
import { reachOf } from '../reach.ts';
import type { Resource } from '../resource.ts';
import { gatewayRoutes } from './gateway.ts';
import { sidecarRoutes } from './sidecar.ts';

/** One configuration for each name; for a name that means nothing to the proxy, one without virtual hosts. */
export function buildRoutes(view: ProxyView, push: PushContext, names: readonly string[]): Resource[] {
  if (view.type === 'sidecar') return names.map((name) => sidecarRoutes(name, view, push));
  const merged = mergeGateways(view, push);
  const reach = reachOf(view, push);
  return names.map((name) => gatewayRoutes(name, merged, view, push, reach));
}
